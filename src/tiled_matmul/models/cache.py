"""A model of one cache: its misses for each loop order and each tile size.

The cache is set-associative with least-recently-used replacement: an address belongs to one line,
a line to one set, and a set keeps the lines that were used last. The model counts misses, not time.
Reads and writes count alike, nothing is prefetched, and A, B and C follow each other in memory,
each aligned to a line. Source: Hennessy & Patterson, Computer Architecture, appendix B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache as remember
from itertools import combinations
from pathlib import Path

import numpy as np
from numba import njit

LOOPS = ("i", "j", "k")


@dataclass(frozen=True)
class Cache:
    """A cache of `size` bytes with lines of `line` bytes, `ways` in each set.

    Raises ValueError unless `size` is a whole number of sets.
    """

    size: int
    line: int = 64
    ways: int = 8

    def __post_init__(self) -> None:
        for name in ("size", "line", "ways"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.size % (self.line * self.ways):
            raise ValueError(
                f"a cache of {self.size} bytes is no whole number of sets of {self.ways} lines "
                f"of {self.line} bytes"
            )

    @property
    def sets(self) -> int:
        return self.size // (self.line * self.ways)

    def set_of(self, address: np.ndarray | int) -> np.ndarray | int:
        """Return the set, from 0, that the bytes at these addresses belong to."""
        return address // self.line % self.sets

    def __str__(self) -> str:
        return (
            f"{self.size / 1024:g} KiB in {self.sets} sets of {self.ways} lines "
            f"of {self.line} bytes"
        )


# The level-1 data cache of many current x86 server and laptop cores.
LEVEL_1 = Cache(48 * 1024, line=64, ways=12)


@dataclass(frozen=True)
class Misses:
    """Cache misses of each matrix, and the number of all accesses."""

    a: int
    b: int
    c: int
    accesses: int

    @property
    def total(self) -> int:
        return self.a + self.b + self.c


def level_1(cpu: Path = Path("/sys/devices/system/cpu/cpu0")) -> Cache | None:
    """Return this machine's level-1 data cache as Linux describes it, or None if it does not."""
    names = ("level", "type", "size", "coherency_line_size", "ways_of_associativity")
    for index in sorted(cpu.glob("cache/index*")):
        try:
            level, kind, size, line, ways = ((index / name).read_text().strip() for name in names)
            if level == "1" and kind in ("Data", "Unified"):
                return Cache(int(size.removesuffix("K")) * 1024, int(line), int(ways))
        except (OSError, ValueError):  # a virtual machine may hide the facts, or give zeros
            continue
    return None


def strides(order: str, m: int, n: int, k: int) -> tuple[int, int, int]:
    """Return the strides in elements of the innermost loop of `order` in A, B and C.

    A is (m, k), B (k, n), C (m, n), row-major. A stride of 0 means that the loop stays on one
    element. Raises ValueError for an unknown order.
    """
    inner = _positions(order)[2]
    a, b, c = _strides(m, n, k)[:, inner]
    return int(a), int(b), int(c)


def iterations(order: str, m: int, n: int, k: int) -> Iterator[tuple[int, int, int]]:
    """Yield (i, j, k) in the sequence in which three nested loops in `order` visit them.

    `order` names the loops from the outermost to the innermost, such as "ikj".
    Raises ValueError if `order` is not an arrangement of "ijk".
    """
    _positions(order)
    extents = dict(zip(LOOPS, (m, n, k), strict=True))
    first, second, third = order
    for x in range(extents[first]):
        for y in range(extents[second]):
            for z in range(extents[third]):
                at = {first: x, second: y, third: z}
                yield at["i"], at["j"], at["k"]


@remember
def loop_misses(order: str, m: int, n: int, k: int, cache: Cache, itemsize: int = 4) -> Misses:
    """Return the misses of C (m, n) = A (m, k) · B (k, n) in one of the six loop orders.

    The element that the innermost loop does not index is accessed once for each run of that loop,
    as compiled code keeps it in a register. Elements have `itemsize` bytes, matrices are row-major.
    Raises ValueError for an unknown order or sizes below 1.
    """
    return _run(cache, itemsize, (m, n, k), _positions(order), (m, n, k))


@remember
def tiled_misses(
    tile: int, m: int, n: int, k: int, cache: Cache, itemsize: int = 4, order: str = "ikj"
) -> Misses:
    """Return the misses of Loops 4: tiles in the order ijk, and in a tile the loops in `order`.

    `tile` is the edge of the square tiles in elements. The rest is as in `loop_misses`.
    """
    return _run(cache, itemsize, (m, n, k), _positions(order), (tile, tile, tile))


def recent_misses(touches: np.ndarray, sizes: np.ndarray, capacity: int) -> np.ndarray:
    """Return how often each piece misses in a fully associative cache of `capacity` bytes.

    `touches` holds the numbers of the pieces in the sequence of their use, `sizes` the bytes of
    each piece. To make room, the cache drops the least recently used pieces. A piece larger than
    `capacity` always misses and is never kept. Raises ValueError for a number without a size, or
    for a capacity or size below 1.
    """
    touches, sizes = np.asarray(touches), np.asarray(sizes, np.int64)
    if touches.size and not 0 <= touches.min() <= touches.max() < sizes.size:
        raise ValueError(f"pieces {touches.min()} to {touches.max()}, but {sizes.size} sizes")
    if capacity < 1 or (sizes.size and sizes.min() < 1):
        raise ValueError(f"bytes must be 1 or more, got a capacity of {capacity} and {sizes.min()}")
    return _recent(touches, sizes, capacity)


