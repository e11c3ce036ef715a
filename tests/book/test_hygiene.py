"""The hygiene check passes a chapter that is in order and catches each planted fault."""

import json
import re
import subprocess
import sys

import pytest
from book_example import CHAPTER, example_book, example_notebook, save, stamp
from nbformat.v4 import new_code_cell, new_output, new_raw_cell

from tiled_matmul import ROOT
from tiled_matmul.book import cells, hygiene, markers
from tiled_matmul.book.prose import typed_numbers


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return example_book(tmp_path_factory.mktemp("book"))


def faults(notebook, book, restamp=True):
    """Return the faults of `notebook` as the book's chapter, its stamp renewed unless told."""
    if restamp:
        stamp(notebook)
    path = save(notebook, book / CHAPTER)
    return [str(problem) for problem in hygiene.check_notebook(path, book)]


def test_a_chapter_in_order_passes(book):
    assert faults(example_notebook(), book) == []
    assert hygiene.check(root=book) == []


def code(notebook, index):
    return [cell for cell in notebook.cells if cell.cell_type == "code"][index]


def put(index, **fields):
    """Plant a fault: give a code cell other fields."""
    return lambda n: code(n, index).update(fields)


def in_code(index, old, new):
    return lambda n: code(n, index).update(source=code(n, index).source.replace(old, new))


def in_text(index, old, new):
    return lambda n: n.cells[index].update(source=n.cells[index].source.replace(old, new))


def before(index, text):
    return lambda n: code(n, index).update(source=text + code(n, index).source)


def after(index, text):
    return lambda n: n.cells[index].update(source=n.cells[index].source + text)


def figure(index, **fields):
    return lambda n: code(n, index).metadata["mystnb"]["figure"].update(fields)


def printed(kind, **fields):
    return lambda n: code(n, 2).outputs.append(new_output(kind, **fields))


def without(index):
    """Plant a fault: leave a code cell out, and count the others anew."""

    def plant(n):
        n.cells.remove(code(n, index))
        for count, cell in enumerate((c for c in n.cells if c.cell_type == "code"), start=1):
            cell.execution_count = count
            for out in cell.outputs:
                if out.output_type == "execute_result":
                    out.execution_count = count

    return plant


def shown(name, text):
    """Plant a cell that shows a source, with this text as its output."""

    def plant(n):
        cell = code(n, 2)
        cell.source, data = f"show_source(cuda_naive.{name})", {"text/plain": text}
        cell.outputs = [new_output("execute_result", data, execution_count=cell.execution_count)]

    return plant


def no_words(n):
    data = code(n, 3).outputs[0].data
    data["text/html"] = data["text/html"].replace('aria-label="Square 0"', 'aria-label=""')


def two_predictions(n):
    n.cells[2].source = n.cells[2].source.split("<details>", 2)[2].join(["<details>", ""])


