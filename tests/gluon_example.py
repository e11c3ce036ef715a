"""Kernels in Gluon that use pointers and tiles in registers, for the tests of its interpreter."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy_kernel(source, target, SIZE, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    there = at < SIZE
    gl.store(target + at, gl.load(source + at, mask=there, other=0.0) * 2.0, mask=there)


@gluon.jit
def rows_kernel(source, sums, largest, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    row = gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, layout))
    tile = gl.load(source + row[:, None] * COLUMNS + gl.expand_dims(column, 0))
    tile = gl.where(tile < 0, 1.0 - tile, gl.maximum(tile, 0.5))
    gl.store(sums + row, gl.sum(tile, 1))
    gl.store(largest + row, gl.max(tile, 1))
    gl.store(largest + ROWS, gl.load(source) / 2 + ROWS // 2)


@gluon.jit
def beyond_kernel(target, SIZE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    at = gl.arange(0, SIZE, layout=layout)
    gl.store(target + at, at.to(target.dtype.element_ty))
