"""Numba's scalar types, for kernels that run as Python.

Numba has its own promotion rules: integers compute in 64 bits, unsigned if all operands are
unsigned; float32 with an integer of 32 bits or more gives float64. numpy's scalars follow the same
rules for float32, float64 and int64, so those are used directly. `Int32` is a marked int64, because
Numba computes with an int32 in 64 bits. All other integers, and bool, are `Typed`. Plain Python
ints stand for int64 where `rewrite` can prove that they stay small, as for indices and loop
counters.
Source: Numba enhancement proposal 1, "Changes in integer typing"; the tests compare with njit.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda.errors import TypingError

f16, f32, f64 = np.float16, np.float32, np.float64
i64 = np.int64
LOW, HIGH = -(1 << 63), (1 << 63) - 1
ONES = (1 << 64) - 1
DTYPES = tuple(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
)
BOOL, INT32, INT64, UINT64 = (np.dtype(name) for name in ("bool", "int32", "int64", "uint64"))


class Int32(np.int64):
    """An int32. It computes as an int64; only a few functions depend on its own width."""


class Typed(int):
    """An integer of any type except int32 and int64, with Numba's arithmetic."""

    __array_ufunc__ = None  # so that this class does the arithmetic with numpy's scalars

    def __new__(cls, value: int, dtype: np.dtype):
        self = super().__new__(cls, value)
        self.dtype = dtype
        return self

    __hash__ = int.__hash__

    def __str__(self) -> str:
        return str(bool(self)) if self.dtype == BOOL else str(int(self))

    def __repr__(self) -> str:
        return f"{self.dtype}({self})"


def u64(value: int) -> Typed:
    """Return a uint64."""
    return Typed(value, UINT64)


TRUE, FALSE = Typed(1, BOOL), Typed(0, BOOL)


def flag(value: Any) -> Typed:
    """Return the truth of `value`, as a bool with Numba's arithmetic."""
    return TRUE if value else FALSE


def dtype_of(value: Any) -> np.dtype:
    """Return a number's dtype. Raises TypingError for anything else."""
    if type(value) is Int32:
        return INT32
    if isinstance(value, (Typed, np.generic)):
        return value.dtype
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    if isinstance(value, float):
        return np.dtype(f64)
    raise TypingError(f"not a number: {value!r}")


def _unsigned(value: Any) -> bool:
    return isinstance(value, Typed) and value.dtype.kind == "u"


def whole(value: int, unsigned: bool) -> Any:
    """Return an integer, wrapped around at 64 bits, as uint64 or int64."""
    return u64(value & ONES) if unsigned else i64(int64(value))


def wide(value: Any, beside: Any = None) -> Any:
    """Return `value` in its common type with `beside`: a float of numpy, int64 or uint64."""
    if isinstance(value, np.floating):
        return value
    dtype = dtype_of(value)
    if isinstance(beside, np.floating) and isinstance(value, int):
        # float16 as in numba.cuda; on the CPU, Numba only stores it.
        kind = {1: f16, 2: f32}.get(dtype.itemsize + (dtype.kind == "u"), f64)
        kind = kind if beside.dtype.itemsize == 2 else f32 if dtype.itemsize < 4 else f64
        return kind(int(value))
    if isinstance(value, float):
        return f64(value)
    return whole(int(value), _unsigned(value) and (beside is None or _unsigned(beside)))


def _compute(function: Callable, x: Any, y: Any) -> Any:
    """Return `function(x, y)` for operands of which one is Typed."""
    if isinstance(x, np.floating) or isinstance(y, np.floating):
        return function(wide(x, y), wide(y, x))
    if function is operator.truediv:
        return divide(int(x), int(y))
    unsigned = _unsigned(x) and _unsigned(y)
    m, n = int(whole(int(x), unsigned)), int(whole(int(y), unsigned))
    if n == 0 and function in (operator.floordiv, operator.mod):
        return whole(0, unsigned)
    return whole(function(m, n), unsigned)


def _compare(function: Callable, x: Typed, y: Any) -> Any:
    if not isinstance(y, (int, float, np.generic)):
        return NotImplemented
    if isinstance(y, (float, np.floating)):
        return function(wide(x, y), y)
    kinds = x.dtype, dtype_of(y)
    if UINT64 in kinds and any(kind.kind == "i" for kind in kinds):
        return function(float(x), float(y))  # Numba has no common integer type for both
    return function(int(x), int(y))


