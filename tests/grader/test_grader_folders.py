"""An author's mistakes in an exercise's folder are reported, each in one line that names it."""

import shutil

import pytest

from tiled_matmul import ROOT, __main__
from tiled_matmul.grader import folders, mistakes, starters

SOURCE = ROOT / "exercises" / "source"
FOUR = "04_grid_and_blocks"
LAST = "04.2"
BEFORE = folders.folders("04")[-1].name
NEW = f"04.{len(folders.folders('04')) + 1}"
ENTRY = folders.exercise(BEFORE).entry


@pytest.fixture
def course(tmp_path):
    """The folder `exercises` of a course with the exercises of chapters 4 and 11."""
    for name in (FOUR, "12_tuning"):
        shutil.copytree(SOURCE / name, tmp_path / "source" / name)
        shutil.copy(ROOT / "exercises" / f"{name}.ipynb", tmp_path)
        solution = tmp_path / "solutions" / f"{name}.ipynb"
        solution.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "exercises" / "solutions" / solution.name, solution)
    return tmp_path


def changed(course, file, old, new, chapter=FOUR, number="2"):
    """Change a file of 04.2, or of another exercise."""
    (path,) = (course / "source" / chapter).glob(f"{number}_*/{file}")
    text = path.read_text(encoding="utf-8")
    assert old in text, text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path.parent


def test_the_course_is_in_order(course):
    assert starters.faults() == [] and starters.faults(course) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("judge.py", "import A_GUARD", "import A_GATE", "judge.py: ImportError: cannot import"),
        ("judge.py", "EXERCISE =", "raise SystemExit(3)\nEXERCISE =", "judge.py: SystemExit: 3"),
        ("judge.py", "EXERCISE =", "EXERCISES =", "judge.py: it defines no EXERCISE"),
        ("judge.py", "EXERCISE =", "EXERCISE = 1\nREST =", "should be an Exercise, got 1"),
        ("judge.py", 'name="04.2"', 'name="04.3"', "name should be '04.2', got '04.3'"),
        ("judge.py", "Case(32, 32, 8)", "Case(32, 32, 8, hidden=True)", "belongs into hidden.py"),
        ("judge.py", "points=2", "points=1.5", "points must be 1 or more, whole, got 1.5"),
        ("judge.py", '"other": 2', '"other": 4', "hints must be 1, 2 or 3"),
        ("judge.py", '"other": 2', '"others": 2', "also of 'other'"),
        ("judge.py", 'kind="cuda"', 'kind="values"', "cases must be Calls"),
        ("judge.py", "launch=_both_ways,", "", "the kind 'cuda' needs `launch`"),
        ("judge.py", 'entry="in_rows"', 'entry="guarded"', "asks for guarded(), as 1_guarded does"),
        ("judge.py", "large=(Case(517, 389, 301,", "large=(Case(17, 9, 1,", "`large` holds cases"),
        ("judge.py", "points=2,", "points=2, given={'E': 4},", "E is 4 in judge.py, and nothing"),
        ("hidden.py", "HIDDEN =", "OTHERS =", "hidden.py: it defines no HIDDEN"),
        ("hidden.py", "HIDDEN =", "HIDDEN = ()\nREST =", "HIDDEN should be a tuple of Cases"),
        ("task.md", "## 04.2", "## 04.7", "task.md: should begin with '## 04.2 '"),
        ("task.md", "*Expected: roughly", "*About", "task.md: should begin with"),
        ("hints.md", "Hint 2", "Aside", "hints.md: it has the hints ['1', '3'], wanted 1, 2, 3"),
        ("starter.py", "def in_rows(", "def in_rows((", "starter.py: "),
        ("answer.py", "def in_rows(", "def in_rows((", "answer.py: "),
        ("answer.py", "row", "line", "04_grid_and_blocks.ipynb: is not what `exercises sync`"),
    ],
)
def test_what_does_not_fit_is_told_with_its_file(course, file, old, new, fault):
    changed(course, file, old, new)
    found = starters.faults(course)
    assert any(fault in line for line in found), found
    assert all("\n" not in line for line in found)


@pytest.mark.parametrize("file", ["task.md", "starter.py", "hints.md", "judge.py", "answer.py"])
def test_a_folder_that_lacks_a_file_is_told(course, file):
    (path,) = (course / "source" / FOUR).glob(f"2_*/{file}")
    path.unlink()
    assert f"{path.parent}: there is no {file}" in starters.faults(course)


