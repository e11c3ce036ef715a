"""The puzzle's manual solution in its own language, Mojo: shared tiles, element by element.

A thread owns C[row, column], and x is the column, as in `cuda_shared_tiles`. The size of the
matrices is a constant of the compiler, as in the puzzle; what was compiled is in PRODUCTS.
Source: Modular, Mojo GPU Puzzles, "Tiled Matrix Multiplication" (manual tiling), written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.products import launch, of_square, read
from tiled_matmul.languages.mojo import MOJO, kernel_in

SOURCE = Path(__file__).parent / "abroad/mojo_manual.mojo"
PRODUCTS = {
    "abroad/products/mojo_manual-9-3.ptx": {"SIZE": 9, "TILE": 3},
    "abroad/products/mojo_manual-40-16.ptx": {"SIZE": 40, "TILE": 16},
    "abroad/products/mojo_manual-1024-16.ptx": {"SIZE": 1024, "TILE": 16},
    "abroad/products/mojo_manual-1024-32.ptx": {"SIZE": 1024, "TILE": 32},
    "abroad/products/mojo_manual-4096-16.ptx": {"SIZE": 4096, "TILE": 16},
    "abroad/products/mojo_manual-4096-32.ptx": {"SIZE": 4096, "TILE": 32},
}
DTYPES = ("float32",)
TILE = 16

mojo_manual_kernel = kernel_in(SOURCE.read_text(encoding="utf-8"), "mojo_manual")


@remembered
def matmul(a, b, out=None, *, tile=TILE):
    """Return a (N, N) · b (N, N) as (N, N). torch tensors, row-major, float32.

    N and `tile`, the tile's edge, are those of one of PRODUCTS. Raises TypeError or ValueError as
    `tensor_operands` and `of_square` do, and ProductError as `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    name = of_square(PRODUCTS, (m, n, k), TILE=tile)
    product = read(Path(__file__).parent / name, SOURCE, MOJO.compiler())
    blocks = -(-m // tile)
    launch(product, (blocks, blocks), (tile, tile), *((x, b"") for x in (out, a, b)))
    return out
