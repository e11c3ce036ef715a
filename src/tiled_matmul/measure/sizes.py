"""Measurements for pages: rungs or variants at the largest size that is fast enough here.

A page names the size at which the book's GPU was measured. On a slow or shared GPU, one run of a
slow kernel at that size may take minutes, so the time is estimated first. If a round (each rung
once) would take more than `round_s` seconds, all sizes are halved for all rungs, because a
comparison needs one common size. No size goes below FLOOR. Rungs that are too slow even there are
left out, the slowest first, and the result lists them with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tiled_matmul.kit import backend
from tiled_matmul.machine.device import is_out_of_memory
from tiled_matmul.measure import results
from tiled_matmul.measure.bench import (
    BASELINES,
    INPUT_SETS,
    as_rungs,
    bench,
    contestants,
    duration_text,
    estimate_s,
)
from tiled_matmul.measure.clock import BUDGET_S, Timing, time_interleaved
from tiled_matmul.measure.precision import exact_sums
from tiled_matmul.measure.results import Record
from tiled_matmul.problem import Problem, as_layout

FLOOR = 512
ROUND_S = 4.0
NO_CLOCK = "the simulators have no clock"
NO_MEMORY = "too little memory here"


@dataclass(frozen=True)
class Compared(Mapping):
    """Timings by the name of a variant, all at `problem`.

    `left_out` maps each variant that was not timed to the reason; `asked` is the requested size.
    """

    problem: Problem
    asked: Problem
    timings: Mapping[Any, Timing]
    left_out: Mapping[Any, str] = field(default_factory=dict)

    def __getitem__(self, name: Any) -> Timing:
        return self.timings[name]

    def __iter__(self) -> Iterator:
        return iter(self.timings)

    def __len__(self) -> int:
        return len(self.timings)

    @property
    def ms(self) -> dict[Any, float]:
        """The median of each variant in milliseconds."""
        return {name: timing.median_ms for name, timing in self.items()}

    @property
    def tflops(self) -> dict[Any, float]:
        """The rate of each variant in TFLOP/s."""
        return {name: self.problem.flops / ms / 1e9 for name, ms in self.ms.items()}

    @property
    def note(self) -> str:
        """A sentence if the size is not the requested one, else ""."""
        return _note(self.problem, self.asked)

    def table(self) -> Any:
        """Return a Table with one row per variant, those that were left out at the end."""
        from tiled_matmul.microscope.table import table

        rows = [(name, f"{ms:.3g}", f"{self.tflops[name]:.3g}") for name, ms in self.ms.items()]
        rows += [(name, reason, "") for name, reason in self.left_out.items()]
        columns = ("variant", "time (ms)", "TFLOP/s")
        return table([dict(zip(columns, row, strict=True)) for row in rows], columns)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Measured(Sequence):
    """Records of one run at `problem`, the baseline first; also `measured["cuda_naive"]`.

    `left_out` maps each rung without a record to the reason; `asked` is the requested size. Without
    a GPU, `live` is False and these are the book's records.
    """

    problem: Problem
    asked: Problem
    records: tuple[Record, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    live: bool = True

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, str):
            return self.records[place]
        record = self.get(place)
        if record is None:
            reason = self.left_out.get(place, "it was not requested")
            raise KeyError(f"there is no record of {place}: {reason}")
        return record

    def __len__(self) -> int:
        return len(self.records)

    def __contains__(self, name: object) -> bool:
        return name in self.records or any(record.rung == name for record in self.records)

    def get(self, rung: str) -> Record | None:
        """Return a rung's record, or None if it was left out."""
        return next((record for record in self.records if record.rung == rung), None)

    @property
    def note(self) -> str:
        """A sentence if the size is not the requested one, else ""."""
        return _note(self.problem, self.asked)

    def table(self) -> Any:
        """Return a Table with one row per record, then one for each rung that was left out."""
        from tiled_matmul.microscope.table import table

        rows = [
            (r.rung, r.shape_text, f"{r.time_ms:.3g}", f"{r.tflops:.3g}", f"{r.ratio:.3g}")
            for r in self.records
        ]
        shape = self.problem.shape_text
        rows += [(rung, shape, reason, "", "") for rung, reason in self.left_out.items()]
        baseline = self.records[0].baseline if self.records else "the library"
        columns = ("rung", "shape", "time (ms)", "TFLOP/s", f"of {baseline}")
        return table([dict(zip(columns, row, strict=True)) for row in rows], columns)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Variant:
    """A multiplying function in the form of a rung for `estimate_s`."""

    name: Any
    matmul: Callable
    device: str = "gpu"
    layout: str = "nn"


def measure(
    *rungs: Any,
    n: int | None = None,
    shape: tuple[int, int, int] | None = None,
    dtype: str | None = None,
    round_s: float = ROUND_S,
    budget_s: float = BUDGET_S,
    **options: Any,
) -> Measured:
    """Check and time `rungs`, names or Rungs, against their library at one common size.

    The requested size is `n` × `n` × `n`, or `shape` as (M, N, K); `dtype` is by default that of
    the first rung. `options` are those of `bench`. Slow rungs, rungs that reject the problem and a
    lack of memory never raise: see `Measured.problem` and `Measured.left_out`. If GPU rungs would
    run in the simulators, the book's records are returned.

    Raises as `bench` does for a wrong rung, an unknown name or CPU and GPU rungs together, and
    ValueError unless exactly one of `n` and `shape` is given.
    """
    chosen = as_rungs(rungs)
    if not chosen:
        raise ValueError("there is no rung to measure")
    asked = _asked(n, shape, dtype or getattr(chosen[0], "dtype", "float32"))
    if chosen[0].device == "gpu" and not backend.select().on_gpu:
        return _of_the_book(chosen, asked)
    contestants(chosen)  # raises for rungs that cannot be measured together
    options = {"max_run_s": math.inf, "budget_s": budget_s} | options
    problem, kept, left_out = fitting(chosen, asked, round_s)

    def run(problem: Problem) -> Measured:
        refused = {}

        def note(name: str, error: Exception) -> None:
            refused[name] = "it refuses: " + " ".join(str(error).split())

        records = bench(kept, problem, on_refusal=note, **options) if kept else []
        return Measured(problem, asked, tuple(records), left_out | refused)

    none = {rung.name: NO_MEMORY for rung in kept}
    return _within_memory(run, problem, Measured(problem, asked, (), left_out | none))


