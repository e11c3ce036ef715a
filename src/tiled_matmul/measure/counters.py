"""GPU counters of launches from `results/counters/`, under our own names.

`measure counters` collects them with NVIDIA's `ncu`: of every rung of the ladder at one problem, of
some at others, of one Triton kernel with its programs in several orders, and of both sides where
rungs are slowest. Caches are flushed before each launch and the clock is not locked, so times are
close to those of the bench but not equal. For speed, use the records of the bench.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import records
from tiled_matmul.measure.ncu import Wanted
from tiled_matmul.measure.records import Entry
from tiled_matmul.models.program_order import Setting

SUITE = "counters"
COUNTERS = ROOT / "results" / "counters"
REFERENCE = COUNTERS / "h200.json"
BASELINE = "cublas"
EDGE = 4096  # M, N and K at which pages quote the ladder
LANES, SECTOR_BYTES = 32, 32

# Our names for Nsight Compute's metrics. The ladder's figures need these on every GPU.
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
# Optional counters, which some versions of `ncu` and some GPUs lack.
WELCOME = {
    "clock_hz": "smsp__cycles_elapsed.avg.per_second",
    "l2_bytes": "lts__t_bytes.sum",
    "l2_sectors": "lts__t_sectors.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    # Reads of the L2 by multiprocessors ("tex"), after neighbours' requests were merged, and the
    # bytes that arrive. The L2's halves also read from each other ("ltcfabric").
    "l2_tex_read_requests": "lts__t_requests_srcunit_tex_op_read.sum",
    "l2_tex_read_sectors": "lts__t_sectors_srcunit_tex_op_read.sum",
    "arrived_bytes": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "shared_load_requests": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared_store_requests": "smsp__sass_inst_executed_op_shared_st.sum",
    # Asynchronous copies: 4 and 8 bytes go through the L1 cache, 16 bytes bypass it.
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
ORDER_NEEDED = ("time_ns", "dram_read_bytes", "dram_write_bytes", "l2_read_sectors")
ORDER_WELCOME = {
    "l2_sm_sectors": "lts__t_sectors_srcunit_tex.sum",
    "l2_sm_missed_sectors": "lts__t_sectors_srcunit_tex_lookup_miss.sum",
    "l2_fabric_sectors": "lts__t_sectors_srcunit_ltcfabric.sum",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "l2_read_hit_pct": "lts__t_sector_op_read_hit_rate.pct",
}
METRICS = NEEDED | WELCOME | ORDER_WELCOME
PROVENANCE = ("gpu", "compute_capability", "driver", "versions", "date", "commit")


LADDER = Wanted(tuple(NEEDED.values()), tuple(WELCOME.values()))
ORDER = Wanted(
    tuple(METRICS[name] for name in ORDER_NEEDED),
    tuple(
        METRICS[name]
        for name in (
            *("l2_bytes", "l2_tex_read_sectors", *ORDER_WELCOME, "dram_pct", "l2_pct"),
            *("clock_hz", "registers", "occupancy_pct"),
        )
    ),
)

# Computed from the counters. Instructions are counted per warp, FMAs per thread.
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
    # Without the "tex" counter, this includes traffic between the L2's halves.
    "l2_read_bytes": lambda v: (
        SECTOR_BYTES * v["l2_tex_read_sectors" if "l2_tex_read_sectors" in v else "l2_read_sectors"]
    ),
}


@dataclass(frozen=True)
class Kernel:
    """One kernel of a launch: its name as printed by `ncu`, its grid and block as (x, y, z)."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int] | None
    values: Mapping[str, float]


