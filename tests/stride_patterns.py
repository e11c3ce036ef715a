"""Tensors of every stride pattern, in memory whose other elements are NaN.

`PATTERNS` names functions that lay a tensor out in a line of memory: strides, in elements, for its
last two sizes, and where its first element lies. `laid_out` makes such a tensor with random numbers
and `Guard` finds what was written outside of it. A kernel that reads outside of it reads NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps

import pytest
import torch

AROUND = 1024  # elements of NaN before the first and after the last
ODD = 11  # a stride where a size of 1 makes any stride right


def padded(size: int) -> int:
    """Return the next multiple of 8 elements, which descriptors of 16-bit rows need."""
    return -(-size // 8) * 8


# Name: (row stride, column stride, offset of the first element) of (rows, columns).
PATTERNS: dict[str, Callable[[int, int], tuple[int, int, int]]] = {
    "rows": lambda r, c: (c, 1, 0),
    "columns": lambda r, c: (1, r, 0),
    "aligned rows": lambda r, c: (padded(c), 1, 0),
    "aligned columns": lambda r, c: (1, padded(r), 0),
    "part of longer rows": lambda r, c: (c + 5, 1, 3),
    "part of longer columns": lambda r, c: (1, r + 5, 3),
    "off by one element": lambda r, c: (padded(c), 1, 1),
    "every second row": lambda r, c: (2 * padded(c), 1, 0),
    "every second column": lambda r, c: (2 * c, 2, 0),
    "every third of both": lambda r, c: (9 * c, 3, 1),
    "strides swapped and doubled": lambda r, c: (2, 2 * r + 6, 0),
    "one row for all": lambda r, c: (0, 1, 0),
    "one column for all": lambda r, c: (1, 0, 0),
    "one column for all, apart": lambda r, c: (3, 0, 0),
    "one row for all, apart": lambda r, c: (0, 2, 5),
    "one element for all": lambda r, c: (0, 0, 0),
    "diagonals shared": lambda r, c: (1, 1, 0),
    "rows overlap": lambda r, c: (2, 1, 0),
    "rows overlap, aligned": lambda r, c: (8, 1, 0),
    "columns overlap": lambda r, c: (1, 2, 0),
    "columns overlap, aligned": lambda r, c: (1, 8, 0),
}
# Those in which elements share addresses; an out may not have them.
SHARED = [
    name for name in PATTERNS if any(word in name for word in ("for all", "shared", "overlap"))
]


def on_the_gpu(test: Callable) -> Callable:
    """Return a test once more, for `make test-gpu`, with all of its cases."""

    @wraps(test)
    def again(*arguments, **named):
        return test(*arguments, **named)

    kept = [mark for mark in test.pytestmark if mark.name not in ("sample", "long")]
    again.pytestmark = [*kept, pytest.mark.gpu.mark]
    return again


@dataclass
class Guard:
    """The memory around a tensor."""

    memory: torch.Tensor
    inside: torch.Tensor  # where the tensor has elements, as a mask over the memory

    def check(self) -> None:
        """Raise AssertionError if anything outside of the tensor was written."""
        written = ~self.inside & ~torch.isnan(self.memory.float())
        if bool(written.any()):
            first = torch.nonzero(self.inside)[0].item()
            at = torch.nonzero(written).flatten() - first
            raise AssertionError(
                f"{len(at)} elements around a tensor were written, the first of them "
                f"{at[0].item()} elements from the tensor's first"
            )


def laid_out(
    pattern: str,
    shape: Sequence[int],
    dtype: torch.dtype = torch.float16,
    device: str = "cpu",
    seed: int = 0,
    batch: str = "apart",
) -> tuple[torch.Tensor, Guard]:
    """Return a tensor (…, rows, columns) of small integers, and its Guard.

    Where rows or columns are 1, their stride is ODD. With three sizes, `batch` says where the
    matrices lie: "apart", "one for all", or "overlapping", 8 elements after each other.
    """
    *batches, rows, columns = shape
    row, column, offset = PATTERNS[pattern](rows, columns)
    row, column = (ODD if rows == 1 else row), (ODD if columns == 1 else column)
    span = (rows - 1) * row + (columns - 1) * column + 1
    steps = [{"apart": padded(span) + 8, "one for all": 0, "overlapping": 8}[batch]] * len(batches)
    strides = (*steps, row, column)
    span += sum((size - 1) * step for size, step in zip(batches, steps, strict=True))
    start = AROUND + offset
    size = start + span + AROUND
    inside = torch.zeros(size, dtype=torch.bool)
    inside.as_strided(tuple(shape), strides, start).fill_(True)
    numbers = torch.Generator().manual_seed(seed)
    values = torch.randint(-3, 4, (size,), generator=numbers).float()
    values[~inside] = float("nan")
    memory, inside = values.to(dtype).to(device), inside.to(device)
    return memory.as_strided(tuple(shape), strides, start), Guard(memory, inside)
