"""12.1, the budget: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

from .._shared import BYTES, WARP

SHARED, REGISTERS, MOST = 227 * 1024, 65_536, 255


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
    """Return a setting with whole sums, which may be counted by / or by //."""
    m, n, k = (16 * 2 ** int(x) for x in random.integers(5, size=3))
    most = min(4, (m * n // WARP).bit_length() - 1)
    return m, n, k, 2 ** int(random.integers(most + 1)), int(random.integers(1, 7))


EXERCISE = Exercise(
    name="12.1",
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
        # 256 · 256 sums fill the registers of a multiprocessor, whatever the warps.
        Call((256, 256, 32, 16, 3)),
        Call((64, 256, 16, 1, 1)),
        # 254 sums fit into a thread's registers, and 255 do not.
        Call((64, 127, 16, 1, 1)),
        Call((96, 85, 16, 1, 1)),
        # To the byte: 227 KiB fit, and one tile more does not.
        Call((128, 99, 512, 4, 1)),
        Call((128, 100, 512, 4, 1)),
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
