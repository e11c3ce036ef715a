"""Check rungs and time them against their baseline in one run with the fair clock (`clock.py`).

Every rung's product is checked before timing, and the output of the last round is spot-checked.

The launch overhead would be a large part of a small product's time. So if one cuBLAS call takes
less than 0.2 ms, a sample is the mean of as many consecutive calls as fill 0.2 ms, the same number
for every function. A record reports the number as `launches`: 1 with a cold cache, more with a warm
cache. If all rungs of a run are in languages whose launches a CUDA graph captures, such as Triton,
the calls of a sample, cuBLAS's too, are one replay of a graph, as in a program tuned for such
sizes. A record reports this as `graph`.

A rung with column-major operands (`Rung.layout`) gets the same values in that layout. Its ratio is
still to cuBLAS on row-major operands.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tiled_matmul.check import MatmulError, assert_matmul, poison, run_checked
from tiled_matmul.languages import Language
from tiled_matmul.measure import fingerprint
from tiled_matmul.measure.clock import (
    BUDGET_S,
    Timing,
    equal_threads,
    finish,
    need_gpu,
    time_interleaved,
)
from tiled_matmul.measure.precision import exact_sums
from tiled_matmul.measure.provenance import of_language, provenance
from tiled_matmul.measure.results import Record
from tiled_matmul.problem import Problem, as_layout

BASELINES = {"cpu": "numpy", "gpu": "cublas"}
MAX_RUN_S = 2.0
INPUT_SETS = 3
SHORT_MS, MOST_LAUNCHES = 0.2, 64
PROBE_S, LONG_PROBE_S, PROBE_EDGE = 0.02, 0.5, 256
GPU_PROBE_S, GPU_PROBE_EDGE = 0.005, 512
SPOT_ROWS = 16


def bench(
    rungs: Sequence[Any],
    problem: Problem,
    *,
    budget_s: float = BUDGET_S,
    threads: int | None = None,
    seed: int = 0,
    max_run_s: float = MAX_RUN_S,
    launches: int | None = None,
    graphs: bool | None = None,
    on_progress: Callable[[str, float], object] | None = None,
    on_refusal: Callable[[str, Exception], object] | None = None,
) -> list[Record]:
    """Check and time `rungs` and their baseline at `problem`; return records, the baseline first.

    `rungs` are names or Rungs, all of one device: CPU rungs are measured against numpy's BLAS, GPU
    rungs against cuBLAS. `budget_s` is the total time of the timed rounds and `seed` the seed of
    the inputs. `launches` is the number of calls per sample (None: one on a CPU, on a GPU chosen
    by the baseline's time). `graphs` replays them as a CUDA graph (None: if the languages of all
    rungs can). `on_progress(step, share)` gets the current step and the share of the timing that is
    done. All inputs are in memory at once: three pairs of A and B, and one C for each function.

    A launcher that rejects the problem raises ValueError or TypeError, which passes through. With
    `on_refusal`, `on_refusal(name, error)` is called instead and the others are timed; if all are
    rejected, the list is empty.

    Raises MatmulError before timing if a rung is wrong, and after timing if the output of the last
    round is wrong. Raises ValueError for no rung, a rung named twice, CPU and GPU rungs together, a
    rung that would take more than `max_run_s` seconds per run, or GPU rungs in the simulators.
    """
    where, matmuls = contestants(rungs)
    report = on_progress or (lambda step, share: None)
    with exact_sums() if where == "gpu" else equal_threads(threads) as count:
        for rung in as_rungs(rungs):
            try:
                seconds = estimate_s(rung, problem) if max_run_s < math.inf else 0.0
            except (ValueError, TypeError):
                if on_refusal is None:
                    raise
                continue  # the check below handles it
            if seconds > max_run_s:
                raise ValueError(
                    f"{rung.name} would take about {seconds:.3g} s for one run at "
                    f"{problem.shape_text}; the limit is {max_run_s:g} s"
                )
        sets = _operand_sets(as_rungs(rungs), problem, where, seed)
        outs = {}
        for name, matmul in list(matmuls.items()):
            report(f"checking {name}", 0.0)
            try:
                outs[name] = run_checked(matmul, *sets[name][0])
            except MatmulError as error:
                raise MatmulError(f"{name} is not timed, it is wrong: {error}") from error
            except (ValueError, TypeError) as error:
                if on_refusal is None or name == BASELINES[where]:
                    raise
                on_refusal(name, error)
                del matmuls[name]
        if len(matmuls) == 1:
            return []

        def after_round(share: float) -> None:
            report("timing", share)
            if share < 1:  # so that the final output comes from the last round
                for out in outs.values():
                    poison(out)

        functions = {
            name: functools.partial(_into, matmul, outs[name], sets[name])
            for name, matmul in matmuls.items()
        }
        if launches is None:
            launches = _launches(functions[BASELINES[where]]) if where == "gpu" else 1
        if graphs is None:
            graphs = all(known and known.graphs for known in map(_language, as_rungs(rungs)))
        timings = time_interleaved(
            functions,
            device=where,
            inputs=[(number,) for number in range(INPUT_SETS)],
            budget_s=budget_s,
            threads=count,
            launches=launches,
            graphs=graphs,
            on_round=after_round,
        )
        last = len(next(iter(timings.values())).samples_ms) - 1
        for name, out in outs.items():
            report(f"checking {name} again", 1.0)
            _spot_check(name, out, *sets[BASELINES[where]][last % INPUT_SETS], seed)
    return _records(as_rungs(rungs), problem, where, timings, count, launches, graphs)


def _operand_sets(
    rungs: Sequence[Any], problem: Problem, where: str, seed: int
) -> dict[str, list[tuple]]:
    """Return INPUT_SETS pairs (a, b) for each function: the same values, in its layout.

    Functions share the tensors; an operand is stored again only for a column-major rung.
    """
    place = "numpy" if where == "cpu" else "cuda"
    sets = {"nn": [problem.inputs(seed + i, problem.kind, place) for i in range(INPUT_SETS)]}
    names = {BASELINES[where]: "nn"} | {rung.name: _layout(rung) for rung in rungs}
    if set(names.values()) != {"nn"}:
        sets["tt"] = [as_layout(a, b, "tt") for a, b in sets["nn"]]
    return {
        name: [
            tuple(sets[2 * letter][i][side] for side, letter in enumerate(layout))
            for i in range(INPUT_SETS)
        ]
        for name, layout in names.items()
    }


def _layout(rung: Any) -> str:
    return getattr(rung, "layout", "nn")


def _language(rung: Any) -> Language | None:
    """Return a rung's language, or None for a function in the form of a rung."""
    return getattr(rung, "language", None)


