"""tiled_matmul.torch: the operator, and the layers on it.

On the CPU the reference answers. What needs the kernels carries the marker `gpu`. (A folder named
`torch` in tests/ would stand before PyTorch on the path, so these tests have none.)
"""

import copy
import gc
import os
import shutil
import subprocess
import sys
import weakref

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

from tiled_matmul.check import MatmulError, assert_matmul, gamma
from tiled_matmul.kit.backend import select
from tiled_matmul.torch import MLP, Linear, TransformerBlock, checks, linear, matmul, swap
from tiled_matmul.torch import operator as room

# Several workers run these tests, and Inductor would start as many compilers in each as there are
# cores.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

ON_GPU = select().on_gpu
FLOATS = (torch.float16, torch.bfloat16, torch.float32)

every_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(5)
    torch._dynamo.reset()


def drawn(*shape, dtype=torch.float32, device="cpu", grad=False):
    return torch.randn(shape, dtype=dtype, device=device).requires_grad_(grad)


def pair(m=5, k=7, n=6, **options):
    return drawn(m, k, **options), drawn(k, n, **options)


def doubles(m=3, k=4, n=5):
    return pair(m, k, n, dtype=torch.float64, grad=True)


def assert_products(f, a, b):
    """Check f(a, b) and both gradients against float64, within the error bound of check.py."""
    a, b = (x.detach().requires_grad_() for x in (a, b))
    c = f(a, b)
    grad = torch.randn_like(c)
    c.backward(grad)
    a, a_grad, b, b_grad = a.detach(), a.grad, b.detach(), b.grad
    assert_matmul(c.detach(), a, b)
    assert_matmul(a_grad, grad, b.T)
    assert_matmul(b_grad, a.T, grad)


# --- the operator ---------------------------------------------------------------------------------


@every_float
def test_the_reference_and_its_gradients_are_right(dtype):
    assert_products(matmul, *pair(33, 70, 17, dtype=dtype))
    assert_products(matmul, *pair(1, 300, 1, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_the_reference_rounds_once(dtype):
    a, b = pair(9, 500, 8, dtype=dtype)
    assert torch.equal(matmul(a, b), (a.float() @ b.float()).to(dtype))
    ones = torch.ones(1, 4096, dtype=dtype)
    assert matmul(ones, ones.T).item() == 4096  # lost if sums were rounded to dtype


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64], ids=str)
@pytest.mark.parametrize("grad", [False, True])
def test_opcheck(dtype, grad):
    for m, k, n in ((4, 5, 6), (1, 1, 1), (0, 3, 4), (3, 0, 4), (3, 4, 0)):
        torch.library.opcheck(room.product, pair(m, k, n, dtype=dtype, grad=grad))
    a, b = pair(5, 4, 3, dtype=dtype)
    views = a.T, torch.stack([a, a], dim=2)[:, ::2, 0]
    torch.library.opcheck(room.product, tuple(view.requires_grad_(grad) for view in views))


def test_gradients_in_float64():
    for sizes in ((3, 4, 5), (1, 4, 1), (3, 0, 5), (0, 4, 5)):
        assert gradcheck(matmul, doubles(*sizes), check_batched_grad=True, check_forward_ad=True)
        assert gradgradcheck(matmul, doubles(*sizes))
    for transposed in ((0,), (1,), (0, 1)):
        inputs = list(doubles(4, 4, 4))

        def product(*operands, transposed=transposed):
            return matmul(*(x.T if i in transposed else x for i, x in enumerate(operands)))

        assert gradcheck(product, inputs) and gradgradcheck(product, inputs)
    a, b = doubles()
    assert gradcheck(torch.ops.tiled_matmul.matmul, (a, b))
    assert gradcheck(lambda a: matmul(a, b.detach()), (a,))
    assert gradcheck(lambda b: matmul(a.detach(), b), (b,))


@pytest.mark.parametrize("wanted", ["a", "b", "both", "neither"])
def test_only_gradients_that_are_wanted_are_made(wanted, monkeypatch):
    a, b = pair(grad=True)
    a.requires_grad_(wanted in ("a", "both"))
    b.requires_grad_(wanted in ("b", "both"))
    c = matmul(a, b)
    assert c.requires_grad == (wanted != "neither")
    if wanted == "neither":
        return
    made = []
    original = room.multiply
    monkeypatch.setattr(room, "multiply", lambda x, y: made.append(x.shape) or original(x, y))
    c.sum().backward()
    assert len(made) == (2 if wanted == "both" else 1)
    assert (a.grad is None, b.grad is None) == (wanted == "b", wanted == "a")


