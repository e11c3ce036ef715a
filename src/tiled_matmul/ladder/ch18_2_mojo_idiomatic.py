"""The puzzle's idiomatic solution in its own language, Mojo: tiles, each copied by one call.

What changed: no thread computes where a tile begins, or what lies beyond an edge. One call has a
tile of A copied to shared memory, another one of B, asynchronously, by threads in `rows` rows. The
puzzle has one row: the first TILE threads of a block copy everything, the others nothing.
Source: Modular, Mojo GPU Puzzles, "Tiled Matrix Multiplication" (idiomatic), written anew.
"""

from pathlib import Path

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.products import launch, of_square, read
from tiled_matmul.languages.mojo import MOJO, kernel_in

SOURCE = Path(__file__).parent / "abroad/mojo_idiomatic.mojo"
PRODUCTS = {
    "abroad/products/mojo_idiomatic-9-3-1.ptx": {"SIZE": 9, "TILE": 3, "ROWS": 1},
    "abroad/products/mojo_idiomatic-9-3-3.ptx": {"SIZE": 9, "TILE": 3, "ROWS": 3},
    "abroad/products/mojo_idiomatic-32-16-1.ptx": {"SIZE": 32, "TILE": 16, "ROWS": 1},
    "abroad/products/mojo_idiomatic-32-16-16.ptx": {"SIZE": 32, "TILE": 16, "ROWS": 16},
    "abroad/products/mojo_idiomatic-1024-16-1.ptx": {"SIZE": 1024, "TILE": 16, "ROWS": 1},
    "abroad/products/mojo_idiomatic-1024-16-16.ptx": {"SIZE": 1024, "TILE": 16, "ROWS": 16},
    "abroad/products/mojo_idiomatic-1024-32-1.ptx": {"SIZE": 1024, "TILE": 32, "ROWS": 1},
    "abroad/products/mojo_idiomatic-1024-32-32.ptx": {"SIZE": 1024, "TILE": 32, "ROWS": 32},
    "abroad/products/mojo_idiomatic-4096-16-1.ptx": {"SIZE": 4096, "TILE": 16, "ROWS": 1},
    "abroad/products/mojo_idiomatic-4096-16-16.ptx": {"SIZE": 4096, "TILE": 16, "ROWS": 16},
    "abroad/products/mojo_idiomatic-4096-32-1.ptx": {"SIZE": 4096, "TILE": 32, "ROWS": 1},
    "abroad/products/mojo_idiomatic-4096-32-32.ptx": {"SIZE": 4096, "TILE": 32, "ROWS": 32},
}
DTYPES = ("float32",)
TILE, ROWS = 16, 1

mojo_idiomatic_kernel = kernel_in(SOURCE.read_text(encoding="utf-8"), "mojo_idiomatic")


@remembered
def matmul(a, b, out=None, *, tile=TILE, rows=ROWS):
    """Return a (N, N) · b (N, N) as (N, N). torch tensors, row-major, float32.

    N, `tile`, the tile's edge, and `rows`, how many rows of a block's threads copy, are those of
    one of PRODUCTS. Raises TypeError or ValueError as `tensor_operands` and `of_square` do, and
    ProductError as `read` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES)
    name = of_square(PRODUCTS, (m, n, k), TILE=tile, ROWS=rows)
    product = read(Path(__file__).parent / name, SOURCE, MOJO.compiler())
    blocks = m // tile
    launch(product, (blocks, blocks), (tile, tile), *((x, b"") for x in (out, a, b)))
    return out
