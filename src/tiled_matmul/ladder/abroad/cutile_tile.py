"""C (M, N) = A (M, K) · B (K, N) in cuTile: one tile of C a block, sums in float32."""

import cuda.tile as ct

Size = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO
GROUP = 8  # rows of tiles of C that blocks take together


@ct.kernel(num_worker_warps=8)
def cutile_tile(a, b, c, BM: Size, BN: Size, BK: Size, TF32: ct.Constant[bool]):
    rows = ct.num_tiles(c, axis=0, shape=(BM, BN))
    columns = ct.num_tiles(c, axis=1, shape=(BM, BN))
    group, at = ct.bid(0) // (GROUP * columns), ct.bid(0) % (GROUP * columns)
    high = min(rows - GROUP * group, GROUP)
    i, j = GROUP * group + at % high, at // high
    dtype = ct.tfloat32 if TF32 else a.dtype
    acc = ct.zeros((BM, BN), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(BM, BK))):
        a_tile = ct.load(a, index=(i, k), shape=(BM, BK), padding_mode=ZERO)
        b_tile = ct.load(b, index=(k, j), shape=(BK, BN), padding_mode=ZERO)
        acc = ct.mma(a_tile.astype(dtype), b_tile.astype(dtype), acc)
    ct.store(c, index=(i, j), tile=acc.astype(c.dtype))


def matmul(a, b, c, BM=128, BN=256, BK=64, TF32=False):
    import torch

    grid = (ct.cdiv(a.shape[0], BM) * ct.cdiv(b.shape[1], BN),)
    stream = torch.cuda.current_stream()
    ct.launch(stream, grid, cutile_tile, (a, b, c, BM, BN, BK, TF32))
