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


# The interpreter of 3.6 leaves behind what it found in `tl`, so there nothing is put in its place.
WHOSE = ["Triton's"] * HAS_OWN + ["the course's"] * (not triton.__version__.startswith("3.6."))


@pytest.fixture(params=WHOSE, autouse=True)
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


def test_they_are_supplied_where_they_lack_and_nowhere_else(monkeypatch):
    own = {name: getattr(tl, name) for name in NAMES}
    block_pointers.supply()
    assert own == {name: getattr(tl, name) for name in NAMES}
    for name in NAMES:
        monkeypatch.setattr(tl, name, None)
    monkeypatch.delattr(tl, "advance")
    block_pointers.supply()
    assert all(getattr(tl, name) is getattr(block_pointers, name) for name in NAMES)


# In a kernel


@triton.jit
def next_tile(tile, STEP: tl.constexpr):
    return tile.advance((0, STEP))


@triton.jit
def everywhere(x, out, ROWS, K, x_row, x_col, back, STEP: tl.constexpr):
    """Sum the rows of x: forwards in one tile after another, or backwards."""
    tile = tl.make_block_ptr(x, (ROWS, K), (x_row, x_col), (0, 0), (16, STEP), (1, 0))
    to = tl.make_block_ptr(out, [ROWS], [1], [0], [16], [0])
    if back:
        tile = tl.advance(tile, [0, (K - 1) // STEP * STEP])
    total = tl.zeros((16,), tl.float32)
    for _ in range(0, K, STEP):
        values = tl.load(tile, boundary_check=[1, 0], padding_option="zero", cache_modifier=".cg")
        total += tl.sum(values.to(tl.float32), 1)
        if back:
            tile = tl.advance(tile, (0, -STEP))
        else:
            tile = next_tile(tile, STEP)
    to.store(total.to(to.dtype.element_ty), boundary_check=(0,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("back", [0, 1])
def test_loops_branches_calls_and_methods_take_them(back, dtype):
    x = torch.randint(-8, 8, (13, 37)).to(dtype).T.contiguous().T
    out = torch.zeros(16, dtype=dtype)
    trace = trace_tiles(everywhere, (1,), x, out[:13], 13, 37, *x.stride(), back, 8)
    assert torch.equal(out[:13].double(), x.double().sum(1)) and not out[13:].any()
    assert not trace.findings


def test_tritons_own_interpreter_takes_them():
    x, out = torch.randint(-8, 8, (13, 37)).half(), torch.zeros(13)
    everywhere[(1,)](x, out, 13, 37, *x.stride(), 0, 8)
    assert torch.equal(out.double(), x.double().sum(1))


@pytest.mark.sample(3)
@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0)])
def test_they_are_compiled_with_wide_accesses(cc, whose):
    if whose == "the course's" and HAS_OWN:
        pytest.skip("another process compiles, with Triton's own")
    x = torch.empty(1024, 1024, dtype=torch.float16, device="meta")
    sizes = 1024, 1024, 1024, *[1024, 1] * 3
    kernel = triton_block_pointers.triton_block_pointers_kernel
    meta = {"num_warps": 4, "num_stages": 3}
    jobs = {
        "product": (kernel, (x, x, x, *sizes, 64, 64, 64, "ieee"), meta),
        "everywhere": (everywhere, (x, x, 13, 37, 1024, 1, 0, 8), {}),
    }
    code = tile_codes(jobs, cc)["product"]
    assert code.count("tensor cores") and not code.spilled_bytes
    assert set(code.widths["copies"]) == {16} and set(code.widths["stores"]) == {16}
    assert not code.widths["loads"]


# What cannot be


@triton.jit
def wrong(x, CASE: tl.constexpr):
    tile = tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (8, 8), (1, 0))
    at = x + tl.arange(0, 8)
    if CASE == "mask":
        tl.load(tile, mask=tl.arange(0, 8) < 4)
    elif CASE == "pointers":
        tl.load(at, boundary_check=(0,))
    elif CASE == "padding of pointers":
        tl.load(at, padding_option="zero")
    elif CASE == "store pointers":
        tl.store(at, 1.0, boundary_check=(0,))
    elif CASE == "store mask":
        tl.store(tile, tl.load(tile), mask=tl.arange(0, 8) < 4)
    elif CASE == "no such axis":
        tl.load(tile, boundary_check=(2,))
    elif CASE == "twice":
        tl.load(tile, boundary_check=(0, 0))
    elif CASE == "padding":
        tl.load(tile, boundary_check=(0,), padding_option="one")
    elif CASE == "type":
        tl.store(tile, tl.load(tile).to(tl.float16))
    elif CASE == "shape":
        tl.store(tile, tl.sum(tl.load(tile), 1))
    elif CASE == "length":
        tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (8,), (1, 0))
    elif CASE == "order":
        tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (8, 8), (1, 1))
    elif CASE == "base":
        tl.make_block_ptr(at, (8, 8), (8, 1), (0, 0), (8, 8), (1, 0))
    elif CASE == "float":
        tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0.5), (8, 8), (1, 0))
    elif CASE == "size":
        tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (8, 7), (1, 0))


# What the course says; Triton refuses the same, in words of its own.
WRONG = {
    "mask": "boundary_check, not mask or other",
    "pointers": "plain pointers take mask and other",
    "padding of pointers": "plain pointers take mask and other",
    "store pointers": "plain pointers take mask and other",
    "store mask": "boundary_check, not mask or other",
    "no such axis": r"axes from 0 to 1, got \[2\]",
    "twice": r"axes from 0 to 1, got \[0, 0\]",
    "padding": 'must be "", "zero" or "nan", got \'one\'',
    "type": "a value of fp16 for a tile of fp32",
    "shape": r"a value of shape \[8\] for a tile of \[8, 8\]",
    "length": "same length, got 2, 2, 2, 1, 2",
    "order": r"permutation of 0 to 1, got \[1, 1\]",
    "base": "base must be a pointer, got <",
    "float": "made of integers, got fp32",
    "size": "power of 2",
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_in_words(case, whose):
    if whose == "Triton's" and case == "store pointers":
        pytest.xfail("Triton ignores boundary_check there")
    words = WRONG[case] if whose == "the course's" else "stopped at line"
    with pytest.raises(KernelError, match=words):
        trace_tiles(wrong, (1,), torch.zeros(8, 8), case)


def test_nan_is_no_integer():
    numbers = (8,), (1,), (0,), (0,), (1,)
    with pytest.raises(KernelError, match="nan"):
        x = torch.zeros(8, dtype=torch.int32)
        trace_tiles(copy_tile, (1,), x, x.clone(), *numbers, (8,), (0,), (0,), "nan")


@triton.jit
def unmoved(x, out, K, BLOCK: tl.constexpr):
    tile = tl.make_block_ptr(x, (K,), (1,), (0,), (BLOCK,), (0,))
    tl.advance(tile, (BLOCK,))
    tl.store(out + tl.arange(0, BLOCK), tl.load(tile))


def test_a_result_of_advance_must_be_used():
    x = torch.empty(64, device="meta")
    with pytest.raises(NotCompiled, match=r"tl\.advance is not being used"):
        tile_code(unmoved, x, x, 64, BLOCK=16)
