"""Kinds: what the rewriter knows about a value before the kernel runs.

An int is the number of bits, up to 63, that a Python int, which stands for an int64, may need. A
`Natural` is never negative. An `Unsigned` of up to 64 bits stands for a uint64. OTHER is a typed
scalar, ARRAY an array, and a tuple holds the kinds of its parts. `Many` is a tuple of unknown
length: SHAPE and STRIDES are those of an array. None: never assigned.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import Any

from tiled_matmul.microscope.cuda.names import SMALL

OTHER, ARRAY = "scalar", "array"


class Natural(int):
    """Bits of an int64 that is never negative."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and int(self) == int(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), int(self)))


class Unsigned(Natural):
    """Bits of a uint64."""


@dataclass(frozen=True)
class Many:
    """A tuple or range of unknown length; `part` is the kind of each element."""

    part: Any


@dataclass(frozen=True)
class Row:
    """The index of an element of `array`, a name, that stands for the element itself."""

    array: str
    text: str


SIZE = Natural(SMALL)
SHAPE, STRIDES = Many(SIZE), Many(SMALL)


def is_int(kind: Any) -> bool:
    return isinstance(kind, int)


def is_natural(kind: Any) -> bool:
    return isinstance(kind, Natural)


def is_unsigned(kind: Any) -> bool:
    return isinstance(kind, Unsigned)


def is_large(kind: Any) -> bool:
    """Return whether this small int may have more bits than a float32 holds exactly."""
    return isinstance(kind, int) and kind > 24


def is_tuple(kind: Any) -> bool:
    return isinstance(kind, (tuple, Many))


def part_of(kind: Any) -> Any:
    """Return the kind of a value that may be any element of a tuple."""
    return kind.part if isinstance(kind, Many) else functools.reduce(join, kind, None)


def has_other(kind: Any) -> bool:
    """Return whether this is OTHER or a tuple with such a part."""
    return any(map(has_other, kind)) if isinstance(kind, tuple) else kind == OTHER


def bits(count: int, like: Any) -> Any:
    """Return the kind of `like` with `count` bits."""
    return type(like)(count)


def widest(kind: Any) -> Any:
    """Return the kind with the most bits of its type."""
    return bits(64 if is_unsigned(kind) else 63, kind)


def join(x: Any, y: Any) -> Any:
    """Return the kind of a value that may be of kind x or of kind y."""
    if x is None or x == y:
        return y
    if y is None:
        return x
    if is_int(x) and is_int(y):
        if is_unsigned(x) != is_unsigned(y):
            return OTHER
        return bits(max(int(x), int(y)), x if is_natural(y) else y)
    if isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y):
        return tuple(join(a, b) for a, b in zip(x, y, strict=True))
    if Many in (type(x), type(y)) and is_tuple(x) and is_tuple(y):
        return Many(join(part_of(x), part_of(y)))
    return OTHER


def widened(kind: Any) -> Any:
    """Return a kind for parameters that treats all small ints alike: fewer versions to compile."""
    if is_int(kind):
        return bits(SMALL, kind) if kind <= SMALL else widest(kind)
    return tuple(widened(part) for part in kind) if isinstance(kind, tuple) else kind


def of_constant(value: int) -> int:
    """Return the kind of an int constant."""
    return Natural(value.bit_length()) if value >= 0 else value.bit_length()


def of_result(op: ast.operator, count: int, x: int, y: int) -> int:
    """Return the kind of `x op y`, which needs `count` bits."""
    if is_unsigned(x) and is_unsigned(y):
        return Unsigned(count)
    same_sign = is_natural(x) and is_natural(y) and not isinstance(op, ast.Sub)
    return Natural(count) if same_sign else count


def stays_unsigned(op: ast.operator, y: ast.expr, m: int, n: int) -> bool:
    """Return whether Python ints give the result of this operation on uint64 of m and n bits.

    They do if it neither wraps around nor divides by 0.
    """
    if isinstance(op, ast.Add):
        return max(m, n) < 63
    if isinstance(op, ast.Mult):
        return m + n <= 63
    if isinstance(op, (ast.FloorDiv, ast.Mod)):
        return isinstance(y, ast.Constant) and y.value > 0
    return isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor))


def of_iterations(ends: list[Any]) -> Any:
    """Return the kind of the elements of range(*ends); OTHER means that they are typed scalars."""
    count = max(SMALL, *(int(end) for end in ends))
    upwards = len(ends) == 1 or (is_natural(ends[0]) and (len(ends) == 2 or is_natural(ends[2])))
    if any(is_unsigned(end) for end in ends):
        return Unsigned(count) if all(is_natural(end) for end in ends) else OTHER
    return Natural(count) if upwards else count
