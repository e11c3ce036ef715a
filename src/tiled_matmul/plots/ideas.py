"""Small pictures for a table: which parts of A, B and C an idea works on at one time."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tiled_matmul.plots import style

EDGE, CELLS, GAP = 8, 4, 5  # pixels of a cell, cells along an edge, pixels between matrices

Part = tuple[int, int, int, int, float]
"""(row, column, rows, columns, opacity) of a rectangle of cells."""


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
