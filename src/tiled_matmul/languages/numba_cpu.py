"""Numba for the CPU: functions under `@njit`, compiled to machine code at their first call."""

from __future__ import annotations

from tiled_matmul.languages.python_ import OnCpu

NUMBA = OnCpu(
    name="numba",
    title="Numba",
    device="cpu",
    module="numba",
    packages=("numba",),
    sanitizers=(),
)
