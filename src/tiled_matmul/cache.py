"""A model of one cache, and what the loop orders and the tiles do to it.

The model is set-associative with least-recently-used replacement: an address belongs to one line,
a line to one set, and a set keeps the lines that were used last. It counts misses, it knows no
time. Reads and writes count alike, and A, B and C lie one after another, each at the start of a
line. Source: Hennessy & Patterson, Computer Architecture, appendix B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

LOOPS = ("i", "j", "k")


@dataclass(frozen=True)
class Cache:
    """Sizes in bytes. Raises ValueError unless `size` is a whole number of sets."""

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


@dataclass(frozen=True)
class Misses:
    """Lines fetched for each matrix, and the accesses that asked for them."""

    a: int
    b: int
    c: int
    accesses: int

    @property
    def total(self) -> int:
        return self.a + self.b + self.c


def iterations(order: str, m: int, n: int, k: int) -> Iterator[tuple[int, int, int]]:
    """Yield (i, j, k) as three nested loops in `order`, outermost first, would visit them.

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


def loop_misses(order: str, m: int, n: int, k: int, cache: Cache, itemsize: int = 4) -> Misses:
    """Count the misses of C (m, n) = A (m, k) · B (k, n) in one of the six loop orders.

    The matrix that the innermost loop does not index is touched once for each round of that loop,
    as compiled code keeps it in a register. Elements are `itemsize` bytes, rows contiguous.
    Raises ValueError for an unknown order or sizes below 1.
    """
    return _run(cache, itemsize, (m, n, k), _positions(order), (m, n, k))


def tiled_misses(
    tile: int, m: int, n: int, k: int, cache: Cache, itemsize: int = 4, order: str = "ikj"
) -> Misses:
    """Count the misses of Loops 4: tiles in the order ijk, inside a tile the loops in `order`.

    `tile` is the edge of the square tiles in elements. Otherwise as `loop_misses`.
    """
    return _run(cache, itemsize, (m, n, k), _positions(order), (tile, tile, tile))


def _positions(order: str) -> tuple[int, ...]:
    if sorted(order) != list(LOOPS):
        raise ValueError(f"a loop order is an arrangement of ijk, got {order!r}")
    return tuple(LOOPS.index(loop) for loop in order)


def _run(cache: Cache, itemsize: int, sizes: tuple, order: tuple, tile: tuple) -> Misses:
    if min(*sizes, *tile) < 1 or itemsize < 1:
        raise ValueError(f"sizes, tile and itemsize must be at least 1: {sizes}, {tile}, {itemsize}")
    a, b, c, accesses = _simulate(
        np.array(sizes),
        np.array(tile),
        np.array(order),
        itemsize,
        cache.line,
        cache.sets,
        cache.ways,
    )
    return Misses(int(a), int(b), int(c), int(accesses))


@njit
def _touch(lines, used, clock, line):
    """Use a line at time `clock`; return True if it had to be fetched."""
    at = line % lines.shape[0]
    oldest = 0
    for way in range(lines.shape[1]):
        if lines[at, way] == line:
            used[at, way] = clock
            return False
        if used[at, way] < used[at, oldest]:
            oldest = way
    lines[at, oldest] = line
    used[at, oldest] = clock
    return True


@njit
def _simulate(sizes, tile, order, itemsize, line_bytes, sets, ways):
    m, n, k = sizes
    lines = np.full((sets, ways), -1)
    used = np.zeros((sets, ways), np.int64)
    rows = np.array([k, n, n])  # row lengths of A, B and C
    first_line = np.zeros(3, np.int64)
    first_line[1] = -(-m * k * itemsize // line_bytes)
    first_line[2] = first_line[1] + -(-k * n * itemsize // line_bytes)
    misses = np.zeros(3, np.int64)
    clock = 0
    inner = order[2]
    at = np.zeros(3, np.int64)
    extent = np.zeros(3, np.int64)
    for i in range(0, m, tile[0]):
        for j in range(0, n, tile[1]):
            for p in range(0, k, tile[2]):
                start = (i, j, p)
                for axis in range(3):
                    extent[axis] = min(tile[axis], sizes[axis] - start[axis])
                for x in range(extent[order[0]]):
                    for y in range(extent[order[1]]):
                        for z in range(extent[order[2]]):
                            at[order[0]] = start[order[0]] + x
                            at[order[1]] = start[order[1]] + y
                            at[order[2]] = start[order[2]] + z
                            for matrix in range(3):
                                # A lacks j (1), B lacks i (0), C lacks k (2)
                                lacks = (1, 0, 2)[matrix]
                                if lacks == inner and z > 0:
                                    continue
                                row = at[2] if matrix == 1 else at[0]
                                column = at[2] if matrix == 0 else at[1]
                                element = row * rows[matrix] + column
                                line = first_line[matrix] + element * itemsize // line_bytes
                                clock += 1
                                if _touch(lines, used, clock, line):
                                    misses[matrix] += 1
    return misses[0], misses[1], misses[2], clock
