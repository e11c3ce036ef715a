"""The operators at every stride pattern: forward, backward and double backward against float64.

Around each operand, and around the gradient that comes in, memory is NaN.
"""

from __future__ import annotations

import pytest
import torch
from stride_patterns import PATTERNS, laid_out, on_the_gpu

from tiled_matmul.kit.backend import select
from tiled_matmul.torch import bmm, linear, matmul, swap

PLACE = "cuda" if select().on_gpu else "cpu"
UNITS = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
SIZES = ((9, 7, 12), (8, 16, 24), (1, 7, 8), (9, 1, 8), (9, 7, 1))  # M, N, K
OPERATORS = {
    "matmul": (matmul, torch.matmul),
    "bmm": (bmm, torch.matmul),
    "linear": (lambda a, b: linear(a, b.mT), torch.matmul),
    "linear, 3-D": (lambda a, b: linear(a, b.mT), torch.matmul),
}


def partner(pattern, distance):
    names = list(PATTERNS)
    return names[(names.index(pattern) + distance) % len(names)]


def operands(name, sizes, of_a, of_b, of_grad, dtype):
    """Return a, b, what comes in for the product, and what for the gradients of a and b."""
    m, n, k = sizes
    batch = {"bmm": (3, 3, 3), "linear, 3-D": (3, 0, 3)}.get(name, (0, 0, 0))
    shapes = [(m, k), (k, n), (m, n)]
    shapes = [(size, *shape) if size else shape for size, shape in zip(batch, shapes, strict=True)]
    patterns = of_a, of_b, of_grad
    made = [
        laid_out(pattern, shape, dtype, PLACE, seed)
        for seed, (pattern, shape) in enumerate(zip(patterns, shapes, strict=True))
    ]
    made += [
        laid_out(pattern, shape, dtype, PLACE, 5 + seed)
        for seed, (pattern, shape) in enumerate(zip((of_grad, of_a), shapes[:2], strict=True))
    ]
    return zip(*made, strict=True)


def twice_differentiated(product, a, b, grad, in_a, in_b):
    """Return the product, its gradients, and the gradients of these."""
    a, b, grad = (x.detach().requires_grad_() for x in (a, b, grad))
    c = product(a, b)
    first = torch.autograd.grad(c, (a, b), grad, create_graph=True)
    second = torch.autograd.grad(first, (a, b, grad), (in_a, in_b))
    return [c, *first, *second]


def assert_right(name, sizes, of_a, of_b, of_grad, dtype):
    """Inputs are small integers: the errors are those of rounding each result, and of its terms."""
    ours, exact = OPERATORS[name]
    tensors, guards = operands(name, sizes, of_a, of_b, of_grad, dtype)
    got = twice_differentiated(ours, *tensors)
    wide = [x.detach().double() for x in tensors]
    wanted = twice_differentiated(exact, *wide)
    # The same with all signs positive bounds what is added up and rounded.
    bound = twice_differentiated(exact, *(x.abs() for x in wide))
    where = (name, sizes, of_a, of_b, of_grad, dtype)
    for number, (one, other, size) in enumerate(zip(got, wanted, bound, strict=True)):
        error = (one.double() - other).abs()
        assert one.dtype == dtype and one.shape == other.shape, where
        assert bool((error <= 4 * UNITS[dtype] * size).all()), (number, where)
    for guard in guards:
        guard.check()


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_at_every_pattern(name, pattern, dtype):
    for number, sizes in enumerate(SIZES):
        other, third = partner(pattern, 4 * number + 1), partner(pattern, 7 * number)
        assert_right(name, sizes, pattern, other, third, dtype)
        assert_right(name, sizes, other, third, pattern, dtype)


test_operators_on_the_gpu = on_the_gpu(test_operators_at_every_pattern)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_gradient_of_a_weighted_sum(name, axis, dtype):
    """Autograd expands the gradient of a sum, so it has the strides (1, 0), (0, 1) or (0, 0)."""
    sizes = (64, 48, 32)
    ours, exact = OPERATORS[name]
    (a, b, *_), _ = operands(name, sizes, "rows", "columns", "rows", dtype)
    grads = []
    for product, kind in ((ours, dtype), (exact, torch.float64)):
        leaves = [x.detach().to(kind).requires_grad_() for x in (a, b)]
        sums = product(*leaves).sum(axis if name in ("matmul", "linear") else -1)
        weights = torch.arange(sums.numel(), device=PLACE).reshape(sums.shape).to(kind) % 5
        (sums * weights).sum().backward()
        grads.append([leaf.grad.double() for leaf in leaves])
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other.to(dtype).double())


test_weighted_sums_on_the_gpu = on_the_gpu(test_the_gradient_of_a_weighted_sum)


def test_a_swapped_layer_has_the_gradients_of_a_weighted_sum():
    torch.manual_seed(0)
    plain = torch.nn.Linear(48, 64).to(PLACE)
    ours = torch.nn.Linear(48, 64).to(PLACE)
    ours.load_state_dict(plain.state_dict())
    assert swap(ours) == 1
    x, weights = torch.randn(64, 48, device=PLACE), torch.randn(64, device=PLACE)
    for layer in (plain, ours):
        (layer(x).sum(1) * weights).sum().backward()
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad, rtol=1e-4, atol=1e-4)
