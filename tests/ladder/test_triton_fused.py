"""triton_fused: bias, activation, residual and scale in the store, at any shape and stride."""

import math
from dataclasses import replace

import pytest
import torch
from other_gpu import other_gpu
from torch.nn import functional

from tiled_matmul.check import MatmulError, gamma, poison
from tiled_matmul.dispatch import fused, rule
from tiled_matmul.dispatch.costs import Product
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.fused import ACTIVATIONS, Tiling
from tiled_matmul.kit.programs import launched
from tiled_matmul.ladder import LAYER, rung, triton_fused
from tiled_matmul.machine.device import shared_limit
from tiled_matmul.microscope.compiled.triton import TENSOR_CORES, tile_codes

ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
HALVES = DTYPES[:2]
EXACT = {
    None: lambda x: x,
    "gelu": functional.gelu,
    "gelu_erf": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu": functional.relu,
    "silu": functional.silu,
}
STEEPEST = 1.13  # of all activations: an error of x grows by this factor at most
FORMULA = 1e-6  # of float32: how far an activation's formula and its rounding may be off
SMALL = {
    "a tile a program": Tiling((32, 32, 16)),
    "in pieces": Tiling((16, 64, 16), pieces=4, described=True),
    "persistent": Tiling((32, 32, 16), resident=1, flatten=True, pieces=2, described=True),
    "parts of K": Tiling((32, 32, 16), splits=3),
    "pointers": Tiling((32, 32, 16), pointers=True),
    "turned": Tiling((16, 32, 16), turned=True),
    "turned, in parts": Tiling((16, 32, 16), turned=True, splits=2),
}
every_tiling = pytest.mark.parametrize("name", SMALL)
every_activation = pytest.mark.parametrize("activation", (None, *ACTIVATIONS))


def drawn(*shape, dtype=torch.float16, seed=1):
    numbers = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=numbers).to(dtype).to(PLACE)


def operands(m=37, n=53, k=70, dtype=torch.float16):
    """Return a, b, and a bias and residual."""
    a, b = drawn(m, k, dtype=dtype), drawn(k, n, dtype=dtype, seed=2)
    return (
        a,
        b,
        {"bias": drawn(n, dtype=dtype, seed=3), "residual": drawn(m, n, dtype=dtype, seed=4)},
    )


def assert_layer(c, a, b, bias=None, activation=None, residual=None, scale=1.0, **others):
    """Raise MatmulError unless c is right: float32's error bound, and one rounding to c's dtype."""
    exact = scale * (a.double() @ b.double())
    sizes = abs(scale) * (a.double().abs() @ b.double().abs())
    if bias is not None:
        exact, sizes = exact + bias.double(), sizes + bias.double().abs()
    exact = EXACT[activation](exact)
    bound = STEEPEST * gamma(a.shape[1] + 3, "float32") * sizes + FORMULA * (1 + sizes)
    if residual is not None:
        exact = exact + residual.double()
        bound = bound + 2.0**-24 * (residual.double().abs() + exact.abs())
    unit = torch.finfo(c.dtype).eps / 2
    tiny = torch.finfo(c.dtype).smallest_normal * unit
    bound = bound + unit * (exact.abs() + bound) + tiny
    wrong = ~((c.double() - exact).abs() <= bound)
    if bool(wrong.any()):
        i, j = (int(x) for x in wrong.nonzero()[0])
        raise MatmulError(
            f"{int(wrong.sum())} of {c.numel()} are wrong; first C[{i}, {j}] is {float(c[i, j])}, "
            f"should be {float(exact[i, j])} ± {float(bound[i, j]):.3g}"
        )


def checked(a, b, out_dtype=None, **options):
    """Run the rung into poisoned memory, check what it returns, and return it."""
    out = poison(a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype or a.dtype))
    c = triton_fused.matmul(a, b, out=out, out_dtype=out_dtype, **options)
    assert c is out
    options.pop("tiling", None)
    assert_layer(c, a, b, **options)
    return c


