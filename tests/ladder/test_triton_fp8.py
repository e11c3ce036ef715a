"""The rung for 8-bit floats: right for every pairing, scale, size and layout, in the interpreter.

Products are compared with those in float64 of what the 8-bit numbers and their scales mean.
"""

from functools import partial

import pytest
import torch
from other_gpu import other_gpu

from tiled_matmul.dispatch.float8 import pick
from tiled_matmul.kit import launch, variants
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.float8 import KINDS, Scales, dequantised, quantised
from tiled_matmul.kit.programs import launched
from tiled_matmul.ladder import triton_fp8, triton_fp8_gluon
from tiled_matmul.machine import backend
from tiled_matmul.machine.device import shared_limit
from tiled_matmul.microscope.compiled.triton import tile_codes

ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
BLOCK = {"block": (32, 32, 64)}
matmul = partial(triton_fp8.matmul, **({} if ON_GPU else BLOCK))
PAIRS = [("tensor", "tensor"), ("row", "row"), ("1x128", "128x128"), ("1x128", "1x128")]
PAIRS += [("128x128", "1x128"), ("row", "tensor"), ("row", "128x128")]
LARGER = [(1, 1, 1), (300, 520, 1168), (16, 7168, 4096), (1000, 1048, 2000), (520, 513, 16400)]
every_pair = pytest.mark.parametrize("kinds", PAIRS, ids="·".join)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(PLACE)


def operands(m, n, k, kinds=("tensor", "tensor"), dtypes=(E4M3, E4M3)):
    """Return (a, b, {"scale_a": …, "scale_b": …}); b lies by columns."""
    a, scale_a = quantised(normal(m, k), kinds[0], dtypes[0])
    b, scale_b = quantised(normal(n, k, seed=1), kinds[1], dtypes[1])
    return a, b.T, {"scale_a": scale_a, "scale_b": scale_b.T}


def meant(a, b, scales):
    return dequantised(a, scales["scale_a"]), dequantised(b, scales["scale_b"])


def assert_right(c, a, b, scales):
    """Raise AssertionError unless c is the product, within the rounding of c and of its sums."""
    x, y = meant(a, b, scales)
    wanted, sizes = x @ y, x.abs() @ y.abs()
    # A tensor core drops what lies 13 bits below the largest of the numbers that it adds, once for
    # every 32 products; the interpreter rounds float32.
    lost = 2.0**-12 if ON_GPU else (a.shape[1] + 4) * 2.0**-24
    unit = torch.finfo(c.dtype).eps / 2
    allowed = lost * sizes + unit * (wanted.abs() + lost * sizes)
    wrong = ~((c.double() - wanted).abs() <= allowed)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.numel()} are wrong"


# --- right ----------------------------------------------------------------------------------------


@every_pair
def test_scales_of_every_kind_at_ragged_sizes(kinds):
    for shape in ((37, 140, 300), (140, 33, 128), (1, 1, 1)):
        a, b, scales = operands(*shape, kinds)
        assert_right(matmul(a, b, **scales), a, b, scales)


@pytest.mark.gpu
@every_pair
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shape", LARGER, ids=str)
def test_larger_shapes_on_the_gpu(shape, fast, kinds):
    a, b, scales = operands(*shape, kinds)
    c = matmul(a, b, **scales, fast=fast)
    if fast:
        wanted = torch.matmul(*meant(a, b, scales))
        assert ((c.double() - wanted).norm() / wanted.norm()) < 0.02
    else:
        assert_right(c, a, b, scales)
    assert all(torch.equal(c, matmul(a, b, **scales, fast=fast)) for _ in range(3))


@pytest.mark.parametrize("dtypes", [(E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)], ids=str)
def test_both_kinds_of_float8_may_be_mixed(dtypes):
    a, b, scales = operands(40, 50, 70, dtypes=dtypes)
    assert_right(matmul(a, b, **scales), a, b, scales)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_out_has_the_dtype_that_is_asked_for_and_may_be_a_view(dtype):
    a, b, scales = operands(20, 30, 40)
    c = matmul(a, b, **scales, out_dtype=dtype)
    assert c.dtype == dtype
    assert_right(c, a, b, scales)
    room = torch.full((60, 60), -7.0, dtype=dtype, device=PLACE)
    for out in (room[2:22, 3:33], room[3:33, 5:25].T):
        assert matmul(a, b, out, **scales) is out
        assert torch.equal(out, c)
        out.fill_(-7.0)
        assert bool((room == -7.0).all())


