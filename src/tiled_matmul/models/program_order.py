"""The order of programs: which tiles of C are worked on together, and what that asks of the L2.

A program owns a tile of C and walks along K, a step at a time; in each step it wants a tile of A
and a tile of B. Programs start in the order of their numbers, as many as there is room for. The
model lets those that are alive together walk in step, so that they come in waves, and whoever wants
the same tile in the same step asks for it together. Behind them stands one cache that forgets what
was used least recently. Tiles of C pass through it when their program ends. It counts bytes, it
knows no time. Source: Triton's tutorial 03; Hennessy & Patterson, appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache as remember

import numpy as np

from tiled_matmul.models.cache import recent_misses

BLOCK = (128, 256, 64)
MOST_PROGRAMS = 10**6
MOST_TOUCHES = 2 * 10**8  # 800 MB of numbers and some seconds


def program_order(tiles_m: int, tiles_n: int, group_m: int = 1) -> np.ndarray:
    """Return an array (programs, 2): the tile of C, (tile_m, tile_n), that each program owns.

    Programs go down `group_m` tiles before they go on to the next column, and through all columns
    before they go on to the next group; the last group may have fewer rows. 1 goes row by row.
    This is the formula of `triton_swizzled`. Raises ValueError for sizes below 1.
    """
    _positive(tiles_m=tiles_m, tiles_n=tiles_n, group_m=group_m)
    program = np.arange(tiles_m * tiles_n)
    group, inside = np.divmod(program, group_m * tiles_n)
    rows = np.minimum(tiles_m - group * group_m, group_m)
    return np.stack([group * group_m + inside % rows, inside // rows], axis=1)


@dataclass(frozen=True)
class Wave:
    """Programs that are alive together: from `first` on, with the strips that they want.

    `rows` and `columns` are tile rows of A and tile columns of B, in the order of first use.
    """

    first: int
    programs: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def tiles(self) -> int:
        """The different tiles of A and B that the wave wants in one step."""
        return len(self.rows) + len(self.columns)


def waves(order: np.ndarray, alive: int) -> list[Wave]:
    """Return the waves in which programs run if `alive` of them do so at once.

    `order` is as `program_order` returns it. Raises ValueError for `alive` below 1.
    """
    _positive(alive=alive)
    found = []
    for first in range(0, len(order), alive):
        rows, columns = (_in_order(axis) for axis in order[first : first + alive].T)
        found.append(Wave(first, len(order[first : first + alive]), rows, columns))
    return found


@dataclass(frozen=True)
class Setting:
    """One launch: sizes and the block (BLOCK_M, BLOCK_N, BLOCK_K) in elements of `itemsize` bytes.

    `alive` programs run at once, in groups of `group_m` tiles. Raises ValueError for sizes below 1.
    """

    m: int
    n: int
    k: int
    block: tuple[int, int, int] = BLOCK
    group_m: int = 1
    alive: int = 132
    itemsize: int = 2

    def __post_init__(self) -> None:
        numbers = {key: value for key, value in vars(self).items() if key != "block"}
        block = dict(zip(("block_m", "block_n", "block_k"), self.block, strict=True))
        _positive(**numbers, **block)

    @property
    def tiles(self) -> tuple[int, int, int]:
        """How many tiles there are along M, N and K."""
        return tuple(-(-s // b) for s, b in zip((self.m, self.n, self.k), self.block, strict=True))

    @property
    def order(self) -> np.ndarray:
        return program_order(*self.tiles[:2], self.group_m)

    @property
    def waves(self) -> list[Wave]:
        return waves(self.order, self.alive)

    @property
    def compulsory_bytes(self) -> int:
        """A and B, each read once."""
        return (self.m + self.n) * self.k * self.itemsize

    def step_bytes(self, wave: Wave) -> int:
        """Return the bytes of the tiles that a wave wants in one whole step."""
        rows, columns = self._extents(wave)
        return (rows + columns) * min(self.block[2], self.k) * self.itemsize

    def strip_bytes(self, wave: Wave) -> int:
        """Return the bytes of A's rows and B's columns that a wave wants along all of K."""
        rows, columns = self._extents(wave)
        return (rows + columns) * self.k * self.itemsize

    def _extents(self, wave: Wave) -> tuple[int, int]:
        """How many rows of A and columns of B, in elements, a wave wants."""
        parts = ((wave.rows, self.m, self.block[0]), (wave.columns, self.n, self.block[1]))
        return tuple(int(_lengths(size, block)[list(which)].sum()) for which, size, block in parts)


@dataclass(frozen=True)
class Traffic:
    """Bytes of one launch, as the model counts them.

    `asked` is what the programs load, all of it from the L2's point of view; `a` and `b` are what
    the L2 does not have and memory delivers. `waves` is their number, `tiles` the different tiles
    of A and B that a wave wants in one step, averaged over the waves.
    """

    asked: int
    a: int
    b: int
    compulsory: int
    waves: int
    tiles: float

    @property
    def missed(self) -> int:
        return self.a + self.b

    @property
    def hit_rate(self) -> float:
        """The share of what was asked for that the L2 had."""
        return 1 - self.missed / self.asked

    @property
    def times(self) -> float:
        """How often A and B come from memory, on average; 1 is the least."""
        return self.missed / self.compulsory


@remember
def traffic(setting: Setting, l2_bytes: int) -> Traffic:
    """Run the model: one launch in front of an L2 of so many bytes.

    Exact for the model as the module describes it; elements beyond an edge are not counted, though
    the kernel reads others in their place. Raises ValueError for a cache below 1 byte, or a launch
    of more than MOST_PROGRAMS or with more than MOST_TOUCHES tiles to ask for.
    """
    _positive(l2_bytes=l2_bytes)
    tiles_m, tiles_n, steps = setting.tiles
    if tiles_m * tiles_n > MOST_PROGRAMS:
        raise ValueError(f"{tiles_m * tiles_n:,} programs are more than {MOST_PROGRAMS:,}")
    together = setting.waves
    count = sum(wave.tiles * steps + wave.programs for wave in together)
    if count > MOST_TOUCHES:
        raise ValueError(f"{count:,} tiles to ask for are more than {MOST_TOUCHES:,}")
    high, wide, deep = (
        _lengths(size, block)
        for size, block in zip((setting.m, setting.n, setting.k), setting.block, strict=True)
    )
    # Tiles are numbered: A row by row, then B column by column, then C row by row.
    of_b, of_c = tiles_m * steps, (tiles_m + tiles_n) * steps
    products = (np.outer(high, deep), np.outer(wide, deep), np.outer(high, wide))
    sizes = np.concatenate([part.ravel() for part in products]) * setting.itemsize
    order, along = setting.order, np.arange(steps, dtype=np.int32)[:, None]
    touches = []
    for wave in together:
        wanted = [row * steps for row in wave.rows]
        wanted += [of_b + column * steps for column in wave.columns]
        touches.append((np.array(wanted, np.int32) + along).ravel())
        mine = order[wave.first : wave.first + wave.programs]
        touches.append((of_c + mine[:, 0] * tiles_n + mine[:, 1]).astype(np.int32))
    missed = recent_misses(np.concatenate(touches), sizes, l2_bytes) * sizes
    asked = int((tiles_n * high.sum() + tiles_m * wide.sum()) * setting.k) * setting.itemsize
    return Traffic(
        asked=asked,
        a=int(missed[:of_b].sum()),
        b=int(missed[of_b:of_c].sum()),
        compulsory=setting.compulsory_bytes,
        waves=len(together),
        tiles=sum(wave.tiles for wave in together) / len(together),
    )


def _lengths(size: int, block: int) -> np.ndarray:
    """Return how many elements each tile has along an axis; the last one may have fewer."""
    return np.minimum(block, size - np.arange(0, size, block))


def _in_order(values: np.ndarray) -> tuple[int, ...]:
    """Return the different values, in the order in which they come."""
    return tuple(dict.fromkeys(values.tolist()))


def _positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"{name} must be an integer, got {number!r}")
        if number < 1:
            raise ValueError(f"{name} must be 1 or more, got {number}")
