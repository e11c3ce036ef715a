"""Figures of chapter 11: the order of programs, their waves, and the traffic to memory.

Orders and the cache's contents are drawn from `models.program_order`; counted bytes come from
`counters.order()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import NullLocator

from tiled_matmul.microscope.table import plural
from tiled_matmul.models.program_order import Held, Setting, Wave, l2_after
from tiled_matmul.plots import style
from tiled_matmul.plots.microscope import rectangles
from tiled_matmul.plots.walk import GAP, WIDTH, Panel, Step, Walk

NUMBERED = 12  # with so many columns of tiles at most, each tile gets its program's number
LINES = ((style.A, "o"), (style.B, "s"), (style.FAULT, "^"), (style.OTHERS[1], "D"))
PALEST, DARKEST = 0.06, 0.5


@style.styled
def orders(settings: Mapping[str, Setting], finding: str) -> style.Figure:
    """Draw side by side the tiles of C in the first wave, and the strips of A and B that it loads.

    `settings` maps a name to a launch. If there are few tiles, each shows its program's number. The
    first wave has full colour, later waves are paler. A's strips lie left of C, B's above.
    """
    fig, axes = style.draw(1.3 + 3.6 / len(settings), 1, len(settings), squeeze=False)
    spoken = []
    for ax, (name, setting) in zip(axes[0], settings.items(), strict=True):
        first = setting.waves[0]
        _launch(ax, setting, first)
        bytes_text = size_text(setting.strip_bytes(first))
        text = f"{name}\n{len(first.rows)} of A + {len(first.columns)} of B"
        text += f"\n= {plural(first.tiles, 'strip')}, {bytes_text}"
        ax.text(_strip(setting), _strip(setting) + setting.m * 1.03, text, va="top", fontsize=8)
        spoken.append(
            f"{name}: the first {plural(first.programs, 'program')} load "
            f"{plural(len(first.rows), 'strip')} of A and "
            f"{plural(len(first.columns), 'strip')} of B, {bytes_text}"
        )
    return style.conclude(
        fig,
        finding,
        f"C cut into tiles, the first wave in full colour and later waves paler; left "
        f"of it the rows of A, above it the columns of B that the first wave loads. "
        f"{'; '.join(spoken)}.",
    )


def size_text(nbytes: float) -> str:
    """Return a number of bytes in words, by powers of ten: "672 KB", "1.13 MB", "2.31 GB"."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if nbytes >= 0.9995 * factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes:.3g} bytes"


def _strip(setting: Setting) -> float:
    """Return the width of A's strip and the height of B's, including the gap to C."""
    return 0.2 * max(setting.m, setting.n)


def _launch(ax, setting: Setting, first: Wave) -> None:
    tiles_m, tiles_n, _ = setting.tiles
    high, wide, _ = setting.block
    corner = _strip(setting)
    thick = 0.85 * corner
    style.bare(ax, corner + setting.n, corner + 1.38 * setting.m)
    order = setting.order
    wave_of = np.empty((tiles_m, tiles_n), int)
    wave_of[tuple(order.T)] = np.arange(len(order)) // setting.alive
    last = max(int(wave_of.max()), 1)

    def fill(x, y, width, height, color, alpha):
        width, height = min(width, corner + setting.n - x), min(height, corner + setting.m - y)
        style.fill(ax, x, y, width, height, color, alpha)

    for wave in range(int(wave_of.max()) + 1):
        alpha = 0.8 if wave == 0 else DARKEST - (DARKEST - PALEST) * (wave - 1) / last
        for row, column, rows, columns in rectangles(wave_of == wave):
            x, y = corner + column * wide, corner + row * high
            fill(x, y, columns * wide, rows * high, style.C, alpha)
    for row in first.rows:
        fill(0, corner + row * high, thick, high, style.A, 0.75)
    for column in first.columns:
        fill(corner + column * wide, 0, wide, thick, style.B, 0.75)
    style.product_frames(ax, corner, thick, setting.m, setting.n, 1.2)
    if tiles_n <= NUMBERED:
        look = {"color": style.INK, "lw": 0.4, "alpha": 0.5}
        for row in range(1, tiles_m):
            ax.plot([corner, corner + setting.n], [corner + row * high] * 2, **look)
        for column in range(1, tiles_n):
            ax.plot([corner + column * wide] * 2, [corner, corner + setting.m], **look)
        for program, (row, column) in enumerate(order.tolist()):
            at = (corner + (column + 0.5) * wide, corner + (row + 0.5) * high)
            ax.text(*at, str(program), ha="center", va="center_baseline", fontsize=7)
    look = {"fontsize": 9, "fontweight": "bold", "ha": "center", "va": "center"}
    ax.text(thick / 2, corner - 0.06 * setting.m, "A", **look)
    ax.text(corner - 0.05 * setting.n, thick / 2, "B", **look)


