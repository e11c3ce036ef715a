"""14.3, the second kernel: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.programs import STORES, owned
from tiled_matmul.grader.spec import TRITON, Case, Count, Exercise, Operation, Slip, cover

STRIDES = ("part", "row", "col", "bias_col", "c_row", "c_col")


def _blocks(case: Case) -> dict[str, int]:
    return {"BLOCK_M": 16, "BLOCK_N": 32} | dict(case.given)


def _covers(case: Case) -> tuple[int, int]:
    block = _blocks(case)
    return cover(case.m, block["BLOCK_M"]), cover(case.n, block["BLOCK_N"])


def _launch(case: Case) -> tuple:
    return _covers(case)[::-1], _blocks(case) | {"SPLITS": case.parts}


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    return (case.parts, case.m, case.n), (case.n,), (case.m, case.n)


def _finished(case: Case, parts: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sizes = abs(parts).sum(axis=0) + abs(bias)
    return np.maximum(parts.sum(axis=0) + bias, 0), sizes


def _rounded_each(case: Case, parts: np.ndarray, bias: np.ndarray) -> np.ndarray | None:
    """What comes of a sum in float16."""
    if case.dtype != "float16":
        return None
    total = np.zeros((case.m, case.n), np.float16)
    for one in (*parts, bias):
        total = (total + one).astype(np.float16)
    return np.maximum(total.astype(np.float64), 0)


def _rounded_once(case: Case, parts: np.ndarray, bias: np.ndarray) -> np.ndarray | None:
    """What comes of a sum of the parts that is stored in float16, before the bias is added."""
    if case.dtype != "float16":
        return None
    total = parts.sum(axis=0).astype(np.float16).astype(np.float64)
    return np.maximum((total + bias).astype(np.float16).astype(np.float64), 0)


def _each_sum(case: Case, parts: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """What comes of a maximum after each part is added."""
    total = np.zeros((case.m, case.n))
    for one in parts:
        total = np.maximum(total + one, 0)
    return np.maximum(total + bias, 0)


def _loads(case: Case) -> int:
    """Return the elements of whole tiles: of each part one, and a row of the bias."""
    block, (high, wide) = _blocks(case), _covers(case)
    across = wide * block["BLOCK_N"]
    return high * across * (case.parts * block["BLOCK_M"] + 1)


def _needed(case: Case) -> int:
    return case.parts * case.m * case.n + _covers(case)[0] * case.n


EXERCISE = Exercise(
    name="14.3",
    title="the second kernel",
    points=3,
    entry="finish",
    parameters=(
        *("parts", "bias", "c", "M", "N", *STRIDES),
        *("BLOCK_M", "BLOCK_N", "SPLITS"),
    ),
    kind="triton",
    rules=TRITON,
    operation=Operation(
        ("parts", "bias", "c"),
        _shapes,
        result=_finished,
        terms=lambda case: case.parts + 1,
        sizes="mn",
    ),
    launch=_launch,
    cases=(
        Case(20, 35, 300, parts=4),
        Case(40, 70, 300, "float16", draw="normal", parts=9),  # sums in float16 show
        Case(17, 45, 300, draw="normal", parts=3, apart=True),
        Case(37, 19, 300, "float16", parts=2, by_columns="parts"),
        Case(18, 33, 300, draw="normal", parts=5, by_columns="parts c"),
        Case(50, 20, 300, parts=1, given={"BLOCK_M": 32, "BLOCK_N": 16}),
        Case(5, 100, 300, "float16", draw="normal", parts=17, given={"BLOCK_M": 8, "BLOCK_N": 64}),
        Case(300, 3, 300, draw="normal", parts=2),
        Case(2, 300, 300, parts=2),
        Case(30, 60, 300, "float16", draw="wide", parts=40),
    ),
    large=(Case(517, 1389, 300, draw="normal", parts=4),),
    counts=(
        Count(
            "elements loaded",
            _loads,
            "The result is right, but elements are loaded again: each program loads its tile of "
            "each part once, and the bias once.",
            best=_needed,
        ),
        replace(
            STORES,
            message="The result is right, but it is stored again and again: the sum of the parts "
            "stays in registers until it is complete.",
        ),
        owned(
            lambda case: _blocks(case)["BLOCK_M"] * _blocks(case)["BLOCK_N"],
            "each stores its own tile of the result.",
        ),
    ),
    slips=(
        Slip(
            lambda case, parts, bias: np.maximum(parts.sum(axis=0), 0),
            "bias",
            "The bias is missing.",
        ),
        Slip(
            lambda case, parts, bias: parts.sum(axis=0) + bias,
            "maximum",
            "Negative sums have to become 0.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(parts.sum(axis=0), 0) + bias,
            "order",
            "The maximum was taken before the bias was added: it comes last.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(np.maximum(parts, 0).sum(axis=0) + bias, 0),
            "order",
            "The maximum was taken of each part: it comes last, after the sum of all parts.",
        ),
        Slip(
            _each_sum,
            "order",
            "The maximum was taken after each part: it comes last, after the sum of all parts.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(parts.sum(axis=0) + case.parts * bias, 0),
            "bias",
            "The bias was added with each part: it is added once.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(parts[0] + bias, 0),
            "parts",
            "Only the first part is in the sum.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(case.parts * parts[0] + bias, 0),
            "parts",
            "The first part was added SPLITS times: part `split` begins at split · part.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(parts[:-1].sum(axis=0) + bias, 0),
            "parts",
            "The last part is missing.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(parts[1:].sum(axis=0) + bias, 0),
            "parts",
            "The first part is missing.",
        ),
        Slip(
            lambda case, parts, bias: np.maximum(parts[-1] + bias, 0),
            "parts",
            "Only the last part is in the result: add each part to the sum.",
        ),
        Slip(
            lambda case, parts, bias: np.minimum(parts.sum(axis=0) + bias, 0),
            "maximum",
            "Positive sums have become 0, and the negative ones should.",
        ),
        Slip(
            lambda case, parts, bias: abs(parts.sum(axis=0) + bias),
            "maximum",
            "Negative sums lost their sign: they should become 0.",
        ),
        Slip(
            _rounded_each,
            "low precision",
            "The sum was rounded to float16 after each part: add them up in float32.",
        ),
        Slip(
            _rounded_once,
            "low precision",
            "The sum was rounded to float16 before the bias was added, as if it was stored in C in "
            "between: round once.",
        ),
    ),
    remedies={
        "not read": "Each program loads its tile of every part, from 0 to SPLITS − 1, and the bias "
        "of its columns.",
    },
    hints={
        **{"bias": 1, "maximum": 1, "order": 1, "parts": 3, "not read": 1, "stale": 1},
        **{"out of bounds": 2, "unmasked tail": 2, "not finite": 2, "zero": 1, "no tile": 3},
        **{"not stored": 2, "stored twice": 2, "counts": 1, "once": 1, "low precision": 1},
        **{"forbidden": 1, "types": 3, "error": 3, "other": 3},
    },
)
