"""The interpreter: numbers, against Numba's compiler for the CPU, which types as that for CUDA.

Each function here is run twice on the same values: compiled by `njit`, and as a device function in
the interpreter. Values must be equal bit for bit, and their types those that `njit` infers.

Left out, because the CPU and a GPU differ or no result is defined: shifts by less than 0 or by more
than 63 bits, the least int64 // -1, floats outside of an integer's range converted to it, 0 to a
negative power in integers, NaN in min and max. `error_model="numpy"` because kernels on
a GPU do not raise ZeroDivisionError.
"""

import ctypes
import ctypes.util
import linecache
import math
import random
from fractions import Fraction

import numba
import numpy as np
import pytest
from numba import cuda, float32, float64, int32, int64, njit, uint8, uint32, uint64

from tiled_matmul.microscope.cuda import TypingError, stands_for, trace, values

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


def undefined(what, row):
    """Is this a result that the CPU and a GPU need not share?"""
    if what in ("min", "max"):
        return any(value != value for value in row)
    if what != "//" or any(isinstance(value, np.floating) for value in row):
        return False
    return {int(value) & 2**64 - 1 for value in row} == {2**63, 2**64 - 1}


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
            if type_of(mine) != kind or not (undefined(what, row) or same(mine, its, ulps)):
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
    return results + (x < y, x <= y, x == y, x != y, x > y, x >= y)


def arithmetic_and_extremes(x, y):
    results = x + y, x - y, x * y, x / y, x // y, x % y
    orders = x < y, x <= y, x == y, x != y, x > y, x >= y
    return results + orders + (min(x, y), max(x, y))


@pytest.mark.sample(6)
@pytest.mark.parametrize("y", TYPES)
@pytest.mark.parametrize("x", TYPES)
def test_arithmetic_of_two_types(x, y):
    # Numba's min and max have learnt about bool only lately.
    function = arithmetic if "bool" in (x, y) else arithmetic_and_extremes
    check(function, *pairs(x, y), names=ARITHMETIC)


BITWISE = ("&", "|", "^", "<<", ">>")


def bitwise(x, y):
    return x & y, x | y, x ^ y, x << (y & 31), x >> (y & 31)


@pytest.mark.sample(4)
@pytest.mark.parametrize("y", ("bool", *INTEGERS))
@pytest.mark.parametrize("x", ("bool", *INTEGERS))
def test_bitwise_operators(x, y):
    check(bitwise, *pairs(x, y), names=BITWISE)


def power(x, y):
    return x**y, x**2, x**3


@pytest.mark.sample(4)
@pytest.mark.parametrize("x", (*INTEGERS, *FLOATS))
@pytest.mark.parametrize("y", ("int8", "int64", "uint64", "float32", "float64"))
def test_power(x, y):
    exponents = [e for e in (-3, -1, 0, 1, 2, 5, 0.5) if column(y, [abs(e)])[0] == abs(e)]
    exponents = [e for e in exponents if e >= 0 or y[0] in "if"]
    # Older Numbas go through float64, which holds no more digits.
    bases = [b for b in VALUES[x] if 1e-3 < abs(b) < 1500 or x[0] == "f" and abs(b) >= 1500]
    rows = [(b, e) for b in bases for e in exponents]
    check(power, column(x, [b for b, _ in rows]), column(y, [e for _, e in rows]), ulps=4)


def unary(x):
    return -x, +x, abs(x), int(x), bool(x), not x, min(x, 3), max(x, 2)


def unary_integer(x):
    return ~x, float(x), x << 3, x >> 1, x & 255, x | 1, x ^ 6, x // 3, x % 5, x // -3, x % -5


def unary_float(x):
    return float(x), round(x), round(x, 1), x // 0.25, x % 0.75, x // -2, x % 3


@pytest.mark.parametrize("x", TYPES)
@pytest.mark.sample(3)
def test_one_number_and_literals(x):
    values = [v for v in VALUES[x] if x[0] != "f" or abs(v) < 1e9]
    if x == "int32":
        values.remove(-(2**31))  # abs() is of type int32, which the interpreter carries as int64
    if x != "bool":
        check(unary, column(x, values))
        check(unary_integer if x[0] != "f" else unary_float, column(x, values))


def literals(x):
    sums = x + 1, 1 - x, x * 3, x / 2, x + 2.5, x * 0.1, x - 2147483648, x + 1099511627776
    return sums + (x < 2, x == 1, x > 0.5, x <= 1099511627776, 3 > x, 0 <= x < 2)