def ranked_right(
    predicted: Mapping[str, float], measured: Mapping[str, float], margin: float = 0.1
) -> tuple[int, int]:
    """Return (right, decided): the pairs that a prediction ranks correctly, and those it ranks.

    The prediction ranks a pair if the larger value is more than (1 + margin) times the smaller. It
    is right if the name predicted larger was also measured larger. Raises ValueError if the two
    mappings have different keys.
    """
    if set(predicted) != set(measured):
        raise ValueError(f"predicted are {sorted(predicted)}, measured are {sorted(measured)}")
    right = decided = 0
    for pair in combinations(predicted, 2):
        low, high = sorted(pair, key=predicted.__getitem__)
        if predicted[high] > (1 + margin) * predicted[low]:
            decided += 1
            right += measured[high] > measured[low]
    return right, decided


def _positions(order: str) -> tuple[int, ...]:
    if not isinstance(order, str) or sorted(order) != list(LOOPS):
        raise ValueError(f"a loop order is an arrangement of ijk, got {order!r}")
    return tuple(LOOPS.index(loop) for loop in order)


def _strides(m: int, n: int, k: int) -> np.ndarray:
    """Return the strides in elements: a row for each of A, B, C, a column for each loop i, j, k."""
    return np.array([[k, 0, 1], [0, 1, n], [n, 1, 0]])


def _run(cache: Cache, itemsize: int, sizes: tuple, order: tuple, tile: tuple) -> Misses:
    if min(*sizes, *tile) < 1 or itemsize < 1:
        raise ValueError(
            f"sizes, tile and itemsize must be at least 1, got {sizes}, {tile} and {itemsize}"
        )
    m, n, k = sizes
    starts = [0]  # the first byte of each matrix: the next free one that is aligned to a line
    for elements in (m * k, k * n):
        starts.append(starts[-1] + -(-elements * itemsize // cache.line) * cache.line)
    a, b, c, accesses = _simulate(
        np.array(sizes),
        np.array(tile),
        np.array(order),
        _strides(m, n, k) * itemsize,
        np.array(starts),
        cache.line,
        np.full((cache.sets, cache.ways), -1),
    )
    return Misses(int(a), int(b), int(c), int(accesses))


@njit
def _touch(sets, row, line):
    """Access a line; return whether it missed. Each row of `sets` runs from newest to oldest."""
    if sets[row, 0] == line:
        return False
    ways = sets.shape[1]
    way = 1
    while way < ways and sets[row, way] != line:
        way += 1
    missed = way == ways  # the oldest line is replaced
    for older in range(min(way, ways - 1), 0, -1):
        sets[row, older] = sets[row, older - 1]
    sets[row, 0] = line
    return missed


@njit(error_model="numpy")
def _simulate(sizes, tile, order, strides, starts, line_bytes, sets):
    misses = np.zeros(3, np.int64)
    accesses = 0
    rows, shift = sets.shape[0], 0
    while 1 << shift < line_bytes:
        shift += 1
    # Most caches have powers of two, for which no slow division is needed.
    powers_of_two = 1 << shift == line_bytes and rows & (rows - 1) == 0
    first, second, third = order
    corner = np.zeros(3, np.int64)
    extent = np.zeros(3, np.int64)
    for i in range(0, sizes[0], tile[0]):
        for j in range(0, sizes[1], tile[1]):
            for p in range(0, sizes[2], tile[2]):
                begin = (i, j, p)
                corner[:] = starts
                for loop in range(3):
                    extent[loop] = min(tile[loop], sizes[loop] - begin[loop])
                    corner += strides[:, loop] * begin[loop]
                for x in range(extent[first]):
                    for y in range(extent[second]):
                        for z in range(extent[third]):
                            for matrix in range(3):
                                if strides[matrix, third] == 0 and z > 0:
                                    continue  # the element is kept in a register
                                address = (
                                    corner[matrix]
                                    + x * strides[matrix, first]
                                    + y * strides[matrix, second]
                                    + z * strides[matrix, third]
                                )
                                accesses += 1
                                if powers_of_two:
                                    line = address >> shift
                                    row = line & (rows - 1)
                                else:
                                    line = address // line_bytes
                                    row = line % rows
                                if _touch(sets, row, line):
                                    misses[matrix] += 1
    return misses[0], misses[1], misses[2], accesses


@njit
def _recent(touches, sizes, capacity):
    """Return each piece's misses. The cache is a linked ring, newest first, closed by `end`."""
    end = sizes.size
    newer = np.full(end + 1, end)
    older = np.full(end + 1, end)
    kept = np.zeros(end, np.bool_)
    misses = np.zeros(end, np.int64)
    used = 0
    for piece in touches:
        if kept[piece]:
            newer[older[piece]], older[newer[piece]] = newer[piece], older[piece]
        else:
            misses[piece] += 1
            if sizes[piece] > capacity:
                continue
            used += sizes[piece]
            while used > capacity:
                oldest = newer[end]
                newer[end] = newer[oldest]
                older[newer[oldest]] = end
                kept[oldest] = False
                used -= sizes[oldest]
            kept[piece] = True
        newest = older[end]
        newer[piece], older[piece] = end, newest
        older[end] = newer[newest] = piece
    return misses
