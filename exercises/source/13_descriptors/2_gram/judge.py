"""13.2, a matrix times its transpose: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tiled_matmul.grader.programs import owned
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Operation,
    Slip,
    cover,
    depths,
)

ALIGNED = 8  # elements of float16 in 16 bytes
POINTERS = {"tl.load", "tl.make_block_ptr", "tl.advance"}
DESCRIBED = "here A is loaded through a tensor descriptor, as in tiles.load([row, column])"


def _blocks(case: Case) -> dict[str, int]:
    return {"BLOCK": 16, "BLOCK_K": 16} | dict(case.given)


def _launch(case: Case) -> tuple:
    block = _blocks(case)
    tiles = cover(case.m, block["BLOCK"])
    return (tiles, tiles), block


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    """A has the room of its padded rows: what lies beyond K is drawn like everything else."""
    return (case.m, cover(case.k, ALIGNED) * ALIGNED), (case.m, case.m)


def _factors(case: Case, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a[:, : case.k], a[:, : case.k].T


def _described(case: Case) -> str:
    block, room = _blocks(case), _shapes(case)[0][1]
    tile = f"{block['BLOCK']}×{block['BLOCK_K']}"
    return f"A {case.m}×{case.k}, in rows of {room}, in tiles of {tile}"


def _loads(case: Case) -> int:
    """Return the elements of half of the tiles, whole ones, with two tiles of A for each step."""
    block = _blocks(case)
    tiles = cover(case.m, block["BLOCK"])
    deep = cover(case.k, block["BLOCK_K"]) * block["BLOCK_K"]
    return tiles * (tiles + 1) * block["BLOCK"] * deep


def _products(case: Case) -> int:
    block = _blocks(case)
    return block["BLOCK"] ** 2 * cover(case.k, block["BLOCK_K"]) * block["BLOCK_K"]


def _padding_too(case: Case, a: np.ndarray) -> np.ndarray | None:
    return a @ a.T if a.shape[1] > case.k else None


def _to_the_end_of_the_tile(case: Case, a: np.ndarray) -> np.ndarray | None:
    """What comes of a descriptor whose rows end with the last tile along K."""
    deep = cover(case.k, _blocks(case)["BLOCK_K"]) * _blocks(case)["BLOCK_K"]
    flat = np.append(a.ravel(), np.full(deep, np.nan))
    rows = np.array([flat[i * a.shape[1] :][:deep] for i in range(case.m)])
    return rows @ rows.T if deep > case.k else None


def _mirrored_unturned(case: Case, a: np.ndarray) -> np.ndarray | None:
    """What comes of storing a tile above the diagonal as it is."""
    a, edge = a[:, : case.k], _blocks(case)["BLOCK"]
    c = a @ a.T
    made = c.copy()
    for top in range(0, case.m, edge):
        for left in range(0, top, edge):
            tile = c[top : top + edge, left : left + edge]
            made[left : left + edge, top : top + edge] = np.nan
            high, wide = tile.shape[0], min(edge, case.m - top)
            made[left : left + high, top : top + wide] = tile[:, :wide]
    return made if case.m > edge else None


def _by_tiles(rows: int, columns: int, turned: bool = True) -> Callable[..., np.ndarray | None]:
    """Return a slip: the tiles of A that a program loads begin in these multiples of its number.

    0 stands for the tile's edge, which is right. If not `turned`, the second one is no tile of Aᵀ.
    """

    def made(case: Case, a: np.ndarray) -> np.ndarray | None:
        edge, deep = _blocks(case)["BLOCK"], _blocks(case)["BLOCK_K"]
        if case.m <= edge or (not turned and edge != deep):
            return None
        tiles, end = cover(case.m, edge), cover(case.k, deep) * deep
        room = np.zeros((tiles * edge + edge, end))
        room[: case.m, : case.k] = a[:, : case.k]
        c = np.zeros((tiles * edge, tiles * edge))
        for y in range(tiles):
            for x in range(y + 1):
                one = room[y * (rows or edge) :][:edge]
                other = room[x * (columns or edge) :][:edge]
                if turned:
                    tile = one @ other.T
                else:
                    ks = range(0, end, deep)
                    tile = sum(one[:, k : k + deep] @ other[:, k : k + deep] for k in ks)
                c[y * edge :, x * edge :][:edge, :edge] = tile
                if x < y:
                    c[x * edge :, y * edge :][:edge, :edge] = tile.T
        return c[: case.m, : case.m]

    return made


CORNER = (
    "The corner of a tile is counted in tiles: `load` takes it in elements, so program y begins at "
    "row y * BLOCK."
)

EXERCISE = Exercise(
    name="13.2",
    title="a matrix times its transpose",
    points=4,
    entry="gram",
    parameters=("a", "c", "M", "K", "a_row", "a_col", "c_row", "c_col", "BLOCK", "BLOCK_K"),
    kind="triton",
    # The point is the descriptor: nothing else loads.
    rules=replace(
        TRITON,
        attributes=TRITON.attributes - POINTERS,
        withheld=tuple((name, DESCRIBED) for name in sorted(POINTERS)),
    ),
    operation=Operation(
        ("a", "c"), _shapes, _factors, sizes="mk", ignored=("not read",), describe=_described
    ),
    launch=_launch,
    cases=(
        Case(40, 40, 35, "float16"),
        Case(70, 70, 80, "float16", draw="normal"),
        Case(90, 90, 50, "float16", given={"BLOCK": 32, "BLOCK_K": 16}),
        Case(20, 20, 90, "float16", draw="normal", given={"BLOCK": 16, "BLOCK_K": 64}),
        Case(18, 18, 520, "float16", draw="positive"),  # sums in float16 show
        Case(300, 300, 2, "float16", given={"BLOCK": 64, "BLOCK_K": 16}),
        Case(17, 17, 1, "float16"),
        *(Case(19, 19, k, "float16", draw=("integers", "normal")[k % 2]) for k in depths(16)),
    ),
    large=(Case(517, 517, 301, "float16", draw="normal", given={"BLOCK": 64, "BLOCK_K": 32}),),
    counts=(
        Count(
            "elements loaded",
            _loads,
            "C is right, but tiles are loaded for more than half of C, or loaded again: the "
            "programs above the diagonal need nothing, and each other program needs two tiles of "
            "A for each step along K.",
            best=lambda case: (cover(case.m, _blocks(case)["BLOCK"]) + 1) * case.m * case.k,
        ),
        Count(
            "products of a program",
            _products,
            "C is right, but a program multiplies more than one tile of C needs: its loop goes "
            "from 0 to K by BLOCK_K.",
            "steps",
        ),
        Count(
            "products",
            None,
            "C is right, and the products are made without `tl.dot`: the tensor cores have no "
            "work.",
            "no dot",
            least=lambda case: case.m * (case.m + 1) // 2 * case.k,
        ),
        Count(
            "elements stored",
            lambda case: case.m * case.m,
            "C is right, but elements are stored more than once: a tile on the diagonal is its own "
            "mirror image, and the sums are ready after the loop along K.",
            "once",
            best=lambda case: case.m * case.m,
        ),
        owned(
            lambda case: 2 * _blocks(case)["BLOCK"] ** 2, "each stores its own tile and its image."
        ),
    ),
    slips=(
        Slip(
            _padding_too,
            "padding",
            "The numbers beyond the end of the rows of A are multiplied too: the shape of a "
            "descriptor is that of the matrix, with K columns, and `a_row` is only a stride.",
        ),
        Slip(
            _to_the_end_of_the_tile,
            "padding",
            "In the last step along K, numbers beyond the end of the rows of A are multiplied: the "
            "shape of a descriptor is that of the matrix, with K columns.",
        ),
        *(Slip(_by_tiles(*ones), "corner", CORNER) for ones in ((1, 0), (0, 1), (1, 1))),
        Slip(
            _by_tiles(0, 0, turned=False),
            "turned",
            "The second tile is multiplied as it stands in A: it has to be turned, `.T`, into a "
            "tile of Aᵀ.",
        ),
        Slip(
            _mirrored_unturned,
            "mirror",
            "Above the diagonal each tile stands as it was computed: in the mirror image, the "
            "element in row i and column j of the tile goes to row j and column i.",
        ),
    ),
    remedies={
        "unmasked tail": "A descriptor has the shape of its matrix, with K columns, and a store "
        "through pointers has a mask of its own, for the rows and the columns of C.",
        "not stored": "Every tile below the diagonal is stored twice: at its place, and with rows "
        "and columns exchanged above the diagonal. Are both stores there, for every program with "
        "left < top, and is the diagonal stored as well?",
        "stored twice": "Each tile of C comes from one program: those above the diagonal must not "
        "store, as the programs below it store there.",
    },
    hints={
        **{
            "not stored": 3,
            "stored twice": 2,
            "mirror": 3,
            "corner": 1,
            "turned": 2,
            "padding": 1,
            "stale": 2,
        },
        **{
            "out of bounds": 3,
            "unmasked tail of a": 1,
            "unmasked tail": 3,
            "not finite": 1,
            "zero": 1,
            "once": 3,
        },
        **{"part of k": 2, "no tile": 3, "counts": 2, "steps": 2, "no dot": 2},
        **{"low precision": 2, "forbidden": 1, "unknown": 1, "types": 2, "error": 1, "other": 2},
    },
)