@pytest.mark.parametrize("x", TYPES)
def test_a_number_and_literals(x):
    check(literals, column(x))


def casts(x):
    floats = float32(x), float64(x), np.float32(x), np.float64(x)
    return floats + (int64(x), int32(x), uint8(x), uint32(x), uint64(x), np.int8(x), np.bool_(x))


@pytest.mark.parametrize("x", TYPES)
@pytest.mark.sample(3)
def test_casts(x):
    values = {"float32": (-3.5, 0.0, 0.9, 200.25), "float64": (-0.5, 1e-9, 2.5, 127.99)}
    if x[0] == "f":  # a negative float has no defined conversion to an unsigned integer
        check(casts, column(x, [v for v in values[x] if v >= 0]))
        check(signed_casts, column(x, values[x]))
    else:
        check(casts, column(x))


def signed_casts(x):
    return int64(x), int32(x), np.int16(x), int(x)


def test_floats_beyond_an_integer_give_its_end():
    """Measured on a GPU; a CPU gives anything."""

    def beyond(x):
        ends = int32(x), int32(-x), uint32(-x), uint64(-x), int64(x * 1e20), uint32(x)
        return ends + (uint8(-x), int64(x - x + math.nan), int(-x * 1e20))

    (found,) = interpreted(beyond, column("float64", (1e10,)))
    ends = 2**31 - 1, -(2**31), 0, 0, 2**63 - 1, 2**32 - 1, 0, 0, -(2**63)
    assert found == ends


def test_casts_compute_in_the_type_they_give():
    def mixed(x, y):
        first = float32(x) * float32(y) + float32(1)
        second = uint32(x) + uint32(y), uint32(x) - int32(y), float32(x) * int32(y), uint8(x) * y
        return second + (first, float32(x) / float32(3), np.float32(0.1) * y, uint32(x * y))

    check(mixed, column("int64", (0, 5, 300, 2**31)), column("int32", (1, 7, -3, 11)))


# --- accumulators and hashes ----------------------------------------------------------------------


def sums(x, y):
    a, b, c, d = 0, 0.0, float32(0), int32(0)
    for k in range(5):
        a += x
        b += x * y
        c += x * y
        d -= k * y
        a ^= 3
    return a, b, c, d


def float_sums(x, y):
    a, b, c, d, e = 0, 0.0, float32(0), 1, 2.0
    for k in range(5):
        a += x
        b += x * y
        c += x * y
        d *= x
        e /= y
        b -= k
        c -= k
    return a, b, c, d, e


@pytest.mark.parametrize("x", ("int32", "int64", "uint8", "uint32"))
@pytest.mark.parametrize("y", ("int32", "int64", "uint32"))
@pytest.mark.sample(4)
def test_integer_accumulators(x, y):
    check(sums, *pairs(x, y))


@pytest.mark.parametrize("x", FLOATS)
@pytest.mark.parametrize("y", ("float32", "float64", "int32", "int64"))
@pytest.mark.sample(4)
def test_float_accumulators(x, y):
    check(float_sums, *pairs(x, y))


def lcg_int64(seed):
    state = seed
    for _ in range(40):
        state = state * 6364136223846793005 + 1442695040888963407
        state ^= state >> 17
    return state, state % 1000, state // 7


def lcg_uint32(seed):
    state = uint32(seed)
    for _ in range(40):
        state = uint32(state * uint32(1664525) + uint32(1013904223))
        state = uint32(state ^ (state << uint32(13)))
        state = uint32(state ^ (state >> uint32(17)))
    return state, state % uint32(10), state * state


def lcg_uint64(seed):
    state = uint64(seed)
    for _ in range(40):
        state = state * uint64(6364136223846793005) + uint64(1442695040888963407)
        state ^= state >> uint64(33)
        state ^= state << uint64(9)
    return state, state >> uint64(60), state / uint64(3)


def small_ints_that_grow(n):
    square = n * n
    cube = square * n
    big = cube * (n + 7919) * 31  # no square: LLVM knows that those are not negative
    shifted = n << 40
    mixed = (n * 2654435761) ^ (n << 13)
    for k in range(20):
        mixed = mixed * 31 + k
    return square, cube, big, shifted, mixed, big % 97, big // -3, -big, ~big, abs(big)


def sums_that_grow(n):
    a, b, large, long, doubled, shifted, stepped = 0, 1, 0, 0, 1, 1, 0
    for k in range(100):
        a += b
        b += a
        large += 4611686018427387904
        long += 2147483647 + k
        doubled = doubled + doubled
        shifted <<= 1
        stepped -= n
    return a, b, large * 3, long * long * long, doubled, shifted - 1, stepped * stepped * 5


