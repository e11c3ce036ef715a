"""Costs: about how long a candidate of `triton_best` takes, as numbers of an H200 say.

A model of clocks (`clocks`) knows `wgmma` and descriptors. It does not know products whose tiles
are done before a pipeline is full, nor rows that no descriptor fits: those are read by pointers, or
copied first. For these, TILES has costs in microseconds, which were fitted to times of 420 drawn
products, so that they decide best between those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from triton import cdiv

from tiled_matmul.dispatch.candidates import MOST_SPLITS, options, widths
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.kit.layouts import GRAIN
from tiled_matmul.models.roofline import step_clocks
from tiled_matmul.models.waves import side_by_side

# Clocks of an H200: of a program's start and end, of the seam between two tiles of one that stays,
# of a second kernel; and bytes of split-K's parts that the L2 takes or gives in a clock.
START, SEAM, SECOND, PARTS_A_CLOCK = 3500, 500, 3500, 1700
# Of an H200: bytes in a microsecond that a product reads and writes at most, that tiles get from
# the L2, that a copy moves, and one back to C; microseconds of a copy's and of split-K's second
# kernel; the model's clocks in a microsecond.
BYTES_A_US, L2_A_US, COPIED_A_US, BACK_A_US = 3.5e6, 6.4e6, 1.76e6, 1.1e6
COPY_US, SECOND_US, CLOCKS_A_US = 2.5, 1.8, 1130
ROW_US = {128: 0.20e-3, 32: 0.43e-3, 16: 1.02e-3}  # by where rows begin, as `Product.begins`
STAY = "triton_persistent"  # the rung whose programs take tile after tile, and store by descriptors
POINTERS, SPLIT_K = "triton_uneven", "triton_split_k"


@dataclass(frozen=True)
class Product:
    """C (M, N) with K products each, 16-bit, on a GPU with so many multiprocessors.

    `grains` are those of a, b and out: GRAIN where a descriptor fits its rows, else the largest of
    4, 2 and 1 that divides their length and distance. `across` is how many of a and b have a grain
    of 1 and lie across K: a by columns, b by rows. `begins` says of a and of b where their rows
    begin as they lie in memory: all at multiples of 128 bytes, of 32, or of 16.
    """

    m: int
    n: int
    k: int
    multiprocessors: int
    grains: tuple[int, int, int] = (GRAIN, GRAIN, GRAIN)
    across: int = 0
    begins: tuple[int, int] = (128, 128)

    @property
    def copies(self) -> float:
        """The microseconds in which rows of a and b are copied so that a descriptor fits them."""
        sizes = (self.m * self.k, self.k * self.n)
        pairs = zip(sizes, self.grains[:2], strict=True)
        return sum(COPY_US + 4 * size / COPIED_A_US for size, grain in pairs if grain < GRAIN)

    @property
    def even(self) -> bool:
        """Does a descriptor fit a, b and out?"""
        return min(self.grains) == GRAIN

    def turned(self) -> Product:
        """Return the product whose C is the transpose of this one's."""
        a, b, c = self.grains
        return replace(self, m=self.n, n=self.m, grains=(b, a, c), begins=self.begins[::-1])


