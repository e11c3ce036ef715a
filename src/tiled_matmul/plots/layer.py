"""Figures of chapter 15: bytes of a layer, tiles of rows in groups, what long 8-bit sums lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiled_matmul.models.epilogue import Layer
from tiled_matmul.plots import style

MIDDLE = {"ha": "center", "va": "center"}
LINES = ((style.FAULT, "o"), (style.C, "s"), style.SERIES[2])
BANDS = (style.A, style.B, style.OTHERS[1], style.OTHERS[0])


@style.styled
def moved(layer: Layer, finding: str) -> style.Figure:
    """Draw the bytes of a layer as bars: with a kernel for each step, with two, and with one.

    Each bar has a part for the product and a part for what follows it. `finding` is the title.
    """
    ways = {
        "one per step": layer.separate_bytes,
        "two kernels": layer.two_kernels_bytes,
        "one kernel": layer.fused_bytes,
    }
    fig, ax = style.draw(1.75)
    product, spoken = layer.product_bytes / 1e6, []
    for row, (name, total) in enumerate(ways.items()):
        after = total / 1e6 - product
        ax.barh(row, product, 0.66, color=style.C, alpha=0.75)
        ax.barh(row, after, 0.66, left=product, color=style.FAULT, alpha=0.75)
        beside = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(f"{total / 1e6:.0f}", (total / 1e6, row), fontsize=8, **beside)
        if row == 0:
            ax.text(product / 2, row, "product", fontsize=8, **MIDDLE)
            ax.text(product + after / 2, row, "later steps", fontsize=8, **MIDDLE)
        spoken.append(
            f"{name}: {product:.0f} MB for the product and {after:.0f} MB for later steps"
        )
    ax.set_yticks(range(len(ways)), list(ways))
    ax.set(ylim=(len(ways) - 0.5, -0.5), xlabel="bytes moved (MB)")
    ax.set_xlim(0, 1.12 * max(ways.values()) / 1e6)
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


@style.styled
def groups(offsets: Sequence[int], block_m: int, finding: str) -> style.Figure:
    """Draw A's rows as a band for each group, and beside them the tiles that cover each group.

    Group g ends at row offsets[g]. What hangs over into other groups is hatched. `finding` is the
    title. Raises ValueError if offsets fall or block_m is not positive.
    """
    begins = [0, *offsets[:-1]]
    if block_m < 1 or any(end < begin for begin, end in zip(begins, offsets, strict=True)):
        raise ValueError(f"offsets must not fall, got {list(offsets)} with tiles of {block_m}")
    wide, gap = 0.6 * block_m, 0.5 * block_m
    fig, ax = style.draw(2.5)
    count = sum(-(-(end - begin) // block_m) for begin, end in zip(begins, offsets, strict=True))
    right = wide + gap + count * (wide + 0.25 * gap)
    spoken, tiles, bottom = [], 0, offsets[-1]
    for group, (begin, end) in enumerate(zip(begins, offsets, strict=True)):
        color = BANDS[group % len(BANDS)]
        style.segments(ax, [(0, end), (right, end)], edgecolor=style.MUTED, lw=0.6, ls=":")
        style.fill(ax, 0, begin, wide, end - begin, color, 0.6)
        look = {"fontsize": 7.5, "va": "center", "ha": "right"}
        rows = f"row {begin}" if end == begin + 1 else f"rows {begin}–{end - 1}"
        name = f"group {group}, {rows}" if begin < end else f"group {group}, no rows"
        ax.text(-0.08 * block_m, (begin + end) / 2, name, **look)
        for top in range(begin, end, block_m):
            x = wide + gap + tiles * (wide + 0.25 * gap)
            inside = min(block_m, end - top)
            style.fill(ax, x, top, wide, inside, color, 0.6)
            hang = [(x, top + inside, wide, block_m - inside)]
            style.boxes(ax, hang, facecolor="none", edgecolor=color, hatch="////", lw=0)
            style.frame(ax, x, top, wide, block_m, color, 1.2)
            ax.text(x + wide / 2, top - 0.1 * block_m, f"tile {tiles}", fontsize=7.5, **MIDDLE)
            tiles, bottom = tiles + 1, max(bottom, top + block_m)
        rows = f"rows {begin} to {end - 1}" if begin < end else "no rows"
        spoken.append(f"group {group} has {rows}")
    ax.text(wide / 2, -0.1 * block_m, "A", fontsize=7.5, **MIDDLE)
    style.frame(ax, 0, 0, wide, offsets[-1], style.INK, 1.0)
    ax.set(xlim=(-2.1 * block_m, right), ylim=(bottom + 0.5, -0.2 * block_m))
    ax.set_aspect("equal")
    ax.axis("off")
    return style.conclude(
        fig,
        finding,
        f"{'; '.join(spoken)}. The first of a group's tiles begins where the group does, and "
        f"its last may reach into the next group: {tiles} tiles of {block_m} rows in all.",
    )


@style.styled
def missing(lines: Mapping[str, Mapping[int, tuple[float, float]]], finding: str) -> style.Figure:
    """Draw the errors of long sums over K, on logarithmic axes.

    `lines` maps names to {K: (measured, predicted)}; predictions are crosses. `finding` is the
    title. Raises ValueError without lines.
    """
    if not lines:
        raise ValueError("there is no line to draw")
    fig, ax = style.draw(2.6)
    measured = {name: {k: m for k, (m, _) in line.items()} for name, line in lines.items()}
    for (name, line), (color, marker) in zip(lines.items(), LINES, strict=False):
        points = measured[name]
        ax.plot(list(points), list(points.values()), color=color, marker=marker, label=name)
        crosses = {k: predicted for k, (_, predicted) in line.items()}
        ax.plot(list(crosses), list(crosses.values()), "x", color=style.INK, ms=9, zorder=3)
    ax.plot([], [], "x", color=style.INK, ms=8, label="predicted")
    ax.set(xscale="log", yscale="log", xlabel="K", ylabel="relative error of the sums")
    ticks = sorted({k for line in lines.values() for k in line})
    ax.set_xticks(ticks, [f"{k:,}" for k in ticks])
    ax.minorticks_off()
    ax.legend(fontsize=8)
    style.grid_lines(ax)
    return style.conclude(fig, finding, f"Measured: {style.in_words(measured, '.2g')}.")
