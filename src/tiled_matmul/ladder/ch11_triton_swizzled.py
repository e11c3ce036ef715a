"""The order of programs: GROUP_M rows of tiles at a time, so that neighbours share tiles of B.

A program owns a tile of C, as in the rung below. What changed: which one. Programs are numbered
from 0 and start about in that order, and those that run together should want the same tiles. So
they go down GROUP_M tiles before they go on to the next column. Tiles are now addressed by pointers
of each element's own; what is beyond an edge of C wraps around to rows that are there and is never
stored, and only K's tail is masked. Hints tell the compiler that these addresses lie side by side.
That is only promised where rows and columns wrap around between two loads of 16 bytes.
Each of these can be switched off: GROUP_M=1, HINTS=False, MASK_K=False where BLOCK_K divides K.
Source: `matmul_v1` of the Triton page; Triton's tutorial 03.
"""

import triton
import triton.language as tl

from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.programs import (
    LOADED,
    check_blocks,
    check_group,
    check_steps,
    cover,
    launch,
    precision,
    usual,
    wraps_evenly,
)

BLOCK = (128, 256, 64)
WARPS = 8
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_swizzled_kernel(
    a, b, c, M, N, K, a_row, a_col, b_row, b_col, c_row, c_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    HINTS: tl.constexpr, MASK_K: tl.constexpr,
):  # fmt: skip
    # Which tile of C is mine?
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = program // (GROUP_M * tiles_n)
    first_m = group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)  # the last group may have fewer
    tile_m = first_m + program % (GROUP_M * tiles_n) % rows
    tile_n = program % (GROUP_M * tiles_n) // rows
    # Where are its rows of A and its columns of B?
    m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    if HINTS:
        m = tl.max_contiguous(tl.multiple_of(m, BLOCK_M), BLOCK_M)
        n = tl.max_contiguous(tl.multiple_of(n, BLOCK_N), BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_at = a + (m.to(tl.int64)[:, None] * a_row + k[None, :] * a_col)
    b_at = b + (k[:, None] * b_row + n.to(tl.int64)[None, :] * b_col)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if MASK_K:
            a_values = tl.load(a_at, mask=k[None, :] < K - start, other=0.0)
            b_values = tl.load(b_at, mask=k[:, None] < K - start, other=0.0)
        else:
            a_values = tl.load(a_at)
            b_values = tl.load(b_at)
        acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        a_at += BLOCK_K * a_col
        b_at += BLOCK_K * b_row
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_at = c + (m.to(tl.int64)[:, None] * c_row + n.to(tl.int64)[None, :] * c_col)
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@remembered
def matmul(
    a, b, out=None, *, block=None, group_m=GROUP_M, hints=None, mask_k=None, num_warps=None,
    num_stages=3,
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two from 16
    on; None takes BLOCK where tensor cores multiply, and a small one elsewhere. `group_m` is how
    many tiles a group has along M. `hints` and `mask_k` are as above; None gives hints where
    `wraps_evenly` allows them, and masks where BLOCK_K does not divide K. Raises TypeError or
    ValueError as `tensor_operands`, `check_blocks` and `check_group` do, for an unmasked tail and
    for a false hint.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    block, num_warps = usual(block, num_warps, a, (BLOCK, WARPS))
    check_blocks(block, num_warps, num_stages)
    check_steps(block, a, b)
    check_group(group_m, cover(n, block[1]))
    ragged = k % block[2] != 0
    if mask_k is False and ragged:
        raise ValueError(f"mask_k=False reads beyond K={k}, no multiple of BLOCK_K={block[2]}")
    even = wraps_evenly(m, n, a)
    if hints and not even:
        run = LOADED // a.element_size()
        raise ValueError(f"hints=True promises M and N that {run} divides, got M={m} and N={n}")
    grid = (cover(m, block[0]) * cover(n, block[1]),)
    strides = (*a.stride(), *b.stride(), *out.stride())
    options = {"num_warps": num_warps, "num_stages": num_stages}
    switches = (
        group_m,
        even if hints is None else bool(hints),
        ragged if mask_k is None else bool(mask_k),
    )
    arguments = (a, b, out, m, n, k, *strides, *block, precision(a), *switches)
    launch(triton_swizzled_kernel, grid, *arguments, **options)
    return out
