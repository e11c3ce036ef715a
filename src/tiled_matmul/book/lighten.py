"""Leave out of the built book what the theme brings and no page uses, and name what it does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tiled_matmul.book.files import read_text
from tiled_matmul.files import replace_text

ICONS = re.compile(r"\.fa[bsr]?\b[\w-]*(?:::?[\w-]+)?|:root|:host|\.svg-inline--fa[\w.,-]*")
LICENCE = re.compile(r"/\*!\s*\* Font Awesome.*?\*/", re.DOTALL)
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
TOGGLE = '<summary><span class="toctree-toggle"'
NAMED = '<summary aria-label="Its pages"><span class="toctree-toggle"'
UNUSED = (
    "scripts/fontawesome.js",
    "scripts/fontawesome.js.LICENSE.txt",
    "vendor/fontawesome",
    # Sphinx's own search.
    "searchtools.js",
    "language_data.js",
)


def without_icons(css: str) -> str:
    """Return minified CSS without the rules that only Font Awesome's classes and fonts need."""

    def kept(rule: re.Match) -> str:
        selectors, body = rule[1], rule[2]
        font = selectors.strip() == "@font-face" and "Font Awesome" in body
        of_font = body.startswith("--fa-") and ":root" in selectors
        named = [one.strip() for one in selectors.split(",")]
        icon = any(one.startswith(".fa") for one in named) and all(map(ICONS.fullmatch, named))
        return "" if font or of_font or icon else rule[0]

    return RULE.sub(kept, LICENCE.sub("", css))


def lighten(html: Path) -> None:
    """Remove the icon library from a built book's files, and its rules from the style sheets.

    The arrows of the side bar, which have no text, get a name.
    """
    static = html / "_static"
    for name in UNUSED:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in static.rglob("*.map"):
        path.unlink()
    for path in html.rglob("*.html"):
        text = read_text(path)
        if TOGGLE in text:
            replace_text(path, text.replace(TOGGLE, NAMED))
    for path in (static / "styles").glob("*.css"):
        replace_text(path, without_icons(read_text(path)))
