"""05_shared_memory: the 9×9 puzzle, tiles that do not divide, a kernel that races, and integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    ONCE,
    Case,
    Count,
    Exercise,
    Slip,
    cover,
    loads_of_tiles,
    square_blocks,
)

TPB, TILE = 3, 4
# Nine threads are one warp; the next block may have more.
BLOCKS = replace(CUDA, attributes=CUDA.attributes - {"cuda.syncwarp"})
ABC = ("a", "b", "c")
MOST_SUM = 2**40  # beyond it any int32 is as near as rounding
MOST_PRODUCTS = 1 << 20  # of a case whose products are looked at one by one

Place = Callable[..., tuple]


def _corner(index: np.ndarray, edge: int = TPB) -> np.ndarray:
    """Return where the tile of an index begins."""
    return index - index % edge


# What a thread that owns C[row, col] finds at its place k of the staged tiles, made a mistake.
RIGHT = (lambda row, col, k: (row, k)), (lambda row, col, k: (k, col))
STAGED: tuple[tuple[str, Place, str, Place, str], ...] = (
    (
        "In every turn of the loop {tiles} the first along K: `start` is missing in {index}.",
        *(lambda row, col, k: (row, k % TPB), "the column that is loaded from A"),
        *(lambda row, col, k: (k % TPB, col), "the row that is loaded from B"),
    ),
    (
        "In shared memory {tiles} transposed, or read so: {index} swapped on the way in or out.",
        *(lambda row, col, k: (_corner(row) + k % TPB, _corner(k) + row % TPB), "x and y are"),
        *(lambda row, col, k: (_corner(k) + col % TPB, _corner(col) + k % TPB), "x and y are"),
    ),
    (
        "In the lines that stage, {tiles} loaded by the wrong index of the thread: {index}.",
        *(lambda row, col, k: (row, _corner(k) + row % TPB), "A's column has to be start + x"),
        *(lambda row, col, k: (_corner(k) + col % TPB, col), "B's row has to be start + y"),
    ),
    (
        "In the products {tiles} read by the wrong index: write {index}.",
        *(lambda row, col, k: (_corner(row) + col % TPB, k), "a_tile[y, k]"),
        *(lambda row, col, k: (k, _corner(col) + row % TPB), "b_tile[k, x]"),
    ),
    (
        "In the lines that stage, {tiles} loaded by the other matrix's indices: {index}.",
        *(lambda row, col, k: (_corner(k) + row % TPB, _corner(col) + k % TPB), "A's row is row"),
        *(
            lambda row, col, k: (_corner(row) + k % TPB, _corner(k) + col % TPB),
            "B's column is col",
        ),
    ),
    (
        "In every turn of k {tiles} read at the thread's own place, [y, x]: write {index}.",
        *(lambda row, col, k: (row, _corner(k) + col % TPB), "a_tile[y, k]"),
        *(lambda row, col, k: (_corner(k) + row % TPB, col), "b_tile[k, x]"),
    ),
    (
        "From turn to turn {tiles} moved by one element, not by a tile: {index} has to go on in "
        "steps of TPB.",
        *(lambda row, col, k: (row, k // TPB + k % TPB), "the column of A"),
        *(lambda row, col, k: (k // TPB + k % TPB, col), "the row of B"),
    ),
    (
        "In every block {tiles} those of the first: the block's offset is missing in {index}.",
        *(lambda row, col, k: (row % TPB, k), "the row that is loaded from A"),
        *(lambda row, col, k: (k, col % TPB), "the column that is loaded from B"),
    ),
    (
        "In every turn of the loop {tiles} the same, where the block stands in C: {index}.",
        *(lambda row, col, k: (row, _corner(col) + k % TPB), "A's column has to be start + x"),
        *(lambda row, col, k: (_corner(row) + k % TPB, col), "B's row has to be start + y"),
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
    lambda row, col, k: (_corner(row) + k % TPB, k),
    lambda row, col, k: (k, _corner(col) + k % TPB),
)


def _one_array(last: int) -> Callable:
    """Return what computes C where one array holds both tiles: what was staged last is left."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > MOST_PRODUCTS or last == 0 and case.k > case.m:
            return None
        row, col, k = np.indices((case.m, case.n, case.k))
        if last:
            left, right = b[_corner(k) + row % TPB, _corner(col) + k % TPB], b[k, col]
        else:
            left, right = a[row, k], a[_corner(row) + k % TPB, _corner(k) + col % TPB]
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


