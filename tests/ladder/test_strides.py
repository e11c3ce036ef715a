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
from stride_patterns import PATTERNS, SHARED, laid_out, on_the_gpu

from tiled_matmul.check import assert_matmul
from tiled_matmul.kit import layouts
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.programs import launched
from tiled_matmul.ladder import LADDER, LAYER, rung
from tiled_matmul.ladder.triton_tuned import Setting
from tiled_matmul.languages import GLUON, TRITON

PLACE = "cuda" if select().on_gpu else "cpu"
RUNNING = [r for r in LADDER if r.language.runs_here()]
STRIDED = [r for r in RUNNING if r.language.strided]
PROGRAMS = (TRITON, GLUON)
MODULES = sorted({r.module for r in STRIDED})
DENSE = [r for r in RUNNING if not r.language.strided]
# M, N, K: several tiles; sizes that descriptors fit; a row, a column, one step, one element.
SHAPES = ((37, 29, 41), (40, 24, 32), (1, 40, 24), (40, 1, 33), (17, 24, 1), (1, 1, 1))
# Blocks of a few tiles for each shape, where the launcher takes any.
BLOCKS = {"triton_two_widths": (16, (32, 16), 16), "gluon_shapes": (64, (32, 16), 32)}
BLOCKS |= {f"gluon_{name}": (64, 16, 32) for name in ("tile", "ring")}
ROLES = ("specialised", "persistent", "cluster", "shares")
BLOCKS |= {f"gluon_{name}": (128, 16, 32) for name in ROLES}
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
@pytest.mark.parametrize("module", MODULES)
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
@pytest.mark.parametrize("module", MODULES)
def test_out_of_every_pattern(module, pattern):
    for shape in SHAPES:
        check_product(launcher(module), shape, "rows", "columns", pattern)


@pytest.mark.long
@pytest.mark.parametrize("module", MODULES)
def test_every_pair_of_patterns(module):
    matmul = launcher(module)
    for of_a, of_b in itertools.product(PATTERNS, PATTERNS):
        check_product(matmul, (20, 24, 33), of_a, of_b)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("r", STRIDED, ids=lambda r: r.name)
def test_pairs_of_patterns_in_tiles_of_their_own_on_the_gpu(r, dtype):
    """Each rung and dtype has another thirtieth of the pairs, as pairs may have to be compiled."""
    pairs = list(itertools.product(PATTERNS, PATTERNS))
    begin = (LADDER.index(r) + dtype.itemsize) % 30
    every = 30 if r.name != "triton_tuned" else 100  # which takes seconds for each
    for number, (of_a, of_b) in enumerate(pairs[begin::every]):
        shape = ((130, 72, 95), (64, 136, 64), (128, 4070, 64))[number % 3]
        check_product(r.matmul, shape, of_a, of_b, dtype=dtype)


@pytest.mark.parametrize("pattern", SHARED)
@pytest.mark.parametrize("module", [*MODULES, "triton_fused"])
def test_an_out_whose_elements_share_addresses_is_refused(module, pattern):
    (a, b), _ = operands((13, 11, 7), "rows", "rows")
    out, guard = laid_out(pattern, (13, 11), torch.float16, PLACE)
    before = out.clone()
    quoted = re.escape(f"shape (13, 11) with strides {out.stride()}")
    with pytest.raises(ValueError, match=f"out has elements that are one in memory: {quoted}"):
        launcher(module)(a, b, out=out)
    assert torch.equal(out, before)
    guard.check()


test_a_and_b_on_the_gpu = on_the_gpu(test_a_and_b_of_every_pattern)
test_out_on_the_gpu = on_the_gpu(test_out_of_every_pattern)


# --- what a layer asks for ------------------------------------------------------------------------


def an_out(pattern, shape, dtype=torch.float16):
    """Return an out of that pattern and its guard, or one by rows if elements would share."""
    return laid_out("rows" if pattern in SHARED else pattern, shape, dtype, PLACE, 9)


@pytest.mark.sample(8)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_fused_operands_of_every_pattern(pattern):
    matmul = rung("triton_fused").matmul
    for number, (m, n, k) in enumerate(SHAPES):
        other = partner(pattern, 4 * number)
        (a, b), guards = operands((m, n, k), pattern, other)
        residual, around = laid_out(other, (m, n), torch.float16, PLACE, 3)
        bias, more = laid_out(pattern, (2, n), torch.float16, PLACE, 4)
        out, most = an_out(pattern, (m, n))
        c = matmul(a, b, out=out, bias=bias[1], residual=residual)
        wanted = a.double() @ b.double() + bias[1].double() + residual.double()
        assert torch.equal(c.double(), wanted.half().double()), (m, n, k, other)
        for guard in (*guards, around, more, most):
            guard.check()


@pytest.mark.sample(8)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", ["triton_fp8", "triton_fp8_gluon"])
def test_fp8_operands_and_scales_of_every_pattern(name, pattern):
    options = {"block": (16, 32, 32)} if name == "triton_fp8" else {}
    for number, (m, n, k) in enumerate(SHAPES):
        other = partner(pattern, 4 * number)
        (a, b), guards = operands((m, n, k), pattern, other, torch.float8_e4m3fn)
        scale_a, around = laid_out(other, (m, 1), torch.float32, PLACE, 3)
        scale_b, more = laid_out(pattern, (1, n), torch.float32, PLACE, 4)
        out, most = an_out(pattern, (m, n), torch.bfloat16)
        c = rung(name).matmul(a, b, out=out, scale_a=scale_a, scale_b=scale_b, **options)
        wanted = (a.double() @ b.double()) * scale_a.double() * scale_b.double()
        assert torch.equal(c.double(), wanted.bfloat16().double()), (m, n, k, other)
        for guard in (*guards, around, more, most):
            guard.check()


