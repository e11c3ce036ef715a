"""Pictures of what an exercise asks for: its arrays, with parts of them in colour.

An exercise's `picture.py` says where the arrays lie and which parts are marked; this draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiled_matmul.plots import style

COLORS = {"a": style.A, "b": style.B, "c": style.C, "fault": style.FAULT, "muted": style.MUTED}
STRONG, WEAK = 0.75, 0.3
LABEL = 7.5  # points


@dataclass(frozen=True)
class Part:
    """A rectangle of an array's elements: its upper left element and its extent.

    `look` is "strong" or "weak" in the array's colour, "fault" or "muted" in that colour, or
    "focus", a black frame. `text` is written in its middle.
    """

    row: int
    column: int
    rows: int = 1
    columns: int = 1
    look: str = "strong"
    text: str = ""


@dataclass(frozen=True)
class Panel:
    """An array of rows × columns elements, with its upper left corner at (x, y) in elements.

    `color` is "a", "b", "c" or "muted". Heavier lines divide it into tiles of `tile` (rows,
    columns). `note` is written below it. Global memory has a plain frame; an array that is `shared`
    has a dashed one around it.
    """

    name: str
    rows: int
    columns: int
    x: float = 0
    y: float = 0
    color: str = "c"
    tile: tuple[int, int] | None = None
    parts: Sequence[Part] = ()
    note: str = ""
    shared: bool = False


@dataclass(frozen=True)
class Arrow:
    """An arrow between two points (x, y), in elements, with a text at its middle."""

    start: tuple[float, float]
    end: tuple[float, float]
    text: str = ""


@style.styled
def task(
    panels: Sequence[Panel], finding: str, words: str, arrows: Sequence[Arrow] = ()
) -> style.Figure:
    """Draw the arrays of a task; `finding` is the title, `words` describe what is drawn.

    Raises ValueError for no panel, and for a part that leaves its array.
    """
    if not panels:
        raise ValueError("a picture of a task needs at least one panel")
    for panel in panels:
        for part in panel.parts:
            if min(part.row, part.column) < 0 or (
                part.row + part.rows > panel.rows or part.column + part.columns > panel.columns
            ):
                raise ValueError(f"{part} leaves {panel.name}, {panel.rows}×{panel.columns}")
    wide = max(panel.x + panel.columns for panel in panels)
    high = max(panel.y + panel.rows for panel in panels)
    line = wide * LABEL / 72 / style.WIDTH * 1.5  # the height of a line of text, in elements
    height = (high + 2.4 * line) / wide * style.WIDTH + 0.35
    fig, ax = style.draw(min(max(height, 1.2), 6.0))
    for panel in panels:
        _draw(ax, panel, line)
    for arrow in arrows:
        _arrow(ax, arrow)
    low = min(0.0, *(panel.y for panel in panels)) - 1.2 * line
    ax.set_xlim(min(0.0, *(panel.x for panel in panels)) - 0.02 * wide, 1.02 * wide)
    ax.set_ylim(high + 1.4 * line, low)
    ax.set_aspect("equal")
    ax.axis("off")
    return style.conclude(fig, finding, words)


def _draw(ax, panel: Panel, line: float) -> None:
    color = COLORS[panel.color]
    for part in panel.parts:
        place = panel.x + part.column, panel.y + part.row, part.columns, part.rows
        if part.look in ("strong", "weak"):
            style.fill(ax, *place, color, STRONG if part.look == "strong" else WEAK)
        elif part.look in ("fault", "muted"):
            style.fill(ax, *place, COLORS[part.look], STRONG)
    style.matrix(ax, panel.rows, panel.columns, color, x=panel.x, y=panel.y, tile=panel.tile)
    for part in panel.parts:
        place = panel.x + part.column, panel.y + part.row, part.columns, part.rows
        if part.look == "focus":
            style.frame(ax, *place, style.INK, 2.2)
        if part.text:
            middle = place[0] + part.columns / 2, place[1] + part.rows / 2
            ax.text(*middle, part.text, ha="center", va="center", fontsize=LABEL)
    if panel.shared:
        margin = 0.25 * line
        style.boxes(
            ax,
            [
                (panel.x - margin, panel.y - margin)
                + (panel.columns + 2 * margin, panel.rows + 2 * margin)
            ],
            fill=False,
            edgecolor=style.INK,
            lw=1.1,
            ls=(0, (3, 2)),
        )
    gap = 0.3 * line if not panel.shared else 0.55 * line
    ax.text(panel.x, panel.y - gap, panel.name, fontweight="bold", va="bottom", fontsize=LABEL + 1)
    if panel.note:
        below = panel.y + panel.rows + gap
        ax.text(panel.x, below, panel.note, va="top", fontsize=LABEL)


def _arrow(ax, arrow: Arrow) -> None:
    look = {"arrowstyle": "->", "color": style.INK, "lw": 1.2}
    ax.annotate("", arrow.end, arrow.start, arrowprops=look, annotation_clip=False)
    if arrow.text:
        middle = [(s + e) / 2 for s, e in zip(arrow.start, arrow.end, strict=True)]
        ax.text(*middle, arrow.text, ha="center", va="bottom", fontsize=LABEL)