def _launches(baseline: Callable[[int], object]) -> int:
    """Return the number of calls per sample, from the time of one baseline call."""
    once = time_interleaved({"baseline": baseline}, device="gpu", inputs=[(0,)], rounds=5)
    return min(MOST_LAUNCHES, math.ceil(SHORT_MS / once["baseline"].median_ms))


def estimate_s(rung: Any, problem: Problem) -> float:
    """Return an estimate of the seconds that one run of a rung takes at `problem`.

    Larger and larger problems are measured until one takes 20 ms (GPU: 5 ms); its time is scaled by
    the FLOPs. Below an edge of 256 (GPU: 512) a run may mostly start threads, so it must take half
    a second there. Larger problems may overflow caches and take several times as long. Smaller
    problems that the launcher rejects are skipped; its exceptions at `problem` pass through.
    """
    on_gpu = rung.device == "gpu"
    if on_gpu:
        need_gpu()
    probe_s, probe_edge = (GPU_PROBE_S, GPU_PROBE_EDGE) if on_gpu else (PROBE_S, PROBE_EDGE)
    edge = 32
    while True:
        edge *= 2
        small = Problem(
            *(min(edge, size) for size in (problem.m, problem.n, problem.k)), problem.dtype
        )
        a, b = small.inputs(0, problem.kind, "cuda" if on_gpu else "numpy")
        if _layout(rung) != "nn":
            a, b = as_layout(a, b, _layout(rung))
        try:
            seconds = min(_seconds(rung.matmul, a, b, on_gpu) for _ in range(2))  # 1st may compile
        except ValueError:
            if small.flops == problem.flops:
                raise
            continue
        enough_s = probe_s if edge >= probe_edge else LONG_PROBE_S
        if seconds >= enough_s or small.flops == problem.flops:
            return seconds * problem.flops / small.flops