def test_a_copy_for_learners_needs_no_answers(course):
    for path in (course / "source").glob("*/*/*"):
        if path.name in folders.TEACHERS:
            path.unlink()
    shutil.rmtree(course / "solutions")
    assert folders.for_learners(course / "source")
    assert starters.faults(course) == []
    assert set(starters.sync(course).values()) == {False}  # outputs are those of the starters
    assert not (course / "solutions").exists()
    one = folders.folder(LAST, course / "source")
    assert not any(case.hidden for case in one.exercise.cases)
    assert mistakes.answers(one) == []


def test_two_folders_with_one_number_are_told(course):
    four = course / "source" / FOUR
    shutil.copytree(four / "2_in_rows", four / "02_other")  # no number is written like this
    assert starters.faults(course) == []
    shutil.copytree(four / "2_in_rows", four / "2_other")
    (fault,) = starters.faults(course)
    assert fault == f"{four / '2_other'}: 2_in_rows has this number too"


def test_a_folder_that_git_left_behind_is_none(course):
    for old in (f"{FOUR[:2]}_old_name", f"{FOUR}/2_old_name"):
        cache = course / "source" / old / "__pycache__"
        cache.mkdir(parents=True)
        (cache / "judge.cpython-312.pyc").write_bytes(b"")
    assert starters.faults(course) == []


def test_a_notebook_without_a_folder_is_told(course):
    shutil.copy(course / f"{FOUR}.ipynb", course / "13_more.ipynb")
    fault = f"{course / '13_more.ipynb'}: there is no folder {course / 'source' / '13_more'}"
    assert starters.faults(course) == [fault]


def test_a_given_that_changes_what_others_have_is_told(course):
    changed(course, "given.py", "SMS = 132", "SMS = 131", "12_tuning", "3")
    found = starters.faults(course)
    assert any("SMS is 132 in judge.py, and 131 in the notebook" in line for line in found), found
    changed(course, "given.py", "SMS = 131", "1 / 0", "12_tuning", "3")
    assert any("ZeroDivisionError" in line for line in starters.faults(course))


def test_run_stores_what_the_cells_print_or_leaves_the_notebook_alone(course):
    chapter = course / "source" / FOUR
    (chapter / "1_guarded" / "run.py").write_text("print(6 * 7)\n")
    starters.run(chapter, folder=course)
    path = course / "solutions" / f"{FOUR}.ipynb"
    cells = {c.id: c for c in starters.parse_notebook(path.read_text("utf-8"), path).cells}
    assert cells["run-04-1"].outputs[0].text == "42\n"
    assert "04.1 passed" in cells["check-04-1"].outputs[0].text
    assert cells["setup"].outputs == []
    starters.sync(course)
    assert '"42\\n"' in (course / f"{FOUR}.ipynb").read_text("utf-8")
    (chapter / "1_guarded" / "run.py").write_text("1 / 0\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"{FOUR}.ipynb: ZeroDivisionError: division by zero"):
        starters.run(chapter, folder=course)
    assert path.read_bytes() == before


# mistakes.txt


def answers(course, text):
    """Return the answers of 04.2 with this text as its mistakes.txt, by their names."""
    one = folders.folder(LAST, course / "source")
    (one.path / "answer.py").write_text("def f(x):\n    y = 0\n    y = 0\n    return y\n")
    (one.path / "starter.py").write_text("def f(x):\n    pass\n")
    (one.path / mistakes.FILE).write_text(text)
    return {answer.name: answer for answer in mistakes.answers(one)}


def test_an_edit_changes_the_lines_that_it_names(course):
    there = answers(
        course,
        "== one | WRONG | a word; hint 2\n  def f(x):\n-     y = 0\n+     y = 1\n+\n"
        "@@\n-     return y\n\n"
        "== two | RACE | w | x\n@ starter\n-     pass\n+     return 2\n\n"
        "== three | PASS\n@ whole\ndef f(x):\n\n    return 3\n\n"
        "== four | WRONG | v\n@ starter\n",
    )
    marker = "# exercise 04.2: x or y\n"
    assert there["one"].source == f"{marker}def f(x):\n    y = 1\n\n    y = 0\n"
    assert (there["one"].status, there["one"].words) == ("WRONG", ("a word", "hint 2"))
    assert there["two"].source == f"{marker}def f(x):\n    return 2\n"
    assert there["two"].words == ("w | x",)
    assert there["three"].source == f"{marker}def f(x):\n\n    return 3\n"
    assert (there["three"].status, there["three"].words) == ("PASS", ())
    assert there["four"].source == f"{marker}def f(x):\n    pass\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- x\n", "line 1: '- x' belongs to no answer"),
        ("== A | WRONG | w\n", "line 1: '== A | WRONG | w', wanted '== name_in_small_letters"),
        ("== a | wrong | w\n", "line 1: '== a | wrong | w', wanted"),
        ("== a: WRONG: w\n", "line 1: '== a: WRONG: w', wanted"),
        ("== a | PASS\n@ starter\n== a | PASS\n", "line 3: there are two answers 'a'"),
        ("== a | WRONG | w\n\n", "exercise 04.2, a: no edit follows"),
        ("== a | WRONG | w\n-     y = 0\n", "a: an edit of answer.py: 2 places for '    y = 0'"),
        ("== a | WRONG | w\n-     z = 0\n", "a: an edit of answer.py: 0 places for '    z = 0'"),
        ("== a | WRONG | w\n@ starter\n-     y\n", "a: an edit of starter.py: 0 places"),
        ("== a | WRONG | w\n+     y\n", "a: an edit of answer.py has no line that stays or goes"),
        ("== a | WRONG | w\ny = 0\n", "begins a line with 'y ', wanted '- ', '+ ' or blanks"),
        (
            "== a | WRONG | w\n- def f(x):\n      y = 0\n@@\n- def f(x):\n",
            "a: two edits change line 1 of answer.py",
        ),
    ],
)
def test_an_edit_that_does_not_apply_is_told_with_its_exercise_and_name(course, text, fault):
    with pytest.raises(folders.FolderError) as caught:
        answers(course, text)
    assert fault in str(caught.value) and "mistakes.txt" in str(caught.value)


