"""Rings: the tiles of `gluon_shapes`, alone or in clusters, and what they cost on an H200.

A program of `gluon_shapes` takes tile after tile, so a product takes as long as the busiest program
has steps and seams. The costs were fitted to some 9,000 times of 207 drawn products, of a kernel
that did not start early, less what an early start saves; those of the tile of 288 columns were
estimated. After a look at 200 other products, the start of fours and of the second kernel were set
by hand, and after one at the listed shapes the rates of hot products.

Where rows begin between sectors of 32 bytes, each row of a tile asks the L2 for one sector more,
and `ODD_US` says how long one such row takes. Blocks of a cluster share those of B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triton import cdiv

from tiled_matmul.dispatch.candidates import MOST_SPLITS
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.dispatch.costs import Product, copied_c, requests
from tiled_matmul.kit.clusters import at_once
from tiled_matmul.kit.gluon import multicasts

GROUP_M = 8  # blocks of a group along M
BLOCKS, PAIR = (1, 2, 4), 2  # of a cluster, in the order of the costs
STEP = 64  # of K, that ODD_US is for
START_US, ODD_US = (1.88, 2.53, 2.53), (0.00216, 0.00154, 0.00176)
# Where few multiprocessors work: a step's time, and that of a row between sectors, in parts of
# those where all do.
FEW, FEW_ODD = (0.61, 0.67, 0.82), 0.46
READ_A_US, WRITTEN_A_US = 3.87e6, 3.28e6  # bytes
# Of parts of K: the second kernel, each part, and the bytes of parts in a microsecond.
SECOND_US, PART_US, PARTS_A_US = 2.45, 0.061, 4.2e6
FEWEST_STEPS, MOST_BYTES = 2, 1 << 28  # of a part of K, and of all parts
# Of products that would take longer, the GPU's power is the limit: their rates, in TFLOP/s.
HOT_US, HOT, HOT_PAIR = 450, 640, 1.007  # pairs of blocks have so many times the rate
HOT_RATES = {(128, 256): 680, (192, 128): 660, (128, 128): 655}


@dataclass(frozen=True)
class Ring:
    """A tile of each block, (rows, columns or (wide, narrow), K), the ring's stages, and costs.

    They are in microseconds, for each of BLOCKS that the tile is used with: `seams` are a tile's,
    `steps` those of one block along K.
    """

    block: tuple
    stages: int
    seams: tuple[float, ...]
    steps: tuple[float, ...]

    @property
    def rows(self) -> int:
        """The rows of the tile."""
        return self.block[0]

    @property
    def columns(self) -> int:
        """The columns of the tile."""
        return sum(self.block[1]) if isinstance(self.block[1], tuple) else self.block[1]

    def microseconds(self, product: Product, blocks: int = 1, splits: int = 1) -> float:
        """Return about how long a product takes in clusters of `blocks`, with K in parts."""
        m, n, k, nth = product.m, product.n, product.k, BLOCKS.index(blocks)
        room = at_once(blocks, product.multiprocessors)
        tiles = self.tiles(product, blocks) * splits
        waves = cdiv(tiles, room)
        busy = tiles / (waves * room)
        asked = requests(self.rows, self.columns, blocks, product.apart)
        odd = asked * ODD_US[nth] * self.block[2] / STEP * (busy + (1 - busy) * FEW_ODD)
        step = together(self.steps[nth] * (busy + (1 - busy) * FEW[nth]), odd, 2.5)
        steps = cdiv(cdiv(k, self.block[2]), splits)
        took = waves * (self.seams[nth] + steps * step)
        moved = 2 * (m * k + k * n) / READ_A_US + 2 * m * n / WRITTEN_A_US
        took = START_US[nth] + together(took, moved, 4)
        rate = HOT_RATES.get((self.rows, self.columns), HOT) * (HOT_PAIR if blocks == PAIR else 1)
        hot = 2 * m * n * k / 1e6 / rate
        took = max(took, hot if hot > HOT_US else 0)
        if splits > 1:
            took += SECOND_US + PART_US * splits + 8 * splits * m * n / PARTS_A_US
        else:
            took += copied_c(product)
        return took + product.copies

    def tiles(self, product: Product, blocks: int) -> int:
        """Return how many tiles of a cluster C has."""
        return cdiv(cdiv(product.m, self.rows), blocks) * cdiv(product.n, self.columns)

    def splits(self, product: Product) -> set[int]:
        """Return in how many parts K may be cut: so many that one or two waves are full or half."""
        room, tiles = product.multiprocessors, self.tiles(product, 1)
        steps = cdiv(product.k, self.block[2])
        most = min(MOST_SPLITS, steps // FEWEST_STEPS, MOST_BYTES // (4 * product.m * product.n))
        each = (room // tiles, 2 * room // tiles, room // tiles // 2, 2 * (room // tiles) // 3)
        return {1} | {splits for splits in each if 1 < splits <= most}

    def choices(self, product: Product, clusters: bool) -> Iterator[tuple[Choice, float]]:
        """Yield what this ring could do, each with its microseconds.

        Clusters have more than one block only if `clusters`, and where C has the rows for it; fours
        where they all run at once. Blocks alone may have a part of K. With `down`, columns of a
        tile are rows of C.
        """
        for down in (False, True):
            made = product.turned() if down else product
            for blocks in BLOCKS[: len(self.steps) if clusters else 1]:
                same = down and blocks == 1 and self.rows == self.columns
                if same or blocks > 1 and made.m <= self.rows * blocks // 2:
                    continue
                options = {"block": self.block, "num_stages": self.stages, "blocks": blocks}
                options |= {"group_m": GROUP_M // blocks} | ({"down": True} if down else {})
                room = at_once(blocks, product.multiprocessors)
                if blocks > PAIR and self.tiles(made, blocks) > room:
                    continue
                for splits in self.splits(made) if blocks == 1 else (1,):
                    cut = {"splits": splits} if splits > 1 else {}
                    choice = Choice("gluon_shapes", options | cut)
                    yield choice, self.microseconds(made, blocks, splits)


RINGS = (
    Ring((64, 16, 128), 8, (0.16, 0.33, 1.03), (0.293, 0.283, 0.210)),
    Ring((64, 32, 128), 8, (0.22, 0.36, 1.07), (0.322, 0.308, 0.234)),
    Ring((64, 64, 128), 6, (0.33, 0.43, 1.14), (0.352, 0.378, 0.307)),
    Ring((64, (64, 16), 128), 5, (0.81, 0.78, 1.63), (0.454, 0.471, 0.319)),
    Ring((64, (64, 32), 128), 5, (0.66, 0.64, 1.50), (0.512, 0.541, 0.377)),
    Ring((64, 128, 64), 8, (0.65, 0.60, 1.31), (0.251, 0.293, 0.233)),
    Ring((64, (128, 64), 64), 6, (0.98, 1.01, 1.58), (0.330, 0.333, 0.308)),
    Ring((64, 256, 64), 5, (1.34, 1.43, 1.68), (0.432, 0.413, 0.358)),
    Ring((64, (256, 32), 64), 4, (1.45,), (0.46,)),
    Ring((128, 16, 128), 5, (0.41, 0.66, 1.36), (0.415, 0.417, 0.398)),
    Ring((128, 64, 64), 8, (0.61, 0.87, 1.57), (0.284, 0.283, 0.240)),
    Ring((128, (64, 32), 64), 6, (1.03, 1.21, 1.89), (0.354, 0.355, 0.270)),
    Ring((128, 128, 64), 6, (1.06, 1.03, 1.85), (0.408, 0.404, 0.310)),
    Ring((128, (128, 32), 64), 5, (1.51, 1.56), (0.522, 0.510)),
    Ring((128, (128, 64), 64), 5, (1.54, 1.64), (0.557, 0.564)),
    Ring((128, 256, 64), 4, (1.93, 1.83), (0.735, 0.745)),
    Ring((192, 64, 64), 6, (0.88, 1.22, 2.04), (0.377, 0.409, 0.286)),
    Ring((192, 128, 64), 5, (1.41, 1.34), (0.568, 0.570)),
    Ring((192, (128, 64), 64), 4, (2.02, 2.01), (0.832, 0.841)),
    Ring((256, 128, 64), 4, (2.01, 2.02), (0.749, 0.774)),
)


def together(one: float, other: float, power: float) -> float:
    """Return how long two things take at the same time that would, alone, take so long.

    The longer of the two, and more where they are alike, the more so for a small `power`.
    """
    return (one**power + other**power) ** (1 / power)


def rings(product: Product) -> list[tuple[Choice, float]]:
    """Return all choices of rings that can run, with their microseconds, the fastest first."""
    clusters = multicasts()
    found = [pair for ring in RINGS for pair in ring.choices(product, clusters)]
    return sorted(found, key=lambda pair: pair[1])
