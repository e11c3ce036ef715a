"""Every rung at every stride pattern: right, or refused before anything runs.

What lies around an operand is NaN, so a read beyond it is seen in C, and a write beyond out too.
"""

from __future__ import annotations

import inspect
import itertools
import re
from importlib import import_module

import pytest
import torch
from stride_patterns import PATTERNS, SHARED, laid_out

from tiled_matmul.check import assert_matmul
from tiled_matmul.kit import layouts
from tiled_matmul.kit.backend import select
from tiled_matmul.ladder import LADDER, LAYER, rung
from tiled_matmul.ladder.triton_tuned import Setting

PLACE = "cuda" if select().on_gpu else "cpu"
TRITON = sorted({r.module for r in LADDER if r.in_triton})
DENSE = [r for r in LADDER if not r.in_triton]
# M, N, K: several tiles; sizes that descriptors fit; a row, a column, one step, one element.
SHAPES = ((37, 29, 41), (40, 24, 32), (1, 40, 24), (40, 1, 33), (17, 24, 1), (1, 1, 1))
# Blocks of a few tiles for each shape, where the launcher takes any.
BLOCKS = {"triton_two_widths": (16, (32, 16), 16), "triton_gluon": (64, (32, 16), 32)}
# The strides that autograd makes for the gradient of a sum: over columns, rows, all.
OF_SUMS = ("one column for all", "one row for all", "one element for all")


def launcher(module):
    """Return the launcher of a rung's module, with small tiles if it takes a block."""
    matmul = import_module(f"tiled_matmul.ladder.{module}").matmul
    takes = inspect.signature(matmul).parameters
    if "space" in takes:
        return lambda *x, **y: matmul(*x, space=(Setting((16, 32, 16), 4, 2),), **y)
    if "block" in takes:
        return lambda *x, **y: matmul(*x, block=BLOCKS.get(module, (16, 32, 16)), **y)
    return matmul


def operands(shape, of_a, of_b, dtype=torch.float16, seed=0, place=PLACE):
    m, n, k = shape
    a, around_a = laid_out(of_a, (m, k), dtype, place, seed)
    b, around_b = laid_out(of_b, (k, n), dtype, place, seed + 1)
    return (a, b), (around_a, around_b)


def check_product(matmul, shape, of_a, of_b, of_out=None, dtype=torch.float16):
    (a, b), guards = operands(shape, of_a, of_b, dtype)
    out = None
    try:
        if of_out is not None:
            out, guard = laid_out(of_out, (shape[0], shape[1]), dtype, PLACE, 7)
            guards += (guard,)
        c = matmul(a, b, out=out)
        assert out is None or c is out
        assert_matmul(c.contiguous(), a.contiguous(), b.contiguous())
        for each in guards:
            each.check()
    except Exception as error:
        error.add_note(f"{shape} in {dtype}: a {of_a!r}, b {of_b!r}, out {of_out!r}")
        raise


def partner(pattern, distance):
    """Return the pattern that comes so many after this one."""
    names = list(PATTERNS)
    return names[(names.index(pattern) + distance) % len(names)]


# --- rungs that take any strides ------------------------------------------------------------------


@pytest.mark.sample(12)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("module", TRITON)
def test_a_and_b_of_every_pattern(module, pattern):
    matmul = launcher(module)
    for number, shape in enumerate(SHAPES):
        check_product(matmul, shape, pattern, partner(pattern, 4 * number))
        check_product(matmul, shape, partner(pattern, 3 * number + 1), pattern)


@pytest.mark.parametrize("pattern", OF_SUMS)
@pytest.mark.parametrize("module", ["triton_best", "triton_uneven"])
def test_the_gradient_of_a_sum(module, pattern):
    """Autograd hands these on as they are; in most sizes `triton_best` takes `triton_uneven`."""
    matmul = launcher(module)
    check_product(matmul, (64, 64, 64), pattern, "rows")
    check_product(matmul, (33, 20, 47), "columns", pattern)


@pytest.mark.sample(8)
@pytest.mark.parametrize("pattern", [x for x in PATTERNS if x not in SHARED])
@pytest.mark.parametrize("module", TRITON)
def test_out_of_every_pattern(module, pattern):
    for shape in SHAPES:
        check_product(launcher(module), shape, "rows", "columns", pattern)


@pytest.mark.long
@pytest.mark.parametrize("module", TRITON)
def test_every_pair_of_patterns(module):
    matmul = launcher(module)
    for of_a, of_b in itertools.product(PATTERNS, PATTERNS):
        check_product(matmul, (20, 24, 33), of_a, of_b)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("r", [r for r in LADDER if r.in_triton], ids=lambda r: r.name)
