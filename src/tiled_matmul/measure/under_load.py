"""A GPU's clock and power while one call runs over and over, as its driver reports them.

A GPU under full load lowers its clock until it draws no more than its limit. That takes a while, so
calls run for some seconds, and only the samples towards the end count. The driver (NVML, which
`nvidia-smi` reads) is queried between two launches, while the GPU works. A multiprocessor also
counts its own cycles, which need not be the driver's clock times the time.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

BATCH_S = 0.05
LAST = 0.4  # the share of the samples that counts; the driver's power is the mean of a second
SM_CLOCK = 1  # NVML_CLOCK_SM
REASONS = {0x4: "power", 0x8: "hardware", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Why a clock is held down, by the bits of NVML's clocks throttle reasons."""


@dataclass(frozen=True)
class Sample:
    """One batch's time of a call, and what the driver reported meanwhile, None where nothing.

    `at_s` counts from the run's start. `reasons` are why the driver held the clock down, of
    REASONS. `cycles` are a multiprocessor's own, of one call.
    """

    at_s: float
    time_ms: float
    clock_mhz: float | None = None
    watts: float | None = None
    limit_watts: float | None = None
    reasons: tuple[str, ...] | None = None
    cycles: float | None = None


@dataclass(frozen=True)
class Load:
    """One call's time and cycles in a long run, and what the GPU did: medians, None if not known.

    `reasons` are those that at least half of the counted samples have; `samples` are all.
    """

    time_ms: float
    clock_mhz: float | None = None
    watts: float | None = None
    limit_watts: float | None = None
    reasons: tuple[str, ...] | None = None
    cycles: float | None = None
    samples: tuple[Sample, ...] = field(default=(), repr=False, compare=False)


def under_load(call: Callable[[], object], seconds: float = 3.0) -> Load:
    """Call it again and again for some seconds, on this GPU. Raises ValueError without a GPU."""
    import torch

    from tiled_matmul.measure.clock import need_gpu

    need_gpu()
    from tiled_matmul.measure.cycles import count_cycles, cycles_between

    count_cycles()  # compiles
    torch.cuda.synchronize()
    for _ in range(2):  # the first compiles
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        once = time.perf_counter() - start
    batch = max(1, int(BATCH_S / once))
    driver, samples = Driver.of_torch(), []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        at_s = time.perf_counter() - start
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before = count_cycles()
        begin.record()
        for _ in range(batch):
            call()
        end.record()
        after = count_cycles()
        reported = driver.ask() if driver else ()  # while the batch runs
        torch.cuda.synchronize()
        counted = cycles_between(before, after)
        cycles = None if counted is None else counted / batch
        samples.append(Sample(at_s, begin.elapsed_time(end) / batch, *reported, cycles=cycles))
    return summary(samples)


def summary(samples: Sequence[Sample]) -> Load:
    """Return the medians of the last samples, and the reasons that half of them have."""
    last = samples[int(len(samples) * (1 - LAST)) :]

    def middle(name: str) -> Any:
        known = [value for sample in last if (value := getattr(sample, name)) is not None]
        return statistics.median(known) if known else None

    known = [sample.reasons for sample in last if sample.reasons is not None]
    often = Counter(reason for reasons in known for reason in reasons)
    reasons = tuple(sorted(reason for reason, times in often.items() if 2 * times >= len(known)))
    names = ("time_ms", "clock_mhz", "watts", "limit_watts", "cycles")
    middles = {name: middle(name) for name in names}
    return Load(**middles, reasons=reasons if known else None, samples=tuple(samples))


class Driver:
    """NVML's answers for one GPU. Raises OSError where there is no NVML, or it has no such GPU."""

    def __init__(self, uuid: str) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        handle = ctypes.byref(self.device)
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), handle):
            raise OSError(f"the driver does not know {uuid}")

    @classmethod
    def of_torch(cls) -> Driver | None:
        """Return the driver's side of torch's current GPU, or None where NVML has none."""
        import torch

        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        try:
            return cls(f"GPU-{properties.uuid}")
        except (OSError, AttributeError):
            return None

    def ask(self) -> tuple[Any, ...]:
        """Return (clock in MHz, watts, limit in watts, why the clock is held down)."""
        clock = self._value("nvmlDeviceGetClockInfo", ctypes.c_uint, SM_CLOCK)
        used = self._value("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        limit = self._value("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint)
        why = self._value("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
        used, limit = (None if mw is None else mw / 1000 for mw in (used, limit))
        if why is None:
            return clock, used, limit, None
        return clock, used, limit, tuple(sorted({REASONS[bit] for bit in REASONS if why & bit}))

    def _value(self, name: str, kind: Any, *which: int) -> int | None:
        value = kind()
        failed = getattr(self.nvml, name)(self.device, *which, ctypes.byref(value))
        return None if failed else value.value
