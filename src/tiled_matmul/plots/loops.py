"""Figures of chapter 1: one element of C, the cost of a product, rounding by the order of a sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from tiled_matmul.plots import style
from tiled_matmul.problem import Problem

LIT = 0.75


@style.styled
def row_times_column(m: int, n: int, k: int, i: int, j: int) -> style.Figure:
    """Draw the elements that C[i, j] needs, in the matrices and in memory.

    A (m, k), B (k, n) and C (m, n) are row-major. Raises ValueError if C has no element [i, j].
    """
    if not (0 <= i < m and 0 <= j < n):
        raise ValueError(f"C is {m}×{n} and has no element [{i}, {j}]")
    row = {(i, step): LIT for step in range(k)}
    column = {(step, j): LIT for step in range(k)}
    fig, (above, below) = style.draw(4.6, 2, height_ratios=(2.6, 1))
    gap = 1.2
    style.bare(above, k + gap + n + 2, k + gap + m)
    style.matrix(above, k, n, style.B, x=k + gap, shade=column)
    style.matrix(above, m, k, style.A, y=k + gap, shade=row)
    style.matrix(above, m, n, style.C, x=k + gap, y=k + gap, shade={(i, j): 1})
    above.text(0, k + gap - 0.3, "A  (M × K)", va="bottom")
    above.text(k + gap + n + 0.4, 0.6, "B  (K × N)", va="bottom")
    above.text(k + gap + n + 0.4, k + gap + 0.6, "C  (M × N)", va="bottom")
    across, down = k + gap + i + 0.5, k + gap + j + 0.5
    _arrow(above, (0, across), (k + gap + j, across))
    _arrow(above, (down, 0), (down, k + gap + i))
    for x, y in ((k + gap / 2, across - 0.35), (down + 0.35, k + gap / 2)):
        above.text(x, y, "k", ha="center", va="center", style="italic")
    style.bare(below, max(m * k, k * n), 7)
    for y, name, rows, columns, color, shade in (
        (1, "A", m, k, style.A, row),
        (4.8, "B", k, n, style.B, column),
    ):
        places = {(0, r * columns + c): alpha for (r, c), alpha in shade.items()}
        style.matrix(below, 1, rows * columns, color, y=y, shade=places, tile=(1, columns))
        below.text(0, y - 0.3, f"{name} in memory, row after row", va="bottom")
    finding = f"One element of C: {k} neighbours of A, and {k} elements of B that lie {n} apart"
    style.title(fig, finding)
    return style.finish(
        fig,
        f"C[{i}, {j}] lies where row {i} of A, coming from the left, meets column {j} of B, coming "
        f"from above. Below, the same elements in memory: the row of A is {k} neighbours, the "
        f"column of B is {k} elements that lie {n} apart.",
    )


@style.styled
def work_and_data(problems: Sequence[Problem]) -> style.Figure:
    """Draw the FLOPs, the compulsory bytes and their ratio against the edge of square problems."""
    edges = [problem.n for problem in problems]
    fig, (above, below) = style.draw(4.4, 2, sharex=True, height_ratios=(1.5, 1))
    middle = len(edges) // 2
    for name, values, color, marker, shift, side in (
        ("FLOPs: 2N³", [p.flops for p in problems], style.C, "o", (-8, 6), "right"),
        ("bytes: 12N²", [p.compulsory_bytes for p in problems], style.A, "s", (8, -12), "left"),
    ):
        above.plot(edges, values, marker=marker, color=color, ms=4)
        point = (edges[middle], values[middle])
        style.note(above, name, point, shift, ha=side)
    above.set(yscale="log", ylabel="count")
    intensities = [problem.intensity for problem in problems]
    below.plot(edges, intensities, marker="o", color=style.FAULT, ms=4)
    for edge, intensity in zip(edges[::2], intensities[::2], strict=True):
        style.note(below, f"{intensity:.3g}", (edge, intensity), (0, 5), ha="center")
    below.set(yscale="log", ylim=(None, max(intensities) * 6), ylabel="FLOPs per byte")
    below.set_xscale("log", base=2)
    style.edge_axis(below, edges, "edge N of square float32 matrices")
    style.grid_lines(above, below)
    style.title(fig, "Work outgrows data, so each byte has ever more to do")
    return style.finish(
        fig,
        f"From N = {edges[0]} to {edges[-1]} the FLOPs grow with the cube of N and the bytes with "
        f"its square; FLOPs per byte rise from {intensities[0]:.3g} to {intensities[-1]:.3g}.",
    )


@style.styled
def rounding_errors(
    lengths: Sequence[int], errors: Mapping[str, Sequence[float]], bound: Sequence[float]
) -> style.Figure:
    """Draw the errors of sums of K products, and the bound for any order of summation.

    `errors` maps a name to the error at each of `lengths`, `bound` holds the bound there. The unit
    is u · Σ|aₖbₖ|, where u is the unit roundoff. Raises ValueError for lists of other lengths.
    """
    for name, values in {**errors, "bound": bound}.items():
        if len(values) != len(lengths):
            raise ValueError(f"{name!r} has {len(values)} values for {len(lengths)} lengths")
    fig, ax = style.draw(3.9)
    ax.plot(lengths, bound, color=style.INK, lw=1.5, label="the bound γ_K")
    looks = zip((style.FAULT, style.A, style.B, style.C), "Dosv", strict=True)
    for (name, values), (color, marker) in zip(errors.items(), looks, strict=False):
        ax.plot(lengths, values, marker=marker, color=color, ms=5, lw=1, label=name)
    ax.set_xscale("log", base=4)
    ax.set_yscale("log")
    ax.set_xticks(lengths, [f"{length:,}" for length in lengths], rotation=30)
    ax.minorticks_off()
    ax.set(xlabel="number of products K", ylabel="error, in units of u · Σ|aₖbₖ|")
    ax.legend(loc="upper left", fontsize=style.FONT_SIZE - 1)
    style.grid_lines(ax)
    style.title(fig, "Usual sums stay far below the bound; the worst one reaches it")
    last = ", ".join(f"{name} {values[-1]:.3g}" for name, values in errors.items())
    return style.finish(
        fig,
        f"Errors of float32 sums against the number of products, both logarithmic. At K = "
        f"{lengths[-1]}, in units of u: the bound {bound[-1]:.3g}, {last}.",
    )


@style.styled
def cpu_roofs(
    peak: float,
    bandwidth: float,
    chain: float,
    points: Mapping[str, tuple[float, float]],
    finding: str,
) -> style.Figure:
    """Draw the roofs of one CPU core and programs under them.

    `peak` and `chain` are in GFLOP/s: the peak rate, and the rate of additions that each wait for
    the one before. `bandwidth` is in GB/s. `points` maps a name to (FLOPs per byte, GFLOP/s); a
    program has one colour, and its name ends at the first comma. `finding` is the title.
    """
    fig, ax = style.draw(4.2)
    left = min(at for at, _ in points.values()) / 2
    right = max(at for at, _ in points.values()) * 20
    bottom = min(rate for _, rate in points.values()) / 3
    corner = peak / bandwidth
    ax.loglog([left, corner, right], [left * bandwidth, peak, peak], color=style.INK, lw=1.8)
    ax.plot([left, right], [chain, chain], color=style.FAULT, lw=1.2, ls="--")
    style.note(ax, f"peak: {peak:.3g} GFLOP/s", (right, peak), (0, 4), ha="right")
    style.note(ax, f"one chain: {chain:.3g}", (right, chain), (0, 3), ha="right")
    style.note(ax, f"memory: {bandwidth:.3g} GB/s", (3, 3 * bandwidth), (-6, 2), ha="right")
    programs = dict.fromkeys(name.split(",")[0] for name in points)
    looks = dict(
        zip(programs, ((style.MUTED, "D"), *style.SERIES[:2], (style.C, "v")), strict=False)
    )
    for name, (at, rate) in points.items():
        color, marker = looks[name.split(",")[0]]
        ax.plot(at, rate, marker, color=color, ms=7)
        # Clear of the lines of the two roofs.
        aside = -7 if rate > peak / 2 else 4 if chain < rate < 2 * chain else 0
        style.note(ax, name, (at, rate), (7, aside), va="center", fontsize=8)
    ax.set(xlim=(left, right), ylim=(bottom, peak * 3))
    style.plain_numbers(ax.xaxis, ax.yaxis)
    ax.set(xlabel="FLOPs per compulsory byte", ylabel="GFLOP/s")
    words = "; ".join(f"{name}: {rate:.3g} GFLOP/s" for name, (_, rate) in points.items())
    return style.conclude(
        fig,
        finding,
        f"Roofline of one core, logarithmic axes: peak {peak:.3g} GFLOP/s, memory {bandwidth:.3g} "
        f"GB/s, one chain of additions {chain:.3g} GFLOP/s. {words}.",
    )


def _arrow(ax: Axes, start: tuple, end: tuple) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": style.INK, "lw": 1.2})
