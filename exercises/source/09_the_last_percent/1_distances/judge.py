"""09.1, distances with a tile for each warp: what is asked for, and how an answer is judged."""

from __future__ import annotations

import numpy as np

from tiled_matmul.grader.spec import (
    CUDA,
    ONCE,
    PADDED,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
    each_its_own,
    loads_of_whole_tiles,
)

ABC = ("a", "b", "c")
DEPTH = 8
SHAPE = ("WARPS_M", "WARPS_N", "LANES_M", "LANES_N", "OWN_M", "OWN_N")


def constants(*shape: int) -> dict[str, int]:
    """Return the constants of the exercise for the numbers of warps, lanes and own elements."""
    warps_m, warps_n, lanes_m, lanes_n, own_m, own_n = shape
    edges = warps_m * lanes_m * own_m, warps_n * lanes_n * own_n
    rows = [edge + (4 - edge) % 8 for edge in edges]  # 8 rows of 4 elements fill the banks
    return dict(zip(SHAPE, shape, strict=True)) | {
        **{"TILE_M": edges[0], "TILE_N": edges[1], "DEPTH": DEPTH},
        **{"A_ROW": rows[0], "B_ROW": rows[1], "THREADS": 32 * warps_m * warps_n},
    }


GIVEN = constants(2, 2, 4, 8, 2, 2)
SMALL = constants(1, 2, 4, 8, 1, 1)  # 4 × 16 elements a block
SHAPES = (
    *(constants(2, 1, 8, 4, 1, 2), constants(1, 2, 2, 16, 2, 1), SMALL),
    *(constants(1, 1, 4, 8, 3, 1), constants(2, 2, 8, 4, 1, 1)),
)
WIDE, HIGH = constants(1, 1, 2, 16, 1, 4), constants(1, 1, 16, 2, 4, 1)


def _of(case: Case, name: str) -> int:
    return case.given.get(name, GIVEN[name])


def launch(case: Case) -> tuple:
    grid = cover(case.n, _of(case, "TILE_N")), cover(case.m, _of(case, "TILE_M"))
    return grid, (_of(case, "THREADS"), 1)


def _own(case: Case) -> int:
    return _of(case, "OWN_M") * _of(case, "OWN_N")


def _loads_of_a_thread(case: Case) -> int:
    """Return what a thread loads along K, with room for its part of the tiles."""
    return (_of(case, "OWN_M") + _of(case, "OWN_N")) * (case.k + PADDED)


def _rounds(case: Case) -> int:
    """Return how often a warp goes through one k, over all warps."""
    (across, down), (threads, _) = launch(case)
    return across * down * threads // 32 * DEPTH * cover(case.k, DEPTH)


def _words(case: Case) -> int:
    each = _of(case, "LANES_M") * _of(case, "OWN_M") + _of(case, "LANES_N") * _of(case, "OWN_N")
    return _rounds(case) * each


def _loads(case: Case) -> int:
    return 32 * _rounds(case) * (_of(case, "OWN_M") + _of(case, "OWN_N"))