# --- right ----------------------------------------------------------------------------------------


@every_tiling
def test_all_steps_at_ragged_shapes(name):
    for m, n, k in ((37, 53, 70), (33, 17, 1), (1, 40, 50), (40, 1, 50), (32, 32, 32)):
        a, b, beside = operands(m, n, k)
        checked(a, b, activation="gelu", scale=0.5, **beside, tiling=SMALL[name])


@every_activation
def test_every_activation_with_and_without_other_steps(activation):
    a, b, beside = operands(20, 24, 40)
    for tiling in (SMALL["a tile a program"], SMALL["parts of K"]):
        for steps in ({}, {"bias": beside["bias"]}, {"residual": beside["residual"]}, beside):
            checked(a, b, activation=activation, **steps, tiling=tiling)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_of_inputs_of_what_is_added_and_of_the_result(dtype):
    a, b, _ = operands(20, 24, 40, dtype)
    for other in DTYPES:
        beside = operands(20, 24, 40, other)[2]
        for name in ("persistent", "parts of K"):
            for out in DTYPES:
                checked(a, b, out, **beside, activation="silu", tiling=SMALL[name])
        assert triton_fused.matmul(a, b, tiling=SMALL["pointers"]).dtype == dtype


@pytest.mark.sample(3)
@every_tiling
def test_matrices_that_lie_otherwise(name):
    def columns(x):
        return x.T.contiguous().T

    def odd(x):
        return torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape)

    def spread(x):
        return torch.stack([x, -x], dim=-1)[..., 0]

    a, b, beside = operands(24, 40, 48)
    for view in (columns, odd, spread):
        steps = {"residual": view(beside["residual"])}
        steps["bias"] = beside["bias"] if view is columns else view(beside["bias"])
        checked(view(a), view(b), **steps, activation="relu", tiling=SMALL[name])
    one = {"bias": beside["bias"][:1].expand(40), "residual": beside["residual"][:1].expand(24, 40)}
    checked(a, b, **one, tiling=SMALL[name])


@pytest.mark.sample(3)
@every_tiling
def test_out_may_be_a_view_and_what_lies_around_it_stays(name):
    a, b, beside = operands()
    right = triton_fused.matmul(a, b, **beside, tiling=SMALL[name])
    for view in (lambda room: room[2:39, 3:56], lambda room: room[1:54, 4:41].T):
        room = torch.full((60, 60), -7.0, dtype=a.dtype, device=PLACE)
        out = view(room)
        assert triton_fused.matmul(a, b, out=out, **beside, tiling=SMALL[name]) is out
        assert torch.equal(out, right)
        out.fill_(-7.0)
        assert bool((room == -7.0).all())


def test_what_is_added_is_not_rounded_before():
    one = torch.ones(16, 16, dtype=torch.bfloat16, device=PLACE)
    small = torch.full((16, 16), 2.0**-6, dtype=torch.bfloat16, device=PLACE)
    c = triton_fused.matmul(one, one, residual=small, bias=small[0], out_dtype=torch.float32)
    assert bool((c == 16 + 2 * 2.0**-6).all())


@every_activation
def test_special_values_are_those_of_torch(activation):
    values = (-math.inf, math.inf, math.nan, -1e30, 1e30, -20.0, -6.0, -0.5, 0.0, 0.5, 6.0, 20.0)
    a = torch.zeros(16, 16, device=PLACE)
    bias = torch.tensor([*values, 0, 0, 0, 0], device=PLACE)
    c = triton_fused.matmul(a, a, bias=bias, activation=activation, tiling=SMALL["pointers"])[0]
    # One at a time: on a CPU, torch 2.13's GELU of 8 numbers or more makes NaN of infinity.
    right = torch.stack([EXACT[activation](x) for x in bias])
    limit = 0.0 if activation in ("gelu", "gelu_erf", "gelu_tanh", "silu") else right[0]
    assert bool(c[0].isnan()) or abs(float(c[0]) - float(limit)) < 1e-6 or c[0] == right[0]
    torch.testing.assert_close(c[1:], right[1:], rtol=1e-6, atol=1e-6, equal_nan=True)


