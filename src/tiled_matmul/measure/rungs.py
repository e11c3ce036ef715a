"""The suites of the ladder: every rung at some products, beside its library, in one run each.

Rungs that have a twin in CUDA C++ are timed beside it, in the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tiled_matmul.measure import bench
from tiled_matmul.measure.results import SUITE, Record, job_name
from tiled_matmul.measure.spent import COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite, Taken
from tiled_matmul.problem import Problem

SHAPES = {
    "cpu": "128x128x128,512x512x512,2048x2048x2048",
    # Squares; three uneven ones: no multiple of 128; odd in everything, so that no row begins on 16
    # bytes; ragged and small; and two with few blocks, each with a long way along K.
    "gpu": "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,"
    "4000x4000x4000,4095x4097x4099,2000x3000x1500,256x256x16384,512x512x8192",
    # Squares; few rows, as when a language model writes a word; a long way along K; no multiple of
    # 128; and shapes of its layers.
    "tensor cores": "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,"
    "16384x16384x16384,16x4096x4096,128x4096x4096,512x512x16384,4000x4000x4000,3072x768x4096,"
    "8192x1024x1024,4096x11008x4096,2048x2048x8192",
}
ON_TENSOR_CORES = ("float16", "bfloat16")


def plan(
    rungs: Sequence[Any], dtype: str | None = None, shapes: str | None = None
) -> list[tuple[list, Problem]]:
    """Return the rungs to time at each problem.

    `dtype` is None for each rung's own, `shapes` for SHAPES. Raises ValueError for another text.
    """
    planned = []
    # In the dtypes of the ladder, a rung that no graph captures is in no run with those of a graph.
    own = dtype is None
    places = [(r.device, dtype or r.dtype, own and r.language.graphs) for r in rungs]
    for place in sorted(dict.fromkeys(places), key=lambda place: place[0]):
        device, of, _ = place
        group = [r for r, its in zip(rungs, places, strict=True) if its == place]
        usual = "tensor cores" if device == "gpu" and of in ON_TENSOR_CORES else device
        texts = SHAPES[usual] if shapes is None else shapes
        planned += [(group, Problem.parse(text, of)) for text in texts.split(",")]
    return planned


def timed(
    rungs: Sequence[Any],
    problem: Problem,
    leave_out: Callable[[str, str], object],
    *,
    force: bool = False,
    on_progress: Callable[[str, float], object] | None = None,
    **options: Any,
) -> list[Record]:
    """Return the records of `rungs` at a problem, by `bench` with `options`.

    `leave_out(name, reason)` is called for each that is not timed: it has other dtypes, refuses, or
    one run would take over bench.MAX_RUN_S, unless `force`; or for all of them, for lack of memory.
    """
    from tiled_matmul.ladder import Twin
    from tiled_matmul.machine.device import is_out_of_memory

    report = on_progress or (lambda step, share: None)
    taken = []
    for rung in rungs:
        report(f"trying {rung.name}", 0)
        of = getattr(rung, "rung", rung)
        if of in rungs and of is not rung and of not in taken:
            leave_out(rung.name, f"{of.name} is not timed")
            continue
        try:
            if problem.dtype not in rung.dtypes:
                raise TypeError(f"its dtypes are {', '.join(rung.dtypes)}")
            with spending(COMPILER):
                seconds = 0.0 if force else bench.estimate_s(rung, problem)
        except (ValueError, TypeError) as error:
            leave_out(rung.name, _refusal(error))
            continue
        if seconds <= bench.MAX_RUN_S:
            taken.append(rung)
        else:
            leave_out(rung.name, f"a run takes about {bench.duration_text(seconds)} (--force)")
    beside = [rung for rung in taken if isinstance(rung, Twin)]
    try:
        return taken and bench.bench(
            taken,
            problem,
            max_run_s=math.inf,
            on_progress=report,
            on_refusal=lambda name, error: leave_out(name, _refusal(error)),
            **options,
        )
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        for rung in beside or taken:
            leave_out(rung.name, "there is too little memory")
        alone = [rung for rung in taken if rung not in beside]
    if not beside or not alone:
        return []
    return timed(alone, problem, leave_out, force=force, on_progress=on_progress, **options)


def _refusal(error: Exception) -> str:
    return "it refuses: " + " ".join(str(error).split())


def _take(rungs: Sequence[Any], problem: Problem) -> Iterator[Taken]:
    def leave_out(name: str, reason: str) -> None:
        print(f"{problem.shape_text} {problem.dtype}: {name} is not timed: {reason}", flush=True)

    for record in timed(rungs, problem, leave_out):
        yield record.entry.case, record.entry.values


def with_twins(rungs: Sequence[Any]) -> list:
    """Return the rungs, and then the twins of those that have one, where NVRTC can compile them."""
    from tiled_matmul.ladder import twin_of

    twins = filter(None, map(twin_of, rungs))
    return [*rungs, *(twin for twin in twins if twin.available and twin not in rungs)]


def shares(records: Sequence[Record]) -> dict[str, float]:
    """Return the time of its twin over the time of each rung, from the records of one run.

    Above 1, the rung is faster than CUDA C++. Rungs whose twin was not timed are left out.
    """
    from tiled_matmul.ladder import TWINS

    times = {record.rung: record.time_ms for record in records}
    pairs = [(twin.rung.name, twin.name) for twin in TWINS]
    return {rung: times[its] / times[rung] for rung, its in pairs if {rung, its} <= set(times)}


def jobs(device: str, dtype: str | None = None) -> list[Job]:
    """Return a job for each problem: all rungs of a device, or in a dtype those with graphs.

    Twins come beside their rungs.
    """
    from tiled_matmul.ladder import LADDER

    rungs = with_twins([r for r in LADDER if r.device == device and r.available])
    rungs = [r for r in rungs if dtype is None or r.language.graphs]
    found: dict[str, Job] = {}
    for group, problem in plan(rungs, dtype):
        name = job_name(problem.shape_text, problem.dtype, device == "cpu")
        if name in found:
            name += ", launched one by one"
        ran = tuple(rung.name for rung in group)
        found[name] = Job(name, ran, partial(_take, group, problem))
    return list(found.values())


FILE = "{machine}.json"
SUITES = (
    Suite("loops", "the rungs for the CPU beside NumPy's BLAS", partial(jobs, "cpu"), FILE,
          machine="cpu", kind=SUITE),
    Suite("ladder", "the rungs for the GPU beside cuBLAS", partial(jobs, "gpu"), FILE),
    Suite("bfloat16", "the rungs in Triton in bfloat16 beside cuBLAS",
          partial(jobs, "gpu", "bfloat16"), FILE, kind=SUITE),
)  # fmt: skip
