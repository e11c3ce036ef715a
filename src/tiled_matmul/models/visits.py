"""Which (i, j, k) a loop nest visits, and in which order, found by running the loops themselves.

A loop nest over (i, j, k) is a list of visits; each visit is one multiplication and one addition.
`visits` makes the list: it runs the loops on three stand-ins for A, B and C that record each index
read. `replay` does the arithmetic of such a list, in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

Visit = tuple[int, int, int]


class _Watched:
    """A stand-in for a matrix of ones that records the index of every element read."""

    def __init__(self, rows: int, columns: int) -> None:
        self.shape = (rows, columns)
        self.read: list[tuple[int, int]] = []

    def __getitem__(self, index: tuple[int, int]) -> int:
        self.read.append(index)
        return 1

    def __setitem__(self, index: object, value: int) -> None:
        pass


def visits(loops: Callable, m: int, n: int, k: int, *arguments: object) -> list[Visit]:
    """Return the list of (i, j, k) that `loops(a, b, c, *arguments)` visits, in order.

    `loops` is a Python function, or a Numba function, whose Python form is run. Its only statement
    is `c[i, j] += a[i, k] * b[k, j]`, though it may first fill c. a is (m, k), b (k, n), c (m, n).
    Indices are recorded even if they lie outside the matrices. Raises ValueError if the reads of A,
    B and C do not belong to one (i, j, k) each.
    """
    a, b, c = _Watched(m, k), _Watched(k, n), _Watched(m, n)
    getattr(loops, "py_func", loops)(a, b, c, *arguments)
    if not len(a.read) == len(b.read) == len(c.read):
        raise ValueError(
            f"A was read {len(a.read)} times, B {len(b.read)} and C {len(c.read)}; each visit "
            "reads one element of each"
        )
    for (i, p), (q, j), at in zip(a.read, b.read, c.read, strict=True):
        if p != q or at != (i, j):
            raise ValueError(f"A[{i}, {p}] · B[{q}, {j}] does not belong into C{list(at)}")
    return [(i, j, p) for (i, p), (_, j) in zip(a.read, b.read, strict=True)]


def replay(order: Iterable[Visit], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return C (M, N) after `c[i, j] += a[i, k] * b[k, j]` for each visit of `order` in turn.

    a (M, K) and b (K, N) have C's dtype, to which each product and each sum is rounded. C starts
    from zero. Raises IndexError for a visit outside the matrices.
    """
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i, j, k in order:
        if min(i, j, k) < 0:
            raise IndexError(f"the visit ({i}, {j}, {k}) lies outside the matrices")
        c[i, j] += a[i, k] * b[k, j]
    return c
