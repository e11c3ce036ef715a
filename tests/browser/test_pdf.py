"""The book in print: some of its pages as a PDF, and each check's own fault."""

import re

import print_book
import pytest

from browser import pdf
from browser.conftest import BOOK
from tiled_matmul import ROOT
from tiled_matmul.book.paper import STYLE, compose, pages

# A chapter with a walk, formulas, tables and code; its exercises and solutions; what it refers to.
PRINTED = (
    "intro.html",
    "chapters/05_shared_memory.html",
    "exercises/05_shared_memory.html",
    "exercises/solutions/05_shared_memory.html",
    "explorables.html",
    "bibliography.html",
)
SMALL = f"""<!DOCTYPE html><html lang="en"><title>Small</title>
<link rel="stylesheet" href="{STYLE.as_uri()}">
<nav id="contents"><h1>Contents</h1><ol class="contents">
<li><a href="#one"><span>One</span> <span data-page="one"></span></a></li>
<li><a href="#two"><span>Two</span> <span data-page="two"></span></a></li></ol></nav>
<section class="page" id="one"><h1>One</h1><p>The first page of the text.</p></section>
<section class="page" id="two"><h1>Two</h1><p>The second, after
<a href="#one">the first</a> and <a href="https://example.org/">another book</a>.</p></section>"""


def faults(reader, html, titles):
    return [
        *pdf.missing_from_outline(reader, titles),
        *pdf.wrong_numbers(reader, titles),
        *pdf.dead_links(reader, html),
        *pdf.local_links(reader),
        *pdf.missing_fonts(reader),
        *pdf.text_faults(reader),
    ]


def test_the_printed_book_has_no_fault(book, browser, tmp_path):
    printed = [page for page in pages(BOOK) if page.path in PRINTED]
    assert len(printed) >= len(PRINTED) - 1  # a learner's copy has no solutions
    html = compose(ROOT, printed)
    count = print_book.print_pdf(browser, html, tmp_path / "book.pdf")
    reader = pdf.opened(tmp_path / "book.pdf")
    assert count == len(reader.pages) > 20
    assert "\n".join(faults(reader, html, [page.title for page in printed])) == ""


@pytest.fixture
def small(browser, tmp_path):
    def printed(html):
        print_book.print_pdf(browser, html, tmp_path / "small.pdf")
        return pdf.opened(tmp_path / "small.pdf")

    return printed


def test_a_small_book_has_no_fault(small):
    assert faults(small(SMALL), SMALL, ["One", "Two"]) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<h1>Two</h1>", "<p>Two</p>", "the outline lacks 'Two'"),
        ('<span data-page="two">', "<span>2", "'Two' begins on page 3, the contents say 2"),
        ('"#one">the', '"#none">the', "no link leads to none"),
        ("https://example.org/", "other.html", "other.html, a file of this machine"),
        ("<p>The first", "<p style='margin-left: -25mm'>The first", "stands outside"),
        ("<p>The first", "<p style='width: 300mm'>The first", "instead of 10.5"),
        ("<p>The first", "<p style='font-size: 4pt'>The first", "page 2: text of 4.0 pt"),
    ],
)
def test_each_fault_is_found(old, new, said, small):
    html = SMALL.replace(old, new)
    assert html != SMALL
    found = faults(small(html), html, ["One", "Two"])
    assert any(said in fault for fault in found), found


def test_a_font_that_is_not_embedded_is_found(small):
    reader = small(SMALL)
    font = next(iter(reader.pages[1]["/Resources"]["/Font"].values())).get_object()
    descriptor = font["/DescendantFonts"][0].get_object()["/FontDescriptor"].get_object()
    del descriptor["/FontFile2"]
    assert [re.sub(r"[A-Z]+\+", "", fault) for fault in pdf.missing_fonts(reader)] == [
        f"the font /{font['/BaseFont'].partition('+')[2]} is not embedded"
    ]


def test_without_a_browser_there_is_a_message(monkeypatch):
    monkeypatch.setattr(print_book, "find_browser", lambda: None)
    monkeypatch.setattr("sys.argv", ["print_book.py"])
    with pytest.raises(SystemExit, match="none of chromium, .* apt-get install chromium"):
        print_book.main()
