"""Write the still pictures of the built book's figures to change, as Chromium draws them.

    make book; .venv/bin/python tools/draw_stills.py

The book has to be built with a figure before its still exists: `TILED_MATMUL_STILLS=none make book`
builds it with empty pictures.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.explore.page import STILLS
from tiled_matmul.files import replace_text

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Without a sandbox of Chromium's own: a container gives no right to make one. Nothing else loads.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--font-render-hinting=none",
)
WINDOW = {"width": 1400, "height": 900}
INNER = """() => [...document.querySelectorAll("figure.explore")].map((root) =>
  [root.id, [".explore-picture", ".explore-said"].map((n) => root.querySelector(n).outerHTML)])"""
LIVE = re.compile(r' aria-live="polite"')


def find_browser() -> str | None:
    """Return the path of the system's Chromium, None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def stills(page: Any) -> dict[str, str]:
    """Return {name: HTML} of the figures on a loaded page, as its scripts have drawn them."""
    found = page.evaluate(INNER)
    return {name: LIVE.sub("", "\n".join(parts)) + "\n" for name, parts in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("book", nargs="?", type=Path, default=ROOT / "_build" / "html")
    book = parser.parse_args().book
    pages = [path for path in book.rglob("*.html") if "data-explore=" in path.read_text("utf-8")]
    if not pages:
        raise SystemExit(f"{book}: no page has a figure to change; is the book built?")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(OPTIONS))
        page = browser.new_page(viewport=WINDOW)
        for path in sorted(pages):
            page.goto(path.as_uri())
            for name, still in stills(page).items():
                if "<svg" not in still:
                    raise SystemExit(f"{path}: the scripts drew nothing for {name}")
                replace_text(STILLS / f"{name}.html", still)
                print(f"{STILLS / name}.html")


if __name__ == "__main__":
    main()
