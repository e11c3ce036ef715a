"""10.5, a softmax in two passes: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.programs import block_of, own_rows
from tiled_matmul.grader.spec import (
    TRITON,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
)

ROUNDED = 32  # roundings of an exponential, of its argument and of the quotient, with room
GIVEN = {"BLOCK_M": 4, "BLOCK_N": 16}


def _blocks(case: Case) -> dict[str, int]:
    return {name: block_of(case)[name] if case.given else GIVEN[name] for name in GIVEN}


def _launch(case: Case) -> tuple:
    blocks = _blocks(case)
    return (cover(case.m, blocks["BLOCK_M"]),), blocks


def _softmax(case: Case, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the softmax, and the sizes that its roundings are relative to.

    The rounding of an argument x - top is relative to its size, and becomes one of the exponential.
    Three roundings may be relative to the size of x itself, where both x and top are scaled first.
    """
    distance = a.max(axis=1, keepdims=True) - a
    powers = np.exp(-distance)
    shares = powers / powers.sum(axis=1, keepdims=True)
    mean = (shares * distance).sum(axis=1, keepdims=True)
    scaled = 3 * abs(a).max(axis=1, keepdims=True) / (case.n + ROUNDED)
    return shares, shares * (1 + distance + mean + scaled)


def _parts(case: Case, a: np.ndarray) -> list[np.ndarray]:
    step = _blocks(case)["BLOCK_N"]
    return [a[:, left : left + step] for left in range(0, case.n, step)]


def _not_rescaled(case: Case, a: np.ndarray) -> np.ndarray:
    """Return what comes of a sum that is not corrected when a larger element appears."""
    top, total = np.full((case.m, 1), -np.inf), np.zeros((case.m, 1))
    for part in _parts(case, a):
        top = np.maximum(top, part.max(axis=1, keepdims=True))
        total = total + np.exp(part - top).sum(axis=1, keepdims=True)
    return np.exp(a - top) / total


def _by_block(case: Case, a: np.ndarray) -> np.ndarray:
    return np.hstack([_softmax(case, part)[0] for part in _parts(case, a)])


def _last_block(case: Case, a: np.ndarray) -> np.ndarray:
    """Return what comes of a largest element and a sum that are those of the last block alone."""
    last = _parts(case, a)[-1]
    top = last.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        return np.exp(a - top) / np.exp(last - top).sum(axis=1, keepdims=True)


def _zeros_beyond(case: Case, a: np.ndarray) -> np.ndarray:
    step = _blocks(case)["BLOCK_N"]
    more = np.zeros((case.m, cover(case.n, step) * step - case.n))
    return _softmax(case, np.hstack([a, more]))[0][:, : case.n]


def _zeros_in_the_sum(case: Case, a: np.ndarray) -> np.ndarray:
    """Return what comes of masked elements that are 0 in the sum but not in the maximum."""
    step, top = _blocks(case)["BLOCK_N"], a.max(axis=1, keepdims=True)
    more = cover(case.n, step) * step - case.n
    with np.errstate(over="ignore"):
        total = np.exp(a - top).sum(axis=1, keepdims=True) + more * np.exp(-top)
    return np.exp(a - top) / total


ZEROS = (
    "Masked elements count as 0 here: exp(0 - top) enters the sum, and 0 may be larger than all "
    "elements of the row. A masked element should leave the maximum and the sum as they are: "
    'other=float("-inf").'
)

