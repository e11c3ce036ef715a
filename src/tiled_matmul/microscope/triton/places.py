"""Find the place of a tile of pointers in a matrix.

A kernel only adds numbers to pointers, so rows and columns must be recovered from offsets and
strides. A single offset is ambiguous: past the end of a row comes the next row. A tile is not. Its
first unmasked element gives the place, and the steps along its two axes give the directions: a tile
that leaves a row on the right is too wide; it does not continue in the next row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Array:
    """An argument of the kernel as a matrix; a 1-D tensor is one row. Strides are in elements.

    `address` is that of the first element, in bytes; `memory` holds the offsets from there, in
    elements, of the allocation's begin and end.
    """

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: int
    address: int = field(repr=False)
    memory: tuple[int, int] = field(repr=False)

    @property
    def rows(self) -> int:
        return self.shape[-2]

    @property
    def cols(self) -> int:
        return self.shape[-1]

    @cached_property
    def _slowest_first(self) -> list[int]:
        moving = [a for a in range(len(self.shape)) if self.shape[a] > 1 and self.strides[a] > 0]
        return sorted(moving, key=lambda axis: -self.strides[axis])

    def locate(self, offsets: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return (the index, as an array for each axis; the mask of offsets that are elements).

        For an offset that is not an element, the index follows from the strides all the same.
        """
        index = [np.zeros_like(offsets) for _ in self.shape]
        rest = offsets
        inside = np.full(offsets.shape, 0 not in self.shape)
        for axis in self._slowest_first:
            index[axis] = rest // self.strides[axis]
            rest = rest - index[axis] * self.strides[axis]
            inside = inside & (0 <= index[axis]) & (index[axis] < self.shape[axis])
        return index, inside & (rest == 0)


@dataclass(frozen=True)
class Place:
    """The place of a tile. `index` holds coordinates for each axis of the array, to be broadcast.

    `ranges` are half-open. `axes` names, for each axis of the tile, the array's axis along which it
    runs; None means that the pointers do not form a tile. `wraps` says along which axes the tile
    continues at the matrix's other side; its range is given as if it did not wrap. `odd` holds the
    steps of pointers that are regular but do not fit the array's strides; else it is empty.
    """

    index: list[np.ndarray]
    ranges: tuple[tuple[int, int], ...]
    axes: tuple[int, ...] | None
    wraps: tuple[bool, ...]
    odd: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        return tuple(int(along.flat[0]) for along in self.index)

    def inside(self, array: Array, offsets: np.ndarray) -> np.ndarray:
        """Return the mask of the tile's pointers, at these offsets, that point to elements."""
        inside, there = np.full(offsets.shape, True), 0
        for at, size, stride in zip(self.index, array.shape, array.strides, strict=True):
            inside &= (0 <= at) & (at < size)
            there = there + at * stride
        return inside & (there == offsets)


def find(
    array: Array,
    offsets: np.ndarray,
    active: np.ndarray,
    origin: tuple[int, ...] | None = None,
) -> Place:
    """Return the place of the tile of pointers with these offsets, in elements, in the array.

    `active` is the mask of the access. `origin` is the index of the first pointer, if it is known.
    """
    steps = _steps(offsets)
    if steps is None:
        return _scattered(array, offsets, ())
    second = tuple(int(along[1]) if along.size > 1 else 0 for along in steps)
    index, valid = array.locate(offsets)
    good = active & valid
    anchor = int((good if good.any() else active).argmax())
    anchor_index = [int(along.flat[anchor]) for along in index]
    best, fewest = None, None
    for axes in _directions(array, steps):
        place = _tile(array, steps, axes, anchor, offsets.shape, anchor_index, origin)
        outside = int((active & ~place.inside(array, offsets)).sum())
        moving = [axis for axis, along in zip(axes, steps, strict=True) if along.any()]
        folded = len(set(moving)) < len(moving)
        if (fewest is None or outside < fewest) and not (folded and outside):
            best, fewest = place, outside
        if not outside:
            return best
    thin = sum(size > 1 for size in offsets.shape) < 2 or len(array.shape) > 2
    if best is None or (thin and not (active & ~valid).any()):
        # Pointers along a line may run from row to row on purpose.
        return _scattered(array, offsets, second if best is None else ())
    return best


def _steps(offsets: np.ndarray) -> list[np.ndarray] | None:
    """Return the offsets along each axis, from the first one, if their sums give all the others."""
    origin = offsets.flat[0]
    steps, total = [], origin
    for axis, size in enumerate(offsets.shape):
        line = tuple(slice(None) if a == axis else 0 for a in range(offsets.ndim))
        steps.append(offsets[line] - origin)
        total = total + steps[-1].reshape(_along(axis, offsets.ndim, size))
    return steps if np.array_equal(total, offsets) else None


def _along(axis: int, ndim: int, size: int) -> tuple[int, ...]:
    return tuple(size if a == axis else 1 for a in range(ndim))


def _directions(array: Array, steps: list[np.ndarray]) -> list[tuple[int, ...]]:
    """Return the combinations of the array's axes along which the tile's axes may run."""
    ndim, choices = len(array.shape), []
    for axis, along in enumerate(steps):
        usual = max(ndim - len(steps) + axis, 0)
        others = [a for a in range(ndim - 1, -1, -1) if a != usual]
        choices.append([a for a in (usual, *others) if _fits(along, array.strides[a])])
    # Combinations of many axes first: a folded tile of a single row comes last.
    return sorted(itertools.product(*choices), key=lambda axes: -len(set(axes)))


def _fits(along: np.ndarray, stride: int) -> bool:
    return not along.any() or (stride > 0 and not (along % stride).any())


def _tile(
    array: Array,
    steps: list[np.ndarray],
    axes: tuple[int, ...],
    anchor: int,
    shape: tuple[int, ...],
    anchor_index: list[int],
    origin: tuple[int, ...] | None,
) -> Place:
    index, ranges, wraps = [], [], []
    at = np.unravel_index(anchor, shape)
    for axis, size in enumerate(array.shape):
        coordinates = np.zeros((1,) * len(shape), np.int64)
        tile_axes = [tile_axis for tile_axis, a in enumerate(axes) if a == axis]
        for tile_axis in tile_axes:
            along = steps[tile_axis] // max(array.strides[axis], 1)
            line = along.reshape(_along(tile_axis, len(shape), along.size))
            coordinates = coordinates + line
        if origin is not None:
            start = origin[axis]
        else:
            here = tuple(min(i, n - 1) for i, n in zip(at, coordinates.shape, strict=True))
            start = anchor_index[axis] - int(coordinates[here])
        coordinates = coordinates + start
        index.append(coordinates)
        low, high = int(coordinates.min()), int(coordinates.max()) + 1
        flat = coordinates.reshape(-1)
        straight = start + np.arange(flat.size)
        wraps.append(
            len(tile_axes) == 1
            and 0 <= start < size <= straight[-1]
            and np.array_equal(flat, straight % size)
        )
        ranges.append((start, start + flat.size) if wraps[-1] else (low, high))
    return Place(index, tuple(ranges), axes, tuple(wraps))


def _scattered(array: Array, offsets: np.ndarray, odd: tuple[int, ...]) -> Place:
    """Return the place of pointers that do not form a tile, from each one's own index."""
    index, _ = array.locate(offsets)
    ranges = tuple((int(along.min()), int(along.max()) + 1) for along in index)
    return Place(index, ranges, None, (False,) * len(ranges), odd)
