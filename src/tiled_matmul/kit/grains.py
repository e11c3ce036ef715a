"""Grains: how many neighbouring elements of a matrix lie together at multiples of their size.

A thread may load so many at once. A descriptor needs rows of GRAIN.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import triton
import triton.language as tl

from tiled_matmul.kit.programs import either_way

GRAIN = 8  # 16-bit elements that a thread can load at once: 16 bytes


def lie(x: Any) -> tuple[int, int, bool]:
    """Return (pitch, grain, does it lie by columns?) of a matrix that has a stride of 1."""
    by_columns = x.stride(0) == 1 and (x.stride(1) > 1 or x.shape[1] == 1)
    pitch, length = (x.stride(1), x.shape[0]) if by_columns else (x.stride(0), x.shape[1])
    return pitch, gcd(GRAIN, pitch, length), by_columns


def grain(x: Any) -> int:
    """Return GRAIN if a descriptor fits the matrix or its transpose, else 4, 2 or 1."""
    if either_way(x):
        return GRAIN
    return min(GRAIN // 2, lie(x)[1]) if 1 in x.stride() else 1


def across(a: Any, b: Any) -> int:
    """Return how many of a and b have a grain of 1 and lie across K: a by columns, b by rows."""
    return sum(grain(x) == 1 and x.stride(0) == 1 for x in (a, b.T))


@triton.jit
def whole(x, GRAIN: tl.constexpr):  # noqa: N803
    """Return x, which GRAIN divides, such that the compiler knows."""
    return x // GRAIN * GRAIN


@triton.jit
def places(x, pitch, rows, columns, GRAIN: tl.constexpr, BY_COLUMNS: tl.constexpr):  # noqa: N803
    """Return the addresses of elements of a matrix whose rows, or columns, are `pitch` apart."""
    long = whole(pitch, GRAIN).to(tl.int64)
    if BY_COLUMNS:
        return x + (rows.to(tl.int64)[:, None] + columns.to(tl.int64)[None, :] * long)
    return x + (rows.to(tl.int64)[:, None] * long + columns.to(tl.int64)[None, :])


@triton.jit
def within(rows, columns, M, N, GRAIN: tl.constexpr, BY_COLUMNS: tl.constexpr):  # noqa: N803
    """Return which elements an M×N matrix has. GRAIN divides M if it lies BY_COLUMNS, else N."""
    if BY_COLUMNS:
        return (rows[:, None] < whole(M, GRAIN)) & (columns[None, :] < N)
    return (rows[:, None] < M) & (columns[None, :] < whole(N, GRAIN))


@triton.jit
def tile_at(at, rows, columns, M, N, GRAIN: tl.constexpr, BY_COLUMNS: tl.constexpr):  # noqa: N803
    """Return what an M×N matrix has at these addresses, and zeros beyond its edges."""
    return tl.load(at, mask=within(rows, columns, M, N, GRAIN, BY_COLUMNS), other=0.0)
