"""The order of programs: which tiles of C are computed together, and what the L2 cache saves.

A program owns a tile of C and walks along K; in each step it loads a tile of A and a tile of B.
Programs start in the order of their numbers, as many as fit on the GPU. In the model, the programs
that run together keep in step, so they form waves, and programs that need one tile in one step load
it once. The loads go to one cache with least-recently-used replacement. A tile of C passes through
that cache when its program ends. The model counts bytes, not time. Source: Triton's tutorial 03;
Hennessy & Patterson, appendix B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache as remember

import numpy as np

from tiled_matmul.models.cache import recent_misses

BLOCK = (128, 256, 64)
MOST_PROGRAMS = 10**6
MOST_TOUCHES = 2 * 10**8  # 800 MB of numbers and some seconds


def program_order(tiles_m: int, tiles_n: int, group_m: int = 1) -> np.ndarray:
    """Return an array (programs, 2): the tile of C, (tile_m, tile_n), that each program owns.

    The order goes down `group_m` tiles, then to the next column, and after the last column to the
    next group of rows; the last group may have fewer rows. With 1 it goes row by row. The formula
    is that of `triton_swizzled`. Raises ValueError for sizes below 1.
    """
    _positive(tiles_m=tiles_m, tiles_n=tiles_n, group_m=group_m)
    program = np.arange(tiles_m * tiles_n)
    group, inside = np.divmod(program, group_m * tiles_n)
    rows = np.minimum(tiles_m - group * group_m, group_m)
    return np.stack([group * group_m + inside % rows, inside // rows], axis=1)


def hilbert_order(tiles_m: int, tiles_n: int) -> np.ndarray:
    """Return an array (programs, 2) as `program_order` does: along Hilbert's curve.

    The curve fills a square whose edge is a power of two; what lies outside of C is left out.
    Neighbours on it are neighbours in C, except where a part was left out. Raises ValueError for
    sizes below 1. Source: D. Hilbert, "Über die stetige Abbildung einer Linie auf ein
    Flächenstück", 1891.
    """
    _positive(tiles_m=tiles_m, tiles_n=tiles_n)
    edge = 1 << (max(tiles_m, tiles_n) - 1).bit_length()
    left = np.arange(edge * edge)
    row, column = np.zeros_like(left), np.zeros_like(left)
    side = 1
    while side < edge:
        down = left // 2 & 1
        right = (left ^ down) & 1
        # The quarters at both ends of the curve are mirrored, the last one upside down as well.
        turned = right == 0
        last = turned & (down == 1)
        row[last], column[last] = side - 1 - row[last], side - 1 - column[last]
        row[turned], column[turned] = column[turned], row[turned]
        row, column = row + side * down, column + side * right
        left, side = left // 4, 2 * side
    inside = (row < tiles_m) & (column < tiles_n)
    return np.stack([row, column], axis=1)[inside]


@dataclass(frozen=True)
class Wave:
    """`programs` that run at the same time, numbered from `first` on.

    `rows` and `columns` are the tile rows of A and tile columns of B that they load, in the order
    of first use.
    """

    first: int
    programs: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def tiles(self) -> int:
        """The number of distinct tiles of A and B that the wave loads in one step."""
        return len(self.rows) + len(self.columns)


def waves(order: np.ndarray, alive: int) -> list[Wave]:
    """Return the waves in which programs run if `alive` of them run at once.

    `order` is as `program_order` returns it. Raises ValueError for `alive` below 1.
    """
    _positive(alive=alive)
    in_waves = []
    for first in range(0, len(order), alive):
        rows, columns = (_in_order(axis) for axis in order[first : first + alive].T)
        in_waves.append(Wave(first, len(order[first : first + alive]), rows, columns))
    return in_waves


@dataclass(frozen=True)
class Setting:
    """One launch: sizes and the block (BLOCK_M, BLOCK_N, BLOCK_K) in elements of `itemsize` bytes.

    `alive` programs run at once; `group_m` is as in `program_order`, and 0 stands for Hilbert's
    curve. Raises ValueError for sizes
    below 1.
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
        numbers["group_m"] = 1 if self.group_m == 0 else self.group_m
        block = dict(zip(("block_m", "block_n", "block_k"), self.block, strict=True))
        _positive(**numbers, **block)

    @property
    def tiles(self) -> tuple[int, int, int]:
        """The number of tiles along M, N and K."""
        return tuple(-(-s // b) for s, b in zip(self._sizes, self.block, strict=True))

    @property
    def order(self) -> np.ndarray:
        if self.group_m == 0:
            return hilbert_order(*self.tiles[:2])
        return program_order(*self.tiles[:2], self.group_m)

    @property
    def waves(self) -> list[Wave]:
        return waves(self.order, self.alive)

    @property
    def compulsory_bytes(self) -> int:
        """The bytes of A and B, each read once."""
        return (self.m + self.n) * self.k * self.itemsize

    def step_bytes(self, wave: Wave) -> int:
        """Return the bytes of the tiles that a wave loads in one whole step."""
        rows, columns = self._extents(wave)
        return (rows + columns) * min(self.block[2], self.k) * self.itemsize

    def strip_bytes(self, wave: Wave) -> int:
        """Return the bytes of A's rows and B's columns that a wave wants along all of K."""
        rows, columns = self._extents(wave)
        return (rows + columns) * self.k * self.itemsize

    def loads(self, wave: Wave) -> Iterator[tuple[tuple[str, int, int], int]]:
        """Yield the distinct tiles that a wave loads, iteration by iteration, with their bytes.

        A tile is ("A", tile row, iteration) or ("B", iteration, tile column).
        """
        lengths = [_lengths(*each).tolist() for each in zip(self._sizes, self.block, strict=True)]
        high, wide, deep = lengths
        for step, depth in enumerate(deep):
            for row in wave.rows:
                yield ("A", row, step), high[row] * depth * self.itemsize
            for column in wave.columns:
                yield ("B", step, column), wide[column] * depth * self.itemsize

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    def _extents(self, wave: Wave) -> tuple[int, int]:
        """Return how many rows of A and columns of B, in elements, a wave loads."""
        parts = ((wave.rows, self.m, self.block[0]), (wave.columns, self.n, self.block[1]))
        return tuple(int(_lengths(size, block)[list(which)].sum()) for which, size, block in parts)


@dataclass(frozen=True)
class Traffic:
    """The bytes of one launch, as the model counts them.

    `asked` is the sum of all programs' loads, which go to the L2; `a` and `b` are the bytes that
    miss there and come from memory. `compulsory` is as in `Setting`. `waves` is the number of
    waves, `tiles` the number of distinct tiles of A and B in one step, averaged over the waves.
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
        """The share of the loaded bytes that hit in the L2."""
        return 1 - self.missed / self.asked

    @property
    def times(self) -> float:
        """How often A and B are read from memory, on average; 1 is the minimum."""
        return self.missed / self.compulsory


@remember
def traffic(setting: Setting, l2_bytes: int) -> Traffic:
    """Return the model's traffic for one launch and an L2 cache of `l2_bytes`.

    Elements beyond an edge are not counted, though the kernel loads others in their place. Raises
    ValueError for a cache below 1 byte, and for a launch of more than MOST_PROGRAMS programs or
    MOST_TOUCHES loads of tiles.
    """
    _positive(l2_bytes=l2_bytes)
    tiles_m, tiles_n, steps = setting.tiles
    of_b, of_c = tiles_m * steps, (tiles_m + tiles_n) * steps
    sizes, touches = _touches(setting)  # refuses what would take too long
    together = setting.waves
    missed = recent_misses(np.concatenate(touches), sizes, l2_bytes) * sizes
    asked = (tiles_n * setting.m + tiles_m * setting.n) * setting.k * setting.itemsize
    return Traffic(
        asked=asked,
        a=int(missed[:of_b].sum()),
        b=int(missed[of_b:of_c].sum()),
        compulsory=setting.compulsory_bytes,
        waves=len(together),
        tiles=sum(wave.tiles for wave in together) / len(together),
    )


@dataclass(frozen=True)
class Held:
    """The L2 cache when a wave ends, and what the wave found in it.

    `a` (tiles_m, steps), `b` (steps, tiles_n) and `c` (tiles_m, tiles_n) are true for the tiles in
    the cache. `loaded` are the bytes of the distinct tiles of A and B that the wave loads, `found`
    those of them that were in the cache from an earlier wave.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    loaded: int
    found: int


def l2_after(setting: Setting, l2_bytes: int, wave: int) -> Held:
    """Return what the model's L2 cache of `l2_bytes` holds when a wave, counted from 0, ends.

    Raises ValueError for a wave that the launch does not have, and as `traffic`.
    """
    _positive(l2_bytes=l2_bytes)
    tiles_m, tiles_n, steps = setting.tiles
    of_b, of_c = tiles_m * steps, (tiles_m + tiles_n) * steps
    sizes, touches = _touches(setting)
    if not 0 <= wave < len(touches):
        raise ValueError(f"the launch has waves 0 to {len(touches) - 1}, got {wave}")
    before, until = (
        np.concatenate([np.empty(0, np.int32), *touches[:n]]) for n in (wave, wave + 1)
    )
    missed = recent_misses(until, sizes, l2_bytes) - recent_misses(before, sizes, l2_bytes)
    used = np.unique(touches[wave])
    loaded = int(sizes[used[used < of_c]].sum())
    # The cache holds the pieces used last, as many as fit.
    pieces, age = np.unique(until[::-1], return_index=True)
    newest = pieces[np.argsort(age)]
    newest = newest[sizes[newest] <= l2_bytes]
    kept = np.zeros(len(sizes), bool)
    kept[newest[np.cumsum(sizes[newest]) <= l2_bytes]] = True
    return Held(
        a=kept[:of_b].reshape(tiles_m, steps),
        b=kept[of_b:of_c].reshape(tiles_n, steps).T,
        c=kept[of_c:].reshape(tiles_m, tiles_n),
        loaded=loaded,
        found=loaded - int((missed * sizes)[:of_c].sum()),
    )


def _touches(setting: Setting) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the bytes of each tile, and for each wave the numbers of the tiles it uses, in order.

    Tiles are numbered: A row by row, then B column by column, then C row by row. Raises ValueError
    as `traffic`.
    """
    tiles_m, tiles_n, steps = setting.tiles
    if tiles_m * tiles_n > MOST_PROGRAMS:
        raise ValueError(f"{tiles_m * tiles_n:,} programs are more than {MOST_PROGRAMS:,}")
    together = setting.waves
    count = sum(wave.tiles * steps + wave.programs for wave in together)
    if count > MOST_TOUCHES:
        raise ValueError(f"{count:,} tiles to ask for are more than {MOST_TOUCHES:,}")
    pairs = zip(setting._sizes, setting.block, strict=True)
    high, wide, deep = (_lengths(size, block) for size, block in pairs)
    of_b, of_c = tiles_m * steps, (tiles_m + tiles_n) * steps
    products = (np.outer(high, deep), np.outer(wide, deep), np.outer(high, wide))
    sizes = np.concatenate([part.ravel() for part in products]) * setting.itemsize
    order, along = setting.order, np.arange(steps, dtype=np.int32)[:, None]
    touches = []
    for wave in together:
        loads = [row * steps for row in wave.rows]
        loads += [of_b + column * steps for column in wave.columns]
        owned = order[wave.first : wave.first + wave.programs]
        stores = (of_c + owned[:, 0] * tiles_n + owned[:, 1]).astype(np.int32)
        touches.append(np.concatenate([(np.array(loads, np.int32) + along).ravel(), stores]))
    return sizes, touches


def _lengths(size: int, block: int) -> np.ndarray:
    """Return how many elements each tile has along an axis; the last one may have fewer."""
    return np.minimum(block, size - np.arange(0, size, block))


def _in_order(values: np.ndarray) -> tuple[int, ...]:
    """Return the distinct values, in the order of their first occurrence."""
    return tuple(dict.fromkeys(values.tolist()))


def _positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise TypeError(f"{name} must be an integer, got {number!r}")
        if number < 1:
            raise ValueError(f"{name} must be 1 or more, got {number}")
