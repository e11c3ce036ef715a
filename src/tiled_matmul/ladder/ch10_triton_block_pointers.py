"""Tiles in place of threads: a program owns a tile of C, and block pointers name tiles of A and B.

A program multiplies BLOCK_M×BLOCK_K tiles of A by BLOCK_K×BLOCK_N tiles of B into BLOCK_M×BLOCK_N
sums in float32, and stores them once, in C's type. What changed from the CUDA rungs: the source
does not mention threads. The compiler distributes each tile over threads, stages A and B in shared
memory, places the barriers, and uses tensor cores where the GPU has them. A block pointer contains
the shape of the matrix, so beyond an edge it loads zeros and stores nothing.
Source: `matmul_v0` of the Triton page; Tillet, Kung, Cox, Triton (2019).
"""

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.programs import (
    check_blocks,
    cover,
    launch,
    precision,
    without_notice,
)

BLOCK = (64, 64, 64)  # along M, N and K: one size for all, as in the source
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_block_pointers_kernel(
    a, b, c, M, N, K, a_row, a_col, b_row, b_col, c_row, c_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    top, left = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    a_tile = tl.make_block_ptr(
        a, (M, K), (a_row, a_col), (top, 0), (BLOCK_M, BLOCK_K), (1, 0)
    )  # fmt: skip
    b_tile = tl.make_block_ptr(
        b, (K, N), (b_row, b_col), (0, left), (BLOCK_K, BLOCK_N), (1, 0)
    )  # fmt: skip
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a_values = tl.load(a_tile, boundary_check=(0, 1), padding_option="zero")
        b_values = tl.load(b_tile, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        a_tile = tl.advance(a_tile, (0, BLOCK_K))
        b_tile = tl.advance(b_tile, (BLOCK_K, 0))
    c_tile = tl.make_block_ptr(
        c, (M, N), (c_row, c_col), (top, left), (BLOCK_M, BLOCK_N), (1, 0)
    )  # fmt: skip
    tl.store(c_tile, acc.to(c.dtype.element_ty), boundary_check=(0, 1))


@remembered
def matmul(a, b, out=None, *, block=BLOCK, num_warps=4, num_stages=3):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two from 16.
    Raises TypeError or ValueError as `tensor_operands`, `check_blocks`, `cover` and `launch` do.
    Triton 3.9 removed block pointers; from there on the course supplies them (`block_pointers`).
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    check_blocks(block, num_warps, num_stages)
    grid = (cover(n, block[1]), cover(m, block[0], "y"))
    strides = (*a.stride(), *b.stride(), *out.stride())
    options = {"num_warps": num_warps, "num_stages": num_stages}
    arguments = (a, b, out, m, n, k, *strides, *block, precision(a))
    with without_notice():
        launch(triton_block_pointers_kernel, grid, *arguments, **options)
    return out
