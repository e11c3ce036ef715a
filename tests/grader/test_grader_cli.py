"""grader/cli.py: exit statuses, and a help text for each option."""

import argparse

import pytest

from tiled_matmul.__main__ import main
from tiled_matmul.grader import cli, folders, pool, practice, starters

(SOLVED,) = [path for path in starters.solutions() if path.name.startswith("01")]
STARTER = starters.FOLDER / SOLVED.name


def report(*statuses, **more):
    return {"path": "a.ipynb", "exercises": [{"status": status} for status in statuses], **more}


@pytest.mark.parametrize(
    ("reports", "status"),
    [
        ([], 0),
        ([report("PASS", "PASS")], 0),
        ([report("PASS"), report("PASS", "WRONG")], 1),
        *(
            ([report("PASS", status)], 1)
            for status in ("RACE", "TIMEOUT", "CRASH", "FORBIDDEN", "MISSING", "NOT_YET")
        ),
        ([report("PASS", "WRONG", "INFRA")], 2),
        ([report("PASS"), report(error="not a notebook")], 2),
        ([report("WRONG"), report(error="not a notebook")], 2),
    ],
)
def test_the_status_is_0_if_all_is_passed_1_if_not_2_for_a_fault(reports, status):
    assert practice.exit_status(reports) == status


@pytest.fixture
def graded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return lambda *arguments: main(["grade", *map(str, arguments)])


def test_the_command_has_that_status(graded, tmp_path, monkeypatch):
    assert graded(SOLVED) == 0
    assert graded(SOLVED, STARTER) == 1
    assert graded(SOLVED, tmp_path / "missing.ipynb") == 2
    assert graded() == 2 and graded("--csv", "x", SOLVED) == 2
    monkeypatch.setattr(pool, "_NURSERIES", {})
    monkeypatch.setattr(pool.sys, "executable", "/nowhere/python")
    assert graded(SOLVED) == 2  # no worker starts: INFRA


def parsers():
    """Return the parsers of `grade` and of `exercises` with its actions, by their names."""
    top = argparse.ArgumentParser().add_subparsers()
    cli.add_parsers(top)
    named = dict(top.choices)
    (actions,) = [
        action
        for action in named["exercises"]._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return named | {f"exercises {name}": parser for name, parser in actions.choices.items()}


@pytest.mark.parametrize("name", parsers())
def test_help_says_what_each_option_does_and_its_default(name):
    parser = parsers()[name]
    assert parser.description and parser.description[-1] == ".", name
    texts = [action.help for action in parser._actions if action.dest != "action"]
    assert all(texts) and len(set(texts)) == len(texts)
    for action in parser._actions:
        if action.option_strings and action.dest != "help":
            assert "(default: " in action.help, action.dest


def test_help_states_the_exit_status(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "Exit status: 0 if every exercise is passed, 1 if one is not, 2 for a usage" in text


def test_of_equal_answers_the_first_is_judged_unless_another_try_could_change_it(monkeypatch):
    tried = []

    def judge(exercise, source, **options):
        tried.append(source)
        status = source.upper()
        return practice.Verdict(exercise.name, status, 0, 1)

    monkeypatch.setattr(practice, "judge", judge)
    alike, one, other = practice.Alike(), *folders.exercises("01")[:2]
    for source in ("wrong", "wrong", "timeout", "timeout", "timeout"):
        assert alike.judge(one, source).status == source.upper()
    assert alike.judge(other, "wrong").exercise == other.name
    assert tried == ["wrong", "timeout", "timeout", "wrong"]


def test_an_answer_that_passes_does_so_with_other_comments_and_spaces(monkeypatch):
    tried = []

    def judge(exercise, source, **options):
        tried.append(source)
        status = "WRONG" if "wrong" in source else "PASS"
        return practice.Verdict(exercise.name, status, 1, 1, message=source)

    monkeypatch.setattr(practice, "judge", judge)
    alike, one, other = practice.Alike(), *folders.exercises("01")[:2]
    same = ["x = (1)", "x  =  1  # mine", "%time\nx = 1\n"]
    assert [alike.judge(one, source).status for source in same] == ["PASS"] * 3
    assert tried == same[:1]
    different = ["x = 2", "x = 1.0", "x = 1; x", "x = (1", f"x = 0x{'f' * 5000}"]
    for source in (*different, "wrong", "wrong # 2"):  # a message quotes the learner's own line
        alike.judge(one, source)
    assert tried[1:] == [*different, "wrong", "wrong # 2"]
    assert alike.judge(other, "x = 1").exercise == other.name
