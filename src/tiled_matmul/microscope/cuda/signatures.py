"""Signatures in `cuda.jit`: a kernel that has some is compiled for these types alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda.errors import TypingError


def parsed(given: Any) -> list[tuple]:
    """Return the types of the arguments of each signature: one, or a list of them.

    A signature is text such as "void(float32[:, :], int32)", Numba's own, or a tuple of types.
    Raises TypeError for anything else.
    """
    found = []
    for signature in given if isinstance(given, list) else [given]:
        if isinstance(signature, str):
            signature = _evaluated(signature)
        arguments = getattr(signature, "args", signature)
        if not isinstance(arguments, tuple):
            raise TypeError(
                "cuda.jit takes a function, a signature such as 'void(float32[:, :])', or a list "
                f"of signatures, got {signature!r}"
            )
        found.append(arguments)
    return found


def _evaluated(text: str) -> Any:
    """Return what the text of a signature means. Numba evaluates it; here only types are read."""
    from numba import types

    def value(node: ast.AST) -> Any:
        match node:
            case ast.Name(name) if _is_type(found := getattr(types, name, None)):
                return found
            case ast.Constant(constant):
                return constant
            case ast.Tuple(parts):
                return tuple(map(value, parts))
            case ast.Slice(low, high, step):
                return slice(*(part and value(part) for part in (low, high, step)))
            case ast.Subscript(array, index):
                return value(array)[value(index)]
            case ast.Call(function, arguments, []):
                return value(function)(*map(value, arguments))
        raise TypeError(f"it has {ast.unparse(node)}")

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except Exception as error:
        raise TypeError(f"{text!r} is no signature of Numba's: {error}") from None


def _is_type(found: Any) -> bool:
    from numba import types

    return isinstance(found, types.Type) or (
        isinstance(found, type) and issubclass(found, types.Type)
    )


def converted(name: str, signatures: Sequence[tuple], arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments as the first signature that fits them has them: numbers are converted.

    Raises TypingError if none fits.
    """
    for wanted in signatures:
        if len(wanted) == len(arguments) and all(map(_fits, wanted, arguments)):
            return [_as(kind, value) for kind, value in zip(wanted, arguments, strict=True)]
    known = " or ".join(f"({', '.join(map(str, wanted))})" for wanted in signatures)
    came = ", ".join(map(_described, arguments))
    raise TypingError(f"{name} is compiled for {known}, got ({came})")


def _fits(kind: Any, value: Any) -> bool:
    dtype = getattr(kind, "dtype", None)
    if not hasattr(kind, "layout"):
        return not hasattr(value, "shape") or value.shape == ()
    value = getattr(value, "value", value)  # in cuda.In and the like
    if not hasattr(value, "shape") or (len(value.shape), _dtype(value)) != (kind.ndim, str(dtype)):
        return False
    return kind.layout == "A" or kind.layout in _layouts(value)


def _dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _layouts(array: Any) -> str:
    """Return in which of Numba's layouts an array lies: "C", "F", both or none."""
    shape, strides = tuple(array.shape), array.strides if hasattr(array, "strides") else None
    if strides is None:
        strides = tuple(step * array.element_size() for step in array.stride())
    size = np.dtype(_dtype(array)).itemsize
    found = ""
    for layout, order in (("C", reversed(range(len(shape)))), ("F", range(len(shape)))):
        step, dense = size, True
        for axis in order:
            dense &= shape[axis] == 1 or strides[axis] == step
            step *= shape[axis]
        found += layout * (dense or 0 in shape)
    return found


def _described(value: Any) -> str:
    value = getattr(value, "value", value)
    if not getattr(value, "shape", ()):
        return type(value).__name__
    layout = (_layouts(value) or "A")[0]
    return f"array({_dtype(value)}, {len(value.shape)}d, {layout})"


def _as(kind: Any, value: Any) -> Any:
    """Return a number in the type of a signature, and anything else as it is."""
    if hasattr(kind, "layout") or not hasattr(kind, "bitwidth"):
        return bool(value) if str(kind) == "bool" else value
    return np.dtype(str(kind)).type(value)
