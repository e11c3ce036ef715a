"""Figures of overlap: schedules of copies and products, the cost of waiting, warp tiles.

Schedules and maps are drawn from traces, the cost of waiting from times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.patches import Patch, Rectangle

from tiled_matmul.plots import style
from tiled_matmul.plots.microscope import accesses_of, array_named, rectangles

COPY, MULTIPLY = style.OTHERS[0], style.C


@dataclass(frozen=True)
class Flight:
    """One tile of K: the phase in which its copy begins, and the phases of its first and last use.

    A phase is the time between two barriers.
    """

    tile: int
    begun: int
    first_use: int
    last_use: int

    @property
    def ahead(self) -> int:
        """The number of phases from the begin of the copy to the first use; 1 is the next phase."""
        return self.first_use - self.begun


def flights(t: Any, n: int, k: int, tile_k: int, block: tuple[int, ...] = (0, 0)) -> list[Flight]:
    """Return the flight of each tile of K that one block of a matmul's trace multiplies.

    The kernel loads from `a` (M, K) and `b` (K, N), flat or not, stores to shared memory and loads
    from there; a tile is `tile_k` columns of `a`. In one phase it begins one tile, or several with
    asynchronous copies. Raises ValueError for a kernel that copies several tiles in one phase
    without asynchronous copies, or that loads nothing.
    """
    accesses = accesses_of(t, block)
    op = np.array([site.op for site in t.sites])[accesses["site"]]
    asynchronous = np.array([site.asynchronous for site in t.sites])[accesses["site"]]
    shared = np.array([info.space == "shared" for info in t.arrays])[accesses["array"]]
    a, b = (array_named(t, name) for name in "ab")
    loads = ~shared & (op == "load")
    from_a, from_b = (loads & (accesses["array"] == info.id) for info in (a, b))
    tile = np.full(accesses.size, -1)  # the tile of each load, and of each store to shared memory
    tile[from_a] = accesses["element"][from_a] % k // tile_k
    tile[from_b] = accesses["element"][from_b] // n // tile_k
    begun: dict[int, int] = {}  # tile: phase
    for phase in np.unique(accesses["phase"][tile >= 0]).tolist():
        here = accesses["phase"] == phase
        fetched = here & (tile >= 0)
        tiles, stores = np.unique(tile[fetched]), np.flatnonzero(here & shared & (op == "store"))
        if tiles.size == 1:
            tile[stores] = tiles[0]
        elif not asynchronous[fetched].all():
            raise ValueError(f"{t.name} copies {tiles.size} tiles of {tile_k} in phase {phase}")
        else:  # the store of an asynchronous copy follows its load, if it has one
            same = accesses["thread"][stores] == accesses["thread"][stores - 1]
            tile[stores] = np.where(same, tile[stores - 1], -1)
        for which in tiles.tolist():
            begun.setdefault(which, phase)
    if not begun:
        raise ValueError(f"{t.name} loads nothing from a and b in block {block}")
    latest: dict[tuple[int, int], int] = {}  # (array, element): the last tile stored there
    uses: dict[int, list[int]] = {}
    for phase in range(int(accesses["phase"].max()) + 1):
        now = (accesses["phase"] == phase) & shared
        for place in _elements(t, accesses[now & (op == "load")]):
            if latest.get(place, -1) >= 0:
                uses.setdefault(latest[place], []).append(phase)
        for which in np.unique(tile[now & (op == "store")]).tolist():
            stored = now & (op == "store") & (tile == which)
            latest |= dict.fromkeys(_elements(t, accesses[stored]), which)
    return [Flight(each, begun[each], min(uses[each]), max(uses[each])) for each in sorted(uses)]


def _elements(t: Any, accesses: np.ndarray) -> list[tuple[int, int]]:
    """Return the distinct (array, element) of some accesses, with all elements of wide ones."""
    counts = accesses["width"] // np.array([info.itemsize for info in t.arrays])[accesses["array"]]
    elements = set()
    for offset in range(int(counts.max(initial=0))):
        wide = accesses[counts > offset]
        elements |= set(
            zip(wide["array"].tolist(), (wide["element"] + offset).tolist(), strict=True)
        )
    return sorted(elements)


@style.styled
def schedules(kernels: Mapping[str, Sequence[Flight]]) -> style.Figure:
    """Draw for each kernel and phase which tiles are copied and which one is multiplied.

    `kernels` maps a title to the flights of a trace. The title names the kernels that copy while
    they multiply. Raises ValueError without tiles.
    """
    if not kernels or not all(kernels.values()):
        raise ValueError("there is no tile to draw")
    lines = [len(flown) for flown in kernels.values()]
    panels = {"squeeze": False, "height_ratios": [n + 1 for n in lines], "sharex": True}
    fig, axes = style.draw(1.1 + sum(0.5 + 0.2 * n for n in lines), len(kernels), **panels)
    end = 1 + max(flight.last_use for flown in kernels.values() for flight in flown)
    spoken = []
    for ax, (name, flown) in zip(axes[:, 0], kernels.items(), strict=True):
        for line, each in enumerate(flown):
            last = 1 + max(flight.last_use for flight in flown)
            ax.hlines(line, 0, last, color=style.MUTED, lw=0.5, alpha=0.5)
            _box(ax, each.begun, line, 1, COPY, 1)
            _box(ax, each.begun + 1, line, each.ahead - 1, COPY, 0.35)
            _box(ax, each.first_use, line, each.last_use - each.first_use + 1, MULTIPLY, 1)
        for phase in range(1, last + 1):
            ax.axvline(phase, color=style.INK, lw=0.8)
        ax.set(xlim=(0, end), ylim=(len(flown) - 0.4, -0.6))
        ax.set_yticks(range(len(flown)), [str(each.tile) for each in flown])
        ax.set_xticks([])
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        ax.tick_params(left=False)
        ax.set_title(
            f"{name}: {overlapping(flown)} of {last} phases multiply with a copy under way",
            fontsize=9,
        )
        spoken.append(f"{name}: {_words(flown)}")
    axes[-1, 0].set_xlabel("time, from barrier to barrier (heavy lines); a row is a tile of K")
    looks = [Patch(color=COPY), Patch(color=COPY, alpha=0.35), Patch(color=MULTIPLY)]
    names = ["copy begun", "under way", "multiplied"]
    fig.legend(looks, names, loc="outside lower center", ncols=3, handlelength=1)
    both = [name for name, flown in kernels.items() if overlapping(flown)]
    title = "No phase copies and multiplies"
    if both:
        title = f"Copies and multiplications share a phase in {', '.join(both)}"
    return style.conclude(fig, title, f"{'; '.join(spoken)}.")


def overlapping(flown: Sequence[Flight]) -> int:
    """Return the number of phases in which one tile is copied and another one is multiplied."""
    under_way = {p for each in flown for p in range(each.begun, each.first_use)}
    used = {p for each in flown for p in range(each.first_use, each.last_use + 1)}
    return len(under_way & used)


def _words(flown: Sequence[Flight]) -> str:
    tiles = []
    for each in flown:
        used = f"phases {each.first_use} to {each.last_use}"
        if each.first_use == each.last_use:
            used = f"phase {each.first_use}"
        tiles.append(f"tile {each.tile} begun in phase {each.begun}, multiplied in {used}")
    return ", ".join(tiles)


def _box(ax: Any, x: float, line: int, width: float, color: str, alpha: float) -> None:
    if width > 0:
        box = (x + 0.06, line - 0.36), width - 0.12, 0.72
        ax.add_patch(Rectangle(*box, facecolor=color, alpha=alpha, lw=0))


@style.styled
def bill(kernels: Mapping[str, tuple[float, float]], finding: str) -> style.Figure:
    """Draw the times of kernels, and their times without loads from global memory.

    `kernels` maps a title to (time in ms, time in ms without its loads). `finding` is the title.
    Raises ValueError without kernels.
    """
    if not kernels:
        raise ValueError("there is no time to draw")
    fig, ax = style.draw(1.1 + 0.5 * len(kernels))
    longest = max(whole for whole, _ in kernels.values())
    spoken = []
    for line, (name, (whole, still)) in enumerate(kernels.items()):
        left = min(whole, still)
        ax.barh(line + 0.17, left, 0.34, color=MULTIPLY, alpha=0.75)
        ax.barh(line + 0.17, whole - left, 0.34, left=left, color=style.FAULT, alpha=0.85)
        text = f"{name}: {whole:.3g} ms, {still:.3g} without loads"
        ax.text(0, line - 0.08, text, va="bottom")
        spoken.append(text)
    label = "time (ms); vermilion: what reading global memory adds"
    style.line_axis(ax, len(kernels) - 0.4, -0.5, label, xlim=(0, longest * 1.02))
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


@dataclass(frozen=True)
class Fragment:
    """What a thread loads of its tiles for one k: the tile of K, k within it, and the phase."""

    tile: int
    k: int
    phase: int


def fragments(t: Any, thread: int = 0, block: tuple[int, ...] = (0, 0)) -> list[Fragment]:
    """Return the fragments of A that one thread loads from shared memory, in their order.

    `t` is a trace of a matmul whose tiles of A, stored by columns, are `a_tile` (buffer, k, row).
    Raises ValueError if the thread loads none.
    """
    accesses = accesses_of(t, block)
    a_tile = array_named(t, "a_tile")
    stores = np.array([site.op for site in t.sites])[accesses["site"]] == "store"
    mine = (accesses["array"] == a_tile.id) & (accesses["thread"] == thread) & ~stores
    found: list[Fragment] = []
    depth, row = a_tile.shape[-2:]
    for each in accesses[mine]:
        k = int(each["element"]) // row % depth
        if found and k == found[-1].k:
            continue
        tile = found[-1].tile + (k == 0) if found else 0
        found.append(Fragment(tile, k, int(each["phase"])))
    if not found:
        raise ValueError(f"thread {thread} of {t.name} loads nothing from a_tile")
    return found


@style.styled
def fragment_schedules(kernels: Mapping[str, tuple[Sequence[Fragment], int]]) -> style.Figure:
    """Draw when fragments are loaded and multiplied, around the border of two tiles.

    `kernels` maps a title to (fragments, `ahead`): 0 for a thread that loads and then multiplies,
    1 for one that loads the next while it multiplies. Not to scale: a load takes one unit, a
    multiplication two. Raises ValueError for fragments of a single tile.
    """
    fig, axes = style.draw(0.9 + 1.35 * len(kernels), len(kernels), squeeze=False)
    spoken, lost = [], []
    for ax, (name, (found, ahead)) in zip(axes[:, 0], kernels.items(), strict=True):
        first = next((i for i, each in enumerate(found) if each.tile == 1), 0)
        if first < 2:
            raise ValueError(f"{name}: one tile has no border to draw")
        shown = found[first - 2 : first + 2]
        time, barrier, waits = 0, 0, 0
        for place, each in enumerate(shown):
            if place and each.phase != shown[place - 1].phase:
                barrier = time
            label = str(each.k)
            if ahead and place:  # beside the multiplication of the fragment before
                _labelled(ax, time - 2, 0, 1, COPY, label)
                barrier = time - 2 if barrier == time else barrier
            else:
                _labelled(ax, time, 0, 1, COPY, label)
                waits += bool(place)
                time += 1
            _labelled(ax, time, 1, 2, MULTIPLY, label)
            time += 2
        ax.axvline(barrier, color=style.INK, lw=1.5)
        ax.set(xlim=(-0.1, 13), ylim=(1.6, -0.6), xticks=[])
        ax.set_yticks([0, 1], ["load", "multiply"])
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        ax.tick_params(left=False)
        ax.set_title(name, fontsize=9)
        lost.append(waits)
        order = ", ".join(f"k={each.k} of tile {each.tile}" for each in shown)
        how = "loaded during the one before" if ahead else "loaded, then multiplied"
        spoken.append(f"{name}: fragments {order}, each {how}")
    axes[-1, 0].set_xlabel("time, not to scale; numbers: k; heavy line: barrier")
    finding = f"Loads without a multiplication beside them: {', then '.join(map(str, lost))}"
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


def _labelled(ax: Any, x: float, line: int, width: float, color: str, text: str) -> None:
    _box(ax, x, line, width, color, 0.8)
    ax.text(x + width / 2, line, text, ha="center", va="center", fontsize=8)


@dataclass(frozen=True)
class WarpTile:
    """What one warp owns and loads in its block's tile of `shape`.

    `owned` holds (row, column) in C's tile; `rows` of A's tile and `columns` of B's tile are loaded
    for one k, in `wavefronts` wavefronts.
    """

    owned: frozenset[tuple[int, int]]
    rows: frozenset[int]
    columns: frozenset[int]
    wavefronts: int
    shape: tuple[int, int]


def warp_tile(t: Any, warp: int = 0, block: tuple[int, ...] = (0, 0)) -> WarpTile:
    """Return which elements of C a warp stores, and what it loads from the tiles for one k.

    `t` is a trace of a matmul with one block, whose tiles of A are stored by columns, as in the
    rungs with thread tiles. The arrays are named `c`, `a_tile` and `b_tile`. Raises ValueError for
    a warp that stores nothing or loads nothing.
    """
    owned: set[tuple[int, int]] = set()
    read: dict[str, set[int]] = {"a_tile": set(), "b_tile": set()}
    waves, first = 0, None
    shape = array_named(t, "c").shape
    for request in t.requests(block, warp):
        count = request.width // request.array.itemsize
        places = [(*i[:-1], i[-1] + e) for i in request.indices for e in range(count)]
        if request.array.name == "c" and request.site.op == "store":
            owned |= set(places)
        if request.array.name in read and request.site.op == "load":
            step = (request.phase, *places[0][:-1])
            first = first or step
            if step == first:
                read[request.array.name] |= {place[-1] for place in places}
                waves += request.wavefronts
    if not owned or not all(read.values()):
        raise ValueError(f"warp {warp} of {t.name} stores no element of c, or reads no tile")
    rows, columns = (frozenset(read[name]) for name in ("a_tile", "b_tile"))
    return WarpTile(frozenset(owned), rows, columns, waves, shape)


@style.styled
def warp_maps(kernels: Mapping[str, WarpTile]) -> style.Figure:
    """Draw side by side what one warp owns of a block's tile, and what it loads for one k.

    `kernels` maps a title to a warp tile. The title compares the numbers of loaded elements.
    """
    tallest = max(tile.shape[0] / tile.shape[1] for tile in kernels.values())
    fig, axes = style.draw(1.1 + 3.8 * tallest / len(kernels), 1, len(kernels), squeeze=False)
    spoken, sizes = [], []
    for ax, (name, tile) in zip(axes[0], kernels.items(), strict=True):
        height, width = tile.shape
        strip, gap = height // 20, height // 30
        left = top = strip + gap
        style.bare(ax, left + width, top + height + 0.3 * width)
        style.product_frames(ax, left, strip, height, width, 1.2)
        for row, column, h, w in _rectangles(tile.owned, tile.shape):
            style.fill(ax, left + column, top + row, w, h, style.C, 0.8)
        for row, _, h, _ in _rectangles({(row, 0) for row in tile.rows}, (height, 1)):
            style.fill(ax, 0, top + row, strip, h, style.A, 0.8)
        for _, column, _, w in _rectangles({(0, column) for column in tile.columns}, (1, width)):
            style.fill(ax, left + column, 0, w, strip, style.B, 0.8)
        sizes.append(len(tile.rows) + len(tile.columns))
        text = f"{name}\n{len(tile.rows)} of A + {len(tile.columns)} of B\n"
        text += f"{tile.wavefronts} wavefronts"
        ax.text(left, top + height + gap, text, va="top", fontsize=8)
        spoken.append(text.replace("\n", ", "))
    title = f"For one k a warp reads {' or '.join(map(str, sizes))} elements"
    return style.conclude(
        fig,
        title,
        f"A block's tile of C with what its first warp owns; left of it what the warp "
        f"reads of a column of A's tile, above it of a row of B's. {'; '.join(spoken)}.",
    )


def _rectangles(places: Any, shape: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Return rectangles that cover the places: (row, column, height, width)."""
    cells = np.zeros(shape, dtype=bool)
    cells[tuple(np.array(sorted(places)).T)] = True
    return rectangles(cells)
