import warnings

import torch
import triton
import triton.language as tl

from tiled_matmul.check import diagnose
from tiled_matmul.grader import check
from tiled_matmul.microscope.triton import trace_tiles
from tiled_matmul.problem import Problem

warnings.filterwarnings("ignore", "tl.make_block_ptr")  # chapter 10 says why it warns
warnings.filterwarnings("ignore", "invalid value")  # NumPy's, where the interpreter meets NaN


def multiply(kernel, a, b, block=16):
    """Return what a kernel stores for a · b, in tiles of block × block × block, and its trace."""
    (m, k), n = a.shape, b.shape[1]
    c = a.new_full((m, n), torch.nan)
    grid = (triton.cdiv(n, block), triton.cdiv(m, block))
    strides = (*a.stride(), *b.stride(), *c.stride())
    return c, trace_tiles(kernel, grid, a, b, c, m, n, k, *strides, block, block, block)
