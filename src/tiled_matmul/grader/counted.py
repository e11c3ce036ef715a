"""Count in a trace of a Numba kernel what the exercises ask for. Runs in the worker."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import events

NOBODY = 1 << 15  # beyond the number of every thread of a block
COVER = 2  # of a phase's reads, this part hides a copy
NEEDLESS = "needless barriers of a block"


def counts(t: Any, wanted: Collection[str] | None = None) -> dict[str, int]:
    """Return what the microscope counted in the trace `t`, by the names that exercises use.

    What takes long to count is only counted if it is `wanted`.
    """
    atomics = {space: t.count(space, "atomic").lanes for space in ("global", "shared")}
    made = {
        "global loads": t.global_loads.lanes + atomics["global"],  # an atomic reads and writes
        "global load sectors": t.global_loads.sectors,
        "global stores": t.global_stores.lanes + atomics["global"],
        "global store sectors": t.global_stores.sectors,
        "shared loads": t.shared_loads.lanes + atomics["shared"],
        "bank conflicts": t.shared_loads.bank_conflicts + t.shared_stores.bank_conflicts,
        "shared bytes": sum(_bytes(array) for array in t.arrays if array.space == "shared"),
        "barriers": int(_last_phases(t).sum()),
    }
    asked = [count for count in COUNTS if wanted is None or not COUNTS[count].isdisjoint(wanted)]
    shared = _shared(t) if asked else None
    for count in asked:
        made |= count(t, shared)
    return made


def _bytes(array: Any) -> int:
    return math.prod(array.shape) * array.itemsize


def _last_phases(t: Any) -> np.ndarray:
    """Return how often each block waited at a barrier: each phase but its last ends at one."""
    blocks, phases = (np.frombuffer(column, np.int64) for column in (t._log.blocks, t._log.phases))
    last = np.zeros(int(blocks.max()) + 1, np.int64)
    np.maximum.at(last, blocks, phases)
    return last


def _shared(t: Any) -> events.Piece:
    """Return all accesses to shared memory in the order of the run. A copy stores as it lands."""
    landings = np.array([site.op == "landing" for site in t.sites], bool)
    ops = np.where(landings, events.STORE, t._ops) if t.sites else t._ops
    parts = [piece.take(piece.shared) for piece in events.pieces(t._log, ops)]
    if not parts:
        return events.Piece(*(np.zeros(0, np.int64) for _ in events.Piece.__dataclass_fields__))
    return events.together(parts)


def _most(*fields: np.ndarray) -> int:
    """Return how many rows have the same fields, at most."""
    packed, _ = events.pack(*(field.astype(np.int64) for field in fields))
    return int(np.unique(packed, return_counts=True)[1].max(initial=0))


def _most_of_a_thread(t: Any, shared: events.Piece) -> dict[str, int]:
    """Return how many elements of shared memory a thread loads; of all threads, the most."""
    loads = np.array([site.op == "load" for site in t.sites], bool)
    rows = shared.take(loads[shared.site])
    return {"shared loads of a thread": _most(rows.block, rows.thread)}


def _shared_by_warp(t: Any, shared: events.Piece) -> dict[str, int]:
    """Return how many different elements the loads of a warp read from shared memory, added up over
    all loads, and how many elements the lanes of one warp load; of all warps, the most.
    """
    loads = np.array([site.op == "load" and not site.asynchronous for site in t.sites], bool)
    rows = shared.take(loads[shared.site])
    warp = (rows.thread >> events.WARP_SHIFT).astype(np.int64)
    words, _ = events.pack(rows.block, warp, rows.key, rows.address)
    return {
        "shared words": np.unique(words).size,
        "shared loads of a warp": _most(rows.block, warp),
    }


def _needless(t: Any, shared: events.Piece) -> dict[str, int]:
    """Return how many barriers of one block protect nothing; of all blocks, the most.

    A barrier protects something if an element is written on one side of it, and another thread
    accesses the same element on the other side before the next barrier, or after the one before. An
    asynchronous copy writes from the moment it begins until it has been waited for.
    """
    needless = _last_phases(t)
    if shared.size:
        place, _ = events.pack(shared.block, shared.address, shared.phase)
        order = np.argsort(place)
        starts = events.first_rows(place[order])
        thread = shared.thread[order].astype(np.int64)
        wrote = shared.op[order] != events.LOAD
        first, last = (f.reduceat(thread, starts) for f in (np.minimum, np.maximum))
        # Of the threads that write: beyond every thread where there is none.
        first_to_write = np.minimum.reduceat(np.where(wrote, thread, NOBODY), starts)
        last_to_write = np.maximum.reduceat(np.where(wrote, thread, -1), starts)
        block, address, phase = (
            field[order][starts] for field in (shared.block, shared.address, shared.phase)
        )
        one, two = slice(None, -1), slice(1, None)  # an element in a phase, and in its next one
        beside = (block[one] == block[two]) & (address[one] == address[two])
        beside &= phase[one] + 1 == phase[two]
        written = last_to_write >= 0
        # Two sets of threads hold different ones unless both are the same single thread.
        before = written[one] & (
            (first_to_write[one] != last[two]) | (last_to_write[one] != first[two])
        )
        after = written[two] & (
            (first[one] != last_to_write[two]) | (last[one] != first_to_write[two])
        )
        protects, _ = events.pack(block[one], phase[one])
        _, at = np.unique(protects[beside & (before | after)], return_index=True)
        blocks = block[one][beside & (before | after)][at]
        needless -= np.bincount(blocks, minlength=needless.size)
    return {NEEDLESS: int(needless.max())}


def _flights(t: Any, shared: events.Piece) -> dict[str, int]:
    """Return how many elements asynchronous copies loaded, how many of the copies are bare, and
    how many phases all copies together are in flight.

    A phase counts for a copy if its thread reads there what copies have brought, after it has begun
    the copy and before it has waited for it, a COVER-th of the usual reads at least. Without such a
    phase the copy is bare. Copies that no thread waits for are not counted.
    """
    plain = t.count("global", "load", asynchronous=False).lanes
    counts = {"plain global loads": plain, "copies": 0, "bare copies": 0, "phases in flight": 0}
    if not any(site.asynchronous for site in t.sites):
        return counts
    copying = np.array([site.asynchronous for site in t.sites], bool)
    landing = np.array([site.op == "landing" for site in t.sites], bool)[shared.site]
    thread, _ = events.pack(shared.block, shared.thread.astype(np.int64))
    moment = np.arange(shared.size)
    copies = np.flatnonzero(copying[shared.site])
    place, _ = events.pack(thread[copies], shared.address[copies])
    order = np.argsort(place, kind="stable")
    place, copies = place[order], copies[order]
    pairs = (place[:-1] == place[1:]) & ~landing[copies[:-1]] & landing[copies[1:]]
    begun, landed = copies[:-1][pairs], copies[1:][pairs]
    # The reads of elements that a copy brings, thread by thread, and for each its place among its
    # thread's phases with such reads.
    element, _ = events.pack(shared.block, shared.address)
    brought = np.isin(element, element[copies])
    reads = np.flatnonzero(~copying[shared.site] & (shared.op == events.LOAD) & brought)
    # Of a thread's reads of one element that a copy has brought the last one counts: an earlier one
    # may have been for show.
    both, _ = events.pack(np.r_[element[reads], element[copies]], np.r_[reads, copies])
    copied = np.searchsorted(np.sort(both[reads.size :]), both[: reads.size])
    same, _ = events.pack(thread[reads], element[reads], copied)
    _, last = np.unique(same[::-1], return_index=True)
    reads = np.sort(reads[reads.size - 1 - last])
    reads = reads[np.argsort(thread[reads], kind="stable")]
    when, _ = events.pack(np.r_[thread[reads], thread], np.r_[reads, moment])
    when, moments = when[: reads.size], when[reads.size :]
    turn = np.r_[0, np.cumsum(np.diff(shared.phase[reads]) != 0)] if reads.size else reads
    low, high = np.searchsorted(when, moments[begun]), np.searchsorted(when, moments[landed])
    covered = np.zeros(begun.size, np.int64)
    # A read or two is no cover: half of what a thread usually reads in a phase, or from one
    # wait to the next, is.
    usual = reads.size / max(turn[-1] + 1, np.unique(high).size) if reads.size else 0
    some = (high - low) * COVER > usual
    covered[some] = turn[high[some] - 1] - turn[low[some]] + 1
    return counts | {
        "copies": begun.size,
        "bare copies": int((covered == 0).sum()),
        "phases in flight": int(covered.sum()),
    }


def _of_a_thread(t: Any, shared: events.Piece) -> dict[str, int]:
    """Count the most elements that one thread stores in global memory, loads from any, and receives
    from other lanes. An atomic operation loads and stores.
    """
    stores, loads = Counter(), Counter()
    for piece in events.pieces(t._log, t._ops):
        _add(stores, piece.take((piece.op != events.LOAD) & ~piece.shared))
        _add(loads, piece.take(piece.op != events.STORE))
    return {
        "global stores of a thread": max(stores.values(), default=0),
        "loads of a thread": max(loads.values(), default=0),
        "shuffles of a thread": max(t._log.received.values(), default=0),
    }


def _add(counts: Counter, piece: events.Piece) -> None:
    """Add the accesses of each thread, (block, thread), to `counts`."""
    places = piece.block.astype(np.int64) * NOBODY + piece.thread
    for place, many in zip(*np.unique(places, return_counts=True), strict=True):
        counts[divmod(int(place), NOBODY)] += int(many)


COUNTS = {
    _of_a_thread: {"global stores of a thread", "loads of a thread", "shuffles of a thread"},
    _most_of_a_thread: {"shared loads of a thread"},
    _shared_by_warp: {"shared words", "shared loads of a warp"},
    _needless: {NEEDLESS},
    _flights: {"plain global loads", "copies", "bare copies", "phases in flight"},
}
