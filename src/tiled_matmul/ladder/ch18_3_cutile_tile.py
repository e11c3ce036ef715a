"""One tile of C a block in cuTile, where the compiler chooses threads, stages and copies.

A block owns C[i·BM :, j·BN :]. Blocks take tiles of C in groups of 8 rows of tiles, down a column
and then the next, so that those that run together read few tiles of A and B from DRAM. A row begins
at a multiple of 16 bytes, so that the copies can be TMA's. What was compiled is in PRODUCTS; with
warps="auto" the compiler chooses how many warps compute, instead of the kernel, and with
precision="tf32" float32 is rounded to TF32 before it is multiplied.
Source: NVIDIA, cuTile Python documentation and samples, matrix multiplication, written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.cubins import chosen, launch, need_aligned, need_multiples, read
from tiled_matmul.kit.plans import remembered
from tiled_matmul.languages.abroad import function_in
from tiled_matmul.languages.cutile import CUTILE

SOURCE = Path(__file__).parent / "abroad/cutile_tile.py"
# fmt: off
PRODUCTS = {
    "abroad/products/cutile_tile-128-128-64.cubin":
        {"BM": 128, "BN": 128, "BK": 64, "DTYPE": "float16"},
    "abroad/products/cutile_tile-128-256-64.cubin":
        {"BM": 128, "BN": 256, "BK": 64, "DTYPE": "float16"},
    "abroad/products/cutile_tile-float32-64-64-16.cubin":
        {"BM": 64, "BN": 64, "BK": 16, "DTYPE": "float32"},
    "abroad/products/cutile_tile-float32-64-64-16-auto.cubin":
        {"BM": 64, "BN": 64, "BK": 16, "WARPS": "auto", "DTYPE": "float32"},
    "abroad/products/cutile_tile-float32-128-128-32-tf32.cubin":
        {"BM": 128, "BN": 128, "BK": 32, "DTYPE": "float32", "PRECISION": "tf32"},
}
# fmt: on
DTYPES = ("float16", "float32")
TILES = {"float16": (128, 256, 64), "float32": (64, 64, 16), "tf32": (128, 128, 32)}

cutile_tile_kernel = function_in(SOURCE.read_text(encoding="utf-8"), "cutile_tile")


@remembered
def matmul(a, b, out=None, *, tile=None, warps=None, precision=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float16 or float32.

    `tile` (BM, BN, BK), `warps` and `precision` are those of one of PRODUCTS; without a tile, it is
    that of TILES. A row of each matrix has a multiple of 16 bytes. Raises TypeError or ValueError
    as `tensor_operands`, `chosen` and `launch` do, and ProductError as `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    bm, bn, bk = tile or TILES.get(precision, TILES[dtype])
    wanted = {"WARPS": warps, "DTYPE": dtype, "PRECISION": precision}
    name = chosen(PRODUCTS, BM=bm, BN=bn, BK=bk, **wanted)
    need_multiples(16 // a.element_size(), N=n, K=k)
    need_aligned(a=a, b=b, out=out)
    launch(read(Path(__file__).parent / name, SOURCE, CUTILE.compiler()), a, b, out)
    return out
