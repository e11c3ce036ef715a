"""The fair clock: a rung and its baseline in turn, in one run, on the same fresh inputs.

What is fair about it:

* Functions run strictly in turn, round by round, and each round starts with another one, so that
  a machine that warms up, throttles or is shared slows all of them alike.
* Inputs are random (zeros cost less power and so run at higher clocks) and change every round.
* The same dtype and the same sums on both sides: TF32 off, float16 summed in float32.
* Every rung's product is checked before it is timed, and spot-checked on what the last round left.
* The number is the median, the spread the interquartile range over the median.

On a GPU the time lies between two CUDA events around one call. Before each, a buffer of four times
the L2 cache is overwritten, again and again, for at least a millisecond. That puts the cache in a
stated condition (full of the buffer, nothing of the operands in it), and it keeps the GPU busy
while Python enqueues the launch: a launch through Numba costs the host up to 200 µs, which belongs
to Python and not to the kernel. Whether the GPU was still busy when the last launch was enqueued is
asked each time; a sample for which it was not is thrown away and taken again behind a longer
flush. What remains is some microseconds between the events, the price of one launch on the GPU.

That price would be a good part of a small product's time. So where one call of cuBLAS takes less
than 0.2 ms, a sample is the mean of as many calls in a row as fill 0.2 ms, the same number for
every function and on the same operands, behind the same flush and one call that does not count. The
cache then holds what the calls before have left in it. A record's `launches` says which of the two
it was: 1, with nothing of the operands in the cache, or more, with the cache warm.

Where all rungs of a run are Triton's, a sample's calls, cuBLAS's too, are captured in a CUDA graph
and replayed: the GPU then starts kernel after kernel by itself, as it does in a program whose
author cares about such sizes. What is left of a launch is about a microsecond between two kernels.
A record says so by `graph`. Numba's launches are on a stream of their own and cannot be captured.

A rung whose operands lie column by column (`Rung.layout`) gets the same values so stored; its
ratio, too, is to cuBLAS on row-major operands.

On a CPU the time is `time.perf_counter`'s, and BLAS and Numba get the same number of threads.
Threads of the function before spin for a while in the hope of more work (OpenBLAS's for some
100 ms), so before each sample the clock waits until the process is idle, half a second at most.
Then the function runs for 30 ms untimed on the same inputs, once if that is longer, and not at all
once it takes over a second: the caches hold what they can of its own data, its threads are awake.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from tiled_matmul import ROOT
from tiled_matmul.check import MatmulError, assert_matmul, poison, run_checked
from tiled_matmul.kit import backend
from tiled_matmul.machine import device
from tiled_matmul.measure.results import Record
from tiled_matmul.problem import Problem, as_layout

BASELINES = {"cpu": "numpy", "gpu": "cublas"}
BUDGET_S = 2.0
MIN_ROUNDS, MAX_ROUNDS, FEWEST_ROUNDS = 10, 200, 3
PATIENCE = 5  # after so many budgets, FEWEST_ROUNDS are enough
MAX_RUN_S = 2.0
INPUT_SETS = 3
FLUSH_MS, LONGEST_FLUSH_MS = 1.0, 100.0
SHORT_MS, MOST_LAUNCHES = 0.2, 64
PROBE_S, LONG_PROBE_S, PROBE_EDGE = 0.02, 0.5, 256
GPU_PROBE_S, GPU_PROBE_EDGE = 0.005, 512
SPOT_ROWS = 16
LEAD_S, LONG_S = 0.03, 1.0
IDLE_STEP_S, IDLE_SHARE, LONGEST_WAIT_S = 0.005, 0.2, 0.5


@dataclass(frozen=True)
class Timing:
    """One function's samples in milliseconds, in the order of the rounds."""

    samples_ms: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.samples_ms or not all(math.isfinite(t) and t >= 0 for t in self.samples_ms):
            raise ValueError(f"a timing needs finite samples of 0 or more, got {self.samples_ms!r}")

    @property
    def median_ms(self) -> float:
        return float(np.median(self.samples_ms))

    @property
    def spread(self) -> float:
        """Interquartile range over the median; infinite if the median is 0."""
        low, high = np.percentile(self.samples_ms, (25, 75))
        return float((high - low) / self.median_ms) if self.median_ms else math.inf

    def __repr__(self) -> str:
        return (
            f"{self.median_ms:.4g} ms ± {self.spread:.1%} "
            f"(median, interquartile range, {len(self.samples_ms)} rounds)"
        )


