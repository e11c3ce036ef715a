"""Figures of chapter 14: which multiprocessor computes which tile when, split-K, and two widths.

Tiles are drawn as if all of them took the same time.
"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.patches import Rectangle

from tiled_matmul.microscope.table import plural
from tiled_matmul.models.waves import Waves
from tiled_matmul.plots import style

PARTS = (style.A, style.B, style.OTHERS[1], style.OTHERS[0])  # colours of the parts of K


@style.styled
def schedule(launches: Mapping[str, Waves], finding: str) -> style.Figure:
    """Draw which multiprocessor computes which tile when, one launch beside the other.

    A tile shows its number; idle multiprocessors are hatched. For launches on few
    multiprocessors. `finding` is the title. Raises ValueError without launches.
    """
    if not launches:
        raise ValueError("there is no launch to draw")
    longest = max(waves.count for waves in launches.values())
    high = max(waves.multiprocessors for waves in launches.values())
    fig, axes = style.draw(0.95 + 0.24 * high, 1, len(launches), squeeze=False)
    spoken = []
    for ax, (name, waves) in zip(axes[0], launches.items(), strict=True):
        rows = waves.multiprocessors
        for place in range(waves.count * rows):
            wave, row = divmod(place, rows)
            late = waves.last < rows and wave == waves.count - 1
            if place < waves.tiles:
                look = {"facecolor": style.B if late else style.C, "alpha": 0.6, "lw": 0}
                ax.add_patch(Rectangle((wave + 0.03, row + 0.06), 0.94, 0.88, **look))
                middle = {"ha": "center", "va": "center", "fontsize": 8}
                ax.text(wave + 0.5, row + 0.5, f"{place}", **middle)
            else:
                look = {"fill": False, "edgecolor": style.FAULT, "lw": 0.8, "hatch": "////"}
                ax.add_patch(Rectangle((wave + 0.03, row + 0.06), 0.94, 0.88, **look))
        idle = waves.count * rows - waves.tiles
        ax.set(xlim=(0, longest), ylim=(rows, 0), xticks=range(longest + 1))
        ax.set(yticks=[row + 0.5 for row in range(rows)], yticklabels=range(rows))
        ax.set(xlabel="time, in tiles", ylabel="multiprocessor" if ax is axes[0, 0] else "")
        style.panel_title(ax, f"{name}: {waves.fill:.0%} busy")
        spoken.append(
            f"{name}: {plural(waves.tiles, 'tile')} on {rows} multiprocessors in "
            f"{plural(waves.count, 'wave')}, {idle} idle in the last one, {waves.fill:.0%} busy"
        )
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


@style.styled
def split_k(splits: int, blocks: int, finding: str) -> style.Figure:
    """Draw how `splits` programs share a tile of C, and how their sums become one.

    K has `blocks` blocks, and program s takes every `splits`-th one from block s on. `finding` is
    the title. Raises ValueError unless there are 2 to 4 programs, with a block for each.
    """
    if not 2 <= splits <= len(PARTS) or blocks < splits:
        raise ValueError(f"2 to {len(PARTS)} programs need a block each: {splits}, {blocks}")
    fig, ax = style.draw(3.5)
    wide, strip, corner = 12.0, 1.0, 3.2
    step, middle = wide / blocks, {"ha": "center", "va": "center"}
    ax.text(0, -0.25, "a strip of A", fontsize=8, va="bottom")
    ax.text(wide + 0.9, -0.25, "of B", fontsize=8, va="bottom")
    for block in range(blocks):
        color = PARTS[block % splits]
        style.fill(ax, block * step, 0, step, strip, color, 0.55)
        style.fill(ax, wide + 0.9, block * corner / blocks, strip, corner / blocks, color, 0.55)
        ax.text((block + 0.5) * step, strip / 2, f"{block}", fontsize=7.5, **middle)
    style.frame(ax, 0, 0, wide, strip, style.A)
    style.frame(ax, wide + 0.9, 0, strip, corner, style.B)
    ax.text(wide, strip + 0.2, "blocks of K", fontsize=7.5, va="top", ha="right")
    across = wide / splits
    top, edge, bottom = 3.6, 1.5, 7.4
    for split in range(splits):
        x = (split + 0.5) * across
        mine = ", ".join(str(block) for block in range(split, blocks, splits))
        ax.text(x, top - 0.55, f"program {split}", fontsize=8, ha="center", va="bottom")
        ax.text(x, top - 0.1, f"blocks {mine}", fontsize=6.5, ha="center", va="bottom")
        style.fill(ax, x - edge / 2, top, edge, edge, PARTS[split], 0.55)
        style.frame(ax, x - edge / 2, top, edge, edge, PARTS[split])
        ax.text(x, top + edge / 2, f"part {split}", fontsize=7.5, **middle)
        ends = [x, wide / 2], [top + edge, bottom]
        ax.plot(*ends, color=style.MUTED, lw=0.9)
    style.fill(ax, wide / 2 - edge / 2, bottom, edge, edge, style.C, 0.6)
    style.frame(ax, wide / 2 - edge / 2, bottom, edge, edge, style.C)
    ax.text(wide / 2, bottom + edge / 2, "C", fontsize=9, **middle)
    words = "second kernel: part 0 + part 1 + …"
    ax.text(wide / 2 + edge, bottom + edge / 2, words, fontsize=8, va="center")
    style.bare(ax, wide + 2, bottom + edge)
    ax.set_ylim(bottom + edge + 0.2, -0.9)
    shares = "; ".join(
        f"program {split} sums blocks {', '.join(map(str, range(split, blocks, splits)))}"
        for split in range(splits)
    )
    return style.conclude(
        fig,
        finding,
        f"A strip of A and one of B are cut along K into {blocks} blocks. {shares}. Each stores "
        f"its sums as a part of its own. A second kernel adds the {splits} parts to a tile of C.",
    )


@style.styled
def two_heights(heights: tuple[int, int], width: int, finding: str) -> style.Figure:
    """Draw a tile of C of two heights of rows, with what it needs of A and of B.

    `width` is its columns. `finding` is the title. Raises ValueError unless all are positive.
    """
    if min(*heights, width) < 1:
        raise ValueError(f"heights and width must be positive, got {heights} and {width}")
    fig, ax = style.draw(3.3)
    gap, strip, top = 14, 150, 100
    tall = sum(heights)
    right = strip + gap
    look = {"ha": "center", "va": "center", "fontsize": 8.5}
    style.fill(ax, right, 0, width, top, style.B, 0.45)
    style.frame(ax, right, 0, width, top, style.B)
    ax.text(right + width / 2, top / 2, f"B\n{width}", **look)
    y = top + gap
    for number, high in enumerate(heights):
        alpha = (0.3, 0.75)[number]
        style.fill(ax, 0, y, strip, high, style.A, alpha)
        style.frame(ax, 0, y, strip, high, style.A)
        style.fill(ax, right, y, width, high, style.C, alpha)
        style.frame(ax, right, y, width, high, style.C)
        ax.text(strip / 2, y + high / 2, f"A, {high} rows", **look)
        words = f"{high} × {width}: {('first', 'second')[number]} product"
        ax.text(right + width + gap, y + high / 2, words, **look | {"ha": "left"})
        y += high
    style.bare(ax, right + width + 190, top + gap + tall)
    return style.conclude(
        fig,
        finding,
        f"A tile of C with {width} columns and {heights[0]} plus {heights[1]} rows. Both products "
        f"use the same tile of B, {width} columns wide, each with its own rows of A.",
    )


@style.styled
def groups_of_warps(rows: int, groups: int, widths: tuple[int, int], finding: str) -> style.Figure:
    """Draw a tile of C that `groups` groups of warps share, with what it needs of A and of B.

    Each group owns `rows` rows, and columns of two `widths`. `finding` is the title. Raises
    ValueError unless all are positive.
    """
    if min(rows, groups, *widths) < 1:
        raise ValueError(f"sizes must be positive, got {rows}, {groups} and {widths}")
    fig, ax = style.draw(3.3)
    gap, strip, top = 14, 96, 64
    left = strip + gap
    look = {"ha": "center", "va": "center", "fontsize": 8.5}
    x = left
    for number, wide in enumerate(widths):
        alpha = (0.3, 0.75)[number]
        style.fill(ax, x, 0, wide, top, style.B, alpha)
        style.frame(ax, x, 0, wide, top, style.B)
        ax.text(x + wide / 2, top / 2, f"B\n{wide}", **look)
        for group in range(groups):
            y = top + gap + group * rows
            style.fill(ax, x, y, wide, rows, style.C, alpha)
            style.frame(ax, x, y, wide, rows, style.C)
            ax.text(x + wide / 2, y + rows / 2, f"{rows} × {wide}", **look)
        x += wide
    for group in range(groups):
        y = top + gap + group * rows
        style.fill(ax, 0, y, strip, rows, style.A, 0.3)
        style.frame(ax, 0, y, strip, rows, style.A)
        ax.text(strip / 2, y + rows / 2, f"A, {rows} rows", **look)
        words = f"group {group}: warps {4 * group} to {4 * group + 3}"
        ax.text(x + gap, y + rows / 2, words, **look | {"ha": "left"})
    ax.text(x + gap, top / 2, "one more warp copies", **look | {"ha": "left"})
    style.bare(ax, x + 170, top + gap + groups * rows)
    return style.conclude(
        fig,
        finding,
        f"A tile of C of {groups * rows} × {sum(widths)}. Each of {groups} groups of four warps "
        f"owns {rows} rows of A, and multiplies them with two tiles of B, {widths[0]} and "
        f"{widths[1]} columns wide. One more warp copies all tiles.",
    )