def test_bfloat16_is_what_out_is_if_nothing_is_said():
    a, b, scales = operands(20, 30, 40)
    assert matmul(a, b, **scales).dtype == torch.bfloat16


LAYOUTS = {
    "a by columns": lambda a, b: (a.T.contiguous().T, b),
    "b by rows": lambda a, b: (a, b.contiguous()),
    "every second": lambda a, b: (torch.stack([a, a], 2).flatten(1)[:, ::2], b),
    "beside 16 bytes": lambda a, b: (torch.cat([a[0, :1], a.flatten()])[1:].view(a.shape), b),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_tensor_cores_cannot_read_is_copied(layout):
    a, b, scales = operands(20, 30, 45, ("row", "row"))
    wanted = matmul(a, b, **scales)
    assert torch.equal(matmul(*LAYOUTS[layout](a, b), **scales), wanted)


PARTS = [{"splits": 3}, {"turned": True}, {"splits": 2, "turned": True}, {"group_m": 1}]


@pytest.mark.parametrize("kinds", [PAIRS[1], PAIRS[2]], ids="·".join)
@pytest.mark.parametrize("options", PARTS, ids=str)
def test_parts_of_k_and_the_transpose_give_the_same_product(options, kinds):
    a, b, scales = operands(50, 140, 300, kinds)
    assert_right(triton_fp8.matmul(a, b, **scales, **BLOCK, **options), a, b, scales)


def test_scales_of_any_strides():
    a, b, scales = operands(40, 50, 300, ("1x128", "1x128"))
    wanted = matmul(a, b, **scales)
    apart = {name: torch.stack([x, x], 2).flatten(1)[:, ::2] for name, x in scales.items()}
    assert torch.equal(matmul(a, b, **apart), wanted)
    one = torch.full((1, 1), 2.0, device=PLACE)
    wanted = matmul(a, b, scale_a=one, scale_b=one)
    for scale in (one[0], one[0, 0], one.expand(40, 1), one.expand(40, 3)):
        assert torch.equal(matmul(a, b, scale_a=scale, scale_b=one), wanted)


def test_a_later_call_reads_its_own_scales():
    a, b, scales = operands(20, 30, 300, ("1x128", "1x128"))
    first = matmul(a, b, **scales)
    for times in (2.0, 4.0):
        others = {name: scale * times for name, scale in scales.items()}
        assert torch.equal(matmul(a, b, **others), first * times**2)
        assert torch.equal(matmul(a, b, **scales), first)
    swapped = matmul(b.T, a.T, scale_a=scales["scale_b"].T, scale_b=scales["scale_a"].T)
    assert_right(swapped.T, a, b, scales)


# --- special values -------------------------------------------------------------------------------


def test_nan_and_infinity_reach_their_rows_and_columns_alone():
    a, b, scales = operands(20, 30, 40, ("row", "row"), (E4M3, E5M2))
    a[3, 5], b[7, 11] = float("nan"), float("inf")
    c = matmul(a, b, **scales)
    bad = torch.zeros(20, 30, dtype=torch.bool, device=PLACE)
    bad[3], bad[:, 11] = True, True
    assert torch.equal(~c.isfinite(), bad) and bool(c[3].isnan().all())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_scale_is_a_factor_like_any_other(value):
    a, b, scales = operands(20, 30, 300, ("1x128", "1x128"))
    before = matmul(a, b, **scales)
    scales["scale_a"][4, 1] = value
    c = matmul(a, b, **scales)
    others = torch.arange(20, device=PLACE) != 4
    assert torch.equal(c[others], before[others])
    if abs(value) < 2:
        assert_right(c, a, b, scales)
    else:
        assert not c[4].isfinite().any()


def test_what_out_cannot_hold_becomes_infinite():
    a = torch.full((16, 128), 448.0, device=PLACE).to(E4M3)
    one = torch.ones((), device=PLACE)
    c = matmul(a, a.T, scale_a=one, scale_b=one, out_dtype=torch.float16)
    assert bool((c == float("inf")).all())
    assert bool((matmul(a, a.T, scale_a=one, scale_b=one) == 448.0**2 * 128).all())


# --- quantised ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [E4M3, E5M2], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_quantised_numbers_are_near_and_scales_have_their_shapes(kind, dtype):
    x = normal(140, 300) * torch.logspace(-3, 3, 140, device=PLACE)[:, None]
    values, scales = quantised(x, kind, dtype)
    shapes = {"tensor": (1, 1), "row": (140, 1), "1x128": (140, 3), "128x128": (2, 3)}
    assert values.shape == x.shape and values.is_contiguous() and values.dtype == dtype
    assert tuple(scales.shape) == shapes[kind] and scales.dtype == torch.float32
    info = torch.finfo(dtype)
    # Half the distance of neighbours: relative, and for the least numbers of a block absolute.
    wide = dequantised(torch.ones_like(values), scales)
    allowed = torch.maximum(x.abs() * (info.eps / 2), wide * (info.tiny * info.eps / 2))
    assert bool(((dequantised(values, scales) - x).abs() <= allowed * (1 + 1e-6)).all())
    assert values.float().abs().amax() == info.max


def test_quantised_zeros_stay_zeros_and_tiny_numbers_do_not_vanish():
    x = torch.zeros(3, 256, device=PLACE)
    x[1], x[2] = 1e-36, 3e38
    values, scales = quantised(x, "row")
    assert bool((scales > 0).all()) and bool(scales.isfinite().all())
    assert bool((values[0].float() == 0).all())
    assert torch.allclose(dequantised(values, scales), x.double(), rtol=0.04, atol=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_block_that_is_not_finite_becomes_nan_and_no_other_does(value):
    x = normal(4, 300)
    x[2, 130] = value
    found = dequantised(*quantised(x, "1x128"))
    assert bool(found[2, 128:256].isnan().all())
    found[2, 128:256] = 0
    assert bool(found.isfinite().all())


WRONG = [
    ([1.0], "row", E4M3, TypeError, "x must be a torch tensor, got list"),
    (torch.ones(3), "row", E4M3, ValueError, r"x must be 2-D and not empty, got shape \(3,\)"),
    (torch.ones(0, 3), "row", E4M3, ValueError, r"got shape \(0, 3\)"),
    (torch.ones(2, 3).int(), "row", E4M3, TypeError, "x has dtype int32"),
    (torch.ones(2, 3), "rows", E4M3, ValueError, "kind must be one of tensor, row"),
    (torch.ones(2, 3), "row", torch.float16, TypeError, "dtype must be one of float8_e4m3fn"),
]


@pytest.mark.parametrize(("x", "kind", "dtype", "error", "message"), WRONG)
def test_what_cannot_be_quantised_is_quoted(x, kind, dtype, error, message):
    with pytest.raises(error, match=message):
        quantised(x, kind, dtype)


# --- refused --------------------------------------------------------------------------------------

REFUSED = [
    ({"a": torch.ones(4, 8)}, TypeError, "a has dtype float32; this rung takes float8_e4m3fn"),
    ({"b": torch.ones(8, 6).half()}, TypeError, "b has dtype float16"),
    ({"b": torch.ones(9, 6).to(E4M3)}, ValueError, r"a \(4, 8\) has 8 columns, b \(9, 6\) has 9"),
    ({"scale_a": 2.0}, TypeError, "scale_a must be a torch tensor, got float"),
    ({"scale_a": torch.ones(1).double()}, TypeError, "scale_a has dtype float64"),
    ({"scale_a": torch.ones(3, 1)}, ValueError, r"shapes \(1, 1\), \(4, 1\), got \(3, 1\)"),
    ({"scale_b": torch.ones(6, 1)}, ValueError, r"shapes \(1, 1\), \(1, 6\), got \(6, 1\)"),
    ({"scale_b": torch.ones(1, 6).requires_grad_()}, ValueError, "scale_b requires grad"),
    ({"out_dtype": torch.float64}, TypeError, "out_dtype must be None or one of bfloat16"),
    ({"out": torch.ones(4, 6).to(E4M3)}, TypeError, "got torch.float8_e4m3fn"),
    ({"out": torch.ones(4, 7)}, ValueError, r"out has shape \(4, 7\), the product has \(4, 6\)"),
    ({"block": (16, 16, 8)}, ValueError, "BLOCK_K must be a power of two from 16 on, got 8"),
    ({"splits": 0}, ValueError, "splits must be at least 1, got 0"),
    ({"group_m": 0}, ValueError, "group_m must be at least 1, got 0"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_operands_and_options_that_do_not_fit_are_quoted(wrong, error, message):
    one = torch.ones(1, 1)
    given = {"a": torch.ones(4, 8).to(E4M3), "b": torch.ones(8, 6).to(E4M3)}
    given |= {"scale_a": one, "scale_b": one, "block": (16, 16, 16)} | wrong
    grad = {name for name, x in given.items() if getattr(x, "requires_grad", False)}
    given = {
        name: x.detach().to(PLACE).requires_grad_(name in grad) if torch.is_tensor(x) else x
        for name, x in given.items()
    }
    with pytest.raises(error, match=message):
        triton_fp8.matmul(given.pop("a"), given.pop("b"), **given)


def test_out_that_overlaps_a_scale_is_refused():
    room = torch.ones(64, device=PLACE)
    a = torch.ones(4, 8, device=PLACE).to(E4M3)
    options = {"scale_a": room[20:24].view(4, 1), "scale_b": torch.ones(1, device=PLACE)}
    with pytest.raises(ValueError, match="shares memory with scale_a"):
        matmul(a, a.T, room[8:24].view(4, 4), **options)


def test_blocks_of_k_beyond_those_of_the_scales_are_refused():
    a, b, scales = operands(16, 16, 300, ("1x128", "1x128"))
    with pytest.raises(ValueError, match="need a BLOCK_K of at most that, got 256"):
        triton_fp8.matmul(a, b, **scales, block=(16, 16, 256))


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 6)])
def test_a_gpu_without_8_bit_floats_is_named(capability, monkeypatch):
    here = backend.Backend("gpu", "for a test", backend.Gpu("a GPU", capability, "13.0"))
    a, b, scales = operands(16, 16, 16)
    monkeypatch.setattr(launch, "select", lambda: here)
    message = "tensor cores for 8-bit floats need compute capability 8.9; a GPU has {}.{}"
    with pytest.raises(ValueError, match=message.format(*capability)):
        matmul(a, b, **scales)


# --- planted faults -------------------------------------------------------------------------------

FAULTS = {
    "the first block's scale for all": ("k // 128, tl.int64)", "k // 128 * 0, tl.int64)"),
    "the scales of every second block": ("k // 128, tl.int64)", "k // 256, tl.int64)"),
    "a's scales alone": ("* (down * across)", "* down"),
    "sums that do not go on": ("acc += tl.dot(", "acc = tl.dot("),
    "b's 128 columns taken for one": ("0, BLOCK_N, B_SQUARE)", "0, BLOCK_N, False)"),
}


@pytest.mark.skipif(ON_GPU, reason="it would compile each variant")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_kernel_is_caught(fault):
    wrong = variants.edited(triton_fp8.triton_fp8_kernel, *FAULTS[fault])
    a, b, scales = operands(40, 140, 700, ("1x128", "128x128"))
    made = variants.matmul_with(triton_fp8, wrong)(a, b, **scales, **BLOCK)
    with pytest.raises(AssertionError, match="are wrong"):
        assert_right(made, a, b, scales)


# --- the rule that picks --------------------------------------------------------------------------

ONE, ROW = Scales(0, 0), Scales(1, 0)
BLOCKS, SQUARES = Scales(1, 4096), Scales(1, 32, square=True)
PICKED = [
    ((8192, 8192, 8192), ROW, ROW, False, "triton_fp8_gluon", {"block": (192, 128)}),
    ((4096, 4096, 4096), ONE, ONE, False, "triton_fp8_gluon", {"block": (128, 128)}),
    ((8192, 8192, 8192), ONE, ONE, True, "triton_fp8_gluon", {"block": (128, 256)}),
    ((2048, 2048, 2048), ONE, ONE, True, "triton_fp8", {"block": (128, 256, 128)}),
    ((8192, 8192, 8192), BLOCKS, SQUARES, True, "triton_fp8_gluon", {"block": (192, 128)}),
    ((8192, 8192, 8192), BLOCKS, BLOCKS, False, "triton_fp8_gluon", {"block": (128, 128)}),
    ((8192, 8192, 8192), ROW, BLOCKS, False, "triton_fp8", {"splits": 1}),
    ((8192, 8192, 128), ROW, SQUARES, False, "triton_fp8", {"splits": 1}),
    ((16, 7168, 4096), ONE, ONE, False, "triton_fp8", {"block": (64, 16, 128), "turned": True}),
    ((7168, 16, 4096), ONE, ONE, False, "triton_fp8", {"block": (64, 16, 128), "turned": False}),
    ((64, 2112, 7168), ONE, ONE, True, "triton_fp8", {"block": (64, 64, 256), "splits": 4}),
    ((64, 2112, 7168), BLOCKS, SQUARES, True, "triton_fp8", {"block": (64, 64, 128)}),
    ((512, 512, 16384), ONE, ONE, True, "triton_fp8", {"block": (64, 128, 128), "splits": 4}),
    ((1024, 1024, 1024), ONE, ONE, True, "triton_fp8", {"block": (64, 128, 128), "splits": 1}),
    ((1, 1, 1), ONE, ONE, False, "triton_fp8", {"block": (64, 16, 128), "splits": 1}),
]


@pytest.mark.parametrize(("shape", "a", "b", "fast", "module", "options"), PICKED)
def test_the_rule_picks(shape, a, b, fast, module, options):
    choice = pick(*shape, a, b, fast, 132)
    assert choice.module == module and choice.options == choice.options | options


@pytest.mark.long
@pytest.mark.parametrize("capability", [(8, 9), (9, 0), (10, 0), (12, 0)])
def test_what_the_rule_picks_is_compiled_for_every_gpu_with_float8(capability):
    jobs = {}
    for shape in ((16, 512, 1024), (512, 512, 1024)):
        for kinds in (PAIRS[0], PAIRS[2]):
            a, b, scales = operands(*shape, kinds)
            with other_gpu(capability):
                launches = launched(triton_fp8.matmul, a, b, **scales)
            jobs |= {(shape, kinds, i): job for i, job in enumerate(launches)}
    for code in tile_codes(jobs, capability).values():
        assert code.shared_bytes <= shared_limit(capability)
        assert code.count("tensor cores") or code.name[2] == 1
        assert code.spilled_bytes <= 64


# --- in Gluon -------------------------------------------------------------------------------------

GLUON = [
    ("tensor", "tensor", True, {"block": (128, 256), "num_stages": 4}),
    ("row", "row", False, {}),
    ("1x128", "128x128", False, {}),
    ("128x128", "1x128", False, {}),
    ("1x128", "1x128", False, {}),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("kind_a", "kind_b", "fast", "options"), GLUON)
def test_gluon_is_compiled_without_spills(kind_a, kind_b, fast, options):
    a, b, scales = operands(256, 256, 512, (kind_a, kind_b))
    [job] = launched(triton_fp8_gluon.matmul, a, b, **scales, fast=fast, **options)
    code = tile_codes({"it": job}, (9, 0))["it"]
    assert code.count("wgmma") and code.count("warp specialisation") == 1
    assert not code.spilled_bytes
    tile = job[1][-1]
    assert 0 <= code.shared_bytes - tile.shared_bytes < 1024


@pytest.mark.gpu
@pytest.mark.parametrize(("kind_a", "kind_b", "fast", "options"), GLUON)
def test_gluon_is_right_in_every_run(kind_a, kind_b, fast, options):
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("Gluon's wgmma is for 9.0 alone")
    for shape in ((1, 1, 1), (37, 53, 70), (40, 50, 300), (500, 330, 2100), (1800, 2000, 1992)):
        a, b, scales = operands(*shape, (kind_a, kind_b))
        made = partial(triton_fp8_gluon.matmul, a, b, **scales, fast=fast, **options)
        c = made(out_dtype=torch.float32)
        wanted = torch.matmul(*meant(a, b, scales))
        assert (c.double() - wanted).norm() <= wanted.norm() * (2e-2 if fast else 1e-3)
        assert all(torch.equal(c, made(out_dtype=torch.float32)) for _ in range(5))
        for programs in (1, 7):
            assert torch.equal(c, made(out_dtype=torch.float32, programs=programs))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"block": 128}, TypeError, r"block must be \(rows, columns\), got 128"),
        ({"block": (96, 128)}, ValueError, "a block has 64, 128 or 192 rows, got 96"),
        ({"block": (256, 128)}, ValueError, "groups must be at least 1 and at most 3, got 4"),
        ({"block": (128, 48)}, ValueError, "32, 64, 128 or 256 columns wide, got 48"),
        (
            {"block": (128, 256), "num_stages": 2},
            ValueError,
            "has 256 numbers for each thread; 208 are possible",
        ),
        ({"num_stages": 9}, ValueError, "bytes of shared memory; there are 232448"),
        ({"num_stages": 0}, ValueError, "num_stages must be at least 1, got 0"),
        ({"programs": 0}, ValueError, "programs must be at least 1, got 0"),
        ({"group_m": 0}, ValueError, "group_m must be at least 1, got 0"),
    ],
)
def test_a_block_of_gluon_that_cannot_be_is_refused(options, error, message):
    a, b, scales = operands(16, 16, 16)
    with pytest.raises(error, match=message):
        triton_fp8_gluon.matmul(a, b, **scales, **options)


def test_elsewhere_triton_takes_its_place():
    a, b, scales = operands(40, 50, 300, ("1x128", "128x128"))
    assert_right(triton_fp8_gluon.matmul(a, b, **scales), a, b, scales)
    a, b, scales = operands(40, 50, 300, ("row", "1x128"))
    [job] = launched(triton_fp8_gluon.matmul, a, b, **scales)
    assert job[0].fn.__name__ == "triton_fp8_kernel"
