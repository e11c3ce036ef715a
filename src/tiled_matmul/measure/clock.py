"""The fair clock: times functions alternately, in one run, on the same inputs.

It is fair for these reasons:

* Functions run in a fixed rotation, and each round starts with a different one. A machine that
  warms up, throttles or is shared therefore affects all of them alike.
* Inputs are random (zeros need less power and so run at higher clocks) and change every round.
* All functions use the same dtype and the same sums: TF32 off, float16 summed in float32.
* The result is the median, the spread the interquartile range over the median.

On a GPU the time is that between two CUDA events around one call. Before each call, a buffer of
four times the L2 cache is overwritten for at least a millisecond. This flushes the operands from
the cache, and it keeps the GPU busy while Python enqueues the launch: a Numba launch costs the host
up to 200 µs, which must not count as kernel time. After enqueuing, the clock checks whether the GPU
is still busy with the flush. If not, the sample is discarded and repeated with a flush twice as
long. The remaining overhead is some microseconds for one launch on the GPU.

With several launches, a sample is the mean of consecutive calls on the same operands, after the
same flush and one untimed call, so the cache is warm. With graphs, these calls are captured in a
CUDA graph and replayed, which leaves about a microsecond between two kernels. Numba launches on its
own stream and cannot be captured.

On a CPU the time comes from `time.perf_counter`, and BLAS and Numba use the same number of threads.
After a call, a library's threads spin for a while waiting for more work (OpenBLAS's for some
100 ms), so before each sample the clock waits until the process is idle, half a second at most.
Then the function runs untimed on the same inputs for 30 ms, at least once, to warm the caches and
wake its threads. Functions that take over a second skip this.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tiled_matmul.kit import backend
from tiled_matmul.machine.device import cpu_threads
from tiled_matmul.measure.precision import exact_sums
from tiled_matmul.measure.spent import CLOCK, COMPILER, spending

BUDGET_S = 2.0
MOST_S = "TILED_MATMUL_BUDGET_S"  # environment variable: upper limit for every budget
MIN_ROUNDS, MAX_ROUNDS, FEWEST_ROUNDS = 10, 200, 3
PATIENCE = 5  # after this many budgets, FEWEST_ROUNDS are enough
FLUSH_MS, MOST_PASSES = 1.0, 4096
REPLAY_MS = 0.3  # a sample of replays
AFTER, ANOTHER = "the kernel before", 1024  # the elements that it changes
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

    `device`, "cpu" or "gpu", selects the clock. In round r each function is called with
    `inputs[r % len(inputs)]`; functions without arguments need no inputs. Without `rounds`, timing
    runs for `budget_s` seconds, from 10 to 200 rounds; functions for which 10 rounds would take
    over five budgets get fewer, but at least 3. The environment variable TILED_MATMUL_BUDGET_S
    limits every budget, and one round is then enough, for quick runs. `threads` is the number of
    threads on a CPU, None for all. On a GPU, a sample is the mean of `launches` consecutive calls,
    which with `graphs` are one replay of a CUDA graph. `on_round(share)` is called after each round
    with the share done, up to 1. Two warm-up calls of each function (one if it takes over a second)
    compile kernels, untimed.

    Raises ValueError for no function, an unknown device, "gpu" in the simulators, several launches
    or graphs on a CPU, a function that cannot be captured, or too many threads. Exceptions of the
    functions pass through.
    """
    if not functions:
        raise ValueError("there is no function to time")
    if device not in ("cpu", "gpu"):
        raise ValueError(f'device must be "cpu" or "gpu", got {device!r}')
    if not inputs:
        raise ValueError("inputs must hold at least one tuple of arguments")
    if rounds is not None and (type(rounds) is not int or rounds < 1):
        raise ValueError(f"rounds must be a positive integer or None, got {rounds!r}")
    if not budget_s > 0:
        raise ValueError(f"budget_s must be positive, got {budget_s!r}")
    budget_s = min(budget_s, _most_s())
    fewest = FEWEST_ROUNDS
    if math.isfinite(_most_s()):
        fewest, rounds = 1, rounds and 1
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
    with limits, _no_garbage_collection(), spending(CLOCK):
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
            share = _share(done, time.perf_counter() - start, rounds, fewest, budget_s)
            if on_round is not None:
                on_round(share)
    return {name: Timing(tuple(samples[name])) for name in names}


