"""Loops 4: the three loops cut into tiles, compiled.

Three outer loops walk over tiles, three inner loops over the elements of one tile. What changed
from the rung below: the index i became (i, i0), and likewise j and k, so that the six loops can
be interchanged until the same three tiles are used while they are still in the cache. `min` keeps
the last tile of a ragged matrix inside it.
Source: Lam, Rothberg & Wolf (1991); "Loops 4" of Tiled Matmul 101 (2025), whose ranges and
indices are mended here.
"""

from numba import njit

from tiled_matmul.ladder.arguments import numpy_operands, positive

TILE = 64  # three 64×64 float32 tiles are 48 KiB: one level-1 cache of today, or a little more


@njit
def loops_4(a, b, c, T):
    M, K = a.shape
    N = b.shape[1]
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
    *_, out = numpy_operands(a, b, out)
    loops_4(a, b, out, tile)
    return out