@style.styled
def owners(programs: Mapping[str, np.ndarray], rows: int, finding: str) -> style.Figure:
    """Draw side by side which program owns each tile of C, and the path from number to number.

    `programs` maps a name to an array of programs' numbers, one for each tile; -1 is a tile that no
    program owns. Rows of tiles from `rows` on are outside C. Both are drawn as faults.
    """
    grids = {name: np.asarray(grid) for name, grid in programs.items()}
    high, wide = (max(grid.shape[axis] for grid in grids.values()) for axis in (0, 1))
    fig, axes = style.draw(0.6 + 4.2 * high / wide / len(grids), 1, len(grids), squeeze=False)
    spoken = []
    for ax, (name, grid) in zip(axes[0], grids.items(), strict=True):
        style.bare(ax, wide, high)
        style.panel_title(ax, name)
        for place, program in np.ndenumerate(grid):
            fault = (program < 0) == (place[0] < rows)
            if fault or program >= 0:
                look = (style.FAULT, 0.35) if fault else (style.C, 0.25)
                style.fill(ax, place[1], place[0], 1, 1, *look)
            text = str(program) if program >= 0 else "none" if fault else ""
            middle = (place[1] + 0.5, place[0] + 0.5)
            ax.text(*middle, text, ha="center", va="center_baseline", fontsize=9)
        path = [np.argwhere(grid == program)[0] + 0.5 for program in sorted(set(grid[grid >= 0]))]
        ax.plot(*np.array(path).T[::-1], color=style.INK, lw=0.7, alpha=0.3)
        style.matrix(ax, rows, grid.shape[1], style.C)
        spoken.append(f"{name}: {', '.join(_row_text(row) for row in grid.tolist())}")
    words = "Tiles of C with the numbers of their programs, row after row. "
    return style.conclude(fig, finding, f"{words}{'; '.join(spoken)}.")


def _row_text(row: Sequence[int]) -> str:
    return " ".join(str(program) if program >= 0 else "none" for program in row)


@style.styled
def addresses(offsets: np.ndarray, strides: tuple[int, int], rows: int, cols: int) -> style.Figure:
    """Draw a tile of offsets as the sum of a column and a row, and where it lies in the matrix.

    `offsets` is (BLOCK, BLOCK), as a kernel computed it from m[:, None] · strides[0] +
    k[None, :] · strides[1]; the matrix is `rows` × `cols`, stored row by row.
    """
    offsets = np.asarray(offsets)
    edge = len(offsets)
    down, across = offsets[:, 0] // strides[0], (offsets[0] - offsets[0, 0]) // strides[1]
    fig, (left, right) = style.draw(2.5, 1, 2, width_ratios=(edge + 2.2, cols))
    style.bare(left, edge + 2.2, rows + 1.5)
    style.panel_title(left, f"m · {strides[0]} + k · {strides[1]}")
    style.matrix(left, edge, edge, style.A, x=2.2, y=1.5, shade=0.25)
    look = {"ha": "center", "va": "center_baseline", "fontsize": 9}
    for i, j in np.ndindex(offsets.shape):
        left.text(2.7 + j, 2 + i, str(offsets[i, j]), **look)
    for i in range(edge):
        left.text(1.4, 2 + i, str(down[i]), **look)
        left.text(2.7 + i, 0.8, str(across[i]), **look)
    left.text(0.4, 2, "m", fontweight="bold", **look)
    left.text(1.4, 0.8, "k", fontweight="bold", **look)
    style.bare(right, cols, rows + 1.5)
    style.panel_title(right, f"in the matrix, {rows} × {cols}")
    inside = {divmod(int(offset), cols): 0.55 for offset in offsets.flat}
    style.matrix(right, rows, cols, style.A, y=1.5, shade=inside)
    return style.conclude(
        fig,
        "A column of rows plus a row of columns is a tile",
        f"m is {', '.join(map(str, down))}, k is {', '.join(map(str, across))}. The offsets are "
        f"{'; '.join(' '.join(map(str, row)) for row in offsets.tolist())}. In the matrix they "
        f"are elements of rows {', '.join(map(str, sorted(down)))}.",
    )


