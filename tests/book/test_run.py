"""Runs and refreshes: outputs and stamp are stored together, or the file stays byte for byte."""

import argparse
import json

import pytest
from book_example import CHAPTER, KERNEL, example_book, example_notebook, save
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tiled_matmul import ROOT
from tiled_matmul.book import cells, cli, run
from tiled_matmul.book.files import NotebookError, parse_notebook
from tiled_matmul.book.generated import STAMP_KEYS


@pytest.fixture
def no_setup(monkeypatch):
    """The kernel does not load the course, which takes it seconds."""
    monkeypatch.setattr(run, "synchronise", lambda notebook, path, root: None)
    monkeypatch.setattr(run, "QUESTION", "print('{}')")


def small(*sources):
    code = [new_code_cell(source, id=f"c{index}") for index, source in enumerate(sources)]
    return new_notebook(cells=[new_markdown_cell("# Small", id="title"), *code])


def read(path):
    return parse_notebook(path.read_text(), path)


def command(*arguments):
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["notebooks", *map(str, arguments)])
    return args.run(args)


def test_run_stores_outputs_and_a_stamp_and_notes_what_is_odd(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # as where the course is installed
    monkeypatch.setenv("TILED_MATMUL_BACKEND", "simulator")
    warn = "import warnings\nwarnings.warn('low occupancy')"
    path = save(small("print(6 * 7)", "import os\nos.getcwd()", warn), tmp_path / "a.ipynb")
    path.chmod(0o640)
    seen = []
    notes = run.run(path, on_progress=lambda cell, count: seen.append((cell, count)))
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4]
    assert cells.is_setup(code[0]) and "No GPU is used" in code[0].outputs[0].text
    assert code[1].outputs[0].text == "42\n"
    assert code[2].outputs[0].data["text/plain"] == repr(str(tmp_path))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    stamp = notebook.metadata["tiled_matmul"]["stamp"]
    assert sorted(stamp) == sorted(STAMP_KEYS)
    assert stamp["code_hash"] == cells.code_hash(notebook)
    assert stamp["gpu"] == "" and stamp["versions"]["numpy"] and stamp["seconds"] > 0
    assert all("execution" not in cell.metadata for cell in notebook.cells)
    assert path.stat().st_mode & 0o777 == 0o640
    assert "without a GPU" in notes[0] and "cell 5 wrote to stderr" in notes[1]
    assert len(notes) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["a.ipynb"]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("1 / 0", "cell 3: ZeroDivisionError: division by zero"),
        ("import time\ntime.sleep(60)", "cell 3: still running after 1 s"),
        ("import os\nos._exit(3)", "cell 3: the kernel died"),
    ],
)
def test_a_failing_cell_leaves_the_file_as_it_was(tmp_path, no_setup, capsys, source, wanted):
    path = save(small("x = 1", source, "x"), tmp_path / "a.ipynb")
    before = path.read_bytes()
    assert command("run", "--timeout", "1", path) == 1
    error = capsys.readouterr().err
    assert wanted in error and "Traceback" not in error and "as it was" in error
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.ipynb"]


def test_an_edit_during_the_run_is_kept(tmp_path, no_setup):
    path = tmp_path / "a.ipynb"
    save(small(f"open({str(path)!r}, 'a').write(' ')"), path)
    with pytest.raises(run.RunError, match="was changed during the run"):
        run.run(path)
    assert path.read_text().endswith("\n ")


