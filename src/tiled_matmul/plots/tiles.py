"""Figures of chapter 3: reuse over time, strips, sets, tile sizes, a register block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tiled_matmul.plots import style

Visit = tuple[int, int, int]
PAIR = ((style.A, "o"), (style.FAULT, "s"))  # of two lines, the second of which has a problem


@style.styled
def reuse(orders: Mapping[str, Sequence[Visit]], finding: str) -> style.Figure:
    """Draw the element of B that each multiplication uses; time runs right, memory runs down.

    `orders` maps a name to its visits (i, j, k), all of one problem. `finding` is the title.
    """
    fig, axes = style.draw(4.2, len(orders), squeeze=False, sharex=True)
    for ax, (name, visits) in zip(axes[:, 0], orders.items(), strict=True):
        n = 1 + max(j for _, j, _ in visits)
        rows = 1 + max(k for *_, k in visits)
        places = [k * n + j for _, j, k in visits]
        breaks = [t for t in range(1, len(places)) if places[t] != places[t - 1] + 1]
        vertices = []
        for start, end in zip([0, *breaks], [*breaks, len(places)], strict=True):
            vertices += [(start, places[start]), (end, places[start] + end - start)]
        style.segments(ax, vertices, edgecolor=style.B, lw=1.3)
        ax.set(xlim=(0, len(visits)), ylim=(rows * n, -1), title=name, ylabel="element of B")
    axes[-1, 0].set_xlabel("multiplication, in the order of the loops")
    return style.conclude(
        fig,
        finding,
        f"One panel for each of {', '.join(orders)}: a line that runs to the right with "
        "time and downwards with the place in memory of the element of B that is used.",
    )


@style.styled
def equation(count: int) -> style.Figure:
    """Draw a tile of C as the sum of `count` products of a tile of A and a tile of B."""
    edge, wide = 3, 2.0
    fig, ax = style.draw(1.5)
    x, middle = 0.0, {"ha": "center", "va": "center"}
    for place in range(count + 1):
        names = [("A", style.A), ("B", style.B)] if place else [("C", style.C)]
        for number, (name, color) in enumerate(names):
            if x:
                sign = "·" if number else ("=" if place == 1 else "+")
                ax.text(x + wide / 2, edge / 2, sign, fontsize=14, **middle)
                x += wide
            style.matrix(ax, edge, edge, color, x=x, shade=0.55)
            index = {"A": f"i,{place - 1}", "B": f"{place - 1},j", "C": "i,j"}[name]
            ax.text(x + edge / 2, edge / 2, f"${name}_{{{index}}}$", fontsize=10, **middle)
            x += edge
    style.bare(ax, x, edge)
    finding = f"A tile of C is the sum of {count} products of tiles"
    terms = " + ".join(f"A(i,{k})·B({k},j)" for k in range(count))
    return style.conclude(fig, finding, f"Tiles as squares: C(i,j) = {terms}.")


@style.styled
def strips(m: int, n: int, k: int, tile: int, at: tuple[int, int]) -> style.Figure:
    """Draw the strip of A and the strip of B that one tile of C needs.

    The matrices have m × k, k × n and m × n elements; `at` is the (row, column) of the tile of C,
    in tiles of `tile` × `tile`.
    """
    fig, ax = style.draw(4.1)
    gap = 1.5
    style.bare(ax, k + gap + n, k + gap + m)
    rows = range(at[0] * tile, min(m, (at[0] + 1) * tile))
    columns = range(at[1] * tile, min(n, (at[1] + 1) * tile))
    left, top, cut = k + gap, k + gap, (tile, tile)
    strip_a = {(i, p): 0.55 for i in rows for p in range(k)}
    strip_b = {(p, j): 0.55 for p in range(k) for j in columns}
    corner = {(i, j): 0.75 for i in rows for j in columns}
    style.matrix(ax, m, k, style.A, y=top, shade=strip_a, tile=cut)
    style.matrix(ax, k, n, style.B, x=left, shade=strip_b, tile=cut)
    style.matrix(ax, m, n, style.C, x=left, y=top, shade=corner, tile=cut)
    middle = {"ha": "center", "va": "center"}
    ax.text(k / 2, k - 0.1, "K runs along A's row →", fontsize=8, **middle)
    ax.text(left - 0.75, k / 2, "and down B's column →", rotation=-90, fontsize=8, **middle)
    for name, x, y in (("A", 0, top), ("B", left, 0), ("C", left, top)):
        ax.text(x + 0.5, y + 0.55, name, fontsize=10, weight="bold", **middle)
    finding = "One T×T tile of C needs T rows of A and T columns of B"
    return style.conclude(
        fig,
        finding,
        f"A below left, B above right, C in the corner between them, all cut into tiles "
        f"of {tile} by {tile}. One tile of C is shaded, and with it the whole strip of A to its "
        "left and the whole strip of B above it.",
    )


@style.styled
def traffic(
    counted: Mapping[str, Mapping[int, float]],
    untiled: float,
    limits: Mapping[str, float],
    finding: str,
) -> style.Figure:
    """Draw the words loaded per multiplication against the tile's edge T.

    `counted` maps one or two names to {T: words per multiplication}; `untiled` is that number
    without tiles; `limits` maps a label to the largest T by some rule. `finding` is the title.
    """
    fig, ax = style.draw(3.9)
    edges = sorted({edge for line in counted.values() for edge in line})
    ax.plot(edges, [2 / edge for edge in edges], color=style.MUTED, lw=1.2, ls=(0, (4, 3)))
    style.note(ax, "2/T", (edges[-1], 2 / edges[-1]), (4, 0), va="center")
    _lines(ax, counted)
    ax.axhline(untiled, color=style.INK, lw=0.8, label="no tiles (ikj)")
    for label, edge in limits.items():
        style.mark(ax, edge, label, 0.03, "bottom")
    ax.set(xscale="log", yscale="log", xlim=(edges[0] * 0.93, edges[-1] * 1.18))
    ax.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    ax.set(ylim=(0.009, 2), ylabel="words loaded for each\nmultiplication (model)")
    style.edge_axis(ax, edges, "edge T of the tile (elements)")
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    numbers = style.in_words(counted, ".3f")
    return style.conclude(fig, finding, f"Words for each multiplication, {numbers}.")


@style.styled
def sets(counts: Mapping[str, Sequence[int]], ways: int, finding: str) -> style.Figure:
    """Draw how many lines of a tile belong to each set of a cache with `ways` lines in each.

    `counts` maps a name to the number of lines in set 0, 1, …; each has a panel. Lines that do not
    fit have the colour of a fault. `finding` is the title.
    """
    fig, axes = style.draw(1.0 + 1.15 * len(counts), len(counts), squeeze=False, sharex=True)
    highest = max(max(line) for line in counts.values())
    for ax, (name, line) in zip(axes[:, 0], counts.items(), strict=True):
        kept = [min(count, ways) for count in line]
        edges = [number - 0.5 for number in range(len(line) + 1)]
        ax.stairs(kept, edges, fill=True, color=style.B)
        ax.stairs(line, edges, baseline=kept, fill=True, color=style.FAULT)
        ax.axhline(ways, color=style.INK, lw=0.8, ls=(0, (4, 3)))
        ax.set(ylim=(0, highest * 1.1), xlim=(-0.7, len(line) - 0.3))
        ax.set_yticks(sorted({0, ways, highest}))
        style.panel_title(ax, name)
    axes[len(counts) // 2, 0].set_ylabel("lines in the set")
    axes[-1, 0].set_xlabel(f"set of the cache; each keeps {ways} lines (dashed)")
    words = "; ".join(
        f"{name}: {sum(1 for count in line if count)} of {len(line)} sets are used, "
        f"with at most {max(line)} lines in one"
        for name, line in counts.items()
    )
    return style.conclude(fig, finding, f"{words}.")


@style.styled
def measured(
    gflops: Mapping[str, Mapping[int, float]], untiled: float, finding: str
) -> style.Figure:
    """Draw the measured GFLOP/s of Loops 4 against the tile's edge T.

    `gflops` maps one or two names to {T: GFLOP/s}; `untiled` is the rate of the untiled loops,
    drawn as a line. `finding` is the title.
    """
    fig, ax = style.draw(3.5)
    _lines(ax, gflops)
    ax.axhline(untiled, color=style.INK, lw=0.9, ls=(0, (4, 3)), label="no tiles (ikj)")
    edges = sorted({edge for line in gflops.values() for edge in line})
    highest = max(untiled, *(rate for line in gflops.values() for rate in line.values()))
    ax.set(xscale="log", ylim=(0, 1.15 * highest), ylabel="GFLOP/s, one thread")
    style.edge_axis(ax, edges, "edge T of the tile (elements), logarithmic")
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    numbers = style.in_words(gflops, ".3g")
    return style.conclude(
        fig, finding, f"GFLOP/s by tile edge, {numbers}; without tiles {untiled:.3g}."
    )


@style.styled
def register_block(edge: int, width: int) -> style.Figure:
    """Draw edge × edge elements of A that stay in registers while j runs along rows of B and C.

    `width` columns of B and C are drawn. The column that one step of j accesses is lit, with the
    kernel's names for the numbers; below, the step is listed as a trace.
    """
    fig, ax = style.draw(4.3)
    gap, lit, trace = 1.0, width // 3, 0.8 * (edge + 2)
    style.bare(ax, edge + gap + width, 2 * (edge + gap) + trace)
    left, top = edge + gap, edge + 2 * gap
    column = {(row, lit): 0.75 for row in range(edge)}
    style.matrix(ax, edge, edge, style.A, y=top, shade=0.6)
    style.matrix(ax, edge, width, style.B, x=left, y=gap, shade=column)
    style.matrix(ax, edge, width, style.C, x=left, y=top, shade=column)
    frame = {"fill": False, "edgecolor": style.INK, "lw": 1.6, "zorder": 3}
    ax.add_patch(Rectangle((0, top), edge, edge, **frame))
    middle = {"ha": "center", "va": "center", "fontsize": 8}
    ax.text(edge / 2, gap + edge / 2, f"{edge}×{edge} of A\nstay in\nregisters", **middle)
    for name, y in (("B", gap), ("C", top)):
        ax.text(left, y - 0.2, f"{edge} rows of {name}: j runs along them →", fontsize=8)
    for row in range(edge):
        ax.text(left + lit + 0.5, gap + row + 0.5, f"b{row}", **middle)
        ax.text(left + lit + 0.5, top + row + 0.5, f"c{row}", **middle)
        for p in range(edge):
            ax.text(p + 0.5, top + row + 0.5, f"a{row}{p}", **middle)
    steps = ["load " + " ".join(f"b{p}" for p in range(edge))]
    for row in range(edge):
        sums = " + ".join(f"a{row}{p}·b{p}" for p in range(edge))
        steps.append(f"load c{row}, add {sums}, store c{row}")
    for number, step in enumerate(steps):
        ax.text(0, top + edge + 1.0 + 0.8 * number, f"{number + 1}  {step}", fontsize=8)
    finding = f"One j: {2 * edge} numbers loaded, {edge} stored, {edge * edge} multiplications done"
    return style.conclude(
        fig,
        finding,
        f"A block of {edge} by {edge} elements of A, framed, stays in registers; to its "
        f"right {edge} rows of C, above them {edge} rows of B. One column of both is lit: what one "
        f"step along j touches. Below, the step as a trace: {'; '.join(steps)}.",
    )


def _lines(ax: Axes, by_name: Mapping[str, Mapping[int, float]]) -> None:
    """Draw {T: number} as one line for each name, at most two of them."""
    for (name, line), (color, marker) in zip(by_name.items(), PAIR, strict=False):
        points = sorted(line.items())
        ax.plot(*zip(*points, strict=True), marker=marker, color=color, ms=5, label=name)
