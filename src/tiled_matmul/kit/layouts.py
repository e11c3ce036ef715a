"""How a matrix lies in memory: the one place where strides are classified.

A torch tensor may have any strides that are not negative. A stride of 0 makes one element stand for
many: `expand` makes such tensors, and so does autograd, as the gradient of a sum along one axis has
the strides (1, 0) or (0, 1). Elements of a view may share addresses. And where a size is 1, the
stride says nothing: it may be any number. So a stride of 1 alone does not say which axis is dense.

Nothing here reads a tensor's elements or allocates memory. Sizes and strides are in elements.
"""

from __future__ import annotations

from math import gcd
from typing import Any, NamedTuple

GRAIN = 8  # 16-bit elements that a thread can load at once: 16 bytes
ALIGNED = 16  # bytes: what a descriptor needs, and what Triton compiles for
# Bytes: a line of the L2, one of its sectors, of which it hands out at least one, and ALIGNED.
BEGINS = (128, 32, ALIGNED)


class Layout(NamedTuple):
    """How the elements of a matrix that has a dense axis are addressed.

    Element (i, j) is `i + j · pitch` elements behind the first with `by_columns`, else
    `i · pitch + j`. `grain` is the largest of 8, 4, 2 and 1 that divides the pitch and the length
    of the dense axis, so a thread may load that many neighbours at once.
    """

    pitch: int
    grain: int
    by_columns: bool


def layout_of(x: Any) -> Layout:
    """Return the Layout of a matrix (rows, columns) that `has_dense_axis`.

    Raises ValueError, which quotes the strides, for any other.
    """
    (row, column), (rows, columns) = x.stride(), x.shape
    if row == 1 and (column != 1 or columns == 1):
        return Layout(column, gcd(GRAIN, column, rows), True)
    if column == 1:
        return Layout(row, gcd(GRAIN, row, columns), False)
    raise ValueError(
        f"a matrix {tuple(x.shape)} with strides {tuple(x.stride())} has no dense axis"
    )


def has_dense_axis(x: Any) -> bool:
    """Return whether elements that are neighbours in a row, or in a column, are so in memory."""
    return 1 in x.stride()


def by_columns(x: Any) -> bool:
    """Return whether a matrix lies column by column, and no columns share elements."""
    return x.stride(0) == 1 and x.stride(1) >= x.shape[0]


def nearer_by_columns(x: Any) -> bool:
    """Return whether to read a matrix, or a batch of them, column by column.

    An axis along which one element stands for many is the last to go along.
    """
    row, column = (
        stride if size > 1 and stride > 0 else float("inf")
        for stride, size in zip(x.stride()[-2:], x.shape[-2:], strict=True)
    )
    return row < column


def grain(x: Any, stored: bool = False) -> int:
    """Return GRAIN if a descriptor fits the matrix or its transpose, else 4, 2 or 1.

    With `stored`, it has to be one that may store.
    """
    if (storable(x) or storable(x.mT)) if stored else either_way(x):
        return GRAIN
    return min(GRAIN // 2, layout_of(x).grain) if has_dense_axis(x) else 1


def grains(a: Any, b: Any, out: Any) -> tuple[int, int, int]:
    """Return the grains of the operands of a product; out is stored to."""
    return grain(a), grain(b), grain(out, stored=True)


def begins(x: Any) -> int:
    """Return where rows of a matrix as it lies begin: multiples of so many bytes, 128, 32 or 16.

    Of a matrix that no descriptor fits, those of its aligned copy.
    """
    if either_way(x):
        pitch = x.stride(0 if describable(x) else 1)
    else:
        fit = ALIGNED // x.element_size()
        pitch = -(-x.shape[0 if nearer_by_columns(x) else 1] // fit) * fit
    return next(each for each in BEGINS if pitch * x.element_size() % each == 0)


def across(a: Any, b: Any) -> int:
    """Return how many of a and b have a grain of 1 and lie across K: a by columns, b by rows."""
    return sum(grain(x) == 1 and x.stride(0) == 1 for x in (a, b.T))


def describable(x: Any) -> bool:
    """Return whether the rows are as a descriptor needs them: dense, each aligned to 16 bytes."""
    *others, row, column = x.stride()
    size = x.element_size()
    even = row * size % ALIGNED == 0 and all(each * size % ALIGNED == 0 for each in others)
    return column == 1 and row >= x.shape[-1] and even and x.data_ptr() % ALIGNED == 0


def storable(x: Any) -> bool:
    """Return whether a descriptor may store to the matrix, and changes nothing else.

    NVIDIA's hardware stores whole 16 bytes: of rows that end in the middle of these, it overwrites
    what lies behind. Loads stop at the element.
    """
    return describable(x) and x.shape[-1] * x.element_size() % ALIGNED == 0


def either_way(x: Any) -> bool:
    """Return whether a descriptor fits the matrix or its transpose."""
    return describable(x) or describable(x.mT)


def with_settled_strides(x: Any) -> Any:
    """Return a batch of matrices (batch, rows, columns), with the same elements, for descriptors.

    Where a size is 1, any stride is right; this takes one that `describable` accepts.
    """
    (batch, row, column), (_, rows, columns) = x.stride(), x.shape
    if rows == 1:
        row = _rounded_up(columns) if column == 1 else 1
    elif columns == 1:
        column = _rounded_up(rows) if row == 1 else 1
    if x.shape[0] == 1:
        batch = _rounded_up(max(rows * row, columns * column))
    return x.as_strided(x.shape, (batch, row, column))


def shares_elements(x: Any) -> bool:
    """Return whether two indices may have one address: a stride must clear what shorter ones span.

    It may say True for a tensor of an unusual order of strides whose elements are all apart.
    """
    reach = 1
    for stride, count in sorted(zip(x.stride(), x.shape, strict=True)):
        if count > 1 and stride < reach:
            return True
        reach += stride * (count - 1)
    return False


def overlap(x: Any, y: Any) -> bool:
    """Return whether the address ranges of two tensors, first to last element, overlap."""
    ends = [z.data_ptr() + span_bytes(z) for z in (x, y)]
    return max(x.data_ptr(), y.data_ptr()) < min(ends)


def span_bytes(x: Any) -> int:
    """Return the bytes from a tensor's first to its last element (0 if it is empty)."""
    if 0 in x.shape:
        return 0
    last = sum(stride * (size - 1) for stride, size in zip(x.stride(), x.shape, strict=True))
    return (last + 1) * x.element_size()


def _rounded_up(elements: int) -> int:
    return -(-elements // GRAIN) * GRAIN
