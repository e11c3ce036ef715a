"""Numba's scalar types, for kernels that run as Python.

Numba promotes numbers by rules of its own: integers compute in 64 bits, a signed and an unsigned
64-bit integer meet in float64, and so do float32 and any integer of 32 bits or more. numpy's
scalars follow the same rules where all of them have types, so a value in a kernel is a numpy
scalar: float16, float32, float64, int64, uint64. int32 is carried as int64, because whatever Numba
does to an int32 it does in 64 bits. The other integers are `Narrow`. Plain Python ints stand for
int64 where `rewrite` can see that they stay small: indices and loop counters.
Source: Numba enhancement proposal 1, "Changes in integer typing"; the tests compare with njit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tiled_matmul.simt.errors import TypingError

f16, f32, f64 = np.float16, np.float32, np.float64
i64, u64 = np.int64, np.uint64
ZERO = i64(0)
LOW, HIGH = -(1 << 63), (1 << 63) - 1
DTYPES = tuple(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
)


class Narrow(int):
    """An integer of a type narrower than 64 bits: it takes part in arithmetic as Numba has it."""

    __array_ufunc__ = None  # numpy's scalars leave mixed arithmetic to this class

    def __new__(cls, value: int, dtype: np.dtype):
        self = super().__new__(cls, value)
        self.dtype = dtype
        return self

    def beside(self, other: Any) -> Any:
        """Return this number in the type in which it meets `other`."""
        if isinstance(other, np.floating):
            exact = self.dtype.itemsize < 4 and other.dtype.itemsize < 8
            return f32(int(self)) if exact else f64(int(self))
        unsigned = self.dtype.kind == "u" and (
            isinstance(other, u64) or (isinstance(other, Narrow) and other.dtype.kind == "u")
        )
        return u64(int(self)) if unsigned else i64(int(self))


def _narrow_operator(name: str, function: Callable) -> None:
    def forward(self: Narrow, other: Any) -> Any:
        mine = self.beside(other)
        return function(mine, wide(other, self))

    def backward(self: Narrow, other: Any) -> Any:
        return function(wide(other, self), self.beside(other))

    setattr(Narrow, f"__{name}__", forward)
    setattr(Narrow, f"__r{name}__", backward)


def wide(value: Any, beside: Any = None) -> Any:
    """Return `value` as a numpy scalar: a Python int as int64, a float as float64."""
    if isinstance(value, Narrow):
        return value.beside(beside)
    if isinstance(value, (bool, np.bool_)):
        return i64(bool(value))
    if isinstance(value, np.generic):
        return value
    if isinstance(value, int):
        return int64(value, i64)
    if isinstance(value, float):
        return f64(value)
    raise TypingError(f"no number: {value!r}")


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow"):
    _narrow_operator(_name, getattr(operator, _name))


def int64(value: int, make: Callable = int) -> Any:
    """Return an int wrapped around at 64 bits, as a Python int unless `make` says otherwise."""
    if not LOW <= value <= HIGH:
        value = (value - LOW & (1 << 64) - 1) + LOW
    return make(value)


def shift_left(x: Any, y: Any) -> Any:
    """Return x << y in x's type, 64 bits wide."""
    x = _integer("<<", x)
    return type(x)(_fold(int(x) << int(y), x)) if 0 <= int(y) < 64 else type(x)(0)


def shift_right(x: Any, y: Any) -> Any:
    """Return x >> y in x's type, 64 bits wide."""
    x = _integer(">>", x)
    return type(x)(int(x) >> min(int(y), 63))


def bitwise(function: Callable, x: Any, y: Any) -> Any:
    """Return `function`(x, y) for &, | or ^; uint64 with a signed integer gives int64."""
    if isinstance(x, (bool, np.bool_)) and isinstance(y, (bool, np.bool_)):
        return function(bool(x), bool(y))
    x, y = _integer("a bitwise operator", x, y), _integer("a bitwise operator", y, x)
    if type(x) is not type(y):
        return i64(int64(function(int(x), int(y))))
    return function(x, y)


def invert(x: Any) -> Any:
    """Return ~x."""
    return ~_integer("~", x)


def negative(x: Any) -> Any:
    """Return -x."""
    return -wide(x, x)


def _integer(sign: str, value: Any, beside: Any = None) -> Any:
    value = wide(value, beside if beside is not None else value)
    if not isinstance(value, np.integer):
        raise TypingError(f"{sign} wants integers, got {value.dtype}")
    return value


def _fold(value: int, like: Any) -> int:
    return value & (1 << 64) - 1 if isinstance(like, u64) else int64(value)


def power(x: Any, y: Any) -> Any:
    """Return x ** y: float unless both are integers, as in Numba."""
    x, y = wide(x, y), wide(y, x)
    if isinstance(x, np.integer) and isinstance(y, np.integer):
        return type(x)(_fold(int(x) ** int(y), x)) if y >= 0 else f64(float(x) ** int(y))
    if isinstance(x, np.floating) and isinstance(y, np.integer):
        return type(x)(f64(x) ** int(y))
    return x**y


