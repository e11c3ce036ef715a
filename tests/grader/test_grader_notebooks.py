"""grader/: the exercise notebooks as they are stored and run, and the command line."""

import json
import os
import shutil
from pathlib import Path

import nbformat
import pytest

from tiled_matmul import __main__
from tiled_matmul.book.files import notebook_text, parse_notebook
from tiled_matmul.grader import cells, pool, practice, starters
from tiled_matmul.grader.folders import exercises
from tiled_matmul.machine import sandbox

PATHS = starters.solutions()
STARTER = starters.FOLDER / "05_shared_memory.ipynb"
LOOPS = starters.FOLDER / "01_three_loops.ipynb"  # its answers need no kernel: graded in no time
FIVE = exercises("05")
in_sandbox = pytest.mark.skipif(not pool.sandbox_works(), reason="bubblewrap makes no sandbox here")


def read(path: Path):
    return parse_notebook(path.read_text(encoding="utf-8"), path)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda nb: nb.cells[0].update(source="# Other"), "is not what `exercises sync` makes"),
        (lambda nb: nb.cells.pop(), "is not what `exercises sync` makes"),
    ],
)
@pytest.mark.sample(2)
def test_a_starter_that_drifts_is_a_fault(change, word, tmp_path):
    folder = tmp_path / "exercises"
    shutil.copytree(starters.FOLDER, folder)
    notebook = read(folder / STARTER.name)
    change(notebook)
    (folder / STARTER.name).write_text(notebook_text(notebook), encoding="utf-8")
    assert any(word in fault for fault in starters.faults(folder))
    changed = starters.sync(folder)
    assert [path.name for path in changed if changed[path]] == [STARTER.name]
    assert starters.faults(folder) == []


def test_a_cell_of_the_course_that_defines_what_an_exercise_asks_for_is_a_fault(tmp_path):
    folder = tmp_path / "exercises"
    shutil.copytree(starters.FOLDER, folder)
    (run,) = folder.glob("source/17_*/3_*/run.py")
    run.write_text(run.read_text("utf-8").replace("told", "ring"), "utf-8")
    starters.sync(folder)
    assert [fault.partition("cell ")[2] for fault in starters.faults(folder)] == [
        "run-17-3 defines ring, as 17.2 does"
    ] * 2


def test_what_the_course_runs_below_an_answer_is_not_graded(tmp_path, monkeypatch):
    notebook = read(LOOPS)
    below = next(cell for cell in notebook.cells if cell.id == "check-01-1")
    below.source = f"loops = [1, 2, 3]\n{below.source}"
    handed_out = tuple(cells.Cell(c.cell_type, c.id, c.source) for c in notebook.cells)
    monkeypatch.setattr(cells, "pristine", lambda chapter: (LOOPS, handed_out, "1"))
    mine = next(cell for cell in notebook.cells if cell.id == "exercise-01-1")
    mine.source = mine.source.replace("pass", "return c")
    path = tmp_path / "a.ipynb"

    def graded():
        path.write_text(notebook_text(notebook), encoding="utf-8")
        found = cells.collect(path)
        return found.answers[0].source, found.notices

    assert graded() == (mine.source, ())
    below.source += "\n# changed: now it is the learner's"
    source, notices = graded()
    assert source == below.source and "2 cells define loops" in notices[0]


def test_a_source_that_changed_loses_its_output_and_the_others_keep_theirs(tmp_path):
    folder = tmp_path / "exercises"
    shutil.copytree(starters.FOLDER, folder)
    (run,) = folder.glob("source/05_*/4_*/run.py")
    run.write_text(run.read_text("utf-8").replace("4097", "4099"), "utf-8")
    (fault, other) = starters.faults(folder)
    assert "solutions/05_shared_memory.ipynb: is not what" in fault and STARTER.name in other
    starters.sync(folder)
    cells = {cell.id: cell for cell in read(folder / "solutions" / STARTER.name).cells}
    assert "4099" in cells["run-05-4"].source and cells["run-05-4"].outputs == []
    assert cells["run-05-1"].outputs and cells["check-05-4"].outputs


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_starter_and_solution_differ_in_solution_cells_alone(path):
    mine = {exercise.cell for exercise in exercises(starters.chapter_of(path))}
    solved, starter = read(path).cells, read(starters.FOLDER / path.name).cells
    for cell in solved:  # which lie one folder deeper
        cell.source = cell.source.replace("](../../", "](../")
    assert [cell.id for cell in solved] == [cell.id for cell in starter]
    different = {x.id for x, y in zip(solved, starter, strict=True) if x != y}
    assert different == mine | {"title"}