@style.styled
def l2_contents(
    settings: Mapping[str, Setting], l2_bytes: int, finding: str, count: int = 2
) -> style.Figure:
    """Draw which tiles the first waves load, and which of them are in the L2 when a wave ends.

    A line of panels for each launch, a panel for each of its first `count` waves: A left of C, B
    above, K along A's row and down B's column. Tiles that the wave loads or stores are pale, those
    in the L2 at its end have full colour. Of A and C only the first rows of tiles are drawn.
    """
    fig, axes = style.draw(3.5, len(settings), count, squeeze=False)
    waves = [wave for setting in settings.values() for wave in setting.waves[:count]]
    shown = max(max(wave.rows) for wave in waves) + 3
    spoken = []
    for line, (name, setting) in zip(axes, settings.items(), strict=True):
        for number, ax in enumerate(line):
            held, wave = l2_after(setting, l2_bytes, number), setting.waves[number]
            _contents(ax, setting, wave, held, min(shown, setting.tiles[0]))
            found = size_text(held.found) if held.found else "nothing"
            text = f"{name}\nwave {number + 1}: {plural(wave.tiles, 'strip')}\n"
            text += f"loads {size_text(held.loaded)}\n"
            text += f"finds {found}" if number else f"{size_text(l2_bytes)} stay"
            ax.text(0, 0, text, va="top", fontsize=8)
            shares = [f"{np.mean(kept.any(0)):.0%}" for kept in (held.a, held.b.T)]
            spoken.append(
                f"{name}, wave {number + 1}: {plural(len(wave.rows), 'strip')} of A and "
                f"{plural(len(wave.columns), 'strip')} of B, {size_text(held.loaded)}; it finds "
                f"{found}; at its end the L2 has tiles of the last {shares[0]} of K"
            )
    words = "Pale: what a wave loads; full colour: what is in the L2 when the wave ends"
    return style.conclude(fig, finding, f"{words}. {'; '.join(spoken)}.")


def _contents(ax, setting: Setting, wave: Wave, held: Held, shown: int) -> None:
    """Draw A, B and C of one wave in tiles: of A and C `shown` rows of tiles, of B all of K."""
    tiles_m, low = setting.tiles[0], 1.14
    style.bare(ax, low + 1, low + shown / tiles_m)
    a, b, c = (np.zeros(kept.shape, bool) for kept in (held.a, held.b, held.c))
    a[list(wave.rows)] = True
    b[:, list(wave.columns)] = True
    c[tuple(setting.order[wave.first : wave.first + wave.programs].T)] = True
    parts = ((a, held.a, style.A, 0, low), (b, held.b, style.B, low, 0))
    for used, kept, color, x, y in (*parts, (c, held.c, style.C, low, low)):
        rows, columns = used.shape
        for mask, alpha in ((used & ~kept, 0.25), (kept, 0.9)):
            boxes = [
                (x + column / columns, y + row / rows, wide / columns, high / rows)
                for row, column, high, wide in rectangles(mask)
            ]
            if boxes:
                style.boxes(ax, boxes, facecolor=color, alpha=alpha, lw=0)
        height = 1 if y == 0 else shown / tiles_m
        ends = [(x, y + height), (x, y), (x, y), (x + 1, y), (x + 1, y), (x + 1, y + height)]
        ends += [(x, 1), (x + 1, 1)] if y == 0 or shown == tiles_m else []
        style.segments(ax, ends, edgecolor=color, lw=1, clip_on=False)
    look = {"fontsize": 8, "ha": "center"}
    ax.text(0.5, low - 0.01, "A: K →", va="bottom", **look)
    ax.text(low - 0.07, 0.5, "B: K →", rotation=-90, va="center", **look)


