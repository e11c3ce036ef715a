"""Checks of a launcher's operands, with errors that quote the offending values."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOATS = ("float32", "float64")


def numpy_operands(a: Any, b: Any, out: Any, dtypes: tuple = FLOATS) -> tuple[int, int, int, Any]:
    """Return (M, N, K, out) for a CPU rung; `out` is allocated, uninitialised, if it is None.

    The operands must be numpy arrays a (M, K), b (K, N) and out (M, N): row-major, not empty, all
    of the same dtype from `dtypes`. `out` must be writable and overlap neither input. Raises
    TypeError or ValueError otherwise.
    """
    for name, array in (("a", a), ("b", b), ("out", out)):
        if not isinstance(array, np.ndarray) and not (name == "out" and array is None):
            raise TypeError(f"{name} must be a numpy array, got {type(array).__name__}")
    m, n, k = _sizes(a, b, dtypes)
    for name, array in (("a", a), ("b", b)):
        _check_layout(name, array, array.flags.c_contiguous, array.strides)
    if out is None:
        return m, n, k, np.empty((m, n), a.dtype)
    _check_out(out, (m, n), a.dtype)
    _check_layout("out", out, out.flags.c_contiguous, out.strides)
    if not out.flags.writeable:
        raise ValueError("out is read-only; it must be writable")
    if np.may_share_memory(out, a) or np.may_share_memory(out, b):
        raise ValueError("out shares memory with an input; pass a separate array")
    return m, n, k, out


def tensor_operands(
    a: Any,
    b: Any,
    out: Any,
    dtypes: tuple = FLOATS,
    *,
    column_major: bool = False,
    strided: bool = False,
    out_dtype: Any = None,
    out_dtypes: tuple = (),
    mixed: bool = False,
) -> tuple[int, int, int, Any]:
    """Return (M, N, K, out) for a GPU rung; `out` is allocated, uninitialised, if it is None.

    The operands must be torch tensors a (M, K), b (K, N) and out (M, N): row-major, not empty, all
    of the same dtype from `dtypes`, without gradients, on the back end's device (cuda; cpu in the
    simulators). `out` must overlap neither input. With `column_major`, a and b may also be
    transposes of row-major tensors. With `strided`, all three may be any views, but no two elements
    of out may share an address. With `out_dtype`, a torch dtype that `out_dtypes` names, or else
    `dtypes`, out has that one. With `mixed`, a and b may be of two of `dtypes`. Raises TypeError or
    ValueError otherwise.
    """
    import torch

    from tiled_matmul.kit.backend import select

    device = "cuda" if select().on_gpu else "cpu"
    for name, tensor in (("a", a), ("b", b), ("out", out)):
        if name == "out" and tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
        if tensor.device.type != device:
            raise ValueError(f"{name} lies on {tensor.device}, this back end needs it on {device}")
        if tensor.requires_grad:
            raise ValueError(f"{name} requires grad, and kernels have no gradient: {name}.detach()")
    if a.device != b.device:
        raise ValueError(f"a lies on {a.device} and b on {b.device}")
    m, n, k = _sizes(a, b, dtypes, mixed)
    for name, tensor in (("a", a), ("b", b)):
        transposed = column_major and tensor.T.is_contiguous()
        contiguous = strided or transposed or tensor.is_contiguous()
        _check_layout(name, tensor, contiguous, tensor.stride(), column_major)
    known = out_dtypes or dtypes
    if out_dtype is not None and (
        not isinstance(out_dtype, torch.dtype) or _name_of(out_dtype) not in known
    ):
        raise TypeError(f"out_dtype must be None or one of {', '.join(known)}; got {out_dtype!r}")
    wanted = a.dtype if out_dtype is None else out_dtype
    if out is None:
        return m, n, k, a.new_empty((m, n), dtype=wanted)
    _check_out(out, (m, n), wanted, "the inputs are" if out_dtype is None else "out_dtype is")
    if out.device != a.device:
        raise ValueError(f"a lies on {a.device} and out on {out.device}")
    if not strided:
        _check_layout("out", out, out.is_contiguous(), out.stride())
    elif _folded(out):
        raise ValueError(
            f"out has elements that are one in memory: shape {tuple(out.shape)} with strides "
            f"{tuple(out.stride())}; each element needs its own address"
        )
    if _overlap(out, a) or _overlap(out, b):
        raise ValueError("out shares memory with an input; pass a separate tensor")
    return m, n, k, out


def beside(name: str, tensor: Any, shape: tuple[int, ...], out: Any, dtypes: tuple) -> None:
    """Check a tensor that an epilogue reads beside out, of any strides; None is left out.

    It has a dtype from `dtypes` and no gradient, lies on out's device and shares no memory with it.
    Raises TypeError or ValueError otherwise.
    """
    import torch

    if tensor is None:
        return
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch tensor or None, got {type(tensor).__name__}")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")
    if _name(tensor) not in dtypes:
        raise TypeError(f"{name} has dtype {_name(tensor)}; this rung takes {', '.join(dtypes)}")
    if tensor.device != out.device:
        raise ValueError(f"{name} lies on {tensor.device} and out on {out.device}")
    if tensor.requires_grad:
        raise ValueError(f"{name} requires grad, and kernels have no gradient: {name}.detach()")
    if _overlap(out, tensor):
        raise ValueError(f"out shares memory with {name}; pass a separate tensor")


def positive(name: str, value: Any, limit: int | None = None) -> int:
    """Return value if it is an int from 1 to `limit`; otherwise raise TypeError or ValueError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < 1 or (limit is not None and value > limit):
        upper = "" if limit is None else f" and at most {limit}"
        raise ValueError(f"{name} must be at least 1{upper}, got {value}")
    return value


