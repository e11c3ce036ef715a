"""grader/: each wrong answer of the zoo gets the verdict meant for it, each right one passes."""

from contextlib import ExitStack

import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader import pool, starters, zoo
from tiled_matmul.grader.folders import exercise, exercises
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import Limits

ANSWERS = [answer for one in exercises() for answer in zoo.answers(one.name)]
SOLUTIONS = {
    name: solved
    for path in starters.solutions()
    for name, (_, solved) in starters.answers(path).items()
}


def named(answer):
    return f"{answer.exercise}-{answer.name}"


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


@pytest.mark.parametrize("answer", ANSWERS, ids=named)
def test_the_verdict_is_the_one_that_is_meant(answer, workers):
    one = exercise(answer.exercise)
    # Who never comes to an end keeps a process of its own busy.
    worker = None if answer.status == "TIMEOUT" else workers(one.kind)
    assert zoo.missed(answer, judge(one, answer.source, worker=worker, seed=answer.seed)) == []


@pytest.mark.parametrize("answer", [*filter(zoo.must_show, ANSWERS)], ids=named)
def test_a_mistake_is_seen_without_the_hidden_cases_too(answer, workers):
    one = exercise(answer.exercise)
    seen = zoo.without_hidden(one)
    found = judge(seen, answer.source, worker=workers(one.kind), seed=answer.seed)
    assert found.points < found.max_points


@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_the_solution_has_all_points(name):
    found = judge(exercise(name), SOLUTIONS[name])  # in a process of its own
    assert (found.status, found.points) == ("PASS", exercise(name).points), found.message


def test_every_exercise_has_a_solution_five_wrong_answers_and_two_other_right_ones():
    names = sorted(one.name for one in exercises())
    assert sorted(SOLUTIONS) == names
    assert sorted((ROOT / zoo.FOLDER).iterdir()) == [zoo.folder(name) for name in names]
    for one in exercises():
        assert zoo.lacks(SOLUTIONS[one.name], zoo.answers(one.name)) == [], one.name


@pytest.mark.parametrize("seed", range(20))
def test_a_race_is_found_whatever_the_numbers_are(seed, workers):
    """Every thread of a row writes the same value: no order of the threads gives a wrong C."""
    (lucky,) = (answer for answer in zoo.answers("05.3") if answer.name == "lucky_value")
    assert judge(exercise("05.3"), lucky.source, seed=seed, worker=workers("cuda")).status == "RACE"