def index(value: Any) -> int:
    """Return an index as a Python int. Raises TypingError for a float."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, np.floating):
        raise TypingError(
            f"an index must be an integer, and this is {value.dtype} ({value!r}); in Numba uint64 "
            "with a signed integer gives float64"
        )
    raise TypingError(f"an index must be an integer, got {value!r}")


def carrier(dtype: np.dtype) -> Callable[[Any], Any]:
    """Return the function that makes a kernel's value of a stored element of this dtype."""
    if dtype.kind == "f" or dtype.itemsize == 8:
        return lambda stored: stored
    if dtype.kind == "b":
        return bool
    if dtype == np.int32:
        return lambda stored: ZERO + stored
    return lambda stored: Narrow(stored, dtype)


def caster(dtype: np.dtype) -> Callable[[Any], Any]:
    """Return the function that converts a kernel's value to this dtype, carried as a value."""
    if dtype.kind == "f":
        return dtype.type
    if dtype.kind == "b":
        return bool
    bits = 8 * dtype.itemsize
    mask, sign = (1 << bits) - 1, 1 << bits - 1 if dtype.kind == "i" else 0
    if dtype.itemsize == 8:
        make: Callable = dtype.type
    elif dtype == np.int32:
        make = i64
    else:

        def make(value: int) -> Narrow:
            return Narrow(value, dtype)

    def cast(value: Any) -> Any:
        return make((truncate(value) + sign & mask) - sign)

    return cast


def truncate(value: Any) -> int:
    """Return a number cut to a Python int; NaN gives 0 and infinities the end of int64."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return 0 if math.isnan(value) else HIGH if value > 0 else LOW
    return int(value)


def minimum(*values: Any) -> Any:
    """Return the smallest, in the type in which all of them meet."""
    return _extreme(min, values)


def maximum(*values: Any) -> Any:
    """Return the largest, in the type in which all of them meet."""
    return _extreme(max, values)


def _extreme(choose: Callable, values: tuple) -> Any:
    if len(values) == 1:
        values = tuple(values[0])
    if all(type(value) is int for value in values):
        return choose(values)
    first = wide(values[0], values[-1])
    for value in values[1:]:
        other = wide(value, first)
        together = np.result_type(first, other).type
        first = choose(together(first), together(other))
    return first


def absolute(value: Any) -> Any:
    """Return |value|."""
    return abs(value) if type(value) is int else abs(wide(value, value))


def to_int(value: Any) -> Any:
    """Return int(value): int64, cut towards zero; uint64 stays uint64."""
    return value if isinstance(value, u64) else i64(int64(truncate(value)))


def to_float(value: Any) -> np.float64:
    """Return float(value)."""
    return f64(value)


def rounded(value: Any, digits: Any = None) -> Any:
    """Return round(value): int64 without digits, the float's type with."""
    if digits is None:
        return i64(int64(round(float(value))))
    return type(wide(value, value))(round(float(value), int(digits)))


def divide(x: int, y: int) -> np.float64:
    """Return x / y of two Python ints as float64."""
    return f64(x) / f64(y)


def reals(function: Callable) -> Callable:
    """Return a function of `math` as in Numba: float32 gives float32, integers give float64."""

    def call(*values: Any) -> Any:
        values = tuple(wide(value, value) for value in values)
        floats = [v.dtype for v in values if isinstance(v, np.floating)]
        integers = len(floats) < len(values)
        kind = np.result_type(*floats).type if floats and not integers else f64
        try:
            result = function(*(float(value) for value in values))
        except OverflowError:
            return kind(math.inf)
        except ValueError:
            return kind(math.nan)
        return tuple(kind(r) for r in result) if isinstance(result, tuple) else kind(result)

    return call


def whole(function: Callable) -> Callable:
    """Return floor, ceil or trunc: int64 of a float."""
    return lambda value: i64(int64(function(float(value))))


def _math_functions() -> dict[str, Callable]:
    names = (
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt"),
        *("pow", "hypot", "fabs", "erf", "erfc", "gamma", "lgamma", "fmod", "copysign", "modf"),
        *("radians", "degrees"),
    )
    table: dict[str, Callable] = {name: reals(getattr(math, name)) for name in names}
    table |= {name: whole(getattr(math, name)) for name in ("floor", "ceil", "trunc")}
    table |= {name: getattr(math, name) for name in ("isnan", "isinf", "isfinite")}
    return table


MATH = _math_functions()


def fma(x: Any, y: Any, z: Any) -> Any:
    """Return x·y + z, rounded once."""
    from fractions import Fraction

    x, y, z = (wide(value, value) for value in (x, y, z))
    kind = np.result_type(x, y, z).type
    if not all(math.isfinite(value) for value in (x, y, z)):
        return kind(x) * kind(y) + kind(z)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    return _nearest(exact, kind)


def _nearest(exact: Any, kind: type) -> Any:
    """Return the float of `kind` nearest to a fraction; a second rounding could miss it."""
    try:
        near = kind(float(exact))
    except OverflowError:
        return kind(math.copysign(math.inf, exact))
    if not np.isfinite(near):
        return near
    candidates = (near, np.nextafter(near, kind(-math.inf)), np.nextafter(near, kind(math.inf)))
    finite = [value for value in candidates if np.isfinite(value)]

    def distance(value: Any) -> tuple:
        even = int(np.frombuffer(value.tobytes(), f"u{value.itemsize}")[0]) & 1
        from fractions import Fraction

        return abs(Fraction(float(value)) - exact), even

    return min(finite, key=distance)
