"""The epilogue fused: bias, activation and residual are applied to a tile before it is stored.

A layer computes activation(scale · a·b + bias) + residual. As kernels of their own, these steps
load and store C again and again. What changed: the tile's sums are still in registers when its
product is done, so `finished` computes the whole expression there, and C is stored once. Where K is
cut into parts, no program has whole sums, so the kernel that adds up the parts finishes them. One
kernel covers `triton_persistent`, `triton_descriptors` and `triton_split_k`, as `Tiling` says.
Source: NVIDIA, CUTLASS, "epilogue visitor tree"; Hendrycks and Gimpel 2016 for GELU.
"""

import torch
import triton
import triton.language as tl

from tiled_matmul.dispatch.fused import tiling_for
from tiled_matmul.kit.arguments import beside, tensor_operands
from tiled_matmul.kit.fused import (
    Tiling,  # noqa: F401  chapter 15 makes one
    activation_of,
    beside_tile,
    number,
    operand,
)
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import describable, storable
from tiled_matmul.kit.plans import remembered, scratch
from tiled_matmul.kit.programs import can_overlap, cover, grouped, halves, launch, precision

SUMMED = 1024  # elements of C that a program of the second kernel adds up
DTYPES = ("float16", "bfloat16", "float32")
# GELU(x) is max(x, 0) − t · Φ(−t) for t = |x|, and Φ(−t) is 2^q(t) for t up to 6, where it is 1e-9.
# q was fitted so that the largest error is least: 3e-7, as float32's own rounding there is.
GELU_0, GELU_1, GELU_2, GELU_3, GELU_4, GELU_5, GELU_6 = map(
    tl.constexpr,
    (
        *(-1.000007390975952, -1.1510945558547974, -0.45902886986732483, -0.053143177181482315),
        *(0.007949979975819588, -0.0007414309657178819, 3.1220239179674536e-05),
    ),
)


@triton.jit
def gelu(x):
    """Return GELU of x, float32, in half the instructions of erf."""
    t = tl.minimum(tl.abs(x), 6.0)
    q = ((GELU_6 * t + GELU_5) * t + GELU_4) * t + GELU_3
    q = ((q * t + GELU_2) * t + GELU_1) * t + GELU_0
    return tl.where(x < 0, 0.0, x) - t * tl.exp2(q)


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """Return the activation of x, float32."""
    if ACTIVATION == "relu":
        x = tl.where(x < 0, 0.0, x)  # NaN stays
    elif ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    elif ACTIVATION == "gelu_tanh":  # 0.5 · (1 + tanh u) is sigmoid(2 · u)
        x = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    elif ACTIVATION == "gelu_erf":
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    elif ACTIVATION == "gelu":
        x = gelu(x)
    return x


@triton.jit
def finished(sums, scale, bias, residual, ACTIVATION: tl.constexpr):
    """Return activation(scale · sums + bias) + residual in float32; None is left out."""
    x = sums * scale
    if bias is not None:
        x += bias.to(tl.float32)
    x = activated(x, ACTIVATION)
    if residual is not None:
        x += residual.to(tl.float32)
    return x


@triton.jit
def tile_of(
    x, row, column, M, N, x_row, x_col,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BY: tl.constexpr,
):  # fmt: skip
    """Return a tile of a matrix: by a descriptor of its rows or columns, or else by pointers."""
    if BY == "rows":
        tile = x.load([row, column])
    elif BY == "columns":
        tile = x.load([column, row]).T
    else:
        m, n = row + tl.arange(0, ROWS)[:, None], column + tl.arange(0, COLUMNS)[None, :]
        at = x + (m.to(tl.int64) * x_row + n.to(tl.int64) * x_col)
        tile = tl.load(at, mask=(m < M) & (n < N), other=0.0)
    return tile


@triton.jit
def bias_at(bias, at, size, step):
    """Return the bias of these columns of C, or rows if C is turned."""
    return tl.load(bias + at.to(tl.int64) * step, mask=at < size, other=0.0)


