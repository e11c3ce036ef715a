"""Figures of chapter 5: staging of tiles, the puzzle's answers, speed-ups by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from tiled_matmul.plots import microscope, style

GAP = 0.8


@style.styled
def staging(t: Any, thread: int, block: tuple[int, ...] = (0, 0)) -> style.Figure:
    """Draw what one thread of a tiled kernel stages for its block, and what it then loads.

    `t` is a trace of a kernel that stores to two shared arrays, A's tile first, and loads from both
    in the next phase; `thread` is its number in the block. Raises ValueError for another kernel.
    """
    accesses = microscope.accesses_of(t, block)
    shared = [info for info in t.arrays if info.space == "shared"]
    if len(shared) != 2 or shared[0].shape != shared[1].shape:
        raise ValueError(f"{t.name} has no two equal tiles in shared memory")
    edge = shared[0].shape[0]
    first = accesses[accesses["phase"] <= 1]
    all_stores, loads = (_touched(t, first, shared, op) for op in ("store", "load"))
    own = first[first["thread"] == thread]
    stored, read = (_touched(t, own, shared, op) for op in ("store", "load"))
    fig, axes = style.draw(2.6, columns=2)
    place = divmod(thread, t.block[0])
    steps = (("1  stage", "stores", all_stores, stored), ("2  use", "reads", ((), ()), read))
    for ax, (name, verb, pale, full) in zip(axes, steps, strict=True):
        size = 2 * edge + GAP
        style.bare(ax, size, size)
        tiles = ((0, edge + GAP, style.A), (edge + GAP, 0, style.B))
        for (x, y, color), weak, strong in zip(tiles, pale, full, strict=True):
            shade = {divmod(e, edge): 0.2 for e in weak} | {divmod(e, edge): 0.85 for e in strong}
            _tile(ax, edge, color, x, y, shade)
        x = y = edge + GAP
        style.matrix(ax, edge, edge, style.C, x=x, y=y, shade={place: 0.5})
        style.frame(ax, x + place[1], y + place[0], 1, 1, style.INK, 2.2)
        ax.text(0, 0.45, name, fontweight="bold", va="center", fontsize=9)
        count = sum(len(elements) for elements in full)
        ax.text(0, 1.15, f"the thread\n{verb} {count}", va="top", fontsize=8)
    often = sum(len(part) for part in loads) // sum(len(set(part)) for part in loads)
    finding = (
        f"Each thread stages {len(stored[0]) + len(stored[1])} elements for its block, "
        f"and reads {sum(map(len, read))}"
    )
    return style.conclude(
        fig,
        finding,
        f"Tiles of A, left, and B, above, {edge} by {edge}, in shared memory. First "
        f"thread {place[::-1]} stores one element of each; then it reads row {place[0]} of A's "
        f"tile and column {place[1]} of B's. Each element is read {microscope.times(often)}, "
        f"{min(map(len, loads))} reads of a tile in all.",
    )


def _touched(t: Any, accesses: np.ndarray, shared: Sequence, op: str) -> tuple[list[int], ...]:
    """Return for each array the elements stored or loaded, repeated for each access."""
    sites = [site.id for site in t.sites if site.op == op]
    own = accesses[np.isin(accesses["site"], sites)]
    return tuple(own["element"][own["array"] == info.id].tolist() for info in shared)


def _tile(ax: Any, edge: int, color: str, x: float, y: float, shade: Mapping) -> None:
    """Draw a tile in shared memory, with the dashed frame that marks shared memory."""
    style.matrix(ax, edge, edge, color, x=x, y=y, shade=dict(shade))
    frame = {"fill": False, "ec": style.INK, "lw": 1.2, "ls": (0, (3, 2)), "clip_on": False}
    ax.add_patch(Rectangle((x - 0.12, y - 0.12), edge + 0.24, edge + 0.24, **frame))


@style.styled
def answers(c: Any, expected: Any, tile: int) -> style.Figure:
    """Draw the numbers of C, cut into tiles, and mark those that differ from `expected`."""
    c, expected = np.asarray(c), np.asarray(expected)
    rows, columns = c.shape
    wrong = ~(c == expected)
    fig, ax = style.draw(4.0)
    style.bare(ax, columns, rows * 0.8)
    for i, j in np.ndindex(c.shape):
        color = style.FAULT if wrong[i, j] else style.C
        alpha = 0.6 if wrong[i, j] else 0.3 if (i // tile + j // tile) % 2 else 0.12
        ax.add_patch(Rectangle((j, 0.8 * i), 1, 0.8, facecolor=color, alpha=alpha, lw=0))
        ax.text(j + 0.5, 0.8 * i + 0.42, f"{c[i, j]:g}", ha="center", va="center", fontsize=8)
    for i, j in np.ndindex(-(-rows // tile), -(-columns // tile)):
        height, width = min(tile, rows - i * tile), min(tile, columns - j * tile)
        style.frame(ax, j * tile, 0.8 * i * tile, width, 0.8 * height, style.C)
    bad = int(wrong.sum())
    finding = f"All {c.size} numbers are as expected"
    if bad:
        finding = f"{bad} of {c.size} numbers are not as expected"
    return style.conclude(
        fig,
        finding,
        f"C in {rows} rows and {columns} columns, cut into tiles of {tile}; its first "
        f"row is {', '.join(f'{x:g}' for x in c[0])}.",
    )


@style.styled
def speedups(
    found: Mapping[str, Mapping[int, float]],
    expected: Sequence[tuple[tuple[int, int], tuple[float, float]]],
) -> style.Figure:
    """Draw speed-ups against the size of the matrices, with the expected ranges.

    `found` maps a name to {N: speed-up}, which is empty without a clock. `expected` holds
    ((smallest N, largest N), (least, most)).
    """
    fig, ax = style.draw(3.4)
    for (low, high), (least, most) in expected:
        box = (low / 1.18, least), high * 1.18 - low / 1.18, most - least
        ax.add_patch(Rectangle(*box, lw=0, facecolor=style.MUTED, alpha=0.3))
        ax.text((low * high) ** 0.5, 0.2, f"{least:g}–{most:g}", ha="center")
    lines = {name: line for name, line in found.items() if line}
    for (name, line), (color, marker) in zip(lines.items(), style.SERIES, strict=False):
        points = sorted(line.items())
        ax.plot(*zip(*points, strict=True), marker=marker, color=color, ms=5, label=name)
    inside = [
        least <= ratio <= most
        for line in lines.values()
        for n, ratio in line.items()
        for (low, high), (least, most) in expected
        if low <= n <= high
    ]
    edges = sorted(
        {n for line in lines.values() for n in line} | {n for r, _ in expected for n in r}
    )
    top = max([most for _, (_, most) in expected] + [max(line.values()) for line in lines.values()])
    ax.axhline(1, color=style.INK, lw=0.8)
    ax.set(xscale="log", xlim=(edges[0] / 1.3, edges[-1] * 1.3))
    ax.set(ylim=(0, 1.08 * top), ylabel="times as fast as the\nkernel without tiles")
    style.edge_axis(ax, edges, "edge N of the matrices")
    finding = "What the benchmark page expects; no clock here to check it"
    if inside:
        finding = f"{sum(inside)} of {len(inside)} speed-ups lie in the expected range (grey)"
        fig.legend(loc="outside lower center", ncols=2, fontsize=8, columnspacing=1)
    ranges = [f"{a:g} to {b:g} from {low} to {high}" for (low, high), (a, b) in expected]
    words = f"Expected: {', '.join(ranges)}"
    if lines:
        words += f"; {style.in_words(lines, '.2f')}"
    return style.conclude(fig, finding, f"{words}.")
