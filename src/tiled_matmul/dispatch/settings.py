"""The settings of `cuda_best`, and the rule that picks one by the shape.

SETTINGS are the winners of a search; `measure.search` holds all candidates.
"""

from __future__ import annotations

from tiled_matmul.kit.settings import Setting, cover

SETTINGS = (
    Setting(128, 256, 8, 32, 128, 8, 16, max_registers=255),  # one block per multiprocessor
    Setting(64, 128, 16, 32, 64, 8, 8, max_registers=168),  # three blocks
    Setting(32, 64, 16, 16, 32, 4, 4, max_registers=128, weight=1.4),  # four blocks; small problems
)


def pick(m: int, n: int, multiprocessors: int) -> Setting:
    """Return the setting with the least work on the busiest multiprocessor; the first of equals."""

    def load(setting: Setting) -> float:
        blocks = cover(m, setting.tile_m) * cover(n, setting.tile_n)
        waves = cover(blocks, multiprocessors)
        return waves * setting.tile_m * setting.tile_n * setting.weight

    return min(SETTINGS, key=load)
