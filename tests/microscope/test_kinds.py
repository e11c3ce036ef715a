"""microscope/cuda/kinds.py: small integers stay Python ints, and only the speed shows it."""

import ast
import itertools

import pytest
from numba import cuda, float32, int64, njit, uint64
from test_values import same, type_of

from tiled_matmul.microscope.cuda import kinds, stands_for, trace
from tiled_matmul.microscope.cuda.kinds import ARRAY, OTHER, SHAPE, STRIDES, Natural, Unsigned, join

seen: list = []
LIMIT = 7


def keep(value):
    """Stands in kernels for `seen.append`."""


stands_for(keep)(seen.append)


def arithmetic(i):
    u, v = uint64(i), uint64(i + 3)
    return u + v, u * v, u // uint64(3), v % uint64(4), u & v, u | v, u ^ v, u // v, u % v


def beyond_zero_and_shifts(i):
    u, v = uint64(i), uint64(i + 3)
    return u - v, v - u, uint64(2) - v, u << uint64(2), v >> uint64(1), u / v, u - v + uint64(3)


def functions(i):
    u, v = uint64(i), uint64(i + 3)
    return +u, -u, ~u, abs(u), int(u), float(u), not u, bool(u), int64(u), min(u, v), max(u, v)


def constants(i):
    return (
        uint64(5) * uint64(7),
        uint64(5) - uint64(7),
        uint64(9) // uint64(2),
        uint64(6),
        uint64(i) * uint64(LIMIT) + uint64(1),
        float32(uint64(i)) * float32(0.1),
    )


def comparisons(i):
    u, v = uint64(i), uint64(i + 3)
    return u < v, u == v, u >= uint64(2), u - v > uint64(2), u != uint64(i), not u - v


def wrapping(i):
    big = uint64(1)
    for _ in range(5):
        big = big * uint64(40_961)
    small = uint64(i) - uint64(3)
    small += uint64(3)
    down = uint64(5)
    for _ in range(i):
        down -= uint64(2)
    return big, big * big, big + uint64(i) * big * big, small, small * uint64(2), down


def after_wrapping(i):
    u, v = uint64(i), uint64(i + 3)
    w = u - v - uint64(i)
    wide = uint64(3)
    for _ in range(60):
        wide = wide * uint64(3)
        w = w - uint64(7) if w > v else w + uint64(5)
    zero = v - v
    divided = w // v, w % v, w // uint64(5), w % uint64(5), w // zero, w % zero, w / v
    mixed = w + i, w - i, w * 3, w & 6, w < i, w > -1, w < 9.5, w - i < 5
    same_sign = w & v, w | u, w ^ v, min(w, v), max(w, u), w < v, w == v, v - wide < w, wide + w
    alone = w, wide, int64(w), uint64(w), float32(w), -w, ~w, abs(w), bool(w), w >> uint64(3)
    return divided + mixed + same_sign + alone


def choices(i):
    u = uint64(i)
    chosen = u if i > 2 else uint64(LIMIT)
    later = uint64(0)
    for _ in range(i):
        later = later + chosen
    total = uint64(0)
    for k in range(uint64(i)):
        total += k * uint64(2)
    for k in range(uint64(1), uint64(9), uint64(3)):
        total += k
    return chosen, later, total


def in_tuples(i):
    pair = uint64(i), uint64(i + 3)
    total = uint64(0)
    for part in pair:
        total += part - uint64(1)
    return pair[0] - pair[1], pair[i % 2] - uint64(9), total


def signed(i):
    up, down, turns = i, i, 0
    for k in range(i, -3, -2):
        turns += k
    for k in range(i, i + 4):
        turns += k % 3 - k // 2
    for _ in range(4):
        down -= 3
        up = up + 1
    return up, down, down % 4, down // 4, turns, -i, abs(down), ~i, min(i, down)


def negative(i):
    wrapped = uint64(i - 3)
    total = uint64(0)
    for k in range(-2, i):
        total += uint64(k)
    return wrapped, total, wrapped + uint64(3)


