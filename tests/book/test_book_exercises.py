"""book/exercises.py: the tables of exercises and of wrong answers, and what they lack."""

from tiled_matmul import ROOT
from tiled_matmul.book import exercises as tables
from tiled_matmul.grader import zoo
from tiled_matmul.grader.folders import exercises


def test_every_exercise_and_its_solution_is_listed():
    text, faults = tables.exercises_markdown(ROOT)
    assert faults == []
    assert all(one.title in text for one in exercises())
    assert text.count("exercises/solutions/") == len({one.name[:2] for one in exercises()})


def test_a_notebook_that_is_missing_is_a_fault(tmp_path):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises/05_shared_memory.ipynb").touch()
    _, faults = tables.exercises_markdown(tmp_path)
    assert "wanted one exercises/01_*.ipynb, found 0" in faults
    assert "exercises/solutions/05_shared_memory.ipynb is missing" in faults


def test_wrong_answers_are_listed_with_their_words_and_right_ones_are_not():
    text, faults = tables.kills_markdown(ROOT)
    assert faults == []
    chapter = text.split("## 05.3 repair a kernel that races\n")[1].split("## ")[0]
    assert "| lucky value | RACE |" in chapter
    assert "PASS" not in text and "right in inner loop" not in text


def test_too_few_wrong_answers_are_a_fault(tmp_path):
    folder = tmp_path / zoo.FOLDER / "05_1"
    folder.mkdir(parents=True)
    (folder / "naive.py").write_text("# status: WRONG\n# words: the long | way; C\nx\n")
    (folder / "right.py").write_text("# status: PASS\n# words:\nx\n")
    text, faults = tables.kills_markdown(tmp_path)
    assert "exercise 05.1 has 1 wrong answers in tests/grader_zoo, wanted 5" in faults
    assert "| naive | WRONG | “the long \\| way”; “C” |" in text