def test_every_pair_of_patterns_in_tiles_of_their_own_on_the_gpu(r, dtype):
    for number, (of_a, of_b) in enumerate(itertools.product(PATTERNS, PATTERNS)):
        shape = ((130, 72, 95), (64, 136, 64))[number % 2]
        if r.name == "triton_tuned" and number % 16:  # each takes a second to tune
            continue
        check_product(r.matmul, shape, of_a, of_b, dtype=dtype)


@pytest.mark.parametrize("pattern", SHARED)
@pytest.mark.parametrize("module", [*TRITON, "triton_fused"])
def test_an_out_whose_elements_share_addresses_is_refused(module, pattern):
    (a, b), _ = operands((13, 11, 7), "rows", "rows")
    out, guard = laid_out(pattern, (13, 11), torch.float16, PLACE)
    before = out.clone()
    quoted = re.escape(f"shape (13, 11) with strides {out.stride()}")
    with pytest.raises(ValueError, match=f"out has elements that are one in memory: {quoted}"):
        launcher(module)(a, b, out=out)
    assert torch.equal(out, before)
    guard.check()


# --- what a layer asks for ------------------------------------------------------------------------


@pytest.mark.sample(8)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_fused_operands_of_every_pattern(pattern):
    matmul = rung("triton_fused").matmul
    for number, (m, n, k) in enumerate(SHAPES):
        of_a, of_b = pattern, partner(pattern, 4 * number)
        (a, b), guards = operands((m, n, k), of_a, of_b)
        residual, around = laid_out(of_b, (m, n), torch.float16, PLACE, 3)
        bias, more = laid_out(of_a, (2, n), torch.float16, PLACE, 4)
        c = matmul(a, b, bias=bias[1], residual=residual)
        wanted = a.double() @ b.double() + bias[1].double() + residual.double()
        assert torch.equal(c.double(), wanted.half().double()), (m, n, k, of_a, of_b)
        for guard in (*guards, around, more):
            guard.check()


@pytest.mark.sample(8)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_fp8_operands_and_scales_of_every_pattern(pattern):
    matmul = rung("triton_fp8").matmul
    for number, (m, n, k) in enumerate(SHAPES):
        of_a, of_b = pattern, partner(pattern, 4 * number)
        (a, b), guards = operands((m, n, k), of_a, of_b, torch.float8_e4m3fn)
        scale_a, around = laid_out(of_b, (m, 1), torch.float32, PLACE, 3)
        scale_b, more = laid_out(of_a, (1, n), torch.float32, PLACE, 4)
        scales = {"scale_a": scale_a, "scale_b": scale_b}
        c = matmul(a, b, out_dtype=torch.float32, block=(16, 32, 16), **scales)
        wanted = (a.double() @ b.double()) * scale_a.double() * scale_b.double()
        assert torch.equal(c.double(), wanted), (m, n, k, of_a, of_b)
        for guard in (*guards, around, more):
            guard.check()


