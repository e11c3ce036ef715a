"""`make lab` in a browser: what it serves, how a notebook looks before it runs, and an exercise.

The server is started as `make lab` starts it, on a copy of the course, as JupyterLab saves files.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tiled_matmul import ROOT

OPTIONS = "--no-browser --ServerApp.ip=127.0.0.1 --IdentityProvider.token= --ServerApp.port={}"
STARTS_S, ANSWERS_MS = 120, 120_000
LINK = re.compile(r"\]\(<?([^)\s>]+)[^)]*\)|\bhref=[\"']([^\"']+)[\"']")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
NOTEBOOKS = sorted(
    path.relative_to(ROOT)
    for folder in ("chapters", "exercises", "exercises/solutions")
    for path in (ROOT / folder).glob("*.ipynb")
)
PAGES = sorted(path.relative_to(ROOT) for path in ROOT.glob("*.md"))


def texts(path: Path) -> list[str]:
    """Return the Markdown of a file of the course."""
    if path.suffix == ".md":
        return [(ROOT / path).read_text(encoding="utf-8")]
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def links() -> dict[tuple[str, str], set[tuple[Path, str]]]:
    """Return {(kind of page, kind of target): {(page, target)}} of all links within the course."""
    found = defaultdict(set)
    for path in (*NOTEBOOKS, *PAGES):
        for text in texts(path):
            for markdown, html in LINK.findall(CODE.sub("", text)):
                target = (markdown or html).partition("#")[0]
                if not target or re.match(r"\w+:|//", target):
                    continue
                there = Path(os.path.normpath(path.parent / target))
                kinds = [f"{one.parent}/*{one.suffix}" for one in (path, there)]
                found[tuple(kinds)].add((path, str(there)))
    return found


LINKS = links()


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """The address of a server that `make lab` has started."""
    copy = tmp_path_factory.mktemp("lab") / "course"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("home")
    # All cells are in the page from the start, also those that are not in view.
    settings = home / ".jupyter/lab/user-settings/@jupyterlab/notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    environment = {name: x for name, x in os.environ.items() if not name.startswith("JUPYTER")}
    environment |= {"PYTHONPATH": str(copy / "src"), "HOME": str(home)}
    environment |= {"TILED_MATMUL_BACKEND": "simulator", "MAKEFLAGS": ""}
    command = ["make", "-o", ".venv/.installed", "lab", f"LAB_OPTIONS={OPTIONS.format(port)}"]
    with open(home / "log", "w") as log:
        server = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + STARTS_S
        while True:
            try:
                urlopen(f"{address}/api", timeout=5).read()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"make lab did not start:\n{(home / 'log').read_text()[-3000:]}")
                time.sleep(0.5)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def test_every_link_leads_to_something_that_the_server_has(lab):
    assert len(LINKS) > 8
    dead, known = [], {}
    for pairs in LINKS.values():
        for page, target in pairs:
            if target.startswith(".."):
                dead.append(f"{page}: {target} lies outside of the course")
                continue
            if target not in known:
                try:
                    with urlopen(f"{lab}/api/contents/{target}?content=0", timeout=30) as answer:
                        known[target] = answer.status == 200
                except OSError:
                    known[target] = False
            if not known[target]:
                dead.append(f"{page}: {target}")
    assert not dead, dead


@pytest.fixture
def jupyter(lab, page):
    """A function that opens a file of the course in JupyterLab, in a workspace of its own."""
    page.set_default_timeout(60_000)

    def opened(path):
        name = re.sub(r"\W", "-", str(path))
        page.goto(f"{lab}/lab/workspaces/{name}/tree/{path}?reset")
        page.locator(".jp-NotebookPanel-notebook .jp-Cell, .jp-MarkdownViewer").first.wait_for()
        return page

    return opened


def come_to(page, locator):
    """Scroll down until it is there: JupyterLab makes cells as they come into view."""
    for _ in range(80):
        if locator.count():
            break
        page.locator(".jp-NotebookPanel:visible .jp-WindowedPanel-outer").hover()
        page.mouse.wheel(0, 700)
        page.wait_for_timeout(150)
    found = locator.first
    found.evaluate("it => { const fold = it.closest('details'); if (fold) fold.open = true; }")
    found.scroll_into_view_if_needed()
    return found


def named(page, name):
    return page.locator(f'.lm-DockPanel .lm-TabBar-tabLabel:text-is("{name}")')


@pytest.mark.parametrize("kind", [k for k in LINKS if k[0].endswith("*.ipynb")], ids=" to ".join)
def test_a_link_of_each_kind_opens_when_it_is_clicked(jupyter, kind):
    here, there = min(LINKS[kind], key=str)
    page = jupyter(here)
    name = Path(there).name
    link = come_to(page, page.locator(f'.jp-NotebookPanel:visible a[href*="{name}"]'))
    link.click()
    named(page, name).first.wait_for()


@pytest.mark.parametrize(
    "path", ["chapters/05_shared_memory.ipynb", "exercises/05_shared_memory.ipynb"]
)
def test_a_notebook_looks_as_it_was_stored_before_it_runs(jupyter, path):
    page = jupyter(path)
    cells = json.loads((ROOT / path).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    notebook = page.locator(".jp-NotebookPanel-notebook")
    notebook.locator(".jp-CodeCell").first.wait_for()
    setup = notebook.locator(".jp-CodeCell").first
    setup.locator(".jp-InputPlaceholder").wait_for()  # the set-up cell is folded
    assert not setup.locator(".cm-content").is_visible()
    picture = next(c for c in code if any("<svg" in str(o.get("data")) for o in c["outputs"]))
    drawn = come_to(page, notebook.locator(".jp-OutputArea-output svg[aria-label]"))
    box = drawn.bounding_box()
    assert box and box["width"] > 100 and box["height"] > 40, (picture["id"], box)
    assert "{cite" not in notebook.inner_text()


def test_an_exercise_is_found_in_a_chapter_answered_and_passed(jupyter):
    page = jupyter("chapters/01_three_loops.ipynb")
    link = come_to(page, page.locator('.jp-NotebookPanel a[href*="exercises/01_three_loops"]'))
    link.click()
    page.locator(
        '.jp-NotebookPanel:visible .jp-Cell:has-text("Exercises: three loops")'
    ).first.wait_for()
    notebook = page.locator(".jp-NotebookPanel:visible")
    answer = (ROOT / "exercises/source/01_three_loops/1_loops/answer.py").read_text()
    notebook.locator(".jp-MarkdownCell").first.click()
    for _ in range(3):  # the title, the set-up, the imports
        page.keyboard.press("Shift+Enter")
    cell = come_to(page, notebook.locator('.jp-CodeCell:has-text("exercise 01.1: three")'))
    check = come_to(page, notebook.locator(".jp-CodeCell").filter(has_text='check("01.1")'))

    def verdict(source):
        cell.scroll_into_view_if_needed()
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(source)
        page.keyboard.press("Shift+Enter")
        check.scroll_into_view_if_needed()
        before = check.locator(".jp-InputPrompt").inner_text()
        check.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        page.wait_for_function(
            """([cell, before]) => {
                const now = cell.querySelector('.jp-InputPrompt').innerText;
                return now !== before && /\\d/.test(now);
            }""",
            arg=[check.element_handle(), before],
            timeout=ANSWERS_MS,
        )
        page.wait_for_timeout(300)
        return check.locator(".jp-OutputArea").inner_text()

    answer = f"# exercise 01.1: three loops for any sizes\n{answer}"
    wrong = answer.replace("c[i, j] = 0", "pass")
    assert "passed" not in verdict(wrong)
    assert "01.1 passed" in verdict(answer)