MARKER = "# kernel: cuda_naive::cuda_naive_kernel"
NAIVE = cells.kernel_source(MARKER).split("\n", 1)[1] + "\n"
ZERO = {"ename": "ZeroDivisionError", "evalue": "by zero", "traceback": []}
IMPORT = "from tiled_matmul.measure.bench import bench\n"
SAYS = 'notebook.say(f"{name} takes 3.2 ms")'
CLAIMS = 'claim("x", source="5 ms, a page", holds=True, evidence="3.2 ms")'
TYPED = "measured number typed in"
FAULTS = [
    (after(0, "\n\nThe kernel takes 3.2 ms on this GPU."),
     rf"cell 1: line 5: {TYPED} prose: '3.2 ms'"),
    (in_code(1, "row <", "row <="), r"cell 4: differs from the source it names"),
    (put(1, source="# kernel: cuda_naive::no_such_kernel"),
     r"cell 4: ch04_1_cuda_naive.py defines no no_such_kernel"),
    (put(1, source="# kernel: cuda_naive_kernel"),
     r"cell 4: '# kernel: cuda_naive_kernel' is not of the form"),
    (without(0), r"the first code cell is not the set-up cell"),
    (after(1, "\nprint(1)"), r"the set-up cell was edited"),
    (put(0, metadata={"tags": []}), r"the set-up cell's tags must be"),
    (printed("error", **ZERO), r"cell 5: error output: ZeroDivisionError"),
    (printed("stream", name="stderr", text="a warning\n"),
     r"cell 5: output on stderr: 'a warning'"),
    (put(3, source="open('/home/me/x')"), r"cell 6: absolute path '/home/me"),
    (printed("stream", name="stdout", text="saved /tmp/x.png\n"),
     r"cell 5: absolute path '/tmp/x.png' in its output"),
    (after(2, "\n\nOpen C:\\Users\\me."), r"cell 3: absolute path 'C:\\\\Users"),
    (put(3, execution_count=9), r"cell 6: execution count 9, wanted 4"),
    (put(3, execution_count=None), r"cell 6: execution count None, wanted 4"),
    (put(2, source="# NBVAL_CHECK_OUTPUT\n" + "x = 1\n" * 12), r"cell 5: 13 lines, at most 12"),
    (put(2, metadata={"tags": ["raises-exception"]}), r"cell 5: tag 'raises-exception'"),
    (put(2, metadata={"tags": ["nbval-ignore-output"]}), r"cell 5: .* contradict each other"),
    (put(2, outputs=[]), r"cell 5: NBVAL_CHECK_OUTPUT, but there is no text output"),
    (before(3, IMPORT), r"imports tiled_matmul.measure; a chapter imports from tiled_matmul.page"),
    (before(3, "#NBVAL_SKIP\n"), r"cell 6: # NBVAL_SKIP: a tag says"),
    (in_code(1, "# kernel:", "#Kernel:"), r"cell 4: a kernel's marker must be"),
    (before(1, "\n"), r"cell 4: a kernel's marker must be"),
    (shown("cuda_naive_kernel", NAIVE.replace("row", "line")),
     r"cell 5: shows an older source than the ladder's"),
    (shown("no_such_kernel", ""),
     r"cell 5: shows a source that does not exist: .* no no_such_kernel"),
    (figure(3, caption="It takes 3.2 ms."), rf"cell 6: caption: line 1: {TYPED} prose: '3.2 ms'"),
    (put(3, source="print('H200' in machine.name)"), r"cell 6: asks for a GPU by name"),
    (put(3, source=SAYS), rf"cell 6: {TYPED} a sentence: '3.2 ms'"),
    (put(-1, source=CLAIMS), rf"cell 9: {TYPED} a sentence: '3.2 ms'"),
    (two_predictions, r"[12] folded predictions .*, wanted at least 3"),
    (without(5), r"2 figures .*, wanted at least 3"),
    (put(3, metadata={}), r"cell 6: a picture without metadata mystnb.figure"),
    (put(3, outputs=[]), r"cell 6: mystnb.figure, and 0 pictures"),
    (no_words, r"cell 6: an <svg> without aria-label"),
    (after(0, "\n\n![](x.png)"), r"cell 1: an image without alt text"),
    (in_text(2, "<b>Predict.</b>", "**Predict.**"), r"cell 3: Markdown inside <summary>"),
    (in_text(2, "</summary>", " *This* much.</summary>"), r"cell 3: Markdown inside <summary>"),
    (lambda n: n.cells[2].update(source=n.cells[2].source.removesuffix("</details>")),
     r"cell 3: <details> and </details> do not pair up"),
    (lambda n: code(n, 3).outputs[0].data.update({"image/png": "aGVsbG8="}),
     r"cell 6: output of type image/png"),
    (lambda n: n.cells[3].update(id=n.cells[2].id), r"cell 4: cell id 'cell-2' is already taken"),
    (lambda n: n.metadata.kernelspec.update(name="conda-env"), r"kernelspec is .*conda-env"),
    (lambda n: n.metadata.update(widgets={}), r"unknown metadata 'widgets'"),
    (lambda n: n.cells.append(new_raw_cell("x", id="raw")), r"cell 11: a raw cell"),
    (lambda n: code(n, 0).metadata.pop("jupyter"), r"cell 2: must be folded in JupyterLab"),
    (lambda n: code(n, 2).metadata.update(jupyter={"source_hidden": True}),
     r"cell 5: must be open in JupyterLab"),
    (after(0, "\n\n$$\nx\n$$ (eq-x)"), r"cell 1: \$\$ \(eq-x\) shows as it is in JupyterLab"),
    (after(0, "\n\n```{note}\nx\n```"), r"cell 1: ```\{note\} shows as it is in JupyterLab"),
    (after(0, " {cite:p}`goto2008`"), r"cell 1: \{cite:p\}`goto2008` shows as it is in JupyterLab"),
    (lambda n: n.cells[0].update(source="An example"),
     r"must open with a Markdown cell that has a '# ' heading"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "wanted"), FAULTS, ids=[wanted for _, wanted in FAULTS])
