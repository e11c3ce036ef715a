"""Checks of a launcher's operands, with errors that quote the offending values."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tiled_matmul.kit.layouts import overlap, shares_elements

FLOATS = ("float32", "float64")


class _Trusted(threading.local):
    """Has this thread's caller of a launcher checked the operands?"""

    operands = False


_trusted = _Trusted()


@contextmanager
def checked() -> Iterator[None]:
    """Let launchers in here take a, b and out as they are, for they were checked.

    A launcher that hands its operands on to another checks them by `tensor_operands`, with all that
    the other asks for, and then calls the other in here. This thread alone trusts.
    """
    before, _trusted.operands = _trusted.operands, True
    try:
        yield
    finally:
        _trusted.operands = before


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
    for name, array in (("a", a), ("b", b)):
        if np.may_share_memory(out, array):
            raise ValueError(_shared(name, out, array, out.strides, array.strides))
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
    ValueError otherwise. Inside `checked` it looks at nothing but the sizes.
    """
    if _trusted.operands and out is not None:
        return int(a.shape[0]), int(b.shape[1]), int(a.shape[1]), out
    import torch

    _check_tensors(a=a, b=b, out=out)
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
    if strided:
        _check_own_elements(out)
    _check_apart(out, a=a, b=b)
    return m, n, k, out


def beside(name: str, tensor: Any, shape: tuple[int, ...], out: Any, dtypes: tuple) -> None:
    """Check a tensor that an epilogue reads beside out, of any strides; None is left out.

    It has a dtype from `dtypes`, no gradient and its own signs, lies on out's device and shares no
    memory with it. Raises TypeError or ValueError otherwise.
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
    _check_apart(out, **{name: tensor})


def batched_operands(a: Any, b: Any, out: Any, dtypes: tuple) -> tuple[int, int, int, int, Any]:
    """Return (batch, M, N, K, out) for a rung; `out` is allocated, uninitialised, if it is None.

    The operands must be torch tensors a (batch, M, K), b (batch, K, N) and out (batch, M, N) of any
    strides, not empty; else as `tensor_operands` wants them. Raises TypeError or ValueError
    otherwise.
    """
    _check_tensors(a=a, b=b, out=out)
    for name, tensor in (("a", a), ("b", b)):
        _check_dims(name, tensor, 3)
        _check_filled(name, tensor)
    if a.shape[0] != b.shape[0]:
        raise ValueError(
            f"a {tuple(a.shape)} has {a.shape[0]} matrices, b {tuple(b.shape)} has {b.shape[0]}; "
            "they must be equal"
        )
    _check_one_dtype(a, b, dtypes)
    if a.shape[2] != b.shape[1]:
        raise ValueError(
            f"the matrices of a {tuple(a.shape)} have {a.shape[2]} columns, those of b "
            f"{tuple(b.shape)} have {b.shape[1]} rows; they must be equal"
        )
    (batch, m, k), n = a.shape, b.shape[2]
    if out is None:
        return batch, m, n, k, a.new_empty((batch, m, n))
    _check_out(out, (batch, m, n), a.dtype)
    _check_own_elements(out)
    _check_apart(out, a=a, b=b)
    return batch, m, n, k, out


