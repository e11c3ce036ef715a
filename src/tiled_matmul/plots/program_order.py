"""Figures of chapter 10: the order of programs, what is alive together, what memory delivers.

Orders are drawn from the model in `program_order.py`; counted bytes come from `counters.order()`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

from tiled_matmul.models.program_order import Setting, Wave
from tiled_matmul.plots import style
from tiled_matmul.plots.microscope import counted, rectangles
from tiled_matmul.plots.walk import GAP, WIDTH, Panel, Step, Walk

NUMBERED = 12  # with so many columns of tiles at most, each tile gets its program's number
LINES = ((style.A, "o"), (style.B, "s"), (style.FAULT, "^"), (style.OTHERS[1], "D"))
PALEST, DARKEST = 0.06, 0.5


@style.styled
def orders(settings: Mapping[str, Setting], finding: str) -> style.Figure:
    """Draw side by side which tiles of C run together in a first wave, and what they want.

    `settings` maps a name to a launch. Where there are few tiles, each bears its program's number;
    the first wave is drawn in full, the later the paler. A's rows lie left of C, B's columns above.
    """
    fig, axes = style.draw(1.3 + 3.6 / len(settings), 1, len(settings), squeeze=False)
    spoken = []
    for ax, (name, setting) in zip(axes[0], settings.items(), strict=True):
        first = setting.waves[0]
        _launch(ax, setting, first)
        bytes_text = size_text(setting.step_bytes(first))
        text = f"{name}\n{len(first.rows)} of A + {len(first.columns)} of B"
        text += f"\n= {counted(first.tiles, 'tile')}, {bytes_text}"
        ax.text(_strip(setting), _strip(setting) + setting.m * 1.03, text, va="top", fontsize=8)
        spoken.append(
            f"{name}: the first {counted(first.programs, 'program')} want "
            f"{counted(len(first.rows), 'tile row')} of A and "
            f"{counted(len(first.columns), 'tile column')} of B, {bytes_text} in a step"
        )
    style.title(fig, finding)
    return style.finish(
        fig,
        f"{finding}. C cut into tiles, the first wave in full colour and later waves paler; left "
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
    """How wide A's strip and how high B's is drawn, with the gap to C."""
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
    numbered = tiles_n <= NUMBERED

    def fill(x, y, width, height, color, alpha):
        width, height = min(width, corner + setting.n - x), min(height, corner + setting.m - y)
        look = {"facecolor": color, "alpha": alpha, "lw": 0, "clip_on": False}
        ax.add_patch(Rectangle((x, y), width, height, **look))

    for wave in range(int(wave_of.max()) + 1):
        alpha = 0.8 if wave == 0 else DARKEST - (DARKEST - PALEST) * (wave - 1) / last
        for row, column, rows, columns in rectangles(wave_of == wave):
            x, y = corner + column * wide, corner + row * high
            fill(x, y, columns * wide, rows * high, style.C, alpha)
    for row in first.rows:
        fill(0, corner + row * high, thick, high, style.A, 0.75)
    for column in first.columns:
        fill(corner + column * wide, 0, wide, thick, style.B, 0.75)
    frames = (
        ((0, corner, thick, setting.m), style.A),
        ((corner, 0, setting.n, thick), style.B),
        ((corner, corner, setting.n, setting.m), style.C),
    )
    for (x, y, width, height), color in frames:
        look = {"fill": False, "edgecolor": color, "lw": 1.2, "clip_on": False}
        ax.add_patch(Rectangle((x, y), width, height, **look))
    if numbered:
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
    """Draw tiles alive in a step, and how often memory delivers A and B, against GROUP_M.

    Each argument maps an edge N of square matrices to {GROUP_M: number}: `tiles` different tiles in
    a step, `model` and `found` the bytes read from memory over those of A and B, as the model has
    it and as a GPU counted it; `found` may be empty, or lack some.
    """
    fig, (above, below) = style.draw(4.6, 2, sharex=True, height_ratios=(1, 1.5))
    groups = sorted({group for line in model.values() for group in line})
    places = {group: place for place, group in enumerate(groups)}
    for (edge, line), (color, marker) in zip(tiles.items(), LINES, strict=False):
        at = [places[group] for group in sorted(line)]
        above.plot(at, [line[group] for group in sorted(line)], marker, ls="-", color=color, ms=4)
        line = model[edge]
        at = [places[group] for group in sorted(line)]
        values = [line[group] for group in sorted(line)]
        look = {"ls": "-", "color": color, "ms": 6, "mew": 1.3, "mfc": "none"}
        below.plot(at, values, marker, label=f"N = {edge}", **look)
        counts = found.get(edge, {})
        at = [places[group] for group in sorted(counts) if group in places]
        values = [counts[group] for group in sorted(counts) if group in places]
        below.plot(at, values, marker, ls="none", color=color, ms=6)
    above.set(ylim=(0, None), ylabel="tiles of A and B\nin a step (model)")
    below.set(yscale="log", ylabel="times that A and B\ncome from memory")
    below.set_xticks(range(len(groups)), [str(group) for group in groups])
    below.set_xlabel("GROUP_M (1 is row by row)")
    below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100) if tick <= 1.5 * _highest(model, found)]
    below.set_yticks(ticks)
    below.yaxis.set_minor_locator(NullLocator())
    keys = [below.plot([], [], "o", ls="-", color=style.INK, mfc="none", label="model")[0]]
    if any(found.values()):
        keys.append(below.plot([], [], "o", ls="none", color=style.INK, label="counted")[0])
    handles, _ = below.get_legend_handles_labels()
    fig.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8)
    style.title(fig, finding)
    words = "; ".join(
        f"N = {edge}: "
        + ", ".join(
            f"{line[group]:.3g}"
            + (f" (counted {found[edge][group]:.3g})" if group in found.get(edge, {}) else "")
            + f" at {group}"
            for group in sorted(line)
        )
        for edge, line in model.items()
    )
    return style.finish(
        fig,
        f"{finding}. Times that A and B are read from memory, by GROUP_M. {words}. Above, the "
        "different tiles of A and B that the programs alive want in one step.",
    )


def _highest(*lines: Mapping[int, Mapping[int, float]]) -> float:
    return max(value for each in lines for line in each.values() for value in line.values())


@style.styled
def by_size(
    times: Mapping[str, Mapping[int, float]],
    limit: Mapping[int, float],
    marks: Mapping[str, int],
    finding: str,
    found: Mapping[str, Mapping[int, float]] | None = None,
) -> style.Figure:
    """Draw how often A and B come from memory against the edge N, one line an order.

    `times` maps a name to {N: times}, at most four of them, by the model, and `found` those of
    these that a GPU counted; `limit` {N: times} from which on memory takes longer than the
    arithmetic, drawn dashed; `marks` maps a label to an N.
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
        ax.axvline(edge, color=style.MUTED, lw=0.8)
        at = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.annotate(
            text, (edge, 0.98), (-3, 0), rotation=90, ha="right", va="top", fontsize=8, **at
        )
    edges = sorted({edge for line in times.values() for edge in line})
    ax.set(xscale="log", yscale="log", xlim=(edges[0] * 0.95, edges[-1] * 1.05), ylim=(0.8, None))
    shown = [edge for edge in (1024, 2048, 4096, 8192, 16384, 32768) if edge in edges]
    ax.set_xticks(shown, [str(edge) for edge in shown])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("edge N of the matrices, logarithmic")
    ax.set_ylabel("times that A and B\ncome from memory")
    if found:
        ax.plot([], [], "o", ls="none", color=style.INK, ms=6, label="counted")
    fig.legend(loc="outside lower center", ncols=2, fontsize=8)
    style.title(fig, finding)
    words = "; ".join(
        f"{name}: "
        + ", ".join(
            f"{line[edge]:.3g}"
            + (f" (counted {found[name][edge]:.3g})" if edge in found.get(name, {}) else "")
            + f" at {edge}"
            for edge in shown
            if edge in line
        )
        for name, line in times.items()
    )
    dashed = ", ".join(f"{limit[edge]:.3g} at {edge}" for edge in shown if edge in limit)
    return style.finish(
        fig,
        f"{finding}. Times that A and B come from memory, by the model. {words}. Memory takes as "
        f"long as the arithmetic: {dashed}.",
    )