def time_interleaved(
    functions: Mapping[str, Callable[..., object]],
    *,
    device: str,
    inputs: Sequence[tuple] = ((),),
    rounds: int | None = None,
    budget_s: float = BUDGET_S,
    threads: int | None = None,
    launches: int = 1,
    graphs: bool = False,
    on_round: Callable[[float], object] | None = None,
) -> dict[str, Timing]:
    """Time `functions` against each other and return a Timing for each, by the same names.

    `device` is "cpu" or "gpu": which clock. In round r each function is called with
    `inputs[r % len(inputs)]`; functions that take no arguments need none. Without `rounds`, it runs
    for `budget_s` seconds, at least 10 and at most 200 rounds; functions so slow that 10 rounds
    would take five budgets get fewer, never under 3. `threads` is how many a CPU run may use, None
    all. With `launches` above 1, on a GPU only, a sample is the mean of so many calls in a row;
    with `graphs`, on a GPU only, these are one replay of a CUDA graph. `on_round` hears the share
    done, up to 1. Not counted: two warm-up calls of each function (one if it takes over a second),
    in which kernels are compiled.

    Raises ValueError for nothing to time, an unknown device, a GPU asked for in the simulators,
    several launches or graphs on a CPU, a function that cannot be captured, or more threads than
    there are; what a function raises passes through.
    """
    if not functions:
        raise ValueError("there is no function to time")
    if device not in BASELINES:
        raise ValueError(f'device must be "cpu" or "gpu", got {device!r}')
    if not inputs:
        raise ValueError("inputs must hold one tuple of arguments at least")
    if rounds is not None and (type(rounds) is not int or rounds < 1):
        raise ValueError(f"rounds must be a positive integer or None, got {rounds!r}")
    if not budget_s > 0:
        raise ValueError(f"budget_s must be positive, got {budget_s!r}")
    if type(launches) is not int or launches < 1:
        raise ValueError(f"launches must be a positive integer, got {launches!r}")
    if launches > 1 and device != "gpu":
        raise ValueError(f"on a CPU a sample is one call; launches={launches} is for a GPU")
    if graphs and device != "gpu":
        raise ValueError("CUDA graphs are for a GPU; on a CPU leave graphs=False")
    if device == "gpu":
        need_gpu()
        sample, limits = _GpuClock(launches, graphs).sample, exact_sums()
    else:
        sample, limits = _CpuClock().sample, equal_threads(threads)
    names = list(functions)
    samples: dict[str, list[float]] = {name: [] for name in names}
    with limits, _no_garbage_collection():
        _warm_up(functions, inputs[0], device)
        calls = {
            name: [functools.partial(function, *arguments) for arguments in inputs]
            for name, function in functions.items()
        }
        if graphs:
            calls = {name: [_captured(name, c, launches) for c in calls[name]] for name in names}
        start = time.perf_counter()
        done, share = 0, 0.0
        while share < 1:
            first = done % len(names)
            for name in names[first:] + names[:first]:
                samples[name].append(sample(name, calls[name][done % len(inputs)]))
            done += 1
            share = _share(done, time.perf_counter() - start, rounds, budget_s)
            if on_round is not None:
                on_round(share)
    return {name: Timing(tuple(samples[name])) for name in names}


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
    rungs against cuBLAS. `budget_s` is the time for all the timed rounds together, `seed` draws
    the inputs, `launches` is how many calls make a sample (None: one on a CPU, on a GPU as many as
    the baseline's time asks for), `graphs` whether they are replayed as a CUDA graph (None: where
    all rungs are Triton's). `on_progress(what, share)` hears what goes on. All inputs of the run
    are in memory at once: three times A and B, and one C for each function.

    A launcher that does not take the problem raises ValueError or TypeError, which passes through;
    with `on_refusal(name, error)` that is told instead, and the others are timed. If all refuse,
    nothing is, and no record returned.

    Raises MatmulError, and times nothing, if a rung is wrong; MatmulError after timing if what the
    last round left is wrong; ValueError for no rung, a rung named twice, both devices at once, a
    rung that would take more than `max_run_s` seconds for one run, or GPU rungs in the simulators.
    """
    where, matmuls = contestants(rungs)
    tell = on_progress or (lambda what, share: None)
    with exact_sums() if where == "gpu" else equal_threads(threads) as count:
        for rung in _as_rungs(rungs):
            try:
                seconds = estimate_s(rung, problem) if max_run_s < math.inf else 0.0
            except (ValueError, TypeError):
                if on_refusal is None:
                    raise
                continue  # the check meets it again
            if seconds > max_run_s:
                raise ValueError(
                    f"{rung.name} would take about {seconds:.3g} s for one run at "
                    f"{problem.shape_text}; the limit is {max_run_s:g} s"
                )
        sets = _operand_sets(_as_rungs(rungs), problem, where, seed)
        outs = {}
        for name, matmul in list(matmuls.items()):
            tell(f"checking {name}", 0.0)
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
            tell("timing", share)
            if share < 1:  # so that what the last round leaves was written in the last round
                for out in outs.values():
                    poison(out)

        functions = {
            name: functools.partial(_into, matmul, outs[name], sets[name])
            for name, matmul in matmuls.items()
        }
        if launches is None:
            launches = _launches(functions[BASELINES[where]]) if where == "gpu" else 1
        if graphs is None:
            graphs = all(getattr(rung, "in_triton", False) for rung in _as_rungs(rungs))
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
            tell(f"checking {name} again", 1.0)
            _spot_check(name, out, *sets[BASELINES[where]][last % INPUT_SETS], seed)
    return _records(problem, where, timings, count, launches, graphs)


def _operand_sets(
    rungs: Sequence[Any], problem: Problem, where: str, seed: int
) -> dict[str, list[tuple]]:
    """Return INPUT_SETS pairs (a, b) for each function: one set of values, in each one's layout.

    Functions share the tensors; an operand is stored a second time where a rung wants columns.
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


def _launches(baseline: Callable[[int], object]) -> int:
    """Return how many calls in a row make a sample, by what one call of the baseline takes."""
    once = time_interleaved({"baseline": baseline}, device="gpu", inputs=[(0,)], rounds=5)
    return min(MOST_LAUNCHES, math.ceil(SHORT_MS / once["baseline"].median_ms))


def estimate_s(rung: Any, problem: Problem) -> float:
    """Return about how many seconds one run of a rung takes at `problem`.

    Measured on ever larger problems until one takes 20 ms, on a GPU 5 ms, and scaled by the FLOPs.
    Below an edge of 256 (GPU: 512) a run may spend its time on starting threads, so there only half
    a second counts. Caches that overflow later are not seen: large problems may take several times
    as long. A smaller problem that the launcher refuses is left out; what it raises at `problem`
    passes through.
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
    """Return the time of one call by the wall's clock, until its result is there."""
    start = time.perf_counter()
    matmul(a, b)
    if on_gpu:
        _finish()
    return time.perf_counter() - start


def _finish() -> None:
    """Wait for the GPU."""
    import torch

    torch.cuda.synchronize()


@contextlib.contextmanager
def exact_sums() -> Iterator[None]:
    """Within this, torch's matmul sums as the rungs do: no TF32, float16 summed in float32."""
    import torch

    settings = torch.backends.cuda.matmul
    names = (
        "allow_tf32",
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    )
    before = {name: getattr(settings, name) for name in names}
    try:
        for name in names:
            setattr(settings, name, False)
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


@contextlib.contextmanager
def equal_threads(threads: int | None = None) -> Iterator[int]:
    """Within this, BLAS and Numba use `threads` threads each; None takes the most that both can.

    Yields the number. Raises ValueError if it is not between 1 and that.
    """
    backend.select()
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    most = min(device.cpu_threads(), numba.config.NUMBA_NUM_THREADS)
    with threadpool_limits(most, user_api="blas"):
        # BLAS may have been built for fewer threads than asked for.
        most = min([most, *_blas_threads()])
    count = most if threads is None else threads
    if type(count) is not int or not 1 <= count <= most:
        raise ValueError(f"threads must be from 1 to {most} on this machine, got {threads!r}")
    with threadpool_limits(count, user_api="blas"):
        if any(blas != count for blas in _blas_threads()):
            raise ValueError(f"BLAS does not run on {count} threads, so nothing fair can be timed")
        numba.set_num_threads(count)
        try:
            yield count
        finally:
            numba.set_num_threads(before)


def _blas_threads() -> list[int]:
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@functools.cache
def commit() -> str:
    """Return the code's commit: TILED_MATMUL_COMMIT if set, else git's, else "unknown".

    "-dirty" is appended where `src/` differs from it.
    """
    if os.environ.get("TILED_MATMUL_COMMIT"):
        return os.environ["TILED_MATMUL_COMMIT"]
    try:
        head = _git("rev-parse", "--short", "HEAD")
        return head + "-dirty" if _git("status", "--porcelain", "--", "src") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _share(done: int, elapsed_s: float, rounds: int | None, budget_s: float) -> float:
    """How much of the timing is done, from 0 to 1; 1 ends it."""
    if rounds is not None:
        return done / rounds
    patient = min(done / FEWEST_ROUNDS, elapsed_s / (PATIENCE * budget_s))
    usual = min(done / MIN_ROUNDS, elapsed_s / budget_s)
    return min(1.0, max(usual, patient, done / MAX_ROUNDS))


def _warm_up(functions: Mapping[str, Callable], arguments: tuple, device: str) -> None:
    for function in functions.values():
        start = time.perf_counter()
        function(*arguments)
        if device == "gpu":
            _finish()
        if time.perf_counter() - start < 1:
            function(*arguments)


def _captured(name: str, call: Callable[[], object], launches: int) -> Callable[[], None]:
    """Return what replays so many calls in a row. Raises ValueError for one that waits or copies.

    The call was made before: nothing is compiled or tuned while it is captured.
    """
    import torch

    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(launches):
                call()
    except RuntimeError as error:
        raise ValueError(f"{name} cannot be captured in a CUDA graph: {error}") from error
    return graph.replay


class _CpuClock:
    """`perf_counter` around one call, after untimed calls of the same function."""

    def __init__(self) -> None:
        self.last_s: dict[str, float] = {}

    def sample(self, name: str, call: Callable[[], object]) -> float:
        _wait_until_idle()
        if self.last_s.get(name, 0) < LONG_S:
            begin = time.perf_counter()
            call()
            while time.perf_counter() - begin < LEAD_S:
                call()
        start = time.perf_counter()
        call()
        self.last_s[name] = time.perf_counter() - start
        return self.last_s[name] * 1e3


def _wait_until_idle() -> None:
    """Sleep until this process's threads do next to nothing, or LONGEST_WAIT_S have passed."""
    deadline = time.perf_counter() + LONGEST_WAIT_S
    while time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(IDLE_STEP_S)
        if time.process_time() - before < IDLE_SHARE * IDLE_STEP_S:
            return


class _GpuClock:
    """CUDA events around the calls, behind a flush of the L2 cache that hides the launches.

    With `graphs` what is called is a replay of all of a sample's launches.
    """

    def __init__(self, launches: int = 1, graphs: bool = False) -> None:
        import torch

        self.launches, self.calls = launches, 1 if graphs else launches
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        size = max(4 * properties.L2_cache_size, 2**25)
        self.buffer = torch.empty(size, dtype=torch.uint8, device="cuda")
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._overwrite(10)
        torch.cuda.synchronize()
        self.start.record()
        self._overwrite(10)
        self.end.record()
        self.end.synchronize()
        self.pass_ms = self.start.elapsed_time(self.end) / 10
        self.passes = max(2, math.ceil(FLUSH_MS / self.pass_ms))

    def _overwrite(self, times: int) -> None:
        for _ in range(times):
            self.buffer.zero_()

    def sample(self, name: str, call: Callable[[], object]) -> float:
        while True:
            self._overwrite(self.passes)
            if self.launches > 1:
                call()  # so that all the timed ones find the cache alike
            self.start.record()
            for _ in range(self.calls):
                call()
            self.end.record()
            hidden = not self.start.query()
            self.end.synchronize()
            if hidden:
                return self.start.elapsed_time(self.end) / self.launches
            if self.passes * self.pass_ms > LONGEST_FLUSH_MS:
                raise ValueError(
                    f"{name} waits for the GPU, or takes over {LONGEST_FLUSH_MS:g} ms to "
                    "enqueue: its time would be the host's"
                )
            self.passes *= 2


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def need_gpu() -> None:
    """Raise ValueError where GPU kernels run in the simulators, whose time means nothing."""
    chosen = backend.select()
    if not chosen.on_gpu:
        raise ValueError(
            f"the simulators have no clock: GPU kernels are timed on a GPU only ({chosen.reason})"
        )


def _as_rungs(rungs: Sequence[Any]) -> list[Any]:
    from tiled_matmul.ladder import rung as by_name

    return [by_name(rung) if isinstance(rung, str) else rung for rung in rungs]


def contestants(rungs: Sequence[Any]) -> tuple[str, dict[str, Callable]]:
    """Return the device, and the matmul of each by name: the baseline, then `rungs`.

    Raises ValueError for rungs that cannot be timed against each other here, as `bench` does.
    """
    wanted = _as_rungs(rungs)
    names = [rung.name for rung in wanted]
    if not wanted:
        raise ValueError("there is no rung to bench")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"a rung can be benched once in a run; named twice: {', '.join(twice)}")
    devices = sorted({rung.device for rung in wanted})
    if len(devices) > 1:
        raise ValueError(f"CPU and GPU rungs have no common baseline; got {', '.join(names)}")
    where = devices[0]
    if where == "gpu":
        need_gpu()
    baseline = {BASELINES[where]: _numpy_matmul if where == "cpu" else _torch_matmul}
    return where, baseline | {rung.name: rung.matmul for rung in wanted}


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
    """Check some rows of what the last timed round left, the first and the last among them."""
    m = a.shape[0]
    drawn = np.random.default_rng(seed).integers(0, m, SPOT_ROWS)
    rows = np.unique([0, m - 1, *drawn])
    try:
        assert_matmul(out[rows], a[rows], b)
    except MatmulError as error:
        raise MatmulError(
            f"{name} was right before it was timed and wrong after (rows {rows.tolist()} "
            f"looked at): {error}"
        ) from error