@pytest.mark.parametrize("product", [matmul, torch.ops.tiled_matmul.matmul])
def test_an_input_that_no_gradient_needs_is_not_kept(product):
    for frozen in (0, 1):
        inputs = [x * 1 for x in pair(grad=True)]
        inputs[frozen] = inputs[frozen].detach()
        other = weakref.ref(inputs[1 - frozen])  # only its own gradient is wanted
        c = product(*inputs)
        del inputs
        gc.collect()
        assert other() is None and c.requires_grad


def test_a_gradient_lies_in_memory_as_its_input_does():
    a, b = pair(3, 4, 5)
    for by_columns in (False, True):
        x, w = ((x.T.contiguous().T if by_columns else x) for x in (a, b))
        x, w = x.requires_grad_(), w.requires_grad_()
        grads = torch.autograd.grad(matmul(x, w).sum(), (x, w))
        assert [grad.stride() for grad in grads] == [x.stride(), w.stride()]


def test_the_result_is_new_and_row_major_for_any_strides():
    a, b = pair(6, 6, 6)
    views = (
        lambda x: x,
        lambda x: x.T,
        lambda x: torch.stack([x, x])[:, ::2, :][1],
        lambda x: x[:1].expand(6, 6),
        lambda x: x.flip(0)[:, 2:],
    )
    for left in views:
        for right in views:
            x, y = left(a), right(b)[: left(a).shape[1]]
            x = x[:, : y.shape[0]]
            c = matmul(x, y)
            assert c.is_contiguous()
            assert_close(c, x @ y)
    negated = torch.view_as_complex(drawn(6, 6, 2)).conj().imag
    assert negated.is_neg()
    assert_close(matmul(negated, b), negated @ b)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 4, 0), (3, 0, 4), (0, 0, 0)])
def test_empty_sizes(sizes):
    a, b = pair(*sizes, grad=True)
    c = matmul(a, b)
    assert c.shape == (sizes[0], sizes[2]) and not c.any()
    c.sum().backward()
    assert not a.grad.any() and not b.grad.any()


def test_the_fake_kernel_has_the_shape_dtype_device_and_strides_of_the_real_one():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    for dtype in checks.DTYPES["cpu"]:
        a, b = pair(dtype=dtype)
        b = b.T.contiguous().T
        real, meta = matmul(a, b), matmul(a.to("meta"), b.to("meta"))
        with FakeTensorMode(shape_env=ShapeEnv()) as mode:
            fake = matmul(*map(mode.from_tensor, (a, b)))
        for each in (meta, fake):
            assert tuple(map(int, each.shape)) == tuple(real.shape) and each.dtype == dtype
            assert tuple(map(int, each.stride())) == real.stride()
        assert fake.device == real.device and meta.device.type == "meta"
    with FakeTensorMode():
        there = (torch.empty(size, dtype=torch.float16, device="cuda") for size in ((4, 5), (5, 6)))
        c = matmul(*there)
        assert (c.shape, c.device.type, c.dtype) == ((4, 6), "cuda", torch.float16)


# --- torch.compile, torch.export ------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_whole_with_sizes_that_change(backend):
    compiled = torch.compile(matmul, fullgraph=True, backend=backend, dynamic=True)
    for sizes in ((4, 5, 6), (7, 8, 9), (33, 20, 17)):
        assert_products(compiled, *pair(*sizes))
        assert_products(compiled, *(x.T.contiguous().T for x in pair(*sizes)))


def test_a_size_that_depends_on_numbers_is_compiled():
    layer = Linear(4, 5)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        picked = torch.compile(lambda x: layer(x[x[:, 0] > 0]), fullgraph=True, backend="aot_eager")
        x = drawn(9, 4)
        assert_close(picked(x), layer(x[x[:, 0] > 0]))


def test_a_compiled_product_of_a_wrong_size_quotes_it():
    compiled = torch.compile(matmul, fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=r"a \(5, 7\) has 7 columns, b \(5, 7\) has 5 rows"):
        compiled(drawn(5, 7), drawn(5, 7))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_compiled_by_inductor_on_the_cpu():
    block = TransformerBlock(16, 2)
    x = drawn(2, 5, 16, grad=True)
    compiled = torch.compile(block, fullgraph=True)
    (wanted,) = torch.autograd.grad(block(x).sum(), x)
    (got,) = torch.autograd.grad(compiled(x).sum(), x)
    assert_close(got, wanted)
    assert_close(compiled(x), block(x))


