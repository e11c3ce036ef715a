"""One tile of C a program in Pallas with its Triton back end: a `BlockSpec` for each matrix.

A program gets BM rows of A, BN columns of B and one tile of C; a `fori_loop` goes over K. There are
no masks, so sizes are multiples of the tile's. They are constants of the compiler; what was
compiled is in PRODUCTS, with STAGES where they are not the source's. In float32 the default is
TF32, and precision="highest" is float32's own multiplication.
Source: JAX documentation, Pallas: grids and BlockSpecs, and matrix multiplication, written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.cubins import launch, need_aligned, read
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.products import of_square
from tiled_matmul.languages.abroad import function_in
from tiled_matmul.languages.pallas import PALLAS

SOURCE = Path(__file__).parent / "abroad/pallas_tile.py"
# fmt: off
PRODUCTS = {
    "abroad/products/pallas_tile-256-128-128-64.cubin":
        {"SIZE": 256, "BM": 128, "BN": 128, "BK": 64, "DTYPE": "float16"},
    "abroad/products/pallas_tile-4096-128-128-64.cubin":
        {"SIZE": 4096, "BM": 128, "BN": 128, "BK": 64, "DTYPE": "float16"},
    "abroad/products/pallas_tile-8192-128-128-64.cubin":
        {"SIZE": 8192, "BM": 128, "BN": 128, "BK": 64, "DTYPE": "float16"},
    "abroad/products/pallas_tile-4096-128-256-64.cubin":
        {"SIZE": 4096, "BM": 128, "BN": 256, "BK": 64, "DTYPE": "float16"},
    "abroad/products/pallas_tile-8192-128-256-64.cubin":
        {"SIZE": 8192, "BM": 128, "BN": 256, "BK": 64, "DTYPE": "float16"},
    "abroad/products/pallas_tile-4096-128-256-64-4.cubin":
        {"SIZE": 4096, "BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "DTYPE": "float16"},
    "abroad/products/pallas_tile-8192-128-256-64-4.cubin":
        {"SIZE": 8192, "BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "DTYPE": "float16"},
    "abroad/products/pallas_tile-float32-4096-128-128-32.cubin":
        {"SIZE": 4096, "BM": 128, "BN": 128, "BK": 32, "DTYPE": "float32"},
    "abroad/products/pallas_tile-float32-4096-128-128-16-highest.cubin":
        {"SIZE": 4096, "BM": 128, "BN": 128, "BK": 16, "DTYPE": "float32", "PRECISION": "highest"},
}
# fmt: on
DTYPES = ("float16", "float32")
TILES = {"float16": (128, 128, 64), "float32": (128, 128, 32)}

pallas_tile_kernel = function_in(SOURCE.read_text(encoding="utf-8"), "pallas_tile")


@remembered
def matmul(a, b, out=None, *, tile=None, stages=None, precision=None):
    """Return a (N, N) · b (N, N) as (N, N). torch tensors, row-major, float16 or float32.

    N, `tile` (BM, BN, BK), `stages`, None or 4, and `precision`, None or "highest", are those of
    one of PRODUCTS; without a tile, it is that of TILES. Raises TypeError or ValueError as
    `tensor_operands`, `of_square` and `launch` do, and ProductError as `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    bm, bn, bk = tile or TILES[dtype]
    wanted = {"BM": bm, "BN": bn, "BK": bk, "DTYPE": dtype}
    given = {"STAGES": stages, "PRECISION": precision}
    wanted |= {constant: value for constant, value in given.items() if value is not None}
    name = of_square(PRODUCTS, (m, n, k), **wanted)
    need_aligned(a=a, b=b, out=out)
    launch(read(Path(__file__).parent / name, SOURCE, PALLAS.compiler()), a, b, out)
    return out
