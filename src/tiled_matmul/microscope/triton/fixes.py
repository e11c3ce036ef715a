"""Triton's interpreter, mended where it is wrong: bfloat16, and Triton 3.6 with a newer numpy.

It keeps bfloat16 as the 16 bits that they are. Up to Triton 3.8 `tl.dot` multiplies those bits as
if they were whole numbers, and a cast from float32 cuts bits off where a GPU rounds to the nearest.
Triton 3.6 makes an int of an array with one element and an axis, which numpy 2.4 refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def mend() -> None:
    """Mend the interpreter of this process, once, for every kernel that it runs from here on."""
    import triton.language as tl
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    if getattr(InterpreterBuilder, "mended", False):
        return
    dot, cast = InterpreterBuilder.create_dot, InterpreterBuilder.cast_impl

    def wide(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return TensorHandle(widened(handle.data), tl.float32)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any, **named: Any) -> Any:
        return dot(self, wide(a), wide(b), *rest, **named)

    def cast_impl(self: Any, handle: Any, kind: Any) -> Any:
        if kind.scalar == tl.bfloat16:
            values = wide(handle).data.astype(np.float32)
            return TensorHandle(narrowed(values), tl.bfloat16)
        return cast(self, wide(handle), kind)

    def patch_tensor(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    patch, interpreter._patch_lang_tensor = interpreter._patch_lang_tensor, patch_tensor
    InterpreterBuilder.create_dot = create_dot
    InterpreterBuilder.cast_impl = cast_impl
    InterpreterBuilder.mended = True


def widened(bits: np.ndarray) -> np.ndarray:
    """Return the float32 numbers that bfloat16's bits (uint16) stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return the bits of the bfloat16 nearest to each float32, of two equally near the even one."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, nearest).astype(np.uint16)
