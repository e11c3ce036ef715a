"""06.3, a transpose: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    Case,
    Count,
    Exercise,
    Operation,
    Slip,
    cover,
    each_its_own,
)

from .._shared import EDGE, ROWS, launch, rows_of, sectors_of_rows


def _whole(size: int) -> int:
    return cover(size, EDGE) * EDGE


def _moved_only(case: Case, a: np.ndarray) -> np.ndarray | None:
    """Tiles in their new place, each one as it was."""
    if case.m % EDGE or case.n % EDGE:
        return None
    c = np.empty((case.n, case.m))
    for top in range(0, case.m, EDGE):
        for left in range(0, case.n, EDGE):
            c[left : left + EDGE, top : top + EDGE] = a[top : top + EDGE, left : left + EDGE]
    return c


def _turned_only(case: Case, a: np.ndarray) -> np.ndarray | None:
    """Each tile transposed, in its old place."""
    moved = _moved_only(case, a)
    return moved.T if moved is not None and case.m == case.n else None


def _same(case: Case, a: np.ndarray) -> np.ndarray | None:
    return a if case.m == case.n else None


EXERCISE = Exercise(
    name="06.3",
    title="a transpose",
    points=3,
    entry="transpose",
    parameters=("a", "c"),
    kind="cuda",
    rules=CUDA,
    given={"EDGE": EDGE, "ROWS": ROWS},
    launch=launch,
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.n), (case.n, case.m)),
        result=lambda case, a: (a.T, np.zeros((case.n, case.m))),
        terms=lambda case: 1,
    ),
    cases=(
        Case(64, 64, 1),
        Case(96, 96, 1, draw="normal", order="reverse"),
        Case(33, 17, 1, draw="normal", order="shuffle"),
        Case(17, 161, 1, dtype="int32", draw="full", order="reverse"),
        Case(161, 40, 1, draw="normal", order="shuffle"),
        Case(1, 300, 1, draw="normal"),
        Case(300, 2, 1, draw="normal", order="reverse"),
        Case(1, 1, 1),
        Case(65, 33, 1, draw="normal", given={"ROWS": 4}, order="shuffle"),
        Case(31, 97, 1, dtype="int32", draw="full", given={"ROWS": 16}),
    ),
    large=(Case(517, 389, 301, draw="normal"), Case(1200, 777, 301, dtype="int32", draw="full")),
    counts=(
        Count(
            "global loads",
            lambda case: _whole(case.m) * _whole(case.n),
            "C is right, but elements of A are loaded more than once: each block loads its own "
            "tile, once.",
            "loads",
            share=0,
        ),
        Count(
            "global load sectors",
            lambda case: sectors_of_rows(_whole(case.m), case.n, EDGE, case.m),
            "C is right, but the loads of a warp are spread over many sectors: neighbours in x "
            "have to load neighbours in a row of A.",
            "load sectors",
            share=0,
            best=lambda case: sectors_of_rows(case.m, case.n, EDGE),
        ),
        Count(
            "global stores",
            lambda case: case.m * case.n,
            "C is right, but elements of it are stored more than once.",
            "stores",
            share=0,
        ),
        *each_its_own(lambda case: EDGE // rows_of(case)),
        Count(
            "global store sectors",
            lambda case: sectors_of_rows(case.n, case.m, EDGE),
            "C is right, but the stores of a warp are spread over many sectors: neighbours in x "
            "have to store to neighbours in a row of C. What a thread stores, another one has "
            "loaded, so the tile has to go through shared memory.",
            "store sectors",
            share=0,
            best=lambda case: sectors_of_rows(case.n, case.m, EDGE),
        ),
        Count(
            "bank conflicts",
            lambda case: 0,
            "C is right, with all loads and stores along rows, but an access to the tile has bank "
            "conflicts. Which bank holds element [i, j] of the tile? Look at the access that goes "
            "down a column.",
            "conflicts",
            best=lambda case: 0,
        ),
        Count(
            "needless barriers of a block",
            # A tile with one element: a single thread writes it and reads it.
            lambda case: int(case.m % EDGE == 1 and case.n % EDGE == 1),
            "C is right, but at some barrier the block waits for nothing: no thread has written "
            "what another one reads next. One barrier, between writing and reading the tile, is "
            "enough.",
            "needless",
        ),
    ),
    remedies={
        "race": "Other threads read the tile that a thread writes: a barrier belongs between "
        "them, outside every loop and condition.",
    },
    slips=(
        Slip(
            _same,
            "same",
            "That is A itself: element [i, j] belongs at [j, i].",
        ),
        Slip(
            _moved_only,
            "moved",
            "Each tile is in its place, but it is not transposed inside: what lies in a row of A's "
            "tile belongs in a column of C's.",
        ),
        Slip(
            _turned_only,
            "turned",
            "Each tile is transposed inside, but it is stored where it was loaded: the tile in "
            "tile row I and tile column J of A is that in tile row J and tile column I of C.",
        ),
    ),
    hints={
        **{"load sectors": 1, "store sectors": 1, "conflicts": 3, "needless": 1, "race": 1},
        **{"out of bounds": 2, "swapped indices": 2, "stale": 2, "moved": 2, "turned": 2},
        **{"uninitialised read": 2, "loads": 1, "stores": 1, "same": 1, "beyond a tile": 3},
        **{"race of c": 2},
        "other": 1,
    },
)
