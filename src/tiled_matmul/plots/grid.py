"""Figures of chapter 4: owners of elements, the requests of a warp, and the first roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from tiled_matmul.microscope.cuda.traffic import sector_elements
from tiled_matmul.models import roofline as model
from tiled_matmul.plots import style


@style.styled
def owners(owner: Any, first: int, second: int) -> style.Figure:
    """Draw a 9 × 9 C with the owner of each element, cut 3 × 3.

    `owner` (9, 9) holds four decimal digits: block row, block column, thread row, thread column.
    `first` and `second` are two of these numbers; the first is outlined as the thread in focus, the
    second as the one that is mistaken for it.
    """
    owner = np.asarray(owner)
    size, tile = owner.shape[0], 3
    fig, ax = style.draw(4.6)
    style.bare(ax, size, size + 0.7)
    places = np.ndindex(owner.shape)
    shade = {(i, j): 0.32 if (i // tile + j // tile) % 2 else 0.12 for i, j in places}
    style.matrix(ax, size, size, style.C, shade=shade, tile=(tile, tile))
    for (i, j), digits in np.ndenumerate(owner):
        block, thread = divmod(int(digits), 100)
        if i % tile == 0 and j % tile == 0:
            text = f"block {block // 10},{block % 10}"
            ax.text(j + 0.08, i + 0.22, text, fontsize=8, va="center")
        ax.text(j + 0.5, i + 0.62, f"{thread // 10},{thread % 10}", ha="center", va="center")
    places = [tuple(int(x) for x in np.argwhere(owner == wanted)[0]) for wanted in (first, second)]
    keys = ((0, style.INK, "one reading"), (5.2, style.FAULT, "another reading"))
    for (i, j), (_, color, _) in zip(places, keys, strict=True):
        style.frame(ax, j, i, 1, 1, color, 3)
    for x, color, text in keys:
        ax.add_patch(Rectangle((x, size + 0.3), 0.3, 0.3, fill=False, lw=2.5, ec=color))
        ax.text(x + 0.5, size + 0.47, text, va="center")
    (i, j), (row, column) = places
    style.title(fig, f"Each of {size * size} elements has a thread of its own")
    return style.finish(
        fig,
        "A 9 by 9 matrix cut into nine blocks of 3 by 3 threads, each cell with its thread. "
        f"Framed: row {i}, column {j}, and in dark orange row {row}, column {column}.",
    )


@style.styled
def writers(without: Any, guarded: Any, rows: int, columns: int) -> style.Figure:
    """Draw how many threads wrote each element of a flat buffer, without a guard and with one.

    `without` and `guarded` hold counts for consecutive elements; the first rows · columns of them
    are C, in lines of `columns`. The rest is other memory.
    """
    counts = [np.asarray(without), np.asarray(guarded)]
    lines = -(-counts[0].size // columns)
    fig, axes = style.draw(3.7, columns=2)
    for ax, written, name in zip(axes, counts, ("no guard", "guarded"), strict=True):
        style.bare(ax, columns, lines + 0.4)
        padded = np.zeros(lines * columns, dtype=int)
        padded[: written.size] = written
        grid = padded.reshape(lines, columns)
        inside = np.arange(lines)[:, None] < rows
        once = (grid == 1) & inside
        fault = (grid > 0) & ~once
        for where, color, alpha in ((once, style.C, 0.3), (fault, style.FAULT, 0.6)):
            shade = {tuple(place): alpha for place in np.argwhere(where)}
            style.matrix(ax, lines, columns, color, shade=shade)
        style.matrix(ax, lines, columns, style.MUTED)
        for (i, j), count in np.ndenumerate(grid):
            if count:
                ax.text(j + 0.5, i + 0.54, str(count), ha="center", va="center", fontsize=8)
        style.matrix(ax, rows, columns, style.INK)
        ax.set_title(name)
        ax.text(0, lines + 0.5, "below the frame: not C", va="center")
    twice = int((counts[0][: rows * columns] > 1).sum())
    outside = int(counts[0][rows * columns :].sum())
    style.title(fig, f"Without a guard {twice} elements get two writers, {outside} writes leave C")
    return style.finish(
        fig,
        f"Two pictures of one memory in lines of {columns}. Without a guard {twice} elements in "
        f"the first columns are written twice and {outside} writes fall behind C; with it, each "
        "element of C is written once.",
    )


@style.styled
def warp_requests(warps: Mapping[str, Sequence[Any]]) -> style.Figure:
    """Draw the requests of one warp at one k, for each mapping of threads to C, side by side.

    `warps` maps a name to three requests of a trace: a load from A, one from B, a store to C. An
    element that a lane accesses has full colour, the rest of its sector is pale. The first 16 rows
    and columns of each matrix are drawn.
    """
    shown = 16
    fig, axes = style.draw(3.15, columns=2)
    gap, totals = 1.5, []
    for ax, (name, requests) in zip(axes, warps.items(), strict=True):
        edge = 2 * shown + gap
        style.bare(ax, edge, edge)
        ax.text(0, 1.2, name, va="center", fontsize=8, fontweight="bold")
        ax.text(0, 3.9, "sectors", va="center")
        far = shown + gap
        places = (
            (0, far, style.A, "A"),
            (far, 0, style.B, "B"),
            (far, far, style.C, "C stored"),
        )
        for request, (x, y, color, _) in zip(requests, places, strict=True):
            style.matrix(ax, shown, shown, color, x=x, y=y, shade=_lit(request, shown))
        counts = [len(request.sectors) for request in requests]
        totals.append(counts[0] + counts[1])
        for line, (count, (_, _, color, label)) in enumerate(zip(counts, places, strict=True)):
            ax.add_patch(Rectangle((0.1, 5.9 + 2.7 * line), 1.3, 1.3, color=color, lw=0))
            ax.text(2.2, 6.6 + 2.7 * line, f"{label}: {count}", va="center")
    low, high = sorted(totals)
    style.title(fig, f"One step of k: a warp loads {high} sectors or {low}")
    pairs = zip(warps, totals, strict=True)
    spoken = "; ".join(f"{name}: {total} sectors loaded a step" for name, total in pairs)
    return style.finish(fig, f"{spoken}. Matrix A left of C, B above it, the asked elements lit.")


def _lit(request: Any, shown: int) -> dict:
    """Return the opacity of the first shown × shown elements: 1 if accessed, 0.3 in the sectors."""
    columns = request.array.shape[1]
    in_sectors = sector_elements(request.sectors, request.array.itemsize)
    shade = {divmod(element, columns): 0.3 for element in in_sectors}
    shade.update(dict.fromkeys(request.indices, 1.0))
    return {(i, j): alpha for (i, j), alpha in shade.items() if i < shown and j < shown}


@style.styled
def time_against_lines(
    lines: Mapping[str, int], line_ms: float, times_ms: Mapping[str, float] | None
) -> style.Figure:
    """Draw the time of some launches against the cache lines that a warp loads from in each step.

    `lines` maps a launch to its lines, `times_ms` maps the same names to times; without a clock it
    is None. `line_ms` is the time of a launch with one line in each step, at a line a cycle: the
    slope of the dashed line.
    """
    fig, ax = style.draw(2.9)
    fewest, most = min(lines.values()), max(lines.values())
    ax.plot([0, most], [0, most * line_ms], ls="--", color=style.MUTED, lw=1.2)
    ax.text(0.75 * most, 0.66 * most * line_ms, "a line a cycle", va="top")
    growth = most / fewest
    title = f"At a line a cycle, {growth:.3g} times the lines take as many times the time"
    if times_ms is not None:
        for name, time in times_ms.items():
            marker, color = ("s", style.A) if "row" in name else ("o", style.B)
            ax.plot(lines[name], time, marker, color=color, ms=7, mec="none")
        longest = max(time for name, time in times_ms.items() if lines[name] == most)
        least = min(time for name, time in times_ms.items() if lines[name] == fewest)
        title = f"{growth:.3g} times the lines, {longest / least:.3g} times the time"
        ax.plot([], [], ls="none", marker="s", color=style.A, label="x is the row")
        ax.plot([], [], ls="none", marker="o", color=style.B, label="x is the column")
        ax.legend(loc="upper left", handletextpad=0.2)
    ax.set(xlim=(0, most + 2), xlabel="cache lines that a warp loads from at each k")
    ax.set(ylim=(0, None), ylabel="time (ms)")
    return style.conclude(fig, title, "Time against cache lines; a dashed line is a line a cycle.")


@style.styled
def roofline(
    peak: Any, spans: Sequence[tuple[str, float, float, float]], ahead: tuple[str, float]
) -> style.Figure:
    """Draw a GPU's float32 roofline and some kernels under it.

    `peak` is a device.Peak. A span is (name, low, high, tflops): the kernel's rate over the range
    of its intensity (FLOPs per byte), from no cache hits to compulsory bytes only; low equals high
    if the intensity is known. `ahead` is (name, intensity) of a goal.
    """
    fig, ax = style.draw(3.6)
    right = 4 * max(high for _, _, high, _ in spans)
    left = min(low for _, low, _, _ in spans) / 2
    x = np.geomspace(left, right, 400)
    roof = [model.attainable_tflops(float(intensity), peak) for intensity in x]
    ax.loglog(x, roof, color=style.INK, lw=1.8)
    flat = model.peak_tflops(peak)
    ax.text(right, flat * 1.15, f"{flat:.3g} TFLOP/s", ha="right", va="bottom")
    slope = f"{peak.bandwidth_gbps / 1000:.3g} TB/s"
    ax.text(4.2, 1.25 * model.attainable_tflops(5, peak), slope, ha="right", va="bottom")
    above = []
    for (name, low, high, tflops), color in zip(spans, (style.A, style.B, style.C), strict=False):
        ax.plot([low, high], [tflops, tflops], color=color, lw=1.2, ls=":")
        if low != high:
            ax.plot(low, tflops, "o", mfc="none", mec=color, mew=1.6, ms=7)
        ax.plot(high, tflops, "o", color=color, ms=7)
        x, below = (high, True) if low == high else (80, color == style.A)
        y, side = (0.8 * tflops, "top") if below else (1.2 * tflops, "bottom")
        ax.text(x, y, name, ha="center", va=side)
        if low != high and tflops > model.attainable_tflops(low, peak):
            above.append(name)
    name, intensity = ahead
    floor = min(tflops for *_, tflops in spans) / 6
    reach = model.attainable_tflops(intensity, peak)
    ax.plot([intensity, intensity], [floor, reach], color=style.MUTED, lw=1, ls="--")
    ax.text(intensity * 1.15, floor * 1.25, name, va="bottom")
    ax.set(xlim=(left, right), ylim=(floor, flat * 2.2))
    style.plain_numbers(ax.xaxis, ax.yaxis)
    ax.set(xlabel="FLOPs for each byte (open: as loaded, full: compulsory)", ylabel="TFLOP/s")
    title = "One thread an element: far under the flat roof"
    if above:
        title = f"{' and '.join(above)}: above the roof, so caches must have helped"
    style.title(fig, title)
    described = ", ".join(f"{name} at {tflops:.3g} TFLOP/s" for name, _, _, tflops in spans)
    return style.finish(fig, f"Roofline of {peak.name}, logarithmic axes: {described}.")
