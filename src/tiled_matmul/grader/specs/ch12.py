"""12_descriptors: the time that multiprocessors use, and a K that is cut into parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiled_matmul.grader.spec import TRITON, VALUES, Call, Case, Count, Exercise, Slip, cover
from tiled_matmul.grader.specs.ch09 import block_of, blocks, launch


def used(m: int, n: int, block_m: int, block_n: int, sms: int) -> float:
    """Return the share of the multiprocessors' time in which they have a tile of C."""
    return _fill(tiles_of(m, n, block_m, block_n), sms)


def tiles_of(m: int, n: int, block_m: int, block_n: int) -> int:
    """Return how many tiles of block_m × block_n cover a C of m × n."""
    return cover(m, block_m) * cover(n, block_n)


def _fill(tiles: float, sms: int) -> float:
    return tiles / (-(-tiles // sms) * sms)


def _last(tiles: int, sms: int) -> float:
    return (tiles % sms or sms) / sms


def _any(random: np.random.Generator) -> tuple[int, ...]:
    m, n, sms = (int(x) for x in random.integers(1, (5000, 5000, 200)))
    block = (16 * 2 ** int(x) for x in random.integers(5, size=2))
    return m, n, *block, sms


WAVES = Exercise(
    name="12.1",
    title="waves",
    points=3,
    entry="used",
    parameters=("m", "n", "block_m", "block_n", "sms"),
    kind="values",
    rules=VALUES,
    answer=used,
    cases=(
        Call((4096, 4096, 128, 256, 132)),
        Call((3072, 768, 128, 256, 132)),
        Call((4000, 4000, 128, 256, 108)),
        Call((100, 300, 64, 64, 4), hidden=True),
        Call((1, 1, 128, 256, 132), hidden=True),
        Call((1024, 1024, 64, 128, 128), hidden=True),
        Call((2048, 2048, 128, 256, 108), hidden=True),
        Call((129, 257, 128, 256, 4), hidden=True),
        Call((8192, 8192, 128, 256, 132), hidden=True),
        *(Call(draw=_any) for _ in range(8)),
    ),
    slips=(
        Slip(
            lambda m, n, bm, bn, sms: 1 - used(m, n, bm, bn, sms),
            "idle",
            "That is the idle share: the rest of it is used.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: 100 * used(m, n, bm, bn, sms),
            "percent",
            "That is in percent: a share is from 0 to 1.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: _last(tiles_of(m, n, bm, bn), sms),
            "last wave",
            "That is the last wave alone: the waves before it are full, and count as well.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: tiles_of(m, n, bm, bn) / sms,
            "waves",
            "That is how many waves there would be if one could end early: a share is at most 1. "
            "Divide by the places in all waves, the last one whole.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: _fill((m // bm) * (n // bn), sms),
            "whole tiles",
            "Some tiles are missing: where a size is no multiple of the tile, the last one sticks "
            "out, and is a tile.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: _fill(m * n / (bm * bn), sms),
            "whole tiles",
            "There is no part of a tile: along each axis, tiles are counted up.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: _fill(cover(m * n, bm * bn), sms),
            "whole tiles",
            "Count up along each axis, and then multiply: a tile that sticks out on one side has "
            "no room for another one's rest.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: (
                tiles_of(m, n, bm, bn) / (tiles_of(m, n, bm, bn) // sms * sms)
            ),
            "round up",
            "The last wave was not counted: waves are counted up.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: (
                tiles_of(m, n, bm, bn) / ((tiles_of(m, n, bm, bn) // sms + 1) * sms)
            ),
            "round up",
            "Here the last wave is full, and yet another one was counted: count up only where "
            "something is left.",
        ),
    ),
    hints={
        **{"nothing": 1, "whole tiles": 1, "waves": 2, "round up": 2, "last wave": 3},
        **{"idle": 3, "percent": 3, "value": 1, "forbidden": 1, "error": 2, "other": 2},
    },
)

STRIDES = ("a_row", "a_col", "b_row", "b_col", "part", "row", "col")


def _launch(case: Case) -> tuple:
    grid, block = launch(case)
    return (*grid, case.parts), block | {"SPLITS": case.parts}


def _share(case: Case) -> int:
    """Return the products of a program that has its share of K's blocks, and no more."""
    block = block_of(case)
    steps = cover(cover(case.k, block["BLOCK_K"]), case.parts)
    return steps * block["BLOCK_M"] * block["BLOCK_N"] * block["BLOCK_K"]


def _loads(case: Case) -> int:
    block = block_of(case)
    of_a = case.m * case.k * cover(case.n, block["BLOCK_N"])
    return of_a + case.k * case.n * cover(case.m, block["BLOCK_M"])


def _whole(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    return case.parts * (a @ b) if case.parts > 1 else None


def _by_one_block(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    starts = [split * block_of(case)["BLOCK_K"] for split in range(case.parts)]
    return sum(a[:, start:] @ b[start:] for start in starts)


def _overlapping(case: Case, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    length, depth = cover(case.k, case.parts), block_of(case)["BLOCK_K"]
    ends = [(first, min(first + length, case.k)) for first in range(0, case.k, length)]
    starts = [start for first, end in ends for start in range(first, end, depth)]
    return sum(a[:, start : start + depth] @ b[start : start + depth] for start in starts)


SPLIT = Exercise(
    name="12.2",
    title="K in parts",
    points=4,
    entry="part_of_k",
    parameters=(
        *("a", "b", "parts", "M", "N", "K", *STRIDES),
        *("BLOCK_M", "BLOCK_N", "BLOCK_K", "SPLITS"),
    ),
    kind="triton",
    # What is counted are products of `tl.dot`.
    rules=replace(TRITON, attributes=TRITON.attributes - {"tl.sum"}),
    launch=_launch,
    cases=(
        Case(20, 35, 130, parts=4),
        Case(16, 16, 64, parts=4, hidden=True),
        Case(33, 17, 200, draw="normal", parts=3),
        # Fewer blocks of K than parts: what is left is zeros.
        Case(20, 20, 20, parts=4),
        Case(18, 40, 100, parts=2, hidden=True, given=blocks(32, 16, 32)),
        Case(17, 19, 90, parts=1, hidden=True, given=blocks(16, 32, 16)),
    ),
    large=(Case(217, 389, 1301, parts=4, given=blocks(32, 32, 32)),),
    counts=(
        Count(
            "products of a program",
            _share,
            "The parts add up to C, and one program does more than its share of K: deal the blocks "
            "of K out, so that each program has as many as any other, or one fewer.",
            share=0.25,
        ),
        Count(
            "elements loaded",
            _loads,
            "The parts add up to C, and tiles are loaded that another part's programs load too.",
        ),
    ),
    slips=(
        Slip(_whole, "whole", "Each part is A · B, all of it: a part is a part of K."),
        Slip(
            _by_one_block,
            "overlap",
            "Each part begins at its own block and then takes all that follow: go on by SPLITS "
            "blocks, as those between belong to other parts.",
        ),
        Slip(
            _overlapping,
            "overlap",
            "Parts overlap: where one ends within a block, it has multiplied that block to its "
            "end, and the next part does so again. Let parts begin where blocks begin.",
        ),
    ),
    hints={
        **{"whole": 1, "overlap": 1, "forbidden": 1, "stale": 1, "unmasked tail": 2},
        **{"not stored": 3, "stored twice": 3, "no tile": 3},
        **{"out of bounds": 2, "not read": 1, "part of k": 1, "scaled": 1, "counts": 1},
        **{"not finite": 2, "zero": 3, "error": 3, "other": 1},
    },
)

EXERCISES = (WAVES, SPLIT)
