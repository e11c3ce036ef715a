"""12.2, which roof: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

from .._reference import step
from .._shared import BANDWIDTH, BYTES, FLOPS, WGMMA_ROWS


def _moved(elements: float) -> float:
    return elements * BYTES / BANDWIDTH


def _any_tile(random: np.random.Generator) -> tuple[int, ...]:
    rows, columns, depth = (int(x) for x in random.integers(1, (6, 17, 9)))
    return 64 * rows, 16 * columns, 16 * depth


EXERCISE = Exercise(
    name="12.2",
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
