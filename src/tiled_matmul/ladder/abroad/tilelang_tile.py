"""C (M, N) = A (M, K) · B (K, N) in TileLang: a block owns a tile of C, float32 sums."""

import tilelang
import tilelang.language as T


@tilelang.jit
def tilelang_tile(
    a,
    b,
    bm=128,
    bn=256,
    bk=64,
    stages=4,
    threads=256,
    dtype=T.float16,
    policy=T.GemmWarpPolicy.FullRow,
):
    M, N, K = T.dynamic("M, N, K")
    a: T.Tensor((M, K), dtype)
    b: T.Tensor((K, N), dtype)
    c = T.empty((M, N), dtype)

    with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
        a_tile = T.alloc_shared((bm, bk), dtype)
        b_tile = T.alloc_shared((bk, bn), dtype)
        c_tile = T.alloc_shared((bm, bn), dtype)
        acc = T.alloc_fragment((bm, bn), T.float32)

        T.use_swizzle(panel_size=8)
        T.clear(acc)
        for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
            T.copy(a[by * bm, k * bk], a_tile)
            T.copy(b[k * bk, bx * bn], b_tile)
            T.gemm(a_tile, b_tile, acc, policy=policy)
        T.copy(acc, c_tile)
        T.copy(c_tile, c[by * bm, bx * bn])

    return c
