"""The style of every figure, and the drawing helpers that the figures share.

A figure is 4.5 inches wide and shown as SVG inside the page. The colour of its ink is replaced by
`currentColor`, so that it is dark on a light page and light on a dark one. Matrices keep one
orientation: rows run down, columns run right, K runs along A's row and down B's column. Colours:
Okabe & Ito, Color Universal Design (2008).
"""

from __future__ import annotations

import functools
import hashlib
import html
import io
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, NullLocator

A, B, C = "#0072B2", "#E69F00", "#009E73"
FAULT = "#D55E00"
OTHERS = ("#56B4E9", "#CC79A7", "#F0E442")
MUTED = "#808080"
SERIES = ((A, "o"), (B, "s"), (OTHERS[1], "^"), (FAULT, "D"))  # colours and markers of lines
INK = "#010203"  # stands for the page's own text colour until the SVG is made

WIDTH = 4.5  # inches: 324 units, so that text of 9 units has 10 pixels on a phone of 390 pixels
FONT_SIZE = 9
TITLE_CHARACTERS = 48  # in bold, per line

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tiled-matmul",
    "font.family": "DejaVu Sans",
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE + 1,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": MUTED,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


class Figure:
    """An SVG with an alternative text, shown inside a notebook or a page of the book."""

    def __init__(self, svg: str, alt: str) -> None:
        self.svg = svg
        self.alt = alt

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"

    def _repr_html_(self) -> str:
        return f'<div class="course-figure">{self.svg}</div>'


def styled(function: Callable) -> Callable:
    """Decorate a plotting function so that it draws in the course's style."""

    @functools.wraps(function)
    def in_style(*args, **kwargs):
        with matplotlib.rc_context(STYLE):
            return function(*args, **kwargs)

    return in_style


def draw(height: float, rows: int = 1, columns: int = 1, **subplots):
    """Return (fig, axes) of the course's width and `height` inches, in a `styled` function.

    The other arguments are those of matplotlib's `Figure.subplots`. The figure belongs to no
    window and to no global state.
    """
    fig = MatplotlibFigure(figsize=(WIDTH, height), layout="constrained")
    return fig, fig.subplots(rows, columns, **subplots)


def title(fig: MatplotlibFigure, finding: str) -> None:
    """Write the finding above the whole figure, in lines of similar length that fit."""
    lines = textwrap.wrap(finding, TITLE_CHARACTERS)
    for width in range(TITLE_CHARACTERS, 0, -1):
        narrower = textwrap.wrap(finding, width)
        if len(narrower) > len(lines):
            break
        lines = narrower
    text = "\n".join(lines)
    fig.suptitle(text, x=0.01, ha="left", fontsize=FONT_SIZE + 1, fontweight="bold")


def finish(fig: MatplotlibFigure, alt: str) -> Figure:
    """Return the finished figure; `alt` describes it. Raises ValueError if `alt` is empty."""
    if not alt.strip():
        raise ValueError("a figure needs an alternative text")
    buffer = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    fig.savefig(buffer, format="svg", metadata=metadata)
    return Figure(_inline(buffer.getvalue(), alt), alt)


def conclude(fig: MatplotlibFigure, finding: str, words: str) -> Figure:
    """Return the finished figure with its title; `words` follow it in the alternative text."""
    title(fig, finding)
    end = "" if finding.endswith("?") else "."
    return finish(fig, f"{finding}{end} {words}")