@dataclass(frozen=True)
class Counted:
    """The counters of one launch, by the names of METRICS and DERIVED: `counted["registers"]`.

    `label` is a rung's name, or a setting such as "N=4096 GROUP_M=8". If the launch runs several
    kernels, sums are over all of them and other values are those of the longest.
    """

    label: str
    kernels: tuple[Kernel, ...]

    @property
    def longest(self) -> Kernel:
        return max(self.kernels, key=lambda kernel: kernel.values["time_ns"])

    @property
    def values(self) -> dict[str, float]:
        """All counters and all values derived from them."""
        numbers = dict(self.longest.values)
        for name in numbers:
            if METRICS[name].endswith(".sum"):
                numbers[name] = sum(kernel.values[name] for kernel in self.kernels)
        for name, compute in DERIVED.items():
            try:
                numbers[name] = compute(numbers)
            except (KeyError, ZeroDivisionError):  # no cp.async, no shared memory, no FMA
                continue
        return numbers

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> float:
        """Return one value. Raises ValueError, listing the names, for an unknown one."""
        values = self.values
        if name not in values:
            names = ", ".join(values)
            raise ValueError(f"{name} was not counted of {self.label}; there are {names}")
        return values[name]

    @property
    def time_ms(self) -> float:
        return self["time_ms"]

    @property
    def l2_read_bytes(self) -> float:
        """Bytes read from the L2, on some GPUs including the traffic between its halves."""
        return self["l2_read_bytes"]


@dataclass(frozen=True)
class Counters:
    """All launches of one setting, on one GPU, in the file's order. `setting` is common to all.

    `unknown` are the requested counters that this `ncu` did not support.
    """

    provenance: Mapping[str, Any]
    setting: Mapping[str, Any]
    unknown: tuple[str, ...]
    launches: Mapping[str, Counted]

    @property
    def gpu(self) -> str:
        return self.provenance["gpu"]

    @property
    def dtype(self) -> str:
        return self.setting["dtype"]

    def __contains__(self, label: str) -> bool:
        return label in self.launches

    def __getitem__(self, label: str) -> Counted:
        """Return a launch's counters. Raises ValueError, listing the labels, for an unknown one."""
        if label not in self.launches:
            raise ValueError(f"no counters of {label}; there are {', '.join(self.launches)}")
        return self.launches[label]


@dataclass(frozen=True)
class LadderCounters(Counters):
    """The counters of all rungs at one problem, in the ladder's order, cuBLAS first."""

    @property
    def m(self) -> int:
        return self.setting["m"]

    @property
    def n(self) -> int:
        return self.setting["n"]

    @property
    def k(self) -> int:
        return self.setting["k"]

    def table(self, names: Sequence[str], rungs: Sequence[str] | None = None) -> Any:
        """Return a Table with a row per rung and a column per name; missing values are None."""
        from tiled_matmul.microscope.table import table

        chosen = list(self.launches) if rungs is None else rungs
        return table(
            [
                {"rung": rung} | {name: self[rung].values.get(name) for name in names}
                for rung in chosen
            ]
        )


@dataclass(frozen=True)
class OrderCounters(Counters):
    """The counters of `ladder/triton_swizzled.py` for several sizes N and values of GROUP_M.

    All launches use tiles of `block`, (BLOCK_M, BLOCK_N, BLOCK_K).
    """

    @property
    def block(self) -> tuple[int, int, int]:
        return tuple(self.setting["block"])

    @property
    def edges(self) -> tuple[int, ...]:
        return tuple(sorted({edge for edge, _ in map(order_of, self.launches)}))

    def groups(self, edge: int) -> tuple[int, ...]:
        """Return the values of GROUP_M that were counted at an edge."""
        places = map(order_of, self.launches)
        return tuple(sorted(group_m for counted, group_m in places if counted == edge))

    def find(self, edge: int, group_m: int) -> Counted:
        """Return one launch. Raises ValueError, listing the labels, if it was not counted."""
        return self[order_label(edge, group_m)]

    def times(self, edge: int, group_m: int) -> float:
        """Return how often A and B were read from memory: bytes read over the size of both."""
        compulsory = Setting(edge, edge, edge, self.block).compulsory_bytes
        return self.find(edge, group_m)["dram_read_bytes"] / compulsory


def order_label(edge: int, group_m: int) -> str:
    """Return the label of an order's launch in a file: "N=4096 GROUP_M=8"."""
    return f"N={edge} GROUP_M={group_m}"


def order_of(label: str) -> tuple[int, int]:
    """Parse such a label to (edge, GROUP_M). Raises ValueError for any other text."""
    match = re.fullmatch(r"N=([1-9]\d*) GROUP_M=([1-9]\d*)", label)
    if not match:
        raise ValueError(f"a launch must be called as {order_label(4096, 8)!r} is, got {label!r}")
    return int(match[1]), int(match[2])


