"""Small kernels for the tests of traced figures; each number in those tests was counted by hand."""

import re

import numpy as np
from numba import cuda, float32

TILE = 4
WIDTH = 32


@cuda.jit
def tiled_kernel(a, b, c):
    sa = cuda.shared.array((TILE, TILE), float32)
    sb = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * TILE + y
    col = cuda.blockIdx.x * TILE + x
    acc = float32(0)
    for k0 in range(0, a.shape[1], TILE):
        sa[y, x] = a[row, k0 + x]
        sb[y, x] = b[k0 + y, col]
        cuda.syncthreads()
        for k in range(TILE):
            acc += sa[y, k] * sb[k, x]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def x_is_column_kernel(a, b, c):
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc


@cuda.jit
def transpose_kernel(src, dst):
    tile = cuda.shared.array((32, WIDTH), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = src[y, x]
    cuda.syncthreads()
    dst[y, x] = tile[x, y]


def zeros(*shape):
    return np.zeros(shape, dtype=np.float32)


def cells(boxes, panel, *kinds):
    """Return the cells that a walk's step lights in a panel; kinds: 0 loads, 1 stores."""
    return {
        (i, j)
        for p, kind, row, column, rows, columns in boxes
        if p == panel and kind in (kinds or (0, 1))
        for i in range(row, row + rows)
        for j in range(column, column + columns)
    }


def filled(figure, color):
    """Return how many boxes have a colour: in a path, a z ends each of them."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*fill: {color.lower()}', figure.svg)
    return sum(path.count("z") for path in paths)