def test_a_planted_fault_is_found(book, plant, wanted):
    notebook = example_notebook()
    plant(notebook)
    found = faults(notebook, book)
    assert any(re.search(wanted, fault) for fault in found), found
    # Each plant is one fault; a second message may only be its direct consequence.
    assert len(found) <= 2, found


EXCUSED = "a tag says which outputs are not compared"
NO_MARKER = "is no marker for nbval"
MARKED = [  # what stands above a checked cell, the tags of the cell, and the fault
    ("# NBVAL_CHECK_OUTPUT and more words\n", [], NO_MARKER),
    ("# NBVAL_CHECK_OUTPUT: on a CPU\n", [], NO_MARKER),
    ("# nbval_check_output\n", [], NO_MARKER),
    ("# NBVAL-CHECK-OUTPUT\n", [], NO_MARKER),
    ("# NBVAL CHECK OUTPUT\n", [], NO_MARKER),
    ("# NBVAL_CHECK_OUTPUTS\n", [], NO_MARKER),
    ("# NB_VAL_CHECK_OUTPUT\n", [], NO_MARKER),
    ("x = 1  # NBVAL_CHECK_OUTPUT\n", [], NO_MARKER),
    ("# NBVAL_TEST_NAME: sums\n", [], NO_MARKER),
    ("# pytest_validate_ignore_output\n", [], NO_MARKER),
    ("## NBVAL_SKIP\n", [], EXCUSED),
    ("if True:\n    # NBVAL_IGNORE_OUTPUT\n    x = 1\n", [], EXCUSED),
    ('text = """\n# NBVAL_RAISES_EXCEPTION\n"""\n', [], EXCUSED),
    ("# PYTEST_VALIDATE_IGNORE_OUTPUT\n", [], EXCUSED),
    ("", ["raises-exception"], "tag 'raises-exception'"),
    ("", ["raises_exception"], "tag 'raises_exception'"),
    ("", ["nbval-raises-exception"], "tag 'nbval-raises-exception'"),
    ("", ["nbval-skip"], "tag 'nbval-skip'"),
    ("", ["NBVAL_IGNORE_OUTPUT"], "tag 'NBVAL_IGNORE_OUTPUT'"),
    ("", ["nbval_ignore_output"], "tag 'nbval_ignore_output'"),
    ("", ["nbval-check-output"], "tag 'nbval-check-output'"),
    ("from IPython.display import clear_output\n", [], "clear_output: nbval compares"),
    ("h = display(1, display_id=True)\n", [], "display_id: nbval compares"),
    ("IPython.display.update_display(2)\n", [], "update_display: nbval compares"),
]


@pytest.mark.parametrize(("above", "tags", "wanted"), MARKED)
def test_a_marker_that_nbval_does_not_read_as_it_is_meant_is_found(book, above, tags, wanted):
    notebook = example_notebook()
    cell = code(notebook, 2)
    cell.source = above + cell.source
    cell.metadata["tags"] = tags
    (fault,) = faults(notebook, book)
    assert fault.startswith(f"{CHAPTER}: cell 5: ") and wanted in fault


@pytest.mark.parametrize("line", ["# NBVAL_CHECK_OUTPUT", "##  NBVAL_SKIP", "    # nbval_skip"])
def test_a_marker_in_a_markdown_cell_is_found(book, line):
    notebook = example_notebook()
    notebook.cells[2].source += f"\n\n{line}\n"
    (fault,) = faults(notebook, book)
    assert "cell 3: line" in fault and "nbval reads markers in code cells only" in fault


def test_a_marker_is_one_wherever_nbval_reads_it():
    assert markers.is_checked("x = 1\n  ### NBVAL_CHECK_OUTPUT  \nprint(x)")
    assert not markers.is_checked("print(1)  # NBVAL_CHECK_OUTPUT")