def load(path: str | os.PathLike) -> list[Counters]:
    """Read a file of counters: a Counters for each setting. Raises ValueError naming the file."""
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> list[Counters]:
    """Return what entries hold. Raises ValueError if something is missing or invalid."""
    if not entries:
        raise ValueError("nothing was counted")
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        missing = [key for key in PROVENANCE if not entry.run.get(key)]
        if missing:
            raise ValueError(f"the provenance lacks {', '.join(missing)}")
        groups.setdefault(json.dumps(_setting(entry)), []).append(entry)
    return [_of_one_setting(group) for group in groups.values()]


def _setting(entry: Entry) -> dict[str, Any]:
    """Return what launches that are read together have in common."""
    return {name: entry.case[name] for name in ("of", *SETTINGS[entry.case["of"]])}


def _of_one_setting(entries: Sequence[Entry]) -> Counters:
    setting = _setting(entries[0])
    kind, wanted = KINDS[setting.pop("of")]
    if "block" in setting:
        block = setting["block"]
        if len(block) != 3 or not all(type(size) is int and size > 0 for size in block):
            raise ValueError(f"block must be three positive integers, got {block!r}")
    launches = {}
    for entry in entries:
        label = entry.case["rung" if kind is LadderCounters else "label"]
        if kind is OrderCounters:
            order_of(label)
        if not entry.values["kernels"]:
            raise ValueError(f"{label} has no kernel")
        found = (_kernel(label, kernel, wanted) for kernel in entry.values["kernels"])
        launches[label] = Counted(label, tuple(found))
    last = max(entries, key=lambda entry: entry.run["date"])
    return kind(last.run, setting, tuple(last.values["unknown"]), launches)


def _kernel(label: str, stored: Mapping[str, Any], wanted: Wanted) -> Kernel:
    values = {}
    for name, metric in METRICS.items():
        value = stored["counters"].get(metric)
        if value is None and metric in wanted.needed:
            raise ValueError(f"{label} lacks {metric}")
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
            raise ValueError(f"{label}: {metric} must be a number of 0 or more, got {value!r}")
        values[name] = value
    block = stored.get("block")
    return Kernel(stored["name"], tuple(stored["grid"]), block and tuple(block), values)


def reference(dtype: str = "float32") -> LadderCounters:
    """Return the reference GPU's counters of the ladder, which the book's prose quotes.

    Raises ValueError if there are none at EDGE.
    """
    for each in taken(dtype):
        if (each.m, each.n, each.k) == (EDGE,) * 3:
            return each
    raise ValueError(f"nothing was counted at {EDGE}³ in {dtype}")


def order(path: os.PathLike = REFERENCE) -> OrderCounters | None:
    """Return the reference GPU's counters of orders, or None if there are none yet."""
    found = [each for each in load(path) if isinstance(each, OrderCounters)]
    return found[0] if found else None


def lowest(path: os.PathLike = REFERENCE) -> Counters:
    """Return the reference GPU's counters where rungs are slowest, of both sides.

    The labels end with "; torch" and "; ours". Raises ValueError if there are none.
    """
    for each in load(path):
        if type(each) is Counters:
            return each
    raise ValueError(f"{path} has no counters of where rungs are slowest")


def taken(dtype: str, path: os.PathLike = REFERENCE) -> list[LadderCounters]:
    """Return the reference GPU's counters of the ladder in one dtype, the largest product first.

    Raises ValueError as `load` does.
    """
    ladders = [each for each in load(path) if isinstance(each, LadderCounters)]
    of_dtype = [each for each in ladders if each.dtype == dtype]
    return sorted(of_dtype, key=lambda each: -each.m * each.n * each.k)


# What a record is of: how it is read, the counters that it must have, and what launches share.
KINDS: dict[str, tuple[type[Counters], Wanted]] = {
    "ladder": (LadderCounters, LADDER),
    "order": (OrderCounters, ORDER),
    "lowest": (Counters, LADDER),
}
SETTINGS = {"ladder": ("m", "n", "k", "dtype"), "order": ("dtype", "block"), "lowest": ()}