def _give_operators() -> None:
    """Give Typed the operators that rewritten code uses directly."""
    for name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
        compute = getattr(operator, name)
        forward = lambda x, y, compute=compute: _compute(compute, x, y)  # noqa: E731
        backward = lambda x, y, compute=compute: _compute(compute, y, x)  # noqa: E731
        setattr(Typed, f"__{name}__", forward)
        setattr(Typed, f"__r{name}__", backward)
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        compare = getattr(operator, name)
        setattr(Typed, f"__{name}__", lambda x, y, compare=compare: _compare(compare, x, y))


_give_operators()


def int64(value: int, make: Callable = int) -> Any:
    """Return an int, wrapped around at 64 bits and converted by `make`."""
    if not LOW <= value <= HIGH:
        value = (value - LOW & ONES) + LOW
    return make(value)


def alike(parts: tuple) -> tuple:
    """Return a tuple of values of one type, with int64 for Python's ints.

    Raises TypingError if the types differ: Numba then knows no type for an unknown element.
    """
    if all(isinstance(part, tuple) for part in parts):
        if len({len(part) for part in parts}) > 1:
            raise TypingError("the parts of a tuple differ in length: write them one by one")
        return tuple(zip(*map(alike, zip(*parts, strict=True)), strict=True))
    parts = tuple(i64(part) if type(part) is int else part for part in parts)
    dtypes = [dtype_of(part) for part in parts if isinstance(part, (int, np.generic))]
    if len({"i" if dtype.kind in "iu" else dtype for dtype in dtypes}) > 1:
        names = ", ".join(str(dtype) for dtype in dtypes)
        raise TypingError(f"the elements of a tuple differ in type ({names}): cast them to one")
    return parts


def length(array: Any) -> int:
    """Return the number of a loop's iterations over an array. Raises TypingError for a number."""
    if isinstance(array, (int, float, np.generic)):
        raise TypingError(f"a loop over {array!r}: write range({array})")
    return len(array)


def shift_left(x: Any, y: Any) -> Any:
    """Return x << y in x's type, 64 bits wide."""
    _integers("<<", x, y)
    return whole(int(x) << int(y) if 0 <= int(y) < 64 else 0, _unsigned(x))


def shift_right(x: Any, y: Any) -> Any:
    """Return x >> y in x's type, 64 bits wide."""
    _integers(">>", x, y)
    return whole(int(x) >> min(int(y) & 0xFFFFFFFF, 63), _unsigned(x))


def bitwise(function: Callable, x: Any, y: Any) -> Any:
    """Return `function(x, y)` for &, | or ^: a bool for two bools, else 64 bits wide."""
    _integers("a bitwise operator", x, y)
    if dtype_of(x) == BOOL == dtype_of(y):
        return flag(function(bool(x), bool(y)))
    return whole(function(int(x), int(y)), _unsigned(x) and _unsigned(y))


def invert(x: Any) -> Any:
    """Return ~x: computed in x's type, then 64 bits wide; for a bool, its negation."""
    _integers("~", x)
    if dtype_of(x) == BOOL:
        return flag(not x)
    return positive(caster(dtype_of(x))(~int(x)))


def negative(x: Any) -> Any:
    """Return -x: computed in x's type, then 64 bits wide."""
    if isinstance(x, np.generic):
        return -x
    return i64(-int(x)) if dtype_of(x) == BOOL else positive(caster(dtype_of(x))(-int(x)))


def positive(x: Any) -> Any:
    """Return +x."""
    return x if isinstance(x, np.generic) else whole(int(x), _unsigned(x))


def _integers(sign: str, *values: Any) -> None:
    for value in values:
        if dtype_of(value).kind == "f":
            raise TypingError(f"{sign} needs integers, got {dtype_of(value)}")


def power(x: Any, y: Any) -> Any:
    """Return x ** y: an integer if both are, otherwise a float."""
    floats = [isinstance(value, np.floating) for value in (x, y)]
    if not any(floats):
        unsigned = _unsigned(x) and _unsigned(y)
        m, n = int(whole(int(x), unsigned)), int(whole(int(y), unsigned))
        if n < 0:  # 1 / m ** -n, truncated to an integer
            return whole(m ** (n & 1) if m in (1, -1) else 0, unsigned)
        return whole(pow(m, n, 1 << 64), unsigned)
    if floats[0] and not floats[1]:
        kind = f64 if type(x) is f64 else f32
        return kind(f64(x) ** int(y))
    x, y = wide(x, y), wide(y, x)
    return x**y if f16 not in (type(x), type(y)) else wide(f32(x) ** f32(y))


