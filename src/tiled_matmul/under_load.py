"""A GPU's clock and power while one call runs over and over, as its driver tells them.

A GPU under full load lowers its clock until it draws no more than its limit. That takes a while, so
calls run for some seconds, and only what was seen towards the end counts. The driver (NVML, what
`nvidia-smi` asks) is asked between two launches, while the GPU works.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

BATCH_S = 0.05
LAST = 0.4  # the share of the samples that counts; the driver's power is the mean of a second
SM_CLOCK, POWER_CAP = 1, 0x4  # NVML_CLOCK_SM, nvmlClocksThrottleReasonSwPowerCap


@dataclass(frozen=True)
class Load:
    """One call's time in a long run, and what the GPU did: medians. None where it is not told.

    `capped` is the share of the samples in which the driver held the clock down for its power.
    """

    time_ms: float
    clock_mhz: float | None = None
    watts: float | None = None
    limit_watts: float | None = None
    capped: float | None = None


@dataclass(frozen=True)
class Sample:
    """One time, and what the driver said meanwhile."""

    time_ms: float
    clock_mhz: float | None = None
    watts: float | None = None
    limit_watts: float | None = None
    capped: float | None = None


def under_load(call: Callable[[], object], seconds: float = 3.0) -> Load:
    """Call it again and again for some seconds, on this GPU. Raises ValueError without a GPU."""
    import torch

    from tiled_matmul.bench import need_gpu

    need_gpu()
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
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(batch):
            call()
        end.record()
        told = driver.ask() if driver else ()  # while the batch runs
        end.synchronize()
        samples.append(Sample(begin.elapsed_time(end) / batch, *told))
    return summary(samples)


def summary(samples: Sequence[Sample]) -> Load:
    """Return the medians of the last samples; of `capped` the mean."""
    last = samples[int(len(samples) * (1 - LAST)) :]

    def middle(name: str, how: Callable = statistics.median) -> Any:
        values = [getattr(sample, name) for sample in last]
        told = [value for value in values if value is not None]
        return how(told) if told else None

    names = ("time_ms", "clock_mhz", "watts", "limit_watts")
    return Load(*map(middle, names), middle("capped", statistics.fmean))


class Driver:
    """NVML's answers for one GPU. Raises OSError where there is no NVML, or it has no such GPU."""

    def __init__(self, uuid: str) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        found = ctypes.byref(self.device)
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), found):
            raise OSError(f"the driver does not tell of {uuid}")

    @classmethod
    def of_torch(cls) -> Driver | None:
        """Return the driver's side of torch's current GPU, or None where it is not told."""
        import torch

        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        try:
            return cls(f"GPU-{properties.uuid}")
        except (OSError, AttributeError):
            return None

    def ask(self) -> tuple[float | None, ...]:
        """Return (clock in MHz, watts, limit in watts, 1 if the power holds the clock down)."""
        clock = self._value("nvmlDeviceGetClockInfo", ctypes.c_uint, SM_CLOCK)
        used = self._value("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        limit = self._value("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint)
        why = self._value("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
        used, limit = (None if mw is None else mw / 1000 for mw in (used, limit))
        return clock, used, limit, None if why is None else float(bool(why & POWER_CAP))

    def _value(self, name: str, kind: Any, *which: int) -> int | None:
        value = kind()
        failed = getattr(self.nvml, name)(self.device, *which, ctypes.byref(value))
        return None if failed else value.value
