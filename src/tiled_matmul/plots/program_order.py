"""Figures of chapter 10: the order of programs, their waves, and the traffic to memory.

Orders are drawn from `models.program_order`; counted bytes come from `counters.order()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import NullLocator

from tiled_matmul.microscope.table import plural
from tiled_matmul.models.program_order import Setting, Wave
from tiled_matmul.plots import style
from tiled_matmul.plots.microscope import rectangles
from tiled_matmul.plots.walk import GAP, WIDTH, Panel, Step, Walk

NUMBERED = 12  # with so many columns of tiles at most, each tile gets its program's number
LINES = ((style.A, "o"), (style.B, "s"), (style.FAULT, "^"), (style.OTHERS[1], "D"))
PALEST, DARKEST = 0.06, 0.5


@style.styled
def orders(settings: Mapping[str, Setting], finding: str) -> style.Figure:
    """Draw side by side the tiles of C in the first wave, and the tiles of A and B that it loads.

    `settings` maps a name to a launch. If there are few tiles, each shows its program's number. The
    first wave has full colour, later waves are paler. A's rows lie left of C, B's columns above.
    """
    fig, axes = style.draw(1.3 + 3.6 / len(settings), 1, len(settings), squeeze=False)
    spoken = []
    for ax, (name, setting) in zip(axes[0], settings.items(), strict=True):
        first = setting.waves[0]
        _launch(ax, setting, first)
        bytes_text = size_text(setting.step_bytes(first))
        text = f"{name}\n{len(first.rows)} of A + {len(first.columns)} of B"
        text += f"\n= {plural(first.tiles, 'tile')}, {bytes_text}"
        ax.text(_strip(setting), _strip(setting) + setting.m * 1.03, text, va="top", fontsize=8)
        spoken.append(
            f"{name}: the first {plural(first.programs, 'program')} want "
            f"{plural(len(first.rows), 'tile row')} of A and "
            f"{plural(len(first.columns), 'tile column')} of B, {bytes_text} in a step"
        )
    return style.conclude(
        fig,
        finding,
        f"C cut into tiles, the first wave in full colour and later waves paler; left "
        f"of it the rows of A, above it the columns of B that the first wave wants. "
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
def by_group(
    tiles: Mapping[int, Mapping[int, int]],
    model: Mapping[int, Mapping[int, float]],
    found: Mapping[int, Mapping[int, float]],
    finding: str,
) -> style.Figure:
    """Draw the tiles in a step, and how often A and B are read from memory, against GROUP_M.

    Each mapping goes from the edge N of square matrices to {GROUP_M: number}: `tiles` are the
    distinct tiles in a step; `model` and `found` are the bytes read from memory over those of A and
    B, by the model and as counted on a GPU. `found` may be incomplete or empty.
    """
    fig, (above, below) = style.draw(4.6, 2, sharex=True, height_ratios=(1, 1.5))
    groups = sorted({group for line in model.values() for group in line})

    def points(line: Mapping[int, float]) -> tuple[list[int], list[float]]:
        known = [group for group in groups if group in line]
        return [groups.index(group) for group in known], [line[group] for group in known]

    for (edge, line), (color, marker) in zip(tiles.items(), LINES, strict=False):
        above.plot(*points(line), marker, ls="-", color=color, ms=4)
        look = {"ls": "-", "color": color, "ms": 6, "mew": 1.3, "mfc": "none"}
        below.plot(*points(model[edge]), marker, label=f"N = {edge}", **look)
        below.plot(*points(found.get(edge, {})), marker, ls="none", color=color, ms=6)
    above.set(ylim=(0, None), ylabel="tiles of A and B\nin a step (model)")
    below.set(yscale="log", ylabel="times that A and B\ncome from memory")
    below.set_xticks(range(len(groups)), [str(group) for group in groups])
    below.set_xlabel("GROUP_M (1 is row by row)")
    highest = max(x for each in (model, found) for line in each.values() for x in line.values())
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= 1.5 * highest]
    below.set_yticks(ticks)
    style.plain_numbers(below.yaxis)
    below.plot([], [], "o", ls="-", color=style.INK, mfc="none", label="model")
    if any(found.values()):
        below.plot([], [], "o", ls="none", color=style.INK, label="counted")
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    words = "; ".join(
        f"N = {edge}: {_in_words(line, found.get(edge, {}), sorted(line))}"
        for edge, line in model.items()
    )
    return style.conclude(
        fig,
        finding,
        f"Times that A and B are read from memory, by GROUP_M. {words}. Above, the "
        "different tiles of A and B that the programs alive want in one step.",
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
    fig, ax = style.draw(3.9)
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
