"""11_tuning: what a setting asks for, which of two roofs is above a tile, and which to take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Case, Exercise, Slip, Speed, cover
from tiled_matmul.grader.specs.ch12 import tiles_of, used

BYTES, WARP = 2, 32
SHARED, REGISTERS, MOST = 227 * 1024, 65_536, 255
FLOPS, BANDWIDTH, WGMMA_ROWS = 4096, 128, 64


def budget(
    block_m: int, block_n: int, block_k: int, warps: int, stages: int
) -> tuple[int, float, bool]:
    """Return (bytes of shared memory, sums of a thread, does it fit?) of a setting on an H200."""
    shared = (block_m * block_k + block_k * block_n) * BYTES * stages
    sums = block_m * block_n / (WARP * warps)
    return shared, sums, shared <= SHARED and sums < min(MOST, REGISTERS / (WARP * warps))


def _shared(m: int, n: int, k: int, stages: int) -> int:
    return (m * k + k * n) * BYTES * stages


def _any_setting(random: np.random.Generator) -> tuple[int, ...]:
    block = (16 * 2 ** int(x) for x in random.integers(5, size=3))
    return *block, 2 ** int(random.integers(5)), int(random.integers(1, 7))


BUDGET = Exercise(
    name="11.1",
    title="the budget",
    points=3,
    entry="budget",
    parameters=("block_m", "block_n", "block_k", "warps", "stages"),
    kind="values",
    rules=VALUES,
    given={
        **{"BYTES": BYTES, "WARP": WARP, "SHARED": SHARED, "REGISTERS": REGISTERS, "MOST": MOST}
    },
    answer=budget,
    cases=(
        Call((128, 256, 64, 8, 3)),
        Call((128, 256, 128, 8, 3)),
        Call((128, 256, 64, 4, 3)),
        Call((64, 128, 32, 4, 4)),
        Call((128, 256, 64, 8, 4), hidden=True),
        Call((256, 128, 64, 8, 5), hidden=True),
        # 256 · 256 sums fill the registers of a multiprocessor, whatever the warps.
        Call((256, 256, 32, 16, 3)),
        Call((256, 256, 32, 8, 3), hidden=True),
        Call((256, 256, 128, 8, 2), hidden=True),
        Call((256, 128, 32, 4, 2), hidden=True),
        Call((64, 64, 128, 16, 6), hidden=True),
        Call((64, 256, 16, 1, 1)),
        # To the byte: 227 KiB fit, and one tile more does not.
        Call((128, 99, 512, 4, 1), hidden=True),
        Call((128, 100, 512, 4, 1), hidden=True),
        *(Call(draw=_any_setting) for _ in range(8)),
    ),
    slips=(
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, 1),
            "stages",
            "The first value is one stage's tiles: each stage has its own.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) // BYTES,
            "bytes",
            "The first value counts elements: each takes BYTES.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) * 2,
            "bytes",
            "The first value is twice what it should be: a 16-bit float takes 2 bytes.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) / 1024,
            "bytes",
            "The first value is in KiB: it should be bytes, as SHARED is.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s - 1),
            "stages",
            "The first value has one buffer too few: that is an A100, where what is being "
            "multiplied lies in registers. On an H200 each stage takes its own.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) + m * n * BYTES,
            "sums",
            "The first value has a tile of C in it: the sums lie in registers.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) + m * n * 4,
            "sums",
            "The first value has the sums in it: those lie in registers.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: m * n * BYTES * s,
            "stages",
            "The first value is a tile of C: what is staged are tiles of A, block_m × block_k, and "
            "of B, block_k × block_n.",
            part=0,
        ),
        Slip(
            lambda m, n, k, w, s: m * n / w,
            "threads",
            "The second value is what a warp has: its 32 threads share it.",
            part=1,
        ),
        Slip(
            lambda m, n, k, w, s: m * n / WARP,
            "threads",
            "The second value is as if there were one warp: all of them share the tile.",
            part=1,
        ),
        Slip(
            lambda m, n, k, w, s: m * n,
            "threads",
            "The second value is the whole tile: all threads of all warps share it.",
            part=1,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) < SHARED and budget(m, n, k, w, s)[2],
            "exactly",
            "SHARED is what a block may have: exactly as much fits.",
            part=2,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) <= SHARED and m * n / (WARP * w) < MOST,
            "registers",
            "A thread of so many warps has no MOST registers: all threads share REGISTERS, and "
            "each needs one beside its sums.",
            part=2,
        ),
        Slip(
            lambda m, n, k, w, s: _shared(m, n, k, s) <= SHARED,
            "registers",
            "It fits into shared memory, and not into registers. A thread has MOST at most, and "
            "REGISTERS are for all threads together; it needs one beside its sums.",
            part=2,
        ),
        Slip(
            lambda m, n, k, w, s: m * n / (WARP * w) < min(MOST, REGISTERS / (WARP * w)),
            "shared",
            "It fits into registers, and not into shared memory: both have to.",
            part=2,
        ),
    ),
    hints={
        **{"nothing": 1, "stages": 1, "bytes": 1, "sums": 1, "shared": 3, "exactly": 3},
        **{"threads": 2, "registers": 3, "value": 1, "forbidden": 1, "error": 3, "other": 3},
    },
)


def step(rows: int, columns: int, depth: int) -> tuple[float, float, str]:
    """Return (clocks of arithmetic, clocks of shared memory, which is longer) of a step along K."""
    arithmetic = 2 * rows * columns * depth / FLOPS
    written = (rows + columns) * depth * BYTES
    read = (rows * depth + rows // WGMMA_ROWS * columns * depth) * BYTES
    shared = (written + read) / BANDWIDTH
    return arithmetic, shared, _longer(arithmetic, shared)


def _longer(arithmetic: float, shared: float) -> str:
    if arithmetic == shared:
        return "both"
    return "arithmetic" if arithmetic > shared else "shared memory"


def _moved(elements: float) -> float:
    return elements * BYTES / BANDWIDTH


def _any_tile(random: np.random.Generator) -> tuple[int, ...]:
    rows, columns, depth = (int(x) for x in random.integers(1, (6, 17, 9)))
    return 64 * rows, 16 * columns, 16 * depth


ROOF = Exercise(
    name="11.2",
    title="which roof",
    points=3,
    entry="step",
    parameters=("rows", "columns", "depth"),
    kind="values",
    rules=VALUES,
    given={"BYTES": BYTES, "FLOPS": FLOPS, "BANDWIDTH": BANDWIDTH, "WGMMA_ROWS": WGMMA_ROWS},
    answer=step,
    cases=(
        Call((192, 128, 64)),  # another number by each of the slips
        Call((128, 256, 64)),
        Call((64, 64, 128)),
        Call((256, 128, 64)),
        Call((192, 256, 64), hidden=True),
        Call((256, 256, 32), hidden=True),
        Call((64, 256, 64), hidden=True),
        Call((128, 128, 32), hidden=True),
        Call((64, 16, 16), hidden=True),
        Call((320, 240, 48), hidden=True),
        *(Call(draw=_any_tile) for _ in range(6)),
    ),
    slips=(
        Slip(
            lambda m, n, k: m * n * k / FLOPS,
            "flops",
            "The first value is half of it: a multiply-add is two FLOPs.",
            part=0,
        ),
        Slip(
            lambda m, n, k: 2 * m * n * k,
            "flops",
            "The first value is FLOPs: it should be clocks, of FLOPS each.",
            part=0,
        ),
        Slip(
            lambda m, n, k: _moved((m + n) * k),
            "read",
            "The second value is what the copies write. `wgmma` then reads it as well.",
            part=1,
        ),
        Slip(
            lambda m, n, k: _moved(m * k + m // WGMMA_ROWS * n * k),
            "written",
            "The second value is what `wgmma` reads. The copies have written it before.",
            part=1,
        ),
        Slip(
            lambda m, n, k: _moved(2 * (m + n) * k),
            "again",
            "The second value has B read once: each `wgmma` takes WGMMA_ROWS rows of A and reads "
            "all of B's tile, so B is read again for each of them.",
            part=1,
        ),
        Slip(
            lambda m, n, k: _moved((m + n) * k + n // WGMMA_ROWS * m * k + n * k),
            "again",
            "The second value has A read again for each 64 columns: it is B that is read again, "
            "for each 64 rows.",
            part=1,
        ),
        Slip(
            lambda m, n, k: _moved((m + n) * k + m // WGMMA_ROWS * (m + n) * k),
            "again",
            "The second value has A read for each 64 rows, all of it. Each `wgmma` reads its own "
            "64 rows of A: A is read once in all.",
            part=1,
        ),
        Slip(
            lambda m, n, k: step(m, n, k)[1] / BYTES,
            "bytes",
            "The second value counts elements: each takes BYTES.",
            part=1,
        ),
        Slip(
            lambda m, n, k: step(m, n, k)[1] * BANDWIDTH,
            "bytes",
            "The second value is bytes: it should be clocks, of BANDWIDTH bytes each.",
            part=1,
        ),
        Slip(
            lambda m, n, k: {"arithmetic": "shared memory", "shared memory": "arithmetic"}.get(
                step(m, n, k)[2]
            ),
            "longer",
            "Both numbers are right and the word is not: what takes longer is what the tile waits "
            "for.",
            part=2,
        ),
        Slip(
            lambda m, n, k: "arithmetic" if step(m, n, k)[2] == "both" else None,
            "equal",
            'Both take as long here: the word is "both".',
            part=2,
        ),
        Slip(
            lambda m, n, k: "shared memory" if step(m, n, k)[2] == "both" else None,
            "equal",
            'Both take as long here: the word is "both".',
            part=2,
        ),
    ),
    hints={
        **{"nothing": 1, "flops": 1, "bytes": 1, "read": 2, "written": 2, "again": 2},
        **{"longer": 3, "equal": 3, "value": 1, "forbidden": 1, "error": 3, "other": 3},
    },
)

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
    return f"By the two shares it comes to {mine:.0%} of the peak, and another one to {most:.0%}."


def _full(m: int, n: int, block_m: int, block_n: int) -> float:
    return used(m, n, block_m, block_n, SMS)


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
    m, n = (int(x) for x in random.integers(64, 6000, size=2))
    return m, n


TUNED = Exercise(
    name="11.3",
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
    cases=(
        Call((4096, 4096)),
        Call((1024, 1024)),
        Call((640, 640)),
        Call((512, 4096)),
        Call((2000, 3000), hidden=True),
        Call((100, 5000), hidden=True),
        Call((5000, 100), hidden=True),
        Call((1, 1), hidden=True),
        Call((4160, 4160), hidden=True),
        Call((1408, 3072)),  # one full wave
        Call((7331, 775)),  # another setting by each wrong count, or product
        Call((2459, 808)),
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
        settings=lambda result: {
            "block": result[:3],
            "num_warps": result[3],
            "num_stages": result[4],
        },
    ),
    hints={
        **{"nothing": 1, "always": 1, "roof": 2, "edges": 3, "worst": 1, "value": 2, "count": 3},
        **{"product": 3, "forbidden": 2, "error": 3, "slow": 3, "other": 2},
    },
)

EXERCISES = (BUDGET, ROOF, TUNED)
