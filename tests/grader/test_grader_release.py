"""grader/release.py: what learners get holds no solution and no hidden case, and grades."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader import mistakes
from tiled_matmul.grader.folders import TEACHERS, chapter_folders, folder, folders
from tiled_matmul.grader.release import LEFT_OUT, release

in_checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="a copy of what git tracks needs git"
)


def test_what_gives_answers_away_stays_behind():
    one = "exercises/source/05_shared_memory/3_repaired/"
    for name in (
        *("exercises/solutions/05_shared_memory.ipynb", "tests/test_make.py", ".ci/run"),
        *(f"{one}answer.py", f"{one}hidden.py", f"{one}mistakes.txt", ".github/workflows/cpu.yml"),
    ):
        assert LEFT_OUT.fullmatch(name), name
    for name in (
        *("exercises/05_shared_memory.ipynb", "tests/notebooks/nbval.ini", f"{one}judge.py"),
        *(f"{one}starter.py", "src/tiled_matmul/grader/mistakes.py", "solutions/answer.py"),
    ):
        assert not LEFT_OUT.fullmatch(name), name


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


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A learner's copy, and a function that runs the course's command there."""
    path = tmp_path_factory.mktemp("release") / "copy"
    release(path)
    environment = os.environ | {"PYTHONPATH": str(path / "src"), "HOME": str(path.parent)}

    def run(*arguments):
        command = [sys.executable, "-m", "tiled_matmul", *arguments]
        return subprocess.run(command, cwd=path, env=environment, capture_output=True, text=True)

    run.path = path
    return run


@in_checkout
def test_the_copy_holds_no_answers(copy):
    names = {path.name for path in copy.path.rglob("*")}
    assert not names & set(TEACHERS) and "solutions" not in names and "judge.py" in names
    texts = [path.read_text("utf-8") for path in (copy.path / "exercises").rglob("*.*")]
    assert len(texts) > 100 and not any("hidden=True" in text for text in texts)


@in_checkout
def test_what_computes_numbers_stays_behind(copy):
    for one in folders():
        there = copy.path / one.path.relative_to(ROOT)
        values = one.exercise.kind == "values"
        assert (there / "judge.json").exists() == values != (there / "judge.py").exists(), one.path
    text = "\n".join(path.read_text("utf-8") for path in copy.path.rglob("*.py"))
    for function in ("def tile_of(", "def used(", "def step(", "def wavefronts(", "def choose("):
        assert f"\n{function}" not in text or function in STARTERS


STARTERS = "\n".join(one.text("starter.py") for one in folders())
PLAIN = re.compile(r"(?:@|def |pass$|return$|else:$|\)|[\w, ]+,?$)")
"""Lines that show nothing: heads, ends, lists of names."""


def counted(text):
    """Return the lines of a source that show how something is done, without their indents."""
    lines = {line.split("  #")[0].strip() for line in text.splitlines()}
    return {line for line in lines if len(line) > 8 and not PLAIN.match(line)}


def most_shown(one, texts):
    """Return the file that shows most of an exercise's solution, and which share of its lines.

    Only its own chapter counts: later ones begin with what was learned in it.
    """
    wanted = counted(one.text("answer.py")) - counted(one.text("starter.py"))
    chapter = f"/{one.path.parent.name}/"
    texts = {name: lines for name, lines in texts.items() if chapter in name}
    shares = {name: len(wanted & lines) / max(1, len(wanted)) for name, lines in texts.items()}
    name = max(shares, key=shares.get)
    return name, shares[name]


@in_checkout
def test_no_file_of_the_copy_shows_a_solution(copy):
    """Neither a neighbour's starter, nor a hint, nor a judge holds half of a solution's lines."""
    paths = [p for p in (copy.path / "exercises").rglob("*") if p.suffix in (".py", ".md", ".json")]
    texts = {str(p.relative_to(copy.path)): counted(p.read_text("utf-8")) for p in paths}
    shown = {one.name: most_shown(one, texts) for one in folders()}
    assert {name: told for name, told in shown.items() if told[1] > 0.5} == {}
    # A solution that stays is found.
    one = folder("05.1")
    planted = f"source/{one.path.parent.name}/planted"
    texts[planted] = counted(one.text("answer.py"))
    assert most_shown(one, texts) == (planted, 1.0)


@in_checkout
def test_the_copy_is_in_order_and_reads_nothing_that_it_lacks(copy):
    done = copy("exercises", "check", "12.1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "exercises check: in order\n12.1 the starter: as meant\n"
    assert copy("exercises", "sync").stdout.count("was current") == len(chapter_folders())
    assert not (copy.path / "exercises/solutions").exists()
    # Chapters 4 to 6 compare what a kernel asks for with what hardware counted.
    code = "from tiled_matmul.microscope.cuda.traffic import COUNTERS; COUNTERS.read_bytes()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=copy.path, env=os.environ | {"PYTHONPATH": "src"}
    )
    assert done.returncode == 0


@in_checkout
def test_the_copy_grades(copy):
    # The cases that are left still tell a barrier in a condition from one on everybody's way.
    path = copy.path / "exercises/05_shared_memory.ipynb"
    mine = copy.path.parent / path.name
    shutil.copy(path, mine)
    notebook = json.loads(mine.read_text(encoding="utf-8"))
    answers = {answer.name: answer for answer in mistakes.answers(folder("05.3"))}
    (cell,) = [cell for cell in notebook["cells"] if cell["id"] == "exercise-05-3"]
    cell["source"] = answers["in_a_condition"].source
    mine.write_text(json.dumps(notebook), encoding="utf-8")
    done = copy("grade", str(mine))
    assert done.returncode == 1, done.stderr
    assert "05.1  WRONG" in done.stdout and "05.3  BARRIER" in done.stdout
    assert "outside of every condition" in done.stdout
