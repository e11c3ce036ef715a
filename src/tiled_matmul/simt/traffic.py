"""Counts what the warps of a kernel ask of global memory.

The threads of a warp load together. The hardware looks at their addresses at once and moves whole
sectors of 32 bytes, each once, however many lanes want it and however little of it they want.
Matrices are row-major, and each starts at the start of a sector, as an allocation does.
Source: NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from tiled_matmul.problem import Problem

WARP = 32
SECTOR_BYTES = 32


@dataclass(frozen=True)
class Traffic:
    """What some warps loaded from A and B over all steps of k, counted in sectors.

    `requests` loads were made by whole warps and asked for `asked` sectors, `distinct` of them
    different. `missed` had to be fetched into a least-recently-used cache that started empty.
    """

    requests: int
    asked: int
    distinct: int
    missed: int


def touched(addresses: np.ndarray, itemsize: int) -> set[int]:
    """Return the numbers of the 32-byte sectors that one request touches.

    `addresses` holds the byte address of each active lane's element, at most 32 of them;
    `itemsize` is the element's size in bytes. Raises ValueError for more lanes, negative
    addresses or an itemsize that is not positive.
    """
    addresses = np.asarray(addresses, dtype=np.int64).ravel()
    if addresses.size > WARP:
        raise ValueError(f"a warp has {WARP} lanes, got {addresses.size} addresses")
    if itemsize < 1:
        raise ValueError(f"itemsize must be positive, got {itemsize}")
    if (addresses < 0).any():
        raise ValueError(f"addresses must not be negative, got {addresses.min()}")
    last = addresses + itemsize - 1
    return {
        int(sector)
        for low, high in zip(addresses // SECTOR_BYTES, last // SECTOR_BYTES, strict=True)
        for sector in range(low, high + 1)
    }


def sectors(addresses: np.ndarray, itemsize: int) -> int:
    """Return how many sectors one request touches; arguments and errors as `touched`."""
    return len(touched(addresses, itemsize))


def element_addresses(rows, columns, row_length: int, itemsize: int) -> np.ndarray:
    """Return byte addresses of elements [rows, columns] of a row-major matrix that starts at 0."""
    return (np.asarray(rows) * row_length + np.asarray(columns)) * itemsize


def lanes_of(warp, lane) -> tuple[np.ndarray, np.ndarray]:
    """Return (rows, columns), each (warps, 32): the element of C that each lane of each warp owns.

    `warp` and `lane` are integer arrays of C's shape that a kernel filled: who wrote this element.
    A lane that owns none has -1. Raises ValueError for arrays that differ in shape, numbers that
    cannot be, or a lane that stands at two elements.
    """
    warp, lane = np.asarray(warp), np.asarray(lane)
    if warp.ndim != 2 or warp.shape != lane.shape:
        raise ValueError(f"warp and lane must be 2-D and alike, got {warp.shape} and {lane.shape}")
    if warp.min() < 0 or lane.min() < 0 or lane.max() >= WARP:
        raise ValueError(
            f"warps count from 0 and lanes from 0 to {WARP - 1}; got warps from {warp.min()}, "
            f"lanes from {lane.min()} to {lane.max()}"
        )
    rows, columns = (np.full((int(warp.max()) + 1, WARP), -1) for _ in range(2))
    for i, j in np.ndindex(warp.shape):
        place = warp[i, j], lane[i, j]
        if rows[place] >= 0:
            raise ValueError(f"warp {place[0]}, lane {place[1]} stands at two elements")
        rows[place], columns[place] = i, j
    return rows, columns


def requests(rows, columns, k: int, problem: Problem) -> dict[str, np.ndarray]:
    """Return the byte addresses that one warp asks for, by matrix.

    `rows` and `columns` say which element of C each lane owns (-1: none). "A" and "B" are its loads
    of A[row, k] and B[k, column] at this one k, "C" its store of C[row, column] after the last.
    """
    rows, columns = np.asarray(rows), np.asarray(columns)
    active = rows >= 0
    rows, columns = rows[active], columns[active]
    itemsize = np.dtype(problem.dtype).itemsize
    return {
        "A": element_addresses(rows, k, problem.k, itemsize),
        "B": element_addresses(k, columns, problem.n, itemsize),
        "C": element_addresses(rows, columns, problem.n, itemsize),
    }


def step_sectors(rows, columns, k: int, problem: Problem) -> dict[str, int]:
    """Return how many sectors one warp asks for, by matrix; arguments as `requests`."""
    itemsize = np.dtype(problem.dtype).itemsize
    asked = requests(rows, columns, k, problem)
    return {name: sectors(addresses, itemsize) for name, addresses in asked.items()}


def loads(rows, columns, problem: Problem, room: int = 64) -> Traffic:
    """Count the loads of these warps, (warps, 32) each, walking over k in step.

    At each k the warps come one after another and load from A, then from B. `room` is the number
    of sectors that the cache of `Traffic.missed` holds; any sector may lie anywhere in it. Raises
    ValueError for a room below 1.
    """
    if room < 1:
        raise ValueError(f"room must be at least one sector, got {room}")
    itemsize = np.dtype(problem.dtype).itemsize
    made = asked = missed = 0
    distinct: set[tuple[str, int]] = set()
    cache: OrderedDict[tuple[str, int], None] = OrderedDict()
    for k in range(problem.k):
        for warp_rows, warp_columns in zip(rows, columns, strict=True):
            addresses = requests(warp_rows, warp_columns, k, problem)
            for name in ("A", "B"):
                wanted = sorted((name, sector) for sector in touched(addresses[name], itemsize))
                made += 1
                asked += len(wanted)
                distinct.update(wanted)
                for sector in wanted:
                    missed += sector not in cache
                    cache[sector] = None
                    cache.move_to_end(sector)
                    if len(cache) > room:
                        cache.popitem(last=False)
    return Traffic(made, asked, len(distinct), missed)
