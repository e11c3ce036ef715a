"""One tile of C a block in CuTe DSL: one warp copies with TMA, eight multiply with wgmma.

A block owns C[i·128 :, j·BN :], and STAGES pairs of tiles of A and B are on their way to it. Blocks
run in panels of 8 rows of tiles, and the last panel is whole: beyond C's last row they copy zeros
and store nothing. A tile of C is stored by way of the memory that B's tiles had. The structure is
that of `gluon_specialised`; here layouts are values that are cut and grouped.
Source: NVIDIA, CUTLASS documentation, CuTe DSL: dense GEMM for Hopper, written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.cubins import chosen, launch, need_aligned, need_multiples, read
from tiled_matmul.kit.plans import remembered
from tiled_matmul.languages.abroad import function_in
from tiled_matmul.languages.cute import CUTE

SOURCE = Path(__file__).parent / "abroad/cute_tile.py"
PRODUCTS = {
    "abroad/products/cute_tile-128-6.cubin": {"BN": 128, "STAGES": 6},
    "abroad/products/cute_tile-256-4.cubin": {"BN": 256, "STAGES": 4},
}
DTYPES = ("float16",)
TILE = 128, 256, 64

cute_tile_kernel = function_in(SOURCE.read_text(encoding="utf-8"), "cute_tile")


@remembered
def matmul(a, b, out=None, *, tile=TILE):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float16.

    `tile` is (128, BN, 64), BN that of one of PRODUCTS. N and K are multiples of 8. Raises
    TypeError or ValueError as `tensor_operands`, `chosen` and `launch` do, and ProductError as
    `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    bm, bn, bk = tile
    if (bm, bk) != (TILE[0], TILE[2]):
        raise ValueError(f"a tile is 128×BN×64, got {bm}×{bn}×{bk}")
    name = chosen(PRODUCTS, BN=bn)
    need_multiples(8, N=n, K=k)
    need_aligned(a=a, b=b, out=out)
    launch(read(Path(__file__).parent / name, SOURCE, CUTE.compiler()), a, b, out)
    return out