def test_only_what_is_the_same_everywhere_is_refreshed(tmp_path, no_setup, monkeypatch, capsys):
    machine = dict.fromkeys(STAMP_KEYS, "known")
    monkeypatch.setattr(run, "QUESTION", f"import json\nprint(json.dumps({machine!r}))")
    record = tmp_path / "record.txt"
    record.write_text("1")
    reading = f"print(open({str(record)!r}).read())"
    number = f"open({str(record)!r}).read()"
    warning = f"import sys\nprint({number})\nif {number} != '1':\n    sys.stderr.write('!')"
    times = f"print('3 µs' if {number} == '1' else 'On an H100 or H200, times are shown here.')"
    made = small(f"# NBVAL_CHECK_OUTPUT\n{reading}", reading, reading, "'x'", warning, times)
    made.cells[3].metadata["tags"] = ["nbval-ignore-output"]
    path = save(made, tmp_path / "a.ipynb")
    assert command("run", "--checked", path) == 1  # it was never run
    assert "no stamp" in capsys.readouterr().err
    run.run(path)
    assert run.refresh(path) == ([], [])
    record.write_text("2")
    before = read(path)
    assert command("run", "--checked", path) == 0
    said = capsys.readouterr()
    assert "cells 2, 3 refreshed" in said.out
    assert "cell 6 differs" in said.err and "cell 7 differs" in said.err
    after = read(path)
    texts = [cell.outputs[0].get("text") for cell in after.cells[1:]]
    assert texts == ["2\n", "2\n", "1\n", None, "1\n", "3 µs\n"]
    assert after.metadata == before.metadata
    assert after.cells[4:] == before.cells[4:]


def test_run_wants_paths_or_all(capsys):
    assert command("run") == 2
    assert command("run", "--all", "x.ipynb") == 2
    assert capsys.readouterr().err.count("give either notebooks or --all") == 2


@pytest.mark.parametrize("action", ["run", "sync"])
def test_a_malformed_notebook_is_one_line_and_status_2(tmp_path, capsys, action):
    path = tmp_path / "a.ipynb"
    path.write_text("{")
    assert command(action, path) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(path) in error and "not JSON" in error
    assert path.read_text() == "{"


def test_check_reports_and_fails(tmp_path, capsys):
    path = save(small("x"), tmp_path / "a.ipynb")
    assert command("check", path) == 1
    assert "the first code cell is not the set-up cell" in capsys.readouterr().out


def test_check_wants_files_that_exist(tmp_path, capsys):
    assert command("check", tmp_path / "nowhere.ipynb") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_sync_renews_what_is_generated_and_nothing_else(tmp_path):
    book = example_book(tmp_path)
    path = book / CHAPTER
    before = path.read_bytes()
    assert run.sync(path, book) is False and path.read_bytes() == before
    notebook = example_notebook()
    notebook.metadata.kernelspec["name"] = "other"
    notebook.cells[1].source = f"{cells.SETUP_MARK}, but old"
    notebook.cells[3].source = f"{KERNEL}\npass"
    save(notebook, path)
    assert run.sync(path, book) is True
    assert path.read_bytes() == before


def test_sync_takes_what_colab_saves(tmp_path):
    """Colab saves no cell ids and an older minor version; the set-up cell may be gone."""
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "source": ["x = 1"], "metadata": {}, "outputs": []}
    data = {"cells": [{**cell, "execution_count": None}], "metadata": {}}
    path.write_text(json.dumps({**data, "nbformat": 4, "nbformat_minor": 0}))
    assert run.sync(path) is True
    notebook = read(path)
    assert cells.is_setup(notebook.cells[0]) and notebook.cells[1].source == "x = 1"
    assert all(cell.id for cell in notebook.cells)


def test_sync_refuses_a_kernel_that_is_not_there(tmp_path):
    path = save(small("# kernel: nothing::f"), tmp_path / "a.ipynb")
    before = path.read_bytes()
    with pytest.raises(NotebookError, match=r"cell 3: .*no module 'nothing'"):
        run.sync(path)
    assert path.read_bytes() == before


def test_sync_through_a_link_keeps_the_link(tmp_path):
    real = save(small("x = 1"), tmp_path / "real.ipynb")
    before = real.read_bytes()
    link = tmp_path / "link.ipynb"
    link.symlink_to("real.ipynb")
    assert run.sync(link) is True
    assert link.is_symlink() and real.read_bytes() != before


@pytest.mark.parametrize("cells", [None, [1], {"a": 1}])
def test_sync_refuses_an_old_notebook_that_is_none(tmp_path, cells):
    path = tmp_path / "a.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    )
    with pytest.raises(NotebookError, match=r"a\.ipynb: not a valid notebook: cells"):
        run.sync(path)