def rows_us(product: Product, rows: int, columns: float, depth: int) -> float:
    """Return the microseconds that the rows of a step's tiles take beside the rest of the step.

    A descriptor copies rows of 128 bytes; what each takes depends on where rows begin.
    """
    row_a, row_b = (ROW_US[each] for each in product.begins)
    return (rows * row_a + columns * row_b) * depth / (128 // 2)


def clocks(choice: Choice, m: int, n: int, k: int, multiprocessors: int) -> float:
    """Return about how many clocks the busiest multiprocessor takes for C (M, N)."""
    rows, columns, depth = choice.options["block"]
    if choice.options.get("down"):
        m, n = n, m
    splits = choice.options.get("splits", 1)
    waves = cdiv(cdiv(m, rows) * cdiv(n, sum(widths(columns))) * splits, multiprocessors)
    loop = cdiv(cdiv(k, depth), splits) * step_clocks(rows, widths(columns), depth).longer
    if choice.module == STAY:
        return START + waves * (loop + SEAM)
    parts = 2 * 4 * splits * m * n / PARTS_A_CLOCK + SECOND if splits > 1 else 0
    return waves * (START + loop) + parts


def modelled(choice: Choice, clocks: float, product: Product) -> float:
    """Return the microseconds of a choice that the model gives so many clocks."""
    m, n, k = product.m, product.n, product.k
    took = max(clocks / CLOCKS_A_US, 2 * (m * k + k * n + m * n) / BYTES_A_US) + product.copies
    return took + copied_c(product) if choice.module == STAY else took


def copied_c(product: Product) -> float:
    """Return the microseconds in which C is copied to rows that no descriptor fits."""
    even = product.grains[2] == GRAIN
    return 0.0 if even else COPY_US + 4 * product.m * product.n / BACK_A_US


@dataclass(frozen=True)
class Tile:
    """A rung, its tile (rows, columns, K), and what one of its programs takes in microseconds.

    It takes `start`, and for each block of K `latency`, or `share` for each program that runs on
    the same multiprocessor if that is longer. Each kind of tile says how long a product takes.
    """

    module: str
    block: tuple[int, int, int]
    warps: int
    stages: int
    start: float
    latency: float
    share: float

    def tiles(self, product: Product) -> int:
        """Return how many tiles C has."""
        return cdiv(product.m, self.block[0]) * cdiv(product.n, self.block[1])

    def microseconds(self, product: Product, splits: int = 1) -> float:
        """Return about how long a product takes, with K in `splits` parts."""
        raise NotImplementedError

    def choices(self, product: Product) -> Iterator[tuple[Choice, float]]:
        """Yield what this rung could do, as it lies and turned, each with its microseconds."""
        own = options(self.block, self.warps, self.stages)
        for turned in (False, True)[: 1 + (self.block[0] != self.block[1])]:
            made = product.turned() if turned else product
            if self.module != SPLIT_K:
                yield Choice(self.module, own, turned), self.microseconds(made)
            if self.module in (POINTERS, SPLIT_K):
                most = min(MOST_SPLITS, 2 * product.multiprocessors // self.tiles(made))
                most = min(most, cdiv(product.k, self.block[2]) // 2)
                for splits in range(2, most + 1):
                    took = self.microseconds(made, splits)
                    yield Choice(self.module, own | {"splits": splits}, turned), took


@dataclass(frozen=True)
class Costs(Tile):
    """A tile of any rung on an H200.

    Programs run side by side on a multiprocessor, up to `resident`. Blocks take `pairs` times as
    long where rows begin at multiples of two or four elements, and `odd` times elsewhere; `across`
    times if an odd matrix lies across K, `both` times if a and b do.
    """

    resident: int
    pairs: float = 1.0
    odd: float = 1.0
    across: float = 1.0
    both: float = 1.0

    def microseconds(self, product: Product, splits: int = 1) -> float:
        """Return about how long a product takes, with K in `splits` parts."""
        m, n, k = product.m, product.n, product.k
        pointers, slower = self.module == POINTERS, 1.0
        if pointers:
            odd = (self.odd, self.across, self.both)[product.across]
            slower = {GRAIN: 1.0, 1: odd}.get(min(product.grains[:2]), self.pairs)
        programs = cdiv(self.tiles(product) * splits, product.multiprocessors)
        steps = cdiv(cdiv(k, self.block[2]), splits) * slower
        pace = self.start, self.latency, self.share
        took = side_by_side(programs, self.resident, *pace, steps)
        loaded = m * k * cdiv(n, self.block[1]) + k * n * cdiv(m, self.block[0])
        took = max(
            took, 2 * (m * k + k * n + m * n) / BYTES_A_US, self.start + 2 * loaded / L2_A_US
        )
        if splits > 1:
            took += SECOND_US + 8 * splits * m * n / BYTES_A_US
        return took if pointers else took + product.copies


# What `pick` takes for a C of few rows.
THIN = Costs("triton_split_k", (16, 128, 128), 4, 4, 3.97, 0.56, 0.48, 3)
TILES = (
    Costs("triton_uneven", (64, 64, 32), 4, 1, 1.95, 0.24, 0.2, 4, 1.35, 1.8, 1.7, 2.16),
    Costs("triton_uneven", (32, 32, 128), 4, 4, 1.97, 0.45, 0.35, 3, 1.37, 1.96, 63.93, 63.93),
    Costs("triton_uneven", (64, 16, 128), 4, 4, 1.83, 0.35, 0.3, 2, 2.65, 2.93, 8.57, 12.45),
    Costs("triton_uneven", (64, 64, 64), 4, 4, 2.18, 0.3, 0.26, 2, 2.08, 2.62, 2.55, 11.7),
    Costs("triton_uneven", (64, 128, 64), 4, 4, 2.18, 0.36, 0.37, 2, 2.81, 11.47, 15.48, 20.61),
    Costs("triton_uneven", (128, 128, 32), 8, 4, 3.58, 0.22, 0.31, 2, 1.81, 2.8, 2.7, 3.14),
    Costs("triton_descriptors", (64, 16, 128), 4, 4, 4.3, 0.27, 0.31, 5),
    Costs("triton_descriptors", (64, 64, 128), 4, 4, 4.13, 0.4, 0.45, 2),
    Costs("triton_descriptors", (128, 64, 64), 4, 4, 4.9, 0.27, 0.32, 4),
    Costs("triton_descriptors", (128, 128, 64), 8, 4, 4.3, 0.42, 0.3, 1),
    Costs("triton_split_k", (64, 32, 128), 4, 4, 4.33, 0.35, 0.35, 5),
    Costs("triton_split_k", (64, 128, 128), 4, 4, 3.57, 0.72, 0.7, 1),
    Costs("triton_split_k", (128, 128, 64), 8, 4, 3.36, 0.56, 0.56, 1),
    THIN,
)
