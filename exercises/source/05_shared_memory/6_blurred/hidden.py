"""05.6: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Case


def _tiles(edge: int) -> dict[str, int]:
    return {"TILE": edge, "SIDE": edge + 2}


HIDDEN = (
    Case(12, 8, 1, draw="normal"),
    Case(3, 2, 1),
    Case(13, 18, 1, order="reverse"),
    Case(9, 17, 1, draw="normal", given=_tiles(8), order="shuffle"),
    Case(11, 5, 1, given=_tiles(5)),
)
