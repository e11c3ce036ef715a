"""tiled_matmul.torch.bmm: the operator for batches, and vmap of single products, which uses it."""

from itertools import product as every

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from tiled_matmul.check import assert_matmul
from tiled_matmul.torch import batched as room
from tiled_matmul.torch import bmm, matmul

FLOATS = (torch.float16, torch.bfloat16, torch.float32)
every_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)
on_gpu = pytest.mark.gpu


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(5)
    torch._dynamo.reset()


def pair(batch=2, m=3, k=4, n=5, grad=False, **options):
    shapes = (batch, m, k), (batch, k, n)
    return [torch.randn(shape, **options).requires_grad_(grad) for shape in shapes]


def doubles(*sizes):
    return pair(*sizes, grad=True, dtype=torch.float64)


def assert_products(f, a, b):
    """Check f(a, b) and both gradients against float64, within the error bound of check.py."""
    a, b = (x.detach().requires_grad_() for x in (a, b))
    c = f(a, b)
    grad = torch.randn_like(c)
    c.backward(grad)
    for i in range(len(c)):
        x, y = a.detach()[i], b.detach()[i]
        assert_matmul(c.detach()[i], x, y)
        assert_matmul(a.grad[i], grad[i], y.T)
        assert_matmul(b.grad[i], x.T, grad[i])


@every_float
def test_the_reference_and_its_gradients_are_right(dtype):
    assert_products(bmm, *pair(3, 9, 70, 17, dtype=dtype))
    a, b = pair(1, 9, 500, 8, dtype=dtype)
    if dtype != torch.float32:
        assert torch.equal(bmm(a, b), (a.float() @ b.float()).to(dtype))  # rounded once


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64], ids=str)
@pytest.mark.parametrize("grad", [False, True])
def test_opcheck(dtype, grad):
    for sizes in ((2, 4, 5, 6), (1, 1, 1, 1), (0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 0, 4)):
        torch.library.opcheck(room.product, pair(*sizes, dtype=dtype, grad=grad))
    a, b = pair(3, 4, 5, 3, dtype=dtype)
    views = a.movedim(0, 2).contiguous().movedim(2, 0), b[:1].expand(3, 5, 3)
    torch.library.opcheck(room.product, tuple(x.detach().requires_grad_(grad) for x in views))


def test_gradients_in_float64():
    for sizes in ((2, 3, 4, 5), (1, 1, 4, 1), (2, 3, 0, 5), (0, 3, 4, 5)):
        assert gradcheck(bmm, doubles(*sizes), check_batched_grad=True, check_forward_ad=True)
        assert gradgradcheck(bmm, doubles(*sizes))
    a, b = doubles()
    assert gradcheck(lambda a: bmm(a, b.detach()), (a,))
    assert gradcheck(lambda b: bmm(a.detach(), b), (b,))
    assert gradcheck(torch.ops.tiled_matmul.bmm, (a, b))


def test_the_result_is_new_and_row_major_for_any_strides():
    a, b = pair(3, 4, 4, 4)
    for left, right in every(
        (lambda x: x, lambda x: x.mT, lambda x: x[:1].expand(3, 4, 4)), repeat=2
    ):
        c = bmm(left(a), right(b))
        assert c.is_contiguous()
        assert_close(c, left(a) @ right(b))


@pytest.mark.parametrize("sizes", [(0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 4, 0)])
def test_empty_sizes(sizes):
    a, b = pair(*sizes, grad=True)
    c = bmm(a, b)
    assert c.shape == (sizes[0], sizes[1], sizes[3]) and not c.any()
    c.sum().backward()
    assert not a.grad.any() and not b.grad.any()


@pytest.mark.parametrize("f", [bmm, torch.ops.tiled_matmul.bmm])
def test_vmap_over_one_or_both(f):
    a, b = torch.randn(6, 2, 3, 4), torch.randn(6, 2, 4, 5)
    for axis_a, axis_b in every((0, 1, 3, None), repeat=2):
        if axis_a is axis_b is None:
            continue
        x, y = (z[0] if axis is None else z.movedim(0, axis)
                for z, axis in ((a, axis_a), (b, axis_b)))  # fmt: skip
        wanted = (a[:1] if axis_a is None else a) @ (b[:1] if axis_b is None else b)
        assert_close(torch.vmap(f, (axis_a, axis_b))(x, y), wanted)
    assert torch.vmap(f)(a[:0], b[:0]).shape == (0, 2, 3, 5)


