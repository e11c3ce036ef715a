"""Figures of measured rates, from records of `bench`: the ladder, rates by size, two languages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import log10
from statistics import median
from typing import Any

from matplotlib.ticker import FuncFormatter, LogLocator

from tiled_matmul.ladder import LADDER
from tiled_matmul.measure.results import Record
from tiled_matmul.measure.rungs import shares
from tiled_matmul.plots import style

LIBRARIES = {"numpy": "NumPy's BLAS", "cublas": "cuBLAS"}
TWIN_ROW = 0.26  # inches
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))


@style.styled
def ladder_figure(records: Sequence[Record], finding: str | None = None) -> style.Figure:
    """Draw each record's rate on one logarithmic scale, with its share of the baseline's rate.

    Lines keep the order of `records`. The baseline of each size is one of the records, as `bench`
    returns them; if there is only one size, a tick on every line marks its rate. `finding` is the
    title; by default the title names the best rung's share. Raises ValueError without records.
    """
    if not records:
        raise ValueError("there is no record to draw")
    rates = [record.tflops * 1e12 for record in records]
    one_size = len({(r.m, r.n, r.k, r.dtype) for r in records}) == 1
    dtypes = len({record.dtype for record in records})
    spoken = []
    fig, ax = style.draw(0.9 + 0.47 * len(records))
    low, high = 10 ** (int(log10(min(rates))) - 0.3), max(rates) * 2.5
    for line, (record, rate) in enumerate(zip(records, rates, strict=True)):
        baseline = record.rung == record.baseline
        color = style.C if baseline else style.A
        if baseline and one_size:
            # Short, so that no text is crossed out.
            for other in range(len(records)):
                ax.vlines(rate, other - 0.13, other + 0.13, color=style.C, lw=2)
        ax.hlines(line, low, rate, color=color, lw=5, alpha=0.35)
        half = rate * record.spread / 2
        ax.hlines(line, max(rate - half, low), rate + half, color=style.INK, lw=1)
        ax.plot(rate, line, marker="s" if baseline else "o", color=color, ms=7)
        name, reached = title_of(record.rung), rate_text(rate)
        size = "" if one_size else size_text(record) + (f" {record.dtype}" if dtypes > 1 else "")
        reached += "" if baseline else f", {share_text(record)}"
        text = f"{name}{size and ', '}{size}: {reached}"
        spoken.append(f"{name} {size}{size and ' '}{reached}")
        style.note(ax, text, (0, line), (2, 5), xycoords=("axes fraction", "data"), va="bottom")
    where = f", {size_text(records[0])}, {records[0].dtype}" if one_size else ""
    style.line_axis(
        ax, len(records) - 0.6, -0.8, f"FLOP/s, logarithmic{where}", xscale="log", xlim=(low, high)
    )
    _si_axis(ax.xaxis)
    title = finding or _best(records)
    return style.conclude(fig, title, f"{'; '.join(spoken)}.")


@style.styled
def rates_by_size(records: Sequence[Record], finding: str) -> style.Figure:
    """Draw rates of square problems against their edge, one line for each rung.

    `finding` is the title. Raises ValueError without records, for records of several dtypes, for a
    problem that is not square, and for a rung with two records of one size.
    """
    dtypes = list(dict.fromkeys(record.dtype for record in records))
    if len(dtypes) > 1:
        raise ValueError(f"rates by size are of one dtype, got {', '.join(dtypes)}")
    lines: dict[str, dict[int, float]] = {}
    for record in records:
        if not record.m == record.n == record.k:
            raise ValueError(f"rates by size are of square problems, got {record.shape_text}")
        line = lines.setdefault(record.rung, {})
        if record.n in line:
            raise ValueError(f"{record.rung} is there twice at {record.shape_text}")
        line[record.n] = record.tflops * 1e12
    if not lines:
        raise ValueError("there is no record to draw")
    fig, ax = style.draw(3.6)
    edges = sorted({edge for line in lines.values() for edge in line})
    looks = itertools.cycle(style.SERIES)
    for rung, line in lines.items():
        color, marker = (style.C, "v") if rung in LIBRARIES else next(looks)
        points = sorted(line.items())
        ax.plot(*zip(*points, strict=True), marker=marker, color=color, ms=5)
        middle = points[len(points) // 2] if len(points) > 2 else points[-1]
        side = "center" if len(points) > 2 else "left"
        style.note(ax, title_of(rung), middle, (0, 9), ha=side)
    ax.set(xscale="log", yscale="log", ylabel="FLOP/s")
    style.edge_axis(ax, edges, f"edge N of square {records[0].dtype} matrices")
    ax.margins(y=0.12)
    _si_axis(ax.yaxis)
    style.grid_lines(ax)
    ends = "; ".join(
        f"{title_of(rung)} from {rate_text(line[min(line)])} at {min(line)} "
        f"to {rate_text(line[max(line)])} at {max(line)}"
        for rung, line in lines.items()
    )
    return style.conclude(fig, finding, f"{ends}.")


@style.styled
def against_twins(records: Sequence[Record], finding: str | None = None) -> style.Figure:
    """Draw a bar for each rung: its speed as a share of that of the same kernel in CUDA C++.

    `records` are of one run, as `bench` returns them for rungs and their twins; those without the
    other are left out. A tick on every bar marks the twin's speed. `finding` is the title; by
    default it names the lowest, the highest and the median share. Raises ValueError for records of
    several problems or machines, and without a pair.
    """
    if len({(r.m, r.n, r.k, r.dtype, r.gpu, r.date) for r in records}) > 1:
        raise ValueError("a rung and its twin are compared in one run of one problem, got several")
    found = shares(records)
    if not found:
        raise ValueError("no rung is there with its twin in CUDA C++")
    fig, ax = style.draw(0.9 + TWIN_ROW * len(found))
    reach = max(1.0, *found.values()) * 1.01
    spoken = []
    for line, (rung, share) in enumerate(found.items()):
        ax.barh(line, share, 0.8, color=style.A, alpha=0.45)
        ax.vlines(1, line - 0.4, line + 0.4, color=style.C, lw=2)
        name, text = title_of(rung), f"{share:.0%}"
        ax.text(0.01 * reach, line, name, va="center")
        ax.text(reach * 1.13, line, text, va="center", ha="right", fontweight="bold")
        spoken.append(f"{name} {text}")
    ax.set(xlim=(0, reach * 1.13), ylim=(len(found) - 0.4, -0.6), yticks=[])
    where = f"{size_text(records[0])}, {records[0].dtype}"
    style.share_axis(ax, reach, f"share of the twin's speed, {where}")
    low, high, middle = min(found.values()), max(found.values()), median(found.values())
    title = finding or (
        f"In Numba, kernels reach {low:.0%} to {high:.0%} of their speed in CUDA C++, "
        f"half of them {middle:.0%} or more"
    )
    return style.conclude(fig, title, f"{'; '.join(spoken)}.")


def title_of(rung: str) -> str:
    """Return the title of a rung or library, or an unknown name unchanged."""
    titles = {step.name: step.title for step in LADDER} | LIBRARIES
    return titles.get(rung, rung)


def rate_text(flops_per_s: float) -> str:
    """Return a rate with a prefix: "3.2 MFLOP/s", "50.5 TFLOP/s"."""
    return f"{_si(flops_per_s)}FLOP/s"


def share_text(record: Record) -> str:
    """Return a record's rate as a share of its baseline's: "24% of numpy" or "1/5,200 of numpy"."""
    if record.ratio < 0.01:
        inverse = float(f"{1 / record.ratio:.2g}")
        return f"1/{inverse:,.0f} of {record.baseline}"
    digits = 1 if record.ratio < 0.1 else 0
    return f"{record.ratio:.{digits}%} of {record.baseline}"


def _best(records: Sequence[Record]) -> str:
    climbed = [record for record in records if record.rung != record.baseline]
    if not climbed:
        return f"{title_of(records[0].rung)} alone: no rung was measured"
    best = max(climbed, key=lambda record: record.ratio)
    return f"The best rung runs at {share_text(best)}: {title_of(best.rung)}"


def size_text(record: Any) -> str:
    """Return the size of a record, or of anything with m, n and k: "4096³" or "64×64×4096"."""
    if record.m == record.n == record.k:
        return f"{record.n}³"
    return f"{record.m}×{record.n}×{record.k}"


def _si(value: float) -> str:
    factor, prefix = next((pair for pair in PREFIXES if value >= pair[0] * 0.9995), PREFIXES[-1])
    scaled = value / factor
    return f"{scaled:.3g} {prefix}" if scaled < 999.5 else f"{scaled:,.0f} {prefix}"


def _si_axis(axis) -> None:
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _si(value).strip()))
    axis.set_minor_locator(LogLocator(subs=()))
