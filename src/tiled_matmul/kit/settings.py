"""Settings of `cuda_best` and `cuda_split_k`: the tiles of a block, a warp and a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.launch import check_block


@dataclass(frozen=True)
class Setting:
    """The tiles of a block, a warp and a thread, and the limit on registers per thread."""

    tile_m: int
    tile_n: int
    tile_k: int
    warp_m: int
    warp_n: int
    rows: int
    columns: int
    max_registers: int

    @property
    def threads(self) -> int:
        return self.tile_m * self.tile_n // (self.rows * self.columns)

    def constants(self, c_fours: bool) -> dict[str, Any]:
        """Return the kernel's constants; `c_fours` is True if C's rows consist of aligned fours.

        Raises ValueError for tiles that do not fit together or need too many threads per block, and
        TypeError or ValueError for sizes that are not positive ints.
        """
        for name, size in vars(self).items():
            positive(name, size)
        lanes_m, lanes_n = self.warp_m // self.rows, self.warp_n // self.columns
        a_step, b_step = self.threads // self.tile_k, self.threads * 4 // self.tile_n
        fits = (
            lanes_m * lanes_n == 32
            and (self.rows * lanes_m, self.columns * lanes_n) == (self.warp_m, self.warp_n)
            and (self.rows % 4, self.columns % 4, self.tile_k % 2) == (0, 0, 0)
            and (self.tile_m % self.warp_m, self.tile_n % self.warp_n) == (0, 0)
            and a_step * self.tile_k == self.threads
            and b_step * self.tile_n == self.threads * 4
            and (self.tile_m % a_step, self.tile_k % b_step) == (0, 0)
        )
        if not fits:
            raise ValueError(f"these tiles do not fit together: {self}")
        check_block((self.threads, 1))
        return {
            "TILE_M": self.tile_m,
            "TILE_N": self.tile_n,
            "TILE_K": self.tile_k,
            "WARP_M": self.warp_m,
            "WARP_N": self.warp_n,
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "LANES_M": lanes_m,
            "LANES_N": lanes_n,
            "WARPS_N": self.tile_n // self.warp_n,
            "A_ROW": self.tile_m + 4,
            "C_FOURS": c_fours,
            "A_STEP": a_step,
            "B_STEP": b_step,
            "A_COPIES": self.tile_m // a_step,
            "B_COPIES": self.tile_k // b_step,
        }

    def split_constants(self, wide: int, c_fours: bool) -> dict[str, Any]:
        """Return the constants of `cuda_split_k`. It copies `wide` elements of B at once, 4 or 1.

        Raises as `constants` does, and ValueError for tiles of B that single elements do not cover.
        """
        made = self.constants(c_fours)
        made |= {"WIDE": wide, "WARPS": self.threads // 32, "C_ROW": self.warp_n + 1}
        step = self.threads * wide // self.tile_n
        if step * self.tile_n != self.threads * wide or self.tile_k % step:
            raise ValueError(f"{self.threads} threads do not copy these tiles of B: {self}")
        return made | {"B_STEP": step, "B_COPIES": self.tile_k // step}


def cover(extent: int, tile: int) -> int:
    """Return how many tiles cover an extent."""
    return -(-extent // tile)
