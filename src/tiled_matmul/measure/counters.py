"""What a GPU's counters say of each rung, at one size: `results/counters/*.json`.

`tools/take_ladder_counters.py` takes them with NVIDIA's `ncu`; this reads them, under names of our
own. Caches are flushed before each launch that is counted, and the clock is left as it is, so the
time is near that of the bench but is not it: where speed is meant, records of the bench are.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as

COUNTERS = ROOT / "results" / "counters"
BASELINE = "cublas"
LANES = 32

# What the course's figures need of every GPU, by our names.
NEEDED = {
    "time_ns": "gpu__time_duration.sum",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_load_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_store_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "instructions": "smsp__inst_executed.sum",
    "thread_fmas": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "shared_bytes": "launch__shared_mem_per_block",
    "waves": "launch__waves_per_multiprocessor",
}
# What explains more, where this `ncu` and this GPU know it.
WELCOME = {
    "clock_hz": "smsp__cycles_elapsed.avg.per_second",
    "l2_bytes": "lts__t_bytes.sum",
    "l2_sectors": "lts__t_sectors.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    # What multiprocessors ask the L2 for, after neighbours' requests were put together, and get.
    "l2_tex_read_sectors": "lts__t_sectors_srcunit_tex_op_read.sum",
    "arrived_bytes": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "shared_load_requests": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_store_requests": "smsp__sass_inst_executed_op_shared_st.sum",
    # Asynchronous copies: of 4 and 8 bytes through the L1 cache, of 16 past it.
    "async_requests": "smsp__inst_executed_op_ldgsts.sum",
    "async_cached_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
    "async_bypass_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
    "async_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "async_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
    "fma_pipe_pct": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "fma_cycles_pct": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "shared_pipe_pct": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "tensor_instructions": "sm__inst_executed_pipe_tensor.sum",
    "tensor_cycles_pct": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "dram_pct": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_pct": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "issue_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "eligible_warps": "smsp__warps_eligible.avg.per_cycle_active",
    "shared_static_bytes": "launch__shared_mem_per_block_static",
    "shared_dynamic_bytes": "launch__shared_mem_per_block_dynamic",
    "blocks_by_registers": "launch__occupancy_limit_registers",
    "blocks_by_shared": "launch__occupancy_limit_shared_mem",
}
STALLS = (
    *("long_scoreboard", "short_scoreboard", "barrier", "math_pipe_throttle", "mio_throttle"),
    *("lg_throttle", "not_selected", "wait", "dispatch_stall", "no_instruction", "selected"),
)
WELCOME |= {
    f"stall_{reason}": f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    for reason in STALLS
}
METRICS = NEEDED | WELCOME
PROVENANCE = ("gpu", "compute_capability", "driver", "versions", "date", "commit")

# What is computed from the counters. Instructions are counted for each warp, FMAs for each thread.
DERIVED: dict[str, Callable[[Mapping[str, float]], float]] = {
    "fmas": lambda v: v["thread_fmas"] / LANES,
    "instructions_per_fma": lambda v: v["instructions"] * LANES / v["thread_fmas"],
    "shared_wavefronts": lambda v: v["shared_load_wavefronts"] + v["shared_store_wavefronts"],
    "wavefronts_per_fma": lambda v: (
        (v["shared_load_wavefronts"] + v["shared_store_wavefronts"]) * LANES / v["thread_fmas"]
    ),
    "conflicts": lambda v: v["shared_load_conflicts"] + v["shared_store_conflicts"],
    "sectors_read": lambda v: (
        v["load_sectors"] + v["async_cached_sectors"] + v["async_bypass_sectors"]
    ),
    "sectors_per_load": lambda v: v["load_sectors"] / v["load_requests"],
    "dram_bytes": lambda v: v["dram_read_bytes"] + v["dram_write_bytes"],
    "time_ms": lambda v: v["time_ns"] / 1e6,
}


@dataclass(frozen=True)
class Kernel:
    """One launch: its name as `ncu` prints it, its grid and block as (x, y, z)."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Counted:
    """One rung's counters. `counted["registers"]` is a number, by the names of METRICS and DERIVED.

    Where a rung launches several kernels, sums are of all and the rest is the longest one's.
    """

    rung: str
    kernels: tuple[Kernel, ...]

    @property
    def longest(self) -> Kernel:
        return max(self.kernels, key=lambda kernel: kernel.values["time_ns"])

    @property
    def values(self) -> dict[str, float]:
        """All that was counted and all that follows from it."""
        found = dict(self.longest.values)
        for name in found:
            if METRICS[name].endswith(".sum"):
                found[name] = sum(kernel.values[name] for kernel in self.kernels)
        for name, compute in DERIVED.items():
            try:
                found[name] = compute(found)
            except (KeyError, ZeroDivisionError):  # no cp.async, no shared memory, no FMA
                continue
        return found

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> float:
        """Return one number; raise ValueError that lists what there is for an unknown name."""
        values = self.values
        if name not in values:
            there = ", ".join(values)
            raise ValueError(f"{name} was not counted of {self.rung}; there are {there}")
        return values[name]