def test_an_exported_model_calls_the_operator():
    rows = torch.export.Dim("rows")
    exported = torch.export.export(Linear(4, 5), (drawn(3, 4),), dynamic_shapes=({0: rows},))
    targets = [node.target for node in exported.graph.nodes]
    assert targets.count(torch.ops.tiled_matmul.linear.default) == 1
    assert exported.module()(drawn(8, 4)).shape == (8, 5)


# --- torch.func -----------------------------------------------------------------------------------


def test_vmap_over_one_or_both():
    a, b = drawn(5, 3, 4), drawn(5, 4, 6)
    assert_close(torch.vmap(matmul, (0, None))(a, b[0]), a @ b[0])
    assert_close(torch.vmap(matmul, (2, None))(a.movedim(0, 2), b[0]), a @ b[0])
    assert_close(torch.vmap(matmul, (None, 1))(a[0], b.movedim(0, 1)), a[0] @ b)
    assert_close(torch.vmap(matmul, (1, 2))(a.movedim(0, 1), b.movedim(0, 2)), a @ b)
    assert_close(torch.vmap(torch.ops.tiled_matmul.matmul)(a, b), a @ b)
    assert_close(torch.vmap(torch.vmap(matmul))(a[None], b[None]), (a @ b)[None])
    for axes in ((0, 0), (0, None), (None, 0)):
        empty = (x[:0] if axis == 0 else x[0] for x, axis in zip((a, b), axes, strict=True))
        assert torch.vmap(matmul, axes)(*empty).shape == (0, 3, 6)
    compiled = torch.compile(torch.vmap(matmul), fullgraph=True, backend="aot_eager")
    assert_close(compiled(a, b), a @ b)


def test_gradients_of_each_sample_and_second_derivatives():
    x, w = drawn(5, 3, 4), drawn(4, 6)

    def loss(product):
        return lambda w, x: (product(x, w) ** 2).sum()

    for transform in (
        lambda f: torch.func.grad(f)(w, x[0]),
        lambda f: torch.vmap(torch.func.grad(f), (None, 0))(w, x),
        lambda f: torch.func.grad(lambda w, x: torch.vmap(f, (None, 0))(w, x).sum())(w, x),
        lambda f: torch.func.hessian(f)(w, x[0]),
        lambda f: torch.func.jacrev(torch.func.jacrev(f))(w, x[0]),
        lambda f: torch.func.jvp(lambda w: f(w, x[0]), (w,), (w + 1,))[1],
    ):
        assert_close(transform(loss(matmul)), transform(loss(torch.mm)), rtol=1e-4, atol=1e-4)


def test_tangents_are_not_lost():
    a, b = pair()
    tangent = torch.randn_like(a)
    with forward_ad.dual_level():
        c = matmul(forward_ad.make_dual(a, tangent), b)
        assert_close(forward_ad.unpack_dual(c).tangent, tangent @ b)
    with forward_ad.dual_level(), torch.no_grad():
        c = matmul(a, forward_ad.make_dual(b, b + 1))
        assert_close(forward_ad.unpack_dual(c).tangent, a @ (b + 1))


# --- autocast -------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", [matmul, torch.ops.tiled_matmul.matmul])
def test_autocast_is_that_of_mm(product):
    a, b = pair(device="cpu", grad=True)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            c, wanted = product(a, b), torch.mm(a, b)
            assert c.dtype == wanted.dtype == dtype
            assert product(a.half(), b).dtype == dtype
            assert product(a.double(), b.double()).dtype == torch.float64
            with pytest.raises(TypeError, match="is torch.float64 and b"):
                product(a.double(), b)
            with pytest.raises(ValueError, match="7 columns"):
                product(a, a)
            with pytest.raises(TypeError, match="is torch.int64"):
                product(a.long(), b)
        grads = torch.autograd.grad(c.float().sum(), (a, b))
        assert [grad.dtype for grad in grads] == [torch.float32] * 2
    assert product(a, b).dtype == torch.float32