BATCHES = pytest.mark.parametrize("batch", ["apart", "one for all", "overlapping"])
FEW = {"block": (16, 32, 16), "num_warps": 4, "num_stages": 2}


@pytest.mark.sample(30)
@BATCHES
@pytest.mark.parametrize("pattern", PATTERNS)
def test_batches_of_every_pattern(pattern, batch):
    matmul = rung("triton_batched").matmul
    for number, (m, n, k) in enumerate(SHAPES):
        other = partner(pattern, 4 * number)
        a, around = laid_out(pattern, (3, m, k), torch.float16, PLACE, 1, batch)
        b, more = laid_out(other, (3, k, n), torch.float16, PLACE, 2, "apart")
        for options in (FEW, FEW | {"pointers": True}, FEW | {"pointers": False}):
            for x, y in ((a, b), (b.mT, a.mT)):
                out, most = an_out(pattern, (3, x.shape[1], y.shape[2]))
                c = matmul(x, y, out, **options)
                assert torch.equal(c.double(), x.double() @ y.double()), (m, n, k, other, options)
                most.check()
        around.check()
        more.check()


@pytest.mark.sample(30)
@BATCHES
@pytest.mark.parametrize("pattern", PATTERNS)
def test_groups_of_every_pattern(pattern, batch):
    matmul = rung("triton_grouped").matmul
    ends = torch.tensor([5, 5, 20], dtype=torch.int32, device=PLACE)
    spans = (slice(0, 5), slice(5, 5), slice(5, 20))
    for number, (n, k) in enumerate(((29, 41), (24, 32), (1, 24), (40, 1))):
        other = partner(pattern, 4 * number)
        a, around = laid_out(pattern, (20, k), torch.float16, PLACE, 1)
        b, more = laid_out(other, (3, k, n), torch.float16, PLACE, 2, batch)
        out, most = an_out(pattern, (20, n))
        c = matmul(a, b, out, offsets=ends, **FEW)
        rows = [a[span].double() @ x.double() for span, x in zip(spans, b, strict=True)]
        assert torch.equal(c.double(), torch.cat(rows)), (n, k, other)
        along, last = laid_out(other, (20, n), torch.float16, PLACE, 3)
        out, beyond = an_out(pattern, (3, k, n))
        c = matmul(a.T, along, out, offsets=ends, **FEW)
        sums = [a[span].double().T @ along[span].double() for span in spans]
        assert torch.equal(c.double(), torch.stack(sums)), (n, k, other)
        for guard in (around, more, most, last, beyond):
            guard.check()


test_fused_on_the_gpu = on_the_gpu(test_fused_operands_of_every_pattern)
test_fp8_on_the_gpu = on_the_gpu(test_fp8_operands_and_scales_of_every_pattern)
test_batches_on_the_gpu = on_the_gpu(test_batches_of_every_pattern)
test_groups_on_the_gpu = on_the_gpu(test_groups_of_every_pattern)


@pytest.mark.parametrize("name", [r.name for r in (*LADDER, *LAYER) if r.language in PROGRAMS])
def test_no_descriptor_stores_into_a_row_that_ends_inside_of_16_bytes(name):
    """The hardware stores whole 16 bytes, and Triton's interpreter does not show that."""
    made, dtype = rung(name), torch.float16
    more = {}
    if "fp8" in name:
        one = torch.ones(1, 1, device=PLACE)
        dtype, more = torch.float8_e4m3fn, {"scale_a": one, "scale_b": one}
    shapes = (256, 64), (64, 61), (256, 61)
    if name == "triton_batched":
        shapes = [(3, *shape) for shape in shapes]
    if name == "triton_grouped":
        shapes = (256, 64), (3, 64, 61), (256, 61)
        ends = torch.tensor([9, 70, 256], dtype=torch.int32, device=PLACE)
        more = {"offsets": ends, "check": False}
    a, b = (torch.zeros(shape, device=PLACE).to(dtype) for shape in shapes[:2])
    for columns, fits in ((61, False), (64, True)):
        wide = torch.zeros(*shapes[2][:-1], 64, device=PLACE).to(
            torch.bfloat16 if "fp8" in name else dtype
        )
        wider = b if columns == 61 else torch.zeros(*b.shape[:-1], 64, device=PLACE).to(dtype)
        out = wide[..., :columns]
        launches = launched(made.matmul, a, wider, out=out, **more)
        bases = [getattr(x, "base", None) for _, arguments, _ in launches for x in arguments]
        assert fits or not any(base is not None and layouts.overlap(base, out) for base in bases)


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


test_what_is_not_dense_on_the_gpu = on_the_gpu(
    test_what_is_not_dense_is_refused_by_name_and_strides
)


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float8_e4m3fn], ids=str)
def test_a_descriptor_stores_where_rows_end_at_16_bytes(dtype):
    each = 16 // dtype.itemsize
    room = torch.empty(9, 4 * each, dtype=dtype)
    for columns in range(1, 4 * each + 1):
        x = room[:, :columns]
        assert layouts.describable(x)
        assert layouts.storable(x) == (columns % each == 0)
        assert not layouts.storable(x.T) or columns == 1


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
