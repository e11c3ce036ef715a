"""Fixes for Triton's interpreter: what the compiler does otherwise, a newer numpy, slow types.

The interpreter stores bfloat16 as 16 bits, and up to Triton 3.9 it adds, compares and multiplies
those bits as integers; a cast from float32 truncates, where a GPU rounds to nearest. It stores
float8 as 8 bits: casts to it lose carries and do not saturate; read as wider numbers, NaN of e4m3
becomes 480, and e5m2's least numbers are halved or lost. The compiler has no arithmetic for it.
A float argument stays Python's, so that a float16 tile times it is float16, where a launch passes a
float32; True is passed as 32 bits. `maximum` and `minimum` keep NaN, which GPUs drop unless told.
`fma` rounds twice. Floats beyond an integer's range give what this machine gives. A tile of several
elements counts as true in a condition, and `device_assert` is ignored.

Triton 3.6 converts a 1-D array with one element to an int, which numpy 2.4 refuses. A constant to
the left of a tensor wraps the result, which then has no `.to` and, from 3.9 on, is no coordinate.
And the interpreter works out the shape of every tensor anew, which was a quarter of the time: here
once for each type.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tiled_matmul.microscope.triton.narrow import (
    FLOAT8,
    float8,
    float16,
    integers,
    narrowed,
    widened,
)

OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "gt", "ge", "eq", "ne"),
    *("and", "or", "xor", "lshift", "rshift"),
)


def apply_fixes() -> None:
    """Fix the interpreter of this process, once, for every kernel that it runs afterwards."""
    import triton.language as tl
    from triton._C.libtriton.ir import PROPAGATE_NAN, ROUNDING_MODE
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    if getattr(InterpreterBuilder, "fixed", False):
        return
    builder, float8s = InterpreterBuilder, (tl.float8e4nv, tl.float8e5)
    dot, cast, convert = builder.create_dot, builder.cast_impl, builder.create_fp_to_fp
    binary, unary, to_argument = builder.binary_op, builder.unary_op, interpreter._implicit_cvt

    def wide(handle: Any) -> Any:
        kind = handle.dtype.scalar
        if kind == tl.bfloat16:
            return TensorHandle(widened(handle.data), tl.float32)
        if kind in float8s:
            return TensorHandle(FLOAT8[kind.name][handle.data], tl.float32)
        return handle

    def rounded(values: np.ndarray, kind: Any, to_zero: bool = False) -> Any:
        """Return floats as a handle of a kind."""
        kind = kind.scalar
        if kind == tl.bfloat16:
            return TensorHandle(narrowed(values, to_zero), kind)
        if kind == tl.float16:
            return TensorHandle(float16(values, to_zero), kind)
        return TensorHandle(values.astype(interpreter._get_np_dtype(kind)), kind)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any, **named: Any) -> Any:
        return dot(self, wide(a), wide(b), *rest, **named)

    def cast_impl(self: Any, handle: Any, kind: Any) -> Any:
        values, to = wide(handle).data, interpreter._get_np_dtype(kind)
        if values.dtype.kind != "f" and kind.scalar != tl.bfloat16:
            return cast(self, wide(handle), kind)
        if kind.scalar.is_floating():
            exact = values if values.dtype.kind == "f" else values.astype(np.float64)
            return rounded(exact, kind)
        if to.kind in "iu":
            return TensorHandle(integers(values, to), kind.scalar)
        return cast(self, wide(handle), kind)

    def create_fp_to_fp(self: Any, handle: Any, kind: Any, rounding: Any) -> Any:
        to_zero, scalar = rounding == ROUNDING_MODE.RTZ, kind.scalar
        values = wide(handle).data
        if scalar in float8s:
            of = handle.dtype.scalar
            if to_zero and scalar == tl.float8e4nv:
                raise TypeError(f"a cast to {scalar.name} towards zero does not compile")
            if of == tl.float64:
                raise TypeError(f"{of} to {scalar.name} does not compile: cast to float32 first")
            return TensorHandle(float8(values, scalar.name, to_zero), scalar)
        if to_zero and handle.dtype.scalar == tl.float64:
            raise TypeError(f"a cast of fp64 to {scalar.name} towards zero does not compile")
        if scalar.primitive_bitwidth < 16:
            return convert(self, handle, kind, rounding)
        return rounded(values, kind, to_zero)

    def binary_op(self: Any, a: Any, b: Any, op: Callable) -> Any:
        kinds = a.dtype.scalar, b.dtype.scalar
        for kind in kinds:
            if kind in float8s:
                raise TypeError(
                    f"arithmetic on {kind.name} does not compile: cast to float16 or float32 first"
                )
        if tl.bfloat16 not in kinds:
            return binary(self, a, b, op)
        made = op(wide(a).data, wide(b).data)
        # Sums, products and quotients of float32 are so exact that they may be rounded once more.
        return rounded(made, kinds[0]) if made.dtype.kind == "f" else TensorHandle(made, tl.int1)

    def unary_op(self: Any, x: Any, op: Callable) -> Any:
        if x.dtype.scalar == tl.bfloat16:
            return rounded(op(wide(x).data), tl.bfloat16)
        return unary(self, x, op)

    def create_clampf(self: Any, x: Any, low: Any, high: Any, nan: Any) -> Any:
        values, lowest, highest = (wide(each).data for each in (x, low, high))
        made = np.fmin(np.fmax(values, lowest), highest)
        if nan == PROPAGATE_NAN.ALL:
            made = np.minimum(np.maximum(values, lowest), highest)
        return rounded(made, x.dtype)

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if z.dtype.scalar.is_int():
            return TensorHandle(x.data * y.data + z.data, z.dtype.scalar)
        x, y, z_wide = (wide(each).data.astype(np.float64) for each in (x, y, z))
        return rounded(x * y + z_wide, z.dtype)

    def in_float32(apply: Callable) -> Callable:
        """Return a reduction's or a scan's `apply_impl`, which adds up bfloat16 as float32."""

        def tensor(handle: Any, kind: Any) -> Any:
            scalar = handle.dtype
            block = tl.block_type(scalar, list(kind.shape)) if kind.is_block() else scalar
            return tl.tensor(handle, block)

        def apply_impl(self: Any, inputs: tuple) -> Any:
            if all(x.dtype != tl.bfloat16 for x in inputs):
                return apply(self, inputs)
            made = apply(self, tuple(tensor(wide(x.handle), x.type) for x in inputs))
            several = isinstance(made, list | tuple)
            results = [
                tensor(rounded(x.handle.data, tl.bfloat16), x.type) if x.dtype == tl.float32 else x
                for x in (made if several else [made])
            ]
            return results if several else results[0]

        return apply_impl

    def implicit_cvt(argument: Any) -> Any:
        """Return an argument as a launch passes it: a float is a float32, a bool one bit."""
        if isinstance(argument, bool):
            return tl.tensor(TensorHandle(np.array([argument]), tl.int1), tl.int1)
        if isinstance(argument, float):
            return tl.tensor(TensorHandle(np.array([argument], np.float32), tl.float32), tl.float32)
        return to_argument(argument)

    def truth(self: Any) -> bool:
        size = self.handle.data.size
        if size == 1:
            return bool(self.handle.data.item())
        if sys._getframe(1).f_globals.get("__name__", "").startswith("triton."):
            return True  # Triton's own code asks whether there is one
        raise TypeError(
            f"a tile of {size} elements is no condition: the compiler takes scalars. Use a mask, "
            "or tl.where"
        )

    def device_assert(condition: Any, message: str, mask: Any = None) -> None:
        """Raise AssertionError where the condition does not hold, but for Triton's own checks."""
        if " overflow detected " in message:
            return
        wrong = ~condition.handle.data.astype(bool)
        if mask is not None:
            wrong = wrong & mask.handle.data.astype(bool)
        if wrong.any():
            raise AssertionError(message or "a device_assert that does not hold")

    def patch_tensor(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
        scope.set_attr(tensor, "__bool__", truth)

    patch, interpreter._patch_lang_tensor = interpreter._patch_lang_tensor, patch_tensor
    interpreter._implicit_cvt = implicit_cvt
    interpreter.interpreter_semantic.device_assert = device_assert
    fixed = create_dot, cast_impl, create_fp_to_fp, binary_op, unary_op, create_clampf, create_fma
    for own in fixed:
        setattr(builder, own.__name__, own)
    for kind in (interpreter.ReduceOps, interpreter.ScanOps):
        kind.apply_impl = in_float32(kind.apply_impl)
    builder.create_maxnumf = lambda self, a, b: self.binary_op(a, b, np.fmax)
    builder.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)
    builder.get_bf16 = lambda self, x: rounded(np.array([x], np.float64), tl.bfloat16)
    transformer = interpreter.ASTTransformer
    transformer.visit_Assign = whole_assignment(transformer.visit_Assign)
    transformer.visit_BoolOp, transformer.visit_UnaryOp = for_tiles, not_for_tiles
    core = tl.core
    for name in OPERATORS:
        own = getattr(core.constexpr, f"__{name}__")
        setattr(core.constexpr, f"__{name}__", left_to_tensors(own, core.tensor))
    core.block_type.__init__ = once_a_shape(core.block_type.__init__, core.constexpr)
    core.tensor.__init__ = once_a_type(core.tensor.__init__, core.block_type)
    interpreter._get_np_dtype = once_a_name(interpreter._get_np_dtype)
    InterpreterBuilder.fixed = True