def check_pad(pad: Any, tile: int) -> int:
    """Return `pad` if it is an int from 0 to `tile`; otherwise raise TypeError or ValueError."""
    return pad if pad == 0 and type(pad) is int else positive("pad", pad, tile)


def _sizes(a: Any, b: Any, dtypes: tuple, mixed: bool = False) -> tuple[int, int, int]:
    for name, array in (("a", a), ("b", b)):
        if len(array.shape) != 2 or 0 in tuple(array.shape):
            raise ValueError(f"{name} must be 2-D and not empty, got shape {tuple(array.shape)}")
        dtype = _name(array)
        if dtype not in dtypes:
            raise TypeError(f"{name} has dtype {dtype}; this rung takes {', '.join(dtypes)}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a {tuple(a.shape)} has {a.shape[1]} columns, b {tuple(b.shape)} has {b.shape[0]} "
            "rows; they must be equal"
        )
    if a.dtype != b.dtype and not mixed:
        raise TypeError(f"a is {_name(a)} and b is {_name(b)}; they must have one dtype")
    return int(a.shape[0]), int(b.shape[1]), int(a.shape[1])


def _check_out(
    out: Any, shape: tuple[int, int], dtype: Any, wanted: str = "the inputs are"
) -> None:
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}, the product has {shape}")
    if out.dtype != dtype:
        raise TypeError(f"out is {_name(out)}, {wanted} {_name_of(dtype)}")


def _check_layout(
    name: str, array: Any, contiguous: bool, strides: tuple, column_major: bool = False
) -> None:
    if not contiguous:
        major = "row-major or column-major" if column_major else "row-major"
        raise ValueError(
            f"{name} must be {major} and contiguous, got shape {tuple(array.shape)} with "
            f"strides {tuple(strides)}; copy it first"
        )


def _folded(x: Any) -> bool:
    """Return whether elements may share an address: the longer stride must clear the shorter."""
    (long, _), (short, count) = sorted(zip(x.stride(), x.shape, strict=True), reverse=True)
    return (count > 1 and short < 1) or (x.numel() > count and long < short * (count - 1) + 1)


def _overlap(x: Any, y: Any) -> bool:
    """Return whether the address ranges of two matrices, first to last element, overlap."""
    ends = [z.data_ptr() + span_bytes(z) for z in (x, y)]
    return max(x.data_ptr(), y.data_ptr()) < min(ends)


def span_bytes(x: Any) -> int:
    """Return the bytes from a tensor's first to its last element, both included."""
    last = sum(stride * (size - 1) for stride, size in zip(x.stride(), x.shape, strict=True))
    return (last + 1) * x.element_size()


def _name(array: Any) -> str:
    return _name_of(array.dtype)


def _name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