def test_autocast_around_and_in_a_compiled_function():
    a, b = pair(grad=True)

    def inside(a, b):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return matmul(a, b)

    compiled = torch.compile(inside, fullgraph=True, backend="aot_eager")
    c = compiled(a, b)
    assert torch.equal(c, inside(a, b)) and c.dtype == torch.bfloat16
    assert torch.autograd.grad(c.float().sum(), a)[0].dtype == torch.float32
    around = torch.compile(matmul, fullgraph=True, backend="aot_eager")
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            assert around(a, b).dtype == dtype
    assert around(a, b).dtype == torch.float32


def test_autocast_in_torch_func():
    a, b = pair()

    def loss(a):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            c = matmul(a, b)
        assert c.dtype == torch.bfloat16
        return c.float().sum()

    assert torch.func.grad(loss)(a).dtype == torch.float32


# --- bad input ------------------------------------------------------------------------------------


def refused():
    a, b = pair()
    nested = torch.nested.nested_tensor([a, a], layout=torch.jagged)
    dense = "must be a dense tensor, got a"
    return {
        "array": (a.numpy(), b, TypeError, "a must be a torch tensor, got ndarray"),
        "list": (a, [[1.0]], TypeError, "b must be a torch tensor, got list"),
        "sparse": (a.to_sparse(), b, TypeError, f"a {dense} torch.sparse_coo torch.float32"),
        "nested": (nested, b, TypeError, f"a {dense} nested tensor"),
        "one axis": (a[0], b, ValueError, r"a must be 2-D, got shape \(7,\)"),
        "three axes": (a, b[None], ValueError, r"b must be 2-D, got shape \(1, 7, 6\)"),
        "sizes": (a, a, ValueError, r"a \(5, 7\) has 7 columns, b \(5, 7\) has 5 rows"),
        "two dtypes": (a, b.half(), TypeError, r"a \(5, 7\) is torch.float32 and b \(7, 6\) is"),
        "integers": (a.long(), b.long(), TypeError, "are torch.int64; on cpu the operator takes"),
        "bits": (a > 0, b > 0, TypeError, "are torch.bool"),
        "complex": (a.cfloat().conj(), b.cfloat(), TypeError, "are torch.complex64"),
        "eight bits": (
            a.to(torch.float8_e4m3fn),
            b.to(torch.float8_e4m3fn),
            TypeError,
            "are torch.float8_e4m3fn",
        ),
        "two devices": (a.to("meta"), b, ValueError, "a lies on meta and b on cpu"),
    }


@pytest.mark.parametrize("name", refused())
def test_bad_input_is_quoted(name):
    a, b, error, message = refused()[name]
    with pytest.raises(error, match=message):
        matmul(a, b)


def test_a_dtype_that_a_device_lacks_and_a_device_without_kernels():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        a = torch.empty(4, 4, dtype=torch.float64, device="cuda")
        with pytest.raises(TypeError, match="on cuda the operator takes float16, bfloat16, float3"):
            matmul(a, a)
        a = torch.empty(4, 4, device="xpu")
        with pytest.raises(ValueError, match="a lies on xpu:0; there are kernels for cuda and cpu"):
            matmul(a, a)


# --- layers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("sizes", [(4, 5), (1, 1), (0, 5), (4, 0)], ids=str)
def test_linear_is_that_of_torch(leading, sizes):
    k, n = sizes
    inputs = drawn(*leading, k, grad=True), drawn(n, k, grad=True), drawn(n, grad=True)
    for used in (inputs[:2], inputs):
        y, wanted = linear(*used), functional.linear(*used)
        assert y.shape == (*leading, n)  # torch's loses an axis if x and weight are both empty
        if wanted.shape != y.shape:
            continue
        assert_close(y, wanted)
        grad = torch.randn_like(y)
        for got, right in zip(
            torch.autograd.grad(y, used, grad), torch.autograd.grad(wanted, used, grad), strict=True
        ):
            assert_close(got, right)


def test_linear_takes_views_of_x():
    x, weight = drawn(4, 3, 2), drawn(5, 3)
    assert_close(linear(x.transpose(1, 2), weight), functional.linear(x.transpose(1, 2), weight))
    assert linear(x.permute(2, 1, 0), drawn(5, 4)).shape == (2, 3, 5)


