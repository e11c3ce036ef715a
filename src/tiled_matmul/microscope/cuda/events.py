"""The record as arrays: accesses are grouped into requests, with their costs.

A log is processed in pieces of whole blocks, which need little memory beside the log itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tiled_matmul.microscope.cuda import hardware
from tiled_matmul.microscope.cuda.memory import (
    ADDRESS_MASK,
    ARRAY_SHIFT,
    GLOBAL_START,
    WIDTH_BITS,
    Log,
)

PIECE = 1 << 20  # accesses processed at once
LOAD, STORE, ATOMIC = 0, 1, 2
HIDDEN = 3  # a copy under way: only findings use it
OPS = {
    "load": LOAD,
    "store": STORE,
    "atomic": ATOMIC,
    "barrier": -1,
    "flight": HIDDEN,
    "landing": HIDDEN,
}
WARP_SHIFT = 5

REQUEST = np.dtype(
    [
        ("block", np.int64),
        ("key", np.int64),
        ("warp", np.int16),
        ("site", np.int32),
        ("array", np.int16),
        ("op", np.int8),
        ("shared", np.bool_),
        ("lanes", np.int16),
        ("asked_bytes", np.int32),
        ("sectors", np.int16),
        ("past_l1_sectors", np.int16),
        ("counted_sectors", np.int16),
        ("wavefronts", np.int16),
        ("conflicts", np.int16),
    ]
)


@dataclass
class Piece:
    """The accesses of some blocks, in the order of the run, one array for each field."""

    block: np.ndarray
    thread: np.ndarray
    phase: np.ndarray
    clock: np.ndarray
    key: np.ndarray
    site: np.ndarray
    op: np.ndarray
    array: np.ndarray
    address: np.ndarray
    width: np.ndarray
    order: np.ndarray

    def take(self, rows: np.ndarray) -> Piece:
        """Return the accesses that a mask, a slice or an index array selects."""
        return Piece(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    @property
    def size(self) -> int:
        return self.key.size

    @property
    def shared(self) -> np.ndarray:
        return self.address < GLOBAL_START


def pieces(log: Log, ops: np.ndarray) -> Iterator[Piece]:
    """Yield the accesses of a log, except HIDDEN ones. `ops` holds the op of each site."""
    starts = np.frombuffer(log.starts, np.int64)
    blocks = np.frombuffer(log.blocks, np.int64)
    total = len(log.keys)
    if not starts.size or not total:
        return
    first_of_block = np.flatnonzero(np.r_[True, blocks[1:] != blocks[:-1]])
    begin = 0
    while begin < first_of_block.size:
        low = starts[first_of_block[begin]]
        end = int(np.searchsorted(starts[first_of_block], low + PIECE, side="right"))
        end = min(max(end - 1, begin + 1), first_of_block.size)
        segments = slice(
            int(first_of_block[begin]),
            int(first_of_block[end]) if end < first_of_block.size else starts.size,
        )
        high = int(starts[first_of_block[end]]) if end < first_of_block.size else total
        if high > low:
            piece = _piece(log, ops, segments, int(low), high)
            yield piece.take(piece.op != HIDDEN) if (ops == HIDDEN).any() else piece
        begin = end


def together(parts: list[Piece]) -> Piece:
    """Return the accesses of several pieces as one."""
    return Piece(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in Piece.__dataclass_fields__)
    )


def _piece(log: Log, ops: np.ndarray, segments: slice, low: int, high: int) -> Piece:
    starts = np.frombuffer(log.starts, np.int64)[segments]
    lengths = np.diff(np.r_[starts, high])

    def each(column, kind) -> np.ndarray:
        return np.repeat(np.frombuffer(column, kind)[segments], lengths)

    key = np.frombuffer(log.keys, np.int64)[low:high]
    slot = np.frombuffer(log.slots, np.int64)[low:high]
    site = key % ops.size
    return Piece(
        each(log.blocks, np.int64),
        each(log.threads, np.int16),
        each(log.phases, np.int64),
        each(log.clocks, np.int64),
        key,
        site,
        ops[site],
        (slot >> ARRAY_SHIFT).astype(np.int16),
        slot >> WIDTH_BITS & ADDRESS_MASK,
        (1 << (slot & (1 << WIDTH_BITS) - 1)).astype(np.int16),
        np.arange(low, high),
    )


def pack(*fields: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return (one int64 for each row, which sorts as the fields do; the shift of each field).

    The first field is the most significant. Fields must not be negative. If 63 bits do not suffice,
    the leading fields are replaced by their rank; their shift is then -1, as they cannot be read
    back. Raises ValueError if that does not suffice either.
    """
    bits = [int(f.max()).bit_length() if f.size else 0 for f in fields]
    packed = np.zeros(fields[0].size if fields else 0, np.int64)
    shifts: list[int] = []
    used = 0
    for field, width in zip(fields, bits, strict=True):
        if used + width > 63:
            _, packed = np.unique(packed, return_inverse=True)
            used = int(packed.max()).bit_length()
            shifts = [-1] * len(shifts)
            if used + width > 63:
                raise ValueError("a trace of this size cannot be analysed: follow fewer blocks")
        packed = packed << width | field
        used += width
        shifts = [shift if shift < 0 else shift + width for shift in shifts] + [0]
    return packed, shifts