def index(value: Any) -> int:
    """Return an index as a Python int. Raises TypingError for a float."""
    if isinstance(value, Typed) and value.dtype == BOOL:
        raise TypingError("an index must be an integer, and this is a bool: write int(…) around it")
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, np.floating):
        raise TypingError(
            f"an index must be an integer, and this is {value.dtype} ({value!r}); /, math.floor "
            "and math.ceil give a float even for integers, and // does not"
        )
    raise TypingError(f"an index must be an integer, got {value!r}")


def number(value: Any) -> Any:
    """Return a number, with Typed converted to int. Raises TypingError for anything else."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (float, np.generic)):
        return value
    raise TypingError(f"not a number: {value!r}")


def carrier(dtype: np.dtype) -> Callable[[Any], Any]:
    """Return the function that converts a stored element of this dtype to a kernel's value."""
    if dtype.kind == "f" or dtype == INT64:
        return lambda stored: stored
    if dtype.kind == "b":
        return flag
    if dtype == INT32:
        return Int32
    return lambda stored: Typed(stored, dtype)


def caster(dtype: np.dtype) -> Callable[[Any], Any]:
    """Return the function that converts a kernel's value to a value of this dtype."""
    if dtype.kind == "f":
        make = dtype.type
        return lambda value: make(value if isinstance(value, np.generic) else number(value))
    if dtype.kind == "b":
        return flag
    bits = 8 * dtype.itemsize
    mask, sign = (1 << bits) - 1, 1 << bits - 1 if dtype.kind == "i" else 0
    make = {INT32: Int32, INT64: i64}.get(dtype, lambda number: Typed(number, dtype))
    # A float beyond the range is clamped; types of 8 bits are truncated from 16.
    low, high = (-sign, mask - sign) if bits > 8 else (-(1 << 15) if sign else 0, (1 << 15) - 1)

    def cast(value: Any) -> Any:
        if isinstance(value, (int, np.integer)):
            number = int(value)
        else:
            number = min(max(truncate(value), low), high)
        if not -sign <= number <= mask - sign:
            number = (number + sign & mask) - sign
        return make(number)

    return cast


def cast(dtype: np.dtype, value: Any) -> Any:
    """Return a kernel's value converted to `dtype`, as `array.dtype.type(value)` does."""
    return caster(dtype)(value)


def truncate(value: Any) -> int:
    """Return a number truncated to an int: 0 for NaN, ±2^64 for infinities."""
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        return 0 if math.isnan(value) else int(math.copysign(1 << 64, value))
    return int(number(value))


_to_int64 = caster(INT64)


def minimum(*values: Any) -> Any:
    """Return the smallest value, in the common type of all."""
    return _extreme(min, values)


def maximum(*values: Any) -> Any:
    """Return the largest value, in the common type of all."""
    return _extreme(max, values)


def propagating(extreme: Callable) -> Callable:
    """Return numpy's maximum or minimum, which gives NaN if one value is, in the float's type."""

    def call(x: Any, y: Any) -> Any:
        floats = [value for value in (x, y) if isinstance(value, np.floating)]
        if len(floats) == 1:
            x, y = (type(floats[0])(value) for value in (x, y))
        return x + y if x != x or y != y else extreme(x, y)

    return call


def beside_literal(value: Any, literal: Any) -> Any:
    """Return `a` of `a if … else 0.0` in the type that Numba gives it: at least the literal's."""
    if not isinstance(value, (int, np.generic)):
        return value
    is_float = isinstance(literal, float) or isinstance(value, np.floating)
    return f64(value) if is_float else wide(value)


def _extreme(choose: Callable, values: tuple) -> Any:
    if len(values) == 1 and isinstance(values[0], tuple):
        values = values[0]
    first = values[0]
    for value in values[1:]:
        cast = caster(np.promote_types(dtype_of(first), dtype_of(value)))
        x, y = cast(first), cast(value)
        # As fmin and fmax on a GPU, which ignore NaN.
        first = y if x != x else x if y != y else choose(x, y)
    return first


def total(parts: tuple, start: Any = 0) -> Any:
    """Return sum(parts, start)."""
    result = i64(start) if type(start) is int else start
    for part in parts:
        result = result + (i64(part) if type(part) is int else part)
    return result