def _inline(svg: str, alt: str) -> str:
    """Return matplotlib's SVG in a form for an HTML page that has other figures, too."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", " ", svg)
    svg = svg.replace(INK, "currentColor")
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, 'DejaVu Sans', sans-serif", svg)
    width, height = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups()
    opening = (
        f'<svg role="img" aria-label="{html.escape(alt)}" '
        f'style="width:100%;max-width:{float(width) * 1.6:.0f}px;height:auto;'
        f'stroke-linejoin:round" viewBox="0 0 {width} {height}" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return numbered(opening + svg[svg.index(">") + 1 :])


def numbered(svg: str) -> str:
    """Return an SVG whose ids are numbers, after a prefix that is unique to this figure.

    Ids are global to a page. Matplotlib's hold hashes of coordinates with all their digits, which
    differ from one processor to the next where what is drawn does not.
    """
    names = {
        name: str(i) for i, name in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg)))
    }
    places = r'(\bid="|href="#|url\(#)([^")]+)'
    plain = re.sub(places, lambda at: at[1] + names[at[2]], svg)
    prefix = "f" + hashlib.sha256(plain.encode()).hexdigest()[:8] + "-"
    return re.sub(places, lambda at: at[1] + prefix + at[2], plain)


def bare(ax: Axes, width: float, height: float) -> None:
    """Turn ax into a canvas for matrices: no axes, equal scales, y running down."""
    ax.set_xlim(-0.02 * width, 1.02 * width)
    ax.set_ylim(1.02 * height, -0.02 * height)
    ax.set_aspect("equal")
    ax.axis("off")


def matrix(
    ax: Axes,
    rows: int,
    columns: int,
    color: str,
    *,
    x: float = 0,
    y: float = 0,
    shade=None,
    tile: tuple[int, int] | None = None,
) -> None:
    """Draw a rows × columns matrix of unit squares with its upper left corner at (x, y).

    `shade` is the opacity of all elements, or maps (row, column) to that of one. `tile` draws
    heavier lines around tiles of (rows, columns).
    """
    if isinstance(shade, float):
        shade = {(i, j): shade for i in range(rows) for j in range(columns)}
    by_alpha: dict[float, list] = {}
    for (row, column), alpha in (shade or {}).items():
        by_alpha.setdefault(round(float(alpha), 3), []).append((x + column, y + row, 1, 1))
    for alpha, squares in by_alpha.items():
        boxes(ax, squares, facecolor=color, alpha=alpha, lw=0)
    _grid(ax, x, y, rows, columns, (1, 1), edgecolor=color, lw=0.5, alpha=0.6)
    _grid(ax, x, y, rows, columns, tile or (rows, columns), edgecolor=color, lw=1.5)


def fill(
    ax: Axes, x: float, y: float, width: float, height: float, color: str, alpha: float
) -> None:
    """Draw a filled rectangle with its upper left corner at (x, y)."""
    look = {"facecolor": color, "alpha": alpha, "lw": 0, "clip_on": False}
    ax.add_patch(Rectangle((x, y), width, height, **look))


def frame(
    ax: Axes, x: float, y: float, width: float, height: float, color: str, line: float = 1.5
) -> None:
    """Draw the outline of a rectangle with its upper left corner at (x, y)."""
    look = {"fill": False, "edgecolor": color, "lw": line, "clip_on": False}
    ax.add_patch(Rectangle((x, y), width, height, **look))


def product_frames(
    ax: Axes, corner: float, strip: float, rows: float, columns: float, line: float = 1.5
) -> None:
    """Draw the outline of C with its upper left corner at (corner, corner), of A and B beside it.

    Of A and B only a `strip` of that width is shown.
    """
    frame(ax, 0, corner, strip, rows, A, line)
    frame(ax, corner, 0, columns, strip, B, line)
    frame(ax, corner, corner, columns, rows, C, line)


def note(ax: Axes, text: str, at: tuple, shift: tuple, **look) -> None:
    """Write a text that lies `shift` points away from a point of the data."""
    ax.annotate(text, at, shift, textcoords="offset points", **look)


def mark(ax: Axes, x: float, text: str, y: float, side: str) -> None:
    """Draw a vertical line at `x`, with a text along it from `y` of the height on."""
    ax.axvline(x, color=MUTED, lw=0.8)
    look = {"xycoords": ("data", "axes fraction"), "rotation": 90, "fontsize": 8}
    note(ax, text, (x, y), (-3, 0), ha="right", va=side, **look)


def line_axis(ax: Axes, bottom: float, top: float, label: str, **limits) -> None:
    """Set up an axis of lines with their names on them: no ticks and no edge at the left."""
    ax.set(ylim=(bottom, top), yticks=[], xlabel=label, **limits)
    ax.spines["left"].set_visible(False)


def panel_title(ax: Axes, text: str) -> None:
    """Write the title of one of a figure's panels, which is not bold."""
    ax.set_title(text, fontsize=FONT_SIZE, fontweight="normal")


def grid_lines(*axes: Axes) -> None:
    """Draw the grid of some axes behind their data."""
    for ax in axes:
        ax.grid(True)
        ax.set_axisbelow(True)


def plain_numbers(*axes: Axis) -> None:
    """Write the numbers of some axes without exponents, and leave out minor ticks."""
    for axis in axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def edge_axis(ax: Axes, edges: Sequence[int], label: str) -> None:
    """Mark these edges of matrices or tiles on the x axis, without minor ticks, and name it."""
    ax.set_xticks(edges, [str(edge) for edge in edges])
    ax.minorticks_off()
    ax.set_xlabel(label)


def share_axis(ax: Axes, reach: float, label: str) -> None:
    """Mark quarters from 0% up to the share `reach` on the x axis, and name it."""
    ticks = [tick / 4 for tick in range(int(reach * 4) + 1)]
    ax.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(label)


def boxes(ax: Axes, corners: Sequence, start: Sequence = (), **look) -> None:
    """Draw boxes (x, y, width, height) as one path, behind `start`, which keeps the SVG small."""
    vertices, codes = [*start], [Path.MOVETO] * len(start)
    for x, y, w, h in corners:
        vertices += [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]
        codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    ax.add_patch(PathPatch(Path(vertices, codes), clip_on=False, **look))


def segments(ax: Axes, ends: Sequence, **look) -> None:
    """Draw separate lines, each from one point of `ends` to the next, as one path."""
    codes = [Path.MOVETO, Path.LINETO] * (len(ends) // 2)
    ax.add_patch(PathPatch(Path(ends, codes), fill=False, **look))


def _grid(ax: Axes, x: float, y: float, rows: int, columns: int, step: tuple, **look) -> None:
    """Draw lines every step[0] rows and step[1] columns, and the border, as one path."""
    ends = []
    for row in (*range(0, rows, step[0]), rows):
        ends += [(x, y + row), (x + columns, y + row)]
    for column in (*range(0, columns, step[1]), columns):
        ends += [(x + column, y), (x + column, y + rows)]
    segments(ax, ends, clip_on=False, **look)


def in_words(lines: Mapping[str, Mapping[int, float]], spec: str) -> str:
    """Return {name: {x: number}} for an alternative text, each number formatted by `spec`."""
    return "; ".join(
        f"{name}: " + ", ".join(f"{number:{spec}} at {x}" for x, number in sorted(line.items()))
        for name, line in lines.items()
    )
