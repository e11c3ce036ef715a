"""Float8: numbers with scales, and the checks of a launcher that multiplies them.

e4m3 (`torch.float8_e4m3fn`) has 4 bits of mantissa with the hidden one, numbers up to 448, NaN and
no infinity; e5m2 has 3 bits, numbers up to 57344, infinities and NaN. Both span few powers of two.
So a matrix is divided by scales, in float32, before it is rounded, and the product is multiplied by
them afterwards.
"""

from __future__ import annotations

from typing import Any

import torch
from triton import cdiv

from tiled_matmul.kit import arguments
from tiled_matmul.kit.backend import select

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
WIDE = (torch.bfloat16, torch.float16, torch.float32)
BLOCK = 128  # of K that has a scale of its own, and of rows or columns
# Rows and columns that share a scale; 0 stands for all of them.
KINDS = {"tensor": (0, 0), "row": (1, 0), "1x128": (1, BLOCK), "128x128": (BLOCK, BLOCK)}
LEAST = torch.finfo(torch.float32).tiny


def quantised(x: Any, kind: str, dtype: Any = torch.float8_e4m3fn) -> tuple[Any, Any]:
    """Return (values, scales) of a matrix x (rows, columns): values · scales is about x.

    Values are float8 of shape (rows, columns), row-major. Scales are float32, one for each block of
    a kind: "tensor" (1, 1), "row" (rows, 1), "1x128" (rows, ⌈columns/128⌉), which lies by columns,
    or "128x128" (⌈rows/128⌉, ⌈columns/128⌉). A scale is the largest size in its block over the
    largest float8, so nothing overflows, and at least 2⁻¹²⁶, so that zeros stay zeros. Values are
    clamped before they are rounded: torch rounds what is too large to NaN, or saturates, depending
    on its version. A block that holds NaN or an infinity becomes NaN as a whole. For b (K, N),
    whose columns are to have scales, take those of its transpose: (values.T, scales.T).

    Raises TypeError or ValueError for x that is no float matrix, and for an unknown kind or dtype.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch tensor, got {type(x).__name__}")
    if x.ndim != 2 or x.numel() == 0:
        raise ValueError(f"x must be 2-D and not empty, got shape {tuple(x.shape)}")
    if x.dtype not in WIDE:
        raise TypeError(f"x must be one of {_names(WIDE)}, got {_names([x.dtype])}")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if dtype not in FLOAT8:
        raise TypeError(f"dtype must be one of {_names(FLOAT8)}, got {dtype!r}")
    rows, columns = x.shape
    high, wide = (count or size for count, size in zip(KINDS[kind], x.shape, strict=True))
    padded = torch.nn.functional.pad(x.detach().float(), (0, -columns % wide, 0, -rows % high))
    blocks = padded.unflatten(1, (-1, wide)).unflatten(0, (-1, high))
    largest = torch.finfo(dtype).max
    scales = (blocks.abs().amax((1, 3)) / largest).clamp(min=LEAST)
    values = (blocks / scales[:, None, :, None]).clamp(-largest, largest).to(dtype)
    values = values.flatten(2, 3).flatten(0, 1)[:rows, :columns].contiguous()
    return values, scales.T.contiguous().T if kind == "1x128" else scales


def dequantised(values: Any, scales: Any) -> Any:
    """Return values · scales in float64, a matrix (rows, columns).

    Scales have one row, one for each row of values or for each 128 of them, and so for columns.
    """
    wide = scales.double()
    for axis, size in enumerate(values.shape):
        if wide.shape[axis] not in (1, size):
            wide = wide.repeat_interleave(BLOCK, axis).narrow(axis, 0, size)
    return values.double() * wide


def float8_operands(
    a: Any, b: Any, scale_a: Any, scale_b: Any, out: Any, out_dtype: Any
) -> tuple[int, int, int, Any]:
    """Return (M, N, K, out) for a (M, K) · b (K, N) with scales; out is made if it is None.

    a and b are each of FLOAT8, out and `out_dtype` (None: that of out, or bfloat16) of WIDE. Scales
    are float32, see `steps_of`. All are on the back end's device, of any strides, without
    gradients; out shares no memory with the others. Raises TypeError or ValueError otherwise.
    """
    device = "cuda" if select().on_gpu else "cpu"
    named = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "out": out}
    if out is None:
        del named["out"]
    for name, tensor in named.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
        if tensor.device.type != device:
            raise ValueError(f"{name} lies on {tensor.device}, this back end needs it on {device}")
        if tensor.device != a.device:
            raise ValueError(f"a lies on {a.device} and {name} on {tensor.device}")
        if tensor.requires_grad:
            raise ValueError(f"{name} requires grad, and kernels have no gradient: {name}.detach()")
        kinds = FLOAT8 if name in "ab" else WIDE if name == "out" else (torch.float32,)
        if tensor.dtype not in kinds:
            raise TypeError(f"{name} must be {_names(kinds)}, got {_names([tensor.dtype])}")
    for name, tensor in (("a", a), ("b", b)):
        if tensor.ndim != 2 or tensor.numel() == 0:
            raise ValueError(f"{name} must be 2-D and not empty, got shape {tuple(tensor.shape)}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a {tuple(a.shape)} has {a.shape[1]} columns, b {tuple(b.shape)} has {b.shape[0]} "
            "rows; they must be equal"
        )
    (m, k), n = a.shape, b.shape[1]
    if out_dtype is not None and out_dtype not in WIDE:
        raise TypeError(f"out_dtype must be {_names(WIDE)} or None, got {out_dtype!r}")
    if out is None:
        return m, n, k, a.new_empty((m, n), dtype=out_dtype or torch.bfloat16)
    if tuple(out.shape) != (m, n):
        raise ValueError(f"out has shape {tuple(out.shape)}, the product has {(m, n)}")
    if out_dtype not in (None, out.dtype):
        raise TypeError(f"out is {_names([out.dtype])}, out_dtype is {_names([out_dtype])}")
    arguments.check_folds(out)
    for name, tensor in named.items():
        if name != "out" and arguments.overlap(out, tensor):
            raise ValueError(f"out shares memory with {name}; pass a separate tensor")
    return m, n, k, out


def steps_of(name: str, scales: Any, rows: int, k: int) -> tuple[tuple[int, int], bool, bool]:
    """Return ((row stride, K stride), by blocks, square) of the scales (rows, K) of a, or of bᵀ.

    Shapes are those of `quantised`; a scale for all may also be 0-d or (1,). A stride is 0 where
    one scale is for all. `by blocks`: they differ along K. `square`: 128 rows share one. Raises
    ValueError for another shape.
    """
    blocks = cdiv(k, BLOCK)
    if scales.numel() == 1:
        return (0, 0), False, False
    shape = tuple(scales.shape)
    if shape == (rows, 1):
        return (scales.stride(0), 0), False, False
    if shape in ((rows, blocks), (cdiv(rows, BLOCK), blocks)):
        return scales.stride(), True, shape[0] != rows
    known = [(1, 1), (rows, 1), (rows, blocks), (cdiv(rows, BLOCK), blocks)]
    if name == "scale_b":
        shape, known = shape[::-1], [each[::-1] for each in known]
    wanted = ", ".join(map(str, dict.fromkeys(known)))
    raise ValueError(f"{name} must have one of the shapes {wanted}, got {shape}")


def by_k(matrix: Any) -> Any:
    """Return a (rows, K) matrix as tensor cores take float8, K side by side in aligned rows.

    If it is not so, that is a copy.
    """
    from tiled_matmul.kit.programs import aligned_copy, describable

    return matrix if describable(matrix) else aligned_copy(matrix)


def _names(dtypes: Any) -> str:
    return " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