def test_gelu_is_as_close_as_float32_is():
    x = torch.linspace(-12, 12, 1 << 14, device=PLACE)
    zero = torch.zeros(16, 16, device=PLACE)
    b = torch.zeros(16, len(x), device=PLACE)
    limits = {"gelu": 4e-7, "gelu_erf": 2e-6, "gelu_tanh": 2e-6, "silu": 2e-6}
    for activation, most in limits.items():
        tiling = Tiling((16, 1024, 16), pointers=True)
        y = triton_fused.matmul(zero, b, bias=x, activation=activation, tiling=tiling)[0]
        assert float((y.double() - EXACT[activation](x.double())).abs().max()) < most


# --- refused --------------------------------------------------------------------------------------


def refused():
    a, b, beside = operands(20, 24, 40)
    bias, residual = beside.values()
    out = a.new_empty(20, 24)
    return {
        "activation": ({"activation": "tanh"}, ValueError, "one of gelu, .*; got 'tanh'"),
        "scale": ({"scale": "2"}, TypeError, "scale must be a number, got '2'"),
        "true": ({"scale": True}, TypeError, "scale must be a number, got True"),
        "out_dtype": ({"out_dtype": torch.int8}, TypeError, "out_dtype must be None or one of"),
        "its name": ({"out_dtype": "float32"}, TypeError, "out_dtype must be .*; got 'float32'"),
        "another out": (
            {"out": out, "out_dtype": torch.float32},
            TypeError,
            "out is float16, out_dtype is float32",
        ),
        "long bias": (
            {"bias": drawn(25)},
            ValueError,
            r"bias must have shape \(24,\), got \(25,\)",
        ),
        "bias of 2-D": ({"bias": bias[None]}, ValueError, r"got \(1, 24\)"),
        "residual": ({"residual": residual.T}, ValueError, r"\(20, 24\), got \(24, 20\)"),
        "list": ({"bias": [1.0] * 24}, TypeError, "bias must be a torch tensor or None, got list"),
        "integers": ({"residual": residual.int()}, TypeError, "residual has dtype int32"),
        "grad": ({"bias": drawn(24).requires_grad_()}, ValueError, "bias requires grad"),
        "in place": ({"out": out, "residual": out}, ValueError, "shares memory with residual"),
        "overlap": ({"out": out, "bias": out[0]}, ValueError, "shares memory with bias"),
        "device": ({"bias": bias.to("meta")}, ValueError, "bias lies on meta and out on"),
        "pieces": ({"tiling": Tiling((32, 32, 16), pieces=4)}, ValueError, "pieces must be one of"),
        "splits": ({"tiling": Tiling((32, 32, 16), splits=0)}, ValueError, "splits must be at"),
        "block": ({"tiling": Tiling((32, 30, 16))}, ValueError, "BLOCK_N must be a power of two"),
        "resident": ({"tiling": Tiling((32, 32, 16), resident=-1)}, ValueError, "resident must be"),
    }


@pytest.mark.parametrize("name", refused())
def test_bad_input_is_quoted_before_anything_is_launched(name):
    a, b, _ = operands(20, 24, 40)
    options, error, message = refused()[name]
    with pytest.raises(error, match=message):
        launched(triton_fused.matmul, a, b, **options)


def test_rungs_that_cut_c_otherwise_are_refused():
    choice = rule.pick(192, 192 * 132, 512, 132)
    with pytest.raises(ValueError, match="no tiles like those of triton_two_widths"):
        fused.tiling_of(replace(choice, module="triton_two_widths"))


# --- what is launched -----------------------------------------------------------------------------


