"""Kernels whose integers have no sign: `row = t // 16 * 4` under `@unsigned` is all in uint64.

    @cuda.jit
    @unsigned
    def kernel(a, b, c):
        M, N = c.shape
        t = cuda.threadIdx.x
        for i in range(8):
            …

Numba takes a signed index to count from the end where it is negative, and tests for that. One
signed number in a sum makes all of it signed. So under `@unsigned` every integer constant, thread
and block index, size of an array and end of a `range` or `unroll` is a uint64, as if `uint64(…)`
stood around each. Arguments keep their types, and so do the shapes of shared and local arrays,
constants that stand alone as an index or an argument, and exponents. A difference below zero wraps
around to a huge number, in the interpreter too.
"""

from __future__ import annotations

from collections.abc import Callable

from tiled_matmul.kit.unroll import compile_tree, copied
from tiled_matmul.microscope.cuda.source import read
from tiled_matmul.microscope.cuda.unsigned import MARK


def unsigned(function: Callable) -> Callable:
    """Return `function` with unsigned integers, for `cuda.jit` or `unrolled` above it.

    The result's `as_written` is a copy of `function`, marked for the interpreter. Raises
    ValueError that quotes the line for a negative constant, for cuda.grid and gridsize, for a
    constant that is defined below the kernel, and if `function` was unrolled before.
    """
    if hasattr(function, "as_written"):
        raise ValueError(f"{function.__name__}: @unsigned stands right above the kernel")
    written = copied(function)
    setattr(written, MARK, True)
    return compile_tree(written, read(written))