@dataclass(frozen=True)
class LadderCounters:
    """The counters of all rungs at one problem on one GPU, in the ladder's order, cuBLAS first.

    `unknown` are the counters that were asked for and that this `ncu` did not know.
    """

    provenance: Mapping[str, Any]
    m: int
    n: int
    k: int
    dtype: str
    unknown: tuple[str, ...]
    rungs: Mapping[str, Counted]

    @property
    def gpu(self) -> str:
        return self.provenance["gpu"]

    def __contains__(self, rung: str) -> bool:
        return rung in self.rungs

    def __getitem__(self, rung: str) -> Counted:
        """Return a rung's counters; raise ValueError that lists the counted ones for another."""
        if rung not in self.rungs:
            raise ValueError(f"no counters of {rung}; there are {', '.join(self.rungs)}")
        return self.rungs[rung]

    def table(self, names: Sequence[str], rungs: Sequence[str] | None = None) -> Any:
        """Return a Table, a line a rung, a column for each of `names`; None where there is none."""
        from tiled_matmul.microscope.table import table

        chosen = list(self.rungs) if rungs is None else rungs
        return table(
            [
                {"rung": rung} | {name: self[rung].values.get(name) for name in names}
                for rung in chosen
            ]
        )


def load(path: str | os.PathLike) -> LadderCounters:
    """Read a file of counters. Raises ValueError naming the file and what is wrong in it."""
    return load_as(path, parse, "counters")


def parse(stored: Mapping[str, Any]) -> LadderCounters:
    """Return what a file holds. Raises ValueError for a rung that lacks what NEEDED names."""
    missing = [key for key in PROVENANCE if not stored["provenance"].get(key)]
    if missing:
        raise ValueError(f"the provenance lacks {', '.join(missing)}")
    rungs = {
        rung: Counted(rung, tuple(_kernel(rung, kernel) for kernel in kernels))
        for rung, kernels in stored["rungs"].items()
    }
    for rung, counted in rungs.items():
        if not counted.kernels:
            raise ValueError(f"{rung} has no kernel")
    problem = stored["problem"]
    sizes = {key: problem[key] for key in ("m", "n", "k", "dtype")}
    return LadderCounters(
        stored["provenance"], **sizes, unknown=tuple(stored["unknown"]), rungs=rungs
    )


def _kernel(rung: str, stored: Mapping[str, Any]) -> Kernel:
    values = {}
    for name, metric in METRICS.items():
        value = stored["counters"].get(metric)
        if value is None and name in NEEDED:
            raise ValueError(f"{rung} lacks {metric}")
        if value is None:
            continue
        fine = isinstance(value, int | float) and not isinstance(value, bool)
        if not fine or not math.isfinite(value) or value < 0:
            raise ValueError(f"{rung}: {metric} must be a number of 0 or more, got {value!r}")
        values[name] = value
    return Kernel(stored["name"], tuple(stored["grid"]), tuple(stored["block"]), values)


def as_text(provenance: Mapping, problem: Mapping, unknown: Sequence[str], rungs: Mapping) -> str:
    """Return a file's text: JSON, a line a rung. `rungs` maps each to its kernels as stored."""
    lines = [f"  {json.dumps(rung)}: {json.dumps(kernels)}" for rung, kernels in rungs.items()]
    return (
        f'{{\n"provenance": {json.dumps(provenance, indent=1)},\n'
        f'"problem": {json.dumps(problem)},\n'
        f'"unknown": {json.dumps(unknown)},\n'
        '"rungs": {\n' + ",\n".join(lines) + "\n}\n}\n"
    )


def reference(dtype: str = "float32") -> LadderCounters:
    """Return the reference GPU's counters, those that the book's prose speaks of."""
    return load(COUNTERS / ("h200.json" if dtype == "float32" else f"h200-{dtype}.json"))


def taken(dtype: str, folder: os.PathLike | None = None) -> list[LadderCounters]:
    """Return all counters of the reference GPU in one dtype, the largest product first.

    There is one file for each product, `h200.json` and `h200-….json`; where none has been taken
    yet, the list is empty. Raises ValueError as `load` does, and for one product in two files.
    """
    found = [load(path) for path in sorted(Path(folder or COUNTERS).glob("h200*.json"))]
    found = [each for each in found if each.dtype == dtype]
    products = [(each.m, each.n, each.k) for each in found]
    twice = {product for product in products if products.count(product) > 1}
    if twice:
        raise ValueError(f"counted in two files: {twice.pop()} in {dtype}")
    return sorted(found, key=lambda each: -each.m * each.n * each.k)
