"""C (M, N) = A (M, K) @ B (K, N) in NVIDIA Warp: a block of threads owns one tile of C."""

import warp as wp

TM = 64
TN = 64
TK = 64
THREADS = 128
DTYPE = wp.float16


@wp.kernel(enable_backward=False)
def warp_tile(
    a: wp.array2d(dtype=DTYPE),
    b: wp.array2d(dtype=DTYPE),
    c: wp.array2d(dtype=DTYPE),
):
    i, j = wp.tid()
    acc = wp.tile_zeros(shape=(TM, TN), dtype=wp.float32)
    for k in range(0, a.shape[1], TK):
        a_tile = wp.tile_load(a, shape=(TM, TK), offset=(i * TM, k), storage="shared")
        b_tile = wp.tile_load(b, shape=(TK, TN), offset=(k, j * TN), storage="shared")
        wp.tile_matmul(a_tile, b_tile, acc)
    wp.tile_store(c, wp.tile_astype(acc, dtype=DTYPE), offset=(i * TM, j * TN))


def matmul(a, b, c):
    """Write a (M, K) · b (K, N) to c (M, N), Warp arrays of DTYPE."""
    tiles = -(-c.shape[0] // TM), -(-c.shape[1] // TN)
    given = [a, b, c]
    wp.launch_tiled(warp_tile, dim=tiles, inputs=given, block_dim=THREADS, device=c.device)
