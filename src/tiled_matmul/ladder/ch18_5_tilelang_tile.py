"""One tile of C a block in TileLang, which is told the tiles, the stages and the threads.

A block owns C[i·BM :, j·BN :], and blocks run in panels of 8 columns of tiles. The compiler splits
the loop over K between warps that copy with TMA and warps that multiply. FullRow gives each of
the latter whole rows of a tile.
Source: TileLang's documentation, matrix multiplication, written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.cubins import chosen, launch, need_aligned, need_multiples, read
from tiled_matmul.kit.plans import remembered
from tiled_matmul.languages.abroad import function_in
from tiled_matmul.languages.tilelang import TILELANG

SOURCE = Path(__file__).parent / "abroad/tilelang_tile.py"
# fmt: off
PRODUCTS = {
    "abroad/products/tilelang_tile-128-128-64.cubin":
        {"BM": 128, "BN": 128, "BK": 64, "STAGES": 4, "THREADS": 128, "DTYPE": "float16"},
    "abroad/products/tilelang_tile-128-256-64.cubin":
        {"BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "THREADS": 256, "DTYPE": "float16"},
    "abroad/products/tilelang_tile-float32-128-128-32.cubin":
        {"BM": 128, "BN": 128, "BK": 32, "STAGES": 4, "THREADS": 256, "DTYPE": "float32",
         "POLICY": "Square"},
}
# fmt: on
DTYPES = ("float16", "float32")
TILES = {"float16": (128, 256, 64), "float32": (128, 128, 32)}

tilelang_tile_kernel = function_in(SOURCE.read_text(encoding="utf-8"), "tilelang_tile")


@remembered
def matmul(a, b, out=None, *, tile=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float16 or float32.

    `tile` (BM, BN, BK) is that of one of PRODUCTS; without one, it is that of TILES. A row of
    each matrix has a multiple of 16 bytes. Raises TypeError or ValueError as `tensor_operands`,
    `chosen` and `launch` do, and ProductError as `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    bm, bn, bk = tile or TILES[dtype]
    name = chosen(PRODUCTS, BM=bm, BN=bn, BK=bk, DTYPE=dtype)
    need_multiples(16 // a.element_size(), N=n, K=k)
    need_aligned(a=a, b=b, out=out)
    launch(read(Path(__file__).parent / name, SOURCE, TILELANG.compiler()), a, b, out)
    return out