@pytest.fixture(scope="module")
def run_starter():
    """The starter notebook as a new learner runs it, errors and all."""
    from nbclient import NotebookClient

    notebook = nbformat.from_dict(read(STARTER))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True).execute()
    return {cell.id: cell for cell in notebook.cells}


def test_the_starter_runs_and_shows_zeros_where_81_numbers_will_be(run_starter):
    for name, cell in run_starter.items():
        errors = [out for out in cell.get("outputs", ()) if out.output_type == "error"]
        assert bool(errors) == name.startswith("check"), (name, errors)
    (out,) = run_starter["run-05-1"].outputs
    assert (
        set(out.text.split()) <= {"[[0.", "[0.", "0.", "0.]", "0.]]"} and out.text.count("0") == 81
    )
    (stored,) = next(c for c in read(STARTER).cells if c.id == "run-05-1").outputs
    (given,) = next(c for c in read(STARTER).cells if c.id == "given-05-1").outputs
    assert stored.text == given.text and "61272" in stored.text


def test_a_check_says_what_is_wrong_and_which_hint_is_next(run_starter):
    last = run_starter["check-05-3"].outputs[-1]
    assert last.ename == "NotYet" and "Read hint 2 of 3" in last.evalue
    assert "no barrier keeps them together" in "".join(last.traceback)
    assert "practice.py" not in "".join(last.traceback)


def test_a_check_of_a_race_draws_the_learners_own_kernel(run_starter):
    (picture,) = [out for out in run_starter["check-05-3"].outputs if "data" in out]
    assert "<svg" in picture.data["text/html"] and "left" in picture.data["text/html"]


def test_check_needs_a_notebook_or_a_source(capsys):
    with pytest.raises(ValueError, match="grade NOTEBOOK"):
        practice.check("05.1")
    with pytest.raises(ValueError, match=r"no exercise '9.9'; there are 01.1, .*05.1"):
        practice.check("9.9")
    (path,) = [path for path in PATHS if path.name.startswith("05")]
    practice.check("05.1", starters.answers(path)["05.1"][1])
    assert capsys.readouterr().out.startswith("05.1 passed\n")


def test_the_command_line_grades_and_keeps_progress(tmp_path, capsys):
    out = tmp_path / "grades.json"
    solved = starters.FOLDER / "solutions" / LOOPS.name
    assert __main__.main(["grade", str(solved), str(LOOPS), "--json", str(out)]) == 1
    text = capsys.readouterr().out
    for one in exercises("01"):
        assert f"{one.name}  PASS          {one.points} of {one.points}" in text
        assert f"{one.name}  WRONG         0 of {one.points}" in text
    stored = json.loads(out.read_text())["submissions"]
    assert [one["path"] for one in stored] == [str(solved), str(LOOPS)]
    names = {"exercise", "status", "points", "max_points", "hint", "evidence"}
    assert all(set(one) == names for report in stored for one in report["exercises"])
    # The best counts, and the starter was graded last.
    assert __main__.main(["grade", "--progress"]) == 0
    most = sum(one.points for one in exercises("01"))
    assert f"in all {most} of " in capsys.readouterr().out
    practice.state_file().write_text("[1, 2")
    assert practice.progress() == {}