def first_rows(ordered: np.ndarray) -> np.ndarray:
    """Return the index at which each run of equal values begins."""
    if not ordered.size:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])


def past_l1_sites(piece: Piece, copies: np.ndarray) -> np.ndarray:
    """Return the sites that load for asynchronous copies past the L1 cache, some of them twice.

    `copies` says for each site whether it belongs to an asynchronous copy. A copy's width is that
    of its store, as it may load less. The site of its load comes just before that of its store.
    """
    writes = copies[piece.site] & (piece.op == STORE) & (piece.width == hardware.PAST_L1_BYTES)
    return piece.site[writes] - 1


def requests(piece: Piece, copies: np.ndarray) -> np.ndarray:
    """Return a row of REQUEST for each access instruction of each warp, by block, warp and key.

    `copies` is as in `past_l1_sites`.
    """
    warp = piece.thread >> WARP_SHIFT
    group, _ = pack(piece.block - piece.block.min(), warp, piece.key)
    order = np.argsort(group, kind="stable")
    starts = first_rows(group[order])
    number = np.repeat(np.arange(starts.size), np.diff(np.r_[starts, order.size]))
    piece = piece.take(order)
    made = np.zeros(starts.size, REQUEST)
    for name in ("block", "key", "site", "array", "op"):
        made[name] = getattr(piece, name)[starts]
    made["warp"] = piece.thread[starts] >> WARP_SHIFT
    made["shared"] = piece.shared[starts]
    made["lanes"] = np.diff(np.r_[starts, order.size])
    made["asked_bytes"] = np.add.reduceat(piece.width.astype(np.int32), starts)
    shared = piece.shared
    made["sectors"] = hardware.distinct_sectors(
        number[~shared], piece.address[~shared], starts.size
    )
    made["counted_sectors"] = made["sectors"]
    rows = np.flatnonzero(np.isin(piece.site, past_l1_sites(piece, copies)) & ~shared)
    if rows.size:
        past, counted = hardware.past_l1(
            number[rows], piece.thread[rows] & hardware.WARP - 1, piece.address[rows], starts.size
        )
        made["past_l1_sectors"] = past
        made["counted_sectors"] = np.where(past, counted, made["sectors"])
    banked = piece.take(shared)
    made["wavefronts"], made["conflicts"] = hardware.wavefronts(
        number[shared],
        banked.thread & hardware.WARP - 1,
        banked.address,
        banked.width,
        banked.op == LOAD,
        starts.size,
    )
    return made