def _result(case: Case, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = [np.abs(row - b).sum(axis=1) for row in a]
    sizes = np.abs(a).sum(axis=1)[:, None] + np.abs(b).sum(axis=1)
    return np.array(rows), sizes


def _instead(form) -> object:
    return lambda case, a, b: np.array([form(row - b).sum(axis=1) for row in a])


def _part(case: Case, a: np.ndarray, b: np.ndarray, k: slice) -> np.ndarray:
    return _result(case, a[:, k], b[:, k])[0]


def distance_cases(numbers: int = 0) -> tuple[Case, ...]:
    """Return cases with each remainder of K over a tile, and other constants by turns."""
    random = np.random.default_rng(numbers)
    cases = []
    for rest in range(DEPTH):
        given = SHAPES[(rest + numbers) % len(SHAPES)]
        m, n = (int(given[x] + random.integers(1, 6)) for x in ("TILE_M", "TILE_N"))
        draw = ("integers", "normal", "wide")[rest % 3]
        order = ("forward", "reverse", "shuffle")[rest % 3]
        k = 8 * (5 if rest % 4 == 1 else 1) + rest
        cases.append(Case(m, n, k, draw=draw, order=order, given=given))
    return tuple(cases)


EXERCISE = Exercise(
    name="09.1",
    title="distances, a tile for each warp",
    points=4,
    entry="distances",
    parameters=ABC,
    kind="cuda",
    rules=CUDA,
    limits=Limits(cost=3),
    given=GIVEN,
    launch=launch,
    operation=Operation(
        arrays=ABC,
        shapes=lambda case: ((case.m, case.k), (case.n, case.k), (case.m, case.n)),
        result=_result,
        terms=lambda case: case.k + 1,
    ),
    cases=(
        Case(17, 35, 9),
        Case(5, 70, 3, given=WIDE),
        Case(70, 3, 2, draw="normal", given=HIGH, order="reverse"),
        Case(9, 17, 1, given=SMALL),
        Case(3, 290, 5, given=SMALL, order="shuffle"),
        Case(2, 3, 300, given=SMALL, draw="normal"),
        *distance_cases(),
    ),
    large=(Case(517, 389, 301, draw="normal", given=constants(2, 4, 4, 8, 4, 4)),),
    slips=(
        Slip(
            _instead(lambda x: x),
            "value",
            "That is the sum of the differences: the sum wants their absolute values.",
        ),
        Slip(
            _instead(lambda x: x * x),
            "value",
            "That is the sum of the squared differences: the sum wants their absolute values.",
        ),
        Slip(
            _instead(lambda x: -np.abs(x)),
            "value",
            "The sign is wrong: the distances are subtracted from 0.",
        ),
        Slip(
            lambda case, a, b: a @ b.T,
            "value",
            "That is the product A·Bᵀ: the sum wants |a − b|, and not a · b.",
        ),
        Slip(
            lambda case, a, b: _part(case, a, b, slice((case.k - 1) // DEPTH * DEPTH, None)),
            "restarted",
            "That is the sum over the last tile of K alone: the running sums are set to zero "
            "before the loop over tiles, not in it.",
        ),
        Slip(
            lambda case, a, b: _part(case, a, b, slice(case.k // DEPTH * DEPTH)),
            "part of k",
            "The last tile of K is missing where K is no multiple of DEPTH.",
        ),
    ),
    counts=(
        Count(
            "global loads",
            lambda case: loads_of_whole_tiles(
                case, _of(case, "TILE_M"), _of(case, "TILE_N"), DEPTH
            ),
            "C is right, but it takes more from global memory than the tiles hold: use what lies "
            "in shared memory.",
            "sharing",
            share=0,
        ),
        ONCE,
        *each_its_own(_own, loads=_loads_of_a_thread),
        Count(
            "shared loads",
            _loads,
            "C is right, but a thread loads more than OWN_M + OWN_N elements for each k. Load each "
            "of them once, and use all pairs.",
            "loads",
            best=_loads,
        ),
        Count(
            "shared words",
            _words,
            "C is right, but the loads of a warp read more different elements than its tile has "
            "rows and columns. The lanes of a warp lie in LANES_M rows of LANES_N, and each warp "
            "has a compact tile of its own.",
            "words",
            best=_words,
        ),
        Count(
            "bank conflicts",
            lambda case: 0,
            "C is right, but lanes of a warp load different words of one bank. Which elements of "
            "its warp's tile should a lane own, so that neighbouring lanes load neighbouring "
            "words?",
            "conflicts",
            best=lambda case: 0,
        ),
    ),
    remedies=dict.fromkeys(
        ("same element", "clamped"),
        "Two threads own one element of C. Each warp's tile begins at its place among the WARPS_M "
        "× WARPS_N warps of the block, and a lane's elements at its place among the lanes; a "
        "thread stores only what exists.",
    ),
    hints={
        **{"loads": 2, "words": 1, "conflicts": 2, "value": 3, "sharing": 2, "part of k": 3},
        **{"race": 1, "same element": 1, "stale": 1, "out of bounds": 3, "error": 3, "other": 1},
    },
)
