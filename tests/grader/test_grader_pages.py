"""grader/pages.py: the tables of exercises and of wrong answers, and what they lack."""

import shutil

import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader import pages
from tiled_matmul.grader.folders import exercises

FIVE = "exercises/source/05_shared_memory"


@pytest.fixture
def course(tmp_path):
    """A course that holds chapter 5's exercises."""
    shutil.copytree(ROOT / FIVE, tmp_path / FIVE)
    (tmp_path / "exercises/05_shared_memory.ipynb").touch()
    (tmp_path / "exercises/solutions").mkdir()
    (tmp_path / "exercises/solutions/05_shared_memory.ipynb").touch()
    return tmp_path


def test_every_exercise_and_its_solution_is_listed():
    text, faults = pages.exercises_markdown(ROOT)
    assert faults == []
    assert all(one.title in text for one in exercises())
    assert text.count("exercises/solutions/") == len({one.name[:2] for one in exercises()})


def test_a_notebook_that_is_missing_is_a_fault(course):
    assert pages.exercises_markdown(course)[1] == []
    (course / "exercises/solutions/05_shared_memory.ipynb").unlink()
    faults = pages.exercises_markdown(course)[1]
    assert faults == ["exercises/solutions/05_shared_memory.ipynb is missing"]
    (course / "exercises/05_shared_memory.ipynb").unlink()
    faults = pages.exercises_markdown(course)[1]
    assert faults == ["wanted one exercises/05_*.ipynb, there are 0"]


def test_wrong_answers_are_listed_with_their_words_and_right_ones_are_not():
    text, faults = pages.kills_markdown(ROOT)
    assert faults == []
    chapter = text.split("## 05.3 repair a kernel that races\n")[1].split("## ")[0]
    assert "| lucky value | RACE |" in chapter
    assert "PASS" not in text and "right in inner loop" not in text


def test_too_few_wrong_answers_are_a_fault(course):
    (course / FIVE / "1_puzzle/mistakes.txt").write_text(
        "== naive | WRONG | the long | way; C\n@ whole\nx\n\n== right | PASS\n@ whole\ny\n"
    )
    text, faults = pages.kills_markdown(course)
    assert faults == ["exercise 05.1 has 1 wrong answers in mistakes.txt, wanted 5"]
    assert "| naive | WRONG | “the long \\| way”; “C” |" in text


def test_a_folder_that_is_no_exercise_is_a_fault(course):
    (course / FIVE / "1_puzzle/judge.py").write_text("EXERCISE = 1 / 0\n")
    for make in (pages.exercises_markdown, pages.kills_markdown):
        (fault,) = make(course)[1]
        assert fault.endswith("1_puzzle/judge.py: ZeroDivisionError: division by zero")


def test_a_learners_copy_has_neither_solutions_nor_wrong_answers(course):
    shutil.rmtree(course / "exercises/solutions")
    for path in (course / FIVE).glob("*/mistakes.txt"):
        path.unlink()
    text, faults = pages.exercises_markdown(course)
    assert faults == [] and "the 9×9 puzzle" in text and "solution" not in text
    text, faults = pages.kills_markdown(course)
    assert faults == [] and "not in this copy" in text and "|" not in text


def test_the_soak_is_a_table_and_its_lack_a_fault(tmp_path):
    text, faults = pages.soak_markdown(ROOT / "results/cluster/soak.json")
    assert faults == [] and "estimate for 64 nodes of 16 cores" in text
    for content in ("{", "{}", '{"memory_mb": {}}'):
        (tmp_path / "soak.json").write_text(content)
        text, faults = pages.soak_markdown(tmp_path / "soak.json")
        assert text == "" and len(faults) == 1 and "soak.json" in faults[0]
