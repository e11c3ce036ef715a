"""Kernels with unsigned integers: `row = t // 16 * 4` under `@unsigned` is computed in uint64.

    @cuda.jit
    @unsigned
    def kernel(a, b, c):
        M, N = c.shape
        t = cuda.threadIdx.x
        for i in range(8):
            …

A negative index counts from the end, so Numba tests the sign of every signed index. One signed
operand makes a whole sum signed. So under `@unsigned` every integer constant, thread and block
index, array size and end of a `range` or `unroll` becomes `uint64(…)`. The types of arguments,
of shapes of shared and local arrays, of constants that are a whole index or argument, and of
exponents do not change. A difference below zero wraps around, in the interpreter too.
"""

from __future__ import annotations

from collections.abc import Callable

from tiled_matmul.kit.unroll import compile_tree, copied
from tiled_matmul.microscope.cuda.source import read
from tiled_matmul.microscope.cuda.unsigned import MARK


def unsigned(function: Callable) -> Callable:
    """Return `function` with unsigned integers, to be decorated by `cuda.jit` or `unrolled`.

    The result's `as_written` is a copy of `function`, marked for the interpreter. Raises
    ValueError, quoting the line, for a negative constant, cuda.grid, cuda.gridsize or a constant
    defined below the kernel, and if `function` is already unrolled.
    """
    if hasattr(function, "as_written"):
        raise ValueError(f"{function.__name__}: @unsigned stands right above the kernel")
    written = copied(function)
    setattr(written, MARK, True)
    return compile_tree(written, read(written))