@triton.jit
def finish(
    sums, top, left, M, N, scale, bias, c, residual, strides,
    ACTIVATION: tl.constexpr, TURNED: tl.constexpr, PIECES: tl.constexpr,
    C_BY: tl.constexpr, R_BY: tl.constexpr, LOADED: tl.constexpr,
):  # fmt: skip
    """Finish the sums of the tile of C at (top, left), and store it in pieces of its columns."""
    ROWS: tl.constexpr = sums.shape[0]
    COLUMNS: tl.constexpr = sums.shape[1]
    if PIECES > 1:
        HALF: tl.constexpr = COLUMNS // 2
        near, far = halves(sums)
        near_bias, far_bias = bias, bias
        if LOADED and not TURNED:
            near_bias, far_bias = tl.split(tl.permute(tl.reshape(bias, (2, HALF)), (1, 0)))
        finish(near, top, left, M, N, scale, near_bias, c, residual, strides,
               ACTIVATION, TURNED, PIECES // 2, C_BY, R_BY, LOADED)  # fmt: skip
        finish(far, top, left + HALF, M, N, scale, far_bias, c, residual, strides,
               ACTIVATION, TURNED, PIECES // 2, C_BY, R_BY, LOADED)  # fmt: skip
    else:
        m, n = top + tl.arange(0, ROWS), left + tl.arange(0, COLUMNS)
        bias_step, c_row, c_col, r_row, r_col = strides
        if bias is not None:
            if not LOADED:
                bias = bias_at(bias, m if TURNED else n, M if TURNED else N, bias_step)
            bias = bias[:, None] if TURNED else bias[None, :]
        if residual is not None:
            residual = tile_of(residual, top, left, M, N, r_row, r_col, ROWS, COLUMNS, R_BY)
        x = finished(sums, scale, bias, residual, ACTIVATION)
        if C_BY == "rows":
            c.store([top, left], x.to(c.dtype))
        else:
            at = c + (m.to(tl.int64)[:, None] * c_row + n.to(tl.int64)[None, :] * c_col)
            tl.store(at, x.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def triton_fused_kernel(
    a, b, c, bias, residual, parts, M, N, K, scale,
    a_row, a_col, b_row, b_col, bias_step, c_row, c_col, r_row, r_col,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, GROUP_M: tl.constexpr, SPLITS: tl.constexpr,
    ACTIVATION: tl.constexpr, TURNED: tl.constexpr, PIECES: tl.constexpr,
    A_BY: tl.constexpr, B_BY: tl.constexpr, C_BY: tl.constexpr, R_BY: tl.constexpr,
    FLATTEN: tl.constexpr, OVERLAP: tl.constexpr, LOADED: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    tiles = tiles_m * tiles_n
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
    first, step = tl.program_id(0), tl.num_programs(0)
    for work in tl.range(first, tiles * SPLITS, step, flatten=FLATTEN):
        tile, split = (work % tiles, work // tiles) if SPLITS > 1 else (work, 0)
        tile_m, tile_n = grouped(tile, tiles_m, tiles_n, GROUP_M)
        top, left = tile_m * BLOCK_M, tile_n * BLOCK_N
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(split * BLOCK_K, K, SPLITS * BLOCK_K):
            a_tile = tile_of(a, top, k, M, K, a_row, a_col, BLOCK_M, BLOCK_K, A_BY)
            b_tile = tile_of(b, k, left, K, N, b_row, b_col, BLOCK_K, BLOCK_N, B_BY)
            sums = tl.dot(a_tile, b_tile, sums, input_precision=PRECISION)
        if SPLITS > 1:
            m, n = top + tl.arange(0, BLOCK_M)[:, None], left + tl.arange(0, BLOCK_N)[None, :]
            at = parts + split.to(tl.int64) * M * N + (m.to(tl.int64) * N + n)
            tl.store(at, sums, mask=(m < M) & (n < N))
        else:
            strides = (bias_step, c_row, c_col, r_row, r_col)
            tile_bias = bias
            if LOADED:  # all at once; beside a residual, a piece's at a time is faster
                at = top + tl.arange(0, BLOCK_M) if TURNED else left + tl.arange(0, BLOCK_N)
                tile_bias = bias_at(bias, at, M if TURNED else N, bias_step)
            finish(sums, top, left, M, N, scale, tile_bias, c, residual, strides,
                   ACTIVATION, TURNED, PIECES, C_BY, R_BY, LOADED)  # fmt: skip


@triton.jit
def finish_parts_kernel(
    parts, c, bias, residual, size, N, scale, bias_step, c_row, c_col, r_row, r_col,
    SPLITS: tl.constexpr, SUMMED: tl.constexpr, ACTIVATION: tl.constexpr, TURNED: tl.constexpr,
    OVERLAP: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * SUMMED + tl.arange(0, SUMMED)
    m, n = at // N, at % N
    if bias is not None:
        bias = tl.load(bias + (m if TURNED else n) * bias_step, mask=at < size, other=0.0)
    if residual is not None:
        residual = tl.load(residual + (m * r_row + n * r_col), mask=at < size, other=0.0)
    if OVERLAP:
        tl.extra.cuda.gdc_wait()  # until the first kernel has stored all parts
    total = tl.zeros((SUMMED,), tl.float32)
    for split in tl.static_range(SPLITS):
        part = parts + tl.cast(split, tl.int64) * size
        total += tl.load(part + at, mask=at < size, other=0.0)
    x = finished(total, scale, bias, residual, ACTIVATION)
    tl.store(c + (m * c_row + n * c_col), x.to(c.dtype.element_ty), mask=at < size)


@remembered
def matmul(
    a, b, out=None, *, bias=None, activation=None, residual=None, scale=1.0, out_dtype=None,
    tiling=None,
):  # fmt: skip
    """Return activation(scale · a·b + bias) + residual, a (M, K) · b (K, N), as (M, N).

    torch tensors of any strides; a and b of one dtype of DTYPES. `bias` (N,) and `residual` (M, N)
    are of any of DTYPES, or None; `activation` is one of ACTIVATIONS or None; `scale` is a number.
    The result has `out_dtype`, by default that of a. All is computed in float32 and rounded once.
    `tiling` says how C is cut; None takes that of `tiling_for`, which is measured on an H200. If
    its tiles are copied by hardware, an a or b that no descriptor fits is copied first. Raises
    TypeError or ValueError as `tensor_operands`, `beside`, `Tiling.check` and `launch` do, and for
    another activation or scale.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True, out_dtype=out_dtype)
    beside("bias", bias, (n,), out, DTYPES)
    beside("residual", residual, (m, n), out, DTYPES)
    activation, scale = activation_of(activation), number("scale", scale)
    tiling = tiling_for(a, b, out, residual) if tiling is None else tiling
    tiling.check(m, n)
    c, turned = out, tiling.turned
    if turned:
        a, b, c, m, n = b.T, a.T, out.T, n, m
        residual = None if residual is None else residual.T
    (rows, columns, depth), splits = tiling.block, tiling.splits
    a_tiles, a_by = operand(a, rows, depth, tiling.pointers)
    b_tiles, b_by = operand(b, depth, columns, tiling.pointers)
    bias_step = 0 if bias is None else bias.stride(0)
    strides = (bias_step, *c.stride(), *((0, 0) if residual is None else residual.stride()))
    tiles = cover(m, rows) * cover(n, columns) * splits
    programs = min(tiles, tiling.resident * multiprocessors()) if tiling.resident else tiles
    if splits > 1:  # the first kernel stores parts, the second finishes them
        overlap = can_overlap()
        parts = scratch(splits * m * n, dtype=torch.float32, device=out.device)
        tensors, c_by, r_by, loaded = (c, None, None, parts), "pointers", "pointers", False
    else:
        overlap, piece = False, columns // tiling.pieces
        r_fits = tiling.described and residual is not None and describable(residual)
        c_tiles, c_by = beside_tile(c, rows, piece, tiling.described and storable(c))
        r_tiles, r_by = beside_tile(residual, rows, piece, r_fits)
        tensors = (c_tiles, bias, r_tiles, None)
        loaded = bias is not None and residual is None
    numbers = (m, n, k, scale, *a.stride(), *b.stride(), *strides, *tiling.block)
    switches = (precision(a), tiling.group_m, splits, activation, turned, tiling.pieces)
    switches += (a_by, b_by, c_by, r_by, tiling.flatten, overlap, loaded)
    options = {"num_warps": tiling.num_warps, "num_stages": tiling.num_stages}
    arguments = (a_tiles, b_tiles, *tensors, *numbers, *switches)
    launch(triton_fused_kernel, (programs,), *arguments, **options)
    if splits > 1:
        arguments = (parts, c, bias, residual, m * n, n, scale, *strides)
        switches = (splits, SUMMED, activation, turned, overlap)
        grid = (cover(m * n, SUMMED),)
        launch(finish_parts_kernel, grid, *arguments, *switches, launch_pdl=overlap)
    return out
