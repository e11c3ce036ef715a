"""The ideas of the climb, and small pictures of the parts of A, B and C that each works on."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from tiled_matmul.plots import style

EDGE, CELLS, GAP = 8, 4, 5  # pixels of a cell, cells along an edge, pixels between matrices

Part = tuple[int, int, int, int, float]
"""(row, column, rows, columns, opacity) of a rectangle of cells."""


class Idea(NamedTuple):
    """A rung, its idea in a sentence, and the parts of A, B and C that one worker works on."""

    rung: str
    text: str
    a: Sequence[Part]
    b: Sequence[Part]
    c: Sequence[Part]


ROW, COLUMN, ELEMENT = (1, 0, 1, 4, 0.7), (0, 1, 4, 1, 0.7), (1, 1, 1, 1, 0.7)
TILE, NEXT, BELOW = (0, 0, 2, 2, 0.7), (0, 2, 2, 2, 0.25), (2, 0, 2, 2, 0.25)
IDEAS = (
    Idea("loops_python", "Three loops: a row of A times a column of B", [ROW], [COLUMN], [ELEMENT]),
    Idea("njit_ikj", "Swap two loops: now memory is read in order", [ELEMENT], [ROW], [ROW]),
    Idea("cpu_packed", "Work in tiles that stay in a cache, on all cores", [TILE], [TILE], [TILE]),
    Idea(
        "cuda_coalesced",
        "One GPU thread for each element; neighbours load neighbours",
        [(1, 0, 1, 1, 0.7)],
        [(0, 0, 1, 4, 0.7)],
        [(1, 0, 1, 4, 0.7)],
    ),
    Idea("cuda_shared_16", "Load each tile once for a whole block", [TILE], [TILE], [TILE]),
    Idea(
        "cuda_vectorised",
        "Give each thread 64 elements, and keep their sums in registers",
        [(0, 0, 2, 1, 0.7)],
        [(0, 0, 1, 2, 0.7)],
        [TILE],
    ),
    Idea(
        "cuda_unrolled", "Load the next tile while multiplying", [TILE, NEXT], [TILE, BELOW], [TILE]
    ),
    Idea(
        "cuda_best",
        "Let counters and a search choose the rest",
        [TILE, NEXT],
        [TILE, BELOW],
        [TILE],
    ),
    Idea(
        "triton_block_pointers_3",
        "Write the kernel in tiles, for the tensor cores",
        [(0, 0, 2, 1, 0.7)],
        [(0, 0, 1, 4, 0.7)],
        [(0, 0, 2, 4, 0.7)],
    ),
    Idea(
        "triton_swizzled",
        "Run those programs together that share data in the cache",
        [(0, 0, 3, 4, 0.25)],
        [(0, 0, 4, 3, 0.25)],
        [(0, 0, 3, 3, 0.7)],
    ),
    Idea(
        "triton_persistent",
        "Let hardware copy the tiles, and let programs stay for the next one",
        [TILE, NEXT],
        [TILE, BELOW],
        [TILE, NEXT],
    ),
    Idea("triton_best", "Choose the kernel by the shape", [TILE], [TILE], [TILE, NEXT, BELOW]),
)


def picture(a: Sequence[Part], b: Sequence[Part], c: Sequence[Part], alt: str) -> str:
    """Return SVG for an HTML page: A left of C and B above it, 4 × 4 cells each, parts in colour.

    Raises ValueError for a part that leaves its matrix.
    """
    side = EDGE * CELLS
    places = ((a, style.A, 0, side + GAP), (b, style.B, side + GAP, 0))
    places += ((c, style.C, side + GAP, side + GAP),)
    shapes = []
    for parts, color, left, top in places:
        frame = f'x="{left + 0.5}" y="{top + 0.5}" width="{side}" height="{side}"'
        shapes.append(f'<rect {frame} fill="none" stroke="{color}"/>')
        for row, column, rows, columns, opacity in parts:
            if min(row, column, rows - 1, columns - 1) < 0 or max(row + rows, column + columns) > 4:
                raise ValueError(f"a part of 4 × 4 cells, got {(row, column, rows, columns)}")
            box = f'x="{left + 0.5 + column * EDGE}" y="{top + 0.5 + row * EDGE}" '
            box += f'width="{columns * EDGE}" height="{rows * EDGE}"'
            shapes.append(f'<rect {box} fill="{color}" fill-opacity="{opacity}" stroke="{color}"/>')
    size = 2 * side + GAP + 1
    return (
        f'<svg role="img" aria-label="{html.escape(alt)}" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" xmlns="http://www.w3.org/2000/svg">{"".join(shapes)}</svg>'
    )