def test_linear_quotes_what_does_not_fit():
    x, weight, bias = drawn(3, 4), drawn(5, 4), drawn(5)
    for arguments, error, message in (
        (
            (x, weight.T),
            ValueError,
            r"x must be \(..., 5\) for weight \(4, 5\), got shape \(3, 4\)",
        ),
        ((x[0, 0], weight), ValueError, r"got shape \(\)"),
        ((x, weight[0]), ValueError, r"weight must be \(N, K\), got shape \(4,\)"),
        ((x, weight, bias[:4]), ValueError, r"bias must be \(5,\) .* got shape \(4,\)"),
        ((x, weight, bias.double()), TypeError, r"bias \(5,\) is torch.float64 and weight"),
        (
            (x.half(), weight),
            TypeError,
            r"x \(3, 4\) is torch.float16 and weight \(5, 4\) is torch",
        ),
        ((x.numpy(), weight), TypeError, "x must be a torch tensor, got ndarray"),
        ((x, None), TypeError, "weight must be a torch tensor, got NoneType"),
        ((x, weight, 1.0), TypeError, "bias must be a torch tensor, got float"),
        ((x.to_sparse(), weight), TypeError, "x must be a dense tensor"),
    ):
        with pytest.raises(error, match=message):
            linear(*arguments)


def test_linear_under_autocast_is_that_of_torch():
    layer = Linear(4, 5)
    x = drawn(3, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
        wanted = functional.linear(x, layer.weight, layer.bias)
    assert y.dtype == wanted.dtype == torch.bfloat16
    assert_close(y, wanted)
    y.float().sum().backward()
    assert layer.weight.grad.dtype == layer.bias.grad.dtype == torch.float32


def test_a_linear_is_one_of_torchs_in_all_but_its_kernel():
    layer = Linear(4, 5, bias=False, dtype=torch.float64)
    assert isinstance(layer, nn.Linear) and list(layer.state_dict()) == ["weight"]
    other = nn.Linear(4, 5, bias=False, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    x = drawn(2, 3, 4, dtype=torch.float64)
    assert_close(layer(x), other(x))
    assert gradcheck(layer, (x.requires_grad_(),))
    layer(x).sum().backward()
    assert layer.weight.grad.is_contiguous()


def test_swap_changes_every_linear_and_nothing_else():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.again = self.first
            self.rest = nn.ModuleDict({"deep": nn.Sequential(nn.Linear(4, 3), nn.ReLU())})
            self.other = nn.Bilinear(3, 3, 2)
            self.attention = nn.MultiheadAttention(4, 2)

        def forward(self, x):
            y = self.rest["deep"](self.again(self.first(x)))
            return self.other(y, y)

    model = Tied()
    before = copy.deepcopy(model)
    held = {name: id(value) for name, value in model.named_parameters()}
    calls = []
    model.first.register_forward_hook(lambda *arguments: calls.append(1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    assert swap(model) == 2 and swap(model) == 0
    assert type(model.first) is type(model.rest["deep"][0]) is Linear
    assert model.first is model.again
    assert type(model.attention.out_proj) is not Linear  # a subclass, which its parent reads
    assert {name: id(value) for name, value in model.named_parameters()} == held
    assert list(model.state_dict()) == list(before.state_dict())
    x = drawn(2, 4)
    assert_close(model(x), before(x))
    assert len(calls) == 2
    before.load_state_dict(model.state_dict())
    model.load_state_dict(before.state_dict())
    model(x).sum().backward()
    optimizer.step()
    assert not torch.equal(model.first.weight, before.first.weight)
    assert type(copy.deepcopy(model).first) is Linear


def test_swap_of_a_linear_itself_and_of_what_is_no_module():
    layer = nn.Linear(2, 3)
    assert swap(layer) == 1 and type(layer) is Linear
    with pytest.raises(TypeError, match="module must be an nn.Module, got Parameter"):
        swap(layer.weight)


def on_torchs_kernels(block):
    """Return a copy of the block whose products are torch's."""
    block = copy.deepcopy(block)
    for module in block.modules():
        if type(module) is Linear:
            module.__class__ = nn.Linear
    return block


@pytest.mark.parametrize("causal", [False, True])
def test_a_transformer_block_is_the_one_that_torch_has(causal):
    block = TransformerBlock(8, 2, causal=causal, dtype=torch.float64)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 32, dropout=0, activation="gelu", batch_first=True, norm_first=True
    ).double()
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(block.queries_keys_values.weight)
        theirs.self_attn.in_proj_bias.copy_(block.queries_keys_values.bias)
        for to, of in (
            (theirs.self_attn.out_proj, block.attended),
            (theirs.linear1, block.mlp.up),
            (theirs.linear2, block.mlp.down),
        ):
            to.weight.copy_(of.weight)
            to.bias.copy_(of.bias)
    x = drawn(3, 5, 8, dtype=torch.float64)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    wanted = theirs(x, src_mask=mask, is_causal=True) if causal else theirs(x)
    assert_close(block(x), wanted)
    (block(x) ** 2).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in block.parameters())
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x), block(x))