FUNCTIONS = (
    *(arithmetic, beyond_zero_and_shifts, functions, constants, comparisons, wrapping),
    *(after_wrapping, choices, in_tuples, signed, negative),
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_small_integers_compute_as_numba_has_it(function):
    device = cuda.jit(device=True)(function)

    def kernel(turns):
        for i in range(turns):  # i is known to be small and not negative
            keep(device(i))

    seen.clear()
    trace(kernel, 1, 1, LIMIT)
    assert len(seen) == LIMIT
    compiled = njit(error_model="numpy")(function)
    expected = [compiled(i) for i in range(LIMIT)]
    types = compiled.overloads[compiled.signatures[0]].signature.return_type
    for i, ours, theirs in zip(itertools.count(), seen, expected, strict=False):
        assert len(ours) == len(theirs)
        for place, (mine, its, kind) in enumerate(zip(ours, theirs, types, strict=True)):
            assert same(mine, its), (i, place, mine, its)
            name = str(kind).replace("Literal[int](", "").split(")")[0]
            assert type_of(mine) == {"intp": "int64"}.get(name, name), (i, place, mine)


def test_a_small_unsigned_index_may_be_beyond_an_array():
    def kernel(x):
        i = uint64(cuda.threadIdx.x)
        x[i - uint64(1)] = 1
        x[i + uint64(1)] = 1

    import numpy as np

    x = np.zeros(4)
    t = trace(kernel, 1, 4, x)
    assert [(f.kind, f.index) for f in t.findings] == [
        ("out of bounds", (2**64 - 1,)),
        ("out of bounds", (4,)),
        *((("race", f.index)) for f in t.races),
    ]


# --- what is known --------------------------------------------------------------------------------


def test_kinds_are_equal_only_to_their_own():
    assert Natural(5) == Natural(5) != Unsigned(5) and Natural(5) != 5 and 5 != Unsigned(5)
    assert len({5, Natural(5), Unsigned(5), Natural(5)}) == 3


@pytest.mark.parametrize(
    ("x", "y", "both"),
    [
        (None, Natural(3), Natural(3)),
        (Unsigned(3), None, Unsigned(3)),
        (3, 5, 5),
        (Natural(6), 5, 6),
        (5, Natural(6), 6),
        (Natural(2), Natural(6), Natural(6)),
        (Unsigned(9), Unsigned(6), Unsigned(9)),
        (Natural(5), Unsigned(5), OTHER),
        (Unsigned(5), 5, OTHER),
        (ARRAY, 5, OTHER),
        ((Natural(3), ARRAY), (4, ARRAY), (4, ARRAY)),
        ((3,), (3, 3), OTHER),
    ],
)
def test_joining(x, y, both):
    found = join(x, y)
    assert found == both and type(found) is type(both)


@pytest.mark.parametrize(
    ("ends", "turns"),
    [
        ([4], Natural(31)),
        ([Natural(3), 40], Natural(40)),
        ([4, 4], 31),
        ([Natural(3), 40, Natural(2)], Natural(40)),
        ([Natural(3), 40, 2], 40),
        ([Unsigned(40)], Unsigned(40)),
        ([Natural(1), Unsigned(3)], Unsigned(31)),
        ([Unsigned(3), 3, 3], OTHER),
    ],
)
def test_turns_of_a_range(ends, turns):
    found = kinds.of_iterations(ends)
    assert found == turns and type(found) is type(turns)


def test_the_widest_of_a_kind_and_what_functions_are_compiled_for():
    assert kinds.widest(Unsigned(40)) == Unsigned(64) == kinds.widened(Unsigned(32))
    assert kinds.widest(Natural(40)) == Natural(63) == kinds.widened(Natural(32))
    assert kinds.widened(Unsigned(3)) == Unsigned(31)


def test_what_may_wrap_around_is_masked():
    one, zero = ast.Constant(1), ast.Constant(0)
    assert kinds.stays_unsigned(ast.Add(), one, 62, 62)
    assert not kinds.stays_unsigned(ast.Add(), one, 63, 2)
    assert kinds.stays_unsigned(ast.Mult(), one, 31, 32)
    assert not kinds.stays_unsigned(ast.Mult(), one, 32, 32)
    assert kinds.stays_unsigned(ast.Mod(), one, 5, 5)
    assert not kinds.stays_unsigned(ast.Mod(), zero, 5, 5)
    assert not kinds.stays_unsigned(ast.FloorDiv(), ast.Name("x"), 5, 5)
    for op in (ast.Sub(), ast.LShift(), ast.RShift(), ast.Div(), ast.Pow()):
        assert not kinds.stays_unsigned(op, one, 5, 5)


def test_shapes_are_never_negative_and_strides_may_be():
    assert kinds.part_of(SHAPE) == Natural(31) and kinds.part_of(STRIDES) == 31
    assert kinds.part_of((3, 4)) == 4 and kinds.part_of((3, OTHER)) == OTHER
    assert kinds.join(SHAPE, (3, 40)) == kinds.Many(40) and kinds.join(SHAPE, OTHER) == OTHER
