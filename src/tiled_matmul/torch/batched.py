"""`tiled_matmul::bmm`: a (batch, M, K) · b (batch, K, N) as an operator, as `operator` has one.

On a GPU one launch of `triton_batched` makes all products. vmap of a single product comes here if
both inputs have a batch.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from tiled_matmul.torch.checks import HALVES, check_dense, check_dims, check_dtypes
from tiled_matmul.torch.rules import registered

NAME = "tiled_matmul::bmm"

torch.library.define(NAME, "(Tensor a, Tensor b) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
product = torch.ops.tiled_matmul.bmm.default


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Return a (batch, M, K) · b (batch, K, N) as a new, contiguous (batch, M, N).

    Dtypes, sums, empty sizes, autocast, gradients, `torch.func` and `torch.compile` are as in
    `matmul`. Raises TypeError or ValueError, which quote the input, before anything is launched.
    """
    if has_torch_function((a, b)):  # a subclass of Tensor, or a symbol of `torch.fx`
        return handle_torch_function(bmm, (a, b), a, b)
    for name, tensor in (("a", a), ("b", b)):
        check_dense(name, tensor)
    return multiply(a, b)


def _check_shapes(a: Tensor, b: Tensor) -> None:
    check_dims(a, b, 3)
    if a.shape[0] != b.shape[0]:
        raise ValueError(
            f"a {tuple(a.shape)} has {a.shape[0]} matrices, b {tuple(b.shape)} has {b.shape[0]}; "
            "they must be equal"
        )
    if a.shape[2] != b.shape[1]:
        raise ValueError(
            f"the matrices of a {tuple(a.shape)} have {a.shape[2]} columns, those of b "
            f"{tuple(b.shape)} have {b.shape[1]} rows; they must be equal"
        )


def _check(a: Tensor, b: Tensor) -> None:
    _check_shapes(a, b)
    check_dtypes(a, b)


def _empty(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]))


def _on_gpu(a: Tensor, b: Tensor) -> Tensor:
    _check(a, b)
    if 0 in a.shape or 0 in b.shape:
        return _empty(a, b).zero_()
    from tiled_matmul.ladder import triton_batched  # chooses the back end, and needs Triton

    with torch.cuda.device_of(a):  # Triton launches on the current device
        return triton_batched.matmul(a.detach(), b.detach())


def _on_cpu(a: Tensor, b: Tensor) -> Tensor:
    _check(a, b)
    if a.dtype in HALVES:
        return (a.float() @ b.float()).to(a.dtype)
    return (a @ b).contiguous()


def _fake(a: Tensor, b: Tensor) -> Tensor:
    _check(a, b)
    return _empty(a, b)


torch.library.impl(NAME, "cuda", _on_gpu)
torch.library.impl(NAME, "cpu", _on_cpu)
torch.library.register_fake(NAME, _fake)


def _keep(ctx, inputs: tuple, output: Tensor) -> None:
    a, b = inputs
    a_wanted, b_wanted = ctx.needs_input_grad[:2]
    ctx.save_for_backward(a if b_wanted else None, b if a_wanted else None)


def _backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return (grad·bᵀ, aᵀ·grad), each only if it is wanted; they have gradients of their own."""
    a, b = ctx.saved_tensors
    a_wanted, b_wanted = ctx.needs_input_grad
    grad_a = multiply(grad, b.mT) if a_wanted else None
    grad_b = multiply(a.mT, grad) if b_wanted else None
    return grad_a, grad_b


def _batched(times: Callable, info, in_dims: tuple, a: Tensor, b: Tensor) -> tuple[Tensor, int]:
    """Return (products, their axis) for a batch of batches."""
    a_axis, b_axis = in_dims
    if b_axis is None:  # the matrices that share one of b below each other
        a = a.movedim(a_axis, 1)
        return times(a.flatten(1, 2), b).unflatten(1, a.shape[1:3]), 1
    if a_axis is None:  # those that share one of a side by side
        b = b.movedim(b_axis, 2)
        return times(a, b.flatten(2)).unflatten(2, b.shape[2:]), 2
    a, b = a.movedim(a_axis, 0), b.movedim(b_axis, 0)
    return times(a.flatten(0, 1), b.flatten(0, 1)).unflatten(0, a.shape[:2]), 0


multiply = registered(NAME, _check_shapes, _keep, _backward, _batched)