def grouped_operands(
    a: Any, b: Any, offsets: Any, out: Any, dtypes: tuple
) -> tuple[int, int, int, int, Any]:
    """Return (groups, M, N, K, out) for rows in groups, or for a sum in groups if b is 2-D.

    a is (M, K), b (groups, K, N) and out (M, N): the rows of group g end at offsets[g]. With b
    (K, N), out is (groups, M, N): the columns of a and rows of b of group g end there. `offsets` is
    an int32 tensor (groups,), dense, on the device of a and b; its numbers are not looked at. The
    rows, or the sum, may be empty, other sizes not. `out` is allocated, uninitialised, if it is
    None. Strides and the rest are as in `batched_operands`. Raises TypeError or ValueError
    otherwise.
    """
    import torch

    _check_tensors(a=a, b=b, offsets=offsets, out=out)
    _check_dims("a", a, 2)
    rows = b.ndim == 3
    if b.ndim not in (2, 3):
        raise ValueError(f"b must be 3-D, or 2-D for a sum in groups, got shape {tuple(b.shape)}")
    _check_dims("offsets", offsets, 1)
    if offsets.dtype != torch.int32:
        raise TypeError(f"offsets has dtype {_name(offsets)}, it must be int32")
    if offsets.device != a.device:
        raise ValueError(f"offsets lies on {offsets.device} and a on {a.device}")
    if not offsets.is_contiguous():
        raise ValueError(f"offsets must be contiguous, got the stride {offsets.stride(0)}")
    groups = offsets.shape[0]
    if rows and b.shape[0] != groups:
        raise ValueError(
            f"b {tuple(b.shape)} has {b.shape[0]} matrices, offsets has {groups} groups; they must "
            "be equal"
        )
    if groups == 0:
        raise ValueError(f"there is no group: offsets has the shape {tuple(offsets.shape)}")
    _check_one_dtype(a, b, dtypes)
    (m, k), n = a.shape, b.shape[-1]
    if k != b.shape[-2]:
        of_each = "each matrix of b" if rows else "b"
        raise ValueError(
            f"a {tuple(a.shape)} has {k} columns, {of_each} {tuple(b.shape)} has {b.shape[-2]} "
            "rows; they must be equal"
        )
    if n == 0 or (k if rows else m) == 0:
        raise ValueError(
            f"only {'rows of a' if rows else 'the sum'} may be empty, got a {tuple(a.shape)} and "
            f"b {tuple(b.shape)}"
        )
    shape = (m, n) if rows else (groups, m, n)
    if out is None:
        return groups, m, n, k, a.new_empty(shape)
    _check_out(out, shape, a.dtype)
    _check_own_elements(out)
    _check_apart(out, a=a, b=b, offsets=offsets)
    return groups, m, n, k, out


def check_offsets(offsets: Any, size: int) -> None:
    """Raise ValueError unless the offsets rise, from 0 on and up to `size` at most.

    Waits for the GPU.
    """
    begin = 0
    for group, end in enumerate(offsets.tolist()):
        if not begin <= end <= size:
            raise ValueError(
                f"offsets must rise from 0 to {size} at most: group {group} begins at {begin} and "
                f"ends at {end}"
            )
        begin = end


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


def _check_tensors(**tensors: Any) -> None:
    """Check that these are torch tensors without gradients where the back end needs them.

    `out` may be None.
    """
    import torch

    from tiled_matmul.kit.backend import select

    device = "cuda" if select().on_gpu else "cpu"
    for name, tensor in tensors.items():
        if name == "out" and tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
        if tensor.device.type != device:
            raise ValueError(f"{name} lies on {tensor.device}, this back end needs it on {device}")
        if tensor.requires_grad:
            raise ValueError(f"{name} requires grad, and kernels have no gradient: {name}.detach()")
        if tensor.is_neg():
            raise ValueError(f"{name} is to be negated when it is read: {name}.resolve_neg()")
    a, b = tensors["a"], tensors["b"]
    if a.device != b.device:
        raise ValueError(f"a lies on {a.device} and b on {b.device}")


def _check_dims(name: str, tensor: Any, dims: int) -> None:
    if tensor.ndim != dims:
        raise ValueError(f"{name} must be {dims}-D, got shape {tuple(tensor.shape)}")


def _check_filled(name: str, tensor: Any) -> None:
    if 0 in tensor.shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(tensor.shape)}")


def _check_own_elements(out: Any) -> None:
    """Check that no two elements of out share an address."""
    if shares_elements(out):
        raise ValueError(
            f"out has elements that are one in memory: shape {tuple(out.shape)} with strides "
            f"{tuple(out.stride())}; each element needs its own address"
        )


def _check_apart(out: Any, **inputs: Any) -> None:
    """Check that the addresses from out's first to its last element are none of an input's."""
    for name, tensor in inputs.items():
        if overlap(out, tensor):
            raise ValueError(_shared(name, out, tensor, out.stride(), tensor.stride()))


def _shared(name: str, out: Any, other: Any, out_strides: tuple, strides: tuple) -> str:
    return (
        f"out {tuple(out.shape)} with strides {tuple(out_strides)} shares memory with {name} "
        f"{tuple(other.shape)} with strides {tuple(strides)}; pass a separate one"
    )


def _check_one_dtype(a: Any, b: Any, dtypes: tuple) -> None:
    for name, array in (("a", a), ("b", b)):
        dtype = _name(array)
        if dtype not in dtypes:
            raise TypeError(f"{name} has dtype {dtype}; this rung takes {', '.join(dtypes)}")
    if a.dtype != b.dtype:
        raise TypeError(f"a is {_name(a)} and b is {_name(b)}; they must have one dtype")


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


def _check_out(out: Any, shape: tuple, dtype: Any, wanted: str = "the inputs are") -> None:
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


def _name(array: Any) -> str:
    return _name_of(array.dtype)


def _name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