def time_replays(
    functions: Mapping[str, Callable[[], object]],
    baseline: str,
    *,
    rounds: int,
    most: int = 50,
    after: Callable[[], object] | None = None,
) -> dict[str, Timing]:
    """Return a Timing for each function without arguments, of replays of CUDA graphs.

    A graph has so many launches, at most `most`, that those of the function named `baseline` take
    REPLAY_MS. Each follows one of the same kernel, which may let it start early. With `after`, such
    as `another_kernel`, a call of that precedes each, and its own time is taken off: a timing then
    says what a call adds between a program's other kernels. Raises as `time_interleaved`.
    """
    replays = functools.partial(time_interleaved, device="gpu", graphs=True)
    once = replays({baseline: functions[baseline]}, rounds=3, launches=3)
    launches = max(1, min(most, math.ceil(REPLAY_MS / once[baseline].median_ms)))
    if after is None:
        return replays(functions, rounds=rounds, launches=launches)
    pairs = {name: functools.partial(_both, after, call) for name, call in functions.items()}
    found = replays(pairs | {AFTER: after}, rounds=rounds, launches=launches)
    alone = found.pop(AFTER).median_ms
    return {
        name: Timing(tuple(max(0.0, each - alone) for each in timing.samples_ms))
        for name, timing in found.items()
    }


def _both(first: Callable[[], object], second: Callable[[], object]) -> None:
    first()
    second()


def another_kernel() -> Callable[[], object]:
    """Return a call of a small kernel of torch, which lets no other start before it ends."""
    import torch

    return functools.partial(torch.zeros(ANOTHER, device="cuda").add_, 1)


def _most_s() -> float:
    text = os.environ.get(MOST_S) or "inf"
    try:
        most = float(text)
    except ValueError:
        most = 0.0
    if not most > 0:
        raise ValueError(f"{MOST_S} must be a positive number of seconds, got {text!r}")
    return most


def need_gpu() -> None:
    """Raise ValueError if GPU kernels run in the simulators, whose times mean nothing."""
    chosen = backend.select()
    if not chosen.on_gpu:
        raise ValueError(
            f"the simulators have no clock: GPU kernels are timed on a GPU only ({chosen.reason})"
        )


@contextlib.contextmanager
def equal_threads(threads: int | None = None) -> Iterator[int]:
    """Make BLAS and Numba use `threads` threads each; None is the most that both support.

    Yields the number. Raises ValueError if `threads` is not from 1 to that maximum.
    """
    backend.select()
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    most = min(cpu_threads(), numba.config.NUMBA_NUM_THREADS)
    with threadpool_limits(most, user_api="blas"):
        # BLAS may have been built for fewer threads.
        most = min([most, *_blas_threads()])
    count = most if threads is None else threads
    if type(count) is not int or not 1 <= count <= most:
        raise ValueError(f"threads must be from 1 to {most} on this machine, got {threads!r}")
    with threadpool_limits(count, user_api="blas"):
        if any(blas != count for blas in _blas_threads()):
            raise ValueError(f"BLAS does not run on {count} threads, so timing would be unfair")
        numba.set_num_threads(count)
        try:
            yield count
        finally:
            numba.set_num_threads(before)


def _blas_threads() -> list[int]:
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def _share(done: int, elapsed_s: float, rounds: int | None, fewest: int, budget_s: float) -> float:
    """Return the share of the timing that is done, from 0 to 1."""
    if rounds is not None:
        return done / rounds
    patient = min(done / fewest, elapsed_s / (PATIENCE * budget_s))
    usual = min(done / MIN_ROUNDS, elapsed_s / budget_s)
    return min(1.0, max(usual, patient, done / MAX_ROUNDS))


@spending(COMPILER)
def _warm_up(functions: Mapping[str, Callable], arguments: tuple, device: str) -> None:
    for function in functions.values():
        start = time.perf_counter()
        function(*arguments)
        if device == "gpu":
            finish()
        if time.perf_counter() - start < 1:
            function(*arguments)


def finish() -> None:
    """Wait for the GPU."""
    import torch

    torch.cuda.synchronize()


def _captured(name: str, call: Callable[[], object], launches: int) -> Callable[[], None]:
    """Return a function that replays `launches` calls in a row.

    The warm-up has compiled and tuned everything. Raises ValueError for a call that waits or copies
    between host and device.
    """
    import torch

    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(launches):
                call()
    except RuntimeError as error:
        _capture_nothing()
        raise ValueError(f"{name} cannot be captured in a CUDA graph: {error}") from error
    return graph.replay


def _capture_nothing() -> None:
    """End what a failed capture began: torch's generator still takes itself for captured.

    Without this, every later `torch.randn` raises RuntimeError.
    """
    import torch

    nothing = torch.zeros(1, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        nothing.zero_()


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
    """CUDA events around the calls, after a flush of the L2 cache that hides the launches.

    With `graphs`, one call replays all launches of a sample.
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
                call()  # warms the cache for the timed calls
            self.start.record()
            for _ in range(self.calls):
                call()
            self.end.record()
            hidden = not self.start.query()
            self.end.synchronize()
            if hidden:
                return self.start.elapsed_time(self.end) / self.launches
            # The limit counts passes because on a shared GPU the time of a pass varies.
            if self.passes >= MOST_PASSES:
                raise ValueError(
                    f"{name} waits for the GPU, or takes longer to enqueue than {self.passes} "
                    "passes over the cache: its time would be the host's"
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
