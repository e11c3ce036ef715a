"""Find requests of a built page to other hosts. Links that a reader clicks do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

REMOTE = re.compile(r"\s*(?:https?:|wss?:|ftp:)?//", re.IGNORECASE)
# The attributes, by tag, whose address a browser requests without a click; None: on any tag.
FETCHED = {
    "src": None,
    "srcset": None,
    "poster": None,
    "data": {"object"},
    "href": {"link", "image", "use"},
    "xlink:href": {"image", "use"},
    "background": None,
}
# Kinds of <link> that describe the page and request nothing.
QUIET_LINKS = {"canonical", "alternate", "next", "prev", "index", "search", "author", "license"}
CSS_URL = re.compile(
    r"@import\s+(?:url\()?\s*[\"']?([^\"');\s]+)|url\(\s*[\"']?([^\"')]+)", re.IGNORECASE
)
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def css_requests(css: str) -> Iterator[str]:
    """Yield the remote addresses that a style sheet requests."""
    for match in CSS_URL.finditer(CSS_COMMENT.sub("", css)):
        address = match[1] or match[2]
        if REMOTE.match(address):
            yield address


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
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
                self.addresses += [a.strip() for a in addresses if REMOTE.match(a)]
            if name == "style":
                self.addresses += css_requests(value)
            if tag == "meta" and name == "content" and "http-equiv" in values:
                self.addresses += re.findall(r"url=((?:https?:)?//\S+)", value, re.IGNORECASE)

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.addresses += css_requests(data)


def outside_requests(folder: Path) -> list[tuple[str, str]]:
    """Return (file, address) for each request of the pages in `folder` to another host."""
    requests = []
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        requests += [(path.relative_to(folder).as_posix(), address) for address in page.addresses]
    for path in sorted(folder.rglob("*.css")):
        addresses = css_requests(path.read_text(encoding="utf-8"))
        requests += [(path.relative_to(folder).as_posix(), address) for address in addresses]
    return requests
