"""What the exercises of chapter 4 share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import NO_NEEDLESS_BARRIERS, ONCE, Case, Slip

ABC = ("a", "b", "c")


def _first_twice(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b + np.outer(a[:, 0], b[0])


FIRST_TWICE = Slip(
    _first_twice,
    "first twice",
    "The product of k = 0 is in each sum twice: the sum begins with it, and then the loop begins "
    "at k = 0 as well. Begin one with zero, or the other at 1.",
)

WHOLE_NUMBERS = Slip(
    lambda case, a, b: np.trunc(a) @ np.trunc(b),
    "operation",
    "The factors were cut to whole numbers: multiply them as they are, without int().",
)

STORED_ONCE = replace(
    ONCE,
    message="C is right, but it is written again and again. Keep the sum in a variable of the "
    "thread, and store it once, behind the loop over k.",
    diagnosis="sum in C",
)

NO_BARRIER = replace(
    NO_NEEDLESS_BARRIERS,
    most=lambda case: 0,
    message="C is right, and the threads wait for each other, although none of them needs what "
    "another one writes. Without shared memory no barrier is needed.",
)

A_GUARD = (
    "Guard the access with the array's own shape, each index with its own axis. If your kernel has "
    "a guard, it lets this access through. A guard that works compares both indices, each by <, "
    "and joins the two comparisons with `and`."
)
