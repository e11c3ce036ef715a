"""Packed tiles in parallel: Loops 4 the way BLAS libraries do it.

One iteration of the parallel loop owns one tile of C, TILE_M × TILE_N, and walks along K. What
changed from the rung below, in four steps:

- Packing. A and B are first copied so that each tile is one contiguous piece of memory, its ragged
  edge filled up with zeros. All tiles are then alike, so the loops over one have constant bounds.
- A register block. 4×4 elements of A stay in registers while four rows of B and four of C pass
  by: 16 multiply-adds for 8 loads of B and C and 4 stores of C, and not for 32 and 16.
- Vectors. The compiler turns the loop over j into vector instructions, of the width asked for.
- Threads. No two tiles of C share an element, so the loop over them is a `prange`.

Each element of C is still summed in the order of k, whatever the tiles and the number of threads.
Source: Goto & van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008); Van Zee &
van de Geijn, BLIS (2015). Both keep a block of C in registers; Numba has no arrays there, so here
it is A's that stays.
"""

import numpy as np
from numba import njit, prange

from tiled_matmul.kit.arguments import numpy_operands
from tiled_matmul.kit.vectors import aligned_zeros, use_widest_vectors

TILE_M = 128  # C's tile: 64 KiB in float32, streamed from the level-2 cache
TILE_N = 128  # B's tile of 32×128 is 16 KiB (float64: 32 KiB) and stays in the level-1 cache
TILE_K = 32


@njit(parallel=True)
def pack(matrix, tiles, rows, columns):
    """Copy tile (i, j), rows × columns, to tiles[i, j]; the padding is not written."""
    M, N = matrix.shape
    for t in prange(tiles.shape[0] * tiles.shape[1]):
        i, j = t // tiles.shape[1], t % tiles.shape[1]
        tile = tiles[i, j]
        for i0 in range(min(rows, M - i * rows)):
            for j0 in range(min(columns, N - j * columns)):
                tile[i0 * columns + j0] = matrix[i * rows + i0, j * columns + j0]


@njit(fastmath={"contract"})  # c + a·b as one fused multiply-add: rounded once instead of twice
def multiply_tiles(a, b, c):
    """c += a · b for packed tiles. Flat arrays and constant bounds let LLVM vectorise over j."""
    use_widest_vectors()
    for i in range(0, TILE_M, 4):
        for k in range(0, TILE_K, 4):
            p = i * TILE_K + k
            a00, a01, a02, a03 = a[p], a[p + 1], a[p + 2], a[p + 3]
            p += TILE_K
            a10, a11, a12, a13 = a[p], a[p + 1], a[p + 2], a[p + 3]
            p += TILE_K
            a20, a21, a22, a23 = a[p], a[p + 1], a[p + 2], a[p + 3]
            p += TILE_K
            a30, a31, a32, a33 = a[p], a[p + 1], a[p + 2], a[p + 3]
            for j in range(TILE_N):
                q = k * TILE_N + j
                b0, b1, b2, b3 = b[q], b[q + TILE_N], b[q + 2 * TILE_N], b[q + 3 * TILE_N]
                r = i * TILE_N + j
                c[r] = c[r] + a00 * b0 + a01 * b1 + a02 * b2 + a03 * b3
                r += TILE_N
                c[r] = c[r] + a10 * b0 + a11 * b1 + a12 * b2 + a13 * b3
                r += TILE_N
                c[r] = c[r] + a20 * b0 + a21 * b1 + a22 * b2 + a23 * b3
                r += TILE_N
                c[r] = c[r] + a30 * b0 + a31 * b1 + a32 * b2 + a33 * b3


@njit(parallel=True)
def packed_kernel(a_tiles, b_tiles, c):
    M, N = c.shape
    tiles_m = a_tiles.shape[0]
    for t in prange(tiles_m * b_tiles.shape[1]):
        i, j = t % tiles_m, t // tiles_m  # neighbours share tiles of B
        tile = aligned_zeros(TILE_M * TILE_N, c.dtype)
        for k in range(b_tiles.shape[0]):
            multiply_tiles(a_tiles[i, k], b_tiles[k, j], tile)
        for i0 in range(min(TILE_M, M - i * TILE_M)):
            for j0 in range(min(TILE_N, N - j * TILE_N)):
                c[i * TILE_M + i0, j * TILE_N + j0] = tile[i0 * TILE_N + j0]


def packed(matrix: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return the matrix cut into tiles: shape (⌈M/rows⌉, ⌈N/columns⌉, rows·columns), aligned."""
    m, n = -(-matrix.shape[0] // rows), -(-matrix.shape[1] // columns)
    tiles = aligned_zeros(m * n * rows * columns, matrix.dtype).reshape(m, n, rows * columns)
    pack(matrix, tiles, rows, columns)
    return tiles


def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). numpy arrays, row-major, float32 or float64.

    Runs on `numba.get_num_threads()` threads and needs room for a copy of A and one of B. Compiles
    at the first call, a few seconds for each dtype. Raises TypeError or ValueError as
    `numpy_operands` does.
    """
    *_, out = numpy_operands(a, b, out)
    packed_kernel(packed(a, TILE_M, TILE_K), packed(b, TILE_K, TILE_N), out)
    return out