def _seconds(matmul: Callable, a: Any, b: Any, on_gpu: bool) -> float:
    """Return the wall-clock time of one call, until its result is complete."""
    start = time.perf_counter()
    matmul(a, b)
    if on_gpu:
        finish()
    return time.perf_counter() - start


def as_rungs(rungs: Sequence[Any]) -> list[Any]:
    """Return Rungs, looking up names in the ladder, also of twins.

    Raises ValueError for an unknown name.
    """
    from tiled_matmul.ladder import rung_or_twin

    return [rung_or_twin(rung) if isinstance(rung, str) else rung for rung in rungs]


def contestants(rungs: Sequence[Any]) -> tuple[str, dict[str, Callable]]:
    """Return the device, and a dict of matmuls by name: the baseline, then `rungs`.

    Raises ValueError, as `bench` does, for rungs that cannot be timed together here.
    """
    chosen = as_rungs(rungs)
    names = [rung.name for rung in chosen]
    if not chosen:
        raise ValueError("there is no rung to bench")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each rung can be timed once in a run; named twice: {', '.join(twice)}")
    devices = sorted({rung.device for rung in chosen})
    if len(devices) > 1:
        raise ValueError(f"CPU and GPU rungs have no common baseline; got {', '.join(names)}")
    where = devices[0]
    if where == "gpu":
        need_gpu()
    baseline = {BASELINES[where]: _numpy_matmul if where == "cpu" else _torch_matmul}
    return where, baseline | {rung.name: rung.matmul for rung in chosen}


def _numpy_matmul(a: Any, b: Any, out: Any) -> Any:
    return np.matmul(a, b, out=out)


def _torch_matmul(a: Any, b: Any, out: Any) -> Any:
    import torch

    if not a.dtype.is_floating_point:
        raise ValueError(f"cuBLAS multiplies floats; there is no baseline for {a.dtype}")
    return torch.matmul(a, b, out=out)


def _into(matmul: Callable, out: Any, sets: Sequence[tuple], number: int) -> None:
    matmul(*sets[number], out=out)


def _spot_check(name: str, out: Any, a: Any, b: Any, seed: int) -> None:
    """Check some rows of the last timed round's output, including the first and the last."""
    m = a.shape[0]
    drawn = np.random.default_rng(seed).integers(0, m, SPOT_ROWS)
    rows = np.unique([0, m - 1, *drawn])
    try:
        assert_matmul(out[rows], a[rows], b)
    except MatmulError as error:
        raise MatmulError(
            f"{name} was right before it was timed and wrong after (checked "
            f"rows {rows.tolist()}): {error}"
        ) from error


def _records(
    rungs: Sequence[Any],
    problem: Problem,
    where: str,
    timings: Mapping[str, Timing],
    threads: int | None,
    launches: int,
    graphs: bool,
) -> list[Record]:
    baseline = BASELINES[where]
    origin = provenance(where, threads)
    prints = {rung.name: _fingerprint(rung) for rung in rungs}
    languages = {rung.name: _language(rung) for rung in rungs}
    return [
        Record(
            rung=rung,
            m=problem.m,
            n=problem.n,
            k=problem.k,
            dtype=problem.dtype,
            launches=launches,
            graph=graphs,
            time_ms=timing.median_ms,
            spread=timing.spread,
            tflops=problem.flops / timing.median_ms / 1e9,
            baseline=baseline,
            ratio=timings[baseline].median_ms / timing.median_ms,
            kernel=prints.get(rung, ""),
            **of_language(origin, languages.get(rung)),
        )
        for rung, timing in timings.items()
    ]


def _fingerprint(rung: Any) -> str:
    """Return that of a Rung or Twin; what is only like one may know its own, or has none."""
    from tiled_matmul.ladder import Rung, Twin

    own = getattr(rung, "fingerprint", "")
    return fingerprint.of_rung(rung) if isinstance(rung, Rung | Twin) else own


def duration_text(seconds: float) -> str:
    """Return a time with its unit: "2.5 s", "3.1 min", "1.2 h"."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
