"""Layers of PyTorch whose matrix products go through the course's operator."""

# Annotations are types here, not text, as `torch.fx` writes them into the models that it traces.
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrize import is_parametrized

from tiled_matmul.torch.fused import ACTIVATIONS, fused_linear


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    residual: Tensor | None = None,
) -> Tensor:
    """Return activation(x (..., K) · weightᵀ + bias) + residual as (..., N).

    With three arguments it is `torch.nn.functional.linear`. On a GPU all steps are one kernel; see
    `fused_linear` for dtypes, rounding and errors.
    """
    return fused_linear(x, weight, bias, activation, residual)


class Linear(nn.Linear):
    """`nn.Linear` on the course's kernels: same arguments, parameters and `state_dict`."""

    def forward(
        self, x: Tensor, activation: str | None = None, residual: Tensor | None = None
    ) -> Tensor:
        """Return `linear` of x (..., in_features) as (..., out_features)."""
        return linear(x, self.weight, self.bias, activation, residual)


def through(
    layer: nn.Module, x: Tensor, activation: str | None = None, residual: Tensor | None = None
) -> Tensor:
    """Return activation(layer(x)) + residual, in one kernel if the layer is a Linear."""
    if isinstance(layer, Linear):
        return layer(x, activation, residual)
    y = layer(x)
    if activation is not None:
        y = ACTIVATIONS[activation][0](y)
    return y if residual is None else y + residual


def swap(module: nn.Module) -> int:
    """Make every `nn.Linear` in a model, itself included, a `Linear`; return how many there were.

    The modules stay the same objects, with their parameters, parametrisations, hooks and names. A
    `nn.LazyLinear` becomes a `Linear` when its first input comes. Other subclasses of `nn.Linear`
    have a forward of their own and are left alone. So are modules that read a Linear's weight
    without calling it: `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` in evaluation. Tools
    that look for the exact class `nn.Linear`, as `torch.ao.quantization` does, no longer find it:
    use them before. Raises TypeError if `module` is none.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be an nn.Module, got {type(module).__name__}")
    swapped = 0
    for each in module.modules():
        kind = type(each)
        if kind is nn.Linear:
            each.__class__ = Linear  # adds nothing to nn.Linear but another forward
        elif is_parametrized(each) and kind.__bases__ == (nn.Linear,):
            # torch made this class, for this module and its copies; its properties need no other.
            own = {x: y for x, y in vars(kind).items() if x not in ("__dict__", "__weakref__")}
            each.__class__ = type(kind.__name__, (Linear,), own)
        elif kind is nn.LazyLinear and each.cls_to_become is nn.Linear:
            each.cls_to_become = Linear
        else:
            continue
        swapped += 1
    return swapped


class MLP(nn.Module):
    """Linear, GELU, Linear: x (..., width) to (..., hidden) and back.

    `hidden` is 4 · width if it is None. `options` are bias, device and dtype of `nn.Linear`.
    """

    def __init__(self, width: int, hidden: int | None = None, **options: Any) -> None:
        super().__init__()
        hidden = 4 * width if hidden is None else hidden
        self.up = Linear(width, hidden, **options)
        self.down = Linear(hidden, width, **options)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Return the block of x (..., width), of the same shape, plus the residual."""
        return through(self.down, through(self.up, x, "gelu"), residual=residual)


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
        mixed = self._attention(self.norm_attention(x))
        x = through(self.attended, mixed, residual=x)
        return self.mlp(self.norm_mlp(x), residual=x)

    def _attention(self, x: Tensor) -> Tensor:
        by_head = self.queries_keys_values(x).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = by_head.transpose(1, 3).unbind(2)  # (batch, heads, tokens, each)
        mixed = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=self.causal
        )
        return mixed.transpose(1, 2).flatten(2)