def test_the_solution_notebook_is_read():
    (path,) = [path for path in PATHS if path.name.startswith("05")]
    assert [found.status for found in cells.collect(path).answers] == ["FOUND"] * len(FIVE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a notebook"),
        (["x.ipynb", "--csv", "y"], "--csv goes with --teacher"),
        (["--teacher", "/nowhere"], "/nowhere is not a folder"),
        (["--teacher", ".", "--jobs", "0"], "--jobs must be 1 or more"),
        (["--teacher", ".", "--csv", "/nowhere/x.csv"], "no folder for /nowhere/x.csv"),
        (["--teacher", ".", "x.ipynb"], "--teacher takes one folder"),
    ],
)
def test_mistakes_at_the_command_line_are_one_line(arguments, words, capsys, monkeypatch):
    monkeypatch.setattr(pool, "sandbox_works", lambda: True)
    assert __main__.main(["grade", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_file_that_is_not_there_is_a_line(capsys):
    assert __main__.main(["grade", "/nowhere.ipynb"]) == 2
    assert "/nowhere.ipynb: cannot be read: No such file" in capsys.readouterr().out


def test_without_bubblewrap_the_teacher_is_refused_and_the_learner_warned(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    assert __main__.main(["grade", "--teacher", str(tmp_path)]) == 2
    assert "apt install bubblewrap" in capsys.readouterr().err
    assert __main__.main(["grade", str(LOOPS)]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("without bubblewrap") == 1 and "01.1  WRONG" in printed.out


@in_sandbox
def test_the_teachers_formats_agree(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(LOOPS, folder / 'ann\'s "own".ipynb')
    shutil.copy(starters.FOLDER / "solutions" / LOOPS.name, folder / "bob.ipynb")
    asked = exercises("01")
    most = sum(one.points for one in asked)
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "junit", "html")}
    options = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    assert __main__.main(["grade", "--teacher", str(folder), *options]) == 0
    reports = json.loads(files["json"].read_text())["submissions"]
    assert [sum(e["points"] for e in report["exercises"]) for report in reports] == [0, most]
    assert files["csv"].read_text().count("bob.ipynb") == len(asked)
    assert f'tests="{len(asked)}" failures="{len(asked)}"' in files["junit"].read_text()
    assert "ann&#x27;s" in files["html"].read_text()
    written = sorted(path.name for path in files.values())
    assert sorted(os.listdir(tmp_path)) == ["in", *written, "state"]


KEPT = [
    ".ipynb_checkpoints/01-checkpoint.ipynb",
    "ann/.ipynb_checkpoints/01-checkpoint.ipynb",
    "ann/week 1/.ipynb_checkpoints/01-checkpoint.ipynb",
    "__MACOSX/ann/._01.ipynb",
    "ann/__MACOSX/01.ipynb",
    "._01.ipynb",
    "ann/.~01.ipynb",
    "ann/week 1/.hidden/01.ipynb",
    "ann/#01.ipynb#",
    "ann/01.ipynb~",
    "01.ipynb~",
    "~$01.ipynb",
    "ann/01.ipynb.bak",
    "ann/.01.ipynb.swp",
    ".DS_Store",
    "Thumbs.db",
]


def test_what_jupyter_and_editors_keep_is_no_submission_and_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pool, "sandbox_works", lambda: True)
    monkeypatch.setattr(practice, "grade", lambda path, *more, **named: {"exercises": []})
    for name in (*KEPT, "ann/week 1/01.ipynb", "bob.old/01-checkpoint.ipynb", "carol.ipynb"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(LOOPS, path)
    options = ["--json", str(tmp_path / "out.json"), "--jobs", "1"]
    assert __main__.main(["grade", "--teacher", str(tmp_path / "in"), *options]) == 0
    reports = json.loads((tmp_path / "out.json").read_text())["submissions"]
    assert [(one["path"], "error" in one) for one in reports] == [
        ("ann/week 1/01.ipynb", False),
        ("bob.old/01-checkpoint.ipynb", False),
        ("carol.ipynb", False),
    ]
    said = capsys.readouterr().err
    for name in KEPT:
        parts = [Path(*Path(name).parts[: n + 1]) for n in range(len(Path(name).parts))]
        assert any(f"grade: {part}" in said for part in parts), name
    assert said.count("skipped, as hidden files") == len(KEPT)


def test_a_checkpoint_that_is_named_is_not_graded(tmp_path, capsys):
    (tmp_path / ".ipynb_checkpoints").mkdir()
    for name in (".ipynb_checkpoints/01-checkpoint.ipynb", "01.ipynb"):
        shutil.copy(starters.FOLDER / "solutions" / LOOPS.name, tmp_path / name)
    checkpoint = str(tmp_path / ".ipynb_checkpoints/01-checkpoint.ipynb")
    assert __main__.main(["grade", checkpoint]) == 2
    assert f"{checkpoint}: skipped" in capsys.readouterr().err
    assert __main__.main(["grade", checkpoint, str(tmp_path / "01.ipynb")]) == 0


def test_a_folder_of_hidden_files_alone_is_an_error(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pool, "sandbox_works", lambda: True)
    shutil.copy(LOOPS, tmp_path / ".01.ipynb")
    assert __main__.main(["grade", "--teacher", str(tmp_path)]) == 2
    assert "nothing but hidden files" in capsys.readouterr().err


@pytest.mark.long
def test_nbval_explains_and_decides_nothing(capsys, tmp_path):
    text = STARTER.read_text(encoding="utf-8")
    path = tmp_path / "mine.ipynb"
    # An output that was edited to be the zeros of an empty answer changes nothing.
    path.write_text(text.replace(" 3672", "    0"), encoding="utf-8")
    assert __main__.main(["grade", "--nbval", str(path)]) == 1
    said = capsys.readouterr().out
    assert "05.1  WRONG         0 of 4" in said
    assert "nbval, cell run-05-1:" in said and "3672" in said
    assert "nbval, cell given-05-1:" not in said
