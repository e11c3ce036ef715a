"""What `matmul` and `bmm` register besides their kernels: gradients, vmap and autocast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from tiled_matmul.torch.checks import cast_all, differentiated_by_torch_func


def registered(
    name: str, check_shapes: Callable, keep: Callable, backward: Callable, batched: Callable
) -> Callable[[Tensor, Tensor], Tensor]:
    """Register the rules of an operator of a and b, and return the function that calls it.

    `keep` and `backward` are as in `torch.library.register_autograd`. The rule for vmap is
    `batched(times, info, in_dims, a, b)`, where `times` multiplies as the operator does.
    `check_shapes` raises for a and b that do not fit. What is returned is for tensors that are
    known to be dense.
    """
    product = getattr(torch.ops.tiled_matmul, name.partition("::")[2]).default

    class Differentiated(torch.autograd.Function):
        """For `torch.func` and forward-mode derivatives, which `register_autograd` lacks.

        The tangent of an operator without a rule would silently be zero.
        """

        @staticmethod
        def forward(a: Tensor, b: Tensor) -> Tensor:
            return product(a, b)

        @staticmethod
        def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
            keep(ctx, inputs, output)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def vmap(info, in_dims: tuple, a: Tensor, b: Tensor) -> tuple[Tensor, int]:
            return batched(multiply, info, in_dims, a, b)

        @staticmethod
        def jvp(ctx, a_tangent: Tensor, b_tangent: Tensor) -> Tensor:
            a, b = ctx.saved_tensors
            return multiply(a_tangent, b) + multiply(a, b_tangent)

    Differentiated.backward = staticmethod(backward)

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or not differentiated_by_torch_func():
            return product(a, b)
        if a.device.type != "meta" and torch.is_autocast_enabled(a.device.type):
            a, b = cast(a, b)  # here, so that `keep` keeps what is multiplied
        return Differentiated.apply(a, b)

    def cast(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        check_shapes(a, b)
        return cast_all(a, b)

    def under_autocast(a: Tensor, b: Tensor) -> Tensor:
        """Return the product under autocast. `register_autocast` would cast to one fixed dtype."""
        a, b = cast(a, b)
        with torch.autocast(a.device.type, enabled=False):
            return product(a, b)

    torch.library.register_autograd(name, backward, setup_context=keep)
    torch.library.register_vmap(name, partial(batched, product))
    for key in ("AutocastCUDA", "AutocastCPU"):
        torch.library.impl(name, key, under_autocast)
    return multiply
