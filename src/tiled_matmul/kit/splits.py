"""Settings of `cuda_split_k`, and the rule that picks one and the number of parts of K.

A few tiles are enough: a large one, one for C of few rows, one for C of few columns, and small ones
for small C. What each costs was fitted by `tools/survey_float32.py` to times on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tiled_matmul.kit.settings import Setting

# Of an H200: bytes in a microsecond that a product reads and writes at most; microseconds of the
# second kernel, and bytes of parts in a microsecond that are written and read again.
BYTES_A_US, SECOND_US, PARTS_A_US = 3.0e6, 2.5, 3.0e6
MOST_SPLITS = 64


def constants(setting: Setting, wide: int) -> dict[str, Any]:
    """Return the kernel's constants; it moves `wide` elements of rows of B and C at once, 4 or 1.

    Raises as `Setting.constants` does, and ValueError for tiles of B that single elements do not
    cover.
    """
    made = setting.constants(c_fours=True)
    del made["C_FOURS"]
    made |= {"WIDE": wide, "WARPS": setting.threads // 32, "C_ROW": setting.warp_n + 1}
    step = setting.threads * wide // setting.tile_n
    if step * setting.tile_n != setting.threads * wide or setting.tile_k % step:
        raise ValueError(f"{setting.threads} threads do not copy these tiles of B: {setting}")
    return made | {"B_STEP": step, "B_COPIES": setting.tile_k // step}


def cover(extent: int, tile: int) -> int:
    """Return how many tiles cover an extent."""
    return -(-extent // tile)


@dataclass(frozen=True)
class Costs:
    """A setting, and what its blocks cost on an H200 in microseconds.

    Blocks run side by side on a multiprocessor, up to `resident`. One takes `start`, and for each
    tile along K `latency`, or `share` for each block that runs there if that is longer. Tiles take
    `uneven` times as long where rows of B do not consist of aligned fours.
    """

    setting: Setting
    start: float
    latency: float
    share: float
    resident: int
    uneven: float

    def tiles(self, m: int, n: int) -> int:
        """Return how many tiles C (M, N) has."""
        return cover(m, self.setting.tile_m) * cover(n, self.setting.tile_n)

    def microseconds(
        self, m: int, n: int, k: int, multiprocessors: int, even: bool = True, splits: int = 1
    ) -> float:
        """Return about how long C (M, N) takes, with K in `splits` parts."""
        blocks = cover(self.tiles(m, n) * splits, multiprocessors)
        laps, rest = divmod(blocks, self.resident)
        step = laps * max(self.latency, self.resident * self.share)
        step += max(self.latency, rest * self.share) if rest else 0
        step *= 1 if even else self.uneven
        steps = cover(cover(k, self.setting.tile_k), splits)
        took = self.start * (laps + (rest > 0)) + steps * step
        took = max(took, 4 * (m * k + k * n + m * n) / BYTES_A_US)
        return took + (SECOND_US + 8 * splits * m * n / PARTS_A_US if splits > 1 else 0)

    def splits(self, m: int, n: int, k: int, multiprocessors: int) -> Iterator[int]:
        """Yield the numbers of parts that make sense."""
        most = 2 * self.resident * multiprocessors // self.tiles(m, n)
        yield from range(1, max(1, min(MOST_SPLITS, most, k // (2 * self.setting.tile_k))) + 1)


COSTS = (
    Costs(Setting(128, 256, 8, 32, 128, 8, 16, max_registers=255), 3.0, 0.9, 0.9, 1, 1.1),
    Costs(Setting(64, 128, 16, 32, 64, 8, 8, max_registers=168), 3.0, 0.6, 0.5, 3, 1.1),
    Costs(Setting(32, 64, 8, 32, 32, 4, 8, max_registers=96), 3.0, 0.2, 0.05, 10, 1.1),
    Costs(Setting(16, 128, 16, 16, 32, 4, 4, max_registers=80), 3.0, 0.2, 0.1, 6, 1.1),
    Costs(Setting(64, 32, 16, 16, 32, 4, 4, max_registers=80), 3.0, 0.2, 0.1, 6, 1.1),
)


@cache
def pick(m: int, n: int, k: int, multiprocessors: int, even: bool = True) -> tuple[Setting, int]:
    """Return the setting, and the number of parts of K, that the costs promise to be fastest.

    `even` is True if rows of B and C consist of aligned fours.
    """
    found = (
        (costs.microseconds(m, n, k, multiprocessors, even, splits), number, splits)
        for number, costs in enumerate(COSTS)
        for splits in costs.splits(m, n, k, multiprocessors)
    )
    _, number, splits = min(found)
    return COSTS[number].setting, splits
