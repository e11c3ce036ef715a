"""tiled_matmul::linear: the layer as one operator, its gradients, and layers that use it.

On the CPU the reference answers; what needs the kernels carries the marker `gpu`. Lacking rules of
the operator itself are those of `tiled_matmul::matmul`, tested in `test_torch.py`.
"""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

from tiled_matmul.check import gamma
from tiled_matmul.kit.backend import select
from tiled_matmul.torch import MLP, Linear, fused, linear
from tiled_matmul.torch.layers import through

ON_GPU = select().on_gpu
NAMES = (None, *fused.ACTIVATIONS)
every_activation = pytest.mark.parametrize("activation", NAMES)
layer = fused.layer


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(5)
    torch._dynamo.reset()


def drawn(*shape, dtype=torch.float32, device="cpu", grad=False):
    return torch.randn(shape, dtype=dtype, device=device).requires_grad_(grad)


def inputs(lead=(3,), k=4, n=5, bias=True, residual=True, **options):
    """Return x, weight, bias and residual."""
    x, weight = drawn(*lead, k, **options), drawn(n, k, **options)
    own = drawn(n, **options) if bias else None
    return x, weight, own, drawn(*lead, n, **options) if residual else None


def wanted(x, weight, bias, activation, residual):
    """Return the layer by torch's functions, in the dtype of the inputs."""
    y = functional.linear(x, weight, bias)
    if activation is not None:
        y = fused.ACTIVATIONS[activation][0](y)
    return y if residual is None else y + residual


def arranged(function, activation):
    """Return the function of x, weight, bias and residual alone."""
    return lambda x, weight, bias, residual: function(x, weight, bias, activation, residual)


# --- right ----------------------------------------------------------------------------------------


@every_activation
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_it_is_what_torch_computes(activation, lead):
    for bias in (False, True):
        for residual in (False, True):
            given = inputs(lead, bias=bias, residual=residual, grad=True)
            x, weight, own, added = given
            y = linear(x, weight, own, activation, added)
            right = wanted(x, weight, own, activation, added)
            assert y.is_contiguous()
            assert_close(y, right)
            leaves = [each for each in given if each is not None]
            grad = torch.randn_like(y)
            for got, other in zip(
                torch.autograd.grad(y, leaves, grad),
                torch.autograd.grad(right, leaves, grad),
                strict=True,
            ):
                assert_close(got, other)


@every_activation
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_without_gradients_it_is_rounded_once(activation, dtype):
    given = inputs((9,), 70, 8, dtype=dtype)
    x, weight, bias, residual = given
    exact = wanted(*(t.double() for t in given[:3]), activation, residual.double())
    y = linear(x, weight, bias, activation, residual)
    assert_close(y.double(), exact, rtol=0.6 * torch.finfo(dtype).eps, atol=1e-4)


def test_a_wider_residual_gives_the_dtype():
    x, weight, bias, _ = inputs(dtype=torch.bfloat16)
    residual = drawn(3, 5)
    y = linear(x, weight, bias, None, residual)
    exact = wanted(x.double(), weight.double(), bias.double(), None, residual.double())
    assert y.dtype == torch.float32
    assert_close(y.double(), exact, rtol=0, atol=1e-5)
    narrow = linear(drawn(3, 4), drawn(5, 4), None, None, residual.half())
    assert narrow.dtype == torch.float32


@pytest.mark.parametrize(
    "activation",
    [None, "gelu", *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[2:])],
)
def test_opcheck(activation):
    for grad in (False, True):
        for lead, k, n in (((2, 3), 4, 5), ((), 1, 1), ((3,), 0, 5)):
            for own in (False, True) if activation == "gelu" else (True,):
                x, weight, bias, residual = inputs(lead, k, n, own, own, grad=grad)
                torch.library.opcheck(layer, (x, weight, bias, activation, residual))


@every_activation
def test_gradients_in_float64(activation):
    for function in (linear, layer):  # the operator computes the activation's input again
        f = arranged(function, activation)
        given = inputs(dtype=torch.float64, grad=True)
        assert gradcheck(f, given)
        assert gradgradcheck(f, given)
    x, weight, bias, residual = inputs(dtype=torch.float64, grad=True)
    weight = drawn(4, 5, dtype=torch.float64, grad=True)
    assert gradcheck(lambda x, w: linear(x, w.T, None, activation), (x, weight))


