"""Every page of the book, light and dark, from 1400 to 320 px."""

from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from browser import checks
from browser.conftest import BOOK

FILES = sorted(path.relative_to(BOOK).as_posix() for path in BOOK.rglob("*") if path.is_file())
PAGES = [
    name
    for name in FILES
    # index.html only leads on to intro.html.
    if name.endswith(".html") and not name.startswith("_") and name != "index.html"
]


class Links(HTMLParser):
    """The addresses that a page links to, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        values = dict(attrs)
        self.anchors.update(values[key] for key in ("id", "name") if values.get(key))
        if tag == "a" and values.get("href"):
            self.targets.append(values["href"])


def broken(texts: dict[str, str], files: set[str]) -> list[str]:
    """Return the links of pages, {path: HTML}, that lead to no file or to no place of a page."""
    pages = {name: Links(text) for name, text in texts.items()}
    faults = []
    for name, links in pages.items():
        for target in links.targets:
            address, place = urldefrag(urljoin(name, target))
            if "//" in address or address.startswith(("mailto:", "javascript:")):
                continue
            path = unquote(address) or name
            if path not in files:
                faults.append(f"{name}: {target} leads to no file")
            elif path in pages and unquote(place) not in pages[path].anchors:
                faults.append(f"{name}: {target} leads to no place of that page")
    return faults


def test_no_link_is_broken(book):
    texts = {name: (BOOK / name).read_text(encoding="utf-8") for name in PAGES}
    assert "\n".join(broken(texts, set(FILES))) == ""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_in_order(name, book, page):
    watch = checks.Watch(page, book)
    page.goto(book + name)
    faults = [*checks.duplicates(page), *checks.icons(page), *checks.overflows(page)]
    faults += checks.contrast(page)
    checks.darken(page)
    faults += [f"dark: {fault}" for fault in checks.contrast(page)]
    faults += checks.accessibility(page)
    assert "\n".join(watch.faults + faults) == ""


PRINTED = ("chapters/04_grid_and_blocks.html", "chapters/10_block_pointers.html")
HIDDEN = """() => [...document.querySelectorAll(".bd-article details:not(.hide)")]
  .filter((one) => getComputedStyle(one, "::details-content").contentVisibility === "hidden")
  .map((one) => one.querySelector("summary").textContent)"""
LOST = """() => [...document.querySelectorAll(".bd-article div.highlight pre")]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent.slice(0, 60))"""


@pytest.mark.parametrize("name", PRINTED)
def test_on_paper_answers_are_open_and_code_is_whole(name, book, page):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(book + name)
    assert page.evaluate(HIDDEN) and page.evaluate(LOST)
    page.emulate_media(media="print")
    assert (page.evaluate(HIDDEN), page.evaluate(LOST)) == ([], [])
    assert page.locator("summary p.admonition-title").first.is_hidden()  # a fold of code


GROUNDS = """() => [...document.querySelectorAll(".bd-article div.highlight pre")]
  .map((one) => getComputedStyle(one).backgroundColor)"""


@pytest.mark.parametrize("name", PRINTED[:1])
def test_code_lies_on_the_same_ground_on_a_phone(name, book, page):
    page.goto(book + name)
    for turn in (lambda page: None, checks.darken):
        turn(page)
        page.set_viewport_size({"width": 1400, "height": 900})
        wide = page.evaluate(GROUNDS)
        page.set_viewport_size({"width": 390, "height": 900})
        assert wide and page.evaluate(GROUNDS) == wide
