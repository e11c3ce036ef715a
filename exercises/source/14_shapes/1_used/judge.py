"""14.1, waves: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.programs import tiles_of
from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip, cover


def used(m: int, n: int, block_m: int, block_n: int, sms: int) -> float:
    """Return the share of the multiprocessors' time in which they have a tile of C."""
    return filled(tiles_of(m, n, block_m, block_n), sms)


def filled(tiles: float, sms: int) -> float:
    """Return which share of the places in all waves, the last one whole, so many tiles take."""
    return tiles / (-(-tiles // sms) * sms)


def _last(tiles: int, sms: int) -> float:
    return (tiles % sms or sms) / sms


def _any(random: np.random.Generator) -> tuple[int, ...]:
    m, n, sms = (int(x) for x in random.integers(1, (20_000, 20_000, 200)))
    block = (16 * 2 ** int(x) for x in random.integers(1, 5, size=2))
    return m, n, *block, sms


EXERCISE = Exercise(
    name="14.1",
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
        Call((1408, 3072, 128, 256, 132)),  # one full wave
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
            lambda m, n, bm, bn, sms: filled((m // bm) * (n // bn), sms),
            "whole tiles",
            "Some tiles are missing: where a size is no multiple of the tile, the last one sticks "
            "out, and is a tile.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: filled(m * n / (bm * bn), sms),
            "whole tiles",
            "There is no part of a tile: along each axis, tiles are counted up.",
        ),
        Slip(
            lambda m, n, bm, bn, sms: filled(cover(m * n, bm * bn), sms),
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