@pytest.mark.sample(30)
@pytest.mark.parametrize("batch", ["apart", "one for all", "overlapping"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_batches_of_every_pattern(pattern, batch):
    matmul = rung("triton_batched").matmul
    small = {"block": (16, 32, 16), "num_warps": 4, "num_stages": 2}
    for number, (m, n, k) in enumerate(SHAPES):
        of_b = partner(pattern, 4 * number)
        a, around = laid_out(pattern, (3, m, k), torch.float16, PLACE, 1, batch)
        b, more = laid_out(of_b, (3, k, n), torch.float16, PLACE, 2, "apart")
        for options in (small, small | {"pointers": True}, small | {"pointers": False}):
            for x, y, matrices in ((a, b, "a"), (b.mT, a.mT, "b")):
                c = matmul(x, y, **options)
                exact = x.double() @ y.double()
                assert torch.equal(c.double(), exact), (m, n, k, pattern, of_b, matrices, options)
        around.check()
        more.check()


@pytest.mark.sample(30)
@pytest.mark.parametrize("batch", ["apart", "one for all", "overlapping"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_groups_of_every_pattern(pattern, batch):
    matmul = rung("triton_grouped").matmul
    ends = torch.tensor([5, 5, 20], dtype=torch.int32, device=PLACE)
    begins = (0, 5, 5)
    small = {"block": (16, 32, 16), "num_warps": 4, "num_stages": 2}
    for number, (n, k) in enumerate(((29, 41), (24, 32), (1, 24), (40, 1))):
        other = partner(pattern, 4 * number)
        a, around = laid_out(pattern, (20, k), torch.float16, PLACE, 1)
        b, more = laid_out(other, (3, k, n), torch.float16, PLACE, 2, batch)
        c = matmul(a, b, offsets=ends, **small)
        wanted = torch.cat(
            [a[i:j].double() @ x.double() for i, j, x in zip(begins, ends, b, strict=True)]
        )
        assert torch.equal(c.double(), wanted), (n, k, pattern, other)
        along, most = laid_out(other, (20, n), torch.float16, PLACE, 3)
        c = matmul(a.T, along, offsets=ends, **small)
        pairs = [
            (a[i:j].double().T, along[i:j].double()) for i, j in zip(begins, ends, strict=True)
        ]
        assert torch.equal(c.double(), torch.stack([x @ y for x, y in pairs])), (n, k, pattern)
        for guard in (around, more, most):
            guard.check()


# --- rungs that take dense matrices ---------------------------------------------------------------


def dense_operands(r, shape, of_a, of_b):
    """Return a, b and their guards as the rung takes them: tensors, or numpy arrays on the CPU."""
    place = PLACE if r.device == "gpu" else "cpu"
    (a, b), guards = operands(shape, of_a, of_b, torch.float32, place=place)
    return (a, b, guards) if r.device == "gpu" else (a.numpy(), b.numpy(), guards)


def lies_as_taken(r, x):
    if r.device == "cpu":
        return x.flags.c_contiguous
    return x.is_contiguous() or (r.module == "cuda_transposed" and x.T.is_contiguous())


@pytest.mark.sample(30)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("r", DENSE, ids=lambda r: r.name)
def test_what_is_not_dense_is_refused_by_name_and_strides(r, pattern):
    """Where it is dense, which a size of 1 decides and not its stride, the product is right."""
    refused = 0
    for shape, turned in itertools.product(((6, 5, 7), (1, 5, 8), (6, 1, 7), (6, 5, 1)), (0, 1)):
        pair = ("rows", pattern) if turned else (pattern, "rows")
        a, b, guards = dense_operands(r, shape, *pair)
        odd = [(name, x) for name, x in (("a", a), ("b", b)) if not lies_as_taken(r, x)]
        if not odd:
            c = r.matmul(a, b)
            assert_matmul(c, *(x if r.device == "cpu" else x.contiguous() for x in (a, b)))
        else:
            name, x = odd[0]
            strides = x.strides if r.device == "cpu" else x.stride()
            with pytest.raises(ValueError, match=re.escape(f"strides {tuple(strides)}")) as caught:
                r.matmul(a, b)
            assert str(caught.value).startswith(f"{name} must be row-major")
            refused += 1
        for guard in guards:
            guard.check()
    assert refused or pattern in ("rows", "columns", "aligned columns", "aligned rows")


@pytest.mark.parametrize("r", [r for r in DENSE if r.device == "cpu"], ids=lambda r: r.name)
def test_negative_strides_are_refused_by_name(r):
    (a, b), _ = operands((6, 5, 7), "rows", "rows", torch.float32)
    a, b = a.cpu().numpy(), b.cpu().numpy()
    with pytest.raises(ValueError, match=re.escape("strides (-28, 4)")):
        r.matmul(a[::-1], b)
    with pytest.raises(ValueError, match=re.escape("strides (20, -4)")):
        r.matmul(a, b[:, ::-1])
    out = a[:, :5].copy()
    with pytest.raises(ValueError, match=r"out must be row-major.*strides \(-20, 4\)"):
        r.matmul(a, b, out=out[::-1])


# --- the classification ---------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_layout_gives_every_element_its_address(pattern):
    for rows, columns in ((9, 7), (8, 16), (1, 6), (6, 1), (1, 1)):
        x, _ = laid_out(pattern, (rows, columns))
        i, j = torch.arange(rows)[:, None], torch.arange(columns)[None, :]
        address = i * x.stride(0) + j * x.stride(1)
        if not layouts.has_dense_axis(x):
            with pytest.raises(ValueError, match=re.escape(f"strides {x.stride()} has no dense")):
                layouts.layout_of(x)
            continue
        pitch, grain, by_columns = layouts.layout_of(x)
        dense, far, length = (i, j, rows) if by_columns else (j, i, columns)
        assert torch.equal((dense + far * pitch).expand(rows, columns), address)
        assert pitch % grain == 0 and length % grain == 0 and grain in (1, 2, 4, 8)
        assert grain == 8 or pitch % (2 * grain) or length % (2 * grain)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_batch_with_settled_strides_has_the_same_elements(pattern):
    for shape in ((1, 9, 7), (3, 1, 6), (3, 6, 1), (1, 1, 1), (2, 9, 7)):
        x, _ = laid_out(pattern, shape)
        assert torch.equal(layouts.with_settled_strides(x), x)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_elements_that_share_addresses_are_found(pattern):
    for shape in ((9, 7), (8, 16), (1, 6), (6, 1), (1, 1), (2, 9, 7)):
        x, guard = laid_out(pattern, shape)
        shared = int(guard.inside.sum()) < x.numel()
        assert layouts.shares_elements(x) == shared


def test_every_layer_rung_has_a_test_here():
    assert {r.module for r in LAYER} == {
        "triton_fused", "triton_fp8", "triton_fp8_gluon", "triton_batched", "triton_grouped",
    }  # fmt: skip
