"""Stream-K: every program gets the same number of steps along K, wherever tiles begin and end.

Tiles that do not fill a wave leave multiprocessors idle. Split-K cuts all tiles into equally many
parts, which need not fill a wave either. What changed: the steps of the last tiles are laid end to
end, and each program takes an equal share. A share may begin in the middle of one tile and end in
another; what such a program has of a tile it stores apart, and a second kernel adds up, in the
order of K: every run gives the same bits. Before that come ROUNDS, in which each program has a
whole tile. Source: Osama et al., "Stream-K", 2023.
"""

import torch
import triton
import triton.language as tl

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.plans import remembered, scratch
from tiled_matmul.kit.programs import (
    can_overlap,
    check_blocks,
    check_group,
    cover,
    describe,
    grouped,
    launch,
    precision,
    usual,
)

BLOCK = (128, 256, 64)
WARPS = 8
ROWS = 16  # of a tile that a program of the second kernel adds up
GROUP_M = 8
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def triton_stream_k_kernel(
    a, b, c, parts, M, N, K, c_row, c_col, rounds,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n, steps = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), tl.cdiv(K, BLOCK_K)
    program, programs = tl.program_id(0), tl.num_programs(0)
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
    shared = (tiles_m * tiles_n - rounds * programs).to(tl.int64) * steps
    at, end = program * shared // programs, (program + 1) * shared // programs
    turn = 0
    while (turn < rounds) | (at < end):
        if turn < rounds:
            tile, first, last = turn * programs + program, 0, steps
        else:
            tile, first = rounds * programs + (at // steps).to(tl.int32), (at % steps).to(tl.int32)
            last = min(steps, first + (end - at).to(tl.int32))
            at += last - first
        turn += 1
        tile_m, tile_n = grouped(tile, tiles_m, tiles_n, GROUP_M)
        top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(first * BLOCK_K, last * BLOCK_K, BLOCK_K):
            a_values = a.load([k, top]).T if A_TRANSPOSED else a.load([top, k])
            b_values = b.load([left, k]).T if B_TRANSPOSED else b.load([k, left])
            acc = tl.dot(a_values, b_values, acc, input_precision=PRECISION)
        m, n = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
        if last - first == steps:
            to = (top + m).to(tl.int64) * c_row + (left + n).to(tl.int64) * c_col
            tl.store(c + to, acc.to(c.dtype.element_ty), mask=(top + m < M) & (left + n < N))
        else:  # a program has at most one part that begins a tile, and one that does not
            part = 2 * program + (first == 0).to(tl.int32)
            tl.store(parts + part.to(tl.int64) * BLOCK_M * BLOCK_N + (m * BLOCK_N + n), acc)


@triton.jit
def sum_shared_kernel(
    parts, c, M, N, K, c_row, c_col, rounds, programs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, ROWS: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n, steps = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), tl.cdiv(K, BLOCK_K)
    slices: tl.constexpr = BLOCK_M // ROWS
    number, slice = tl.program_id(0) // slices, tl.program_id(0) % slices
    # Which programs have the tile's first and last step?
    shared = (tiles_m * tiles_n - rounds * programs).to(tl.int64) * steps
    begin = number.to(tl.int64) * steps
    owner = ((begin + 1) * programs - 1) // shared
    final = ((begin + steps) * programs - 1) // shared
    if owner < final:
        tile_m, tile_n = grouped(rounds * programs + number, tiles_m, tiles_n, GROUP_M)
        m = slice * ROWS + tl.arange(0, ROWS)[:, None]
        n = tl.arange(0, BLOCK_N)[None, :]
        if OVERLAP:
            tl.extra.cuda.gdc_wait()  # until the first kernel has stored all parts
        at = parts + (m * BLOCK_N + n)
        total = tl.load(at + (2 * owner + 1) * BLOCK_M * BLOCK_N)
        for program in range(owner + 1, final + 1):
            total += tl.load(at + 2 * program * BLOCK_M * BLOCK_N)
        m, n = tile_m * BLOCK_M + m, tile_n * BLOCK_N + n
        to = c + (m.to(tl.int64) * c_row + n.to(tl.int64) * c_col)
        tl.store(to, total.to(c.dtype.element_ty), mask=(m < M) & (n < N))


@remembered
def matmul(
    a, b, out=None, *, block=None, group_m=GROUP_M, num_warps=None, num_stages=3, programs=None,
    rounds=None,
):  # fmt: skip
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `block` is (BLOCK_M, BLOCK_N, BLOCK_K), powers of two, 16 or
    more; None takes BLOCK where it fits (see `usual`). `group_m` is how many tiles a group has
    along M; `programs` how many run, one for each multiprocessor if None. `rounds` is how many
    whole tiles a program makes first; None leaves one to two tiles for each to share, or fewer
    where there are not so many. Takes 8 · BLOCK_M · BLOCK_N bytes for each program. A matrix that
    no descriptor fits is first copied (see `describe`). Raises TypeError or ValueError as
    `tensor_operands`, `check_blocks`, `check_group` and `launch` do, and for too many rounds.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    block, num_warps = usual(block, num_warps, a, (BLOCK, WARPS), described=True)
    check_blocks(block, num_warps, num_stages)
    check_group(group_m, cover(n, block[1]))
    programs = multiprocessors() if programs is None else positive("programs", programs)
    tiles = cover(m, block[0]) * cover(n, block[1])
    programs = min(programs, tiles * cover(k, block[2]))
    if rounds is None:
        rounds = max(0, tiles // programs - (tiles % programs > 0))
    elif rounds != 0:
        positive("rounds", rounds, tiles // programs)
    overlap = can_overlap()
    parts = scratch(2 * programs, block[0] * block[1], dtype=torch.float32, device=out.device)
    a, a_transposed = describe(a, block[0], block[2])
    b, b_transposed = describe(b, block[2], block[1])
    options = {"num_warps": num_warps, "num_stages": num_stages}
    sizes = (m, n, k, *out.stride(), rounds)
    switches = (precision(out), group_m, a_transposed, b_transposed, overlap)
    arguments = (a, b, out, parts, *sizes, *block, *switches)
    launch(triton_stream_k_kernel, (programs,), *arguments, **options)
    left = tiles - rounds * programs
    if left % programs:  # else no tile was shared
        arguments = (parts, out, *sizes, programs, *block, group_m, ROWS, overlap)
        grid = (left * (block[0] // ROWS),)
        launch(sum_shared_kernel, grid, *arguments, launch_pdl=bool(overlap))
    return out