def _left_over(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """What comes of a last tile that holds, beyond K, what the tile before it held there."""
    edge = case.given.get("TILE", TILE)
    last = case.k - case.k % edge
    old = slice(case.k - edge, last)
    return a @ b + a[:, old] @ b[old] if 0 < last < case.k else None


def _guarded(part: Callable) -> Callable:
    """Return what computes C where a guard leaves out more: `part` says which products stay."""

    def made(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
        if case.m * case.n * case.k > MOST_PRODUCTS:
            return None
        row, col, k = np.indices((case.m, case.n, case.k))
        edge = case.given.get("TILE", TILE)
        return np.where(part(case, edge, row, col, k), a[row, k] * b[k, col], 0).sum(axis=2)

    return made


def _a_by_c(case: Case, edge: int, row: Any, col: Any, k: Any) -> Any:
    return _corner(col, edge) + k % edge < case.n


def _b_by_c(case: Case, edge: int, row: Any, col: Any, k: Any) -> Any:
    return _corner(row, edge) + k % edge < case.m


def _both_by_c(*at: Any) -> Any:
    return _a_by_c(*at) & _b_by_c(*at)


def _all_four(case: Case, edge: int, row: Any, col: Any, k: Any) -> Any:
    """Both loads where row, start + x, start + y and col are inside, of whoever loads."""
    of_a = (k < case.k) & (_corner(k, edge) + row % edge < case.k)
    of_b = _corner(k, edge) + col % edge < case.k
    return of_a & of_b & _both_by_c(case, edge, row, col, k)


GUARDS = tuple(
    Slip(_guarded(part), "guards", message)
    for part, message in (
        (
            lambda case, edge, row, col, k: col < case.k,
            "The columns of B beyond K are zeros: the guard of B compares `col` with K, and B has "
            "`b.shape[1]` columns.",
        ),
        (
            lambda case, edge, row, col, k: row < case.k,
            "The rows of A beyond K are zeros: the guard of A compares `row` with K, and A has "
            "`a.shape[0]` rows.",
        ),
        (
            _a_by_c,
            "A thread beyond C's columns loads a zero of A: its own column of C is no matter "
            "there, it loads A's column `start + x`.",
        ),
        (
            _b_by_c,
            "A thread beyond C's rows loads a zero of B: its own row of C is no matter there, it "
            "loads B's row `start + y`.",
        ),
        (
            _both_by_c,
            "A thread beyond C's edges loads zeros of A and B: where it stands in C is no matter "
            "there. It loads A's column `start + x` and B's row `start + y`.",
        ),
        (
            _all_four,
            "One guard for both loads leaves out too much: a thread may have an element of A to "
            "load and none of B. A's guard asks for `row` and `start + x`, B's for `start + y` and "
            "`col`.",
        ),
    )
)


def _cut_off(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """What comes of a sum in float64 that is stored to int32."""
    if (np.abs(a) @ np.abs(b)).max() > MOST_SUM:
        return None
    ends = np.iinfo(case.dtype)
    return np.clip(a @ b, ends.min, ends.max)


def _count(edge: int) -> Count:
    return Count(
        "global loads",
        lambda case: loads_of_tiles(case.m, case.n, case.k, edge, edge),
        f"C is right, by the long way: tiles of {edge}×{edge} take fewer loads from global memory. "
        "Let the threads of a block share what they stage.",
    )


NO_GUARD = (
    "No guard is needed here, as TPB divides everything: which index is too large? It is `start + "
    "x` along A's row and `start + y` down B's column, and the loop goes on by TPB."
)

PUZZLE = Exercise(
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
        Case(9, 9, 9, hidden=True),
        Case(9, 9, 9, draw="normal", order="reverse"),
        Case(12, 6, 9, order="shuffle"),
    ),
    large=(Case(516, 387, 300, draw="normal"),),
    counts=(_count(TPB), ONCE),
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
    hints={
        **{"stale": 1, "zero": 1, "out of bounds": 2, "transposed": 3, "part of k": 2},
        **{"negative index": 2, "race": 3, "uninitialised read": 2, "divergent barrier": 3},
        **{"scaled": 2, "counts": 2, "error": 2, "other": 2, "on top": 3, "not finite": 3},
        **{"out of bounds of c": 1, "same element": 1, "staging": 2, "along K": 2},
        **{"restarted": 3, "products": 3, "staged twice": 2, "no store": 3, "once": 3},
        **{"axes": 1, "one tile": 1, "unbound": 3, "unread": 3},
    },
)


def _ones(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b + -case.k % case.given.get("TILE", TILE)


def _inside_again(into: Callable[[np.ndarray, int], np.ndarray]):
    """Indices beyond an edge are brought back inside: along K that adds products once more."""

    def answer(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        tile = case.given.get("TILE", TILE)
        k = into(np.arange(tile * cover(case.k, tile)), case.k)
        return a[:, k] @ b[k]

    return answer


INSIDE_AGAIN = (
    "Beyond K the tiles hold numbers of the matrices once more, and their products are added: an "
    "index that {how} brings back inside loads something. What is not there has to be a zero."
)

RAGGED = Exercise(
    name="05.2",
    title="tiles that do not divide",
    points=3,
    entry="ragged",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(6, 7, 5),
        Case(8, 8, 8, hidden=True),
        Case(5, 9, 6, hidden=True, order="reverse"),
        Case(9, 3, 7, draw="normal", order="shuffle"),
        Case(1, 1, 1, draw="normal", hidden=True),
        Case(3, 10, 2, hidden=True),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16}),),
    counts=(
        replace(
            _count(TILE),
            message="C is right, and more is loaded than there is. Does a thread that has nothing "
            "to load, beyond an edge, load all the same? Or one that could read what another "
            "thread of its block has staged?",
        ),
    ),
    slips=(
        Slip(
            _inside_again(lambda k, size: np.minimum(k, size - 1)),
            "left over",
            INSIDE_AGAIN.format(how="min()"),
        ),
        Slip(_inside_again(np.mod), "left over", INSIDE_AGAIN.format(how="%")),
        Slip(
            _left_over,
            "left over",
            "The last tile along K still holds, beyond K, what the tile before left there: zeros "
            "from before the loop are gone by then. Every tile has to be filled anew, its zeros "
            "as well.",
        ),
        *GUARDS,
        Slip(
            _ones,
            "left over",
            "What lies beyond K has added something: ones in both tiles. It has to be zeros.",
        ),
    ),
    remedies={
        "along K": "Guard the access with the array's own shape, each index with its own axis. The "
        "loop is right: it goes as far as the tile that is cut off.",
    },
    hints={
        **{"stale": 3, "out of bounds": 1, "negative index": 1, "uninitialised read": 2},
        **{"race": 3, "divergent barrier": 3, "part of k": 2, "counts": 1, "error": 1, "other": 2},
        **{"out of bounds of c": 3, "guards": 1, "left over": 2},
    },
)

REPAIR = Exercise(
    name="05.3",
    title="repair a kernel that races",
    points=3,
    entry="repaired",
    parameters=ABC,
    kind="cuda",
    rules=BLOCKS,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(8, 8, 8),
        Case(8, 12, 16, hidden=True, order="reverse"),
        Case(7, 5, 9, draw="normal", order="shuffle"),
        # Two warps a block: what orders one warp does not order these.
        Case(9, 10, 17, given={"TILE": 8}),
    ),
    large=(Case(517, 389, 301, draw="normal", given={"TILE": 16}),),
    counts=(_count(TILE),),
    hints={
        **{"race": 1, "uninitialised read": 1, "divergent barrier": 3, "error": 1, "other": 1},
        **{"counts": 1, "race on the next turn": 2},
    },
)

INTEGERS = Exercise(
    name="05.4",
    title="the integer kernel",
    points=2,
    entry="integer_tiles",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    tile=TILE,
    given={"TILE": TILE},
    launch=square_blocks("TILE", TILE),
    cases=(
        Case(6, 7, 5, "int32", draw="bytes"),
        Case(8, 8, 8, "int32", hidden=True),
        Case(5, 9, 6, "int32", draw="thousands", order="shuffle"),
        Case(9, 3, 7, "int32", draw="wrapping", order="reverse"),
        Case(1, 1, 1, "int32", draw="thousands", hidden=True),
        Case(7, 6, 5, "int32", draw="full"),
    ),
    large=(Case(517, 389, 301, "int32", given={"TILE": 16}),),
    counts=(_count(TILE),),
    slips=(
        Slip(
            _cut_off,
            "cut off",
            "C stops at the ends of int32, where whole numbers wrap around: is the sum a float "
            "when it is stored? One float in it is enough, its first zero as well.",
        ),
        *GUARDS,
    ),
    hints={
        **{"rounded": 1, "cut off": 2, "value": 2, "error": 3, "other": 3, "counts": 3},
    },
)

EXERCISES = (PUZZLE, RAGGED, REPAIR, INTEGERS)
