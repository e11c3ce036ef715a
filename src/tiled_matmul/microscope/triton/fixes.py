"""Fixes for Triton's interpreter: narrow floats, Triton 3.6 with a newer numpy, and its slow types.

The interpreter stores bfloat16 as 16 bits. Up to Triton 3.8, `tl.dot` multiplies those bits as
integers, and a cast from float32 truncates, where a GPU rounds to nearest. It stores float8 as 8
bits; read as wider numbers, NaN of e4m3 becomes 480, and e5m2's least numbers are halved or lost.
Triton 3.6 converts a 1-D array with one element to an int, which numpy 2.4 refuses. A constant to
the left of a tensor wraps the result, which then has no `.to` and, from 3.9 on, is no coordinate.
And the interpreter works out the shape of every tensor anew, which was a quarter of the time: here
once for each type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"),
    *("and", "or", "xor", "lshift", "rshift"),
)


def apply_fixes() -> None:
    """Fix the interpreter of this process, once, for every kernel that it runs afterwards."""
    import triton.language as tl
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    if getattr(InterpreterBuilder, "fixed", False):
        return
    dot, cast = InterpreterBuilder.create_dot, InterpreterBuilder.cast_impl
    convert = InterpreterBuilder.create_fp_to_fp

    def wide(handle: Any) -> Any:
        kind = handle.dtype.scalar
        if kind == tl.bfloat16:
            return TensorHandle(widened(handle.data), tl.float32)
        if kind in (tl.float8e4nv, tl.float8e5):
            return TensorHandle(FLOAT8[kind.name][handle.data], tl.float32)
        return handle

    def create_dot(self: Any, a: Any, b: Any, *rest: Any, **named: Any) -> Any:
        return dot(self, wide(a), wide(b), *rest, **named)

    def cast_impl(self: Any, handle: Any, kind: Any) -> Any:
        if kind.scalar == tl.bfloat16:
            values = wide(handle).data.astype(np.float32)
            return TensorHandle(narrowed(values), tl.bfloat16)
        return cast(self, wide(handle), kind)

    def create_fp_to_fp(self: Any, handle: Any, kind: Any, rounding: Any) -> Any:
        values = wide(handle)
        narrow = kind.scalar.primitive_bitwidth < 16
        return convert(self, handle, kind, rounding) if narrow else cast_impl(self, values, kind)

    def patch_tensor(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    patch, interpreter._patch_lang_tensor = interpreter._patch_lang_tensor, patch_tensor
    InterpreterBuilder.create_dot = create_dot
    InterpreterBuilder.cast_impl = cast_impl
    InterpreterBuilder.create_fp_to_fp = create_fp_to_fp
    core = tl.core
    for name in OPERATORS:
        own = getattr(core.constexpr, f"__{name}__")
        setattr(core.constexpr, f"__{name}__", left_to_tensors(own, core.tensor))
    core.block_type.__init__ = once_a_shape(core.block_type.__init__, core.constexpr)
    core.tensor.__init__ = once_a_type(core.tensor.__init__, core.block_type)
    interpreter._get_np_dtype = once_a_name(interpreter._get_np_dtype)
    InterpreterBuilder.fixed = True


def left_to_tensors(operator: Callable, tensor: type) -> Callable:
    """Return a constant's operator, such as `constexpr.__add__`, which tensors do themselves."""

    def operated(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, tensor) else operator(self, other)

    return operated


def once_a_shape(init: Callable, constexpr: type) -> Callable:
    """Return `block_type.__init__(self, element_ty, shape)`, which checks a good shape once."""
    known: dict[tuple, dict[str, Any]] = {}

    def __init__(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = [size.value if isinstance(size, constexpr) else size for size in shape]
        # 1.0 and True equal 1, and are no sizes.
        if not all(type(size) is int for size in sizes) or isinstance(element_ty, constexpr):
            init(self, element_ty, shape)
            return
        key = (element_ty.name, *sizes)
        if key not in known:
            init(self, element_ty, shape)
            known[key] = {name: x for name, x in vars(self).items() if name != "element_ty"}
        vars(self).update(known[key])
        self.element_ty = element_ty

    return __init__


def once_a_type(init: Callable, block_type: type) -> Callable:
    """Return `tensor.__init__(self, handle, type)`, which takes the shape of a type from before."""
    known: dict[str, dict[str, Any]] = {}
    own = {"handle", "type", "dtype"}

    def __init__(self: Any, handle: Any, type: Any) -> None:
        if not isinstance(type, block_type):
            init(self, handle, type)
            return
        if type.name not in known:
            init(self, handle, type)
            known[type.name] = {name: x for name, x in vars(self).items() if name not in own}
        vars(self).update(known[type.name])
        self.handle, self.type, self.dtype = handle, type, type.scalar

    return __init__


def once_a_name(np_dtype: Callable) -> Callable:
    """Return `_get_np_dtype(kind)`, which builds its table once for each name of a type."""
    known: dict[str, np.dtype] = {}

    def get(kind: Any) -> np.dtype:
        if kind.name not in known:
            known[kind.name] = np_dtype(kind)
        return known[kind.name]

    return get


def float8_values() -> dict[str, np.ndarray]:
    """Return the float32 that each of the 256 bytes means, for both kinds of float8 by name."""
    byte = np.arange(256)
    e5m2 = (byte.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    exponent, mantissa = byte >> 3 & 15, byte & 7
    size = np.where(exponent, np.ldexp(8.0 + mantissa, exponent - 10), np.ldexp(1.0 * mantissa, -9))
    size = np.where(byte % 128 == 127, np.nan, size)  # it has no infinity
    return {"fp8e5": e5m2, "fp8e4nv": np.where(byte < 128, size, -size).astype(np.float32)}


FLOAT8 = float8_values()


def widened(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 numbers, given as their bits (uint16), as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return the bits of the bfloat16 nearest to each float32, with ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, nearest).astype(np.uint16)
