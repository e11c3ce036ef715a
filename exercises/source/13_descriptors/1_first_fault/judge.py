"""13.1, the wrong phase: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


def right_phase(side: str, stages: int, i: int) -> int:
    """Return the phase that has to be over before iteration i."""
    round_of_buffer = i // stages % 2
    return round_of_buffer if side == "full" else 1 - round_of_buffer


def first_fault(
    side: str, stages: int, phases: list[int], early: list[bool], right=right_phase
) -> tuple[int, str]:
    """Return (the first iteration that goes wrong, what it does)."""
    for i, phase in enumerate(phases):
        if phase != right(side, stages, i):
            return i, "forever" if early[i] else "too soon"
    return len(phases), "right"


def _any(random: np.random.Generator) -> tuple:
    """Return a ring of which most phases are right; the first wrong one comes at any time."""
    side = ("full", "empty")[int(random.integers(2))]
    stages, count = int(random.integers(1, 6)), int(random.integers(6, 25))
    early = [bool(x) for x in random.integers(0, 2, count)]
    phases = [right_phase(side, stages, i) for i in range(count)]
    if side == "empty":
        early[:stages] = [True] * min(stages, count)
    for i in random.integers(0, count + count // 2, size=2):
        if i < count:
            phases[i] = 1 - phases[i]
    return side, stages, phases, early


def _by(right) -> object:
    """Return what an answer returns that takes other phases for right."""
    return lambda *call: first_fault(*call, right=right)


def _other_words(*call) -> tuple[int, str]:
    i, what = first_fault(*call)
    return i, {"forever": "too soon", "too soon": "forever"}.get(what, what)


def _last(side: str, stages: int, phases: list[int], early: list[bool]) -> tuple[int, str]:
    found = (len(phases), "right")
    for i, phase in enumerate(phases):
        if phase != right_phase(side, stages, i):
            found = i, "forever" if early[i] else "too soon"
    return found


def _late_right_phase(side: str, stages: int, phases: list[int], early: list[bool]) -> tuple:
    """What comes of taking each wait that begins before its flip for a fault."""
    for i, phase in enumerate(phases):
        if phase != right_phase(side, stages, i) or not early[i]:
            return i, "forever" if early[i] else "too soon"
    return len(phases), "right"


EXERCISE = Exercise(
    name="13.1",
    title="the wrong phase",
    points=3,
    entry="first_fault",
    parameters=("side", "stages", "phases", "early"),
    kind="values",
    rules=VALUES,
    answer=first_fault,
    cases=(
        Call(("full", 3, [0] * 8, [True, True, False, False, True, False, True, True])),
        Call(("full", 3, [0] * 8, [False] * 8)),
        Call(("full", 3, [0] * 8, [True] * 8)),
        Call(("empty", 3, [1] * 8, [True] * 3 + [False] * 5)),
        Call(("empty", 3, [0] * 8, [True] * 8)),  # nobody begins
        Call(("empty", 2, [1, 1, 0, 0, 1, 1], [True, True, False, True, False, True])),
        Call(("full", 2, [0, 0, 1, 1, 0, 0], [False, True, False, True, False, True])),
        Call(("full", 2, [0, 1, 0, 1, 0, 1], [True] * 6)),
        *(Call(draw=_any) for _ in range(16)),
    ),
    slips=(
        Slip(
            _other_words,
            "words",
            "The iteration is right, and the word is not: is the barrier's bit the phase that is "
            "waited for, before the flip and after it?",
        ),
        Slip(
            _by(lambda side, stages, i: i // stages % 2),
            "side",
            "That takes the same phases for both sides: the copying side waits for the other ones, "
            "as its first copies need no flip.",
        ),
        Slip(
            _by(lambda side, stages, i: i // stages % 2 ^ (side == "full")),
            "side",
            "The two sides are exchanged: in the first round, the multiplying side waits for phase "
            "0 to be over, the copying side for phase 1.",
        ),
        Slip(
            _by(lambda side, stages, i: i % 2 ^ (side == "empty")),
            "rounds",
            "That has the phase change from one buffer to the next. Each buffer has its barrier, "
            "which flips once in each round of the ring: what counts is `i // stages`.",
        ),
        Slip(
            _by(lambda side, stages, i: min(1, i // stages) ^ (side == "empty")),
            "rounds",
            "That lets the phase change once: it changes back in the next round.",
        ),
        Slip(
            _by(lambda side, stages, i: int(side == "empty")),
            "rounds",
            "That has one phase for all rounds: a barrier's bit flips in each round.",
        ),
        Slip(
            _late_right_phase,
            "late",
            "A wait for the right phase may begin before the flip: it ends with the flip, as it "
            "should.",
        ),
        Slip(_last, "first", "That is the last fault: the first one is asked for."),
    ),
    hints={
        **{"nothing": 1, "side": 1, "rounds": 1, "late": 2, "words": 3, "first": 2},
        **{"value": 1, "forbidden": 1, "error": 2, "other": 2},
    },
)
