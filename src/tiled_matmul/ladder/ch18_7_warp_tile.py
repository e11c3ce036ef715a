"""One tile of C a block in Warp, which says what is loaded, multiplied and stored, and no more.

A block owns C[i·TM :, j·TN :]. Tiles of A, B and C lie in shared memory, so the sums are read and
written in every step; a load has ended before the multiplication begins. What is past an edge reads
as 0 and is not stored. In float32 the default is float32's own multiplication, "tf32" a choice.
Source: NVIDIA, Warp documentation, tiles: matrix multiplication, written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.cubins import chosen, launch, need_aligned, read
from tiled_matmul.kit.plans import remembered
from tiled_matmul.languages.abroad import function_in
from tiled_matmul.languages.warp import WARP

SOURCE = Path(__file__).parent / "abroad/warp_tile.py"
# fmt: off
PRODUCTS = {
    "abroad/products/warp_tile-64-64-64.cubin":
        {"TM": 64, "TN": 64, "TK": 64, "THREADS": 128, "DTYPE": "float16"},
    "abroad/products/warp_tile-128-128-64.cubin":
        {"TM": 128, "TN": 128, "TK": 64, "THREADS": 256, "DTYPE": "float16"},
    "abroad/products/warp_tile-float32-64-64-32.cubin":
        {"TM": 64, "TN": 64, "TK": 32, "THREADS": 128, "DTYPE": "float32"},
    "abroad/products/warp_tile-float32-64-64-32-tf32.cubin":
        {"TM": 64, "TN": 64, "TK": 32, "THREADS": 128, "DTYPE": "float32", "PRECISION": "tf32"},
}
# fmt: on
DTYPES = ("float16", "float32")
TILES = {"float16": (128, 128, 64), "float32": (64, 64, 32)}

warp_tile_kernel = function_in(SOURCE.read_text(encoding="utf-8"), "warp_tile")


@remembered
def matmul(a, b, out=None, *, tile=None, precision=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float16 or float32.

    `tile` (TM, TN, TK) and `precision`, None or "tf32", are those of one of PRODUCTS; without a
    tile, it is that of TILES. M, N and K are any. Raises TypeError or ValueError as
    `tensor_operands`, `chosen` and `launch` do, and ProductError as `read` does.
    """
    _, _, _, out = tensor_operands(a, b, out, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    tm, tn, tk = tile or TILES[dtype]
    name = chosen(PRODUCTS, TM=tm, TN=tn, TK=tk, PRECISION=precision, DTYPE=dtype)
    need_aligned(a=a, b=b, out=out)
    launch(read(Path(__file__).parent / name, SOURCE, WARP.compiler()), a, b, out)
    return out
