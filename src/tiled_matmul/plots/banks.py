"""Figures of chapter 6: the banks of a warp's words, and what each fix saves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tiled_matmul.microscope.cuda.hardware import BANK_BYTES, BANKS
from tiled_matmul.microscope.table import plural
from tiled_matmul.plots import microscope, style
from tiled_matmul.plots.microscope import ROW_BYTES

LABELS = ("pipe: global memory", "pipe: shared memory")


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
def pipe_bars(
    global_ms: Mapping[str, float],
    shared_ms: Mapping[str, float],
    times_ms: Mapping[str, float] | None,
) -> style.Figure:
    """Draw how long the pipe to both memories is busy in each variant, and the measured times.

    The arguments map the same names to milliseconds: of wavefronts of global memory, of wavefronts
    of shared memory, and of the whole kernel. `times_ms` is None without a clock. Raises ValueError
    if the names differ.
    """
    series = [global_ms, shared_ms, *([times_ms] if times_ms is not None else [])]
    names = list(global_ms)
    if any(list(each) != names for each in series):
        raise ValueError(f"the variants differ: {', '.join(str(list(each)) for each in series)}")
    fig, ax = style.draw(1.2 + 0.36 * len(names))
    busy = {name: global_ms[name] + shared_ms[name] for name in names}
    for line, name in enumerate(names):
        parts = ((global_ms[name], 0.0, style.A), (shared_ms[name], global_ms[name], style.B))
        for (length, left, color), label in zip(parts, LABELS, strict=True):
            ax.barh(line, length, left=left, height=0.5, color=color, label=None if line else label)
        reach = busy[name]
        if times_ms is not None:
            label = None if line else "measured time"
            ax.plot(times_ms[name], line, ls="none", marker="|", mew=2, ms=14, color=style.INK,
                    label=label)  # fmt: skip
            reach = max(reach, times_ms[name])
        shown = busy[name] if times_ms is None else times_ms[name]
        style.note(ax, f"{shown:.3g}", (reach, line), (5, 0), va="center", fontsize=8)
    reach = max(max(each.values()) for each in (busy, *series))
    ax.set(xlim=(0, reach * 1.12), ylim=(len(names) - 0.5, -0.5), xlabel="milliseconds")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    fig.legend(loc="outside lower center", ncols=3, fontsize=8, handletextpad=0.4)
    title = "Two faults, one pipe"
    if times_ms is not None:
        shares = [busy[name] / times_ms[name] for name in names]
        title = f"The pipe is busy for {min(shares):.0%} to {max(shares):.0%} of the time"
    words = "; ".join(
        f"{name}: global {global_ms[name]:.3g} ms, shared {shared_ms[name]:.3g} ms"
        + ("" if times_ms is None else f", measured {times_ms[name]:.3g} ms")
        for name in names
    )
    return style.conclude(fig, title, f"{words}.")
