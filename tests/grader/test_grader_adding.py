"""grader/adding.py: one file and one command add an exercise, or nothing is written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader import adding
from tiled_matmul.grader.spec import exercises

NAME = f"04.{len(exercises('04')) + 1}"
UNDER = NAME.replace(".", "_")
TEXT = (ROOT / "exercises/example.py").read_text(encoding="utf-8")
# Whoever adds the example to the course has these tests still.
TEXT = TEXT.replace("04.3", NAME).replace("grid(", "covers(").replace('"grid"', '"covers"')
NOTEBOOK = "04_grid_and_blocks.ipynb"


@pytest.fixture
def course(tmp_path):
    """A copy of the course, and a function that runs its commands."""
    command = ["git", "-C", ROOT, "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True)
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


@pytest.fixture
def add(course):
    """Write a text into a file of the copy, and add it."""

    def run(text):
        (course.folder / "exercises/mine.py").write_text(text, encoding="utf-8")
        return course("tiled_matmul", "exercises", "add", "exercises/mine.py")

    return run


def test_the_example_becomes_a_part_of_the_course(course, add):
    before = content(course.folder)
    done = add(TEXT)
    assert done.returncode == 0, done.stderr
    assert "rounded_down: WRONG, as meant" in done.stdout
    after = content(course.folder)
    new = set(after) - set(before) - {"exercises/mine.py"}
    zoo = {name for name in new if name.startswith(f"tests/grader_zoo/{UNDER}/")}
    assert len(zoo) == 8 and new - zoo == {f"src/tiled_matmul/grader/specs/ch{UNDER}.py"}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"exercises/{NOTEBOOK}", f"exercises/solutions/{NOTEBOOK}"}
    for name in (*new, *changed):
        assert f"{course.folder / name}: written" in done.stdout

    assert course("tiled_matmul", "exercises", "check").returncode == 0
    assert course("ruff", "check", "--quiet", ".").returncode == 0
    graded = course("tiled_matmul", "grade", f"exercises/solutions/{NOTEBOOK}")
    assert f"{NAME}  PASS          1 of 1" in graded.stdout
    graded = course("tiled_matmul", "grade", f"exercises/{NOTEBOOK}")
    assert "is [1, 1], should be [3, 8]. [hint 1]" in graded.stdout
    tests = course("pytest", "-q", "tests/test_grader_zoo.py", "-k", f"{NAME} or five_wrong")
    assert tests.returncode == 0, tests.stdout
    again = add(TEXT)
    assert again.returncode == 1 and f"got {NAME}" in again.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "words: round up",
            "words: no such word",
            "no 'no such word' in the message, which is for 'rounded down'",
        ),
        ("# return 1, 1", "# l = 1\n    # return l, 1", "E741"),
        ("print(covers(", "print(undefined(", "name 'undefined' is not defined"),
    ],
    ids=["another message", "a name that ruff refuses", "a notebook that fails"],
)
def test_where_something_is_amiss_nothing_is_written(course, add, old, new, said):
    assert old in TEXT
    before = content(course.folder)
    done = add(TEXT.replace(old, new))
    assert done.returncode and said in done.stderr, done.stderr
    (course.folder / "exercises/mine.py").unlink()
    assert content(course.folder) == before
    assert not (course.folder / "tests/grader_zoo" / UNDER).exists()


def test_a_notebook_that_somebody_works_in_is_left_alone(course, add):
    starter = course.folder / "exercises" / NOTEBOOK
    starter.write_text(starter.read_text("utf-8").replace("pass", "solved = 1", 1), "utf-8")
    before = content(course.folder)
    done = add(TEXT)
    assert done.returncode == 1 and "differs from its solution" in done.stderr
    (course.folder / "exercises/mine.py").unlink()
    assert content(course.folder) == before


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
        ("# status: PASS", "# state: PASS", "right_by_ceil: begins with '# state: PASS"),
        ("# %% answer swapped", "# %% answer Swapped", "'answer Swapped'; .* answer name_in_small"),
        ("# %% answer swapped", f"# %% answer {'x' * 99}", "there are spec"),
        ("# %% run", "# %% given", "the order is spec, task, given, exercise, run, hints, got"),
        ("points=1", "points=1.5", "points must be 1 or more, whole, got 1.5"),
        ('"other": 1', '"other": 4', "hints must be 1, 2 or 3"),
        ('"other": 1', '"others": 1', "also of 'other'"),
        ('kind="values"', 'kind="cuda"', "cases must be Cases"),
        ("    answer=_blocks,\n", "", "the kind 'values' needs `answer`"),
        ("EXERCISES =", "raise SystemExit(3)\nEXERCISES =", "the spec: SystemExit: 3"),
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
        (f'"{NAME}"', '"04.2"', f"the next exercise of chapter 04 is {NAME}, got 04.2"),
        (f'"{NAME}"', '"04.0"', f"the next exercise of chapter 04 is {NAME}, got 04.0"),
        (f'"{NAME}"', '"13.1"', "no notebook for 13.1; there are chapters 01, 02"),
        ('entry="covers"', 'entry="in_rows"', "an exercise that asks for in_rows() already"),
        (f"# exercise {NAME}: how many", f"# exercise {NAME}: many", "should begin with '# exerc"),
        (f"# ## {NAME}", "# ## 04.7", f"the task should begin with '## {NAME} '"),
        ("*Expected: roughly 1 line.*", "Short.", "say '*Expected: roughly N lines.*'"),
        ("    # <<<\n", "", "no solution with # >>>, # --- starter and # <<< in it"),
        ("# return 1, 1", "# return 1, (1", "the cell exercise: '(' was never closed"),
        ("return -(-n // x), -(-m // y)", "return -(-n", "the cell exercise: '(' was never"),
        ("Hint 2", "Aside", "the cell hints has the hints ['1', '3'], wanted 1, 2, 3"),
        ("draw=_sizes, hidden=True),", "draw=_sizes, hidden=True)", "needs a comma behind it"),
        ("Call((64, 96, 32, 8)),\n        Call(draw=_sizes),", "", "all cases are hidden"),
        ("    answer=_blocks,", "    answer=_blocks,\n    given={'E': 4},", "E is 4 for"),
        (
            "    answer=_blocks,",
            "    answer=_blocks,\n    large=(Case(9, 9, 9),),",
            "`large` holds",
        ),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_graded(old, new, said, tmp_path):
    extra = ("import VALUES, Call,", "import VALUES, Call, Case,")
    found = list(adding.faults(drafted(tmp_path, extra, (old, new)), say=pytest.fail))
    assert any(said in fault for fault in found), found


def test_a_given_that_changes_what_others_have_is_told(tmp_path):
    given = "# %% given\ncuda = None\nEDGE = 5\n\n# %% exercise"
    changes = [("# %% exercise", given), ("answer=_blocks,", "answer=_blocks, given={'EDGE': 4},")]
    found = list(adding.faults(drafted(tmp_path, *changes), say=pytest.fail))
    assert found == [f"EDGE is 4 for {NAME}, and 5 in the notebook"]


def test_answers_are_graded_and_counted(tmp_path):
    heard = []
    changes = [
        (f"PASS\n# words:\n# exercise {NAME}", f"WRONG\n# words:\n# exercise {NAME}"),
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


def test_a_solution_that_fails_is_told_alone(tmp_path):
    changes = [("return -(-n // x), -(-m // y)\n    # ---", "return 0, 0\n    # ---")]
    (found,) = adding.faults(drafted(tmp_path, *changes), say=pytest.fail)
    assert found.startswith("the solution: WRONG, meant is PASS")


def test_a_spec_whose_functions_fail_is_the_specs_fault(tmp_path):
    changes = [("return [-(-n // x), -(-m // y)]", "return [1 // 0]")]
    with pytest.raises(ValueError, match="by the spec's fault: ZeroDivisionError"):
        list(adding.faults(drafted(tmp_path, *changes), say=pytest.fail))


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A solution and a starter that may be written to."""
    solved, starter = tmp_path / "solutions" / NOTEBOOK, tmp_path / NOTEBOOK
    solved.parent.mkdir()
    for path in (solved, starter):
        path.write_text("before", encoding="utf-8")
    monkeypatch.setattr(adding, "notebook_of", lambda draft: solved)
    monkeypatch.setattr(adding.starters, "FOLDER", tmp_path)
    return solved, starter


