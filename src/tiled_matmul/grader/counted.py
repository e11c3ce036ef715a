"""Count in a trace of a Numba kernel what the exercises ask for. Runs in the worker."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

WRITES = ("store", "atomic", "landing")


def counts(t: Any) -> dict[str, int]:
    """Return what the microscope counted in the trace `t`, by the names that exercises use."""
    return {
        "global loads": t.global_loads.lanes,
        "global load sectors": t.global_loads.sectors,
        "global stores": t.global_stores.lanes,
        "global store sectors": t.global_stores.sectors,
        "shared loads": t.shared_loads.lanes,
        "shared loads of a thread": _most_of_a_thread(t),
        "bank conflicts": t.shared_loads.bank_conflicts + t.shared_stores.bank_conflicts,
        "shared bytes": sum(_bytes(array) for array in t.arrays if array.space == "shared"),
        "barriers": int(_last_phases(t).sum()),
        "needless barriers of a block": _needless(t),
        **_flights(t),
    }


def _bytes(array: Any) -> int:
    return math.prod(array.shape) * array.itemsize


def _last_phases(t: Any) -> np.ndarray:
    """Return how often each block waited at a barrier: each phase but its last ends at one."""
    blocks, phases = (np.frombuffer(column, np.int64) for column in (t._log.blocks, t._log.phases))
    last = np.zeros(int(blocks.max()) + 1, np.int64)
    np.maximum.at(last, blocks, phases)
    return last


def _shared_rows(t: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (a block's number, its accesses to shared memory in the order of the run)."""
    shared = np.array([array.space == "shared" for array in t.arrays], bool)
    rows = t.accesses(landings=True)
    rows = rows[shared[rows["array"]]]
    for block in np.unique(rows["block"]):
        yield int(block), rows[rows["block"] == block]


def _most_of_a_thread(t: Any) -> int:
    """Return how many elements of shared memory a thread loads; of all threads, the most."""
    loads = np.array([site.op == "load" for site in t.sites], bool)
    most = 0
    for _, rows in _shared_rows(t):
        threads = rows["thread"][loads[rows["site"]]]
        most = max(most, int(np.bincount(threads).max(initial=0)))
    return most


def _needless(t: Any) -> int:
    """Return how many barriers of one block protect nothing; of all blocks, the most.

    A barrier protects something if an element is written on one side of it, and another thread
    accesses the same element on the other side before the next barrier, or after the one before. An
    asynchronous copy writes from the moment it begins until it has been waited for.
    """
    last = _last_phases(t)
    most = dict(enumerate(last.tolist()))
    writes = np.array([site.op in WRITES for site in t.sites], bool)
    for block, rows in _shared_rows(t):
        phases = [rows[rows["phase"] == phase] for phase in range(int(last[block]) + 1)]
        sides = zip(phases, phases[1:], strict=False)
        most[block] = sum(not _protects(before, after, writes) for before, after in sides)
    return max(most.values(), default=0)


def _protects(before: np.ndarray, after: np.ndarray, writes: np.ndarray) -> bool:
    """Would these accesses race, if no barrier was between them?"""
    threads: dict[tuple, tuple[set, set]] = {}
    for place, thread, write in _accesses(before, writes):
        touched, written = threads.setdefault(place, (set(), set()))
        touched.add(thread)
        if write:
            written.add(thread)
    for place, thread, write in _accesses(after, writes):
        touched, written = threads.get(place, ((), ()))
        others = touched if write else written
        if any(other != thread for other in others):
            return True
    return False


def _accesses(rows: np.ndarray, writes: np.ndarray) -> Iterator[tuple]:
    places = zip(rows["array"].tolist(), rows["element"].tolist(), strict=True)
    return zip(places, rows["thread"].tolist(), writes[rows["site"]].tolist(), strict=True)


def _flights(t: Any) -> dict[str, int]:
    """Return how many elements asynchronous copies loaded, and how many of the copies are bare.

    A copy is covered if its thread reads shared memory after it has begun the copy and before it
    has waited for it, else it is bare. Copies that no thread waits for are not counted.
    """
    plain = t.count("global", "load", asynchronous=False).lanes
    counts = {"plain global loads": plain, "copies": 0, "bare copies": 0}
    if not any(site.asynchronous for site in t.sites):
        return counts
    for _, rows in _shared_rows(t):
        begun: dict[tuple, int] = {}
        latest: dict[int, int] = {}  # when each thread last read
        fields = (rows[name].tolist() for name in ("site", "thread", "array", "element"))
        for moment, (site, thread, *place) in enumerate(zip(*fields, strict=True)):
            copy = (thread, *place)
            if not t.sites[site].asynchronous:
                if t.sites[site].op == "load":
                    latest[thread] = moment
            elif t.sites[site].op == "landing":
                if copy in begun:
                    counts["copies"] += 1
                    counts["bare copies"] += latest.get(thread, -1) < begun.pop(copy)
            else:
                begun[copy] = moment
    return counts
