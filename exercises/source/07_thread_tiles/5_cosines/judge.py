"""07.5, cosines of two sets of vectors: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    each_its_own,
    tiled_cases,
)

from .._shared import (
    FAR,
    GIVEN,
    TILE_K,
    TX,
    TY,
    global_loads,
    launch,
    loads_of_a_thread,
    of,
    own,
    shared_loads,
    sizes,
)


def _lengths(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(axis=1))


def _cosines(case: Case, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines, and the sums of the sizes of their terms."""
    both = np.outer(_lengths(a), _lengths(b))
    return a @ b.T / both, abs(a) @ abs(b).T / both


def _last_step(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return the products over the lengths of what the last step has staged."""
    begin = (case.k - 1) // TILE_K * TILE_K
    return a @ b.T / np.outer(_lengths(a[:, begin:]), _lengths(b[:, begin:]))


def _by_columns(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return what comes of b[k, j], with k as its row, in the columns where that is there."""
    if case.k > case.n:
        return None
    c, square = np.full((case.m, case.n), np.nan), b[: case.k, : case.k]
    c[:, : case.k] = a @ square / np.outer(_lengths(a), _lengths(square.T))
    return c


def shared_loads_and_lengths(case: Case) -> int:
    """Return what the product loads, and each length once more, if threads share the lengths."""
    now = of(case)
    (across, down), _ = launch(case)
    return shared_loads(case) + across * down * TX * TY * (now["OWN_M"] + now["OWN_N"])


def sectors(case: Case) -> int:
    """Return the sectors of pieces of four neighbours, which may lie in two each."""
    return global_loads(case) // TILE_K * 2


EXERCISE = Exercise(
    name="07.5",
    title="cosines of two sets of vectors",
    points=4,
    entry="cosines",
    parameters=("a", "b", "c"),
    kind="cuda",
    rules=CUDA,
    limits=Limits(cost=4),
    given=GIVEN,
    launch=launch,
    operation=Operation(
        arrays=("a", "b", "c"),
        shapes=lambda case: ((case.m, case.k), (case.n, case.k), (case.m, case.n)),
        result=_cosines,
        terms=lambda case: 2 * case.k + 8,
    ),
    cases=(
        Case(16, 64, 20, draw="normal"),
        Case(9, 65, 10, draw="normal", order="reverse"),
        Case(13, 35, 21, draw="normal", given=sizes(6, 1), order="shuffle"),
        Case(5, 100, 13, draw="positive", given=sizes(2, 3), order="reverse"),
        Case(12, 3, 9, draw="normal", given=sizes(8, 2)),
        *tiled_cases(4, far_k=300, far=FAR, draw="normal"),
    ),
    large=(
        Case(517, 389, 301, draw="normal"),
        Case(300, 513, 333, draw="normal", given=sizes(4, 4)),
    ),
    slips=(
        Slip(
            lambda case, a, b: a @ b.T,
            "product",
            "That is the product alone: it has to be divided by the lengths of both vectors.",
        ),
        Slip(
            lambda case, a, b: a @ b.T / np.outer(_lengths(a), _lengths(b)) ** 2,
            "root",
            "That is the product over the squares of the lengths: a length is the square root of "
            "the sum of the squares.",
        ),
        Slip(
            lambda case, a, b: a @ b.T / _lengths(a)[:, None],
            "one length",
            "That is the product over the length of the vector of `a` alone.",
        ),
        Slip(
            lambda case, a, b: a @ b.T / _lengths(b),
            "one length",
            "That is the product over the length of the vector of `b` alone.",
        ),
        Slip(
            _by_columns,
            "by columns",
            "That is for vectors that lie in the columns of `b`. They are its rows, as those of "
            "`a`: element k of vector j is `b[j, k]`.",
        ),
        Slip(
            _last_step,
            "last step",
            "The lengths are those of the last step alone: the sums of the squares have to go on, "
            "like the products.",
        ),
        Slip(
            lambda case, a, b: a @ b.T / np.outer(abs(a).sum(axis=1), abs(b).sum(axis=1)),
            "root",
            "That is the product over the sums of the sizes: a length is the square root of the "
            "sum of the squares.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            global_loads,
            "C is right, but it loads more from global memory than the product alone: the squares "
            "come from elements that are staged anyway.",
            "sharing",
        ),
        Count(
            "global load sectors",
            sectors,
            "C is right, but the loads of a warp from global memory are spread over many sectors: "
            "neighbouring threads have to load neighbours in a row of `a` or `b`.",
            "sectors",
        ),
        Count(
            "shared loads",
            shared_loads_and_lengths,
            "C is right, but a thread loads more from shared memory than the product alone. What "
            "is multiplied is in a register; its square needs no load.",
            "counts",
            best=shared_loads,
        ),
        Count(
            "bank conflicts",
            lambda case: 0,
            "C is right, with the fewest loads, but an access to shared memory has bank conflicts. "
            "Look at the store as well: to which rows of the tile does a warp store, and to which "
            "columns?",
            "conflicts",
            best=lambda case: 0,
        ),
        ONCE,
        *each_its_own(own, loads=lambda case: 2 * loads_of_a_thread(case)),
        NO_NEEDLESS_BARRIERS,
    ),
    hints={
        **{"sharing": 1, "sectors": 2, "counts": 1, "conflicts": 3, "once": 1, "needless": 2},
        **{
            "product": 1,
            "root": 1,
            "one length": 1,
            "last step": 1,
            "by columns": 2,
            "race": 2,
            "race of c": 2,
        },
        **{"out of bounds": 2, "stale": 1, "not finite": 1, "uninitialised read": 2},
        **{"beyond a tile": 3, "swapped indices": 2},
        "other": 1,
    },
)
