"""A kernel with a helper, for a process in which Triton compiles."""

import triton
import triton.language as tl


@triton.jit
def doubled(x, at, n):
    return min(n, 2) * tl.load(x + at, mask=at < n, other=0.0)


@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = doubled(x, at, n)
    if tl.program_id(0) < tl.cdiv(n, BLOCK):
        tl.store(out + tl.program_id(0), values.sum(axis=0))