def graded(course, number="1", chapter="12_tuning"):
    """Return {name: faults} of an exercise whose answers are graded in no time, 12.1."""
    one = folders.folder(f"{chapter[:2]}.{number}", course / "source")
    return dict(mistakes.graded(one)), one


def test_an_answer_that_is_told_otherwise_is_reported(course):
    here = {"chapter": "12_tuning", "number": "1"}
    folder = changed(course, "mistakes.txt", "== ", "== first | PASS\n@ starter\n\n== ", **here)
    text = (folder / "mistakes.txt").read_text(encoding="utf-8").split("\n\n")
    # Of all answers those that are needed: a right one, and a wrong one with another word.
    wrong = next(part for part in text if " | WRONG | " in part)
    name = wrong.split(" ")[1]
    wrong = wrong.replace(" | WRONG | ", " | WRONG | no such word; ")
    (folder / "mistakes.txt").write_text(f"{text[0]}\n\n{wrong}\n", encoding="utf-8")
    found, one = graded(course)
    assert found["the solution"] == [] and found["the starter"] == []
    assert found["first"][0].startswith("WRONG, meant is PASS: ")
    assert any("no 'no such word' in the message, which is for" in line for line in found[name])
    lacks = mistakes.lacks(one.code("answer.py"), mistakes.answers(one))
    assert "1 wrong answers, wanted 5" in lacks
    assert "2 right answers that differ, with the solution, wanted 3" in lacks


def test_words_about_the_hint_alone_are_too_few(course):
    there = answers(course, "== a | WRONG | hint 2\n@ starter\n").values()
    lacks = mistakes.lacks("x", [*there])
    assert "a: which words does its message hold, besides the hint's number?" in lacks


def test_a_mistake_that_only_a_hidden_case_shows_is_reported(course):
    folder = course / "source" / "12_tuning" / "1_budget"
    (folder / "hidden.py").write_text(
        "from tiled_matmul.grader.spec import Call\n\nHIDDEN = (Call((77, 16, 16, 1, 1)),)\n"
    )
    (folder / "mistakes.txt").write_text(
        "== late | WRONG | budget(77, 16\n  def budget(block_m, block_n, block_k, warps, stages):\n"
        "+     if block_m == 77:\n+         return 0, 0, True\n"
    )
    found, _ = graded(course)
    assert found["the solution"] == []
    fault = "seen in a hidden case only: give one case more that learners have"
    assert found["late"] == [fault]


