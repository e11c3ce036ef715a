"""Leave out of the built book what the theme brings and no page uses, and name what it does not."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import Any

import tinycss2

from tiled_matmul.book.files import read_text
from tiled_matmul.files import replace_text

ICONS = re.compile(r"\.fa[bsr]?\b[\w-]*(?:::?[\w-]+)?|:root|:host|\.svg-inline--fa[\w.,-]*")
LICENCE = re.compile(r"/\*!\s*\* Font Awesome.*?\*/", re.DOTALL)
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
NAMES = re.compile(r"""\b(?:class|id)=(?:"([^"]*)"|'([^']*)')""")
SCRIPT = re.compile(r"<script\b[^>]*>(.*?)</script>", re.DOTALL)
WORD = re.compile(r"-?[A-Za-z_][\w-]*")
BLOCKING = re.compile(r'<script (?=[^>]*src="[^"]*_static/(?!documentation_options))(?!defer)')
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


def names_in(html: Path) -> set[str]:
    """Return each class and id in a built book's pages, and every word of its scripts.

    A script may give an element any class that stands in it, or whose beginning does: "tooltip-".
    """
    found: set[str] = set()
    for path in html.rglob("*.html"):
        text = read_text(path)
        for quoted, single in NAMES.findall(text):
            found.update((quoted or single).split())
        for script in SCRIPT.findall(text):
            found.update(WORD.findall(script))
    for path in html.rglob("*.js"):
        found.update(WORD.findall(read_text(path)))
    return found


def without_unused(css: str, names: Set[str]) -> str:
    """Return a style sheet without the rules whose every selector asks for an unknown name.

    One that ends with a hyphen stands for all that begin so.
    """
    beginnings = tuple(name for name in names if name.endswith("-"))

    def known(name: str) -> bool:
        return name in names or name.startswith(beginnings)

    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return tinycss2.serialize(_used(rules, known))


def _used(rules: Iterable[Any], known: Callable[[str], bool]) -> Iterator[Any]:
    for rule in rules:
        if rule.type == "qualified-rule":
            kept = [one for one in _split(rule.prelude) if _matches(one, known)]
            comma = tinycss2.ast.LiteralToken(0, 0, ",")
            rule.prelude = [token for one in kept for token in (comma, *one)][1:]
            if kept:
                yield rule
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
            rule.content = list(_used(inner, known))
            if rule.content:
                yield rule
        else:
            yield rule


def _split(prelude: Iterable[Any]) -> list[list[Any]]:
    """Return the selectors of a rule, as tokens."""
    found: list[list[Any]] = [[]]
    for token in prelude:
        if token == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def _matches(selector: list[Any], known: Callable[[str], bool]) -> bool:
    """Can a selector match where only some names are known? What stands in `:not(…)` may lack."""
    for before, token in zip([None, *selector], selector, strict=False):
        if token.type == "hash" or (token.type == "ident" and before == "."):
            if not known(token.value):
                return False
    return True


def lighten(html: Path) -> None:
    """Remove the icon library from a built book's files, and rules without use from its styles.

    Scripts wait until the page is there: only Sphinx's options are read on the way. The arrows of
    the side bar, which have no text, get a name.
    """
    static = html / "_static"
    for name in UNUSED:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in static.rglob("*.map"):
        path.unlink()
    for path in html.rglob("*.html"):
        text = read_text(path)
        made = BLOCKING.sub("<script defer ", text.replace(TOGGLE, NAMED))
        if made != text:
            replace_text(path, made)
    names = names_in(html)
    for path in (static / "styles").glob("*.css"):
        replace_text(path, without_icons(read_text(path)))
    for path in static.rglob("*.css"):
        replace_text(path, without_unused(read_text(path), names))