def quotient_and_remainder(x: Any, y: Any) -> tuple:
    """Return divmod(x, y)."""
    return x // y, x % y


def absolute(value: Any) -> Any:
    """Return |value| in its type, so that -128 stays -128 in int8, as on a GPU."""
    if not isinstance(value, (Typed, Int32)):
        return abs(value)
    return caster(np.dtype("int8") if value.dtype == BOOL else value.dtype)(abs(int(value)))


def to_int(value: Any) -> Any:
    """Return int(value): an integer keeps its type, a float is truncated to int64."""
    if isinstance(value, Typed) and value.dtype != BOOL:
        return value
    return _to_int64(value)


def to_float(value: Any) -> Any:
    """Return float(value): float32 stays float32, an integer or a text becomes float64."""
    if isinstance(value, str):
        return f64(value)
    return value if isinstance(value, np.floating) else f64(int(value))


def rounded(value: Any, digits: Any = None) -> Any:
    """Return round(value): int64 without `digits`, else the float's type."""
    if digits is None:
        return _to_int64(np.rint(f64(value)))
    kind = type(value) if isinstance(value, np.floating) else f64
    return kind(round(float(value), int(digits)))


def divide(x: int, y: int) -> np.float64:
    """Return x / y of two Python ints as float64."""
    return f64(x) / f64(y)


def ufunc(name: str) -> np.ufunc | None:
    """Return numpy's counterpart of a function of `math`, or None."""
    arc = {"pow": "power", "atan2": "arctan2"}
    function = getattr(np, arc.get(name) or re.sub("^a(sin|cos|tan)", r"arc\1", name), None)
    return function if isinstance(function, np.ufunc) else None


def reals(function: Callable) -> Callable:
    """Return a function of `math` as in Numba: float32 gives float32, integers give float64."""

    def call(*values: Any) -> Any:
        values = tuple(wide(value, value) for value in values)
        floats = [v.dtype for v in values if isinstance(v, np.floating)]
        integers = len(floats) < len(values)
        kind = np.result_type(*floats).type if floats and not integers else f64
        numbers = [float(value) for value in values]
        try:
            result = function(*numbers)
        except (OverflowError, ValueError):
            # At poles and outside the domain, numpy's function gives the GPU's result.
            result = twin(*numbers) if (twin := ufunc(function.__name__)) else math.inf
        return tuple(kind(r) for r in result) if isinstance(result, tuple) else kind(result)

    return call


def predicate(function: Callable) -> Callable:
    """Return a function of `math` whose result is a bool, for kernels."""
    return lambda value: flag(function(float(value)))


def _math_functions() -> dict[str, Callable]:
    names = (
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt"),
        *("pow", "hypot", "fabs", "erf", "erfc", "gamma", "lgamma", "fmod", "copysign", "modf"),
        *("radians", "degrees"),
    )
    table: dict[str, Callable] = {name: reals(getattr(math, name)) for name in names}
    # On a GPU these give floats, unlike Python's.
    table |= {name: reals(getattr(np, name)) for name in ("floor", "ceil", "trunc")}
    table |= {name: predicate(getattr(math, name)) for name in ("isnan", "isinf", "isfinite")}
    return table


MATH = _math_functions()


def fma(x: Any, y: Any, z: Any) -> Any:
    """Return x·y + z, rounded once."""
    x, y, z = (wide(value, value) for value in (x, y, z))
    kind = np.result_type(x.dtype, y.dtype, z.dtype, f16).type  # at least a float
    if kind is f64:
        return _fma64(float(x), float(y), float(z))
    # The product is exact in float64. A sum rounded to an odd float64 is never halfway between two
    # floats of `kind`, so that the second rounding is the only one that counts.
    product, z = float(x) * float(y), float(z)
    near = product + z
    back = near - product
    lost = (product - (near - back)) + (z - back)
    if lost and lost == lost and not struct.pack("<d", near)[0] & 1:
        near = math.nextafter(near, math.copysign(math.inf, lost))
    with np.errstate(over="ignore"):
        return kind(near)


def _fma64(x: float, y: float, z: float) -> np.float64:
    if not all(math.isfinite(value) for value in (x, y, z)):
        return f64(x) * f64(y) + f64(z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return f64(exact) if exact else f64(x) * f64(y) + f64(z)  # a zero has a sign
    except OverflowError:
        return f64(math.inf if exact > 0 else -math.inf)
