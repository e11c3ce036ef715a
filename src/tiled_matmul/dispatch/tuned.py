"""Timed instead of promised: inside `tuning`, a clock decides between a rule's best candidates.

A rule goes by costs that were fitted to other products. Here each candidate multiplies the
product's own operands, in a CUDA graph, and the fastest is remembered for operands of that kind:
shapes, strides, dtype, alignment, GPU and Triton's version. All candidates are right, so what is
remembered can be slow at worst.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton

from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.files import load_as, replace_text
from tiled_matmul.kit import plans
from tiled_matmul.kit.layouts import grains
from tiled_matmul.kit.withheld import withholding

REPLAYS, SAMPLE_MS = 5, 0.3  # of a graph; its launches take SAMPLE_MS
FEWEST_LAUNCHES, MOST_LAUNCHES = 3, 150

_known: dict[str, Choice] = {}
_lock = threading.RLock()  # gradients are made in other threads
_tuning = 0


@contextmanager
def tuning(file: str | os.PathLike | None = None) -> Iterator[None]:
    """Time the candidates at the first product of each kind in here, and remember the fastest.

    Takes seconds a kind, as each candidate is compiled. What is remembered stays for the process.
    With a `file`, what it holds is known from the start, and at the end it holds all that is known
    then; it is written only if that is more. Raises ValueError for a file of other content, before
    anything is timed.
    """
    global _tuning
    if file is not None:
        _learn(file)
    plans.forget()  # which hold what the rule chose
    with _lock:
        _tuning += 1
    try:
        yield
    finally:
        with _lock:
            _tuning -= 1
        # _learn knows then what another process has added since. Without a GPU nothing is new.
        if file is not None and _learn(file) != _known:
            rows = {kind: vars(choice) for kind, choice in sorted(_known.items())}
            replace_text(file, json.dumps(rows, indent=1) + "\n")


def forget() -> None:
    """Decide by the rule again."""
    _known.clear()
    plans.forget()


def choice(
    a: Any, b: Any, out: Any, candidates: Callable[[], Sequence[Choice]], run: Callable
) -> Choice | None:
    """Return what was the fastest for these operands, or None if that is not known.

    Inside `tuning` it is found out: `run(choice, a, b, out)` multiplies as a candidate says, and
    `out` then holds the product. Raises RuntimeError while a CUDA graph is captured, when nothing
    can be timed.
    """
    if not (_known or _tuning) or withholding() or not a.is_cuda:
        return None
    kind = _kind(a, b, out)
    with _lock:
        if kind not in _known and _tuning:
            tried = candidates()
            if len(tried) > 1:
                _known[kind] = _fastest(kind, tried, run, a, b, out)
    return _known.get(kind)


def milliseconds(call: Callable) -> float:
    """Return the median time of a call in a CUDA graph of several.

    How many it takes to fill SAMPLE_MS is found with a graph, too: outside of one a short call
    takes as long as the host needs for it, and so does a graph of few.
    """
    call()
    took = _replayed(call, FEWEST_LAUNCHES)
    launches = min(MOST_LAUNCHES, math.ceil(SAMPLE_MS / took))
    return _replayed(call, launches) if launches > FEWEST_LAUNCHES else took


def _replayed(call: Callable, launches: int) -> float:
    """Return the median time, in milliseconds, of each of so many calls in a CUDA graph."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph = torch.cuda.CUDAGraph()
    # What other threads ask of the GPU meanwhile is no error.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(launches):
            call()
    times = []
    for _ in range(REPLAYS + 1):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / launches)
    return statistics.median(times[1:])


def _kind(a: Any, b: Any, out: Any) -> str:
    sizes = "x".join(map(str, (a.shape[0], b.shape[1], a.shape[1])))
    each = zip((a, b, out), grains(a, b, out), strict=True)
    lie = ", ".join(f"{x.stride()} of {size}" for x, size in each)
    dtype = str(a.dtype).removeprefix("torch.")
    gpu = torch.cuda.get_device_name(a.device)
    return f"{sizes} {dtype}, {lie}, {gpu}, Triton {triton.__version__}"


def _fastest(kind: str, tried: Sequence[Choice], run: Callable, a: Any, b: Any, out: Any) -> Choice:
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            f"{kind} cannot be timed while a CUDA graph is captured: call it once before"
        )
    times = []
    with plans.unnoted():
        for each in tried:
            try:
                times.append(milliseconds(partial(run, each, a, b, out)))
            except ValueError:  # its tiles do not fit this GPU
                times.append(math.inf)
    return tried[times.index(min(times))]


def _learn(file: str | os.PathLike) -> dict[str, Choice] | None:
    """Learn what a file holds, and return that, or None if there is no file."""
    if not Path(file).exists():
        return None
    rows = load_as(file, _parse, "tuned products")
    _known.update(rows)
    return rows


def _parse(stored: Any) -> dict[str, Choice]:
    return {kind: Choice.parse(row) for kind, row in stored.items()}
