"""Rings: the tiles of `gluon_shapes`, alone or in clusters, and what they cost on an H200.

A program of `gluon_shapes` takes tile after tile, so a product takes as long as the busiest program
has steps and seams. A step takes the time of its tile, and some for each row of 128 bytes that is
copied: the less, the larger the power of two where rows begin. Blocks of a cluster share the rows
of B. The costs were fitted to 8,200 times of 367 drawn products, which stand one after the other in
a graph; the rates of hot products were set by hand, after a look at the listed shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from triton import cdiv

from tiled_matmul.dispatch.candidates import MOST_SPLITS, widths
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.dispatch.costs import Product, copied_c, rows_us
from tiled_matmul.kit.clusters import at_once
from tiled_matmul.kit.gluon import multicasts

GROUP_M = 8  # blocks of a group along M
BLOCKS, PAIR = (1, 2, 4), 2  # of a cluster, in the order of the costs
START_US = (2.62, 3.31, 2.41)
# Where more than half of the multiprocessors work, the next kernel finds no room to start early.
FULL_US = 0.60
SHARED = (1, 0.62, 1.04)  # of the time for rows, in clusters
FEW = (0.51, 0.67, 0.80)  # a step's time where few multiprocessors work, in parts of the usual
READ_A_US, WRITTEN_A_US = 3.73e6, 8.72e6  # bytes
# Of parts of K: the second kernel, each part, and the bytes of parts in a microsecond.
SECOND_US, PART_US, PARTS_A_US = 5.08, 0.056, 4.66e6
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
        return sum(widths(self.block[1]))

    def microseconds(self, product: Product, blocks: int = 1, splits: int = 1) -> float:
        """Return about how long a product takes, in clusters of `blocks`, K in `splits`."""
        m, n, k, nth = product.m, product.n, product.k, BLOCKS.index(blocks)
        room = at_once(blocks, product.multiprocessors)
        tiles = self.tiles(product, blocks) * splits
        waves = cdiv(tiles, room)
        busy = tiles / (waves * room)
        step = self.steps[nth] * (busy + (1 - busy) * FEW[nth])
        step += SHARED[nth] * rows_us(
            product, self.rows, self.columns / blocks, self.block[2]
        )  # fmt: skip
        steps = cdiv(cdiv(k, self.block[2]), splits)
        took = waves * (self.seams[nth] + steps * step)
        moved = 2 * (m * k + k * n) / READ_A_US + 2 * m * n / WRITTEN_A_US
        full = waves > 1 or busy > 1 / 2
        took = START_US[nth] + (FULL_US if full else 0) + together(took, moved, 4)
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
    Ring((64, 16, 128), 8, (0.07, 0.18, 1.05), (0.251, 0.274, 0.190)),
    Ring((64, 32, 128), 8, (0.17, 0.28, 1.07), (0.247, 0.274, 0.207)),
    Ring((64, 64, 128), 6, (0.29, 0.36, 1.06), (0.253, 0.294, 0.245)),
    Ring((64, (64, 16), 128), 5, (0.73, 0.78, 1.53), (0.378, 0.406, 0.315)),
    Ring((64, (64, 32), 128), 5, (0.62, 0.71, 1.50), (0.393, 0.420, 0.330)),
    Ring((64, 128, 64), 8, (0.61, 0.63, 1.17), (0.190, 0.229, 0.213)),
    Ring((64, (128, 64), 64), 6, (0.94, 1.11, 1.65), (0.286, 0.313, 0.288)),
    Ring((64, 256, 64), 5, (1.32, 1.22, 1.92), (0.320, 0.388, 0.329)),
    Ring((64, (256, 32), 64), 4, (1.91,), (0.406,)),
    Ring((128, 16, 128), 5, (0.39, 0.65, 1.36), (0.331, 0.357, 0.347)),
    Ring((128, 64, 64), 8, (0.57, 0.68, 1.63), (0.211, 0.270, 0.203)),
    Ring((128, (64, 32), 64), 6, (1.01, 1.22, 2.04), (0.294, 0.321, 0.257)),
    Ring((128, 128, 64), 6, (0.97, 1.07, 1.95), (0.317, 0.353, 0.292)),
    Ring((128, (128, 32), 64), 5, (1.47, 1.60), (0.418, 0.441)),
    Ring((128, (128, 64), 64), 5, (1.59, 1.80), (0.455, 0.486)),
    Ring((128, 256, 64), 4, (2.07, 2.26), (0.598, 0.634)),
    Ring((128, (256, 64), 64), 3, (2.69, 2.94), (0.794, 0.887)),
    Ring((192, 64, 64), 6, (0.88, 0.83, 1.90), (0.310, 0.366, 0.272)),
    Ring((192, 128, 64), 5, (1.53, 1.63), (0.455, 0.489)),
    Ring((192, (128, 64), 64), 4, (2.28, 2.50), (0.656, 0.712)),
    Ring((256, 128, 64), 4, (2.08, 2.23), (0.618, 0.666)),
    Ring((256, (128, 32), 64), 4, (2.80, 3.00), (0.806, 0.879)),
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