def test_only_gradients_that_are_wanted_are_made(monkeypatch):
    made = []
    original = fused.multiply
    monkeypatch.setattr(fused, "multiply", lambda a, b: made.append("x") or original(a, b))
    product_by = fused.product_by
    monkeypatch.setattr(fused, "product_by", lambda *of: made.append("w") or product_by(*of))
    for i, products in enumerate((["x"], ["w"], [], [])):
        given = [t.requires_grad_(i == j) for j, t in enumerate(inputs())]
        made.clear()
        arranged(layer, None)(*given).sum().backward()
        assert made == products
        assert [t.grad is not None for t in given] == [i == j for j in range(4)]


def test_a_gradient_lies_in_memory_as_its_weight_does():
    x, weight, bias, _ = inputs()
    for turned in (False, True):
        w = (weight.T.contiguous().T if turned else weight).requires_grad_()
        (grad,) = torch.autograd.grad(linear(x, w, bias).sum(), w)
        assert grad.stride() == w.stride()


# --- the rest of PyTorch --------------------------------------------------------------------------


@pytest.mark.parametrize("activation", [None, "gelu"])
def test_compiled_whole_with_sizes_that_change(activation):
    compiled = torch.compile(linear, fullgraph=True, backend="aot_eager", dynamic=True)
    for lead in ((3,), (7,), (5,)):
        for grad in (False, True):
            x, weight, bias, residual = inputs(lead, grad=grad)
            y = compiled(x, weight, bias, activation, residual)
            right = wanted(x, weight, bias, activation, residual)
            assert_close(y, right)
            if grad:
                assert_close(
                    torch.autograd.grad(y.sum(), (x, weight, bias, residual)),
                    torch.autograd.grad(right.sum(), (x, weight, bias, residual)),
                )


@every_activation
def test_vmap_and_torch_func(activation):
    x, weight, bias, residual = inputs((6, 3))
    right = wanted(x, weight, bias, activation, residual)
    weights, biases = weight.expand(6, 5, 4), bias[:, None].expand(5, 6)
    for function in (linear, layer):
        f = arranged(function, activation)
        assert_close(torch.vmap(f, (0, None, None, 0))(x, weight, bias, residual), right)
        assert_close(torch.vmap(f, (0, 0, 1, 0))(x, weights, biases, residual), right)
        each = torch.vmap(f, (None, 0, None, None))(x[0], weights, None, None)
        assert_close(each[3], wanted(x[0], weight, None, activation, None))
        assert (
            torch.vmap(f, (0, None, 1, 0))(x[:0], weight, biases[:, :0], residual[:0]).numel() == 0
        )

    def loss(function):
        return lambda w: (function(x, w, bias, activation, residual) ** 2).sum()

    assert_close(torch.func.grad(loss(linear))(weight), torch.func.grad(loss(wanted))(weight))
    tangents = [torch.func.jvp(loss(f), (weight,), (weight + 1,))[1] for f in (linear, wanted)]
    assert_close(*tangents)


def test_autocast_casts_all_but_the_residual():
    x, weight, bias, residual = inputs(grad=True)
    for function in (linear, layer):
        for activation in NAMES:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = function(x, weight, bias, activation, None)
                right = wanted(x, weight, bias, activation, None)
                assert y.dtype == right.dtype == torch.bfloat16
                assert_close(y, right, rtol=0.02, atol=0.02)
                y = function(x, weight, bias, activation, residual)
            assert y.dtype == torch.float32
            grads = torch.autograd.grad(y.sum(), (x, weight, bias, residual))
            assert [grad.dtype for grad in grads] == [torch.float32] * 4
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(*(t.double() for t in (x, weight, bias))).dtype == torch.float64


def refused():
    x, weight, bias, residual = inputs()
    return {
        "activation": ((x, weight, bias, "tanh", None), ValueError, "one of gelu, .* got 'tanh'"),
        "residual": ((x, weight, bias, None, residual[:2]), ValueError, r"got \(2, 5\)"),
        "its type": ((x, weight, bias, None, residual.int()), TypeError, "residual is torch.int32"),
        "bias": ((x, weight, bias[:4], None, None), ValueError, r"bias must be \(5,\)"),
        "a number": ((x, weight, bias, None, 1.0), TypeError, "residual must be a torch tensor"),
        "devices": ((x, weight, bias, None, residual.to("meta")), ValueError, "residual on meta"),
        "dtypes": ((x, weight.half(), None, None, None), TypeError, "they must have one dtype"),
        "sizes": ((x[:, :3], weight, None, None, None), ValueError, r"x must be \(..., 4\)"),
    }


@pytest.mark.parametrize("name", refused())
def test_bad_input_is_quoted(name):
    arguments, error, message = refused()[name]
    with pytest.raises(error, match=message):
        linear(*arguments)


