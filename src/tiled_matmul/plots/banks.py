"""Figures of chapter 6: the banks of a warp's words, and the gain from each fix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tiled_matmul.microscope.cuda.hardware import BANK_BYTES, BANKS
from tiled_matmul.microscope.table import plural
from tiled_matmul.plots import microscope, style
from tiled_matmul.plots.microscope import ROW_BYTES

MARKS = (("only sectors counted", style.A, "s"), ("only wavefronts counted", style.B, "D"))


@style.styled
def bank_maps(requests: Sequence[Any], names: Sequence[str], columns: int) -> style.Figure:
    """Draw a shared array over the banks, with the words that each of `requests` accesses.

    A column is a bank, a row is 128 bytes. `columns` of each row of the array are used; the rest is
    padding, drawn grey. Red words share their bank with another accessed word. Raises ValueError
    without requests, if `names` has another length, or for a request to global memory.
    """
    if not requests or len(requests) != len(names):
        raise ValueError(f"{len(requests)} requests and {len(names)} names; both are wanted, alike")
    for request in requests:
        if request.array.space != "shared":
            raise ValueError(f"{request.array.name} lies in {request.array.space} memory")
    rows = max(-(-_size(request) // ROW_BYTES) for request in requests)
    height = 0.75 + (style.WIDTH / len(requests) - 0.2) * (rows + 4) / BANKS
    fig, axes = style.draw(height, 1, len(requests), squeeze=False)
    for ax, request, name in zip(axes[0], requests, names, strict=True):
        style.bare(ax, BANKS, rows + 3)
        _bank_map(ax, request, columns)
        ax.set_title(name, fontsize=8)
    costs = [plural(request.wavefronts, "wavefront") for request in requests]
    fig.supxlabel("a column: a bank; a row: 128 bytes; grey: padding", fontsize=8)
    finding = f"The same column of a tile: {' or '.join(costs)}"
    described = "; ".join(
        f"{name}: the {len(set(request.addresses))} elements that the warp wants lie in "
        f"{plural(microscope.banks_of(request), 'bank')}, {cost}"
        for name, request, cost in zip(names, requests, costs, strict=True)
    )
    return style.conclude(fig, finding, f"{described}.")


def _bank_map(ax: Any, request: Any, columns: int) -> None:
    size, pitch = request.array.itemsize, request.array.shape[-1]
    wide = size / BANK_BYTES
    height = _size(request) / ROW_BYTES
    crowded = microscope.crowded(request)
    color = microscope.colors([request.array])[request.array.id]
    elements = range(_size(request) // size)
    padding = [_box(each * size, wide) for each in elements if each % pitch >= columns]
    microscope.draw_boxes(ax, padding, facecolor=style.MUTED, alpha=0.6, lw=0)
    for late in (False, True):
        words = [_box(a, wide) for a in set(request.addresses) if (a in crowded) == late]
        microscope.draw_boxes(ax, words, facecolor=style.FAULT if late else color, lw=0)
    frame = [(0, 0, BANKS, height)]
    microscope.draw_boxes(ax, frame, fill=False, edgecolor=style.MUTED, lw=0.8, ls=(0, (3, 1.5)))
    for bank in (0, 8, 16, 24, 31):
        ax.text(bank + 0.5, height + 1.2, str(bank), ha="center", va="center", fontsize=8)


def _box(address: int, wide: float) -> tuple[float, float, float, float]:
    row, offset = divmod(address, ROW_BYTES)
    return offset / BANK_BYTES + 0.08, row + 0.08, wide - 0.16, 0.84


def _size(request: Any) -> int:
    return math.prod(request.array.shape) * request.array.itemsize


@style.styled
def halves(
    sectors: Mapping[str, float],
    wavefronts: Mapping[str, float],
    times_ms: Mapping[str, float] | None,
) -> style.Figure:
    """Draw the cost of each variant of a kernel, as two counts predict it and as measured.

    The three arguments map the same names to numbers. Each number is drawn as a multiple of that
    for the last name, the variant in which everything is fixed. `times_ms` is None without a
    clock. Raises ValueError if the names differ.
    """
    series = [sectors, wavefronts, *([times_ms] if times_ms is not None else [])]
    names = list(sectors)
    if any(list(each) != names for each in series):
        raise ValueError(f"the variants differ: {', '.join(str(list(each)) for each in series)}")
    fig, ax = style.draw(1.1 + 0.42 * len(names))
    relative = [{name: each[name] / each[names[-1]] for name in names} for each in series]
    for line, name in enumerate(names):
        values = [each[name] for each in relative]
        ax.hlines(line, min(values), max(values), color=style.MUTED, lw=1, alpha=0.6)
        for value, (_, color, marker) in zip(values, MARKS, strict=False):
            ax.plot(value, line, marker, mfc="none", mec=color, mew=1.5, ms=7)
        if times_ms is not None:
            ax.plot(values[-1], line, ls="none", marker="o", color=style.INK, ms=7)
            text = f"{values[-1]:.2f}"
            style.note(ax, text, (values[-1], line), (0, -7), ha="center", va="top", fontsize=8)
    for label, color, marker in MARKS:
        ax.plot([], [], marker, mfc="none", mec=color, mew=1.5, label=label)
    if times_ms is not None:
        ax.plot([], [], "o", color=style.INK, label="time")
    every = [value for each in relative for value in each.values()]
    least, most = min(every), max(every)
    ax.set(xscale="log", xlim=(least / 1.25, most * 1.3), ylim=(len(names) - 0.4, -0.6))
    ax.set_xticks([tick for tick in (1, 2, 4, 8, 16, 32) if tick <= most * 1.3])
    style.plain_numbers(ax.xaxis)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"times as much as “{names[-1]}”, logarithmic")
    fig.legend(loc="outside lower center", ncols=2, fontsize=8, handletextpad=0.2)
    title = "Two counts, two predictions"
    if times_ms is not None:
        nearer = _nearer(*relative)
        title = "The time follows neither count alone"
        if nearer:
            title = f"The time is nearer to the {nearer}, throughout"
    counted = dict(zip(("sectors", "wavefronts", "time"), relative, strict=False))
    lines = "; ".join(
        f"{name}: " + ", ".join(f"{what} {each[name]:.3g}" for what, each in counted.items())
        for name in names
    )
    return style.conclude(fig, title, f"Relative to “{names[-1]}”: {lines}.")


def _nearer(sectors: Mapping, wavefronts: Mapping, times: Mapping) -> str:
    """Return the count that is nearer to the time in every variant, or "" if it varies.

    Distances are those on a logarithmic axis.
    """
    nearer = {
        "sectors"
        if abs(math.log(sectors[name] / time)) <= abs(math.log(wavefronts[name] / time))
        else "wavefronts"
        for name, time in times.items()
        if sectors[name] != wavefronts[name]
    }
    return nearer.pop() if len(nearer) == 1 else ""
