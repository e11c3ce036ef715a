"""05.1, the 9×9 puzzle: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import (
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Case,
    Exercise,
    Limits,
    Slip,
    each_its_own,
    square_blocks,
)

from .._shared import ABC, BLOCKS, MOST_PRODUCTS, TPB, corner, fewest_loads

Place = Callable[..., tuple]

# What a thread that owns C[row, col] finds at its place k of the staged tiles, made a mistake.
RIGHT = (lambda row, col, k: (row, k)), (lambda row, col, k: (k, col))

STAGED: tuple[tuple[str, Place, str, Place, str], ...] = (
    (
        "In every iteration of the loop {tiles} the first along K: `start` is missing in {index}.",
        *(lambda row, col, k: (row, k % TPB), "the column that is loaded from A"),
        *(lambda row, col, k: (k % TPB, col), "the row that is loaded from B"),
    ),
    (
        "In shared memory {tiles} transposed, or read so: {index} swapped on the way in or out.",
        *(lambda row, col, k: (corner(row) + k % TPB, corner(k) + row % TPB), "x and y are"),
        *(lambda row, col, k: (corner(k) + col % TPB, corner(col) + k % TPB), "x and y are"),
    ),
    (
        "In the lines that stage, {tiles} loaded by the wrong index of the thread: {index}.",
        *(lambda row, col, k: (row, corner(k) + row % TPB), "A's column has to be start + x"),
        *(lambda row, col, k: (corner(k) + col % TPB, col), "B's row has to be start + y"),
    ),
    (
        "In the products {tiles} read by the wrong index: write {index}.",
        *(lambda row, col, k: (corner(row) + col % TPB, k), "a_tile[y, k]"),
        *(lambda row, col, k: (k, corner(col) + row % TPB), "b_tile[k, x]"),
    ),
    (
        "In the lines that stage, {tiles} loaded by the other matrix's indices: {index}.",
        *(lambda row, col, k: (corner(k) + row % TPB, corner(col) + k % TPB), "A's row is row"),
        *(
            lambda row, col, k: (corner(row) + k % TPB, corner(k) + col % TPB),
            "B's column is col",
        ),
    ),
    (
        "In every iteration over k {tiles} read at the thread's own place, [y, x]: write {index}.",
        *(lambda row, col, k: (row, corner(k) + col % TPB), "a_tile[y, k]"),
        *(lambda row, col, k: (corner(k) + row % TPB, col), "b_tile[k, x]"),
    ),
    (
        "From one iteration to the next {tiles} moved by one element, not by a tile: `start` has "
        "to go on in steps of TPB, in {index}.",
        *(lambda row, col, k: (row, k // TPB + k % TPB), "the column of A"),
        *(lambda row, col, k: (k // TPB + k % TPB, col), "the row of B"),
    ),
    (
        "In every block {tiles} those of the first: the block's offset is missing in {index}.",
        *(lambda row, col, k: (row % TPB, k), "the row that is loaded from A"),
        *(lambda row, col, k: (k, col % TPB), "the column that is loaded from B"),
    ),
    (
        "In every iteration of the loop {tiles} the same, where the block stands in C: {index}.",
        *(lambda row, col, k: (row, corner(col) + k % TPB), "A's column has to be start + x"),
        *(lambda row, col, k: (corner(row) + k % TPB, col), "B's row has to be start + y"),
    ),
)


def _staged(of_a: Place, of_b: Place) -> Callable:
    """Return what computes C where the tiles hold these elements of A and of B."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > MOST_PRODUCTS:
            return None
        at = np.indices((case.m, case.n, case.k))
        try:
            return (a[of_a(*at)] * b[of_b(*at)]).sum(axis=2)
        except IndexError:
            return None  # the microscope has said so

    return made


def _staging() -> tuple[Slip, ...]:
    """Return the mistakes of staging, each made with A, with B and with both."""
    found = []
    for text, of_a, index_a, of_b, index_b in STAGED:
        both = " and ".join(dict.fromkeys((index_a, index_b)))
        for of, tiles, index in (
            ((of_a, RIGHT[1]), "the tile of A is", index_a),
            ((RIGHT[0], of_b), "the tile of B is", index_b),
            ((of_a, of_b), "the tiles of A and B are", both),
        ):
            told = text.format(tiles=tiles, index=index)
            found.append(Slip(_staged(*of), "staging", told))
    return tuple(found)


