"""Arithmetic, casts and conditions in Triton's interpreter are those of compiled kernels.

Expected values come from PyTorch's casts and from float64. On a GPU the same kernels are compiled,
and must give the same: that is the test of the expectations.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tiled_matmul.kit.backend import select
from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.triton import narrow, trace_tiles

ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
N = 512
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
HALVES = [torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
anywhere = pytest.mark.parametrize(
    "where", ["interpreter", pytest.param("gpu", marks=pytest.mark.gpu)]
)


def run(where, kernel, *arguments, **options):
    """Trace the kernel, or compile and launch it."""
    if where == "gpu":
        kernel[(1,)](*arguments, **options)
    else:
        assert not trace_tiles(kernel, (1,), *arguments, **options).findings


def numbers(dtype=torch.float32, seed=0, least=-20, most=20):
    """Return N numbers of many sizes, with zeros, infinities and NaN first."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(N) * 2.0 ** rng.integers(least, most, N)
    values[:6] = 0.0, -0.0, math.inf, -math.inf, math.nan, 1.0
    return torch.from_numpy(values).to(dtype).to(PLACE)


def same(one, other):
    """Compare bit for bit, except that every NaN is one."""
    assert one.dtype == other.dtype
    one, other = one.double().cpu().numpy(), other.double().cpu().numpy()
    np.testing.assert_array_equal(one, other)
    real = ~np.isnan(one)
    np.testing.assert_array_equal(np.signbit(one[real]), np.signbit(other[real]))


# --- arithmetic -----------------------------------------------------------------------------------


@triton.jit
def arithmetic_kernel(x, y, out, tests, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a + b)
    tl.store(out + N + i, a - b)
    tl.store(out + 2 * N + i, a * b)
    tl.store(out + 3 * N + i, tl.maximum(a, b))
    tl.store(out + 4 * N + i, tl.minimum(a, b))
    tl.store(out + 5 * N + i, tl.maximum(a, 0.0))
    tl.store(out + 6 * N + i, tl.abs(a))
    tl.store(out + 7 * N + i, tl.where(a < b, a, b))
    tl.store(out + 8 * N + i, a * 0.5 + 1)
    tl.store(out + 9 * N + i, tl.fma(a, b, a))
    tl.store(out + 10 * N + i, tl.clamp(a, -1.0, 2.0))
    tl.store(out + 11 * N + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(tests + i, (a < b).to(tl.int32) + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8)
    tl.store(tests + N + i, (a > b).to(tl.int32) + (a >= b) * 2)


@anywhere
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32], ids=str)
def test_arithmetic(where, dtype):
    x, y = numbers(dtype, least=-8, most=8), numbers(dtype, 1, -8, 8).flip(0)
    y[5:20] = x[5:20]  # some are equal
    out = torch.empty(12, N, dtype=dtype, device=PLACE)
    tests = torch.empty(2, N, dtype=torch.int32, device=PLACE)
    run(where, arithmetic_kernel, x, y, out, tests, N)
    a, b = x.double(), y.double()
    nan = torch.full_like(a, math.nan)
    wanted = [
        *(a + b, a - b, a * b, torch.fmax(a, b), torch.fmin(a, b)),
        *(torch.fmax(a, torch.zeros_like(a)), a.abs(), torch.where(a < b, a, b)),
        (a * 0.5).to(dtype).double() + 1,
        a * b + a,
        torch.where(a.isnan(), nan - nan, a).clamp(-1.0, 2.0),
        torch.maximum(a, b),
    ]
    wanted[10] = torch.fmin(torch.fmax(a, torch.full_like(a, -1.0)), torch.full_like(a, 2.0))
    for number, (got, exact) in enumerate(zip(out, wanted, strict=True)):
        zeros = (got == 0) & (exact == 0)  # of a maximum either sign will do
        exact = torch.where(zeros, got.double(), exact).to(dtype)
        if number == 8 and dtype == torch.float32:  # may be fused
            torch.testing.assert_close(got, exact, equal_nan=True)
        else:
            same(got, exact)
    bits = (a < b).int() + (a <= b) * 2 + (a == b) * 4 + (a != b) * 8
    assert torch.equal(tests[0], bits) and torch.equal(tests[1], (a > b).int() + (a >= b) * 2)


@triton.jit
def reductions_kernel(x, out, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(a, 0))
    tl.store(out + 1, tl.max(a, 0))
    tl.store(out + 2, tl.min(a, 0))
    tl.store(out + 3 + tl.arange(0, N), tl.cumsum(a, 0))


@anywhere
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_reductions(where, dtype):
    x = torch.zeros(N, dtype=dtype, device=PLACE)  # exact in any order
    x[::60] = torch.tensor([1.5, -3, 2, 0.25, -7, 4, 4, -1, 0.5], dtype=dtype)
    out = torch.empty(3 + N, device=PLACE)
    run(where, reductions_kernel, x, out, N)
    exact = x.double()
    assert out[:3].tolist() == [exact.sum(), exact.max(), exact.min()]
    assert torch.equal(out[3:].double(), exact.cumsum(0))


