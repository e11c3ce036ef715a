"""grader/adding.py: one file and one command add an exercise, or nothing is written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader import adding

EXAMPLE = ROOT / "exercises/example.py"
TEXT = EXAMPLE.read_text(encoding="utf-8")
NOTEBOOK = "04_grid_and_blocks.ipynb"


@pytest.fixture
def course(tmp_path):
    """A copy of the course, and a function that runs its commands."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = tmp_path / "course" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, target)
    folder = tmp_path / "course"
    env = dict(os.environ, PYTHONPATH=str(folder / "src"), XDG_STATE_HOME=str(tmp_path))

    def run(*arguments):
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)

    run.folder = folder
    return run


def content(folder: Path) -> dict[str, bytes]:
    """What the files of a folder hold, but for what Python and the tests leave there."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts)
    }


def test_the_example_becomes_a_part_of_the_course(course):
    before = content(course.folder)
    done = course("tiled_matmul", "exercises", "add", "exercises/example.py")
    assert done.returncode == 0, done.stderr
    assert "rounded_down: WRONG, as meant" in done.stdout
    after = content(course.folder)
    new = set(after) - set(before)
    zoo = {name for name in new if name.startswith("tests/grader_zoo/04_3/")}
    assert len(zoo) == 8 and new - zoo == {"src/tiled_matmul/grader/specs/ch04_3.py"}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"exercises/{NOTEBOOK}", f"exercises/solutions/{NOTEBOOK}"}
    for name in (*new, *changed):
        assert f"{course.folder / name}: written" in done.stdout

    assert course("tiled_matmul", "exercises", "check").returncode == 0
    graded = course("tiled_matmul", "grade", f"exercises/solutions/{NOTEBOOK}")
    assert "04.3  PASS          1 of 1" in graded.stdout
    graded = course("tiled_matmul", "grade", f"exercises/{NOTEBOOK}")
    assert "is [1, 1], should be [3, 8]. [hint 1]" in graded.stdout
    tests = course("pytest", "-q", "tests/test_grader_zoo.py", "-k", "04.3 or five_wrong")
    assert tests.returncode == 0, tests.stdout
    again = course("tiled_matmul", "exercises", "add", "exercises/example.py")
    assert again.returncode == 1 and "there is an exercise 04.3 already" in again.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("words: round up", "words: no such word", "the message has no 'no such word'"),
        ("return (n + x - 1) // x, (m + y - 1) // y\n", "return n, m\n", "WRONG, meant is PASS"),
        ("print(grid(", "print(undefined(", "NameError"),
    ],
    ids=["another message", "a right answer that is wrong", "a notebook that fails"],
)
def test_where_something_is_amiss_nothing_is_written(course, old, new, said):
    assert old in TEXT
    (course.folder / "exercises/example.py").write_text(TEXT.replace(old, new), encoding="utf-8")
    before = content(course.folder)
    done = course("tiled_matmul", "exercises", "add", "exercises/example.py")
    assert done.returncode and said in done.stderr
    assert content(course.folder) == before
    assert not (course.folder / "tests/grader_zoo/04_3").exists()


def drafted(tmp_path, *changes):
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    return adding.read(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# %% task [markdown]", "# %% tusk [markdown]", "a cell is called 'tusk'; there are spec"),
        ("# %% task [markdown]", "# %% task", "the cell 'task' is code, wanted markdown"),
        ("# %% run", "# %% exercise", "there are two cells called 'exercise'"),
        ("# %% hints [markdown]", "# %% answer more", "no cell called hints"),
        ("# %% answer swapped", "# %% answer one_more", "two cells called 'answer one_more'"),
        ("# status: PASS", "# state: PASS", "04.3 right_by_ceil: begins with '# state: PASS"),
        ("rules=VALUES", "rules=NOTHING", "the spec: NameError: name 'NOTHING'"),
        ("(BLOCKS,)", "(BLOCKS, BLOCKS)", "should end with EXERCISES = "),
        ("EXERCISES = (BLOCKS,)", "", "should end with EXERCISES = .*: None"),
    ],
)
def test_a_file_that_is_no_exercise_is_refused(old, new, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        drafted(tmp_path, (old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"04.3"', '"04.2"', "there is an exercise 04.2 already"),
        ('"04.3"', '"13.1"', "no notebook for 13.1; there are chapters 01, 02"),
        ("# exercise 04.3: how many", "# exercise 04.3: many", "should begin with '# exercise"),
        ("    # <<<\n", "", "no solution with # >>>, # --- starter and # <<< in it"),
        ("Hint 2", "Aside", "the cell hints has the hints ['1', '3'], wanted 1, 2, 3"),
        ("draw=_sizes, hidden=True),", "draw=_sizes, hidden=True)", "needs a comma behind it"),
        ("Call((64, 96, 32, 8)),\n        Call(draw=_sizes),", "", "all cases are hidden"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_graded(old, new, said, tmp_path):
    found = list(adding.faults(drafted(tmp_path, (old, new)), say=pytest.fail))
    assert any(said in fault for fault in found), found


def test_answers_are_graded_and_counted(tmp_path):
    heard = []
    changes = [
        ("# status: PASS\n# words:\n# exercise 04.3", "# status: WRONG\n# words:\n# exercise 04.3"),
        ("# words: takes whole numbers; hint", "# words: hint"),
        ("    # return 1, 1\n", "    # return -(-n // x), -(-m // y)\n"),
        ("Call(draw=_sizes),", ""),
    ]
    found = list(adding.faults(drafted(tmp_path, *changes), say=heard.append))
    assert len(heard) == 9  # the solution, and those in the file
    assert any(fault.startswith("a_fraction: which words") for fault in found)
    assert "1 right answers that differ, with the solution, wanted 3" in found
    assert any(fault.startswith("the starter: PASS, 1 points") for fault in found)
    assert any(fault.startswith("right_by_ceil: PASS, meant is WRONG") for fault in found)
    assert any("rounded_down: seen in a hidden case only" in fault for fault in found)
