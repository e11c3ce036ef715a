"""Print the built book as one PDF with the system's Chromium: `make pdf`."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from draw_stills import BROWSERS, OPTIONS, find_browser

from tiled_matmul import ROOT
from tiled_matmul.book.paper import compose, pages

# Family, style, weight and file. requirements-browser.lock brings Source Serif, and Matplotlib,
# which measured the text of the figures in DejaVu Sans, brings the others.
FONTS = (
    ("Book", "normal", 400, "SourceSerifPro-Regular"),
    ("Book", "italic", 400, "SourceSerifPro-It"),
    ("Book", "normal", 600, "SourceSerifPro-Semibold"),
    ("Book", "italic", 600, "SourceSerifPro-SemiboldIt"),
    ("Figures", "normal", 400, "DejaVuSans"),
    ("Figures", "normal", 700, "DejaVuSans-Bold"),
    ("Code", "normal", 400, "DejaVuSansMono"),
    ("Code", "italic", 400, "DejaVuSansMono-Oblique"),
    ("Code", "normal", 700, "DejaVuSansMono-Bold"),
)
FILL_IN = """(numbers) => {
  for (const one of document.querySelectorAll("[data-page]"))
    one.textContent = numbers[one.dataset.page];
}"""


def font_faces() -> str:
    """Return the rules of CSS that load the book's fonts from their packages."""
    import font_source_serif_pro
    import matplotlib

    serif = Path(font_source_serif_pro.font_directory)
    others = Path(matplotlib.get_data_path(), "fonts", "ttf")
    return "\n".join(
        f"@font-face {{ font-family: {family}; font-style: {style}; font-weight: {weight}; "
        f'src: url("{((serif if family == "Book" else others) / f"{name}.ttf").as_uri()}"); }}'
        for family, style, weight, name in FONTS
    )


def page_numbers(pdf: Path) -> dict[str, int]:
    """Return {id: page, from 1} of every place of a PDF to which one of its links leads."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    return {
        name.removeprefix("/"): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def print_pdf(browser: Any, html: str, pdf: Path) -> int:
    """Print `html`, as `compose` makes it, to the file `pdf`, and return the number of its pages.

    It is printed once to learn on which pages its parts begin, and once more with these numbers.
    Raises RuntimeError if the numbers themselves move a part to another page.
    """
    from pypdf import PdfReader

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "book.html"
        file.write_text(html, encoding="utf-8")
        page = browser.new_page()
        page.goto(file.as_uri())
        page.add_style_tag(content=font_faces())
        settings = {"path": pdf, "prefer_css_page_size": True, "print_background": True}
        page.pdf(**settings)
        numbers = page_numbers(pdf)
        page.evaluate(FILL_IN, numbers)
        page.pdf(**settings, outline=True, tagged=True)
        page.close()
    if page_numbers(pdf) != numbers:
        raise RuntimeError(f"{pdf}: the numbers of pages have moved text to other pages")
    return len(PdfReader(pdf).pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pdf", nargs="?", type=Path, default=ROOT / "_build" / "tiled-matmul.pdf")
    pdf = parser.parse_args().pdf
    start = time.perf_counter()
    if (path := find_browser()) is None:
        raise SystemExit(
            f"no Chromium: none of {', '.join(BROWSERS)} is on the PATH. Install it, as in: "
            "apt-get install chromium"
        )
    html = ROOT / "_build" / "html"
    if not (html / "index.html").exists():
        raise SystemExit(f"no built book in {html}: make book")
    book = compose(ROOT, pages(html))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        count = print_pdf(browser, book, pdf)
        browser.close()
    seconds, size = time.perf_counter() - start, pdf.stat().st_size / 1e6
    print(f"The book: file://{pdf.resolve()} ({count} pages, {size:.1f} MB, {seconds:.0f} s)")


if __name__ == "__main__":
    main()
