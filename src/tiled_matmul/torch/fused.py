"""`tiled_matmul::linear`: activation(x · weightᵀ + bias) + residual as one operator.

On a GPU it is one launch of `triton_fused`, or two where K is cut. Its backward formula makes the
products of `tiled_matmul::matmul`. An activation's gradient needs what the activation was given.
The operator keeps only its inputs, so its backward computes that again; `fused_linear` instead
leaves the activation to torch where gradients are recorded, which keeps it, as torch's layers do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import handle_torch_function, has_torch_function

from tiled_matmul.kit.layouts import by_columns
from tiled_matmul.torch.checks import DTYPES, HALVES, check_dense, differentiated_by_torch_func
from tiled_matmul.torch.operator import multiply, product_by

NAME = "tiled_matmul::linear"
# No defaults: an argument that is left out would be missing in the backward formula, too.
SCHEMA = "(Tensor x, Tensor weight, Tensor? bias, str? activation, Tensor? residual) -> Tensor"
aten = torch.ops.aten


def _silu_backward(grad: Tensor, x: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        return aten.silu_backward(grad, x)  # has no gradient
    share = x.sigmoid()
    return grad * share * (1 + x * (1 - share))


# Each activation of `triton_fused`, and the gradient of its input from that of its output.
ACTIVATIONS = {
    "gelu": (functional.gelu, aten.gelu_backward),
    "gelu_tanh": (
        lambda x: functional.gelu(x, approximate="tanh"),
        lambda grad, x: aten.gelu_backward(grad, x, approximate="tanh"),
    ),
    "relu": (functional.relu, lambda grad, x: aten.threshold_backward(grad, x, 0)),
    "silu": (functional.silu, _silu_backward),
}

torch.library.define(NAME, SCHEMA, tags=torch.Tag.pt2_compliant_tag)
layer = torch.ops.tiled_matmul.linear.default


def fused_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    residual: Tensor | None = None,
) -> Tensor:
    """Return activation(x · weightᵀ + bias) + residual, as a new, contiguous (..., N).

    x is (..., K), `weight` (N, K), `bias` (N,) or None, `residual` (..., N) or None; `activation`
    is one of ACTIVATIONS or None. x, weight and bias have one dtype, as in `matmul`; the result has
    that, or the residual's if that is wider. All is computed in float32 (float64 for float64) and
    rounded once, except where gradients are recorded: then the activation's input is kept, rounded.
    Under autocast, all but the residual are cast. Raises TypeError or ValueError, which quote the
    input, before anything is launched.
    """
    named = {"x": x, "weight": weight, "bias": bias, "residual": residual}
    tensors = tuple(named.values())
    if has_torch_function(tensors):  # a subclass of Tensor, or a symbol of `torch.fx`
        given = x, weight, bias, activation, residual
        return handle_torch_function(fused_linear, tensors, *given)
    for name, tensor in named.items():
        if tensor is not None or name in ("x", "weight"):
            check_dense(name, tensor)
    _check_shapes(x, weight, bias, activation, residual)
    if not torch.compiler.is_compiling() and differentiated_by_torch_func():
        return _composed(x, weight, bias, activation, residual)
    if activation is not None and _recorded(x, weight, bias):
        y = ACTIVATIONS[activation][0](layer(x, weight, bias, None, None))
        return y if residual is None else y + residual
    return layer(x, weight, bias, activation, residual)


def _recorded(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _composed(x, weight, bias, activation, residual) -> Tensor:
    """Return the layer from steps of which each has its rules for `torch.func`."""
    if not torch.is_autocast_enabled(x.device.type):
        _check_dtypes(x, weight, bias, residual)
    y = multiply(_rows(x), weight.T).reshape(*x.shape[:-1], weight.shape[0])
    if bias is not None:
        y = y + bias.to(y.dtype)  # another dtype under autocast only
    if activation is not None:
        y = ACTIVATIONS[activation][0](y)
    return y if residual is None else y + residual


def _rows(x: Tensor) -> Tensor:
    return x.flatten(0, -2) if x.dim() > 1 else x[None]


# --- checks ---------------------------------------------------------------------------------------


def _check_shapes(
    x: Tensor, weight: Tensor, bias: Any, activation: str | None, residual: Any
) -> None:
    if weight.dim() != 2:
        raise ValueError(f"weight must be (N, K), got shape {tuple(weight.shape)}")
    n, k = weight.shape
    if x.dim() == 0 or x.shape[-1] != k:
        raise ValueError(f"x must be (..., {k}) for weight {(n, k)}, got shape {tuple(x.shape)}")
    if bias is not None and bias.shape != (n,):
        raise ValueError(f"bias must be ({n},) for weight {(n, k)}, got shape {tuple(bias.shape)}")
    shape = (*x.shape[:-1], n)
    if residual is not None and residual.shape != shape:
        raise ValueError(f"residual must be {shape}, as the result; got {tuple(residual.shape)}")
    if activation is not None and activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ValueError(f"activation must be None or one of {known}; got {activation!r}")
    for name, tensor in (("weight", weight), ("bias", bias), ("residual", residual)):
        if tensor is not None and tensor.device != x.device:
            raise ValueError(
                f"x lies on {x.device} and {name} on {tensor.device}; they must be on one device"
            )


def _check(x: Tensor, weight: Tensor, bias: Any, activation: str | None, residual: Any) -> None:
    _check_shapes(x, weight, bias, activation, residual)
    _check_dtypes(x, weight, bias, residual)


def _check_dtypes(x: Tensor, weight: Tensor, bias: Any, residual: Any) -> None:
    """Check what autocast, if it is on, has cast before."""
    for name, tensor in (("x", x), ("bias", bias)):
        if tensor is not None and tensor.dtype != weight.dtype:
            raise TypeError(
                f"{name} {tuple(tensor.shape)} is {tensor.dtype} and weight {tuple(weight.shape)} "
                f"is {weight.dtype}; they must have one dtype"
            )
    known = DTYPES[x.device.type]
    names = ", ".join(str(dtype).removeprefix("torch.") for dtype in known)
    for name, tensor in (("x", x), ("residual", residual)):
        if tensor is not None and tensor.dtype not in known:
            raise TypeError(
                f"{name} is {tensor.dtype}; on {x.device.type} the operator takes {names}"
            )


def _dtype(x: Tensor, residual: Tensor | None) -> torch.dtype:
    return x.dtype if residual is None else torch.promote_types(x.dtype, residual.dtype)


# --- kernels --------------------------------------------------------------------------------------


def _on_gpu(x, weight, bias, activation, residual) -> Tensor:
    _check(x, weight, bias, activation, residual)
    n = weight.shape[0]
    if x.numel() == 0 or n == 0:
        return _reference(x, weight, bias, activation, residual)
    from tiled_matmul.ladder import triton_fused  # chooses the back end, and needs Triton

    steps = {
        "bias": None if bias is None else bias.detach(),
        "residual": None if residual is None else _rows(residual.detach()),
        "activation": activation,
        "out_dtype": _dtype(x, residual),
    }
    with torch.cuda.device_of(x):  # Triton launches on the current device
        y = triton_fused.matmul(_rows(x.detach()), weight.detach().T, **steps)
    return y.reshape(*x.shape[:-1], n)


def _reference(x, weight, bias, activation, residual) -> Tensor:
    _check(x, weight, bias, activation, residual)
    dtype, exact = _dtype(x, residual), torch.float32 if x.dtype in HALVES else x.dtype
    y = _rows(x).to(exact) @ weight.to(exact).T
    y = y.reshape(*x.shape[:-1], weight.shape[0])
    if bias is not None:
        y = y + bias.to(exact)
    if activation is not None:
        y = ACTIVATIONS[activation][0](y)
    if residual is not None:
        y = y + residual
    return y.to(dtype)


def _fake(x, weight, bias, activation, residual) -> Tensor:
    _check(x, weight, bias, activation, residual)
    return x.new_empty((*x.shape[:-1], weight.shape[0]), dtype=_dtype(x, residual))


torch.library.impl(NAME, "cuda", _on_gpu)
torch.library.impl(NAME, "cpu", _reference)
torch.library.register_fake(NAME, _fake)


# --- gradients, vmap, autocast --------------------------------------------------------------------


def _keep(ctx, inputs: tuple, output: Tensor) -> None:
    x, weight, bias, activation, _ = inputs
    x_wanted, weight_wanted, bias_wanted, *_ = ctx.needs_input_grad
    again = activation is not None and (x_wanted or weight_wanted or bias_wanted)
    kept = x if weight_wanted or again else None, weight if x_wanted or again else None
    ctx.save_for_backward(*kept, bias if again else None)
    ctx.activation, ctx.shape, ctx.dtype = activation, x.shape, x.dtype
    ctx.by_columns = by_columns(weight)


def _backward(ctx, grad: Tensor) -> tuple:
    """Return the gradients of x, weight, bias and residual, each only if it is wanted."""
    x, weight, bias = ctx.saved_tensors
    x_wanted, weight_wanted, bias_wanted, _, residual_wanted = ctx.needs_input_grad
    grad_x = grad_weight = grad_bias = None
    if x_wanted or weight_wanted or bias_wanted:
        g = grad.to(ctx.dtype)
        if ctx.activation is not None:
            g = ACTIVATIONS[ctx.activation][1](g, layer(x, weight, bias, None, None))
        g = _rows(g)
        if x_wanted:
            grad_x = multiply(g, weight).reshape(ctx.shape)
        if weight_wanted:
            grad_weight = product_by(ctx.by_columns, g.T, _rows(x))
        if bias_wanted:
            grad_bias = g.sum(0)
    return grad_x, grad_weight, grad_bias, None, grad if residual_wanted else None


def _batched(info, in_dims: tuple, x, weight, bias, activation, residual) -> tuple[Tensor, int]:
    """Return the layers of a batch and their axis: one layer if all have its parameters."""
    size, given = info.batch_size, (x, weight, bias, residual)
    own = [
        t if t is None else t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip(given, (*in_dims[:3], in_dims[4]), strict=True)
    ]
    if in_dims[1] is None and in_dims[2] is None:
        return layer(own[0], weight, bias, activation, own[3]), 0
    if size == 0:
        return x.new_empty((0, *own[0].shape[1:-1], own[1].shape[1])), 0
    each = [[None] * size if t is None else t.unbind() for t in own]
    return torch.stack([layer(*t[:3], activation, t[3]) for t in zip(*each, strict=True)]), 0


torch.library.register_autograd(NAME, _backward, setup_context=_keep)
torch.library.register_vmap(NAME, _batched)


def _autocast(x, weight, bias, activation, residual) -> Tensor:
    """Return the layer under autocast, whose dtype x, weight and bias get, except for float64."""
    device = x.device.type
    dtype = torch.get_autocast_dtype(device)
    x, weight, bias = (
        t if t is None or t.dtype not in DTYPES["cuda"] else t.to(dtype) for t in (x, weight, bias)
    )
    with torch.autocast(device, enabled=False):
        return layer(x, weight, bias, activation, residual)


for key in ("AutocastCUDA", "AutocastCPU"):
    torch.library.impl(NAME, key, _autocast)
