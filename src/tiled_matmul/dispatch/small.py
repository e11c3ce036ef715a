"""Small tiles for even rows, and what they cost on an H200.

They are for small products: tiles of `triton_uneven`, read by pointers, and of `triton_split_k`,
copied by descriptors. Programs run side by side on a multiprocessor. The costs were fitted to 2,500
times of 305 drawn products, which stand one after the other in a graph, so that each starts early.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

from triton import cdiv

from tiled_matmul.dispatch import costs
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.dispatch.costs import POINTERS, SPLIT_K, Product, Tile, rows_us
from tiled_matmul.kit.layouts import ALIGNED

LAP = 0.48  # of a program's start, where one runs after another
BETWEEN = 0.52  # of a step, where rows of both tiles begin between sectors
BYTES_A_US, L2_A_US = 5.7e6, 11.3e6  # that a product reads and writes, and that tiles get
SECOND_US, PART_US = 1.64, 0.134  # of parts of K: the second kernel, and each part


@dataclass(frozen=True)
class Small(Tile):
    """A tile for even rows. On average, `resident` programs run side by side."""

    resident: float

    def microseconds(self, product: Product, splits: int = 1) -> float:
        """Return about how long a product takes, with K in `splits` parts."""
        m, n, k = product.m, product.n, product.k
        rows, columns, depth = self.block
        programs = cdiv(self.tiles(product) * splits, product.multiprocessors)
        laps = max(1, programs / self.resident)
        beside = min(programs, self.resident)
        step = max(self.latency, self.share * beside)
        if self.module == POINTERS:
            between = [begins == ALIGNED for begins in product.begins]
            step *= 1 + BETWEEN * (rows * between[0] + columns * between[1]) / (rows + columns)
        else:
            step += beside * rows_us(product, *self.block)
        took = self.start * (1 + LAP * (laps - 1)) + laps * cdiv(cdiv(k, depth), splits) * step
        took = max(took, 2 * (m * k + k * n + m * n) / BYTES_A_US)
        if self.module == POINTERS:
            loaded = m * k * cdiv(n, columns) + k * n * cdiv(m, rows)
            took = max(took, self.start + 2 * loaded / L2_A_US)
        if splits > 1:
            took += SECOND_US + PART_US * splits + 8 * splits * m * n / BYTES_A_US
        return took


TILES = (
    Small(POINTERS, (64, 64, 32), 4, 1, 2.55, 0.249, 0.192, 2.4),
    Small(POINTERS, (32, 32, 64), 4, 5, 2.33, 0.193, 0.133, 1.4),
    Small(POINTERS, (32, 16, 128), 4, 4, 2.54, 0.283, 0.278, 5.7),
    Small(POINTERS, (32, 32, 128), 4, 4, 2.59, 0.353, 0.317, 2.2),
    Small(POINTERS, (64, 16, 128), 4, 4, 2.63, 0.283, 0.279, 1.5),
    Small(POINTERS, (64, 32, 64), 4, 4, 2.64, 0.181, 0.174, 2.2),
    Small(POINTERS, (64, 64, 64), 4, 4, 2.82, 0.225, 0.191, 1.4),
    Small(POINTERS, (64, 64, 128), 4, 3, 2.92, 0.465, 0.392, 1.2),
    Small(POINTERS, (64, 128, 64), 4, 4, 3.48, 0.339, 0.282, 1.2),
    Small(POINTERS, (128, 128, 32), 8, 4, 3.98, 0.246, 0.225, 1.0),
    Small(SPLIT_K, (16, 128, 128), 4, 4, 4.07, 0.335, 0.295, 2.0),
    Small(SPLIT_K, (64, 64, 128), 4, 4, 3.33, 0.197, 0.280, 2.0),
    Small(SPLIT_K, (64, 128, 128), 4, 4, 4.37, 0.419, 0.419, 2.0),
)


def small(product: Product) -> list[tuple[Choice, float]]:
    """Return all choices of TILES, with their microseconds, the fastest first.

    Where no descriptor fits some rows they are of `costs.TILES`, which knows what that costs.
    """
    tiles = TILES if product.even else costs.TILES
    return sorted((pair for tile in tiles for pair in tile.choices(product)), key=itemgetter(1))
