"""Block pointers, Triton's own or the course's: both must do what NumPy says, and refuse the same.

Where Triton has its own, the tests run with them and, in Triton's place, with the course's.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tiled_matmul.ladder import triton_block_pointers
from tiled_matmul.microscope.compiled.triton import NotCompiled, tile_code, tile_codes
from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.triton import block_pointers, trace_tiles

pytestmark = pytest.mark.filterwarnings("ignore:tl.make_block_ptr", "ignore:invalid value")
# The same examples on every machine: a failing check must not come and go.
few = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NAMES = ("make_block_ptr", "advance", "load", "store")
HAS_OWN = tl.advance is not block_pointers.advance


@pytest.fixture(params=["Triton's", "the course's"] if HAS_OWN else ["the course's"], autouse=True)
def whose(request):
    """Run a test with Triton's block pointers, and with the course's."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "the course's":
            for name in NAMES:
                patch.setattr(tl, name, getattr(block_pointers, name))
        yield request.param


@triton.jit
def copy_tile(
    x, out, shape, strides, corner, step, out_strides,
    BLOCK: tl.constexpr, ORDER: tl.constexpr, CHECK: tl.constexpr, PADDING: tl.constexpr,
):  # fmt: skip
    tile = tl.make_block_ptr(x, shape, strides, corner, BLOCK, ORDER)
    tile = tl.advance(tile, step)
    values = tl.load(tile, boundary_check=CHECK, padding_option=PADDING)
    if len(BLOCK) == 1:
        start = (0,)
    elif len(BLOCK) == 2:
        start = (0, 0)
    else:
        start = (0, 0, 0)
    tl.store(tl.make_block_ptr(out, BLOCK, out_strides, start, BLOCK, ORDER), values)


@triton.jit
def fill_tile(
    out, shape, strides, corner, BLOCK: tl.constexpr, ORDER: tl.constexpr, CHECK: tl.constexpr
):  # fmt: skip
    tile = tl.make_block_ptr(
        base=out, shape=shape, strides=strides, offsets=corner, block_shape=BLOCK, order=ORDER
    )
    tl.store(tile, tl.full(BLOCK, 1, out.dtype.element_ty), boundary_check=CHECK)


@st.composite
def tiles(draw):
    """Draw a matrix of 1 to 3 axes inside a larger one, and a tile that may stick out of it.

    Along an axis that is not checked, the tile lies inside.
    """
    ndim = draw(st.integers(1, 3))
    block = tuple(draw(st.sampled_from((1, 2, 4, 8))) for _ in range(ndim))
    order = draw(st.permutations(range(ndim)))
    memory = draw(st.permutations(range(ndim)))  # the axes as they lie in memory, outermost first
    check = draw(st.sets(st.sampled_from(range(ndim))))
    shape, corner, step = [], [], []
    for axis, size in enumerate(block):
        n = draw(st.integers(1, 11))
        if axis in check:
            at = draw(st.integers(-size - 1, n + 1))
        else:
            n = max(n, size)
            at = draw(st.integers(0, n - size))
        first = draw(st.integers(-3, 12))
        shape, corner, step = [*shape, n], [*corner, first], [*step, at - first]
    return block, tuple(order), memory, tuple(sorted(check)), shape, corner, step


def laid_out(shape, memory, dtype):
    """Return a tensor of numbers from 1 on, whose axes lie in memory in that order."""
    room = [n + 2 for n in shape]
    base = torch.arange(1, 1 + int(np.prod(room))).reshape([room[axis] for axis in memory])
    whole = base.to(dtype).permute([memory.index(axis) for axis in range(len(shape))])
    return whole[tuple(slice(0, n) for n in shape)]


def expected(x, block, at, padding):
    """Return what a tile at `at` of x holds, by NumPy."""
    made = np.full(block, padding, x.numpy().dtype)
    for index in np.ndindex(*block):
        place = [i + first for i, first in zip(index, at, strict=True)]
        if all(0 <= i < n for i, n in zip(place, x.shape, strict=True)):
            made[index] = x.numpy()[tuple(place)]
    return made


@few
@given(tiles(), st.sampled_from([("zero", 0), ("nan", np.nan)]))
def test_a_tile_is_what_numpy_says(case, padding):
    block, order, memory, check, shape, corner, step = case
    x = laid_out(shape, memory, torch.float32)
    out = torch.zeros(block)
    numbers = tuple(shape), x.stride(), tuple(corner), tuple(step), out.stride()
    trace = trace_tiles(copy_tile, (1,), x, out, *numbers, block, order, check, padding[0])
    at = [a + b for a, b in zip(corner, step, strict=True)]
    np.testing.assert_array_equal(out.numpy(), expected(x, block, at, padding[1]))
    assert not [f for f in trace.findings if f.kind == "out of bounds"]


@few
@given(tiles())
def test_a_store_writes_what_numpy_says(case):
    block, order, memory, check, shape, corner, step = case
    x = laid_out(shape, memory, torch.int32)
    at = tuple(a + b for a, b in zip(corner, step, strict=True))
    inside = expected(torch.ones_like(x), block, at, 0).sum()
    x.fill_(0)
    trace_tiles(fill_tile, (1,), x, tuple(shape), x.stride(), at, block, order, check)
    assert x.sum() == inside
    places = itertools.product(*(range(n) for n in shape))
    for place in places:
        mine = all(
            first <= i < first + size for i, first, size in zip(place, at, block, strict=True)
        )
        assert x[place] == mine