def test_one_launch_or_two_and_which_tiles():
    assert rung("triton_fused") in LAYER and rung("triton_fused").kernel is not None
    for (m, n, k), kernels, of in (
        ((1024, 1024, 1024), 1, {"resident": 0}),
        ((8192, 8192, 2048), 1, {"resident": 1, "block": (128, 256, 64)}),
        ((64, 4096, 11008), 2, {}),
        ((1, 4096, 4096), 2, {"block": (16, 128, 128)}),
        ((4096, 1, 4096), 2, {"block": (16, 128, 128), "turned": True}),
    ):
        tiling = fused.tiling(Product(m, n, k, 132), (9, 0), 2)
        assert {name: getattr(tiling, name) for name in of} == of
        assert (tiling.splits > 1) == (kernels == 2)


def test_every_shape_gets_a_tiling():
    for m in (1, 20, 200, 1500, 9000):
        for n in (1, 30, 500, 3000):
            for k in (1, 64, 1000, 8192):
                for grains in ((8, 8, 8), (1, 8, 8), (2, 1, 8)):
                    tiling = fused.tiling(Product(m, n, k, 132, grains), (9, 0), 2)
                    tiling.check(m, n)
    for capability in ((7, 5), (8, 0), (12, 0)):
        assert fused.tiling(Product(4096, 4096, 4096, 132), capability, 2).pointers


CAPABILITIES = ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0))
CORES = {(7, 5): None, (9, 0): "wgmma", (10, 0): "tcgen05.mma"}  # elsewhere mma.sync


def planned(capability):
    """Return what is launched on such a GPU for a large layer and for one of few rows."""
    jobs = {}
    for m, n in ((4096, 4096), (16, 512)):
        a, b, beside = (torch.empty(m, 1024, dtype=torch.float16, device=PLACE),
                        torch.empty(1024, n, dtype=torch.float16, device=PLACE),
                        {"bias": torch.empty(n, dtype=torch.float16, device=PLACE)})  # fmt: skip
        beside["residual"] = torch.empty(m, n, dtype=torch.float16, device=PLACE)
        with other_gpu(capability):
            launches = launched(triton_fused.matmul, a, b, activation="gelu", **beside)
        jobs |= {(m, i): (*launch, capability) for i, launch in enumerate(launches)}
    return jobs


@pytest.mark.long
@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_it_is_compiled_for_every_gpu(capability):
    codes = tile_codes(planned(capability))
    for (m, i), code in codes.items():
        assert code.shared_bytes <= shared_limit(capability)
        if (m, i) == (4096, 0):
            assert bool(code.count("TMA loads")) == ((9, 0) <= capability < (12, 0))
            cores = CORES.get(capability, "mma.sync")
            kinds = {kind for kind in TENSOR_CORES if code.count(kind)}
            assert kinds == ({cores} if cores else set())
        if capability == (9, 0):
            assert code.spilled_bytes == 0, (m, i)


# --- checks that can fail -------------------------------------------------------------------------


def test_the_check_catches_wrong_layers():
    a, b, beside = operands(20, 24, 40)
    right = triton_fused.matmul(a, b, **beside, activation="gelu", scale=0.5)
    steps = {"activation": "gelu", "scale": 0.5} | beside
    assert_layer(right, a, b, **steps)
    for wrong in (
        {"activation": "gelu_tanh"},
        {"activation": None},
        {"scale": 0.501},
        {"bias": None},
        {"residual": None},
        {"residual": beside["residual"].roll(1, 1)},
        {"bias": beside["bias"].roll(1)},
    ):
        with pytest.raises(MatmulError, match="are wrong"):
            assert_layer(right, a, b, **steps | wrong)


# --- on a GPU -------------------------------------------------------------------------------------

SHAPES = [
    (1, 1, 1),
    (130, 95, 70),
    (300, 20, 4000),
    (20, 300, 4000),
    (1, 4096, 4096),
    (64, 4096, 1024),
    (1000, 1032, 520),
    (2048, 4096, 64),
    (300, 3000, 5000),
    (4096, 2048, 512),
]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_activation
def test_layers_on_the_gpu(activation, shape):
    for dtype in HALVES:
        a, b, beside = operands(*shape, dtype)
        b = b / shape[2] ** 0.5
        for steps in ({}, {"bias": beside["bias"]}, beside):
            checked(a, b, activation=activation, **steps)
        checked(a, b.T.contiguous().T, torch.float32, activation=activation, **beside)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SMALL)