@style.styled
def by_group(
    model: Mapping[int, Mapping[int, float]],
    found: Mapping[int, Mapping[int, float]],
    finding: str,
) -> style.Figure:
    """Draw how often A and B are read from memory, against GROUP_M.

    Each mapping goes from the edge N of square matrices to {GROUP_M: bytes read from memory over
    the bytes of A and B}: by the model, and as counted on a GPU. `found` may be
    incomplete or empty.
    """
    fig, ax = style.draw(3.5)
    groups = sorted({group for line in model.values() for group in line})

    def points(line: Mapping[int, float]) -> tuple[list[int], list[float]]:
        known = [group for group in groups if group in line]
        return [groups.index(group) for group in known], [line[group] for group in known]

    for (edge, line), (color, marker) in zip(model.items(), LINES, strict=False):
        look = {"ls": "-", "color": color, "ms": 6, "mew": 1.3, "mfc": "none"}
        ax.plot(*points(line), marker, label=f"N = {edge}", **look)
        ax.plot(*points(found.get(edge, {})), marker, ls="none", color=color, ms=6)
    ax.set(yscale="log", ylabel="times that A and B\ncome from memory")
    ax.set_xticks(range(len(groups)), [str(group) for group in groups])
    ax.set_xlabel("GROUP_M (1 is row by row)")
    highest = max(x for each in (model, found) for line in each.values() for x in line.values())
    ax.set_yticks([tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= 1.5 * highest])
    style.plain_numbers(ax.yaxis)
    ax.plot([], [], "o", ls="-", color=style.INK, mfc="none", label="model")
    if any(found.values()):
        ax.plot([], [], "o", ls="none", color=style.INK, label="counted")
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    words = "; ".join(
        f"N = {edge}: {_in_words(line, found.get(edge, {}), sorted(line))}"
        for edge, line in model.items()
    )
    return style.conclude(
        fig, finding, f"Times that A and B are read from memory, by GROUP_M. {words}."
    )


def _in_words(line: Mapping[int, float], counts: Mapping[int, float], at: Sequence[int]) -> str:
    """Return a line's values at some places, with the counted ones where they exist."""
    return ", ".join(
        f"{line[x]:.3g}{f' (counted {counts[x]:.3g})' if x in counts else ''} at {x}"
        for x in at
        if x in line
    )


@style.styled
def by_size(
    times: Mapping[str, Mapping[int, float]],
    limit: Mapping[int, float],
    marks: Mapping[str, int],
    finding: str,
    found: Mapping[str, Mapping[int, float]] | None = None,
) -> style.Figure:
    """Draw how often A and B are read from memory against the edge N, one line for each order.

    `times` maps at most four names to {N: times}, by the model, and `found` likewise as counted on
    a GPU. `limit` is the {N: times} above which memory takes longer than the arithmetic, drawn
    dashed. `marks` maps a label to an N.
    """
    fig, ax = style.draw(3.5)
    found = {name: line for name, line in (found or {}).items() if line}
    for (name, line), (color, marker) in zip(times.items(), LINES, strict=False):
        look = {"ls": "-", "color": color, "ms": 5, "mew": 1.2, "mfc": "none", "label": name}
        ax.plot(list(line), list(line.values()), marker, **look)
        counts = found.get(name, {})
        ax.plot(list(counts), list(counts.values()), marker, ls="none", color=color, ms=6)
    label = "memory takes as long\nas the arithmetic"
    ax.plot(list(limit), list(limit.values()), ls=(0, (4, 3)), color=style.INK, lw=1, label=label)
    for text, edge in marks.items():
        style.mark(ax, edge, text, 0.98, "top")
    edges = sorted({edge for line in times.values() for edge in line})
    ax.set(xscale="log", yscale="log", xlim=(edges[0] * 0.95, edges[-1] * 1.05), ylim=(0.8, None))
    shown = [edge for edge in (1024, 2048, 4096, 8192, 16384, 32768) if edge in edges]
    ax.set_xticks(shown, [str(edge) for edge in shown])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="edge N of the matrices, logarithmic")
    ax.set(ylabel="times that A and B\ncome from memory")
    if found:
        ax.plot([], [], "o", ls="none", color=style.INK, ms=6, label="counted")
    fig.legend(loc="outside lower center", ncols=2, fontsize=8)
    words = "; ".join(
        f"{name}: {_in_words(line, found.get(name, {}), shown)}" for name, line in times.items()
    )
    dashed = ", ".join(f"{limit[edge]:.3g} at {edge}" for edge in shown if edge in limit)
    return style.conclude(
        fig,
        finding,
        f"Times that A and B come from memory, by the model. {words}. Memory takes as "
        f"long as the arithmetic: {dashed}.",
    )


