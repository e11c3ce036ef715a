"""Settings of `cuda_split_k`, and the rule that picks one and the number of parts of K.

A few tiles are enough: a large one, one for C of few rows, one for C of few columns, and small ones
for small C. What each costs was fitted to times of 240 drawn products on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tiled_matmul.kit.settings import Setting, cover
from tiled_matmul.models.waves import side_by_side

# Of an H200: bytes in a microsecond that a product reads and writes at most; microseconds of the
# second kernel, and bytes of parts in a microsecond that are written and read again; the same of a
# copy of B.
BYTES_A_US, SECOND_US, PARTS_A_US, COPY_US, COPIED_A_US = 3.0e6, 2.5, 3.0e6, 3.0, 1.5e6
MOST_SPLITS = 64


@dataclass(frozen=True)
class Job:
    """C (M, N) with K products each, on a GPU with so many multiprocessors.

    `even` is True if rows of B consist of aligned fours.
    """

    m: int
    n: int
    k: int
    multiprocessors: int
    even: bool = True


@dataclass(frozen=True)
class Split:
    """A setting, the number of parts of K, and whether rows of B are first padded to fours."""

    setting: Setting
    splits: int = 1
    padded: bool = False


@dataclass(frozen=True)
class Pace:
    """Microseconds on an H200: of a block's start and end, of a tile along K, and of its share.

    A tile takes `latency`, or `share` for each block that runs on the multiprocessor if that is
    longer.
    """

    start: float
    latency: float
    share: float


@dataclass(frozen=True)
class Costs:
    """A setting, how many of its blocks run side by side on a multiprocessor, and their paces.

    `fours` is the pace where rows of B consist of aligned fours, `singles` where they do not.
    """

    setting: Setting
    resident: int
    fours: Pace
    singles: Pace

    def tiles(self, job: Job) -> int:
        """Return how many tiles C has."""
        return cover(job.m, self.setting.tile_m) * cover(job.n, self.setting.tile_n)

    def microseconds(self, job: Job, splits: int = 1, padded: bool = False) -> float:
        """Return about how long a job takes, with K in `splits` parts, and B perhaps padded."""
        m, n, k = job.m, job.n, job.k
        pace = self.fours if job.even or padded else self.singles
        blocks = cover(self.tiles(job) * splits, job.multiprocessors)
        steps = cover(cover(k, self.setting.tile_k), splits)
        took = side_by_side(blocks, self.resident, pace.start, pace.latency, pace.share, steps)
        took = max(took, 4 * (m * k + k * n + m * n) / BYTES_A_US)
        if splits > 1 or padded:
            took += SECOND_US + 8 * splits * m * n / PARTS_A_US
        return took + (COPY_US + 8 * k * n / COPIED_A_US if padded else 0)

    def splits(self, job: Job) -> Iterator[int]:
        """Yield the numbers of parts that make sense."""
        most = 2 * self.resident * job.multiprocessors // self.tiles(job)
        most = min(MOST_SPLITS, most, job.k // (2 * self.setting.tile_k))
        yield from range(1, max(1, most) + 1)


COSTS = (
    Costs(
        Setting(128, 256, 8, 32, 128, 8, 16, max_registers=255),
        1,
        Pace(4.31, 1.280, 0.939),
        Pace(7.34, 1.531, 1.408),
    ),
    Costs(
        Setting(64, 128, 16, 32, 64, 8, 8, max_registers=168),
        3,
        Pace(3.50, 0.803, 0.677),
        Pace(6.31, 1.204, 0.830),
    ),
    Costs(
        Setting(64, 64, 8, 32, 64, 8, 8, max_registers=144),
        7,
        Pace(3.39, 0.431, 0.195),
        Pace(4.15, 0.621, 0.230),
    ),
    Costs(
        Setting(32, 64, 16, 16, 32, 4, 4, max_registers=80),
        6,
        Pace(2.99, 0.333, 0.264),
        Pace(4.15, 0.733, 0.304),
    ),
    Costs(
        Setting(64, 32, 16, 16, 32, 4, 4, max_registers=80),
        6,
        Pace(2.88, 0.383, 0.304),
        Pace(4.89, 0.519, 0.316),
    ),
    Costs(
        Setting(64, 16, 16, 32, 16, 4, 4, max_registers=96),
        10,
        Pace(2.95, 0.466, 0.198),
        Pace(4.15, 0.584, 0.214),
    ),
)


@cache
def pick(job: Job) -> Split:
    """Return what the costs promise to be fastest."""
    found = (
        (costs.microseconds(job, splits, padded), number, splits, padded)
        for number, costs in enumerate(COSTS)
        for splits in costs.splits(job)
        for padded in ((False,) if job.even else (False, True))
    )
    _, number, splits, padded = min(found)
    return Split(COSTS[number].setting, splits, padded)
