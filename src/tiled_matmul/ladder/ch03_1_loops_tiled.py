"""Loops 3 and Loops 4: the three loops cut into tiles, compiled.

Three loops walk over tiles, three over the elements of one tile. What changed from the rung below:
the index i became i + i0, and likewise j and k. Loops 3 leaves the six loops where they were, so
it does what it did; Loops 4 puts the three outer ones outside, so that a tile of B is used for a
whole tile of C while it is still in the cache. Inside a tile stands chapter 2's best order. `min`
keeps the last tile of a ragged matrix inside it.
Source: Lam, Rothberg & Wolf (1991); "Loops 3" and "Loops 4" of Tiled Matmul 101 (2025), whose
ranges and indices are mended here.
"""

import numpy as np
from numba import njit

from tiled_matmul.kit.arguments import numpy_operands, positive

TILE = 128  # a float32 tile of B is then 64 KiB: it stays in any level-2 cache


@njit
def loops_3(a, b, c, M, N, K, T):
    c[:] = 0
    for i in range(0, M, T):
        for i0 in range(min(T, M - i)):
            for j in range(0, N, T):
                for j0 in range(min(T, N - j)):
                    for k in range(0, K, T):
                        for k0 in range(min(T, K - k)):
                            c[i + i0, j + j0] += a[i + i0, k + k0] * b[k + k0, j + j0]


@njit
def loops_4(a, b, c, M, N, K, T):
    c[:] = 0
    for i in range(0, M, T):
        for j in range(0, N, T):
            for k in range(0, K, T):
                for i0 in range(min(T, M - i)):
                    for k0 in range(min(T, K - k)):
                        for j0 in range(min(T, N - j)):
                            c[i + i0, j + j0] += a[i + i0, k + k0] * b[k + k0, j + j0]


def matmul(a, b, out=None, tile=TILE):
    """Return a (M, K) · b (K, N) as (M, N). numpy arrays, row-major, float32 or float64.

    `tile` is the edge T of the square tiles, in elements. Raises TypeError or ValueError for a
    tile that is not a positive int, and as `numpy_operands` does.
    """
    positive("tile", tile)
    m, n, k, out = numpy_operands(a, b, out)
    # Sizes without a sign: an index made of them cannot be negative, so Numba need not test each
    # one for Python's counting from the end, and the innermost loop becomes vector code.
    loops_4(a, b, out, *(np.uint64(size) for size in (m, n, k, min(tile, max(m, n, k)))))
    return out
