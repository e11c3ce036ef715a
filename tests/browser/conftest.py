"""A built book on localhost, and the system's Chromium. Without them these tests are skipped, and
say so; with `TILED_MATMUL_BROWSER=required` (`make test-browser`) they fail instead."""

import functools
import http.server
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tiled_matmul import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import draw_stills  # noqa: E402

BOOK = ROOT / "_build" / "html"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


def missing(what: str) -> None:
    if os.environ.get("TILED_MATMUL_BROWSER") == "required":
        pytest.fail(what)
    pytest.skip(what)


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """A browser that closes a page leaves requests behind."""


def serve(folder: Path) -> Iterator[str]:
    with Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def book() -> Iterator[str]:
    """The address of the built book."""
    if not (BOOK / "index.html").exists():
        missing("no built book: make book")
    yield from serve(BOOK)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = draw_stills.find_browser()
    if path is None:
        missing(f"no browser: none of {', '.join(draw_stills.BROWSERS)} is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright: make test-browser installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(draw_stills.OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page of 1400 by 900, light."""
    context = browser.new_context(viewport=draw_stills.WINDOW, color_scheme="light")
    context.set_default_timeout(10_000)
    yield context.new_page()
    context.close()
