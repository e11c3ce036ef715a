"""A GPU's clock and power while one call is repeated, as reported by its driver.

Under full load, a GPU's clock falls until the power is within its limit. That takes a while, so
calls run for some seconds, and only the last samples count. The driver (NVML, which `nvidia-smi`
reads) is queried while the GPU runs a batch. Each multiprocessor also counts its own cycles, which
may differ from the driver's clock multiplied by the time.
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
LAST = 0.4  # the share of samples used; the driver averages power over a second
SM_CLOCK = 1  # NVML_CLOCK_SM
REASONS = {0x4: "power", 0x8: "hardware", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Why the clock is lowered, by the bits of NVML's clocks throttle reasons."""


@dataclass(frozen=True)
class Sample:
    """The time of one call in a batch, and what the driver reported meanwhile, None if unknown.

    `at_s` counts from the start of the run. `reasons`, from REASONS, are why the clock was lowered.
    `cycles` are those that a multiprocessor counted for one call.
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
    """Medians of a call's time, its cycles and the driver's values in a long run; None if unknown.

    `reasons` are those of at least half of the last samples; `samples` are all samples.
    """

    time_ms: float
    clock_mhz: float | None = None
    watts: float | None = None
    limit_watts: float | None = None
    reasons: tuple[str, ...] | None = None
    cycles: float | None = None
    samples: tuple[Sample, ...] = field(default=(), repr=False, compare=False)


def under_load(call: Callable[[], object], seconds: float = 3.0) -> Load:
    """Repeat `call` on this GPU for `seconds`. Raises ValueError without a GPU."""
    import torch

    from tiled_matmul.measure.clock import need_gpu

    need_gpu()
    from tiled_matmul.measure.cycles import count_cycles, cycles_between

    count_cycles()  # compiles the kernel
    torch.cuda.synchronize()
    for _ in range(2):  # the first call may compile
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
    """Return the medians of the last samples, and the reasons of at least half of them."""
    last = samples[int(len(samples) * (1 - LAST)) :]

    def median(name: str) -> Any:
        known = [value for sample in last if (value := getattr(sample, name)) is not None]
        return statistics.median(known) if known else None

    known = [sample.reasons for sample in last if sample.reasons is not None]
    counts = Counter(reason for reasons in known for reason in reasons)
    reasons = tuple(sorted(reason for reason, count in counts.items() if 2 * count >= len(known)))
    names = ("time_ms", "clock_mhz", "watts", "limit_watts", "cycles")
    medians = {name: median(name) for name in names}
    return Load(**medians, reasons=reasons if known else None, samples=tuple(samples))


class Driver:
    """Queries one GPU through NVML. Raises OSError without NVML or for an unknown GPU."""

    def __init__(self, uuid: str) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        handle = ctypes.byref(self.device)
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), handle):
            raise OSError(f"the driver does not know {uuid}")

    @classmethod
    def of_torch(cls) -> Driver | None:
        """Return the Driver of torch's current GPU, or None if NVML cannot find it."""
        import torch

        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        try:
            return cls(f"GPU-{properties.uuid}")
        except (OSError, AttributeError):
            return None

    def ask(self) -> tuple[Any, ...]:
        """Return (clock in MHz, watts, limit in watts, reasons for a lowered clock)."""
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
