"""Loops 1: the definition of a matrix product, in plain Python.

One pass of the innermost loop does one multiplication and one addition, on Python's own numbers.
Rung below: none. Source: the textbook; "Loops 1" of Tiled Matmul 101 (2025).
"""

from tiled_matmul.kit.arguments import numpy_operands


def loops_1(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    for i in range(M):
        for j in range(N):
            c[i, j] = 0
            for k in range(K):
                c[i, j] += a[i, k] * b[k, j]


def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). numpy arrays, row-major, float32 or float64.

    Raises TypeError or ValueError as `numpy_operands` does.
    """
    *_, out = numpy_operands(a, b, out)
    loops_1(a, b, out)
    return out
