"""Figures of chapter 2: accesses over time, lines and sets, misses against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.ticker import LogLocator

from tiled_matmul.plots import style

INNERMOST = {"j": style.A, "k": style.B, "i": style.FAULT}
MARKERS = ("o", "s")  # for the two orders with the same innermost loop


@style.styled
def touches(visits: Mapping[str, Sequence[tuple[int, int, int]]], n: int) -> style.Figure:
    """Draw the elements of n × n matrices that the first iterations access, later ones darker.

    `visits` maps each of the six orders to its first (i, j, k). There is one column of panels for
    each innermost loop.
    """
    fig, axes = style.draw(3.5, 2, 3)
    fig.get_layout_engine().set(wspace=0.12, hspace=0.04)
    by_loop = {loop: [order for order in visits if order[2] == loop] for loop in INNERMOST}
    for column, (loop, orders) in enumerate(by_loop.items()):
        for ax, order in zip(axes[:, column], orders, strict=True):
            style.bare(ax, 2 * n + 1, 2 * n + 1)
            a, b, c = {}, {}, {}
            for time, (i, j, k) in enumerate(visits[order], 1):
                alpha = 0.12 + 0.88 * time / len(visits[order])
                a[i, k], b[k, j], c[i, j] = alpha, alpha, alpha
            style.matrix(ax, n, n, style.B, x=n + 1, shade=b)
            style.matrix(ax, n, n, style.A, y=n + 1, shade=a)
            style.matrix(ax, n, n, style.C, x=n + 1, y=n + 1, shade=c)
            middle = {"x": n / 2, "ha": "center", "va": "center"}
            ax.text(y=n / 2 - 1.3, s=order, fontsize=14, weight="bold", **middle)
            ax.text(y=n / 2 + 0.8, s=f"{loop}\ninnermost", fontsize=8, **middle)
            for name, x, y in (("A", 0, n + 1), ("B", n + 1, 0), ("C", n + 1, n + 1)):
                ax.text(x + n - 0.2, y + n - 0.25, name, fontsize=8, weight="bold", ha="right")
    count = len(next(iter(visits.values())))
    style.title(fig, "The innermost loop decides which matrices are walked along rows")
    return style.finish(
        fig,
        f"Six panels, one for each loop order, each with A, B and C as {n} by {n} grids; elements "
        f"accessed in the first {count} iterations are shaded, later ones darker. With j innermost "
        "B and C are walked along rows; with k innermost A along a row and B down columns; with i "
        "innermost A and C down columns.",
    )


@style.styled
def lines(rows: int, floats: int, across: int) -> style.Figure:
    """Draw the lines that `floats` accesses load, along a row and down a column.

    The matrix is `rows` × (`floats` · `across`); a line holds `floats` elements.
    """
    columns = floats * across
    fig, axes = style.draw(4.6, 2)
    walks = {
        "along a row (stride 1)": [(1, column) for column in range(floats)],
        "down a column (stride: a row)": [(row, 5) for row in range(floats)],
    }
    for ax, (name, walk) in zip(axes, walks.items(), strict=True):
        style.bare(ax, columns, rows)
        fetched = {(row, column // floats) for row, column in walk}
        whole = [(row, line * floats + column) for row, line in fetched for column in range(floats)]
        shade = dict.fromkeys(whole, 0.25) | dict.fromkeys(walk, 1.0)
        style.matrix(ax, rows, columns, style.B, shade=shade, tile=(1, floats))
        fetches = f"{len(fetched)} line" + ("s" if len(fetched) > 1 else "")
        style.panel_title(ax, f"{len(walk)} accesses {name}: {fetches}")
    style.title(fig, "Down a column, every access loads a whole line")
    return style.finish(
        fig,
        f"A matrix of {rows} rows whose rows are cut into lines of {floats} elements. {floats} "
        f"accesses along a row load one line; {floats} accesses down a column load "
        f"{floats} lines, of each of which one element is used.",
    )


@style.styled
def sets(counts: Mapping[int, Sequence[int]], ways: int) -> style.Figure:
    """Draw how many lines of a column belong to each set.

    `counts` maps each of two row lengths, in floats, to the number of lines in set 0, 1, …; a set
    holds `ways` lines.
    """
    fig, axes = style.draw(3.6, len(counts), sharex=True)
    for ax, (row, wanted) in zip(axes, counts.items(), strict=True):
        over = [style.FAULT if lines > ways else style.B for lines in wanted]
        ax.bar(range(len(wanted)), wanted, color=over, width=0.9)
        ax.axhline(ways, color=style.INK, lw=1, ls="--")
        used = sum(lines > 0 for lines in wanted)
        style.panel_title(ax, f"rows of {row} floats: {used} of {len(wanted)} sets")
        ax.set(ylim=(0, max(max(wanted), ways) * 1.15), ylabel="lines")
        place = (len(wanted) - 0.5, ways)
        style.note(ax, f"room for {ways}", place, (0, 3), ha="right", fontsize=8)
    axes[-1].set_xlabel("set")
    full, spread = counts
    style.title(fig, f"Rows of {full} floats crowd a column into few sets")
    return style.finish(
        fig,
        f"Two bar charts of the lines of one column in each set of the cache. With rows of {full} "
        f"floats {sum(n > 0 for n in counts[full])} sets get up to {max(counts[full])} lines, room "
        f"is for {ways}; with rows of {spread} floats no set gets more than {max(counts[spread])}.",
    )


@style.styled
def misses_and_times(
    misses: Mapping[int, Mapping[str, float]], times: Mapping[int, Mapping[str, float]]
) -> style.Figure:
    """Draw time against misses, both per innermost step, for two sizes N.

    `misses` and `times` (in nanoseconds) map N to {order: number}. The first N is drawn hollow, the
    second filled, with an arrow from one to the other for each innermost loop.
    """
    fig, ax = style.draw(3.9)
    (small, large), orders = misses, list(next(iter(misses.values())))
    ax.set(xscale="log", yscale="log")
    for loop, color in INNERMOST.items():
        pair = [order for order in orders if order[2] == loop]
        for n in (small, large):
            for order, marker in zip(pair, MARKERS, strict=True):
                face = color if n == large else "none"
                x, y = misses[n][order], times[n][order]
                ax.plot(x, y, marker, ms=7, mfc=face, mec=color, mew=1.6, ls="none", alpha=0.9)
        start, end = ((_middle(misses[n], pair), _middle(times[n], pair)) for n in (small, large))
        if end[0] > 1.5 * start[0]:
            look = {"arrowstyle": "->", "color": color, "lw": 1, "shrinkA": 9, "shrinkB": 9}
            ax.annotate("", end, start, arrowprops=look)
        # One name serves both sizes of a pair that does not move.
        sizes = (large,) if end[0] > 1.5 * start[0] else (small, large)
        ends = [times[n][order] for n in sizes for order in pair]
        y, shift, side = (min(ends), -8, "top") if loop == "k" else (max(ends), 8, "bottom")
        style.note(ax, f"{pair[0]}, {pair[1]}", (end[0], y), (0, shift), ha="center", va=side)
    ax.margins(0.12)
    ax.set(xlabel="misses per iteration, by the model", ylabel="measured time per iteration (ns)")
    ax.set_xticks([1 / 16, 1 / 4, 1, 2], ["1/16", "1/4", "1", "2"])
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.minorticks_off()
    ax.grid(True)
    keys = [
        ax.plot([], [], "o", mfc=face, mec=style.INK, mew=1.4, ls="none", label=f"N = {n}")[0]
        for n, face in ((small, "none"), (large, style.INK))
    ]
    ax.legend(handles=keys, loc="lower right")
    least, most = min(times[small].values()), max(times[small].values())
    finding = "Orders with equal misses take about equal times"
    if most > 2 * least:
        finding = f"Misses explain {large} against {small}, not the orders at {small}"
    style.title(fig, finding)
    return style.finish(
        fig,
        f"Time against predicted misses per iteration for six loop orders, N = {small} hollow and "
        f"N = {large} filled, logarithmic axes. At N = {small} times run from {least:.2g} to "
        f"{most:.2g} nanoseconds; at N = {large} the misses of the orders with k and i innermost "
        "are higher, and so are their times.",
    )


@style.styled
def variants(times: Mapping[tuple[str, str], float], n: int) -> style.Figure:
    """Draw bars of nanoseconds per step, grouped by loops.

    `times` maps (loops, variant) to nanoseconds. The name of the loops begins with their order,
    whose innermost loop gives the colour. `n` is the edge of the matrices.
    """
    groups = dict.fromkeys(loops for loops, _ in times)
    fig, ax = style.draw(0.8 + 0.25 * (len(times) + 1.2 * len(groups)))
    y, ticks = 0.0, {}
    for name in groups:
        style.note(ax, name, (0, y), (4, 0), va="center", weight="bold")
        for (loops, variant), time in times.items():
            if loops == name:
                y += 1
                ticks[y] = variant
                ax.barh(y, time, color=INNERMOST[name[2]], height=0.7)
                style.note(ax, f"{time:.3g}", (time, y), (3, 0), va="center", fontsize=8)
        y += 1.2
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(y - 0.5, -0.7), xlabel=f"time per iteration (ns), N = {n}")
    ax.margins(x=0.1)
    style.title(fig, "What an iteration costs when hardly any load misses")
    bars = "; ".join(f"{name}, {variant}: {time:.2g}" for (name, variant), time in times.items())
    return style.finish(fig, f"Bars of nanoseconds per iteration at N = {n}. {bars}.")


def _middle(values: Mapping[str, float], names: Sequence[str]) -> float:
    """Return the geometric mean, which lies in the middle on a logarithmic axis."""
    return math.prod(values[name] for name in names) ** (1 / len(names))