def test_torch_func_differentiates_it():
    a, b = pair(2, 3, 4, 5, dtype=torch.float64)

    def loss(f):
        return lambda a, b: f(a, b).sin().sum()

    for transform in (torch.func.grad, lambda f: torch.vmap(torch.func.grad(f), (0, None))):
        x = a[None].expand(3, *a.shape) if transform is not torch.func.grad else a
        assert_close(transform(loss(bmm))(x, b), transform(loss(torch.bmm))(x, b))
    ours, theirs = (torch.func.hessian(loss(f))(a, b) for f in (bmm, torch.bmm))
    assert_close(ours, theirs)
    tangents = torch.randn_like(a), torch.randn_like(b)
    assert_close(*(torch.func.jvp(f, (a, b), tangents) for f in (bmm, torch.bmm)))


def test_vmap_of_single_products_is_one_product_of_batches(monkeypatch):
    made = []
    original = room.multiply
    monkeypatch.setattr(room, "multiply", lambda a, b: made.append(a.shape) or original(a, b))
    a, b = pair(7, 3, 4, 5, dtype=torch.float64)
    assert_close(torch.vmap(matmul)(a, b), a @ b)
    assert made == [(7, 3, 4)]

    def loss(f):
        return lambda a, b: f(a, b).sin().sum()

    grads = (torch.vmap(torch.func.grad(loss(f), (0, 1)))(a, b) for f in (matmul, torch.mm))
    assert_close(*grads)
    assert torch.vmap(matmul)(a[:0], b[:0]).shape == (0, 3, 5)


@pytest.mark.parametrize("f", [bmm, torch.ops.tiled_matmul.bmm])
def test_autocast(f):
    a, b = pair(grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        c = f(a, b)
    assert c.dtype == torch.bfloat16
    c.float().sum().backward()
    assert a.grad.dtype == torch.float32
    c = f(*doubles())
    assert c.dtype == torch.float64


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_whole_with_sizes_that_change(backend):
    compiled = torch.compile(bmm, fullgraph=True, backend=backend, dynamic=True)
    for sizes in ((2, 4, 5, 6), (3, 7, 8, 9)):
        assert_products(compiled, *pair(*sizes))


def test_bad_input_is_quoted():
    a, b = pair()
    for operands, error, message in (
        ((a[0], b), ValueError, r"a must be 3-D, got shape \(3, 4\)"),
        ((a, b[0]), ValueError, r"b must be 3-D, got shape \(4, 5\)"),
        ((a[:1], b), ValueError, "has 1 matrices, b .* has 2"),
        ((a, a), ValueError, "have 4 columns, those of b .* have 3 rows"),
        ((a, b.half()), TypeError, "must have one dtype"),
        ((a.int(), b.int()), TypeError, "are torch.int32"),
        ((a.tolist(), b), TypeError, "a must be a torch tensor, got list"),
        ((a.to_sparse(), b), TypeError, "a must be a dense tensor"),
        ((a, b.to("meta")), ValueError, "a lies on cpu and b on meta"),
    ):
        with pytest.raises(error, match=message):
            bmm(*operands)


@on_gpu
@every_float
def test_products_and_gradients_on_the_gpu(dtype):
    for sizes in ((3, 130, 95, 70), (5, 64, 128, 256), (40, 1, 300, 64)):
        assert_products(bmm, *pair(*sizes, dtype=dtype, device="cuda"))
    torch.library.opcheck(room.product, pair(2, 40, 24, 16, dtype=dtype, device="cuda", grad=True))
    a, b = pair(5, 64, 128, 256, dtype=dtype, device="cuda")
    assert torch.equal(torch.vmap(matmul)(a, b), bmm(a, b))
    assert not bmm(a[..., :0], b[:, :0]).any()