def order_walk(settings: Mapping[str, Setting], title: str, who: str) -> Walk:
    """Return the waves of up to two launches, side by side as an animation: A, B and C in tiles.

    A step is a wave. All launches have the same tiles and as many programs alive. Raises ValueError
    for launches that do not.
    """
    given = list(settings.values())
    if len({(setting.tiles, setting.alive) for setting in given}) != 1 or len(given) > 2:
        raise ValueError("a walk is of one or two launches of the same tiles, as many alive")
    tiles_m, tiles_n, steps = given[0].tiles
    share = (WIDTH - GAP * (len(given) - 1)) / len(given)
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
    waves = [setting.waves for setting in given]
    frames = []
    for number in range(len(waves[0])):
        lit, words = [], []
        for launch, (name, setting) in enumerate(settings.items()):
            wave, before = waves[launch][number], waves[launch][number - 1] if number else None
            lit += _lit(4 * launch, setting, wave)
            new = wave.tiles - (_shared(wave, before) if before else 0)
            words.append(
                f"{name}: {counted(len(wave.rows), 'strip')} of A and "
                f"{counted(len(wave.columns), 'strip')} of B, {new} of them new"
            )
        name = f"Wave {number + 1} of {len(waves[0])}"
        frames.append(Step(name, f"{'; '.join(words)}.", (), tuple(lit)))
    return Walk(title, who, panels, frames)


def _shared(wave: Wave, before: Wave) -> int:
    """How many strips two waves have in common."""
    rows = set(wave.rows) & set(before.rows)
    return len(rows) + len(set(wave.columns) & set(before.columns))


def _lit(panel: int, setting: Setting, wave: Wave) -> list[tuple[int, ...]]:
    """Return what a wave lights in three panels: whole strips of A and B, and its tiles of C."""
    tiles_m, tiles_n, steps = setting.tiles
    lit = []
    for offset, which, shape in (
        (0, wave.rows, (tiles_m, steps)),
        (1, wave.columns, (steps, tiles_n)),
    ):
        cells = np.zeros(shape, bool)
        cells[(list(which), slice(None)) if offset == 0 else (slice(None), list(which))] = True
        lit += [(panel + offset, 0, *box) for box in rectangles(cells)]
    cells = np.zeros((tiles_m, tiles_n), bool)
    cells[tuple(setting.order[wave.first : wave.first + wave.programs].T)] = True
    return lit + [(panel + 2, 1, *box) for box in rectangles(cells)]
