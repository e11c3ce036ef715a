"""Float8: numbers with scales, and the checks of a launcher that multiplies them.

e4m3 (`torch.float8_e4m3fn`) has 4 bits of mantissa, the hidden one included, numbers up to 448, NaN
and no infinity; e5m2 has 3 bits, numbers up to 57344, infinities and NaN. So a matrix is divided by
scales, in float32, before it is rounded, and the product is multiplied by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from triton import cdiv

from tiled_matmul.kit.arguments import beside, tensor_operands
from tiled_matmul.kit.layouts import describable
from tiled_matmul.kit.programs import aligned_copy

DTYPES = ("float8_e4m3fn", "float8_e5m2")
OUT_DTYPES = ("bfloat16", "float16", "float32")
SHARED = 128  # of K, or of rows, that a scale is for
# Rows and columns for one scale; 0 is all of them.
KINDS = {"tensor": (0, 0), "row": (1, 0), "1x128": (1, SHARED), "128x128": (SHARED, SHARED)}
LEAST = torch.finfo(torch.float32).tiny


def quantised(x: Any, kind: str, dtype: Any = torch.float8_e4m3fn) -> tuple[Any, Any]:
    """Return (values, scales) of a matrix x (rows, columns): values · scales is about x.

    Values are float8 of x's shape, row-major. Scales are float32, one for each block of a kind:
    "tensor" (1, 1), "row" (rows, 1), "1x128" (rows, ⌈columns/128⌉), which lies column by column, or
    "128x128" (⌈rows/128⌉, ⌈columns/128⌉). A scale is the largest size in its block over the largest
    float8, so nothing overflows, and at least 2⁻¹²⁶, so zeros stay zeros. Values are clamped before
    they are rounded, because torch up to 2.11 rounds what is too large to NaN, and 2.13 saturates.
    A block with NaN or an infinity becomes NaN. For b (K, N), whose columns are to have scales,
    take those of its transpose: (values.T, scales.T).

    Raises TypeError or ValueError for x that is no float matrix, and for an unknown kind or dtype.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch tensor, got {type(x).__name__}")
    if x.ndim != 2 or x.numel() == 0:
        raise ValueError(f"x must be 2-D and not empty, got shape {tuple(x.shape)}")
    if _name(x.dtype) not in OUT_DTYPES:
        raise TypeError(f"x has dtype {_name(x.dtype)}; it must be one of {', '.join(OUT_DTYPES)}")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if _name(dtype) not in DTYPES:
        raise TypeError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    rows, columns = x.shape
    high, wide = (size or whole for size, whole in zip(KINDS[kind], x.shape, strict=True))
    padded = torch.nn.functional.pad(x.detach().float(), (0, -columns % wide, 0, -rows % high))
    blocks = padded.unflatten(1, (-1, wide)).unflatten(0, (-1, high))
    most = torch.finfo(dtype).max
    scales = (blocks.abs().amax((1, 3)) / most).clamp(min=LEAST)
    values = (blocks / scales[:, None, :, None]).clamp(-most, most).to(dtype)
    values = values.flatten(2, 3).flatten(0, 1)[:rows, :columns].contiguous()
    return values, scales.T.contiguous().T if kind == "1x128" else scales


def dequantised(values: Any, scales: Any) -> Any:
    """Return values · scales as float64, for scales of any shape that `Scales.of` takes."""
    wide = scales.double().reshape(1, 1) if scales.numel() == 1 else scales.double()
    for axis, size in enumerate(values.shape):
        if wide.shape[axis] not in (1, size):
            wide = wide.repeat_interleave(SHARED, axis).narrow(axis, 0, size)
    return values.double() * wide


@dataclass(frozen=True)
class Scales:
    """How to find the scales of a's rows, or of b's columns, which here are rows as well.

    The scale of a row at k is `row` · row + `block` · (k // 128) elements behind the first; with
    `square`, row // 128 takes the place of row. A step of 0 means that there is one for all.
    """

    row: int
    block: int
    square: bool = False

    @property
    def by_blocks(self) -> bool:
        """Do they differ along K?"""
        return self.block != 0

    @classmethod
    def of(cls, name: str, scales: Any, rows: int, k: int, out: Any) -> Scales:
        """Check `scale_a` or `scale_b`, which is float32, and say how it is read.

        Raises TypeError or ValueError as `beside`, and for a shape that fits no kind.
        """
        if not isinstance(scales, torch.Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(scales).__name__}")
        beside(name, scales, tuple(scales.shape), out, ("float32",))
        if scales.numel() == 1:
            return cls(0, 0)
        blocks, squares = cdiv(k, SHARED), cdiv(rows, SHARED)
        known = [(1, 1), (rows, 1), (rows, blocks), (squares, blocks)]
        turned = name == "scale_b"
        shape, strides = tuple(scales.shape), scales.stride()
        if turned:
            shape, strides = shape[::-1], strides[::-1]
        if shape not in known:
            named = dict.fromkeys(each[::-1] if turned else each for each in known)
            raise ValueError(
                f"{name} must have one of the shapes {', '.join(map(str, named))}, "
                f"got {tuple(scales.shape)}"
            )
        row, block = (step if size > 1 else 0 for size, step in zip(shape, strides, strict=True))
        return cls(row, block, shape[0] != rows)


def float8_operands(a: Any, b: Any, out: Any, out_dtype: Any) -> tuple[int, int, int, Any]:
    """Return (M, N, K, out) as `tensor_operands` does, for a and b that are each of DTYPES.

    out is made of `out_dtype`, one of OUT_DTYPES, or of bfloat16 if that is None. Raises as it.
    """
    if out_dtype is None:
        out_dtype = out.dtype if isinstance(out, torch.Tensor) else torch.bfloat16
    kinds = {"out_dtype": out_dtype, "out_dtypes": OUT_DTYPES, "mixed": True}
    return tensor_operands(a, b, out, DTYPES, strided=True, **kinds)


def by_k(matrix: Any) -> Any:
    """Return a (rows, K) matrix as tensor cores take float8: K side by side, in aligned rows.

    It is copied unless it lies so.
    """
    return matrix if describable(matrix) else aligned_copy(matrix)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
