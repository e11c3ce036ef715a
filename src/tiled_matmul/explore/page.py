"""A figure that a reader changes, as HTML: its first picture, and what it starts with.

In the book, the scripts of `js/` make it movable; `data` brings what some of them work on. They
draw the still pictures, too: `stills/` holds them, `tools/draw_stills.py` writes them and
`make test-browser` says when they differ.
"""

from __future__ import annotations

import html
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tiled_matmul.explore import data

HERE = Path(__file__).parent
STILLS = HERE / "stills"
SHARED = ("models", "frame")  # scripts that every figure needs, in this order
# Each figure's kind, and what it starts with where that is not what its kind starts with.
FIGURES: dict[str, tuple[str, dict[str, object]]] = {
    "climb": ("climb", {"step": 5}),
    "fragments": ("fragments", {}),
    "loops": ("loops", {"turn": 100}),
    "loops-tiles": ("loops", {"order": "ikj", "tile": 4, "turn": 200}),
    "order": ("order", {"group": 8, "wave": 2}),
    "pipeline": ("pipeline", {}),
    "race": ("race", {"order": "last thread first", "second": "gone", "step": 200}),
    "ranks": ("ranks", {}),
    "swizzle": ("swizzle", {}),
    "tile": ("tile", {}),
    "warp": ("warp", {}),
    "warp-banks": ("warp", {"P": 32, "index": "tx * P", "space": "shared"}),
    "waves": ("waves", {}),
}
KINDS = tuple(sorted({kind for kind, _ in FIGURES.values()}))
STILL = "In the built book, this figure takes your own numbers."
EMPTY = '<div class="explore-picture"></div><p class="explore-said"></p>'


@dataclass(frozen=True)
class Explorable:
    """The figure `name`, which is its id on the page and its address: `page.html#name`.

    Raises ValueError for an unknown name, and, when it is shown, for one without a still picture.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in FIGURES:
            raise ValueError(f"unknown figure {self.name!r}; there are {', '.join(FIGURES)}")

    @property
    def still(self) -> str:
        """The picture and its sentence, as HTML."""
        path = STILLS / f"{self.name}.html"
        if os.environ.get("TILED_MATMUL_STILLS") == "none":  # for the tool that draws them
            return EMPTY
        try:
            return path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            raise ValueError(
                f"{self.name} has no still picture: build the book, then tools/draw_stills.py"
            ) from None

    def html(self, note: str = "") -> str:
        """The figure as a page of the book has it, with a `note` below where there is one."""
        kind, settings = FIGURES[self.name]
        state = html.escape(json.dumps(settings, sort_keys=True))
        below = f'<p class="explore-note">{note}</p>' if note else ""
        return (
            f'<figure class="explore" id="{self.name}" data-explore="{kind}" '
            f'data-state="{state}"><style>{style()}</style>{self.still}{below}</figure>'
        )

    def _repr_html_(self) -> str:
        return self.html(STILL)

    def __repr__(self) -> str:
        said = self.still.partition('<p class="explore-said">')[2].partition("</p>")[0]
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", said)).split())


def explore(name: str) -> Explorable:
    """Return a figure to change, such as explore("warp"): in a notebook, its still picture."""
    return Explorable(name)


def style() -> str:
    """Return the figures' style sheet: it goes with each, as JupyterLab has no other."""
    return " ".join((HERE / "js" / "frame.css").read_text(encoding="utf-8").split())


def scripts(kinds: set[str]) -> list[str]:
    """Return the names of the scripts that figures of these kinds need, in order."""
    own = sorted(kinds & {*KINDS})
    facts = [f"data-{kind}" for kind in own if kind in data.OF_KIND]
    return [f"{name}.js" for name in (*SHARED, *facts, *own)] if own else []


def script(name: str) -> str:
    """Return the text of a script: a file of `js/`, or a kind's data."""
    if name.startswith("data-"):
        return data.script(name.removeprefix("data-").removesuffix(".js"))
    return (HERE / "js" / name).read_text(encoding="utf-8")