def whole_assignment(visit: Callable) -> Callable:
    """Return `visit_Assign(self, node)`, which visits the assigned value, too."""

    def visit_assign(self: ast.NodeTransformer, node: ast.Assign) -> ast.AST:
        node.value = self.visit(node.value)
        return visit(self, node)

    return visit_assign


def for_tiles(transformer: ast.NodeTransformer, node: ast.BoolOp) -> ast.AST:
    """Return `a and b` as the compiler has it, which joins tiles element by element."""
    transformer.generic_visit(node)
    name = "both" if isinstance(node.op, ast.And) else "either"
    joined = node.values[-1]
    for value in reversed(node.values[:-1]):
        nothing = ast.arguments([], [], None, [], [], None, [])
        joined = _called(name, node, value, ast.Lambda(nothing, joined))
    return joined


def not_for_tiles(transformer: ast.NodeTransformer, node: ast.UnaryOp) -> ast.AST:
    """Return `not a` as the compiler has it."""
    transformer.generic_visit(node)
    return _called("opposite", node, node.operand) if isinstance(node.op, ast.Not) else node


def _called(name: str, place: ast.expr, *arguments: ast.expr) -> ast.expr:
    """Return a call of a function in here from a kernel's code, which has names of its own."""
    call = ast.parse(f"__import__({__name__!r}, fromlist=['_']).{name}()", mode="eval").body
    for part in ast.walk(call):
        ast.copy_location(part, place)
    call.args = [ast.copy_location(argument, place) for argument in arguments]
    return call


def both(one: Any, other: Callable) -> Any:
    """Return `one and other()`."""
    if not hasattr(one, "logical_and"):
        return one and other()
    second = other()
    return one.logical_and(second) if hasattr(second, "logical_and") else one and second


def either(one: Any, other: Callable) -> Any:
    """Return `one or other()`."""
    if not hasattr(one, "logical_or"):
        return one or other()
    second = other()
    return one.logical_or(second) if hasattr(second, "logical_or") else one or second


def opposite(one: Any) -> Any:
    """Return `not one`."""
    return one.__not__() if hasattr(one, "__not__") else not one


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
