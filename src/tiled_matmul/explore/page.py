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
from dataclasses import dataclass, field
from pathlib import Path

from tiled_matmul.explore import data

HERE = Path(__file__).parent
STILLS = HERE / "stills"
SHARED = ("models", "frame")  # scripts that every figure needs, in this order
KINDS = (
    *("climb", "fragments", "loops", "order", "pipeline", "race", "swizzle", "tile", "warp"),
    "waves",
)
EMPTY = '<div class="explore-picture"></div><p class="explore-said"></p>'
NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Explorable:
    """One figure: its `kind`, a `name` that no other figure has, and the settings it starts with.

    The name is its id on the page, and its address: `page.html#name`. Raises ValueError for an
    unknown kind or a name that is none, and, when it is shown, for one without a still picture.
    """

    kind: str
    name: str
    settings: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind!r}; there are {', '.join(KINDS)}")
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a name has small letters, digits and hyphens, got {self.name!r}")

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

    def _repr_html_(self) -> str:
        state = html.escape(json.dumps(self.settings, sort_keys=True))
        return (
            f'<figure class="explore" id="{self.name}" data-explore="{self.kind}" '
            f'data-state="{state}"><style>{style()}</style>{self.still}</figure>'
        )

    def __repr__(self) -> str:
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.still)).strip()


def explore(kind: str, name: str, **settings: object) -> Explorable:
    """Return a figure to change, such as explore("warp", "my-warp", index="2 * lane")."""
    return Explorable(kind, name, settings)


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
