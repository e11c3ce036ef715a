"""18.1, TF32: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

CUT = 13  # bits that are left out
ALL, SIGN, EXPONENT, STORED = 0xFFFF_FFFF, 0x8000_0000, 0x7F80_0000, 0x007F_FFFF
WAYS = ("cut", "away", "even")
LARGEST = 0x7F7F_FFFF


def _even(bits: int, half: int) -> int:
    return half - 1 + (bits // (2 * half) & 1)


def _narrowed(
    away: Callable = lambda bits, half: half,
    even: Callable = _even,
    cut: int = CUT,
    kept: int = ALL,
    of: tuple[str, ...] = WAYS,
) -> Callable:
    """Return an answer, right if nothing is changed. It makes its mistake in the ways `of`."""

    def answer(bits: int, way: str) -> int | None:
        if way not in of:
            return None
        half = 1 << (cut - 1)
        up = 0 if way == "cut" else {"away": away, "even": even}[way](bits, half)
        return (bits + up) & kept & -(1 << cut)

    return answer


narrowed = _narrowed()


def _unmasked(bits: int, way: str) -> int | None:
    return None if way == "cut" else bits + (0x1000 if way == "away" else _even(bits, 0x1000))


def _masked_first(bits: int, way: str) -> int | None:
    cut = bits & -(1 << CUT)
    return None if way == "cut" else cut + (0x1000 if way == "away" else _even(bits, 0x1000))


def _carry_lost(bits: int, way: str) -> int:
    return bits & (SIGN | EXPONENT) | narrowed(bits & STORED, way) & STORED


def _carry_refused(bits: int, way: str) -> int:
    up = narrowed(bits, way)
    return up if up & EXPONENT == bits & EXPONENT else narrowed(bits, "cut")


def _towards_plus(bits: int, way: str) -> int | None:
    """Return what comes of halves that go up where `"away"` asks for away from zero."""
    return (bits + (0x0FFF if bits & SIGN else 0x1000)) & -(1 << CUT) if way == "away" else None


def _subtracted(bits: int, way: str) -> int | None:
    if way == "cut" or not bits & SIGN or bits - SIGN < 0x1000:
        return None
    return (bits - (0x1000 if way == "away" else _even(bits, 0x1000))) & -(1 << CUT)


def _case(random: np.random.Generator) -> tuple:
    """Return a pattern; of three, one is a half, and of four, one has ten ones."""
    bits = int(random.integers(LARGEST))
    if random.random() < 1 / 3:
        bits = bits & -(1 << CUT) | 0x1000
    if random.random() < 1 / 4:
        bits |= 0x007F_E000
    return min(bits, LARGEST) | SIGN * int(random.integers(2)), str(random.choice(WAYS))


NEAREST = ("away", "even")

EXERCISE = Exercise(
    name="18.1",
    title="TF32",
    points=3,
    entry="narrowed",
    parameters=("bits", "way"),
    kind="values",
    rules=VALUES,
    answer=narrowed,
    cases=(
        Call((0x3F80_7FFF, "cut")),
        Call((0x3F80_B800, "away")),
        Call((0x3F80_8000, "away")),
        Call((0x3F80_B000, "away")),
        Call((0x3F80_9000, "away")),
        Call((0x3F80_8800, "away")),
        Call((0x3F80_9000, "even")),
        Call((0x3F80_B000, "even")),
        Call((0x3F80_B800, "even")),
        Call((0xBF80_7FFF, "cut")),
        # Less than half: only what is subtracted goes wrong here.
        Call((0xBF80_A800, "away")),
        Call((0xBF80_9000, "away")),
        Call((0xBF80_9800, "even")),
        Call((0x3FFF_F800, "away")),
        Call((0x3FFF_F000, "even")),
        Call((0xBFFF_F800, "even")),
        *(Call(draw=_case) for _ in range(16)),
    ),
    slips=(
        # Some have one result at a half. Then a copy tells them apart by the order here.
        Slip(
            lambda bits, way: bits,
            "whole",
            "That is the float32 number as it was: its last 13 bits have to be 0.",
        ),
        Slip(
            _narrowed(cut=CUT + 1, of=("cut",)),
            "mask",
            "That keeps 9 bits of the significand: of the 23, the first 10 stay and 13 go.",
        ),
        Slip(
            _narrowed(cut=CUT - 1, of=("cut",)),
            "mask",
            "That keeps 11 bits of the significand: of the 23, the first 10 stay and 13 go. The "
            "11th significant bit of TF32 is the leading 1, which is not stored.",
        ),
        Slip(
            lambda bits, way: bits & (1 << CUT) - 1,
            "mask",
            "Those are the 13 bits that go. Return the others.",
        ),
        Slip(
            lambda bits, way: narrowed(bits, way) >> CUT,
            "shifted",
            "Those are the 19 bits alone. A pattern has 32: shift them back to their places.",
        ),
        Slip(
            _unmasked,
            "unmasked",
            "The last 13 bits are not 0: after the sum they have to be cut off.",
        ),
        Slip(
            _masked_first,
            "unmasked",
            "The 13 bits were cut off before the sum, and they are what decides. Add first, then "
            "cut.",
        ),
        Slip(
            _narrowed(kept=ALL ^ SIGN),
            "sign",
            "The number is negative, and the result is not: the sign bit stays.",
        ),
        Slip(
            lambda bits, way: narrowed(bits, way) - (1 << 32) if bits & SIGN else None,
            "sign",
            "That is a signed integer. A pattern is not negative: the sign bit counts as 2³¹.",
        ),
        Slip(
            _towards_plus,
            "sign",
            "For a negative number, that rounds a half towards zero. The sign is a bit of its own: "
            "the sum is the same for both signs.",
        ),
        Slip(
            _subtracted,
            "sign",
            "For a negative number, something was subtracted. The sign is a bit of its own: the "
            "sum is the same for both signs.",
        ),
        Slip(
            _carry_lost,
            "carry",
            "The significand is right and the exponent is one too small: after ten ones, the carry "
            "goes into the exponent, and has to.",
        ),
        Slip(
            _carry_refused,
            "carry",
            "That is not rounded up, and should be: after ten ones, the carry goes into the "
            "exponent, and that is right.",
        ),
        Slip(
            lambda bits, way: narrowed(bits, way) & (SIGN | STORED),
            "exponent",
            "The exponent is gone: all of its 8 bits stay.",
        ),
        Slip(
            _narrowed(away=_even, of=("away",)),
            "ties",
            "That rounds a half to even. Here it goes away from zero, so always up in the 31 bits.",
        ),
        Slip(
            _narrowed(away=lambda bits, half: half - 1, of=("away",)),
            "ties",
            "That rounds a half towards zero. Here it goes away from zero.",
        ),
        Slip(
            _narrowed(even=lambda bits, half: half, of=("even",)),
            "even",
            "That rounds a half away from zero. Here it goes to the one whose last kept bit is 0.",
        ),
        Slip(
            _narrowed(even=lambda bits, half: half - 1, of=("even",)),
            "even",
            "That rounds a half towards zero. Here it goes up if the last kept bit is 1.",
        ),
        Slip(
            _narrowed(away=lambda bits, half: 0, even=lambda bits, half: 0, of=NEAREST),
            "never up",
            "That cuts the bits off. Here the number is rounded to the nearest one, which may be "
            "the next one up.",
        ),
        Slip(
            _narrowed(
                away=lambda bits, half: 2 * half - 1,
                even=lambda bits, half: 2 * half - 1,
                of=NEAREST,
            ),
            "half",
            "Whatever is left out, it is rounded up. Below half a unit of the last kept bit, the "
            "nearest one is the one below.",
        ),
        Slip(
            _narrowed(
                away=lambda bits, half: 2 * half, even=lambda bits, half: 2 * half, of=NEAREST
            ),
            "half",
            "A whole unit of the last kept bit was added: half a unit rounds to the nearest.",
        ),
    ),
    hints={
        **{"whole": 1, "mask": 1, "shifted": 1, "unmasked": 1, "never up": 2, "half": 2, "ties": 2},
        **{"even": 3, "sign": 2, "carry": 2, "exponent": 1, "nothing": 1, "value": 2},
        **{"forbidden": 1, "error": 1, "other": 1},
    },
)