def test_a_transformer_block_quotes_heads_that_do_not_fit():
    for heads in (3, 0):
        with pytest.raises(ValueError, match=f"multiple of heads, got 8 and {heads}"):
            TransformerBlock(8, heads)
    assert MLP(4).up.out_features == 16 and MLP(4, 7, bias=False).down.bias is None


# --- imports --------------------------------------------------------------------------------------


def run_python(code):
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_it_chooses_no_back_end():
    run_python(
        "import sys, tiled_matmul; assert 'torch' not in sys.modules\n"
        "import tiled_matmul.torch as room, torch\n"
        "c = room.matmul(torch.ones(2, 3), torch.ones(3, 4)); assert bool((c == 3).all())\n"
        "assert torch.nn.Linear is not room.Linear\n"
        "heavy = {'triton', 'numba', 'tiled_matmul.kit.backend'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )


@pytest.mark.skipif(ON_GPU, reason="in the interpreter")
def test_the_kernel_for_gpus_runs_the_best_rung():
    """In the interpreter, which takes tensors on the CPU; the dispatcher sends it none."""
    a, b = pair(20, 24, 18, dtype=torch.float16, grad=True)
    c = room._on_gpu(a, b)
    assert not c.requires_grad
    assert_matmul(c, a.detach(), b.detach())
    assert not room._on_gpu(a[:, :0], b[:0]).any()
    with pytest.raises(ValueError, match="24 columns"):
        room._on_gpu(a, a)


# --- a check that can fail ------------------------------------------------------------------------


def test_wrong_gradients_are_caught():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b, a.T @ grad  # b not transposed

    with pytest.raises(MatmulError):
        assert_products(Wrong.apply, *pair(6, 6, 6))


# --- on a GPU -------------------------------------------------------------------------------------

SHAPES = [
    (1, 1, 1),
    (5, 7, 6),
    (37, 70, 53),
    (130, 95, 70),
    (256, 256, 256),
    (16, 4096, 512),
    (1000, 520, 1030),
    (300, 4000, 20),
    (3072, 1024, 768),
]


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", SHAPES, ids=str)
@every_float
def test_products_and_gradients_on_the_gpu(dtype, sizes):
    if dtype == torch.float32 and max(sizes) > 1100:
        sizes = tuple(min(size, 700) for size in sizes)
    assert_products(matmul, *pair(*sizes, dtype=dtype, device="cuda"))


@pytest.mark.gpu
@every_float
def test_transposed_and_strided_operands_on_the_gpu(dtype):
    options = {"dtype": dtype, "device": "cuda"}
    for a in (drawn(70, 90, **options), drawn(90, 70, **options).T, drawn(140, 93, **options)):
        a = a[-70:, -90:] if a.shape[0] == 70 else a[::2, 3:]
        for b in (drawn(90, 50, **options), drawn(50, 90, **options).T):
            assert matmul(a, b).is_contiguous()
            assert_products(matmul, a, b)
    grad = torch.ones((), **options).expand(70, 50)  # of `sum`: every stride is 0
    a, b = (x.requires_grad_() for x in pair(70, 90, 50, **options))
    matmul(a, b).backward(grad)
    assert_matmul(a.grad, grad, b.detach().T)
    assert_matmul(b.grad, a.detach().T, grad)


@pytest.mark.gpu
@every_float
def test_opcheck_on_the_gpu(dtype):
    for m, k, n in ((40, 50, 60), (3, 0, 4), (0, 3, 4)):
        for grad in (False, True):
            operands = pair(m, k, n, dtype=dtype, device="cuda", grad=grad)
            torch.library.opcheck(room.product, operands)
    a, b = pair(40, 50, 60, dtype=dtype, device="cuda")
    torch.library.opcheck(room.product, (b.T.requires_grad_(), a.T.requires_grad_()))


@pytest.mark.gpu
def test_second_derivatives_on_the_gpu():
    a, b = pair(40, 50, 60, device="cuda", grad=True)

    def second(product):
        (first,) = torch.autograd.grad((product(a, b) ** 3).sum(), a, create_graph=True)
        return torch.autograd.grad((first**2).sum(), (a, b))

    for got, wanted in zip(second(matmul), second(torch.mm), strict=True):
        assert_close(got / wanted.abs().max(), wanted / wanted.abs().max(), rtol=0, atol=1e-4)


@pytest.mark.gpu
def test_bad_input_is_quoted_on_the_gpu():
    a, b = pair(device="cuda")
    for operands, error, message in (
        ((a, b.cpu()), ValueError, "a lies on cuda:0 and b on cpu"),
        ((a.cpu(), b), ValueError, "a lies on cpu and b on cuda:0"),
        (
            (a.double(), b.double()),
            TypeError,
            "on cuda the operator takes float16, bfloat16, float",
        ),
        ((a, b.half()), TypeError, "is torch.float32 and b"),
        ((a.int(), b.int()), TypeError, "are torch.int32"),
        ((a, a), ValueError, "7 columns"),
        ((a.to_sparse(), b), TypeError, "a must be a dense tensor"),
    ):
        with pytest.raises(error, match=message):
            matmul(*operands)


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", SHAPES[3:], ids=str)
def test_captured_in_a_cuda_graph(sizes):
    a, b = pair(*sizes, dtype=torch.float16, device="cuda")
    matmul(a, b)  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = matmul(a, b)
    for _ in range(2):
        for x in (a, b):
            x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(c, matmul(a, b))
        assert_matmul(c, a, b)


@pytest.mark.gpu
def test_a_training_step_is_captured():
    layer = Linear(256, 128, dtype=torch.bfloat16, device="cuda")
    x = drawn(64, 256, dtype=torch.bfloat16, device="cuda", grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            layer(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    x.grad, layer.weight.grad, layer.bias.grad = None, None, None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer(x).sum().backward()
    with torch.no_grad():
        x.copy_(torch.randn_like(x))
    graph.replay()
    torch.cuda.synchronize()
    ones = torch.ones(64, 128, dtype=torch.bfloat16, device="cuda")
    assert_matmul(layer.weight.grad, ones.T, x.detach())
    assert_matmul(x.grad, ones, layer.weight.detach())


@pytest.mark.gpu
def test_the_current_stream_is_used_forward_and_backward():
    a, b = pair(512, 512, 512, dtype=torch.float16, device="cuda")
    wanted = matmul(a, b)
    wanted_grad = matmul(torch.ones_like(wanted), b.T)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        late = torch.zeros_like(a)
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        late.requires_grad_()
        c = matmul(late, b)
        c.sum().backward()
    stream.synchronize()
    assert torch.equal(c, wanted) and torch.equal(late.grad, wanted_grad)


@pytest.mark.gpu
@pytest.mark.gpus
def test_tensors_on_the_second_gpu_while_the_first_is_current():
    for dtype in FLOATS:
        assert torch.cuda.current_device() == 0
        for sizes in ((130, 95, 70), (16, 4096, 512), (1024, 512, 768)):
            assert_products(matmul, *pair(*sizes, dtype=dtype, device="cuda:1"))
        assert torch.cuda.current_device() == 0
    a, b = pair(device="cuda:1")
    assert matmul(a, b).device == a.device
    with pytest.raises(ValueError, match="a lies on cuda:1 and b on cuda:0"):
        matmul(a, b.to("cuda:0"))


@pytest.mark.gpu
@pytest.mark.parametrize("product", [matmul, torch.ops.tiled_matmul.matmul])
def test_autocast_on_the_gpu(product):
    a, b = pair(70, 80, 90, device="cuda", grad=True)
    for dtype in (torch.float16, torch.bfloat16):
        with torch.autocast("cuda", dtype=dtype):
            c = product(a, b)
            assert c.dtype == torch.mm(a, b).dtype == dtype
        low_a, low_b = a.detach().to(dtype), b.detach().to(dtype)
        assert_matmul(c.detach(), low_a, low_b)
        grad = torch.randn_like(c)
        a_grad, b_grad = torch.autograd.grad(c, (a, b), grad)
        assert a_grad.dtype == b_grad.dtype == torch.float32
        assert_matmul(a_grad.to(dtype), grad, low_b.T)
        assert_matmul(b_grad.to(dtype), low_a.T, grad)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # of another device
        assert product(a, b).dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_on_the_gpu(mode):
    compiled = torch.compile(matmul, fullgraph=True, mode=mode)
    for dtype in (torch.float16, torch.float32):
        for _ in range(3):  # reduce-overhead captures at its second run, and replays at its third
            torch.compiler.cudagraph_mark_step_begin()
            a, b = pair(130, 96, 70, dtype=dtype, device="cuda")
            assert torch.equal(compiled(a, b), matmul(a, b))
        torch.compiler.cudagraph_mark_step_begin()
        assert_products(compiled, *pair(130, 96, 70, dtype=dtype, device="cuda"))


@pytest.mark.gpu
def test_compiled_with_sizes_that_change_on_the_gpu():
    compiled = torch.compile(matmul, fullgraph=True, dynamic=True)
    for sizes in ((64, 96, 80), (130, 95, 70), (33, 257, 100)):
        assert_products(compiled, *pair(*sizes, dtype=torch.bfloat16, device="cuda"))


@pytest.mark.gpu
@every_float
def test_linear_on_the_gpu_rounds_once_after_its_bias(dtype):
    x = drawn(3, 40, 96, dtype=dtype, device="cuda")
    layer = Linear(96, 70, dtype=dtype, device="cuda")
    rows, weight, bias = x.flatten(0, 1), layer.weight.detach(), layer.bias.detach()
    exact = rows.double() @ weight.double().T + bias.double()
    unit = torch.finfo(dtype).eps / 2
    sums = gamma(97, "float32") * (rows.double().abs() @ weight.double().abs().T + bias.abs())
    errors = (layer(x).flatten(0, 1).double() - exact).abs()
    assert bool((errors <= sums + unit * (exact.abs() + sums)).all())
    layer(x).sum().backward()
    assert layer.weight.grad.is_contiguous()


def outputs(model, x, grad):
    """Return a model's output and all gradients for the output's gradient `grad`."""
    model.zero_grad()
    x = x.detach().requires_grad_()
    y = model(x)
    y.backward(grad)
    return [y.detach(), x.grad, *(parameter.grad for parameter in model.parameters())]


def assert_as_close(ours, theirs, exact):
    """Check that no tensor is much further from the exact one than another computation of it."""
    for i, (mine, other, right) in enumerate(zip(ours, theirs, exact, strict=True)):
        errors = [float((x.double() - right).abs().max()) for x in (mine, other)]
        rounding = torch.finfo(mine.dtype).eps * float(right.abs().max())
        assert errors[0] <= 4 * errors[1] + rounding, f"tensor {i}: {errors}, {rounding}"


def compare_with_torch(dtype, device, compiles=False):
    block = TransformerBlock(128, 4, dtype=dtype, device=device)
    theirs = on_torchs_kernels(block)
    exact = copy.deepcopy(theirs).double()
    x, grad = (drawn(4, 50, 128, dtype=dtype, device=device) for _ in range(2))
    ours = torch.compile(block, fullgraph=True) if compiles else block
    right = outputs(exact, x.double(), grad.double())
    assert_as_close(outputs(ours, x, grad), outputs(theirs, x, grad), right)


@every_float
def test_a_transformer_block_is_as_close_to_float64_as_torchs(dtype):
    compare_with_torch(dtype, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("compiles", [False, True])
@every_float
def test_a_transformer_block_on_the_gpu_is_as_close_to_float64_as_torchs(dtype, compiles):
    compare_with_torch(dtype, "cuda", compiles)


def train(device):
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8)).to(device)
    assert swap(model) == 2
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    x = drawn(512, 64, device=device)
    target = x[:, :8].sin()
    losses = []
    for _ in range(60):
        with torch.autocast(device, dtype=torch.bfloat16):
            y = model(x)
        assert y.dtype == torch.bfloat16
        loss = functional.mse_loss(y.float(), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 4, losses


def test_a_swapped_model_trains():
    train("cpu")


@pytest.mark.gpu
def test_a_swapped_model_trains_on_the_gpu():
    train("cuda")


@pytest.mark.gpu
def test_a_program_of_its_own_needs_no_set_up():
    run_python(
        "import torch, triton\n"
        "from tiled_matmul.torch import matmul\n"
        "a, b = torch.ones(70, 64, device='cuda'), torch.ones(64, 50, device='cuda')\n"
        "assert bool((matmul(a.half(), b.half()) == 64).all())"
    )
