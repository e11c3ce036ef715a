"""12.3, tune to a ratio: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.programs import tiles_of
from tiled_matmul.grader.spec import VALUES, Call, Case, Exercise, Slip, Speed, cover

from .._reference import step
from .._shared import BANDWIDTH, BYTES, FLOPS, WGMMA_ROWS

SMS = 132

SETTINGS = (  # block_m, block_n, block_k, warps, stages
    (128, 256, 64, 8, 3),
    (256, 128, 64, 8, 3),
    (128, 128, 64, 8, 4),
    (64, 256, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (128, 64, 64, 4, 4),
    (64, 64, 64, 4, 4),
)


def _busy(m: int, n: int, block_m: int, block_n: int) -> float:
    """Return the share of the multiprocessors' time that makes elements of C."""
    waves = cover(tiles_of(m, n, block_m, block_n), SMS)
    return m * n / (waves * SMS * block_m * block_n)


def _roof(block_m: int, block_n: int) -> float:
    arithmetic, shared, _ = step(block_m, block_n, 1)
    return min(1, arithmetic / shared)


def expected(m: int, n: int, setting: tuple[int, ...]) -> float:
    """Return the share of the peak that a setting is expected to reach for a C of m × n."""
    return _busy(m, n, *setting[:2]) * _roof(*setting[:2])


def choose(m: int, n: int) -> tuple[int, ...]:
    """Return the setting of SETTINGS that is expected to be the fastest."""
    return max(SETTINGS, key=lambda setting: expected(m, n, setting))


def as_good(arguments: tuple[int, int], result: object) -> str:
    """Return "" for a setting that is expected to be as fast as the fastest, else what it is."""
    setting = tuple(result) if isinstance(result, list) else result
    if setting not in SETTINGS or not all(type(number) is int for number in setting):
        return "That is none of SETTINGS: return one of them, all five whole numbers."
    mine, most = (expected(*arguments, one) for one in (setting, choose(*arguments)))
    if np.isclose(mine, most):
        return ""
    return f"By the two shares it comes to {mine:.2g} of the peak, and another one to {most:.2g}."


def _full(m: int, n: int, block_m: int, block_n: int) -> float:
    tiles = tiles_of(m, n, block_m, block_n)
    return tiles / (cover(tiles, SMS) * SMS)


def _best(value: Callable[[tuple[int, ...]], float]) -> tuple[int, ...]:
    return max(SETTINGS, key=value)


def _counted(waves: Callable[..., float]) -> Callable[[int, int], tuple[int, ...]]:
    """Return what chooses a setting with another count of waves, of (m, n, rows, columns)."""

    def made(m: int, n: int) -> tuple[int, ...]:
        return _best(
            lambda s: m * n / (max(1e-9, waves(m, n, *s[:2])) * s[0] * s[1]) * _roof(*s[:2])
        )

    return made


def _largest(m: int, n: int) -> tuple[int, ...] | None:
    """The setting for a large C, where it leaves more than half of the multiprocessors idle."""
    return SETTINGS[0] if _full(m, n, *SETTINGS[0][:2]) < 0.5 else None


COUNTED = "Are tiles counted upwards along both axes, rows along m, and the waves upwards again?"

WAVES = (
    lambda m, n, r, c: tiles_of(m, n, r, c) / SMS,
    lambda m, n, r, c: max(1, tiles_of(m, n, r, c) // SMS),
    lambda m, n, r, c: tiles_of(m, n, r, c) // SMS + 1,
    lambda m, n, r, c: max(1, cover((m // r) * (n // c), SMS)),
    lambda m, n, r, c: cover(m * n, r * c * SMS),
    lambda m, n, r, c: cover(tiles_of(n, m, r, c), SMS),
)


def _any_c(random: np.random.Generator) -> tuple[int, int]:
    m, n = (int(x) for x in random.integers(64, random.choice((6000, 40_000)), size=2))
    return m, n


EXERCISE = Exercise(
    name="12.3",
    title="tune to a ratio",
    points=3,
    entry="choose",
    parameters=("m", "n"),
    kind="values",
    rules=VALUES,
    given={
        "SETTINGS": SETTINGS,
        "SMS": SMS,
        **{"BYTES": BYTES, "FLOPS": FLOPS, "BANDWIDTH": BANDWIDTH, "WGMMA_ROWS": WGMMA_ROWS},
    },
    answer=choose,
    accepts=as_good,
    choices="SETTINGS",
    cases=(
        Call((4096, 4096)),
        Call((1024, 1024)),
        Call((640, 640)),
        Call((512, 4096)),
        Call((1408, 3072)),  # one full wave
        Call((7331, 775)),  # another setting by each wrong count, or product
        Call((2459, 808)),
        Call((907, 5211)),  # another setting by the sum of the shares
        Call((1793, 1563)),  # and by the smaller of the two
        Call((1, 1)),  # shares far below a percent
        *(Call(draw=_any_c) for _ in range(12)),
    ),
    slips=(
        Slip(
            _largest,
            "always",
            "That is the setting for a large C. Here it leaves most multiprocessors without a "
            "tile: count the waves.",
        ),
        Slip(
            lambda m, n: _best(lambda s: _busy(m, n, *s[:2])),
            "roof",
            "That keeps the multiprocessors busy, and each of them waits for shared memory: a "
            "small tile's roof is low.",
        ),
        Slip(
            lambda m, n: _best(lambda s: _full(m, n, *s[:2]) * _roof(*s[:2])),
            "edges",
            "Its waves are full, of tiles that stick out of C: what counts is the work that is "
            "part of C.",
        ),
        *(Slip(_counted(waves), "count", COUNTED) for waves in WAVES),
        Slip(
            lambda m, n: _best(lambda s: min(_busy(m, n, *s[:2]), _roof(*s[:2]))),
            "product",
            "That is the best of the smaller share: the two are multiplied.",
        ),
        Slip(
            lambda m, n: _best(lambda s: _busy(m, n, *s[:2]) + _roof(*s[:2])),
            "product",
            "That is the best by the sum of the two shares: they are multiplied.",
        ),
        Slip(
            lambda m, n: min(SETTINGS, key=lambda s: expected(m, n, s)),
            "worst",
            "That is the slowest of them.",
        ),
    ),
    speed=Speed(
        Case(1024, 1024, 4096, "float16", draw="normal"),
        "cublas",
        0.6,
        1,
        "Measured, the setting for this shape is further from cuBLAS than the models say: is it "
        "the one for a C of 1024 × 1024?",
        of="triton_swizzled",
        settings={"block": (0, 3), "num_warps": 3, "num_stages": 4},
    ),
    hints={
        **{"nothing": 1, "always": 1, "roof": 2, "edges": 3, "worst": 1, "value": 2, "count": 3},
        **{"product": 3, "forbidden": 2, "error": 3, "slow": 3, "other": 2},
    },
)
