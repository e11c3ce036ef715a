"""Faults of a printed book, found in its PDF. Every function returns one line for each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MM = 72 / 25.4
MARGIN = 20 * MM - 0.5  # left and right, in points: that of @page in paper.css
BODY = 10.5  # points, of most text
SMALLEST = 5.5  # points: can still be read in print
CONTENTS_LINE = re.compile(r"(.+?) *(\d+)")


def opened(path: Path) -> Any:
    from pypdf import PdfReader

    return PdfReader(path)


def outline(reader: Any) -> Iterator[tuple[str, int]]:
    """Yield the title and the page, from 1, of every entry of the outline."""
    entries = [reader.outline]
    while entries:
        entry = entries.pop(0)
        if isinstance(entry, list):
            entries[:0] = entry
        else:
            yield " ".join(entry.title.split()), reader.get_destination_page_number(entry) + 1


def missing_from_outline(reader: Any, titles: list[str]) -> list[str]:
    there = {title for title, _ in outline(reader)}
    return [f"the outline lacks {title!r}" for title in titles if title not in there]


def wrong_numbers(reader: Any, titles: list[str]) -> list[str]:
    """Return the titles whose number in the contents is not that of their page in the outline."""
    begins = dict(reversed([*outline(reader)]))
    first, last = begins["Contents"], begins[titles[0]]
    text = "\n".join(page.extract_text() for page in reader.pages[first - 1 : last - 1])
    listed = dict(m.groups() for m in map(CONTENTS_LINE.fullmatch, text.splitlines()) if m)
    return [
        f"{title!r} begins on page {begins.get(title)}, the contents say {listed.get(title)}"
        for title in titles
        if str(begins.get(title)) != listed.get(title)
    ]


def links(reader: Any) -> Iterator[tuple[int, Any]]:
    """Yield the page, from 1, and the annotation of every link."""
    for number, page in enumerate(reader.pages, start=1):
        for annotation in page.get("/Annots", ()):
            yield number, annotation.get_object()


def dead_links(reader: Any, html: str) -> list[str]:
    """Return the places to which `html` has links, and its PDF has none that leads there."""
    live = {str(link["/Dest"]) for _, link in links(reader) if "/Dest" in link}
    live &= reader.named_destinations.keys()
    wanted = set(re.findall(r'<a [^>]*href="#([^"]+)"', html))
    return [f"no link leads to {place}" for place in sorted(wanted) if f"/{place}" not in live]


def local_links(reader: Any) -> list[str]:
    return [
        f"page {number}: a link leads to {link['/A']['/URI']}, a file of this machine"
        for number, link in links(reader)
        if "/A" in link and link["/A"].get("/URI", "").startswith("file:")
    ]


def missing_fonts(reader: Any) -> list[str]:
    faults = set()
    for page in reader.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            font = font.get_object()
            inner = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
            descriptor = inner.get("/FontDescriptor", {}).get_object()
            if not any(key.startswith("/FontFile") for key in descriptor):
                faults.add(f"the font {font['/BaseFont']} is not embedded")
    return sorted(faults)


def runs(page: Any) -> list[tuple[tuple[float, float], tuple[float, float], float]]:
    """Return where the first and the last glyph of each run begin, and the font size, in points.

    Chromium places glyphs one by one, except in fonts of one width, which is 0.6 em here.
    """
    found = []
    size = 0.0

    def note(operator: bytes, operands: list, outer: list[float], inner: list[float]) -> None:
        nonlocal size
        if operator == b"Tf":
            size = float(operands[1])
        elif operator == b"Tj":
            width = 0.6 * (len(operands[0]) / 2 - 1)  # in em; two bytes a glyph
            first, last, em = (
                tuple(
                    outer[i] * (inner[4] + inner[0] * size * along)
                    + outer[i + 2] * (inner[5] + inner[1] * size * along)
                    + outer[i + 4]
                    for i in (0, 1)
                )
                for along in (0, width, 1)
            )
            found.append((first, last, math.dist(first, em)))

    page.extract_text(visitor_operand_before=note)
    return found


def text_faults(reader: Any) -> list[str]:
    """Return where text is cut by a margin at the side or by the paper, and where it is too small.

    Chromium leaves out glyphs that lie beyond the margin, and keeps the one that it cuts. The most
    common size has to be BODY: if a part is too wide for its page, the whole book gets smaller.
    """
    faults, sizes = [], Counter()
    for number, page in enumerate(reader.pages, start=1):
        width, height = page.mediabox.width, page.mediabox.height
        here = Counter()
        for first, last, size in runs(page):
            here[round(size, 1)] += 1
            for x, y in (first, last):
                if not (MARGIN <= x <= width - MARGIN and 0 <= y <= height):
                    faults.append(f"page {number}: text at {x:.0f}, {y:.0f} stands outside")
        if here and min(here) < SMALLEST:
            faults.append(f"page {number}: text of {min(here)} pt")
        sizes += here
    if (body := sizes.most_common(1)[0][0]) != BODY:
        faults.append(f"most text has {body} pt instead of {BODY}")
    return faults
