"""Descriptors of rows that end where the kernel says, as groups of rows do.

A descriptor's sizes are fixed when it is made, and copies stop there: loads give zeros beyond, and
stores store nothing. To stop at another row, the matrix is described as one of BEYOND rows, whose
last ones are those before `end`: row BEYOND - 1 is row end - 1. Where row 0 lies then depends on
`end`, and two more dimensions, of one step each, move it there: the first goes BEYOND rows back,
the second `end` rows on. A step back is a stride that is short of a power of two by a row, since
BEYOND such steps overflow the 64 bits of an address and leave only the rows.
Source: Triton, `triton.tools.ragged_tma`.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tiled_matmul.kit.layouts import describable

MOST_ROWS = 2**30
BEYOND = tl.constexpr(MOST_ROWS)
OVERFLOWS = 2**34  # elements; MOST_ROWS times that is 2^64
ANY = 0x7FFF0000  # a size that no coordinate reaches


def describe_ragged(tensor: Any, rows: int, columns: int) -> Any:
    """Return a descriptor for rows × columns tiles of a matrix that `describable` accepts.

    `load_before` and `store_before` take it. Raises ValueError for too many rows.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    assert describable(tensor)
    if tensor.shape[0] > MOST_ROWS:
        raise ValueError(f"rows in groups may be {MOST_ROWS} at most, got {tensor.shape[0]}")
    row, column = tensor.stride()
    sizes = [ANY, ANY, MOST_ROWS, tensor.shape[1]]
    return TensorDescriptor(
        tensor, sizes, [OVERFLOWS - row, row, row, column], [1, 1, rows, columns]
    )


@triton.jit
def load_before(x, end, row, column):
    """Return the tile at (row, column), with zeros from row `end` on."""
    tile = x.load([BEYOND, end, row + (BEYOND - end), column])
    return tile.reshape(tile.shape[2], tile.shape[3])


@triton.jit
def store_before(x, end, row, column, values):
    """Store a tile at (row, column), up to row `end`."""
    tile = values.to(x.dtype).reshape(x.block_shape)
    x.store([BEYOND, end, row + (BEYOND - end), column], tile)
