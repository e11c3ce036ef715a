"""An animation of a traced kernel: the elements that a block accesses, step by step.

The animation is a piece of HTML that needs no other file. Without scripts, and on paper, it is a
still figure with a list of the steps.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

import numpy as np

from tiled_matmul.microscope.table import plural
from tiled_matmul.plots import microscope, style

WIDTH = 324  # the width of the figures, so that text has the same size
GAP = 18  # around a matrix, with room for its name
MOST_CELL = 16
FINEST = 3  # smaller elements are drawn without lines
MOST_STEPS = 200
MOST_LINES = 4
SPEEDS = (0.5, 1, 2, 4)
KEYS = "Space plays and pauses, the left and right arrows step, Home and End jump."


@dataclass(frozen=True)
class Panel:
    """The drawing of an array: its upper left corner (x, y) and the edge `cell` of an element."""

    array: int
    name: str
    space: str
    color: str
    rows: int
    columns: int
    x: float = 0
    y: float = 0
    cell: float = 0


@dataclass(frozen=True)
class Step:
    """One step: its name, a sentence, the source lines, and the lit boxes of each panel.

    `lit` holds (panel, kind, row, column, rows, columns); kind is 0 for loads and 1 for stores.
    """

    name: str
    words: str
    lines: tuple[tuple[int, str], ...]
    lit: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        code = "".join(f"\n    {number}  {text}" for number, text in self.lines)
        return f"{self.name}: {self.words}{code}"

    def html(self) -> str:
        code = "".join(f"<code>{n}  {html.escape(text)}</code>" for n, text in self.lines)
        return f"<b>{self.name}</b>: {html.escape(self.words)}{code}"


class Walk:
    """The steps, shown as an animation in HTML and as text elsewhere."""

    def __init__(self, title: str, who: str, panels: Sequence[Panel], steps: Sequence[Step]):
        self.title = title
        self.who = who
        self.panels = tuple(panels)
        self.steps = tuple(steps)

    @property
    def still(self) -> int:
        """The step for a still figure: the middlemost one with accesses to global memory."""
        arrays = {i for i, panel in enumerate(self.panels) if panel.space == "global"}
        shows = [i for i, step in enumerate(self.steps) if arrays & {box[0] for box in step.lit}]
        middle = (len(self.steps) - 1) / 2
        return min(shows or range(len(self.steps)), key=lambda i: abs(i - middle))

    def __repr__(self) -> str:
        return "\n".join([f"{self.title} ({self.who})", *map(str, self.steps)])

    def _repr_html_(self) -> str:
        data = {
            "panels": [[panel.x, panel.y, panel.cell] for panel in self.panels],
            "frames": [step.lit for step in self.steps],
        }
        items = "".join(f"<li>{step.html()}</li>" for step in self.steps)
        still = self.steps[self.still]
        speeds = "".join(
            f'<option value="{speed}"{" selected" if speed == 1 else ""}>{speed}×</option>'
            for speed in SPEEDS
        )
        assets = files("tiled_matmul.plots")
        body = (
            f'<p class="walk-title">{html.escape(self.title)}</p>'
            f'<p class="walk-small">{html.escape(self.who)}</p>'
            f"{self._svg()}"
            '<p class="walk-small">Full: now. Pale: earlier; paler: later. Framed: stored.</p>'
            '<div class="walk-controls" hidden>'
            '<button type="button" class="walk-play">Play</button>'
            '<button type="button" class="walk-back" aria-label="step back">‹</button>'
            '<button type="button" class="walk-next" aria-label="step forward">›</button>'
            f'<input type="range" class="walk-slider" aria-label="step" min="0" '
            f'max="{len(self.steps) - 1}" step="1" value="{self.still}">'
            f'<select class="walk-speed" aria-label="speed">{speeds}</select></div>'
            f'<div class="walk-caption" aria-live="polite">{still.html()}</div>'
            '<details style="margin:0;padding:0;border:0;background:none">'
            f"<summary>All {plural(len(self.steps), 'step')} in words</summary>"
            f"<ol>{items}</ol></details>"
            f'<script type="application/json" class="walk-data">'
            f"{json.dumps(data, separators=(',', ':'))}</script>"
        )
        mark = hashlib.sha256(body.encode()).hexdigest()[:12]
        script = (assets / "walk.js").read_text(encoding="utf-8").replace("MARK", mark)
        css = (assets / "walk.css").read_text(encoding="utf-8")
        # Without the attribute, Lumino in JupyterLab would treat the keys as its shortcuts.
        return (
            f'<div class="tiled-walk" data-walk="{mark}" data-lm-suppress-shortcuts="true" '
            f'role="group" aria-label="{html.escape(self.title)}. {KEYS}">'
            f"<style>{css}</style>{body}<script>{{\n{script}}}</script></div>"
        )

    def _svg(self) -> str:
        still = self.steps[self.still]
        drawn = []
        for number, panel in enumerate(self.panels):
            own = [[box for box in step.lit if box[0] == number] for step in self.steps]
            kinds = {
                "all": sum(own, []),
                "past": sum(own[: self.still], []),
                "loaded": [box for box in own[self.still] if box[1] == 0],
                "stored": [box for box in own[self.still] if box[1] == 1],
            }
            lit = "".join(
                f'<path class="walk-{kind}" fill="{panel.color}" d="{_path(panel, boxes)}"/>'
                for kind, boxes in kinds.items()
            )
            drawn.append(f'<g data-panel="{number}">{lit}{_lines(panel)}</g>')
        alt = html.escape(f"{self.title}. {still.name}: {still.words}")
        height = _below(self.panels) + 3
        return (
            f'<svg role="img" aria-label="{alt}" viewBox="-2 0 {WIDTH + 4} {height:g}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(drawn)}</svg>'
        )


def tile_walk(t, block: tuple[int, ...] = (0, 0), warp: int = 0) -> Walk:
    """Return an animation of one block's accesses to its arrays.

    In a kernel with barriers, a step is a phase of all threads of the block. In a kernel without
    barriers, a step is the requests of one `warp` in one line. Steps after the first 200 are left
    out, and the walk says so. Raises ValueError for a block or warp that was not traced.
    """
    accesses = microscope.accesses_of(t, block)
    panels = _panels(t, accesses)
    who = f"{t.name}, block {tuple(block)}"
    if accesses["phase"].max() > 0:
        title = microscope.reuse_finding(t, accesses, "block")
        name, unit = "Phase", "thread"
        phases = np.unique(accesses["phase"]).tolist()
        parts = {phase: accesses[accesses["phase"] == phase] for phase in phases}
    else:
        microscope.find_request(t, block=block, warp=warp)
        who += f", warp {warp}"
        accesses = accesses[accesses["warp"] == warp]
        title = microscope.reuse_finding(t, accesses, "warp")
        name, unit = "Step", "lane"
        parts = dict(enumerate(_by_line(t, accesses)))
    steps = [
        _step(t, panels, f"{name} {number} of {max(parts)}", part, unit)
        for number, part in list(parts.items())[:MOST_STEPS]
    ]
    left_out = len(parts) - len(steps)
    who += f", without the last {left_out} of {len(parts)} steps" if left_out else ""
    return Walk(title, who, panels, steps)


def _by_line(t, accesses: np.ndarray) -> list[np.ndarray]:
    """Return the steps of a warp: successive requests of one line, each site at most once."""
    groups, sites = [], []
    for number in np.unique(accesses["request"]):
        part = accesses[accesses["request"] == number]
        site = int(part["site"][0])
        if sites and site not in sites and t.sites[site].line == t.sites[sites[0]].line:
            sites.append(site)
            groups[-1] = np.concatenate([groups[-1], part])
        else:
            sites = [site]
            groups.append(part)
    return groups


def _step(t, panels: Sequence[Panel], name: str, accesses: np.ndarray, unit: str) -> Step:
    lit, did, lines = [], {}, {}
    sites, first = np.unique(accesses["site"], return_index=True)
    for site in sites[np.argsort(first)].tolist():
        part = accesses[accesses["site"] == site]
        did.setdefault((t.sites[site].op, int(part["array"][0])), []).append(part)
        lines[t.sites[site].line] = t.sites[site].source
    sentences: dict[tuple, list[str]] = {}
    for (op, array), pieces in did.items():
        part = np.concatenate(pieces)
        info = t.arrays[array]
        elements, often = np.unique(part["element"], return_counts=True)
        for number, panel in enumerate(panels):
            if panel.array == array:
                cells = np.zeros(panel.rows * panel.columns, dtype=bool)
                cells[elements] = True
                boxes = microscope.rectangles(cells.reshape(panel.rows, panel.columns))
                lit += [(number, int(op != "load"), *box) for box in boxes]
        threads = len(np.unique(part["thread"]))
        again = int(often[0]) if (often == often[0]).all() else 0
        sentences.setdefault((op, threads, again), []).append(region(info, elements))
    words, before = "", None
    for (op, threads, again), regions in sentences.items():
        who = f"{'; ' if words else ''}{plural(threads, unit)} "
        words += ", " if threads == before else who
        words += f"{microscope.DO[op]}{'s' if threads == 1 else ''} {_and(regions)}"
        words += f", each element {microscope.times(again)}" if again > 1 else ""
        before = threads
    shown = tuple(lines.items())[:MOST_LINES]
    more = f" {len(lines) - MOST_LINES} more lines." if len(lines) > MOST_LINES else ""
    return Step(name, f"{words}.{more}", shown, tuple(lit))


def region(info, elements: np.ndarray) -> str:
    """Return the name of distinct elements: a slice, "a[0:3, 6]", or else their number."""
    elements = np.asarray(elements)
    axes = [np.unique(axis) for axis in np.unravel_index(elements, info.shape)]
    whole = np.prod([axis.size for axis in axes]) == elements.size
    if not whole or any(np.unique(np.diff(axis)).size > 1 for axis in axes):
        return f"{elements.size:,} elements of {info.name}"
    return f"{info.name}[{', '.join(map(_slice, axes))}]"


def _slice(indices: np.ndarray) -> str:
    if indices.size == 1:
        return str(indices[0])
    step = int(indices[1] - indices[0])
    return f"{indices[0]}:{indices[-1] + 1}" + (f":{step}" if step > 1 else "")


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _panels(t, accesses: np.ndarray) -> list[Panel]:
    """Place the accessed arrays: A left of C, B above it, shared memory in the corner."""
    shades = microscope.colors(t.arrays, t.sites)
    panels = []
    for info in t.arrays:
        if info.id in accesses["array"]:
            rows, columns = microscope.in_rows(np.empty(info.shape)).shape
            panels.append(Panel(info.id, info.name, info.space, shades[info.id], rows, columns))
    near = [panel for panel in panels if panel.space == "global"]
    shared = [panel for panel in panels if panel.space == "shared"]
    matrices = _matrices(near)
    if not matrices:
        placed = _row(near, 0)
        return placed + _row(shared, _below(placed), cell=placed[0].cell)
    a, b, c = matrices
    cell = min((WIDTH - GAP) / (a.columns + b.columns), MOST_CELL)
    left, top = a.columns * cell + GAP, b.rows * cell + 2 * GAP
    places = ((a, 0, top), (b, left, GAP), (c, left, top))
    placed = [replace(panel, x=x, y=y, cell=cell) for panel, x, y in places]
    placed += _row(shared, 0, a.columns * cell, b.rows * cell, cell)
    return placed + _row([panel for panel in near if panel not in matrices], _below(placed))


def _matrices(panels: Sequence[Panel]) -> list[Panel]:
    """Return the panels of A, B and C if their sizes fit a product, else an empty list."""
    by_color = {panel.color: panel for panel in panels}
    if not {style.A, style.B, style.C} <= set(by_color):
        return []
    a, b, c = (by_color[color] for color in (style.A, style.B, style.C))
    fits = (a.rows, a.columns, b.columns) == (c.rows, b.rows, c.columns)
    return [a, b, c] if fits else []


def _row(
    panels: Sequence[Panel], top: float, width=WIDTH, height=WIDTH, cell=MOST_CELL
) -> list[Panel]:
    """Place panels side by side below `top`, in a box of that width and height."""
    placed, x = [], 0.0
    for panel in panels:
        across = (width - GAP * (len(panels) - 1)) / sum(each.columns for each in panels)
        edge = min(cell, across, height / max(each.rows for each in panels))
        placed.append(replace(panel, x=x, y=top + GAP, cell=edge))
        x += panel.columns * edge + GAP
    return placed


def _below(panels: Sequence[Panel]) -> float:
    return max((panel.y + panel.rows * panel.cell for panel in panels), default=0.0)


def _path(panel: Panel, boxes: Iterable[Sequence[int]]) -> str:
    """Return the SVG path of a step's boxes, which walk.js draws in the same way."""
    x, y, cell = panel.x, panel.y, panel.cell
    return "".join(
        f"M{x + column * cell:g} {y + row * cell:g}h{columns * cell:g}v{rows * cell:g}"
        f"h{-columns * cell:g}z"
        for _, _, row, column, rows, columns in boxes
    )


def _lines(panel: Panel) -> str:
    """Return the name, the grid and the frame of a panel: plain for global memory, or dashed."""
    x, y, cell = panel.x, panel.y, panel.cell
    width, height = panel.columns * cell, panel.rows * cell
    grid = "".join(f"M{x:g} {y + i * cell:g}h{width:g}" for i in range(1, panel.rows))
    grid += "".join(f"M{x + i * cell:g} {y:g}v{height:g}" for i in range(1, panel.columns))
    if cell < FINEST:
        grid = ""
    dashed = ' stroke-dasharray="4 2"' if panel.space == "shared" else ""
    return (
        f'<path d="{grid}" fill="none" stroke="currentColor" stroke-width="0.5" opacity="0.3"/>'
        f'<path d="M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z" fill="none" '
        f'stroke="{panel.color}" stroke-width="1.5"{dashed}/>'
        f'<text x="{x:g}" y="{y - 5:g}">{html.escape(panel.name)}</text>'
    )