def test_a_file_that_is_there_is_not_written_over(tmp_path, monkeypatch, places):
    solved, starter = places
    there = tmp_path / "there.py"
    there.write_text("mine", encoding="utf-8")
    built = dict.fromkeys((solved, starter, there), "new")
    monkeypatch.setattr(adding, "_built", lambda *_: built)
    with pytest.raises(ValueError, match="there already: .*there.py"):
        adding.add(drafted(tmp_path))
    assert [path.read_text("utf-8") for path in built] == ["before", "before", "mine"]


def test_a_notebook_that_changes_meanwhile_is_not_written_over(tmp_path, monkeypatch, places):
    solved, starter = places

    def built(*_):
        starter.write_text("somebody's", encoding="utf-8")
        return dict.fromkeys(places, "new")

    monkeypatch.setattr(adding, "_built", built)
    with pytest.raises(ValueError, match="was changed by somebody while the copy ran"):
        adding.add(drafted(tmp_path))
    assert [path.read_text("utf-8") for path in places] == ["before", "somebody's"]


def test_a_given_cell_that_fails_is_told(tmp_path):
    change = ("# %% exercise", "# %% given\n1 / 0\n\n# %% exercise")
    found = list(adding.faults(drafted(tmp_path, change), say=pytest.fail))
    assert found == ["the cell given: ZeroDivisionError: division by zero"]


def test_a_kernel_without_a_launch_is_refused(tmp_path):
    changes = [
        ("VALUES, Call", "CUDA, Case"),
        ("VALUES", "CUDA"),
        ('kind="values"', 'kind="cuda"'),
        ("Call((64, 96, 32, 8))", "Case(64, 96, 8)"),
        ("        Call(draw=_sizes),\n", ""),
        ("        Call((1, 1, 16, 16), hidden=True),\n", ""),
        ("        Call(draw=_sizes, hidden=True),\n", ""),
    ]
    with pytest.raises(ValueError, match="the kind 'cuda' needs `launch`"):
        drafted(tmp_path, *changes)