def compare(
    functions: Mapping[Any, Callable],
    *,
    n: int | None = None,
    shape: tuple[int, int, int] | None = None,
    dtype: str = "float32",
    layout: str = "nn",
    round_s: float = ROUND_S,
    inputs: int = INPUT_SETS,
    **options: Any,
) -> Compared:
    """Time functions of (a, b) on the GPU against each other at one common size, unchecked.

    The size is chosen as in `measure`. `layout` is the memory layout of a and b, `inputs` the
    number of pairs (a, b), and `options` are those of `time_interleaved`. Without a GPU nothing is
    timed, and `left_out` gives that reason.
    """
    asked = _asked(n, shape, dtype)
    if not backend.select().on_gpu:
        return Compared(asked, asked, {}, dict.fromkeys(functions, NO_CLOCK))
    variants = [Variant(name, function, layout=layout) for name, function in functions.items()]
    problem, kept, left_out = fitting(variants, asked, round_s)

    def run(problem: Problem) -> Compared:
        pairs = [
            as_layout(*problem.inputs(seed, problem.kind, "cuda"), layout) for seed in range(inputs)
        ]
        calls = {variant.name: variant.matmul for variant in kept}
        timed = time_interleaved(calls, device="gpu", inputs=pairs, **options) if calls else {}
        return Compared(problem, asked, timed, left_out)

    none = {variant.name: NO_MEMORY for variant in kept}
    return _within_memory(run, problem, Compared(problem, asked, {}, left_out | none))


def sizes(asked: Problem) -> Iterator[Problem]:
    """Yield `asked`, then smaller problems: each size is halved unless that is below FLOOR."""
    yield asked
    m, n, k = (size // 2 if size // 2 >= FLOOR else size for size in (asked.m, asked.n, asked.k))
    if (m, n, k) != (asked.m, asked.n, asked.k):
        yield from sizes(Problem(m, n, k, asked.dtype))


def fitting(
    rungs: Sequence[Any], asked: Problem, round_s: float = ROUND_S
) -> tuple[Problem, list[Any], dict[Any, str]]:
    """Return the largest problem of `sizes`, the rungs to time there, and the others' reasons.

    A round of the returned rungs takes at most about `round_s` seconds.
    """
    kept, left_out = list(rungs), {}
    while kept:
        for problem in sizes(asked):
            seconds = {rung.name: _estimate_s(rung, problem) for rung in kept}
            if sum(seconds.values()) <= round_s:
                return problem, kept, left_out
        # Too slow even at the smallest size. Without the slowest, a larger one may be possible.
        while sum(seconds.values()) > round_s:
            slowest = max(seconds, key=seconds.get)
            took = seconds.pop(slowest)
            slow = f"too slow here: about {duration_text(took)} a run"
            left_out[slowest] = NO_MEMORY if took == math.inf else slow
        kept = [rung for rung in kept if rung.name in seconds]
    return list(sizes(asked))[-1], [], left_out


def _estimate_s(rung: Any, problem: Problem) -> float:
    """Return the seconds of a run: 0 if the rung rejects it, infinity for too little memory."""
    try:
        with exact_sums():
            return estimate_s(rung, problem)
    except (ValueError, TypeError):
        return 0.0  # `bench` reports it
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return math.inf


def _within_memory(run: Callable[[Problem], Any], problem: Problem, nothing: Any) -> Any:
    """Return `run(size)` for the largest of `sizes` that fits in memory, else `nothing`."""
    for smaller in sizes(problem):
        try:
            return run(smaller)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
    return nothing


def _asked(n: int | None, shape: tuple[int, int, int] | None, dtype: str) -> Problem:
    if (n is None) == (shape is None):
        raise ValueError(f"give n or shape=(M, N, K), not both, got n={n!r}, shape={shape!r}")
    return Problem.square(n, dtype) if shape is None else Problem(*shape, dtype)


def _of_the_book(rungs: Sequence[Any], asked: Problem) -> Measured:
    """Return the reference GPU's records of these rungs at exactly this problem."""
    place = (asked.m, asked.n, asked.k, asked.dtype)
    stored = {r.rung: r for r in results.reference() if (r.m, r.n, r.k, r.dtype) == place}
    names = [BASELINES["gpu"], *(rung.name for rung in rungs)]
    absent = dict.fromkeys((n for n in names[1:] if n not in stored), "the book has no record")
    return Measured(asked, asked, tuple(stored[n] for n in names if n in stored), absent, False)


def _note(problem: Problem, asked: Problem) -> str:
    if problem == asked:
        return ""
    return (
        f"Measured at {problem.shape_text} and not at {asked.shape_text}, which would take too "
        "long or too much memory on this machine."
    )