def order_walk(settings: Mapping[str, Setting], title: str, who: str) -> Walk:
    """Return an animation of the waves of one or two launches, side by side: A, B and C in tiles.

    A step is a wave. `who` describes the launches. Raises ValueError unless the launches have the
    same tiles and the same number of programs alive.
    """
    launches = list(settings.values())
    if len({(each.tiles, each.alive) for each in launches}) != 1 or len(launches) > 2:
        raise ValueError("a walk is of one or two launches of the same tiles, as many alive")
    tiles_m, tiles_n, steps = launches[0].tiles
    share = (WIDTH - GAP * (len(launches) - 1)) / len(launches)
    cell = (share - GAP) / (steps + tiles_n)
    panels: list[Panel] = []
    for number, name in enumerate(settings):
        left = number * (share + GAP)
        right, low = left + steps * cell + GAP, steps * cell + 3 * GAP
        places = (
            ("A", style.A, tiles_m, steps, left, low),
            ("B", style.B, steps, tiles_n, right, 2 * GAP),
            ("C", style.C, tiles_m, tiles_n, right, low),
            (name, style.INK, 0, 0, left, GAP),  # no matrix: the launch's name above all three
        )
        for label, color, rows, columns, x, y in places:
            index = len(panels)
            panels.append(Panel(index, label, "global", color, rows, columns, x, y, cell))
    waves = [setting.waves for setting in launches]
    frames = []
    for number in range(len(waves[0])):
        lit, words = [], []
        for launch, (name, setting) in enumerate(settings.items()):
            wave, before = waves[launch][number], waves[launch][number - 1] if number else None
            lit += _lit(4 * launch, setting, wave)
            new = wave.tiles - (_shared(wave, before) if before else 0)
            words.append(
                f"{name}: {plural(len(wave.rows), 'strip')} of A and "
                f"{plural(len(wave.columns), 'strip')} of B, {new} of them new"
            )
        name = f"Wave {number + 1} of {len(waves[0])}"
        frames.append(Step(name, f"{'; '.join(words)}.", (), tuple(lit)))
    return Walk(title, who, panels, frames)


def _shared(wave: Wave, before: Wave) -> int:
    """Return how many strips two waves have in common."""
    rows = set(wave.rows) & set(before.rows)
    return len(rows) + len(set(wave.columns) & set(before.columns))


def _lit(panel: int, setting: Setting, wave: Wave) -> list[tuple[int, ...]]:
    """Return the lit boxes of a wave in three panels: its strips of A and B, its tiles of C."""
    tiles_m, tiles_n, steps = setting.tiles
    lit = []
    a, b, c = (np.zeros(x, bool) for x in ((tiles_m, steps), (steps, tiles_n), (tiles_m, tiles_n)))
    a[list(wave.rows)] = True
    b[:, list(wave.columns)] = True
    c[tuple(setting.order[wave.first : wave.first + wave.programs].T)] = True
    for offset, (cells, stored) in enumerate(((a, 0), (b, 0), (c, 1))):
        lit += [(panel + offset, stored, *box) for box in rectangles(cells)]
    return lit
