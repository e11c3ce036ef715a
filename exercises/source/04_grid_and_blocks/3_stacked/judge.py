"""04.3, a stack of products: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

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

from .._shared import ABC, NO_BARRIER, STORED_ONCE, WHOLE_NUMBERS

BLOCK = (4, 2, 3)  # as (x, y, z): three sizes that differ


def _boxes(case: Case) -> tuple:
    x, y, z = block = case.given.get("BLOCK", BLOCK)
    return (cover(case.n, x), cover(case.m, y), cover(case.parts, z)), block


def _shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the stacks; `parts` is the number of layers."""
    layers, m, n, k = case.parts, case.m, case.n, case.k
    return (layers, m, k), (layers, k, n), (layers, m, n)


def _product(case: Case, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a, b


def _all(layers: np.ndarray, case: Case) -> np.ndarray:
    return np.broadcast_to(layers, (case.parts, case.m, case.n))


ONE_LAYER = (
    "Every layer is computed from the first layer of {}: the layer is the first of the three "
    "indices, and each thread reads the layer that it owns."
)

EXERCISE = Exercise(
    name="04.3",
    title="a stack of products",
    points=3,
    entry="stacked",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    launch=_boxes,
    operation=Operation(arrays=ABC, shapes=_shapes, product=_product),
    cases=(
        Case(3, 6, 4, parts=5),
        Case(5, 7, 3, parts=4, draw="normal", order="shuffle", given={"BLOCK": (2, 3, 4)}),
        # Each size is the large one in its turn, and each is 1 once.
        Case(2, 3, 5, parts=67, draw="normal", order="reverse"),
        Case(2, 69, 2, parts=3, draw="normal"),
        Case(71, 3, 1, parts=2, order="reverse", draw="wide"),
        Case(3, 2, 73, parts=2, draw="normal"),
        Case(1, 5, 4, parts=1, given={"BLOCK": (3, 2, 2)}),
        Case(6, 1, 2, parts=8, given={"BLOCK": (2, 5, 7)}, order="shuffle"),
        # More than one warp a block.
        Case(5, 9, 3, parts=7, given={"BLOCK": (4, 4, 4)}, draw="normal"),
        Case(2, 2, 2, parts=259),
    ),
    large=(Case(237, 211, 203, parts=3, draw="normal"),),
    slips=(
        Slip(lambda case, a, b: _all(a[:1] @ b[:1], case), "layer", ONE_LAYER.format("A and B")),
        Slip(lambda case, a, b: _all(a[:1] @ b, case), "layer", ONE_LAYER.format("A")),
        Slip(lambda case, a, b: _all(a @ b[:1], case), "layer", ONE_LAYER.format("B")),
        Slip(
            lambda case, a, b: _all((a @ b).sum(axis=0), case),
            "layer",
            "Each element is the sum over all layers. A thread owns an element of one layer, and "
            "adds up its products along k alone.",
        ),
        Slip(
            lambda case, a, b: a @ b + a[:, :, :1] * b[:, :1],
            "first twice",
            "The product of k = 0 is in each sum twice: the sum begins with it, and then the loop "
            "begins at k = 0 as well. Begin one with zero, or the other at 1.",
        ),
        Slip(
            lambda case, a, b: a.sum(axis=2)[:, :, None] + b.sum(axis=1)[:, None],
            "operation",
            "The sums add a[layer, row, k] and b[layer, k, col]; a product multiplies the two.",
        ),
        WHOLE_NUMBERS,
    ),
    counts=(
        NO_BARRIER,
        Count(
            "global loads",
            lambda case: 2 * case.m * case.n * case.k * case.parts,
            "C is right, but a thread loads more than its row of A and its column of B. Keep the "
            "sum in a variable of the thread, and never read C.",
            "sum in C",
        ),
        replace(STORED_ONCE, most=lambda case: case.m * case.n * case.parts),
        *each_its_own(),
    ),
    remedies={
        "out of bounds": "Guard the access with three comparisons by <, one for each index, joined "
        "by `and`: the layer with shape[0], the row with shape[1], the column with shape[2] of C. "
        "Or does k go too far? It ends at a.shape[2].",
        "same element": "Two threads have the same element of c: the layer goes by z, the row by "
        "y, the column by x, each with `blockIdx`, `blockDim` and `threadIdx` of its own axis.",
    },
    hints={
        **{"out of bounds": 2, "negative index": 1, "race": 1, "stale": 1, "same element": 1},
        **{"layer": 3, "part of k": 3, "sum in C": 3, "error": 3, "timeout": 3, "other": 2},
        **{"first twice": 3, "operation": 3, "no store": 3, "on top": 3, "library": 3},
        **{"transposed": 3, "unbound": 3},
    },
)