def test_markers_of_exercises_and_solutions_are_looked_at(tmp_path):
    book = example_book(tmp_path)
    for folder in ("exercises", "exercises/solutions"):
        notebook = example_notebook()
        code(notebook, 2).source = "# NBVAL_CHECK_OUTPUT, but not here\nprint([1, 2])"
        code(notebook, 3).metadata["tags"] = ["raises-exception"]
        code(notebook, 4).source = "# NBVAL_CHECK_OUTPUT\nprint(1)"
        code(notebook, 4).execution_count = None
        (book / folder).mkdir(exist_ok=True)
        save(notebook, book / folder / "04_example.ipynb")
    found = [str(fault) for fault in hygiene.check(root=book)]
    for folder in ("exercises", "exercises/solutions"):
        here = [fault for fault in found if fault.startswith(f"{folder}/04_example.ipynb: cell ")]
        assert len(here) == 3
        assert NO_MARKER in here[0] and "raises-exception" in here[1] and "never ran" in here[2]


def test_a_source_as_it_stands_is_no_fault(book):
    notebook = example_notebook()
    shown("cuda_naive_kernel", NAIVE)(notebook)
    assert faults(notebook, book) == []


def test_a_stale_stamp_is_found(book):
    notebook = example_notebook()
    code(notebook, 2).source += "\nprint(3)"
    assert any("stale stamp" in fault for fault in faults(notebook, book, restamp=False))


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda stamp: stamp.pop("driver"), "stamp lacks driver"),
        (lambda stamp: stamp.update(gpu=""), "a machine with no GPU"),
    ],
)
def test_a_stamp_must_be_whole_and_a_gpus(book, change, wanted):
    notebook = example_notebook()
    change(notebook.metadata["tiled_matmul"]["stamp"])
    assert any(wanted in fault for fault in faults(notebook, book, restamp=False))


def test_a_missing_stamp_is_found(book):
    notebook = example_notebook()
    del notebook.metadata["tiled_matmul"]
    assert any("no stamp" in fault for fault in faults(notebook, book, restamp=False))


def test_a_notebook_that_never_ran_is_told_so_once(book):
    notebook = example_notebook()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    assert [fault for fault in faults(notebook, book) if "never run" in fault] == [
        f"{CHAPTER}: never run; `notebooks run` stores its outputs"
    ]


def test_a_figure_needs_a_name_and_a_caption(book):
    notebook = example_notebook()
    code(notebook, 3).metadata["mystnb"]["figure"] = {"name": "roofline"}
    (fault,) = faults(notebook, book)
    assert "cell 6: mystnb.figure needs a name 'fig-…' and a caption" in fault


def test_the_address_is_no_part_of_the_stamp():
    notebook = example_notebook()
    before = cells.code_hash(notebook)
    code(notebook, 0).source += "\n# another address"
    assert cells.code_hash(notebook) == before


def test_another_spelling_is_found(book):
    path = save(example_notebook(), book / CHAPTER)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    assert [p.message for p in hygiene.check_notebook(path, book)] == [
        "not formatted as nbformat writes it; `notebooks sync` does that"
    ]


@pytest.mark.parametrize("path", ["file:///data/x", "a:/home/x", "/work/somebody/x", "C:/Users/me"])
def test_absolute_paths_of_all_kinds_are_found(book, path):
    notebook = example_notebook()
    notebook.cells[0].source += f"\n\nIn {path}."
    assert any("absolute path" in fault for fault in faults(notebook, book))


@pytest.mark.parametrize("value", [[], None, "x"])
def test_metadata_of_the_wrong_kind_is_one_fault(book, value):
    for place in ("tiled_matmul", "mystnb", "figure"):
        notebook = example_notebook()
        cell = code(notebook, 3)
        if place == "tiled_matmul":
            notebook.metadata[place] = value
        elif place == "mystnb":
            cell.metadata[place] = value
        else:
            cell.metadata["mystnb"][place] = value
        (fault,) = faults(notebook, book, restamp=False)
        assert f"{place}: {value!r} is no object" in fault


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"cells": [], "metadata": {"x": NaN}, "nbformat": 4}', "NaN is not a JSON number"),
        ("{", "not JSON"),
        ("[]", 'no "cells"'),
        ('{"cells": [], "metadata": {}}', 'no "nbformat"'),
        ('{"cells": [], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}', "format 3.0"),
        ('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}', "format 4.4"),
        ('{"cells": 7, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "cells: 7 is not"),
        ('{"cells": [{}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "cells/0"),
    ],
)
def test_a_malformed_notebook_is_one_line_that_names_it(book, text, wanted):
    path = book / CHAPTER
    path.write_text(text)
    (problem,) = hygiene.check_notebook(path, book)
    assert str(problem).startswith(CHAPTER) and wanted in str(problem)
    assert "\n" not in str(problem)


