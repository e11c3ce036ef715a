"""Figures of a traced Triton kernel: the tiles of one program, and the readers of each tile.

Everything is drawn from a `tiled_matmul.microscope.triton.TileTrace`. A lies left of C and B above
it, so that K runs along A's row and down B's column.
"""

from __future__ import annotations

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


@style.styled
def who_reads(t, *arrays: str) -> style.Figure:
    """Draw how many programs load each tile of the named arrays, by default of A and B.

    If tiles overlap, their parts are counted separately. Raises ValueError for an array that does
    not exist or that no program loads.
    """
    chosen = [t.array(name) for name in arrays] or list(matrices(t)[:2])
    counts = [_readers(t, array) for array in chosen]
    most = max(max(counted.values()) for counted in counts)
    gap = GAP * max(sum(array.cols for array in chosen), max(array.rows for array in chosen))
    width = sum(array.cols for array in chosen) + gap * (len(chosen) - 1)
    height = max(array.rows for array in chosen) + gap
    fig, ax = style.draw(min(0.6 + style.WIDTH * height / width, TALLEST))
    style.bare(ax, width, height)
    room = ROOM * max(width, height * style.WIDTH / TALLEST)
    x = 0.0
    for array, counted in zip(chosen, counts, strict=True):
        color = _colour(t, array)
        for (rows, cols), readers in counted.items():
            size = cols[1] - cols[0], rows[1] - rows[0]
            corner = x + cols[0], gap + rows[0]
            alpha = 0.1 + 0.7 * readers / most if readers else 0
            ax.add_patch(Rectangle(corner, *size, facecolor=color, alpha=alpha, lw=0))
            style.frame(ax, *corner, *size, color, 0.8)
            if size[0] >= room * max(1, 0.7 * len(str(readers))) and size[1] >= room:
                middle = corner[0] + size[0] / 2, corner[1] + size[1] / 2
                ax.text(*middle, str(readers), ha="center", va="center_baseline", fontsize=8)
        style.frame(ax, x, gap, array.cols, array.rows, color)
        ax.text(x + array.cols / 2, gap / 2, array.name, ha="center", va="center")
        x += array.cols + gap
    sentences = [
        f"{_span(counted.values())} programs load each tile of {chosen[0].name}"
        if number == 0
        else f"{_span(counted.values())} each tile of {array.name}"
        for number, (array, counted) in enumerate(zip(chosen, counts, strict=True))
    ]
    finding = ", ".join(sentences)
    words = [
        f"{array.name}, {array.rows} by {array.cols}: {_each(counted.values())}"
        for array, counted in zip(chosen, counts, strict=True)
    ]
    return style.conclude(fig, finding, f"Matrices cut into the tiles loaded. {'; '.join(words)}.")


def matrices(t) -> tuple:
    """Return the arrays A, B and C of a traced matmul: C is stored, A and B are loaded, sizes fit.

    Raises ValueError, which lists the arrays, if no three arrays fit.
    """
    stored = [array for array in t.arrays if t.tiles(array.name, "store")]
    loaded = [array for array in t.arrays if t.tiles(array.name)]
    for c in stored:
        for a in loaded:
            for b in loaded:
                fits = (a.rows, a.cols, b.cols) == (c.rows, b.rows, c.cols)
                if fits and len({a.name, b.name, c.name}) == 3:
                    return a, b, c
    known = ", ".join(f"{array.name} ({array.rows}×{array.cols})" for array in t.arrays)
    raise ValueError(
        f"{t.name} loads no A and B and stores no C that fit each other; it has {known}"
    )


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
    same = {
        other.name
        for other in t.arrays
        if (other.address, other.shape, other.strides)
        == (array.address, array.shape, array.strides)
    }
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
    for down in downs:
        for across in acrosses:
            corner = x + across[0], y + down[0]
            size = across[1] - across[0], down[1] - down[0]
            ax.add_patch(Rectangle(corner, *size, facecolor=color, alpha=alpha, lw=0))
    # The part outside is drawn as far as there is room.
    reach = 0.8 * GAP * max(abs(edge) for edge in (*ax.get_xlim(), *ax.get_ylim()))
    below = _beyond(event.rows, array.rows, reach, "rows" in wraps)
    beside = _beyond(event.cols, array.cols, reach, "cols" in wraps)
    strips = [(down, across) for down in below for across in [*acrosses, *beside]]
    strips += [(down, across) for down in downs for across in beside]
    look = {"lw": 0.9, "ls": (0, (3, 2)), "zorder": 0.6, "clip_on": False}
    if event.outside:
        look |= {"facecolor": style.FAULT, "edgecolor": style.FAULT, "alpha": 0.6}
    else:
        look |= {"fill": False, "edgecolor": style.MUTED}
    for down, across in strips:
        corner = x + across[0], y + down[0]
        ax.add_patch(Rectangle(corner, across[1] - across[0], down[1] - down[0], **look))


def _beyond(
    span: tuple[int, int], size: int, reach: float, wraps: bool
) -> list[tuple[float, float]]:
    """Return the parts of a range before 0 and past `size`, up to `reach` away."""
    if wraps:
        return []
    pieces = (
        (max(span[0], -reach), min(span[1], 0)),
        (max(span[0], size), min(span[1], size + reach)),
    )
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


def _listed(events: Sequence, most: int = 8) -> str:
    listed = [
        f"rows {event.rows[0]} to {event.rows[1] - 1}, columns {event.cols[0]} to "
        f"{event.cols[1] - 1}"
        for event in events[:most]
    ]
    more = [f"and {len(events) - most} more"] if len(events) > most else []
    return ", then ".join(listed + more) or "nothing"


def _short(t, place: tuple[int, ...]) -> str:
    axes = max((i + 1 for i, size in enumerate(t.grid) if size > 1), default=1)
    return str(place[0]) if axes == 1 else str(place[:axes])


def _readers(t, array) -> dict[tuple, int]:
    """Return how many programs load each piece between the edges of tiles: {(rows, cols): n}."""
    programs: dict[tuple, set] = {}
    for event in _events(t, array, "load"):
        if event.elements:
            for down in _pieces(event.rows, array.rows, "rows" in event.wraps):
                for across in _pieces(event.cols, array.cols, "cols" in event.wraps):
                    programs.setdefault((down, across), set()).add(event.program)
    if not programs:
        raise ValueError(f"no program of {t.name} loads {array.name}")
    downs = sorted({0, array.rows, *(edge for down, _ in programs for edge in down)})
    acrosses = sorted({0, array.cols, *(edge for _, across in programs for edge in across)})
    cells: dict[tuple, set] = {
        (down, across): set() for down in _pairs(downs) for across in _pairs(acrosses)
    }
    for (down, across), readers in programs.items():
        for cell in cells:
            if _within(cell[0], down) and _within(cell[1], across):
                cells[cell] |= readers
    return {cell: len(readers) for cell, readers in cells.items()}


def _pairs(edges: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(edges[:-1], edges[1:], strict=True)


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _colour(t, array) -> str:
    for letter, color in (("a", style.A), ("b", style.B), ("c", style.C)):
        if array.name.lower().startswith(letter):
            return color
    return style.MUTED


def _span(counts: Iterable[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _each(counts: Iterable[int]) -> str:
    """Return "6 tiles by 2 programs, 3 tiles by 4 programs"."""
    counts = list(counts)
    return ", ".join(
        f"{counts.count(n)} tile{'s' * (counts.count(n) > 1)} by {n} program{'s' * (n != 1)}"
        for n in sorted(set(counts))
    )
