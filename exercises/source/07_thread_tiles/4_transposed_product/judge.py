"""07.4, Aᵀ·B with strided owners: what is asked for, and how an answer is judged."""

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
    global_loads,
    launch,
    loads_of_a_thread,
    own,
    sectors_of_rows,
    shared_loads,
    sizes,
)


def _not_transposed(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    return a @ b if case.m == case.k else None


EXERCISE = Exercise(
    name="07.4",
    title="Aᵀ·B with strided owners",
    points=4,
    entry="transposed_product",
    parameters=("a", "b", "c"),
    kind="cuda",
    rules=CUDA,
    limits=Limits(cost=3),
    given=GIVEN,
    launch=launch,
    operation=Operation(
        arrays=("a", "b", "c"),
        shapes=lambda case: ((case.k, case.m), (case.k, case.n), (case.m, case.n)),
        product=lambda case, a, b: (a.T, b),
    ),
    cases=(
        Case(12, 70, 12),
        Case(9, 65, 10, draw="normal", order="reverse"),
        Case(11, 35, 21, draw="normal", given=sizes(3, 1), order="shuffle"),
        Case(5, 100, 13, draw="normal", given=sizes(2, 3, 6), order="reverse"),
        Case(12, 3, 9, draw="wide", given=sizes(5, 2, 2)),
        Case(9, 5, 20, given=sizes(8, 1, 16)),  # tiles of A with more elements than threads
        *tiled_cases(4, far_k=300, far=FAR),
    ),
    large=(
        Case(517, 389, 301, draw="normal"),
        Case(300, 513, 333, draw="normal", given=sizes(4, 4, 16)),
    ),
    slips=(
        Slip(
            _not_transposed,
            "not transposed",
            "That is A·B. Element [i, j] of C sums `a[k, i] * b[k, j]`: k is the row of both.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            global_loads,
            "C is right, but it loads more from global memory than the tiles hold: a block loads "
            "its parts of A and B once, and multiplies what lies in shared memory.",
            "sharing",
        ),
        Count(
            "global load sectors",
            sectors_of_rows,
            "C is right, but the loads of a warp from global memory are spread over many sectors: "
            "neighbours in x have to load neighbours in a row of `a` or `b`.",
            "sectors",
        ),
        Count(
            "shared loads",
            shared_loads,
            "C is right, but a thread loads an element from shared memory more than once in a step "
            "of k. Keep its OWN_M elements of A, and each of its OWN_N of B, in registers.",
            "counts",
            best=shared_loads,
        ),
        Count(
            "bank conflicts",
            lambda case: 0,
            "C is right, with the fewest loads, but an access to shared memory has bank conflicts. "
            "In which banks are the elements that the 32 lanes of a warp access at one time?",
            "conflicts",
            best=lambda case: 0,
        ),
        ONCE,
        *each_its_own(own, loads=loads_of_a_thread),
        NO_NEEDLESS_BARRIERS,
    ),
    hints={
        **{"sharing": 1, "sectors": 1, "counts": 3, "conflicts": 2, "once": 3, "needless": 3},
        **{"not transposed": 1, "race": 1, "race of c": 2, "out of bounds": 3, "stale": 3},
        **{"not finite": 3, "uninitialised read": 1, "part of k": 3, "swapped indices": 1},
        **{"beyond a tile": 2, "divergent barrier": 3, "guard": 3},
        "other": 1,
    },
)