HASHES = [lcg_int64, lcg_uint32, lcg_uint64, small_ints_that_grow, sums_that_grow]


@pytest.mark.parametrize("hashed", HASHES)
def test_hashes_wrap_around(hashed):
    check(hashed, column("int64", (0, 1, -1, 12345, 2**31 - 1, 2**40, -(2**62) + 17)))


@pytest.mark.parametrize("function", [*HASHES, sums, unary, literals])
def test_python_ints_as_arguments(function):
    """Ints that come with the launch are int64 too, though the interpreter has them as they are."""
    device = cuda.jit(device=True)(function)
    compiled = njit(error_model="numpy")(function)
    both = function is sums

    def kernel(n, m):
        keep(device(n))

    def kernel_of_two(n, m):
        keep(device(n, m))

    for n, m in [(0, 1), (3, -2), (-7, 2**40), (2**31 - 1, 5), (2**40, 2**40), (-(2**63), 3)]:
        seen.clear()
        trace(kernel_of_two if both else kernel, 1, 1, n, m)
        expected = compiled(n, m) if both else compiled(n)
        assert all(map(same, seen[0], expected)), (n, m, seen[0], expected)


def test_index_arithmetic_wraps_like_int64():
    def kernel(out, n):
        i = cuda.blockDim.x * cuda.gridDim.x + cuda.threadIdx.x
        j = i * i * i * i * i * i * i * i
        out[0] = j + n * n
        out[1] = (j << 7) + n

    out = np.zeros(2, np.int64)
    trace(kernel, 1000, 1000, out, 2**40 + 3, blocks=[(0, 0)])
    j = (1_000_000 + 999) ** 8
    wrapped = [j + (2**40 + 3) ** 2, (j << 7) + 2**40 + 3]
    assert out.tolist() == [(v + 2**63) % 2**64 - 2**63 for v in wrapped]


# --- names from outside ---------------------------------------------------------------------------

LARGE, NEGATIVE, REAL, SINGLE, SIZES = 2**40, -3, 0.1, np.float32(0.1), (4, 7)
UNSIGNED, TINY = np.uint32(7), np.int8(-3)


def constants(x):
    first = x + LARGE, x * NEGATIVE, x + REAL, x * SINGLE, x % SIZES[1], x // SIZES[0]
    return first + (x * UNSIGNED, x + TINY, SINGLE * SINGLE, UNSIGNED - UNSIGNED, x * math.pi)


@pytest.mark.parametrize("x", ("int32", "int64", "uint32", "uint64", "float32", "float64"))
def test_module_constants(x):
    check(constants, column(x))


def test_closures():
    scale, offset, pair = np.float32(3), 11, (2, 2.5)

    def closed(x):
        return x * scale + offset, x + pair[0], x * pair[1]

    check(closed, column("float32"))
    check(closed, column("int64"))


# --- math -----------------------------------------------------------------------------------------

ROOTS = "sin cos tan asin acos atan sinh cosh tanh asinh atanh".split()
ROOTS += "exp expm1 log log2 log10 log1p sqrt fabs erf erfc gamma lgamma radians degrees".split()


def written(text):
    """Return a function of x that returns an expression; its source can be read."""
    source, file = f"def call(x):\n    return {text}\n", f"<{text}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"math": math}
    exec(compile(source, file, "exec"), space)
    return space["call"]


@pytest.mark.parametrize("name", ROOTS)
def test_math_of_each_type(name):
    values = [0.0625, 0.3, 0.5, 0.875]
    for dtype in ("float64", "float32", "int64", "uint8"):
        xs = column(dtype, values if dtype[0] == "f" else [1] if name == "acos" else [0, 1])
        if name in ("log", "log2", "log10", "gamma", "lgamma", "atanh") and dtype[0] != "f":
            xs = xs[:1] if name == "atanh" else xs[-1:]
        found = interpreted(written(f"math.{name}(x)"), xs)
        kind = np.float32 if dtype == "float32" else np.float64
        for x, ours in zip(xs, found, strict=True):
            exact = getattr(math, name)(float(x))
            assert type(ours) is kind
            assert abs(ours - kind(exact)) <= 2 * np.spacing(abs(kind(exact))), (name, dtype, x)