def test_layers_in_float32_on_the_gpu(name):
    a, b, beside = operands(130, 95, 70, torch.float32)
    checked(a, b, **beside, activation="gelu", tiling=SMALL[name])


@pytest.mark.gpu
def test_plans_tell_tensors_apart():
    matmul = triton_fused.matmul
    for shape in ((300, 256, 512), (64, 4096, 1024)):
        matmul.plans.clear()
        a, b, beside = operands(*shape)
        bias, residual = beside.values()
        other = residual.clone().normal_()
        for _ in range(2):
            for steps in (
                {},
                {"bias": bias},
                {"bias": -bias},
                {"bias": bias.float()},
                {"residual": residual},
                {"residual": other},
                {"residual": residual, "bias": bias},
                {"bias": bias, "residual": other},
                {"residual": residual.T.contiguous().T},
                {"bias": residual[0]},
                {"bias": residual[0], "residual": residual},
                {"bias": bias, "scale": 2},
                {"bias": bias, "activation": "relu"},
            ):
                checked(a, b, **steps)
            checked(a, b, torch.float32, bias=bias)
            assert_layer(matmul(a, b, bias=bias), a, b, bias=bias)
        assert any(plan.steps is not None for plan in matmul.plans.values())
        square = drawn(256, 256)
        for _ in range(2):
            checked(square, square, residual=square)
            checked(square, square, residual=square.clone())
            checked(square, drawn(256, 256, seed=9), residual=square)


@pytest.mark.gpu
def test_a_plan_refuses_what_the_first_call_refuses():
    a, b, beside = operands(64, 64, 64)
    out = a.new_empty(64, 64)
    for _ in range(2):
        for steps in ({"residual": out}, {"bias": out[3]}):
            noted = {name: beside[name] for name in steps}  # of the same kind as what is refused
            triton_fused.matmul(a, b, out=out, **noted)
            with pytest.raises(ValueError, match="shares memory with"):
                triton_fused.matmul(a, b, out=out, **steps)
        with pytest.raises(ValueError, match="bias requires grad"):
            triton_fused.matmul(a, b, bias=drawn(64).requires_grad_())
        with pytest.raises(ValueError, match="bias lies on cpu"):
            triton_fused.matmul(a, b, bias=drawn(64).cpu())


@pytest.mark.gpu
def test_captured_in_a_graph_and_on_another_stream():
    for shape in ((300, 256, 512), (1, 4096, 4096)):
        a, b, beside = operands(*shape)
        right = triton_fused.matmul(a, b, **beside, activation="gelu")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            c = triton_fused.matmul(a, b, **beside, activation="gelu")
        c.zero_()
        graph.replay()
        assert torch.equal(c, right)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            late = {name: x.clone() for name, x in beside.items()}
            c = triton_fused.matmul(a, b, **late, activation="gelu")
        stream.synchronize()
        assert torch.equal(c, right)


@pytest.mark.gpu
def test_parts_that_the_next_call_overwrites_are_finished_before():
    layers = [operands(16, 4096, 4096)[:2] for _ in range(1)] + [operands(16, 4096, 4088)[:2]]
    beside = operands(16, 4096, 16)[2]
    right = [triton_fused.matmul(a, b, **beside) for a, b in layers]
    got = [triton_fused.matmul(*layers[i % 2], **beside) for i in range(60)]
    assert all(torch.equal(c, right[i % 2]) for i, c in enumerate(got))


@pytest.mark.gpu
@pytest.mark.gpus
def test_what_lies_on_another_gpu_is_refused():
    a, b, beside = operands(64, 64, 64)
    with pytest.raises(ValueError, match="bias lies on cuda:1"):
        triton_fused.matmul(a, b, bias=beside["bias"].to("cuda:1"))