# --- casts ----------------------------------------------------------------------------------------


@triton.jit
def cast_kernel(x, out, N: tl.constexpr, TO: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, N)
    if HOW is None:
        tl.store(out + i, tl.load(x + i).to(TO))
    else:
        tl.store(out + i, tl.load(x + i).to(TO, fp_downcast_rounding=HOW))


TRITON = {
    torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
    torch.float64: tl.float64, E4M3: tl.float8e4nv, E5M2: tl.float8e5, torch.int8: tl.int8,
    torch.int16: tl.int16, torch.int32: tl.int32, torch.int64: tl.int64, torch.uint8: tl.uint8,
}  # fmt: skip


@anywhere
@pytest.mark.parametrize("of", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("to", [E4M3, E5M2], ids=str)
def test_casts_to_float8_round_to_nearest_and_saturate(where, of, to):
    x = numbers(of, least=-14, most=14)
    x[6:10] = torch.tensor([1.97, 500.0, 464.0, -465.0])
    sizes = torch.from_numpy(narrow.FLOAT8[TRITON[to].name])[: 0x7E if to == E4M3 else 0x7B]
    ties = ((sizes[1:] + sizes[:-1]) / 2)[:100]
    x[16 : 16 + len(ties)] = ties.to(of)
    out = torch.zeros(N, dtype=to, device=PLACE)
    run(where, cast_kernel, x, out, N, TRITON[to], None)
    most = torch.finfo(to).max
    same(out, x.float().clamp(-most, most).to(to))
    assert out[6].item() == 2.0 and out[2].item() == most


def test_every_float32_near_a_float8_is_rounded_as_torch_does_it():
    for to in (E4M3, E5M2):
        name, most = TRITON[to].name, torch.finfo(to).max
        sizes = narrow.FLOAT8[name][np.isfinite(narrow.FLOAT8[name])]
        near = np.sort(np.concatenate([sizes, (np.sort(sizes)[1:] + np.sort(sizes)[:-1]) / 2]))
        near = np.concatenate(
            [near, np.nextafter(near, np.float32(9e9)), np.nextafter(near, np.float32(-9e9))]
        )
        near = near.astype(np.float32)
        theirs = torch.from_numpy(near).clamp(-most, most).to(to)
        ours = torch.from_numpy(narrow.float8(near, name)).view(to)
        same(ours, theirs)


@anywhere
@pytest.mark.parametrize("to", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("of", "how"), [(torch.float32, None), (torch.float64, None), (torch.float32, "rtz")], ids=str
)
def test_casts_to_16_bits(where, of, to, how):
    x = numbers(of, least=-30, most=18)
    x[6:8] = torch.tensor([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-40], dtype=torch.float64)
    out = torch.zeros(N, dtype=to, device=PLACE)
    run(where, cast_kernel, x, out, N, TRITON[to], how)
    exact = x.double().cpu()
    got = out.double().cpu()
    real = torch.isfinite(exact)
    assert torch.equal(torch.isnan(got), torch.isnan(exact))
    if how == "rtz":
        assert bool((got.abs() <= exact.abs())[real].all())
        up = torch.nextafter(out.cpu(), torch.where(exact < 0, -math.inf, math.inf).to(to))
        assert bool((up.double().abs() > exact.abs())[real & (exact != 0)].all())
    else:
        error = (got - exact).abs()
        for side in (-math.inf, math.inf):  # neither neighbour is nearer
            other = torch.nextafter(out.cpu(), torch.full((N,), side, dtype=to)).double()
            nearer = (other - exact).abs() < error
            assert not bool((nearer & real & torch.isfinite(got)).any())


@anywhere
@pytest.mark.parametrize(
    "to", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str
)
@pytest.mark.parametrize("of", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_floats_are_cut_off_to_integers_and_stop_at_the_largest(where, of, to):
    x = numbers(of, least=-4, most=70)
    if to == torch.int64:
        x = torch.nan_to_num(x, 0.0)  # which its conversion does not turn into 0
    out = torch.zeros(N, dtype=to, device=PLACE)
    run(where, cast_kernel, x, out, N, TRITON[to], None)
    narrowest = to if to.itemsize > 1 else {torch.int8: torch.int16, torch.uint8: torch.uint16}[to]
    limits = torch.iinfo(narrowest)
    nan = limits.min if of == torch.float64 and limits.min < 0 else 0  # seen on an H100
    exact = [nan if math.isnan(v) else v for v in x.double().tolist()]
    whole = [max(limits.min, min(limits.max, int(v) if math.isfinite(v) else v)) for v in exact]
    wanted = [int(v) for v in whole]
    if to.itemsize == 1:
        wanted = np.array(wanted).astype(str(to).removeprefix("torch.")).tolist()
    assert out.tolist() == wanted


@triton.jit
def add_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(x + i))


def test_what_does_not_compile_for_float8_is_refused():
    x = torch.ones(N, device=PLACE)
    with pytest.raises(KernelError, match="arithmetic on fp8e4nv does not compile: cast to"):
        trace_tiles(add_kernel, (1,), x.to(E4M3), x.to(E4M3), N)
    with pytest.raises(KernelError, match="fp64 to fp8e5 does not compile"):
        trace_tiles(cast_kernel, (1,), x.double(), x.to(E5M2), N, tl.float8e5, None)
    with pytest.raises(KernelError, match="a cast of fp64 to bf16 towards zero does not compile"):
        trace_tiles(cast_kernel, (1,), x.double(), x.bfloat16(), N, tl.bfloat16, "rtz")
    with pytest.raises(KernelError, match="a cast to fp8e4nv towards zero does not compile"):
        trace_tiles(cast_kernel, (1,), x, x.to(E4M3), N, tl.float8e4nv, "rtz")


# --- arguments and conditions ---------------------------------------------------------------------


@triton.jit
def scaled_kernel(x, out, scale, on, N: tl.constexpr, HALF: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, a * scale)
    tl.store(out + N + i, a * HALF)
    tl.store(out + 2 * N + i, a * 1.001)
    tl.store(out + 3 * N + i, tl.where(on, a, 0.0))


@anywhere
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_float_argument_is_a_float32_and_a_constant_takes_the_tiles_dtype(where, dtype):
    x = numbers(dtype, least=-3, most=3)
    out = torch.empty(4, N, device=PLACE)
    run(where, scaled_kernel, x, out, 1.001, True, N, 1.001)
    constant = torch.tensor(1.001, dtype=dtype).double()
    same(out[0], (x.double() * float(np.float32(1.001))).float())
    for row in (1, 2):
        same(out[row], (x.double().cpu() * constant).to(dtype).float().to(PLACE))
    same(out[3], x.float())


@triton.jit
def condition_kernel(x, out, N: tl.constexpr, HOW: tl.constexpr):
    i = tl.arange(0, N)
    a, kept = tl.load(x + i), tl.program_id(0)
    if HOW == "if":
        if a > 0:
            kept += 1
    if HOW == "while":
        while a > 0:
            a -= 1
    if HOW == "choice":
        kept = 1 if a > 0 else 2
    if HOW == "chain":
        a = tl.where(0 < a < 3, a, 0.0)
    tl.store(out + i, a + kept)


@pytest.mark.parametrize("how", ["if", "while", "choice", "chain"])
def test_a_tile_is_no_condition(how):
    x = torch.ones(16, device=PLACE)
    with pytest.raises(KernelError, match="a tile of 16 elements is no condition") as caught:
        trace_tiles(condition_kernel, (1,), x, x.clone(), 16, how)
    assert "at line" in str(caught.value)


@triton.jit
def joined_kernel(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    low, high = i > 2, i < n
    tl.store(out + i, tl.load(x + i, mask=low and high, other=-1.0))
    tl.store(out + N + i, tl.load(x + i, mask=not low or not high, other=-1.0))
    both = low and high and n > 0
    tl.store(out + 2 * N + i, tl.where(both, 1.0, 0.0))
    if n > 3 and n < 100:
        tl.store(out + 3 * N + i, i + 0.0)


@anywhere
def test_and_or_and_not_join_tiles_as_the_compiler_does(where):
    x, out = torch.arange(16.0, device=PLACE), torch.zeros(4, 16, device=PLACE)
    run(where, joined_kernel, x, out, 9, 16)
    inside = (x > 2) & (x < 9)
    assert torch.equal(out[0], torch.where(inside, x, -1.0))
    assert torch.equal(out[1], torch.where(inside, -1.0, x))
    assert torch.equal(out[2], inside.float()) and torch.equal(out[3], x)


@triton.jit
def asserting_kernel(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.device_assert(a < 100, "below 100")
    tl.device_assert(a > 0, "above 0", mask=i < n)
    tl.store(out + i, a)


def test_an_assertion_that_does_not_hold_stops_the_kernel():
    x = torch.ones(16, device=PLACE)
    x[9:] = -1
    trace_tiles(asserting_kernel, (1,), x, x.clone(), 9, 16)
    with pytest.raises(KernelError, match="at line .* of asserting_kernel: above 0"):
        trace_tiles(asserting_kernel, (1,), x, x.clone(), 10, 16)
    x[0] = 100
    with pytest.raises(KernelError, match="below 100"):
        trace_tiles(asserting_kernel, (1,), x, x.clone(), 9, 16)