def test_math_types_are_those_of_numba():
    def called(x):
        return math.isnan(x), math.isinf(x), math.isfinite(x), math.sqrt(x), math.exp(x)

    def called_with_two(x, y):
        return math.atan2(x, y), math.pow(x, y), math.hypot(x, y), math.copysign(x, y)

    check(called, column("float32", (0.1, 2.5, 7.0)), ulps=2)
    check(called, column("float64", (0.1, 2.5, 1e15)), ulps=2)
    check(called_with_two, *pairs_of((0.5, 2.0), "float32", "float32"), ulps=2)
    check(called_with_two, *pairs_of((0.5, 2.0), "float64", "float32"), ulps=2)
    check(called_with_two, *pairs_of((1, 2), "int64", "float32"), ulps=2)


def test_floor_and_its_like_give_floats_as_on_a_gpu():
    """The CPU's give int64; `test_forms_cuda` has the compiler's word for a GPU."""

    def called(x):
        return math.floor(x), math.ceil(x), math.trunc(x)

    for dtype, kind in (("float32", np.float32), ("float64", np.float64), ("int64", np.float64)):
        found = interpreted(called, column(dtype, (-1.5, 2.5) if dtype[0] == "f" else (-2, 3)))
        assert {type(value) for row in found for value in row} == {kind}
        assert found == ([(-2, -1, -1), (2, 3, 2)] if dtype[0] == "f" else [(-2,) * 3, (3,) * 3])


def pairs_of(values, x, y):
    return column(x, np.repeat(values, len(values))), column(y, np.tile(values, len(values)))


def test_math_outside_of_its_domain_gives_what_a_gpu_gives():
    def called(x):
        return math.sqrt(x), math.log(x), math.exp(-1000 * x), math.asin(x - 1)

    root, log, power_of, arc = interpreted(called, column("float32", (-1.0,)))[0]
    assert np.isnan(root) and np.isnan(log) and power_of == math.inf and np.isnan(arc)
    (zero,) = interpreted(written("math.log(x)"), column("float64", (0.0,)))
    assert zero == -math.inf


def test_the_smaller_of_a_number_and_nan_is_the_number():
    """As fminf and fmaxf of CUDA, which Numba calls there."""

    def extremes(x, y):
        return min(x, y), max(x, y)

    nan, one = column("float32", (math.nan,)), column("float32", (1.0,))
    assert interpreted(extremes, nan, one) == interpreted(extremes, one, nan) == [(1, 1)]
    assert all(np.isnan(interpreted(extremes, nan, nan)[0]))


# --- x·y + z, rounded once -----------------------------------------------------------------------


def drawn_for_fma(dtype, count):
    """Return rows of two factors and a summand: of any bits, of like size, and at exact ties."""
    draw, bits = np.random.default_rng(2), np.dtype(dtype).itemsize * 8
    whole = draw.integers(0, 1 << bits, (count, 3), f"uint{bits}", endpoint=False).view(dtype)
    like = draw.uniform(1, 2, (count, 3)).astype(dtype)
    like[:, 2] *= dtype(2) ** draw.integers(-4, 5, count).astype(dtype)
    like[:, 2] *= draw.choice([-1, 1], count).astype(dtype)
    tied, half = like.copy(), np.finfo(dtype).nmant // 2 + 1
    tied[:, :2] = 1 + np.ldexp(draw.integers(0, 9, (count, 2)), -half).astype(dtype)
    tied[:, 2] = np.ldexp(1.0, draw.integers(-3 * half, 3, count)).astype(dtype)
    edges = [[0.0, -1, 0.0], [0.0, 1, -0.0], [-0.0, 1, -0.0], [1, 1, -1], [math.inf, 0, 1]]
    edges += [[math.inf, 1, -math.inf], [math.nan, 1, 1], [1, 1, math.inf]]
    return np.concatenate([whole, like, tied, np.array(edges, dtype)])


@pytest.mark.parametrize(("dtype", "name"), [(np.float32, "fmaf"), (np.float64, "fma")])
def test_fma_is_the_c_librarys(dtype, name):
    c_type = {"fmaf": ctypes.c_float, "fma": ctypes.c_double}[name]
    fma = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    fma.argtypes, fma.restype = [c_type] * 3, c_type
    rows = drawn_for_fma(dtype, 2000)
    twice = 0
    for x, y, z in rows:
        with np.errstate(all="ignore"):  # as kernels run
            got, wanted = values.fma(x, y, z), dtype(fma(x, y, z))
            twice += not np.isnan(wanted) and x * y + z != wanted
        assert got.dtype == dtype
        assert (np.isnan(got) and np.isnan(wanted)) or got.tobytes() == wanted.tobytes(), (x, y, z)
    assert twice > 500  # rounded twice, many would differ


