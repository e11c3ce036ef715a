"""Layers of PyTorch whose matrix products go through the course's operator."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from tiled_matmul.torch.operator import check_dense, matmul


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x (..., K) · weightᵀ + bias as (..., N), as `torch.nn.functional.linear` does.

    `weight` is (N, K), `bias` (N,) or None. Dtypes, devices, gradients and autocast are those of
    `matmul`. The product is rounded to its dtype before the bias is added. Raises TypeError or
    ValueError for other shapes, and as `matmul` does.
    """
    for name, tensor in (("x", x), ("weight", weight), ("bias", bias)):
        if tensor is not None or name != "bias":
            check_dense(name, tensor)
    if weight.dim() != 2:
        raise ValueError(f"weight must be (N, K), got shape {tuple(weight.shape)}")
    n, k = weight.shape
    if x.dim() == 0 or x.shape[-1] != k:
        raise ValueError(f"x must be (..., {k}) for weight {(n, k)}, got shape {tuple(x.shape)}")
    if bias is not None and (bias.shape != (n,) or bias.dtype != weight.dtype):
        raise ValueError(
            f"bias must be ({n},) and {weight.dtype}, as weight is; "
            f"got shape {tuple(bias.shape)} and {bias.dtype}"
        )
    rows = x.flatten(0, -2) if x.dim() > 1 else x[None]
    y = matmul(rows, weight.T)
    if bias is not None:
        y = y + bias.to(y.dtype)  # another dtype under autocast only
    return y.reshape(*x.shape[:-1], n)


class Linear(nn.Linear):
    """`nn.Linear` on the course's kernels: same arguments, parameters and `state_dict`."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `linear` of x (..., in_features) as (..., out_features)."""
        return linear(x, self.weight, self.bias)


def swap(module: nn.Module) -> int:
    """Make every `nn.Linear` in a model, itself included, a `Linear`; return how many there were.

    The modules stay the same objects, with their parameters, hooks and names. Subclasses of
    `nn.Linear` have a forward of their own and are left alone. So are modules that read a Linear's
    weight without calling it: `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` in evaluation.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be an nn.Module, got {type(module).__name__}")
    plain = [each for each in module.modules() if type(each) is nn.Linear]
    for each in plain:
        each.__class__ = Linear  # adds nothing to nn.Linear but another forward
    return len(plain)


class MLP(nn.Module):
    """Linear, GELU, Linear: x (..., width) to (..., hidden) and back.

    `hidden` is 4 · width if it is None. `options` are bias, device and dtype of `nn.Linear`.
    """

    def __init__(self, width: int, hidden: int | None = None, **options: Any) -> None:
        super().__init__()
        hidden = 4 * width if hidden is None else hidden
        self.up = Linear(width, hidden, **options)
        self.down = Linear(hidden, width, **options)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block of x (..., width), of the same shape."""
        return self.down(functional.gelu(self.up(x)))


class TransformerBlock(nn.Module):
    """Attention and an MLP, each on normalised input and added to it: x (batch, tokens, width).

    Its four Linear layers run on the course's kernels; the attention between them is torch's. Each
    token sees those before it, or all of them if `causal` is False. `options` are device and dtype.
    Raises ValueError if the width is no multiple of `heads`.
    """

    def __init__(self, width: int, heads: int, *, causal: bool = True, **options: Any) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads, got {width} and {heads}")
        self.heads, self.causal = heads, causal
        self.norm_attention = nn.LayerNorm(width, **options)
        self.queries_keys_values = Linear(width, 3 * width, **options)
        self.attended = Linear(width, width, **options)
        self.norm_mlp = nn.LayerNorm(width, **options)
        self.mlp = MLP(width, **options)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block of x (batch, tokens, width), of the same shape."""
        x = x + self.attended(self._attention(self.norm_attention(x)))
        return x + self.mlp(self.norm_mlp(x))

    def _attention(self, x: Tensor) -> Tensor:
        by_head = self.queries_keys_values(x).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = by_head.transpose(1, 3).unbind(2)  # (batch, heads, tokens, each)
        mixed = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=self.causal
        )
        return mixed.transpose(1, 2).flatten(2)
