"""The candidates of `pick`: rungs with tiles, stages and groups for a shape.

Stages and groups, which no model predicts, come from a search on one H200.
"""

from __future__ import annotations

from collections.abc import Iterator

from triton import cdiv

from tiled_matmul.dispatch.choice import Choice

MOST_SPLITS = 16
SPLIT = ((64, 64, 128), (64, 128, 128))  # tiles that go with parts of K
# (rows, widths, stages) for `triton_two_widths`
TWO_WIDTHS = (
    (64, (256, 32), 4),
    (64, (256, 64), 4),
    (64, (128, 64), 6),
    (64, (128, 32), 6),
    (128, (128, 32), 5),
)


def candidates(m: int, n: int, k: int, multiprocessors: int) -> Iterator[Choice]:
    """Yield the candidates for this product, each with the stages and groups that suit it."""
    large = cdiv(m, 128) * cdiv(n, 256) > 3 * multiprocessors
    stages, group_m = (4, 12) if large else (3, 4)
    yield Choice("triton_persistent", options((128, 256, 64), 8, stages, group_m))
    yield Choice("triton_descriptors", options((64, 64, 128), 4, 3 if k < 1024 else 6))
    yield Choice("triton_descriptors", options((64, 128, 128), 4, 4, 4))
    yield Choice("triton_descriptors", options((128, 128, 64), 8, 4))
    for rows, widths, stages in TWO_WIDTHS:
        chosen = options((rows, widths, 64), 4, stages, 16)
        yield from (Choice("triton_two_widths", chosen | {"down": d}) for d in (False, True))
    for block in SPLIT:
        tiles = cdiv(m, block[0]) * cdiv(n, block[1])
        for splits in range(2, min(MOST_SPLITS, multiprocessors // tiles) + 1):
            yield split_k(block, splits)


def widths(columns: int | tuple[int, int]) -> tuple[int, ...]:
    """Return the widths of a tile whose columns are one number or two."""
    return columns if isinstance(columns, tuple) else (columns,)


def options(block: tuple, num_warps: int, num_stages: int, group_m: int = 8) -> dict:
    """Return the options of a Triton launcher."""
    numbers = {"num_warps": num_warps, "num_stages": num_stages, "group_m": group_m}
    return {"block": block} | numbers


def split_k(block: tuple, splits: int) -> Choice:
    """Return the `triton_split_k` rung with K cut into `splits` parts."""
    return Choice("triton_split_k", options(block, 4, 4, 4) | {"splits": splits})