def test_bytes_and_folders_and_nothing_are_no_notebooks(book, tmp_path):
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "bytes.ipynb", tmp_path, tmp_path / "nowhere.ipynb"):
        assert len(hygiene.check_notebook(path, book)) == 1


def test_chapters_and_table_of_contents_must_agree(book):
    save(example_notebook(), book / CHAPTER)
    extra = save(example_notebook(), book / "chapters" / "02_extra.ipynb")
    found = [str(problem) for problem in hygiene.check(root=book)]
    assert "chapters/02_extra.ipynb: not in _toc.yml" in found
    assert any("figure 'fig-01-0' is also in" in fault for fault in found)
    extra.unlink()
    toc = (book / "_toc.yml").read_text()
    (book / "_toc.yml").write_text(toc + "      - file: nowhere\n")
    assert "_toc.yml: there is no page nowhere" in map(str, hygiene.check(root=book))
    (book / "_toc.yml").write_text(toc)


def test_every_page_of_the_book_is_read(book):
    save(example_notebook(), book / CHAPTER)
    toc = (book / "_toc.yml").read_text()
    (book / "_toc.yml").write_text(toc + "      - file: extra\n")
    (book / "extra.md").write_text("# Extra\n\nIt takes 3.2 ms.\n")
    (book / "chapters" / "more").mkdir()
    nested = save(example_notebook(), book / "chapters" / "more" / "03.ipynb")
    glossary = (book / "glossary.md").read_bytes()
    (book / "glossary.md").write_bytes(b"\xff")
    notebook = example_notebook()
    figure(4, name="fig-01-0")(notebook)
    save(notebook, book / CHAPTER)
    found = [str(problem) for problem in hygiene.check(root=book)]
    (book / "_toc.yml").write_text(toc)
    (book / "glossary.md").write_bytes(glossary)
    nested.unlink()
    assert found == [
        "chapters/more/03.ipynb: a chapter lies in chapters/ itself",
        f"{CHAPTER}: figure 'fig-01-0' is also in 01_example.ipynb",
        "glossary.md: not UTF-8 at byte 0",
        "extra.md:3: measured number typed in prose: '3.2 ms'",
    ]


@pytest.mark.parametrize("text", ["root: [", "5", "root: 5", "root: intro\nchapters: [{file: }]"])
def test_a_malformed_table_of_contents_is_one_fault(book, text):
    toc = (book / "_toc.yml").read_text()
    (book / "_toc.yml").write_text(text)
    found = [str(problem) for problem in hygiene.check(root=book)]
    (book / "_toc.yml").write_text(toc)
    assert len(found) == 1 and found[0].startswith("_toc.yml: ") and "\n" not in found[0]


def test_the_readme_ladder_must_be_that_of_the_results(book):
    save(example_notebook(), book / CHAPTER)
    readme = (book / "README.md").read_text()
    (book / "README.md").write_text(readme.replace("25%", "99%", 1))
    assert any("not that of results" in str(problem) for problem in hygiene.check(root=book))
    (book / "README.md").write_text("# R\n")
    assert any("lacks the markers" in str(problem) for problem in hygiene.check(root=book))
    (book / "README.md").write_text(readme + "\nIt is 7 times faster.\n")
    assert any("'7 times faster'" in str(problem) for problem in hygiene.check(root=book))
    (book / "README.md").write_text(readme)


MEASURED = [
    "It takes 3.2 ms.", "about 30 µs", "runs in 12 s", "in 0.5s", "12 seconds", "40 GFLOPS",
    "1.5 TFLOP/s", "reaches 1,234 GFLOP/s and", "moves 4.8 TB/s", "97% of cuBLAS",
    "97 % of the peak", "5 times faster", "10× faster", "a 3x speed-up", "2.5-fold faster",
    "twice as fast", "eight times slower", "half the speed", "| a | 3 ms |", "$3$ or 4\\,ms",
    "The sheet says 3 ms {cite:p}`x`. We saw 4 ms.", "```{note}\nIt takes 3 ms.\n```",
    "````{tip} 3 ms\n```{code} python\nx\n```\n````", "```{note}\nx\n```\n3 ms", "takes ≈ 3 ms",
    "**3** ms", "<b>3</b> ms", "$3\\,\\mathrm{ms}$", "3 msec", "97 per cent of cuBLAS",
]  # fmt: skip
ALLOWED = [
    "`3 ms`", "```\n3 ms\n```", "~~~text\n3 ms\n~~~", "4.8 TB/s {cite:p}`h200datasheet`.",
    "[H200](https://example.org) has 4.8 TB/s", "so 33/5 = 6.6 times slower", "32 bytes",
    "128 threads", "in the 1990s it", "3 sectors", "K times N", "reads B 3 times", "128 sums",
    "```{code} python\n3 ms\n```", "so 33/5 ≈ 6.6 times slower",
    "a cache of 50 MB", "50% of the elements", "N=4 s-expressions", "2 x 3 tiles", "five loops",
]  # fmt: skip


