"""Rings: the tiles of `gluon_shapes`, and what they cost on an H200.

A program of `gluon_shapes` takes tile after tile, so a product takes as long as the busiest program
has steps and seams. The costs were fitted to times of 114 drawn and listed products.

Where rows begin between sectors of 32 bytes, each row of a tile asks the L2 for one sector more,
and `L2_US` says how long one such row takes. With tiles of 128×256, rows of A alone, or of B
alone, are hidden behind the products; rows of both are not. Two blocks that share the copies of B
ask less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triton import cdiv

from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.dispatch.costs import BYTES_A_US, COPIED_A_US, COPY_US, Product, requests
from tiled_matmul.kit.gluon import multicasts
from tiled_matmul.kit.layouts import GRAIN

DEPTH = 64  # along K
FEWEST = 256  # elements of K
GROUP_M = 8  # blocks of a group along M
L2_US = 0.0019  # for one row of a tile that begins between sectors
# Of products that would take longer, the GPU's power is the limit: their rates, in TFLOP/s.
HOT_US, HOT = 500, 640
HOT_RATES = {(128, 256): 660, (192, 128): 668, (128, 128): 655}


@dataclass(frozen=True)
class Ring:
    """A tile of each block, the ring's stages, the blocks of a cluster, and costs in microseconds.

    `start` is a product's, `seam` a tile's, `step` that of one block along K.
    """

    rows: int
    widths: tuple[int, int]
    stages: int
    blocks: int
    start: float
    seam: float
    step: float

    def microseconds(self, product: Product, down: bool = False) -> float:
        """Return about how long a product takes; with `down`, columns of a tile are rows of C."""
        product = product.turned() if down else product
        m, n = product.m, product.n
        tiles = cdiv(cdiv(m, self.rows), self.blocks) * cdiv(n, sum(self.widths))
        waves = cdiv(tiles, product.multiprocessors // self.blocks)
        asked = requests(self.rows, sum(self.widths), self.blocks, product.apart)
        step = slowed(self.step, asked * L2_US)
        took = self.start + waves * (self.seam + cdiv(product.k, DEPTH) * step)
        took = max(took, 2 * (m * product.k + product.k * n + m * n) / BYTES_A_US)
        hot = 2 * m * n * product.k / 1e6 / HOT_RATES.get((self.rows, sum(self.widths)), HOT)
        took = max(took, hot if hot > HOT_US else 0)
        if product.grains[2] < GRAIN:
            took += COPY_US + 4 * m * n / COPIED_A_US
        return took + product.copies

    def choices(self, product: Product) -> Iterator[tuple[Choice, float]]:
        """Yield what this ring could do, across C and down, each with its microseconds."""
        wide, narrow = self.widths
        columns = self.widths if narrow else wide
        options = {"block": (self.rows, columns, DEPTH), "num_stages": self.stages}
        options |= {"group_m": GROUP_M // self.blocks, "blocks": self.blocks}
        for down in (False, True)[: 1 + (self.rows != sum(self.widths) or self.blocks > 1)]:
            made = options | ({"down": True} if down else {})
            yield Choice("gluon_shapes", made), self.microseconds(product, down)


RINGS = (
    Ring(128, (256, 0), 4, 1, 0.0, 2.81, 0.693),
    Ring(128, (256, 0), 4, 2, 1.22, 2.54, 0.700),
    Ring(128, (128, 64), 5, 1, 0.0, 2.31, 0.545),
    Ring(128, (128, 64), 5, 2, 1.08, 2.18, 0.551),
    Ring(192, (128, 64), 4, 1, 0.0, 3.28, 0.762),
    Ring(192, (128, 64), 4, 2, 0.46, 3.36, 0.774),
    Ring(192, (128, 0), 5, 1, 0.0, 2.14, 0.563),
    Ring(192, (128, 0), 5, 2, 1.05, 1.92, 0.569),
    Ring(256, (128, 0), 4, 1, 0.0, 3.07, 0.697),
    Ring(256, (128, 64), 3, 1, 0.0, 3.96, 1.040),
    Ring(128, (128, 0), 6, 1, 0.52, 1.20, 0.430),
    Ring(128, (128, 0), 6, 2, 2.23, 0.94, 0.434),
    Ring(64, (256, 0), 5, 1, 1.16, 1.54, 0.476),
    Ring(64, (256, 0), 5, 2, 2.19, 1.28, 0.480),
)


def slowed(step: float, copies: float) -> float:
    """Return how long a step takes whose products and copies, alone, would take so long.

    The longer of the two, and somewhat more where they are alike.
    """
    return (step**4 + copies**4) ** 0.25


def rings(product: Product) -> list[tuple[Choice, float]]:
    """Return all choices of rings that can run, with their microseconds, the fastest first.

    There are none for a K that is shorter than those that the costs were fitted to. Clusters are
    for rows that begin between sectors: elsewhere they gain nothing.
    """
    if product.k < FEWEST:
        return []
    clusters = any(product.apart) and multicasts()
    found = [
        pair for ring in RINGS if ring.blocks == 1 or clusters for pair in ring.choices(product)
    ]
    return sorted(found, key=lambda pair: pair[1])
