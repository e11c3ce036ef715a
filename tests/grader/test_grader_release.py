"""grader/release.py: what learners get holds no solution and no hidden case, and grades."""

import json
import os
import subprocess
import sys

import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader.release import ADDED, _toc, release, without_hidden

SPEC = """\
CASES = (
    Case(9, 9, 9),
    Case(9, 9, 9, hidden=True),
    Case(
        7, 5, 3,
        hidden=True,
    ),
    Case(1, 2, 3, hidden=False),
)
"""


def test_hidden_cases_are_cut_out_and_the_rest_stays():
    assert (
        without_hidden(SPEC)
        == "CASES = (\n    Case(9, 9, 9),\n    Case(1, 2, 3, hidden=False),\n)\n"
    )


def test_a_hidden_case_that_cannot_be_cut_out_is_told():
    with pytest.raises(ValueError, match="line 2: a hidden case needs a comma behind it"):
        without_hidden("CASES = tuple(\n    Case(n, hidden=True) for n in (1, 2)\n)\n")


def test_files_that_exercises_were_added_from_stay_behind():
    names = ("exercises/mine.py", "exercises/mine/too.py")
    assert all(ADDED.fullmatch(name) for name in names)
    names = ("exercises/example.py", "exercises/05_shared_memory.ipynb", "src/exercises/x.py")
    assert not any(ADDED.fullmatch(name) for name in names)


def test_the_pages_of_solutions_leave_the_table_of_contents():
    before, after = "parts:\n  - caption: Exercises\n    x: 1\n", "  - caption: Z\n"
    assert _toc(f"{before}  - caption: Solutions\n    y: 2\n{after}") == before + after


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ValueError, match="is there already and not empty"):
        release(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_outside_of_git_nothing_is_written(tmp_path):
    (tmp_path / "course").mkdir()
    with pytest.raises(ValueError, match="is no checkout of git"):
        release(tmp_path / "copy", tmp_path / "course")
    assert not (tmp_path / "copy").exists()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a copy of what git tracks needs git")
def test_the_copy_holds_no_answers_and_grades(tmp_path):
    copy = tmp_path / "copy"
    names = release(copy)
    assert not (copy / "exercises/solutions").exists() and not (copy / "tests").exists()
    assert "exercises/05_shared_memory.ipynb" in names
    specs = sorted((copy / "src/tiled_matmul/grader/specs").glob("ch*.py"))
    assert specs and all("hidden=True" not in path.read_text() for path in specs)
    for path in copy.rglob("*.ipynb"):
        assert "# >>> solution" not in path.read_text(encoding="utf-8"), path
    # The cases that are left still tell a barrier in a condition from one on everybody's way.
    path = copy / "exercises/05_shared_memory.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    answer = (ROOT / "tests/grader_zoo/05_3/in_a_condition.py").read_text(encoding="utf-8")
    (cell,) = [cell for cell in notebook["cells"] if cell["id"] == "exercise-05-3"]
    cell["source"] = answer.split("\n", 2)[2]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tiled_matmul", "grade", "exercises/05_shared_memory.ipynb"]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "05.1  WRONG" in done.stdout and "05.3  RACE" in done.stdout
    assert "outside of every condition" in done.stdout
