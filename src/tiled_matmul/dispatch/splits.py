"""Settings of `cuda_best` and `cuda_split_k`, and the rule that picks one and the parts of K.

A few tiles are enough: large ones for large C, small ones for small C, and some for C of few rows
or few columns. What each costs was fitted to times of 120 drawn products on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tiled_matmul.kit.settings import Setting, cover

# Of an H200: bytes in a microsecond that a product reads and writes at most; microseconds of the
# second kernel, and bytes of parts in a microsecond that are written and read again; the same of a
# copy of B.
BYTES_A_US, SECOND_US, PARTS_A_US, COPY_US, COPIED_A_US = 3.0e6, 2.0, 5.9e6, 1.4, 2.5e6
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

    Alone on a multiprocessor, a block takes `latency` for a tile; where many blocks share it, each
    adds `share`.
    """

    start: float
    latency: float
    share: float

    def tile(self, blocks: int) -> float:
        """Return the microseconds for a tile of each of so many blocks, side by side."""
        return (self.latency**4 + (self.share * blocks) ** 4) ** 0.25


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
        laps, rest = divmod(blocks, self.resident)
        took = laps * (pace.start + steps * pace.tile(self.resident))
        took += pace.start + steps * pace.tile(rest) if rest else 0
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
        Pace(4.30, 1.087, 1.081),
        Pace(7.60, 1.118, 1.112),
    ),
    Costs(
        Setting(64, 128, 16, 32, 64, 8, 8, max_registers=168),
        3,
        Pace(2.73, 0.638, 0.676),
        Pace(5.12, 0.819, 0.750),
    ),
    Costs(
        Setting(32, 64, 16, 16, 32, 4, 4, max_registers=80),
        6,
        Pace(1.87, 0.347, 0.284),
        Pace(2.55, 0.354, 0.306),
    ),
    Costs(
        Setting(128, 128, 8, 32, 64, 8, 8, max_registers=128),
        2,
        Pace(2.58, 0.410, 0.695),
        Pace(5.71, 0.020, 0.728),
    ),
    Costs(
        Setting(64, 64, 16, 32, 64, 8, 8, max_registers=168),
        6,
        Pace(2.84, 0.784, 0.394),
        Pace(5.65, 0.964, 0.461),
    ),
    Costs(
        Setting(32, 128, 16, 16, 64, 4, 8, max_registers=128),
        4,
        Pace(2.04, 0.472, 0.418),
        Pace(3.28, 0.536, 0.463),
    ),
    Costs(
        Setting(128, 32, 16, 32, 32, 8, 4, max_registers=128),
        4,
        Pace(1.85, 0.719, 0.511),
        Pace(3.15, 0.646, 0.534),
    ),
    Costs(
        Setting(64, 32, 16, 16, 32, 4, 4, max_registers=80),
        6,
        Pace(1.90, 0.441, 0.302),
        Pace(2.56, 0.449, 0.326),
    ),
)
SETTINGS = tuple(costs.setting for costs in COSTS)


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
