"""`tiled_matmul::matmul`: a (M, K) · b (K, N) as an operator that all of PyTorch can call.

An operator is a name, a schema, and functions that PyTorch chooses from: a kernel for each device,
a fake kernel that only works out shapes, a backward formula, a rule for vmap, a rule for autocast.
`torch.compile` sees the operator as one node and calls its kernel. `torch.library.triton_op` would
trace the launcher instead, which picks a kernel by sizes and addresses and so cannot be traced.
`torch.library.custom_op` is made of the functions below, but looks for aliases in every call, which
takes time on the host.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from tiled_matmul.kit.layouts import by_columns
from tiled_matmul.torch import batched
from tiled_matmul.torch.checks import HALVES, check_dense, check_dims, check_dtypes
from tiled_matmul.torch.rules import registered

NAME = "tiled_matmul::matmul"

torch.library.define(NAME, "(Tensor a, Tensor b) -> Tensor", tags=torch.Tag.pt2_compliant_tag)
product = torch.ops.tiled_matmul.matmul.default


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return a (M, K) · b (K, N) as a new, contiguous (M, N), on their device and of their dtype.

    Both are dense, of any strides and of one dtype: float16, bfloat16 or float32 on a GPU, float64
    too on the CPU. Products are summed in float32 (float64 for float64) and rounded once. Empty
    sizes are allowed; K = 0 gives zeros. Under autocast, inputs are cast as those of `torch.mm`.
    Gradients of any order, `torch.func`, `torch.compile` and `torch.export` work, except that
    `torch.compile` refuses a `torch.func.grad`. Raises TypeError or ValueError, which quote the
    input, before anything is launched.
    """
    if has_torch_function((a, b)):  # a subclass of Tensor, or a symbol of `torch.fx`
        return handle_torch_function(matmul, (a, b), a, b)
    for name, tensor in (("a", a), ("b", b)):
        check_dense(name, tensor)
    return multiply(a, b)


def tuning(file: str | os.PathLike | None = None) -> AbstractContextManager[None]:
    """Let a clock choose the kernel at the first `matmul` of each kind in here.

        with tuning("my_model.json"):
            train_one_step()

    Each kind takes some seconds, as candidates are compiled. What is chosen holds for the rest of
    the process, and `file` keeps it for the next. Gradients are tuned too; `linear` goes by the
    rule. Raises ValueError for a file of other content, before anything runs.
    """
    from tiled_matmul.dispatch import tuned  # chooses the back end, and needs Triton

    return tuned.tuning(file)


def _check_shapes(a: Tensor, b: Tensor) -> None:
    check_dims(a, b, 2)
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a {tuple(a.shape)} has {a.shape[1]} columns, b {tuple(b.shape)} has {b.shape[0]} "
            "rows; they must be equal"
        )


def _check(a: Tensor, b: Tensor) -> None:
    _check_shapes(a, b)
    check_dtypes(a, b)


def _on_gpu(a: Tensor, b: Tensor) -> Tensor:
    _check(a, b)
    if 0 in a.shape or 0 in b.shape:
        return a.new_zeros((a.shape[0], b.shape[1]))
    from tiled_matmul.ladder import triton_best  # chooses the back end, and needs Triton

    with torch.cuda.device_of(a):  # Triton launches on the current device
        return triton_best.matmul(a.detach(), b.detach())


def _on_cpu(a: Tensor, b: Tensor) -> Tensor:
    _check(a, b)
    if a.dtype in HALVES:
        return (a.float() @ b.float()).to(a.dtype)
    return a @ b


def _fake(a: Tensor, b: Tensor) -> Tensor:
    _check(a, b)
    return a.new_empty((a.shape[0], b.shape[1]))


torch.library.impl(NAME, "cuda", _on_gpu)
torch.library.impl(NAME, "cpu", _on_cpu)
torch.library.register_fake(NAME, _fake)


# --- gradients and vmap ---------------------------------------------------------------------------


def _keep(ctx, inputs: tuple, output: Tensor) -> None:
    a, b = inputs
    a_wanted, b_wanted = ctx.needs_input_grad[:2]
    ctx.save_for_backward(a if b_wanted else None, b if a_wanted else None)
    ctx.by_columns = by_columns(a), by_columns(b)


def _backward(ctx, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return (grad·bᵀ, aᵀ·grad), each only if it is wanted.

    The operator makes both, from transposed views, so they have gradients of their own.
    """
    a, b = ctx.saved_tensors
    a_by_columns, b_by_columns = ctx.by_columns
    a_wanted, b_wanted = ctx.needs_input_grad
    grad_a = product_by(a_by_columns, grad, b.T) if a_wanted else None
    grad_b = product_by(b_by_columns, a.T, grad) if b_wanted else None
    return grad_a, grad_b


def product_by(columns: bool, a: Tensor, b: Tensor) -> Tensor:
    """Return a · b, which lies in memory column by column or row by row.

    A gradient lies as its input does: otherwise autograd copies that of every weight.
    """
    return multiply(b.T, a.T).T if columns else multiply(a, b)


def _batched(times: Callable, info, in_dims: tuple, a: Tensor, b: Tensor) -> tuple[Tensor, int]:
    """Return (products, their axis): one product if only a or b has a batch, else many in one."""
    a_axis, b_axis = in_dims
    if b_axis is None:  # the matrices below each other
        a = a.movedim(a_axis, 0)
        return times(a.flatten(0, 1), b).unflatten(0, a.shape[:2]), 0
    if a_axis is None:  # the matrices side by side
        b = b.movedim(b_axis, 1)
        return times(a, b.flatten(1)).unflatten(1, b.shape[1:]), 1
    many = batched.product if times is product else batched.multiply
    return many(a.movedim(a_axis, 0), b.movedim(b_axis, 0)), 0


multiply = registered(NAME, _check_shapes, _keep, _backward, _batched)