def test_fma_in_float16_is_the_nearest_to_the_exact_sum():
    seen = 0
    for x, y, z in drawn_for_fma(np.float16, 3000):
        got = values.fma(x, y, z)
        assert got.dtype == np.float16
        if not np.isfinite([x, y, z]).all():
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if abs(exact) >= 65520:  # halfway from the greatest float16 to the next power of two
            assert got == math.copysign(math.inf, exact)
            continue
        near = [np.nextafter(got, np.float16(side)) for side in (-math.inf, math.inf)]
        far = [abs(Fraction(float(v)) - exact) for v in near if np.isfinite(v)]
        own = abs(Fraction(float(got)) - exact)
        even = not got.view("uint16") & 1
        assert all(own < other or (own == other and even) for other in far), (x, y, z)
        seen += own > 0
    assert seen > 3000


# --- float16, which njit cannot compute with ------------------------------------------------------

# What numba.cuda infers for float16 + another type (cuda.compile, numba-cuda 0.30.4).
WITH_FLOAT16 = {
    **dict.fromkeys(("bool", "int8", "float16"), "float16"),
    **dict.fromkeys(("int16", "uint8", "float32"), "float32"),
    **dict.fromkeys(("uint16", "int32", "uint32", "int64", "uint64", "float64"), "float64"),
}


@pytest.mark.parametrize("other", WITH_FLOAT16)
def test_types_beside_float16(other):
    def combined(x, y):
        return x + y, y * x, x / y, x - y, x < y

    *numbers, less = interpreted(combined, column("float16", [1.5]), column(other, [1]))[0]
    assert {str(number.dtype) for number in numbers} == {WITH_FLOAT16[other]}
    assert [float(number) for number in numbers] == [2.5, 1.5, 1.5, 0.5] and not less


def test_float16_rounds_each_step():
    def steps(x, y):
        return x * y + x, x + y, -x, abs(x), float(x), int(x), float32(x) * float32(y), x**2

    xs = np.random.default_rng(0).uniform(-40, 40, 30).astype(np.float16)
    for x, y, found in zip(xs, xs[::-1], interpreted(steps, xs, xs[::-1].copy()), strict=True):
        wanted = (x * y + x, x + y, -x, abs(x), x, int(x), np.float32(x) * np.float32(y))
        assert found[:-1] == wanted
        assert [type(f) for f in found[:5]] == [np.float16] * 5
        assert type(found[7]) is np.float32 and found[7] == np.float32(x) ** 2


# --- stores, and what must not be accepted --------------------------------------------------------


@pytest.mark.parametrize("out", TYPES)
@pytest.mark.parametrize("x", TYPES)
def test_a_store_converts(x, out):
    values = [v for v in VALUES[x] if x[0] != "f" or abs(v) < 100]
    if x[0] == "f" and out[0] in "ui":
        values = [v for v in values if v >= 0]

    def kernel(xs, results):
        for i in range(len(xs)):
            results[i] = xs[i]

    xs = column(x, values)
    results = np.zeros(len(xs), out)
    trace(kernel, 1, 1, xs, results)
    assert results.tobytes() == xs.astype(out).tobytes()


def test_random_expressions_equal_njit():
    """Nested expressions, in which a wrong type of an inner one would show."""

    def nested(x, y):
        a = (x * 3 - y) // 7 + (y % 11) * (x & 255)
        b = (a << 5) ^ (a >> 3) | (x & y)
        c = a / 3 + b * 0.5 if a > b else b / 7 - a
        d = -(a - b) % 13 + abs(x - y) // 4
        return a, b, c, d, a == d, min(a, d) + max(b, d)

    rng = random.Random(1)
    for x, y in [("int32", "int64"), ("uint32", "uint8"), ("uint32", "int32"), ("int64", "uint8")]:
        low = {"i": -(2**31), "u": 0}
        rows = [(rng.randint(low[x[0]], 2**31 - 1), rng.randint(0, 127)) for _ in range(40)]
        check(nested, column(x, [a for a, _ in rows]), column(y, [b for _, b in rows]))


@pytest.mark.parametrize("text", ["1 & x", "x | 1", "x ^ 2", "1 << x", "x >> 1", "~x"])
def test_bitwise_operators_refuse_floats(text):
    with pytest.raises(TypingError, match="needs integers, got float32"):
        interpreted(written(text), column("float32", (1.5,)))
    with pytest.raises(numba.TypingError):
        njit(written(text))(np.float32(1.5))
