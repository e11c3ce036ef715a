"""04.1, the guard: what is asked for, and how an answer is judged."""

from __future__ import annotations

from tiled_matmul.grader.spec import CUDA, Case, Count, Exercise, Slip, each_its_own

from .._shared import A_GUARD, ABC, FIRST_TWICE, NO_BARRIER, STORED_ONCE, WHOLE_NUMBERS

BLOCK = (8, 4)  # of 04.1, as (x, y): what confuses the two does not come out right by luck


def _tall(case: Case) -> tuple:
    x, y = block = case.given.get("BLOCK", BLOCK)
    return (-(-case.n // x), -(-case.m // y)), block


EXERCISE = Exercise(
    name="04.1",
    title="the guard",
    points=3,
    entry="guarded",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    launch=_tall,
    cases=(
        Case(5, 10, 7),
        Case(3, 17, 11, draw="normal", order="shuffle", given={"BLOCK": (4, 2)}),
        # Each size is the large one in its turn, and K is 1.
        Case(70, 3, 5, draw="normal"),
        Case(2, 75, 4, order="reverse"),
        Case(3, 2, 70, draw="normal"),
        Case(6, 9, 1, draw="wide"),
        Case(11, 8, 2, given={"BLOCK": (3, 7)}),
        Case(9, 13, 3, given={"BLOCK": (5, 5)}, order="reverse"),
        Case(261, 2, 2),
    ),
    large=(Case(517, 389, 301, draw="normal"),),
    slips=(
        FIRST_TWICE,
        WHOLE_NUMBERS,
        Slip(
            lambda case, a, b: a.sum(axis=1)[:, None] + b.sum(axis=0),
            "operation",
            "The sums add a[row, k] and b[k, col]; a product multiplies the two.",
        ),
    ),
    counts=(
        NO_BARRIER,
        Count(
            "global loads",
            lambda case: 2 * case.m * case.n * case.k,
            "C is right, but a thread loads more than its row of A and its column of B. Keep the "
            "sum in a variable of the thread, and never read C.",
            "sum in C",
        ),
        STORED_ONCE,
        *each_its_own(),
    ),
    remedies={"out of bounds": A_GUARD},
    hints={
        **{"out of bounds": 2, "negative index": 1, "race": 1, "stale": 1, "never written": 1},
        **{"transposed": 1, "part of k": 3, "sum in C": 3, "error": 3, "timeout": 3, "other": 2},
        **{"on top": 3, "swapped indices": 3, "out of bounds of c": 2, "along K": 3},
        **{"restarted": 3, "first twice": 3, "guard": 2, "no store": 3, "library": 3, "clamped": 2},
        **{"operation": 3, "unbound": 3},
    },
)
