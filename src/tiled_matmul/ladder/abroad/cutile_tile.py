"""C (M, N) = A (M, K) · B (K, N) in cuTile: one tile of C a block, sums in float32."""

import cuda.tile as ct

Size = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


@ct.kernel
def cutile_tile(a, b, c, BM: Size, BN: Size, BK: Size):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], BK)):
        a_tile = ct.load(a, (i, k), (BM, BK), padding_mode=ZERO)
        b_tile = ct.load(b, (k, j), (BK, BN), padding_mode=ZERO)
        acc = ct.mma(a_tile, b_tile, acc)
    ct.store(c, (i, j), acc.astype(c.dtype))
