"""Views of a matrix's tiles, which replace index arithmetic in a kernel.

    tile(a, rows, cols)[i, j]               a view of the tile in row i, column j of a's tiles
    view.shape                              its shape, smaller at a's bottom and right edges
    view[y, x], view[y, x] = value          an element, counted from the tile's corner
    copy_tile_async(target, view, threads)  start copying a view to shared memory, by all threads

A view is a matrix, a corner and a shape, all in registers; the compiler optimises it away. Wait for
a copy as for any other: commit_copies, wait_copies, and a barrier. The interpreter's versions
follow the functions.
Source: Modular, Mojo manual, "LayoutTensor": tile, copy_dram_to_sram_async.
"""

import operator
from typing import Any, NamedTuple

from numba import cuda, types, uint64
from numba.extending import overload

from tiled_matmul.kit.intrinsics import copy_async
from tiled_matmul.microscope.cuda import stands_for


class Tiles(NamedTuple):
    """A matrix cut into tiles of rows × cols."""

    array: Any
    rows: int
    cols: int


class TileView(NamedTuple):
    """One tile: its first row and column, and its shape, clipped to the matrix."""

    array: Any
    row: int
    col: int
    shape: tuple[int, int]


@cuda.jit(device=True)
def tile(array, rows, cols):
    """Return the matrix `array` cut into tiles of rows × cols; `[i, j]` is a view of one."""
    return Tiles(array, rows, cols)


@cuda.jit(device=True)
def copy_tile_async(target, view, threads):
    """Start copying a view to `target`, a shared matrix, padding with zeros beyond the view.

    All threads of the block must call this. The block has shape `threads` = (x, y), which divides
    the target's; neighbours in x copy neighbours in a row. Needs compute capability 8.0.
    """
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    for row in range(0, target.shape[0], threads[1]):
        for col in range(0, target.shape[1], threads[0]):
            present = row + y < view.shape[0] and col + x < view.shape[1]
            copy_element(target, row + y, col + x, view, present)


@cuda.jit(device=True)
def copy_element(target, row, col, view, present):
    """Start copying view[row, col] to target[row, col], or a zero if it is not `present`."""
    copy_async(target, (row, col), view.array, (view.row + row, view.col + col), present)


def _is(kind, named):
    return isinstance(kind, types.NamedTuple) and kind.instance_class is named


@overload(operator.getitem)
def _get(whole, index):
    if _is(whole, Tiles):

        def view(whole, index):
            row, col = index[0] * whole.rows, index[1] * whole.cols
            rows = min(whole.rows, whole.array.shape[0] - row)
            cols = min(whole.cols, whole.array.shape[1] - col)
            return TileView(whole.array, row, col, (rows, cols))

        return view
    if _is(whole, TileView) and isinstance(index, types.BaseTuple):

        def element(whole, index):
            return whole.array[uint64(whole.row + index[0]), uint64(whole.col + index[1])]

        return element
    return None


@overload(operator.setitem)
def _set(view, index, value):
    if not _is(view, TileView):
        return None

    def put(view, index, value):
        view.array[uint64(view.row + index[0]), uint64(view.col + index[1])] = value

    return put


# The interpreter's versions; its arrays can be sliced.


class _Tiles:
    def __init__(self, array, rows, cols):
        self.array, self.rows, self.cols = array, int(rows), int(cols)

    def __repr__(self):
        return f"<tiles of {self.rows} × {self.cols}: [i, j] is one of them>"

    def l2(self, i, j, key):
        rows = slice(i * self.rows, (i + 1) * self.rows)
        cols = slice(j * self.cols, (j + 1) * self.cols)
        return self.array.get((rows, cols), key)

    def get(self, index, key):
        return self.l2(*map(int, index), key)


@stands_for(tile)
def _tile(array, rows, cols):
    return _Tiles(array, rows, cols)


@stands_for(copy_element, "copy", arrays=(3, 0))
def _copy_element(copy, target, row, col, view, present):
    copy.begin(target, (row, col), view, (row, col), 1, present)