def test_a_solution_and_a_starter_that_are_the_wrong_way_round_are_reported(course):
    folder = course / "source" / "12_tuning" / "1_budget"
    answer, starter = ((folder / name).read_text("utf-8") for name in ("answer.py", "starter.py"))
    (folder / "answer.py").write_text(starter, "utf-8")
    (folder / "starter.py").write_text(answer, "utf-8")
    (folder / "mistakes.txt").write_text("", "utf-8")
    found, _ = graded(course)
    assert found["the solution"][0].startswith("WRONG, meant is PASS")
    assert found["the starter"] == ["PASS, 3 points: "]


def test_a_judge_whose_functions_fail_is_reported_as_such(course):
    changed(
        course, "judge.py", "    shared = (", "    1 / 0\n    shared = (",
        chapter="12_tuning", number="1",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"12.1: the solution cannot be graded: ZeroDivisionError"):
        graded(course)


# The command line.


def test_a_new_exercise_begins_as_a_copy_of_another(course):
    source = course / "source"
    path = folders.copied(NEW, "covers", source=source)
    assert path == source / FOUR / f"{NEW[3:]}_covers"
    model = folders.folder(BEFORE, source)
    assert {p.name for p in path.iterdir()} >= {p.name for p in model.path.glob("*.*")}
    changed(course, "judge.py", f'entry="{ENTRY}"', 'entry="covers"', number=NEW[3:])
    for file in ("answer.py", "starter.py"):
        changed(course, file, f"def {ENTRY}", "def covers", number=NEW[3:])
    one = folders.folder(NEW, source)
    assert one.exercise.name == NEW and one.text("task.md").startswith(f"## {NEW} ")
    starters.sync(course)
    assert starters.faults(course) == []
    cells = {cell.id: cell for cell in starters.notebook(source / FOUR, True, course).cells}
    assert f"{one.exercise.marker}\n@cuda.jit\ndef cov" in cells[one.exercise.cell].source


def test_a_new_exercise_that_was_not_filled_in_is_told(course):
    path = folders.copied(NEW, "covers", source=course / "source")
    assert starters.faults(course) == [
        f"{path}: asks for {ENTRY}(), as {folders.folder(BEFORE).path.name} does"
    ]


@pytest.mark.parametrize(
    ("name", "slug", "like", "fault"),
    [
        ("04.2", "covers", None, f"the next exercise of chapter 04 is {NEW}, got 04.2"),
        ("04.77", "covers", None, f"the next exercise of chapter 04 is {NEW}, got 04.77"),
        ("13.1", "covers", None, "chapter 13 has no exercises; these have: 04, 12"),
        (
            NEW,
            "Covers it",
            None,
            f"a folder is called like 5_register_tile, got '{NEW[3:]}_Covers it'",
        ),
        (NEW, "covers", "04.9", "there is no exercise '04.9'; there are 04.1, 04.2, "),
    ],
)
def test_a_new_exercise_has_the_next_number_and_a_plain_name(course, name, slug, like, fault):
    with pytest.raises(ValueError, match=fault):
        folders.copied(name, slug, like, course / "source")
    assert len(folders.folders("04", course / "source")) == len(folders.folders("04"))


@pytest.mark.long
def test_the_command_checks_the_exercises_that_are_named(monkeypatch, capsys):
    assert __main__.main(["exercises", "check", "12.1"]) == 0
    out = capsys.readouterr().out
    assert "exercises check: in order" in out and "12.1 the solution: as meant" in out
    assert out.count("as meant") == 2 + len(mistakes.answers(folders.folder("12.1")))
    monkeypatch.setattr(mistakes, "graded", lambda one: [("x", ["PASS, meant is WRONG: y\nz"])])
    assert __main__.main(["exercises", "check", "12.1"]) == 1
    out = capsys.readouterr().out
    assert "12.1 x: not as meant\n    PASS, meant is WRONG: y\n    z\n" in out
    assert __main__.main(["exercises", "check", "11.9"]) == 2
    assert "there is no exercise '11.9'" in capsys.readouterr().err
    monkeypatch.setattr(starters, "faults", lambda: ["a fault"])
    assert __main__.main(["exercises", "check"]) == 1
    assert capsys.readouterr().out == "a fault\n"
