"""08.2, copies in flight: what is asked for, and how an answer is judged."""

from __future__ import annotations

from dataclasses import replace

from tiled_matmul.grader.spec import (
    CUDA,
    NO_NEEDLESS_BARRIERS,
    ONCE,
    Count,
    Exercise,
    Limits,
    each_its_own,
)

from .._shared import ABC, CASES, FLOAT, LARGE, SHARED, TILE, blocks, launch, tile_edge

EXERCISE = Exercise(
    name="08.2",
    title="copies in flight",
    points=4,
    entry="in_flight",
    parameters=ABC,
    kind="cuda",
    rules=replace(CUDA, names=CUDA.names | {"copy_async", "commit_copies", "wait_copies"}),
    limits=Limits(cost=1.5),
    tile=TILE,
    given={"TILE": TILE},
    launch=launch,
    cases=CASES,
    large=LARGE,
    since=(8, 0),
    counts=(
        SHARED,
        ONCE,
        *each_its_own(),
        NO_NEEDLESS_BARRIERS,
        Count(
            "plain global loads",
            lambda case: 0,
            "C is right, but some elements come by a load and not by `copy_async`.",
            "plain",
        ),
        Count(
            "bare copies",
            lambda case: 2 * blocks(case) * tile_edge(case) ** 2,
            "C is right, but nobody multiplies while the copies are on their way: they are waited "
            "for at once. Only the first tile has nothing to hide behind: send for the next one, "
            "then multiply, then wait.",
            "bare",
            share=0,
            best=lambda case: 2 * blocks(case) * tile_edge(case) ** 2,
        ),
        Count(
            "shared bytes",
            lambda case: 8 * tile_edge(case) ** 2 * FLOAT,
            "C is right, but two buffers of each tile are enough, four at most: a large K would "
            "not fit.",
            "memory",
        ),
    ),
    remedies={
        "never copied": "No thread has begun a copy to it. Under an `if` a copy puts no zero: let "
        "every thread begin its copy, and say by the last argument whether the element is present.",
    },
    hints={
        **{"race": 2, "uninitialised read": 2, "divergent barrier": 3, "bare": 1, "plain": 3},
        **{"sharing": 1, "memory": 1, "out of bounds": 3, "part of k": 3, "error": 3, "other": 2},
    },
)
