"""This machine's CPU core: how many floats its vector instructions hold, and short timings on it.

The number of units is not reported by any CPU. It is two 512-bit or 256-bit units on most x86 cores
since 2013 and four 128-bit units on recent Arm server cores; cores with fewer are listed here.
Source: Agner Fog, "The microarchitecture of Intel, AMD and VIA CPUs", 2024; Arm, "Neoverse V2 Core
Software Optimization Guide", 2022.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tiled_matmul.machine.device import cpu_name, cpu_threads

ONE_UNIT = {"znver4"}  # 512-bit instructions run on two 256-bit units together


@dataclass(frozen=True)
class Core:
    """A CPU's cores. `lanes` are floats in a vector, `fma_units` multiply-add units in a core."""

    name: str
    cores: int
    vectors: str
    lanes: int
    fma_units: int


def cpu_core() -> Core:
    """Return this machine's CPU: the cores that this process may use, and the width of vectors."""
    from llvmlite import binding

    vectors, lanes, units = widest(binding.get_host_cpu_features(), binding.get_host_cpu_name())
    return Core(cpu_name(), cpu_threads(), vectors, lanes, units)


def widest(features: Mapping[str, bool], model: str = "") -> tuple[str, int, int]:
    """Return (name, float32 lanes, units) of a core's widest vectors, from LLVM's features."""
    if features.get("avx512f"):
        return "AVX-512", 16, 1 if model in ONE_UNIT else 2
    if features.get("fma"):
        return "AVX2 with FMA", 8, 2
    if features.get("neon"):
        return "NEON", 4, 4
    return "128-bit vectors", 4, 1


def shortest_ns(function: Callable, *arguments: Any, runs: int = 20) -> float:
    """Return the time of the fastest of `runs` calls in nanoseconds, after one call to compile."""
    function(*arguments)
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        function(*arguments)
        times.append(time.perf_counter_ns() - start)
    return float(min(times))