# --- layers ---------------------------------------------------------------------------------------


def test_through_is_the_same_for_torchs_layers():
    ours = Linear(4, 5)
    theirs = nn.Linear(4, 5)
    theirs.load_state_dict(ours.state_dict())
    x, _, _, residual = inputs()
    for activation in NAMES:
        for added in (None, residual):
            assert_close(through(ours, x, activation, added), through(theirs, x, activation, added))


def test_an_mlp_launches_what_it_should(monkeypatch):
    calls = []
    original = fused.layer
    monkeypatch.setattr(fused, "layer", lambda *of: calls.append(of[3:]) or original(*of))
    block, x = MLP(4), drawn(3, 4)
    with torch.no_grad():
        y = block(x, residual=x)
    assert [call[0] for call in calls] == ["gelu", None]
    assert calls[0][1] is None and calls[1][1] is x
    calls.clear()
    assert_close(block(x, residual=x), y)
    assert [call[0] for call in calls] == [None, None]  # GELU keeps its input for the gradient


@pytest.mark.skipif(ON_GPU, reason="in the interpreter")
@every_activation
def test_the_kernel_for_gpus_is_the_fused_rung(activation):
    for lead in ((5,), (2, 3)):
        x, weight, bias, residual = inputs(lead, 24, 18, dtype=torch.float16, grad=True)
        y = fused._on_gpu(x, weight, bias, activation, residual)
        assert not y.requires_grad
        assert_close(
            y, fused._reference(x, weight, bias, activation, residual), atol=4e-3, rtol=2e-3
        )
    empty = inputs((0,), 24, 18, dtype=torch.float16)
    assert fused._on_gpu(*empty[:3], activation, empty[3]).shape == (0, 18)


# --- on a GPU -------------------------------------------------------------------------------------


def gradient_bounds(x, weight, bias, residual, grad):
    """Return how far the gradients of x, weight, bias and residual may be off.

    An activation's slope and the change of its slope are at most 1.13. The slope is taken where the
    product is off by its own bound and one rounding; then follow the sums of the gradients.
    """
    eps, (n, k) = torch.finfo(x.dtype).eps, weight.shape
    rows, g = (t.detach().double().abs().flatten(0, -2) for t in (x, grad))
    w, b = (t.detach().double().abs() for t in (weight, bias))
    largest = float((rows @ w.T + b).max())
    share = 1.13 * (eps * (2 + largest) + gamma(k + 1, "float32") * largest)
    share += 1.13 * gamma(max(n, len(rows)), "float32")
    sums = (g @ w).reshape(x.shape), g.T @ rows, g.sum(0), 0 * grad.double()
    return [share * size for size in sums]


@pytest.mark.gpu
@every_activation
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_layers_and_gradients_on_the_gpu(dtype, activation):
    for lead, k, n in (((37,), 70, 53), ((4, 64), 256, 128), ((1,), 512, 300), ((3, 5), 96, 1)):
        given = inputs(lead, k, n, dtype=dtype, device="cuda", grad=True)
        x, weight, bias, residual = given
        exact = [t.detach().double().requires_grad_() for t in given]
        right = wanted(*exact[:3], activation, exact[3])
        eps = torch.finfo(dtype).eps
        with torch.no_grad():
            y = linear(x, weight, bias, activation, residual)
        assert_close(y.double(), right, rtol=eps, atol=k * 1e-6)
        grad = torch.randn_like(y)
        others = torch.autograd.grad(right, exact, grad.double())
        bounds = gradient_bounds(*given, grad)
        for function in (linear, layer):
            y = function(x, weight, bias, activation, residual)
            for got, other, bound in zip(
                torch.autograd.grad(y, given, grad), others, bounds, strict=True
            ):
                assert bool(((got.double() - other).abs() <= bound + eps * other.abs()).all())


@pytest.mark.gpu
@every_activation
def test_opcheck_on_the_gpu(activation):
    for grad in (False, True):
        x, weight, bias, residual = inputs(
            (40,), 48, 56, dtype=torch.float16, device="cuda", grad=grad
        )
        torch.library.opcheck(layer, (x, weight, bias, activation, residual))


@pytest.mark.gpu
def test_compiled_and_captured_on_the_gpu():
    block = MLP(128, device="cuda", dtype=torch.bfloat16)
    x = drawn(64, 128, dtype=torch.bfloat16, device="cuda")
    compiled = torch.compile(block, fullgraph=True)
    with torch.no_grad():
        right = block(x, x)
        assert_close(compiled(x, x), right)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = block(x, x)
        graph.replay()
        assert torch.equal(y, right)
