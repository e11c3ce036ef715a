"""Figures of a traced Triton kernel: the tiles of one program, and the readers of each tile.

Everything is drawn from a `tiled_matmul.microscope.triton.TileTrace`. A lies left of C and B above
it, so that K runs along A's row and down B's column.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tiled_matmul.microscope.table import plural
from tiled_matmul.plots import style

GAP = 0.09  # between matrices, of the longer edge of the picture
TALLEST = 5.5  # inches
ROOM = 0.045  # of the picture's width: what a number needs


@style.styled
def tile_walk(t, program: int | tuple[int, ...] = 0) -> style.Figure:
    """Draw the tiles of A and B that one program loads, numbered by step, and its tiles of C.

    The part of a tile outside its matrix is drawn dashed, and in the colour of a fault if the
    program accesses any of it. Rows that wrap around are drawn where they are read. Raises
    ValueError for a program that did not run, and for a kernel that is not a matmul.
    """
    place = t.program(program)
    a, b, c = matrices(t)
    fig, ax, corners = _three(a, b, c)
    lines, faults = [], 0
    for array, color, op in ((a, style.A, "load"), (b, style.B, "load"), (c, style.C, "store")):
        x, y = corners[array.name]
        _outline(ax, t, array, color, op, x, y)
        events = [event for event in _events(t, array, op) if event.program == place]
        events = [event for event in events if event.elements or event.outside]
        faults += sum(event.outside for event in events)
        for number, event in enumerate(events):
            alpha = 0.25 + 0.5 * (number + 1) / len(events)
            _tile(ax, array, event, x, y, color, alpha)
            if op == "load":
                _number(ax, array, event, x, y)
        lines.append(f"{array.name}: {_listed(events)}")
    loaded = [_count(t, array, place) for array in (a, b)]
    stored = _count(t, c, place, "store")
    finding = (
        f"Program {_short(t, place)}: {loaded[0]} of {a.name} and {loaded[1]} of {b.name} make "
        f"{stored} of {c.name}"
    )
    if faults:
        finding += f", and {faults:,} elements are outside"
    return style.conclude(
        fig,
        finding,
        f"{a.name} below left, {b.name} above right, {c.name} in the corner between "
        f"them, tiles numbered by the step in which they are loaded. {'; '.join(lines)}.",
    )


def matrices(t) -> tuple:
    """Return the arrays A, B and C of a traced matmul: C is stored, A and B are loaded, sizes fit.

    Raises ValueError, which lists the arrays, if no three arrays fit.
    """
    stored = [array for array in t.arrays if t.tiles(array.name, "store")]
    loaded = [array for array in t.arrays if t.tiles(array.name)]
    for c, a, b in itertools.product(stored, loaded, loaded):
        fits = (a.rows, a.cols, b.cols) == (c.rows, b.rows, c.cols)
        if fits and len({a.name, b.name, c.name}) == 3:
            return a, b, c
    known = ", ".join(f"{array.name} ({array.rows}×{array.cols})" for array in t.arrays)
    wanted = "loads no A and B and stores no C that fit each other"
    raise ValueError(f"{t.name} {wanted}; it has {known}")


def _three(a, b, c) -> tuple:
    """Return a figure, its axes and the upper left corner of each matrix."""
    gap = GAP * max(a.cols + b.cols, a.rows + b.rows)
    left, top = a.cols + gap, b.rows + gap
    width, height = left + b.cols, top + a.rows
    shape = (height + gap) / (width + gap)
    fig, ax = style.draw(min(0.6 + style.WIDTH * shape, TALLEST))
    style.bare(ax, width, height)
    corners = {a.name: (0, top), b.name: (left, 0), c.name: (left, top)}
    small = {"fontsize": 8, "ha": "center", "va": "center"}
    ax.text(a.cols / 2, top - gap / 2, f"{a.name}: K →", **small)
    ax.text(left - gap / 2, b.rows / 2, f"{b.name}: K →", rotation=-90, **small)
    ax.text(left + c.cols / 2, top - gap / 2, c.name, **small)
    ax.set(xlim=(-0.02 * width, width + gap), ylim=(height + gap, -0.02 * height))
    return fig, ax, corners


def _events(t, array, op: str) -> list:
    """Return the events of an array, and of other arguments that are the same matrix."""

    def place(info) -> tuple:
        return info.address, info.shape, info.strides

    same = {other.name for other in t.arrays if place(other) == place(array)}
    return [event for event in t.events if event.op == op and event.array in same]


def _outline(ax: Axes, t, array, color: str, op: str, x: float, y: float) -> None:
    """Draw the frame of a matrix, and thin lines where the tiles of all programs begin."""
    events = _events(t, array, op)
    for row in {event.rows[0] for event in events if 0 < event.rows[0] < array.rows}:
        ax.plot([x, x + array.cols], [y + row] * 2, color=color, lw=0.5, alpha=0.6)
    for col in {event.cols[0] for event in events if 0 < event.cols[0] < array.cols}:
        ax.plot([x + col] * 2, [y, y + array.rows], color=color, lw=0.5, alpha=0.6)
    style.frame(ax, x, y, array.cols, array.rows, color)


def _tile(ax: Axes, array, event, x: float, y: float, color: str, alpha: float) -> None:
    wraps = event.wraps
    downs = _pieces(event.rows, array.rows, "rows" in wraps)
    acrosses = _pieces(event.cols, array.cols, "cols" in wraps)
    for down, across in itertools.product(downs, acrosses):
        _part(ax, x, y, down, across, facecolor=color, alpha=alpha, lw=0)
    # The part outside is drawn as far as there is room.
    reach = 0.8 * GAP * max(abs(edge) for edge in (*ax.get_xlim(), *ax.get_ylim()))
    below = [] if "rows" in wraps else _beyond(event.rows, array.rows, reach)
    beside = [] if "cols" in wraps else _beyond(event.cols, array.cols, reach)
    strips = itertools.product(below, [*acrosses, *beside])
    strips = [*strips, *itertools.product(downs, beside)]
    look = {"lw": 0.9, "ls": (0, (3, 2)), "zorder": 0.6, "clip_on": False}
    if event.outside:
        look |= {"facecolor": style.FAULT, "edgecolor": style.FAULT, "alpha": 0.6}
    else:
        look |= {"fill": False, "edgecolor": style.MUTED}
    for down, across in strips:
        _part(ax, x, y, down, across, **look)


def _part(ax: Axes, x: float, y: float, down: tuple, across: tuple, **look) -> None:
    """Draw the part of a matrix with these ranges of rows and columns."""
    corner = x + across[0], y + down[0]
    ax.add_patch(Rectangle(corner, across[1] - across[0], down[1] - down[0], **look))


def _beyond(span: tuple[int, int], size: int, reach: float) -> list[tuple[float, float]]:
    """Return the parts of a range before 0 and past `size`, up to `reach` away."""
    ends = ((-reach, 0), (size, size + reach))
    pieces = [(max(span[0], low), min(span[1], high)) for low, high in ends]
    return [(low, high) for low, high in pieces if low < high]


def _pieces(span: tuple[int, int], size: int, wraps: bool) -> list[tuple[int, int]]:
    """Return the parts of a range inside the matrix; a range that wraps continues at 0."""
    pieces = [(max(span[0], 0), min(span[1], size))]
    if wraps and span[1] > size:
        pieces.append((0, min(span[1] - size, size)))
    return [(low, high) for low, high in pieces if low < high]


def _number(ax: Axes, array, event, x: float, y: float) -> None:
    """Write the step into a tile, if there is room."""
    rows = _pieces(event.rows, array.rows, False)
    cols = _pieces(event.cols, array.cols, False)
    room = ROOM * max(*ax.get_xlim(), ax.get_ylim()[0] * style.WIDTH / TALLEST)
    if rows and cols and min(rows[0][1] - rows[0][0], cols[0][1] - cols[0][0]) >= room:
        middle = x + sum(cols[0]) / 2, y + sum(rows[0]) / 2
        ax.text(*middle, str(event.step), ha="center", va="center_baseline")


def _count(t, array, place: tuple, op: str = "load") -> str:
    tiles = {
        (event.rows, event.cols)
        for event in _events(t, array, op)
        if event.program == place and (event.elements or event.outside)
    }
    return plural(len(tiles), "tile")


def _listed(events: Sequence) -> str:
    most = 8
    spans = [(*event.rows, *event.cols) for event in events[:most]]
    listed = [f"rows {a} to {b - 1}, columns {c} to {d - 1}" for a, b, c, d in spans]
    more = [f"and {len(events) - most} more"] if len(events) > most else []
    return ", then ".join(listed + more) or "nothing"


def _short(t, place: tuple[int, ...]) -> str:
    axes = max((i + 1 for i, size in enumerate(t.grid) if size > 1), default=1)
    return str(place[0]) if axes == 1 else str(place[:axes])


def _span(counts: Iterable[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