@pytest.mark.parametrize("text", MEASURED)
def test_typed_measurements_are_found(text):
    assert list(typed_numbers(text))


@pytest.mark.parametrize("text", ALLOWED)
def test_other_numbers_are_left_alone(text):
    assert list(typed_numbers(text)) == []


def test_a_find_names_its_line():
    assert list(typed_numbers("a\n\nb `1 ms`\nc 2 ms")) == [(4, "2 ms")]


def test_the_core_imports_no_jupyter():
    program = (
        "import sys, tiled_matmul, tiled_matmul.book.cli, tiled_matmul.book.run\n"
        "import tiled_matmul.book.hygiene\n"
        "heavy = ('nbformat', 'nbclient', 'sphinx', 'numba', 'torch')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_kernel_source_takes_constants_classes_and_decorators(tmp_path):
    ladder = tmp_path / "src" / "tiled_matmul" / "ladder"
    ladder.mkdir(parents=True)
    file = ladder / "ch04_1_x.py"
    file.write_text("T = 4\n\n\n@a\n@b(1)\ndef k(c):\n    c[0] = T\n\n\nZ = 1\n")
    marker = "# kernel: x::T, k"
    wanted = f"{marker}\nT = 4\n\n\n@a\n@b(1)\ndef k(c):\n    c[0] = T"
    assert cells.kernel_source(marker, tmp_path) == wanted


def test_a_shown_source_is_read_where_it_is_defined(tmp_path):
    package = tmp_path / "src" / "tiled_matmul"
    for folder in ("ladder", "kit"):
        (package / folder).mkdir(parents=True)
    (package / "ladder" / "ch04_1_x.py").write_text("from tiled_matmul.kit.y import z\n")
    (package / "kit" / "y.py").write_text("def z():\n    return 1\n")
    assert cells.shown_source("show_source(x.z)", tmp_path) == "def z():\n    return 1"
    (package / "kit" / "y.py").write_text("")
    with pytest.raises(ValueError, match="y.py defines no z at its top level"):
        cells.shown_source("show_source(x.z)", tmp_path)


def with_figure(name, html=None):
    """Return the example with one more cell, for a figure to change, and its stored output."""
    notebook = example_notebook()
    data = cells.figure_outputs("warp") if html is None else {"text/html": html}
    output = new_output("execute_result", data=data, execution_count=99)
    cell = new_code_cell(f'explore("{name}")', id="figure", outputs=[output])
    cell.execution_count = 1 + sum(each.cell_type == "code" for each in notebook.cells)
    notebook.cells.append(cell)
    return notebook


def test_a_still_picture_needs_no_caption(book):
    assert faults(with_figure("warp"), book) == []


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("race", "not that of 'race' now"), ("wrap", "unknown figure 'wrap'; there are climb")],
)
def test_a_still_picture_of_another_figure_is_found(book, name, wanted):
    assert any(wanted in fault for fault in faults(with_figure(name), book))


def test_sync_renews_a_still_picture(book, tmp_path):
    notebook = with_figure("warp", "<figure>old</figure>")
    assert any("`notebooks sync` renews it" in fault for fault in faults(notebook, book))
    cells.synchronise(notebook, CHAPTER, book)
    assert faults(notebook, book) == []


def test_on_a_page_the_figure_stands_in_its_cells_place():
    from tiled_matmul.book.sphinx import place_figures

    source = [json.dumps(with_figure("warp"))]
    place_figures(None, "chapters/06_banks", source)
    (placed,) = [cell for cell in json.loads(source[0])["cells"] if cell["id"] == "figure"]
    assert placed["cell_type"] == "markdown"
    assert placed["source"] == "```{tiled-explore} warp\n```"
