"""18.2, fused or not: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

FLOAT32, TF32 = 24, 11  # significant bits
WAYS = ("fused", "unfused", "narrow")


def rounded(x: int, bits: int) -> int:
    """Return a whole number rounded to so many significant bits, halves to even."""
    unit = 2 ** max(0, abs(x).bit_length() - bits)
    below, rest = divmod(x, unit)
    return unit * (below + (2 * rest > unit or (2 * rest == unit and below % 2 == 1)))


def _cut(x: int, bits: int) -> int:
    unit = 2 ** max(0, abs(x).bit_length() - bits)
    return abs(x) // unit * unit * (1 if x > 0 else -1)


def _to(bits: int) -> Callable[[int], int]:
    return lambda x: rounded(x, bits)


def _exact(x: int) -> int:
    return x


FULL, SHORT = _to(FLOAT32), _to(TF32)


def _summed(
    a: list,
    b: list,
    x: Callable[[int], int] = _exact,
    y: Callable[[int], int] = _exact,
    product: Callable[[int], int] = _exact,
    total: Callable[[int], int] = FULL,
    first: Callable[[int], int] | None = None,
    end: Callable[[int], int] = _exact,
) -> int:
    """Return the sum of products, with what is done to factors, products, sums and at the end."""
    result = 0
    for index, (left, right) in enumerate(zip(a, b, strict=True)):
        step = first if first is not None and index == 0 else total
        result = step(result + product(x(left) * y(right)))
    return end(result)


STEPS: dict[str, dict] = {
    "fused": {},
    "unfused": {"product": FULL},
    "narrow": {"x": SHORT, "y": SHORT},
}


def dot(a: list, b: list, way: str) -> int:
    """Return the sum of products as one of three kernels has it."""
    return _summed(a, b, **STEPS[way])


def _with(*ways: str, **changes: Callable) -> Callable:
    """Return what comes of a mistake that is made in these ways, None in the others."""

    def answer(a: list, b: list, way: str) -> int | None:
        return _summed(a, b, **{**STEPS[way], **changes}) if way in ways else None

    return answer


def _case(random: np.random.Generator) -> tuple:
    count = int(random.integers(4, 8))
    a, b = (random.integers(-(2**16), 2**16, count).tolist() for _ in range(2))
    return a, b, str(random.choice(WAYS))


# In these, every usual mistake gives a result of its own.
ONES = [4097, 1, 1, 1, 1, 1, 1]
LEFT, RIGHT = [9333, 8791, 6084, 6437], [9972, 5830, 2698, 6811]

EXERCISE = Exercise(
    name="18.2",
    title="fused or not",
    points=3,
    entry="dot",
    parameters=("a", "b", "way"),
    kind="values",
    rules=VALUES,
    answer=dot,
    cases=(
        Call((ONES, ONES, "fused")),
        Call((ONES[:-1], ONES[:-1], "unfused")),
        Call((LEFT, RIGHT, "narrow")),
        *(Call(([-4096, 4097], [4096, 4097], way)) for way in WAYS),
        *(Call((LEFT, RIGHT, way)) for way in ("fused", "unfused")),
        *(Call(draw=_case) for _ in range(15)),
    ),
    slips=(
        Slip(
            _with("fused", product=FULL),
            "fused",
            "The product was rounded before it was added, which is the unfused result. Here the "
            "sum alone is rounded.",
        ),
        Slip(
            _with("unfused", product=_exact),
            "fused",
            "The product was not rounded before it was added, which is the fused result. Here it "
            "is rounded, and then the sum is.",
        ),
        Slip(
            _with(*WAYS, total=_exact, end=FULL),
            "end",
            "The sum was rounded once, at the end. A kernel keeps it in a register of 32 bits, so "
            "it is rounded after each addition.",
        ),
        Slip(
            _with(*WAYS, total=_exact),
            "never",
            "The sum was not rounded: it is rounded to 24 bits after each addition.",
        ),
        Slip(
            _with(*WAYS, first=_exact),
            "first",
            "The first product was taken as it is. The sum starts from 0, so 0 plus the first "
            "product is rounded too.",
        ),
        Slip(
            _with("narrow", x=_exact, y=_exact),
            "factors",
            "The factors were not rounded: that is the fused result.",
        ),
        Slip(
            _with("narrow", x=_exact, y=_exact, product=FULL),
            "factors",
            "The factors were not rounded: that is the unfused result.",
        ),
        Slip(
            _with("narrow", x=_exact, y=_exact, product=SHORT),
            "factors",
            "The product was rounded to 11 bits. It is the factors that are, before they are "
            "multiplied.",
        ),
        Slip(
            _with("narrow", y=_exact),
            "factors",
            "Only the factor from a was rounded: both of them are.",
        ),
        Slip(
            _with("narrow", x=_exact),
            "factors",
            "Only the factor from b was rounded: both of them are.",
        ),
        Slip(
            _with("narrow", x=_to(TF32 - 1), y=_to(TF32 - 1)),
            "factors",
            "The factors were rounded to 10 bits. TF32 stores 10, and has a leading 1 besides: 11.",
        ),
        Slip(
            _with("narrow", x=lambda x: _cut(x, TF32), y=lambda y: _cut(y, TF32)),
            "factors",
            "The bits of the factors beyond 11 were cut off. Here they are rounded.",
        ),
        Slip(
            _with("narrow", total=SHORT),
            "sums",
            "The sum was rounded to 11 bits. Only the factors have so few: sums have 24.",
        ),
        Slip(
            _with("narrow", product=SHORT),
            "sums",
            "The product was rounded to 11 bits as well. Only the factors have so few.",
        ),
        Slip(
            _with(*WAYS, total=_to(FLOAT32 - 1)),
            "sums",
            "The sum was rounded to 23 bits. float32 stores 23, and has a leading 1 besides: 24.",
        ),
        Slip(
            lambda a, b, way: FULL(a[-1] * b[-1]) if a else None,
            "last",
            "That is the last product alone: add it to what was added up before.",
        ),
        Slip(
            lambda a, b, way: 0,
            "empty",
            "Nothing was added up.",
        ),
    ),
    hints={
        **{"fused": 2, "end": 1, "never": 1, "first": 1, "factors": 3, "sums": 3, "last": 1},
        **{"empty": 1, "nothing": 1, "value": 2, "forbidden": 1, "error": 1, "other": 1},
    },
)
