"""grader/: each wrong answer of the zoo gets the verdict meant for it, each right one passes.

A file of `grader_zoo/NN_N/` is an answer behind two lines: the status, and words that the message
holds, with semicolons between them.
"""

import ast
import zlib
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tiled_matmul.grader import pool, starters
from tiled_matmul.grader.judge import HINTS, judge
from tiled_matmul.grader.practice import explained
from tiled_matmul.grader.spec import Limits, exercise, exercises

ZOO = Path(__file__).parent / "grader_zoo"
ANSWERS = sorted(ZOO.glob("*/*.py"))
SOLUTIONS = {
    name: solved
    for path in starters.solutions()
    for name, (_, solved) in starters.answers(path).items()
}


@pytest.fixture(scope="module")
def workers():
    """A process for each language: nobody is hostile here, and its beginning is what costs."""
    with ExitStack() as stack:
        started = {}

        def of(kind):
            language = "triton" if kind == "triton" else "cuda"
            if language not in started:
                one = pool.Worker(language, Limits(), confined=False)
                started[language] = stack.enter_context(one)
            return started[language]

        yield of


def told(path: Path) -> tuple[str, str, list[str], str]:
    """Return (exercise, status, words, source) of a file of the zoo."""
    status, words, source = path.read_text(encoding="utf-8").split("\n", 2)
    parts = words.removeprefix("# words:").split(";")
    wanted = [part.strip() for part in parts if part.strip()]
    return path.parent.name.replace("_", "."), status.removeprefix("# status: "), wanted, source


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_verdict_is_the_one_that_is_meant(path, workers):
    name, status, words, source = told(path)
    # Who never comes to an end keeps a process of its own busy.
    worker = None if status == "TIMEOUT" else workers(exercise(name).kind)
    # One seed for each: among many, small numbers let one mistake look like another now and then.
    seed = zlib.crc32(f"{name} {path.stem}".encode())
    found = judge(exercise(name), source, worker=worker, seed=seed)
    assert found.status == status, found.message
    for word in words:
        assert word in explained(found)
    if status == "PASS":
        assert found.points == found.max_points and found.hint == 0
    else:
        assert found.points <= found.max_points / 2
        assert 1 <= found.hint <= HINTS and f"hint {found.hint} of" in explained(found)


@pytest.mark.parametrize(
    "path",
    [path for path in ANSWERS if told(path)[1] in ("WRONG", "RACE") and path.stem != "hard_coded"],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_a_mistake_is_seen_without_the_hidden_cases_too(path, workers):
    """Nobody who passed with the copy for learners should lose points in class."""
    name, _, _, source = told(path)
    one = exercise(name)
    seen = replace(one, cases=tuple(case for case in one.cases if not case.hidden))
    seed = zlib.crc32(f"{name} {path.stem}".encode())
    found = judge(seen, source, worker=workers(one.kind), seed=seed)
    assert found.points < found.max_points


@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_the_solution_has_all_points(name):
    found = judge(exercise(name), SOLUTIONS[name])  # in a process of its own
    assert (found.status, found.points) == ("PASS", exercise(name).points), found.message


def test_every_exercise_has_a_solution_five_wrong_answers_and_two_other_right_ones():
    assert sorted(SOLUTIONS) == sorted(one.name for one in exercises())
    for one in exercises():
        mine = [told(path) for path in ANSWERS if told(path)[0] == one.name]
        right = [
            SOLUTIONS[one.name],
            *(source for _, status, _, source in mine if status == "PASS"),
        ]
        assert len(right) >= 3, one.name
        assert len({ast.dump(ast.parse(source)) for source in right}) == len(right), one.name
        assert len(mine) - len(right) + 1 >= 5, one.name


@pytest.mark.parametrize("seed", range(20))
def test_a_race_is_found_whatever_the_numbers_are(seed, workers):
    """Every thread of a row writes the same value: no order of the threads gives a wrong C."""
    *_, source = told(ZOO / "05_3" / "lucky_value.py")
    assert judge(exercise("05.3"), source, seed=seed, worker=workers("cuda")).status == "RACE"
