"""Cut the built pages into sections: the index of the search page.

A section has the text and the code below its own heading, without those of the sections inside it.
In its text, code stands between backticks. Of folded code the index holds the words alone, each
once, and of a solution what its exercise does not have. Pictures are left out. `js/search.js` reads
the index and searches it with MiniSearch, whose origin `js/README.md` states.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from tiled_matmul.book.files import read_text
from tiled_matmul.files import replace_text

JS = Path(__file__).parent / "js"
SCRIPTS = ("minisearch.js", "minisearch.LICENSE.txt", "search.js")
ARTICLE = re.compile(r'<article class="bd-article">.*?</article>', re.DOTALL)
# Left out before the page is parsed, which takes much longer.
UNSEEN = re.compile(r"<(svg|style|script)\b.*?</\1>", re.DOTALL)
# Classes of the link beside a heading, and of the words on a fold of code.
LABELS = {"headerlink", "collapsed", "expanded"}
PRINTED = "highlight-myst-ansi"
WORD = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
IMPORT = re.compile(r"^ *(?:from \S+ )?import (?:\([^)]*\)|.*)$", re.MULTILINE)
INLINE = {"a", "b", "code", "em", "i", "span", "strong", "sub", "sup"}
VOID = {"br", "hr", "img", "input", "wbr"}


@dataclass
class Section:
    """A section: the id that leads to it, its title, its text, its code, and the words of its text
    that are stressed, often since they are new."""

    place: str
    title: str = ""
    text: str = ""
    code: str = ""
    folded: str = ""
    stressed: str = ""

    def tidy(self) -> None:
        """Remove white space that says nothing, and what folded code repeats or only imports."""
        for part in ("title", "text", "stressed"):
            setattr(self, part, " ".join(getattr(self, part).split()))
        lines = [line.rstrip() for line in self.code.splitlines() if line.strip()]
        self.code = "\n".join(lines)
        seen = {*WORD.findall(self.code), *keyword.kwlist}
        words = WORD.findall(IMPORT.sub("", self.folded))
        self.folded = " ".join(dict.fromkeys(w for w in words if w not in seen and len(w) > 2))

    def less(self, exercise: Section) -> None:
        """Leave out of a solution what its exercise has as well."""
        if self.text == exercise.text:
            self.text = self.stressed = ""
        known = set(exercise.code.splitlines())
        self.code = "\n".join(line for line in self.code.splitlines() if line not in known)
        self.folded = " ".join(w for w in self.folded.split() if w not in exercise.folded.split())


class _Reader(HTMLParser):
    """Reads an article. Each open element has its tag, and the part that its text belongs to."""

    def __init__(self, article: str) -> None:
        super().__init__()
        self.sections: list[Section] = []
        self.around: list[Section] = []
        self.open: list[tuple[str, str]] = [("", "text")]
        self.feed(UNSEEN.sub(" ", article))
        for section in self.sections:
            section.tidy()

    def part_of(self, tag: str, classes: set[str]) -> str:
        """Return "title", "text", "code", or "" for what the index leaves out."""
        around = self.open[-1][1]
        if classes & LABELS:
            return ""
        if PRINTED in classes:
            return "printed"
        if tag == "details" and "hide" in classes:
            return "folded"
        if tag == "pre" and around == "text":
            return "code"
        if re.fullmatch("h[1-6]", tag) and self.around and not self.around[-1].title:
            return "title"
        return around

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INLINE:
            self.handle_data(" ")
        if tag in VOID:
            return
        values = {name: value or "" for name, value in attrs}
        if tag == "section":
            self.around.append(Section(values.get("id", "")))
            self.sections.append(self.around[-1])
        self.open.append((tag, self.part_of(tag, set(values.get("class", "").split()))))
        self.quote(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {name for name, _ in self.open}:
            return
        self.quote(tag)
        while self.open.pop()[0] != tag:
            pass
        if tag not in INLINE:
            self.handle_data("\n")
        if tag == "section":
            self.around.pop()

    def handle_data(self, data: str) -> None:
        self.write(data.replace("`", "'"))

    def quote(self, tag: str) -> None:
        if tag == "code" and self.open[-1][1] in ("text", "printed"):
            self.write("`")

    def write(self, text: str) -> None:
        tag, part = self.open[-1]
        if part and self.around:
            section = self.around[-1]
            part = part.replace("printed", "text")
            setattr(section, part, getattr(section, part) + text)
            if tag == "em":
                section.stressed += f"{text} "


def sections(page: str) -> list[Section]:
    """Return the sections of a built page, in order, outer ones before those inside them."""
    article = ARTICLE.search(page)
    return _Reader(article[0]).sections if article else []


def kind(name: str) -> str:
    """Return what a page is for the search: it ranks by this."""
    if name.startswith("exercises/solutions/"):
        return "solution"
    if re.match(r"chapters/\d", name):
        return "chapter"
    return "glossary" if name == "glossary" else "other"


def index(html: Path, names: Iterable[str]) -> list[dict[str, object]]:
    """Return the index of the pages with these names: each page's address, kind and sections."""
    pages = {name: sections(read_text(html / f"{name}.html")) for name in sorted(names)}
    for name, solved in pages.items():
        exercises = {one.place: one for one in pages.get(name.replace("/solutions/", "/"), ())}
        if kind(name) == "solution":
            for one in solved:
                one.less(exercises.get(one.place, Section("")))
    return [
        {
            "page": f"{name}.html",
            "kind": kind(name),
            "sections": [[*vars(s).values()] for s in found],
        }
        for name, found in pages.items()
    ]


def write_search(html: Path, names: Iterable[str]) -> None:
    """Write the search page's scripts and their index into the built book in `html`.

    The index is a script too, since a page that is opened from disk may read no other files.
    """
    folder = html / "_static" / "search"
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCRIPTS:
        replace_text(folder / name, read_text(JS / name))
    entries = json.dumps(index(html, names), ensure_ascii=False, separators=(",", ":"))
    replace_text(folder / "sections.js", f"const BOOK = {entries};\n")
