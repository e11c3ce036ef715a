"""The six orders of the three loops, compiled: the same additions, six ways through memory.

The name gives the loops from the outermost to the innermost. What changed from the rung below:
Numba compiles the loops to machine code, and the order becomes a choice. In the orders that end
in k, one element of C is summed from start to end, so its sum can wait in a register; in all
others C is filled with zeros first and read and written again for each k.
Source: Golub & Van Loan, Matrix Computations, §1.1; "Loops 1" and "Loops 2" (kij) of Tiled
Matmul 101 (2025).
"""

from numba import njit

from tiled_matmul.kit.arguments import numpy_operands


@njit
def ijk(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            acc = a.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc


@njit
def jik(a, b, c):
    for j in range(c.shape[1]):
        for i in range(c.shape[0]):
            acc = a.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc


@njit
def ikj(a, b, c):
    c[:] = 0
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@njit
def kij(a, b, c):
    c[:] = 0
    for k in range(a.shape[1]):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@njit
def jki(a, b, c):
    c[:] = 0
    for j in range(c.shape[1]):
        for k in range(a.shape[1]):
            for i in range(c.shape[0]):
                c[i, j] += a[i, k] * b[k, j]


@njit
def kji(a, b, c):
    c[:] = 0
    for k in range(a.shape[1]):
        for j in range(c.shape[1]):
            for i in range(c.shape[0]):
                c[i, j] += a[i, k] * b[k, j]


KERNELS = {"ijk": ijk, "ikj": ikj, "jik": jik, "jki": jki, "kij": kij, "kji": kji}


def matmul(a, b, out=None, order="ikj"):
    """Return a (M, K) · b (K, N) as (M, N). numpy arrays, row-major, float32 or float64.

    `order` is one of KERNELS. Raises ValueError for another, and TypeError or ValueError as
    `numpy_operands` does.
    """
    if order not in KERNELS:
        raise ValueError(f"order must be one of {', '.join(KERNELS)}, got {order!r}")
    *_, out = numpy_operands(a, b, out)
    KERNELS[order](a, b, out)
    return out
