"""Fixes for Triton's interpreter: bfloat16, and Triton 3.6 with a newer numpy.

The interpreter stores bfloat16 as 16 bits. Up to Triton 3.8, `tl.dot` multiplies those bits as
integers, and a cast from float32 truncates, where a GPU rounds to nearest. Triton 3.6 converts a
1-D array with one element to an int, which numpy 2.4 refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def apply_fixes() -> None:
    """Fix the interpreter of this process, once, for every kernel that it runs afterwards."""
    import triton.language as tl
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    if getattr(InterpreterBuilder, "fixed", False):
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
    InterpreterBuilder.fixed = True


def widened(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 numbers, given as their bits (uint16), as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return the bits of the bfloat16 nearest to each float32, with ties to even."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, nearest).astype(np.uint16)