def _own_place_once(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """What comes of one product a tile: what the thread has staged itself."""
    if case.m * case.n * case.k > MOST_PRODUCTS:
        return None
    row, col, start = np.ogrid[: case.m, : case.n, : case.k : TPB]
    return (a[row, start + col % TPB] * b[start + row % TPB, col]).sum(axis=2)


def _one_tile(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What comes of the tiles alone that lie where the block stands in C."""
    made = np.zeros((case.m, case.n))
    for i in range(0, case.m, TPB):
        for j in range(0, case.n, TPB):
            rows, columns = slice(i, i + TPB), slice(j, j + TPB)
            if max(i, j) + TPB <= case.k:
                made[rows, columns] = a[rows, columns] @ b[rows, columns]
    return made if max(case.m, case.n) <= case.k else None


def _whole_block(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What comes of a thread that adds up all of its block's tile of C."""
    c = a @ b
    tiles = c.reshape(case.m // TPB, TPB, case.n // TPB, TPB).sum(axis=(1, 3))
    return np.kron(tiles, np.ones((TPB, TPB)))


# What comes of a row by x and a column by y, and of tiles that are filled by [y, x].
_turned = _staged(
    lambda row, col, k: (corner(row) + k % TPB, k),
    lambda row, col, k: (k, corner(col) + k % TPB),
)


def _one_array(last: int) -> Callable:
    """Return what computes C where one array holds both tiles: what was staged last is left."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > MOST_PRODUCTS or last == 0 and case.k > case.m:
            return None
        row, col, k = np.indices((case.m, case.n, case.k))
        if last:
            left, right = b[corner(k) + row % TPB, corner(col) + k % TPB], b[k, col]
        else:
            left, right = a[row, k], a[corner(row) + k % TPB, corner(k) + col % TPB]
        return (left * right).sum(axis=2)

    return made


def _whole_numbers(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.trunc(a) @ np.trunc(b)


def _places(first: int, stop: int) -> Callable:
    """Return what computes C from these places of each tile along K alone."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        k = np.arange(case.k) % TPB
        taken = (first <= k) & (k < stop)
        return a[:, taken] @ b[taken]

    return made


ONE_ARRAY = (
    "One array holds both tiles: the second line that stages overwrites what the first has put "
    "there. A and B need a shared array each."
)


def _one_matrix(which: int) -> Callable:
    def made(case: Case, *matrices: np.ndarray) -> np.ndarray | None:
        only = matrices[which]
        return only @ only if case.m == case.k == case.n else None

    return made


ONE = "Both tiles come from {}: look at the two lines that stage."

NO_GUARD = (
    "No guard is needed here, as TPB divides everything: which index is too large? It is `start + "
    "x` along A's row and `start + y` down B's column, and the loop goes on by TPB."
)

EXERCISE = Exercise(
    name="05.1",
    title="the 9×9 puzzle",
    points=4,
    entry="puzzle",
    parameters=ABC,
    kind="cuda",
    rules=BLOCKS,
    tile=TPB,
    given={"TPB": TPB},
    launch=square_blocks("TPB", TPB),
    cases=(
        Case(9, 9, 9, draw="puzzle"),
        Case(9, 9, 9, draw="normal", order="reverse"),
        Case(12, 6, 9, order="shuffle"),
        Case(6, 9, 18, draw="normal"),
        Case(30, 3, 6, order="reverse"),
        Case(3, 33, 3),
        Case(3, 6, 45, draw="normal"),
        Case(18, 21, 18, order="shuffle"),
    ),
    large=(Case(516, 387, 300, draw="normal"),),
    counts=(fewest_loads(TPB), ONCE, *each_its_own(), NO_NEEDLESS_BARRIERS),
    slips=(
        *_staging(),
        Slip(_one_matrix(0), "staging", ONE.format("A")),
        Slip(_one_matrix(1), "staging", ONE.format("B")),
        Slip(_one_array(0), "staging", ONE_ARRAY),
        Slip(_one_array(1), "staging", ONE_ARRAY),
        Slip(
            _whole_numbers,
            "staging",
            "The tiles hold whole numbers: a tile's type is that of its matrix, a.dtype.",
        ),
        Slip(
            _turned,
            "axes",
            "x is the column here and y the row: `row` goes by blockIdx.y and threadIdx.y, `col` "
            "by blockIdx.x and threadIdx.x.",
        ),
        Slip(
            _one_tile,
            "one tile",
            "One tile of each matrix is multiplied, the one where the block stands in C: the loop "
            "along K is missing.",
        ),
        Slip(
            _whole_block,
            "products",
            "A thread adds up the sums of its whole block. It owns one element: a row of A's tile "
            "times a column of B's, one loop over k.",
        ),
        Slip(
            _own_place_once,
            "products",
            "Each tile adds one product, of what the thread has staged itself. It is TPB products: "
            "a_tile[y, k] times b_tile[k, x] for each k.",
        ),
        Slip(
            _places(0, TPB - 1),
            "products",
            "The last place of every tile is left out: its loop over k runs TPB times.",
        ),
        Slip(
            _places(1, TPB),
            "products",
            "The first place of every tile is left out: its loop over k begins at 0.",
        ),
    ),
    remedies={
        **dict.fromkeys(("along K", "out of bounds"), NO_GUARD),
        "swapped indices": "x is the column here, and y the row: are the two swapped, here or "
        "where they are computed?",
        "uninitialised read": "Are both tiles staged, every element, by threads of this block? "
        "Other blocks have tiles of their own.",
    },
    limits=Limits(cost=0.5),
    hints={
        **{"stale": 1, "zero": 1, "out of bounds": 2, "transposed": 3, "part of k": 2},
        **{"negative index": 2, "race": 3, "uninitialised read": 2, "divergent barrier": 3},
        **{"scaled": 2, "counts": 2, "error": 2, "other": 2, "on top": 3, "not finite": 3},
        **{"out of bounds of c": 1, "same element": 1, "staging": 2, "along K": 2},
        **{"restarted": 3, "products": 3, "staged twice": 2, "no store": 3, "once": 3},
        **{"axes": 1, "one tile": 1, "unbound": 3, "unread": 3},
    },
)
