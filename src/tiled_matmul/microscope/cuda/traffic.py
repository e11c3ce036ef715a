"""Memory traffic: counted in a trace, predicted by arithmetic, and measured on a GPU."""

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
    """The sectors of global memory that a block loads, and the misses of a cache in front of it.

    `requests` load instructions of warps need `asked` sectors, `distinct` of them different.
    `missed` counts misses in a least-recently-used cache that starts empty.
    """

    requests: int
    asked: int
    distinct: int
    missed: int


def counted(t: Trace) -> dict[str, int]:
    """Return a trace's counts under the names of `measured`.

    As on a GPU, asynchronous copies count as loads, but not as stores to shared memory.
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
    """Return the counters of Nsight Compute on an H200 for the launch called `name`.

    The keys are those of MEASURED. Raises ValueError, which lists similar names, for a launch that
    was not measured.
    """
    stored = json.loads(COUNTERS.read_text(encoding="utf-8"))
    cases = {row["case"]["name"]: row["values"] for row in stored["records"]}
    if name not in cases:
        word = name.split()[0] if name.split() else ""
        near = [known for known in cases if word and word in known][:8]
        hint = f"; there are {', '.join(near)}" if near else ""
        raise ValueError(f"no counters were taken of {name!r}{hint}")
    counters = cases[name]["counters"]
    return {ours: counters[theirs] for ours, theirs in MEASURED.items()}


def reuse(t: Trace) -> Table:
    """Return a table with the bytes of each global array: asked for, moved and needed.

    "asked for" sums the threads' accesses, "moved" the sectors of all requests; "needed" counts
    each accessed element once. The last column is the average number of accesses to an element.
    """
    accesses = t.accesses()
    op = np.array([site.op for site in t.sites] or ["load"])[accesses["site"]]
    rows = []
    for info in t.arrays:
        if info.space != "global":
            continue
        for name in ("load", "store", "atomic"):
            touches = accesses[(accesses["array"] == info.id) & (op == name)]
            if not touches.size:
                continue
            elements = np.unique(touches["element"]).size
            rows.append(
                {
                    "array": info.name,
                    "op": name,
                    "asked for (bytes)": touches.size * info.itemsize,
                    "moved (bytes)": t.count("global", name, array=info.id).bytes,
                    "needed (bytes)": elements * info.itemsize,
                    "times touched": touches.size / elements,
                }
            )
    return table(rows)


def intensity(t: Trace, flops: int) -> float:
    """Return the FLOPs per byte in the sectors of all requests, without any cache.

    Raises ValueError for a trace without accesses to global memory.
    """
    moved = sum(t.count("global", op).bytes for op in ("load", "store", "atomic"))
    if not moved:
        raise ValueError(f"{t.name} touched no global memory")
    return flops / moved


def tiled_loads(problem: Problem, rows: int, columns: int) -> int:
    """Return the predicted number of elements of A and B that a tiled product loads.

    Each tile of C, `rows` × `columns`, needs `rows` rows of A and `columns` columns of B:
    M·N·K·(1/columns + 1/rows) in all, or 2·M·N·K/T for squares of edge T. For ragged tiles only
    existing elements count.
    """
    across = -(-problem.n // columns)
    down = -(-problem.m // rows)
    return problem.k * (problem.m * across + problem.n * down)


def fetched(t: Trace, block: tuple[int, ...] = (0, 0), room: int = 64) -> Fetched:
    """Return the counts of one block's loads; its warps take turns, with one request each.

    `room` is the size in sectors of the fully associative cache of `Fetched.missed`. Raises
    ValueError for a room below 1.
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
    for requests in zip_longest(*queues, fillvalue=()):
        for sectors in requests:
            made += bool(sectors)
            asked += len(sectors)
            distinct.update(sectors)
            for sector in sectors:
                missed += sector not in cache
                cache[sector] = None
                cache.move_to_end(sector)
                if len(cache) > room:
                    cache.popitem(last=False)
    return Fetched(made, asked, len(distinct), missed)


def sector_elements(sectors: tuple[int, ...], itemsize: int) -> list[int]:
    """Return the flat indices of the elements in these sectors of a sector-aligned array."""
    each = SECTOR_BYTES // itemsize
    return [sector * each + place for sector in sectors for place in range(each)]
