"""One tile of C a program in Helion: PyTorch's `addmm` on tiles, which Helion turns into Triton.

`hl.tile` runs over tiles of C side by side, and over K in a loop. How large they are, how they are
read and in which order programs run are not in the kernel: Helion tunes the config, or is given it.
What Helion wrote lies beside each product. With precision="ieee", float32 is multiplied as float32.
Source: Helion's documentation, matrix multiplication, written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.cubins import chosen, launch, need_aligned, need_multiples, read
from tiled_matmul.kit.plans import remembered
from tiled_matmul.languages.abroad import function_in
from tiled_matmul.languages.helion import HELION

SOURCE = Path(__file__).parent / "abroad/helion_tile.py"
# fmt: off
PRODUCTS = {
    "abroad/products/helion_tile-128-128-64.cubin":
        {"BM": 128, "BN": 128, "BK": 64, "STAGES": 3, "DTYPE": "float16"},
    "abroad/products/helion_tile-128-256-64.cubin":
        {"BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "DTYPE": "float16"},
    "abroad/products/helion_tile-float32-128-128-32.cubin":
        {"BM": 128, "BN": 128, "BK": 32, "STAGES": 4, "DTYPE": "float32"},
    "abroad/products/helion_tile-float32-128-128-32-ieee.cubin":
        {"BM": 128, "BN": 128, "BK": 32, "STAGES": 3, "DTYPE": "float32", "INDEXING": "pointer",
         "PRECISION": "ieee"},
}
# fmt: on
DTYPES = ("float16", "float32")
TILES = {"float16": (128, 256, 64), "float32": (128, 128, 32)}
MULTIPLE = 16  # of N and K, which Triton knew when it compiled

helion_tile_kernel = function_in(SOURCE.read_text(encoding="utf-8"), "helion_tile")


@remembered
def matmul(a, b, out=None, *, tile=None, precision=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors, row-major, float16 or float32.

    `tile` (BM, BN, BK) and `precision` are those of one of PRODUCTS; without a tile, it is that of
    TILES. N and K are multiples of 16. Raises TypeError or ValueError as `tensor_operands`,
    `chosen` and `launch` do, and ProductError as `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    bm, bn, bk = tile or TILES[dtype]
    name = chosen(PRODUCTS, BM=bm, BN=bn, BK=bk, PRECISION=precision, DTYPE=dtype)
    need_multiples(MULTIPLE, N=n, K=k)
    need_aligned(a=a, b=b, out=out)
    launch(read(Path(__file__).parent / name, SOURCE, HELION.compiler()), a, b, out)
    return out
