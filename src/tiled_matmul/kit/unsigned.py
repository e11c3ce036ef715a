"""Kernels with the integers of C: 32 bits, no sign, and loops that count.

    @cuda.jit
    @unsigned
    def kernel(a, b, c):
        M, N = c.shape
        t = cuda.threadIdx.x
        for i in range(8):
            …

Numba computes indices with Python's integers: 64 bits and a sign. A negative index counts from the
end, so Numba tests the sign of each index. And `for k in range(…)` runs Python's iterator, through
which the compiler does not see how k grows. Under `@unsigned` the integers of a kernel are as in
CUDA C:

* Integer constants, thread and block indices, the ends of a `range` or `unroll` and the sizes of an
  array with several axes have 32 bits and no sign. So has what `+`, `-`, `*`, `//` and `%` make of
  two of them.
* A sum or a product must stay below 2³¹, which the compiler takes for granted, as in C with `int`;
  a difference below zero wraps around modulo 2³². Nothing checks them.
* Each size of an array with several axes must be below 2³¹ by a tile or two, which
  `kit.launch.launch` checks.
* `for k in range(…)` is compiled as a loop that counts, as C's `for (k = 0; k < n; k++)` is.

Wider numbers stay wide: an array's `.size`, the size of an array with one axis, an integer argument
and an element of an array with more than 32 bits make a result of 64 bits. An address has 64 bits,
so a matrix may have more than 2³¹ elements. Types do not change of shapes of shared and local
arrays, of constants that are a whole index or argument, and of exponents.

The interpreter runs the kernel as written, with integers that have no sign and 64 bits, so it does
not show a sum that is too large. How the compiler gets these integers: `kit.integers`.
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