EXERCISE = Exercise(
    name="10.5",
    title="a softmax in two passes",
    points=4,
    entry="softmax",
    parameters=("a", "c", "M", "N", "a_row", "a_col", "c_row", "c_col", "BLOCK_M", "BLOCK_N"),
    kind="triton",
    rules=TRITON,
    launch=_launch,
    operation=Operation(
        arrays=("a", "c"),
        shapes=lambda case: ((case.m, case.n), (case.m, case.n)),
        result=_softmax,
        terms=lambda case: case.n + ROUNDED,
        sizes="mn",
    ),
    cases=(
        Case(6, 50, 1, draw="normal"),
        Case(9, 90, 1),
        Case(5, 131, 1, draw="wide", by_columns="ac"),
        Case(6, 83, 1, draw="thousands"),
        *(Case(3, 80 + rest, 1, draw="normal") for rest in range(16)),
        Case(40, 1, 1, draw="thousands"),  # rows far below 0, some for sure
        Case(2, 15, 1, draw="positive"),
        Case(8, 16, 1, draw="wide"),
        Case(33, 40, 1, draw="normal", given={"BLOCK_M": 16, "BLOCK_N": 32}),
        Case(1, 700, 1, draw="wide", by_columns="a"),
        Case(5, 70, 1, draw="normal", apart=True),
    ),
    large=(Case(517, 1389, 301, draw="normal", given={"BLOCK_M": 4, "BLOCK_N": 128}),),
    limits=Limits(cost=1.0),
    counts=(
        Count(
            "elements loaded",
            lambda case: 2 * case.m * case.n,
            "C is right, but it takes more than two loads for each element: find the largest "
            "element and the sum in one pass, and correct the sum when a larger element appears.",
            best=lambda case: 2 * case.m * case.n,
        ),
        Count(
            "elements stored",
            lambda case: case.m * case.n,
            "C is right, but its elements are stored more than once: store the quotients, when "
            "the sum is known.",
            "once",
        ),
        own_rows(lambda case: _blocks(case)["BLOCK_M"] * case.n),
    ),
    slips=(
        Slip(
            lambda case, a: np.exp(a - a.max(axis=1, keepdims=True)),
            "not divided",
            "These are the exponentials: divide them by the sum of their row.",
        ),
        Slip(
            lambda case, a: np.exp(a - a.max(axis=0)) / np.exp(a - a.max(axis=0)).sum(axis=0),
            "columns",
            "That is the softmax of the columns: reduce a tile along axis 1.",
        ),
        Slip(
            _not_rescaled,
            "not rescaled",
            "The sum so far was relative to the largest element so far. When a larger one appears, "
            "the sum has to be multiplied by exp(old - new).",
        ),
        Slip(
            _by_block,
            "each block",
            "Each block has a softmax of its own here: the largest element and the sum are those "
            "of the whole row.",
        ),
        Slip(
            _last_block,
            "each block",
            "The largest element and the sum are those of the last block: carry both from block "
            "to block.",
        ),
        Slip(_zeros_beyond, "zeros", ZEROS),
        Slip(_zeros_in_the_sum, "zeros", ZEROS),
    ),
    remedies={
        "not finite": "An exponential beyond float32 is infinite, and infinity over infinity is "
        "NaN: subtract the row's largest element first, the largest of all blocks. Elements that "
        "a mask leaves out without `other` are undefined, here NaN. And -inf minus -inf is NaN.",
        "stored twice": "Program x owns the rows from x · BLOCK_M on, and all their columns.",
        "not stored": "Program x owns the rows from x · BLOCK_M on, and all their columns: the "
        "loop that stores runs over all blocks, and over the last, incomplete one too.",
        "not read": "Do both loops run over all blocks of a row, and over the last, incomplete one "
        "too?",
        "no tile": "Were the strides passed in the kernel's order, and is each index multiplied by "
        "its own: rows by a_row, columns by a_col?",
        **dict.fromkeys(
            ("unmasked tail", "out of bounds"),
            "A block may reach past the last column, and a program past the last row: mask both, "
            "joined by &, in the loads and in the store.",
        ),
    },
    hints={
        **{"stale": 1, "not stored": 1, "stored twice": 1, "no tile": 1, "not read": 1},
        **{"unmasked tail": 3, "out of bounds": 3, "not finite": 2, "not divided": 1},
        **{"columns": 1, "not rescaled": 2, "each block": 1, "zeros": 3, "counts": 2, "once": 1},
        **{"error": 3, "types": 3, "forbidden": 1, "low precision": 3, "other": 1},
    },
)
