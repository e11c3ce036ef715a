"""Finds what a built page would fetch from another host. Links that a reader clicks are free."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

REMOTE = re.compile(r"\s*(?:https?:|wss?:|ftp:)?//", re.IGNORECASE)
# What a browser fetches by itself, by attribute and tag; <a href> waits for a hand.
FETCHED = {
    "src": None,
    "srcset": None,
    "poster": None,
    "data": {"object"},
    "href": {"link", "image", "use"},
    "xlink:href": {"image", "use"},
    "background": None,
}
# <link> kinds that only say something about the page.
QUIET_LINKS = {"canonical", "alternate", "next", "prev", "index", "search", "author", "license"}
CSS_URL = re.compile(
    r"@import\s+(?:url\()?\s*[\"']?([^\"');\s]+)|url\(\s*[\"']?([^\"')]+)", re.IGNORECASE
)
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def css_requests(css: str) -> Iterator[str]:
    """Yield the remote addresses that a style sheet imports or draws from."""
    for match in CSS_URL.finditer(CSS_COMMENT.sub("", css)):
        address = match[1] or match[2]
        if REMOTE.match(address):
            yield address


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_style = tag == "style"
        values = {name: value or "" for name, value in attrs}
        kinds = set(values.get("rel", "").lower().split())
        for name, value in values.items():
            tags = FETCHED.get(name, ())
            fetched = tags is None or tag in tags
            if tag == "link" and kinds and kinds <= QUIET_LINKS:
                fetched = False
            addresses = value.split(",") if name == "srcset" else [value]
            if fetched:
                self.found += [a.strip() for a in addresses if REMOTE.match(a)]
            if name == "style":
                self.found += css_requests(value)
            if tag == "meta" and name == "content" and "http-equiv" in values:
                self.found += re.findall(r"url=((?:https?:)?//\S+)", value, re.IGNORECASE)

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.found += css_requests(data)


def outside_requests(folder: Path) -> list[tuple[str, str]]:
    """Return (file, address) for each remote thing that the pages in `folder` would fetch."""
    found = []
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        found += [(path.relative_to(folder).as_posix(), address) for address in page.found]
    for path in sorted(folder.rglob("*.css")):
        addresses = css_requests(path.read_text(encoding="utf-8"))
        found += [(path.relative_to(folder).as_posix(), address) for address in addresses]
    return found
