"""simt/: numbers in kernels, against Numba's compiler for the CPU, which types as that for CUDA.

Each function here is run twice on the same values: compiled by `njit`, and as a device function in
the interpreter. Values must be equal bit for bit, and their types those that `njit` infers.

Left out, because the CPU and a GPU differ or no result is defined: shifts by less than 0 or by more
than 63 bits, floats outside of an integer's range converted to it, 0 to a negative power in
integers. `error_model="numpy"` because kernels on a GPU do not raise ZeroDivisionError.
"""

import math
import random

import numba
import numpy as np
import pytest
from numba import cuda, float32, float64, int32, int64, njit, uint8, uint32, uint64

from tiled_matmul.simt import TypingError, stands_for, trace

INTEGERS = ("int8", "int32", "int64", "uint8", "uint32", "uint64")
FLOATS = ("float32", "float64")
TYPES = ("bool", *INTEGERS, *FLOATS)

VALUES = {
    "bool": (False, True),
    "int8": (-128, -7, -1, 0, 3, 127),
    "int32": (-(2**31), -1_000_003, -5, 0, 2, 65_537, 2**31 - 1),
    "int64": (-(2**63), -(2**53) - 1, -9, -1, 0, 3, 2**32 + 1, 2**62, 2**63 - 1),
    "uint8": (0, 1, 7, 128, 255),
    "uint32": (0, 1, 6, 2**31, 2**32 - 1),
    "uint64": (0, 1, 10, 2**53 + 1, 2**63, 2**64 - 1),
    "float32": (-3.5, -1.0, -0.0, 0.1, 7.0, 1e-45, 3.4e38, math.inf, math.nan),
    "float64": (-2.75, -0.0, 0.3, 5.0, 1e-320, 1e300, -math.inf, math.nan),
}

seen: list = []


def keep(value):
    """Stands in kernels for `seen.append`, which leaves a value as the interpreter carries it."""


stands_for(keep)(seen.append)


def interpreted(function, *columns):
    """Return function(x, y, …) for each row of some columns, as the interpreter carries it."""
    device = cuda.jit(device=True)(function)

    def one(xs, rows):
        for i in range(rows):
            keep(device(xs[i]))

    def two(xs, ys, rows):
        for i in range(rows):
            keep(device(xs[i], ys[i]))

    seen.clear()
    trace(one if len(columns) == 1 else two, 1, 1, *columns, len(columns[0]))
    return list(seen)


def type_of(value):
    """Return Numba's name of a value's type; int32 is carried as int64."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if type(value) is int:
        return "int64"
    return str(value.dtype)


def same(ours, theirs, ulps=0):
    """Are two numbers equal bit for bit, or floats as close as this? Any NaN equals any other."""
    if isinstance(theirs, float):
        dtype = ours.dtype.type
        if np.isnan(ours) or math.isnan(theirs):
            return bool(np.isnan(ours)) and math.isnan(theirs)
        theirs = dtype(theirs)
        if ours == theirs:
            return bool(np.signbit(ours) == np.signbit(theirs))
        return bool(np.isfinite(theirs)) and abs(ours - theirs) <= ulps * np.spacing(abs(theirs))
    return int(ours) == int(theirs)


def check(function, *columns, ulps=0, names=None):
    """Run a function of one or two numbers both ways and compare each of its results."""
    compiled = njit(error_model="numpy")(function)
    expected = [compiled(*row) for row in zip(*columns, strict=True)]
    types = compiled.overloads[compiled.signatures[0]].signature.return_type
    types = list(types) if hasattr(types, "__len__") else [types]
    wrong = []
    found = interpreted(function, *columns)
    assert len(found) == len(expected) and len(compiled.signatures) == 1
    for row, ours, theirs in zip(zip(*columns, strict=True), found, expected, strict=True):
        if not isinstance(theirs, tuple):
            ours, theirs = (ours,), (theirs,)
        assert len(ours) == len(theirs) == len(types)
        for number, (mine, its, kind) in enumerate(zip(ours, theirs, types, strict=True)):
            kind = str(kind).replace("Literal[int](", "").split(")")[0]
            kind = {"int32": "int64", "intp": "int64"}.get(kind, kind)
            what = names[number] if names else f"result {number}"
            if type_of(mine) != kind or not same(mine, its, ulps):
                wrong.append(f"{what} of {row!r}: {mine!r} for {its!r}, a {kind}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])


def column(dtype, values=None):
    return np.array(VALUES[dtype] if values is None else values, dtype)


def pairs(x, y):
    """Return each value of a type beside each of another, as two columns."""
    xs, ys = column(x), column(y)
    return np.repeat(xs, len(ys)), np.tile(ys, len(xs))


ARITHMETIC = ("+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", ">", ">=", "min", "max")


def arithmetic(x, y):
    results = x + y, x - y, x * y, x / y, x // y, x % y
    orders = x < y, x <= y, x == y, x != y, x > y, x >= y
    return results + orders + (min(x, y), max(x, y))


@pytest.mark.parametrize("y", TYPES)
@pytest.mark.parametrize("x", TYPES)
def test_arithmetic_of_two_types(x, y):
    check(arithmetic, *pairs(x, y), names=ARITHMETIC)


BITWISE = ("&", "|", "^", "<<", ">>")


def bitwise(x, y):
    return x & y, x | y, x ^ y, x << (y & 31), x >> (y & 31)


@pytest.mark.parametrize("y", ("bool", *INTEGERS))
@pytest.mark.parametrize("x", ("bool", *INTEGERS))
def test_bitwise_operators(x, y):
    check(bitwise, *pairs(x, y), names=BITWISE)