def _records(
    problem: Problem,
    where: str,
    timings: Mapping[str, Timing],
    threads: int | None,
    launches: int,
    graphs: bool,
) -> list[Record]:
    baseline = BASELINES[where]
    origin = provenance(where, threads)
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
            **origin,
        )
        for rung, timing in timings.items()
    ]


def provenance(where: str, threads: int | None = None) -> dict[str, Any]:
    """Return what every stored number says of where it is from: machine, versions, date, commit.

    `where` is "gpu", or "cpu" on so many `threads`. The keys are those of a Record.
    """
    name, driver = machine(where, threads)
    return {
        "gpu": name,
        "driver": driver,
        "versions": versions(where),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def machine(where: str, threads: int | None) -> tuple[str, str]:
    """Return what a record's `gpu` and `driver` hold for "cpu" (on so many threads) or "gpu"."""
    if where == "gpu":
        import torch

        return torch.cuda.get_device_name(), device.driver_version()
    return f"CPU: {device.cpu_name()}, {threads} thread{'s' if threads != 1 else ''}", ""


def versions(where: str) -> dict[str, str]:
    """Return the versions that bear on a time: Python's, the packages', and BLAS's or CUDA's."""
    import platform

    packages = ["numpy", "numba"] + (["numba-cuda", "torch", "triton"] if where == "gpu" else [])
    found = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    if where == "gpu":
        import torch

        found["cuda"] = str(torch.version.cuda)
        return found
    from threadpoolctl import threadpool_info

    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            found[pool["internal_api"]] = str(pool["version"])
    return found
