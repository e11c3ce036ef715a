"""What a GPU's counters say of the order of programs: `results/order/*.json`.

`tools/take_order_counters.py` takes them with NVIDIA's `ncu`: the same kernel at a few sizes, with
another GROUP_M each time. Caches are flushed before each launch that is counted, and the clock is
left as it is, so times are near those of the bench but are not them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as
from tiled_matmul.measure.counters import PROVENANCE
from tiled_matmul.models.program_order import Setting

ORDER = ROOT / "results" / "order"
SECTOR_BYTES = 32

# What the chapter needs of every GPU, by our names.
NEEDED = {
    "time_ns": "gpu__time_duration.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
}
# What explains more, where this `ncu` and this GPU know it. Sectors that multiprocessors ask for
# ("tex") are counted apart from those that one half of the L2 asks the other for ("ltcfabric").
WELCOME = {
    "l2_bytes": "lts__t_bytes.sum",
    "l2_sm_read_sectors": "lts__t_sectors_srcunit_tex_op_read.sum",
    "l2_sm_sectors": "lts__t_sectors_srcunit_tex.sum",
    "l2_sm_missed_sectors": "lts__t_sectors_srcunit_tex_lookup_miss.sum",
    "l2_fabric_sectors": "lts__t_sectors_srcunit_ltcfabric.sum",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "l2_read_hit_pct": "lts__t_sector_op_read_hit_rate.pct",
    "dram_pct": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_pct": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "clock_hz": "smsp__cycles_elapsed.avg.per_second",
    "registers": "launch__registers_per_thread",
    "occupancy_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
METRICS = NEEDED | WELCOME


@dataclass(frozen=True)
class OrderCount:
    """One launch of `triton_swizzled`: an edge of square matrices, a GROUP_M, counters.

    `kernel` is its name as `ncu` prints it. Raises ValueError naming the first value that cannot
    be.
    """

    edge: int
    group_m: int
    kernel: str
    programs: int
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        for name in ("edge", "group_m", "programs"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        for name in NEEDED:
            if name not in self.values:
                raise ValueError(f"{self.place} lacks {METRICS[name]}")
        for name, value in self.values.items():
            fine = isinstance(value, int | float) and not isinstance(value, bool)
            if not fine or not math.isfinite(value) or value < 0:
                raise ValueError(
                    f"{self.place}: {METRICS[name]} must be a number of 0 or more, got {value!r}"
                )

    @property
    def place(self) -> str:
        return f"N={self.edge} GROUP_M={self.group_m}"

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> float:
        """Return one number; raise ValueError that lists what there is for an unknown name."""
        if name not in self.values:
            raise ValueError(f"{name} was not counted at {self.place}; {', '.join(self.values)}")
        return self.values[name]

    @property
    def time_ms(self) -> float:
        return self["time_ns"] / 1e6

    @property
    def l2_read_bytes(self) -> float:
        """Bytes read from the L2, those that its halves exchange included where not told apart."""
        name = "l2_sm_read_sectors" if "l2_sm_read_sectors" in self else "l2_read_sectors"
        return self[name] * SECTOR_BYTES


@dataclass(frozen=True)
class OrderCounters:
    """All launches of one file, on one GPU: float16, `block` is (BLOCK_M, BLOCK_N, BLOCK_K).

    `unknown` are the counters that were asked for and that this `ncu` did not know.
    """

    provenance: Mapping[str, Any]
    dtype: str
    block: tuple[int, int, int]
    unknown: tuple[str, ...]
    counts: tuple[OrderCount, ...]

    @property
    def gpu(self) -> str:
        return self.provenance["gpu"]

    @property
    def edges(self) -> tuple[int, ...]:
        return tuple(sorted({count.edge for count in self.counts}))

    def groups(self, edge: int) -> tuple[int, ...]:
        """Return the GROUP_M that were counted at an edge."""
        return tuple(sorted(count.group_m for count in self.counts if count.edge == edge))

    def find(self, edge: int, group_m: int) -> OrderCount:
        """Return one launch; raise ValueError that lists the counted ones for another."""
        for count in self.counts:
            if (count.edge, count.group_m) == (edge, group_m):
                return count
        there = ", ".join(count.place for count in self.counts)
        raise ValueError(f"N={edge} GROUP_M={group_m} was not counted; there are {there}")

    def times(self, edge: int, group_m: int) -> float:
        """Return how often A and B were read from memory: bytes counted over those of both."""
        compulsory = Setting(edge, edge, edge, self.block).compulsory_bytes
        return self.find(edge, group_m)["dram_read_bytes"] / compulsory


def load(path: str | os.PathLike) -> OrderCounters:
    """Read a file of counters. Raises ValueError naming the file and what is wrong in it."""
    return load_as(path, parse, "order counters")


def parse(stored: Mapping[str, Any]) -> OrderCounters:
    """Return what a file holds. Raises ValueError for a launch that lacks what NEEDED names."""
    missing = [key for key in PROVENANCE if not stored["provenance"].get(key)]
    if missing:
        raise ValueError(f"the provenance lacks {', '.join(missing)}")
    ours = {metric: name for name, metric in METRICS.items()}
    counts = tuple(
        OrderCount(
            entry["edge"],
            entry["group_m"],
            entry["kernel"],
            entry["programs"],
            {ours[metric]: v for metric, v in entry["counters"].items() if metric in ours},
        )
        for entry in stored["counts"]
    )
    places = [count.place for count in counts]
    if not places:
        raise ValueError("nothing was counted")
    twice = sorted({place for place in places if places.count(place) > 1})
    if twice:
        raise ValueError(f"counted twice: {', '.join(twice)}")
    block = tuple(stored["block"])
    if len(block) != 3 or not all(type(size) is int and size > 0 for size in block):
        raise ValueError(f"block must be three positive integers, got {stored['block']!r}")
    unknown = tuple(stored["unknown"])
    return OrderCounters(stored["provenance"], stored["dtype"], block, unknown, counts)


def as_text(
    provenance: Mapping, dtype: str, block: Sequence[int], unknown: Sequence[str], counts: Sequence
) -> str:
    """Return a file's text: JSON, a line a launch. `counts` are launches as they are stored."""
    lines = [f"  {json.dumps(count)}" for count in counts]
    return (
        f'{{\n"provenance": {json.dumps(provenance, indent=1)},\n'
        f'"dtype": {json.dumps(dtype)},\n'
        f'"block": {json.dumps(list(block))},\n'
        f'"unknown": {json.dumps(list(unknown))},\n'
        '"counts": [\n' + ",\n".join(lines) + "\n]\n}\n"
    )


def reference() -> OrderCounters | None:
    """Return the reference GPU's counters, or None where they have not been taken yet."""
    path = ORDER / "h200.json"
    return load(path) if path.exists() else None
