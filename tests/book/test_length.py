"""book/length.py: what a page asks of its reader is counted as it is rendered."""

import subprocess
import sys

import pytest
from book_example import KERNEL, claim_output, picture
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tiled_matmul.book import cells
from tiled_matmul.book.files import notebook_text
from tiled_matmul.book.length import Length, measured


def code(source, *tags, outputs=()):
    return new_code_cell(source, metadata={"tags": list(tags)}, outputs=list(outputs))


def shown(text, html="<pre>"):
    data = {"text/plain": text, "text/html": html}
    return new_output("execute_result", data=data, execution_count=1)


def page(*parts):
    return measured(new_notebook(cells=[code(cells.setup_source()), *parts]))


JITTED = "import torch\n\n@cuda.jit(fastmath=True)\ndef f(a):\n\n    a[0] = 1\n\nf[1, 1](a)"
LISTING = shown("- a\n\n+ b", '<div class="highlight"><pre>- a</pre></div>')
FOLDED = shown("x" * 99, f"<details><summary>A twin</summary>{LISTING.data['text/html']}</details>")


@pytest.mark.parametrize(
    "cell, lines, teaching",
    [
        (code(cells.kernel_source(KERNEL)), 11, 11),
        (code(JITTED), 5, 3),
        (code("# NBVAL_CHECK_OUTPUT\nx = 1"), 1, 0),
        (code("x = 1", "lesson"), 1, 1),
        (code("x = 1", "hide-input"), 0, 0),
        (code("x = 1", "hide-cell", outputs=[LISTING]), 0, 0),
        (code("changes(f, g)", outputs=[LISTING]), 3, 2),
        (code("changes(f, g)", "hide-input", outputs=[LISTING]), 2, 2),
        (code("changes(f, g)", "hide-output", outputs=[LISTING]), 1, 0),
        (code("show_twin(f)", outputs=[FOLDED]), 1, 0),
        (code("show_twin(f)", "hide-input", outputs=[FOLDED]), 0, 0),
    ],
)
def test_lines_of_code_that_one_sees_and_those_that_teach(cell, lines, teaching):
    counted = page(cell)
    assert (counted.lines, counted.teaching) == (lines, teaching)


def test_words_are_those_that_one_sees():
    text = "# Two words\n\nA [warp](../glossary.md#warp), {cite:p}`goto2008` and <b>$x$</b>."
    cell, figure = picture(1)
    figure[0].data["text/plain"] = "not seen"
    cell.outputs = figure
    counted = page(
        new_markdown_cell(text),
        code("two words", outputs=[shown("three more words")]),
        code("not seen", "hide-input"),
        cell,
    )
    assert counted.prose == 6
    assert counted.words == 6 + 2 + 3 + len("draw(1) Square *1*.".split())


def test_verdicts_and_the_longest_line():
    one, [two] = claim_output(), claim_output()
    kind = next(kind for kind in two.data if "claim" in kind)
    two.data[kind] = [two.data[kind]] * 2
    counted = page(code("x" * 70, outputs=[*one, FOLDED]), code("y", outputs=[two]))
    assert (counted.verdicts, counted.longest) == (3, 70)


FINE = {"words": 5500, "prose": 1, "lines": 2, "teaching": 1, "verdicts": 4, "longest": 91}


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("words", 5501, "5501 words"),
        ("lines", 3, "1 of 3 visible lines"),
        ("verdicts", 5, "5 verdicts"),
        ("longest", 92, "92 characters"),
    ],
)
def test_what_is_too_much_is_said(key, value, message):
    assert not list(Length(**FINE).faults())
    assert not list(Length(**FINE | {"verdicts": 50}).faults(appendix=True))
    [fault] = Length(**FINE | {key: value}).faults()
    assert message in fault


def test_the_report_has_a_line_a_chapter_and_a_status(tmp_path):
    path = tmp_path / "long.ipynb"
    command = [sys.executable, "-m", "tiled_matmul", "notebooks", "check", "--pages", str(path)]
    for words, status in ((10, 0), (6000, 1)):
        notebook = new_notebook(cells=[new_markdown_cell("# A title\n\n" + "word " * words)])
        path.write_text(notebook_text(notebook))
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
        assert f"{words + 2}" in done.stdout
