"""Tiles by pointers, of a matrix that has a dense axis: see `kit.layouts` for pitch and grain.

A thread may load GRAIN neighbouring elements at once, as they lie at multiples of their size.
"""

from __future__ import annotations

import triton
import triton.language as tl


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
