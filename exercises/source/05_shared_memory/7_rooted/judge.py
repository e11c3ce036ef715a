"""05.7, a tree of sums: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import (
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
    each_its_own,
)

from .._shared import BLOCKS

THREADS = 8


def _threads(case: Case) -> int:
    return case.given.get("THREADS", THREADS)


def _root(squares: np.ndarray) -> np.ndarray:
    return np.sqrt(squares.mean(axis=1, keepdims=True))


def _result(case: Case, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    right = a / _root(a**2)
    return right, abs(right)


def _own_part(case: Case, a: np.ndarray) -> np.ndarray:
    """What comes of a thread that divides by the root of the squares that it has added itself."""
    threads = np.arange(case.n) % _threads(case)
    own = np.stack([(a[:, threads == t] ** 2).sum(axis=1) for t in threads], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return a / np.sqrt(own / case.n)


def _of_columns(first: int, step: int):
    """Return what comes of the sums of some of the threads."""

    def made(case: Case, a: np.ndarray) -> np.ndarray | None:
        threads = np.arange(case.n) % _threads(case)
        taken = (threads >= first) & (threads % step == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return a / np.sqrt((a[:, taken] ** 2).sum(axis=1, keepdims=True) / case.n)

    return made


def _first_columns(case: Case, a: np.ndarray) -> np.ndarray:
    """What comes of one element for each thread."""
    squares = (a[:, : _threads(case)] ** 2).sum(axis=1, keepdims=True)
    return a / np.sqrt(squares / case.n)


def _own(case: Case) -> int:
    """Return how many columns of the row belong to a thread at most."""
    return cover(case.n, _threads(case))


def _loads(case: Case) -> int:
    """Return what a thread loads: its columns three times, and sums of others."""
    return 3 * _own(case) + 2 * _levels(case) + 4


def _levels(case: Case) -> int:
    return _threads(case).bit_length() - 1


EXERCISE = Exercise(
    name="05.7",
    title="a tree of sums",
    points=4,
    entry="rooted",
    parameters=("a", "c"),
    kind="cuda",
    rules=BLOCKS,
    given={"THREADS": THREADS},
    launch=lambda case: ((case.m, 1), (_threads(case), 1)),
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.n), (case.m, case.n)),
        result=_result,
        terms=lambda case: case.n + 4,
    ),
    cases=(
        Case(3, 20, 1, draw="normal"),
        Case(2, 37, 1, draw="positive", order="reverse"),
        Case(3, 9, 1, draw="normal", order="shuffle", given={"THREADS": 4}),
        # Fewer columns than threads, one column, and far more than threads.
        Case(4, 5, 1, draw="normal", order="reverse"),
        Case(5, 1, 1, draw="normal"),
        Case(2, 267, 1, draw="normal", order="shuffle"),
        Case(261, 2, 1, draw="normal", given={"THREADS": 2}),
        # Two and four warps a block: what orders one warp does not order these.
        Case(2, 150, 1, draw="normal", given={"THREADS": 64}, order="reverse"),
        Case(2, 70, 1, draw="positive", given={"THREADS": 128}, order="shuffle"),
        Case(1, 16, 1, draw="normal", given={"THREADS": 16}),
        Case(1, 700, 1, draw="normal", given={"THREADS": 256}),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"THREADS": 128}),),
    slips=(
        Slip(
            lambda case, a: a / np.sqrt((a**2).sum(axis=1, keepdims=True)),
            "formula",
            "C is divided by the root of the sum of the squares: the mean is that sum divided by "
            "the number of columns.",
        ),
        Slip(
            lambda case, a: a / (a**2).mean(axis=1, keepdims=True),
            "formula",
            "C is divided by the mean of the squares, and not by its root.",
        ),
        Slip(
            lambda case, a: a / np.sqrt((a**2).sum(axis=1, keepdims=True) / _threads(case)),
            "formula",
            "The sum of the squares is divided by the number of threads: a mean is over the N "
            "columns of the row, a.shape[1].",
        ),
        Slip(
            lambda case, a: a / _root(abs(a)),
            "formula",
            "The sum is one of the sizes of the elements: square each one.",
        ),
        Slip(
            lambda case, a: a / np.sqrt((a**2).mean()),
            "formula",
            "All rows are divided by one number, which is over all of A: each row has its own.",
        ),
        Slip(
            _own_part,
            "tree",
            "Each thread divides by the root of its own part of the sum. The block has to join the "
            "parts of all its threads, and all threads read the whole sum.",
        ),
        Slip(
            _of_columns(0, 2),
            "tree",
            "The parts of the threads with odd numbers are left out: the last level of the tree "
            "adds part 1 to part 0.",
        ),
        Slip(
            _first_columns,
            "walk",
            "Only as many columns as there are threads are in the sum: each thread has to walk "
            "along the whole row in steps of THREADS.",
        ),
    ),
    counts=(
        ONCE,
        Count(
            "global loads",
            lambda case: 3 * case.m * case.n,  # a[i, j] * a[i, j] is one load once compiled
            "C is right, by the long way: an element of A is loaded more than twice. A thread adds "
            "up the columns from its own place on in steps of THREADS, and shares its sum.",
        ),
        Count(
            "shared loads of a thread",
            lambda case: 2 * _levels(case) + 4,
            "C is right, but one thread reads the sums of all others. In a tree, half of the "
            "threads add one sum each, then half of these, and so on.",
            "tree",
            best=lambda case: 2 * _levels(case) + 1,
        ),
        *each_its_own(_own, loads=_loads, shuffles=12),  # in a tree, twice
        Count(
            "barriers",
            lambda case: case.m * (2 * _levels(case) + 4),
            "C is right, but the sums are joined one after the other: in a tree, each barrier "
            "halves the number of sums.",
        ),
        replace(
            NO_NEEDLESS_BARRIERS,
            most=lambda case: 0,
            message="C is right, and at some barriers the block waits for nothing: one is needed "
            "before each level of the tree, and one before all threads read the whole sum.",
            best=lambda case: 0,
        ),
    ),
    remedies={
        "race": "At each level only the first half of the threads adds, and the other half writes "
        "nothing that they read. If the two accesses lie in different iterations of a loop, the "
        "iterations need a cuda.syncthreads() between them, in each one, that all threads of the "
        "block reach.",
        "out of bounds": "Guard the access with the array's own shape: a thread's columns begin at "
        "its own place and end at a.shape[1].",
    },
    limits=Limits(cost=0.5),
    hints={
        **{"stale": 1, "out of bounds": 1, "race": 3, "race on the next turn": 3},
        **{"divergent barrier": 3, "uninitialised read": 2, "beyond a tile": 2, "counts": 1},
        **{"error": 2, "other": 1, "formula": 1, "tree": 2, "walk": 1, "needless": 3},
        **{"same element": 1, "staged twice": 1, "once": 1, "not finite": 1, "unbound": 1},
    },
)
