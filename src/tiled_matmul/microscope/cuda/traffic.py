"""What a trace says about memory traffic, beside what arithmetic predicts and a GPU measured."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tiled_matmul import ROOT
from tiled_matmul.microscope.cuda.hardware import SECTOR_BYTES
from tiled_matmul.microscope.table import Table, table
from tiled_matmul.problem import Problem

if TYPE_CHECKING:
    from tiled_matmul.microscope.cuda.trace import Trace

COUNTERS = ROOT / "results" / "patterns" / "h200.json"
MEASURED = {
    "load requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "store requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "store sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared load requests": "smsp__sass_inst_executed_op_shared_ld.sum",
    "shared load wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared store requests": "smsp__sass_inst_executed_op_shared_st.sum",
    "shared store wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


@dataclass(frozen=True)
class Fetched:
    """The sectors of global memory that a block's loads asked for, and what a cache would fetch.

    `requests` loads by whole warps asked for `asked` sectors, `distinct` of them different.
    `missed` had to be fetched into a least-recently-used cache that started empty.
    """

    requests: int
    asked: int
    distinct: int
    missed: int


def counted(t: Trace) -> dict[str, int]:
    """Return a trace's counts under the names of `measured`.

    As on a GPU, asynchronous copies are among the loads, but not among the shared stores.
    """
    loads, stores, shared_loads = t.global_loads, t.global_stores, t.shared_loads
    shared_stores = t.count("shared", "store", asynchronous=False)
    return {
        "load requests": loads.requests,
        "load sectors": loads.counted_sectors,
        "store requests": stores.requests,
        "store sectors": stores.sectors,
        "shared load requests": shared_loads.requests,
        "shared load wavefronts": shared_loads.wavefronts,
        "shared store requests": shared_stores.requests,
        "shared store wavefronts": shared_stores.wavefronts,
    }


def measured(name: str) -> dict[str, int]:
    """Return what Nsight Compute counted on an H200 for a launch of `tests/counted_kernels.py`.

    Raises ValueError that lists similar names for one that was not measured.
    """
    stored = json.loads(COUNTERS.read_text(encoding="utf-8"))
    if name not in stored["cases"]:
        word = name.split()[0] if name.split() else ""
        near = [known for known in stored["cases"] if word and word in known][:8]
        hint = f"; there are {', '.join(near)}" if near else ""
        raise ValueError(f"no counters were taken of {name!r}{hint}")
    counters = dict(zip(stored["metrics"], stored["cases"][name]["counters"], strict=True))
    return {ours: counters[theirs] for ours, theirs in MEASURED.items()}


def reuse(t: Trace) -> Table:
    """Return, for each array in global memory, what was moved beside what had to be.

    "asked for" are the threads' accesses in bytes, "moved" the sectors of all requests, "needed"
    each element that was touched once. The last column is how often an element was touched.
    """
    accesses = t.accesses()
    op = np.array([site.op for site in t.sites] or ["load"])[accesses["site"]]
    rows = []
    for info in t.arrays:
        if info.space != "global":
            continue
        for name in ("load", "store", "atomic"):
            mine = accesses[(accesses["array"] == info.id) & (op == name)]
            if not mine.size:
                continue
            elements = np.unique(mine["element"]).size
            rows.append(
                {
                    "array": info.name,
                    "op": name,
                    "asked for (bytes)": mine.size * info.itemsize,
                    "moved (bytes)": t.count("global", name, array=info.id).bytes,
                    "needed (bytes)": elements * info.itemsize,
                    "times touched": mine.size / elements,
                }
            )
    return table(rows)


def intensity(t: Trace, flops: int) -> float:
    """Return FLOPs for each byte in the sectors that all requests asked for, caches left aside.

    Raises ValueError for a trace that touched no global memory.
    """
    moved = sum(t.count("global", op).bytes for op in ("load", "store", "atomic"))
    if not moved:
        raise ValueError(f"{t.name} touched no global memory")
    return flops / moved


def tiled_loads(problem: Problem, rows: int, columns: int) -> int:
    """Return how many elements a tiled product loads from A and B, predicted.

    Each tile of C, `rows` × `columns`, reads `rows` rows of A and `columns` columns of B:
    M·N·K·(1/columns + 1/rows), so 2·M·N·K/T for squares of T. Ragged tiles count what exists.
    """
    across = -(-problem.n // columns)
    down = -(-problem.m // rows)
    return problem.k * (problem.m * across + problem.n * down)


def fetched(t: Trace, block: tuple[int, ...] = (0, 0), room: int = 64) -> Fetched:
    """Count the loads of one block, its warps taking turns, one request each.

    `room` is how many sectors the cache of `Fetched.missed` holds; any sector may lie anywhere in
    it. Raises ValueError for a room below 1.
    """
    if room < 1:
        raise ValueError(f"room must be at least one sector, got {room}")
    queues = []
    for warp in range(t.warps):
        loads = [r for r in t.requests(block, warp) if r.site.op == "load" and r.sectors]
        queues.append([[r.array.allocation // SECTOR_BYTES + s for s in r.sectors] for r in loads])
    made = asked = missed = 0
    distinct: set[int] = set()
    cache: OrderedDict[int, None] = OrderedDict()
    for turn in zip_longest(*queues, fillvalue=()):
        for wanted in turn:
            made += bool(wanted)
            asked += len(wanted)
            distinct.update(wanted)
            for sector in wanted:
                missed += sector not in cache
                cache[sector] = None
                cache.move_to_end(sector)
                if len(cache) > room:
                    cache.popitem(last=False)
    return Fetched(made, asked, len(distinct), missed)


def sector_elements(sectors: tuple[int, ...], itemsize: int) -> list[int]:
    """Return the flat elements that lie in these sectors of an array that begins at one."""
    each = SECTOR_BYTES // itemsize
    return [sector * each + place for sector in sectors for place in range(each)]
