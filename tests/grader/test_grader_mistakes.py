"""Each wrong answer gets the verdict meant for it, each right one passes.

`make test` grades every solution, and for a quarter of the exercises one of their other answers,
which changes with them; `make test-answers` grades all.
"""

import os
import random
import zlib
from contextlib import ExitStack

import pytest

from tiled_matmul.grader import mistakes, pool
from tiled_matmul.grader.folders import exercise, folder, folders
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import Limits

FOLDERS = folders()
SAMPLE = None if os.environ.get("TILED_MATMUL_SEEDS") else 1


def chosen(one):
    """Return the names of the answers that are graded, in their order."""
    names = [answer.name for answer in mistakes.answers(one)]
    if SAMPLE is None:
        return [mistakes.SOLUTION, *names]
    draw = random.Random(zlib.crc32(one.text("mistakes.txt").encode()))
    kept = set(draw.sample(names, SAMPLE))
    return [name for name in names if name in kept]


@pytest.fixture(scope="module")
def workers():
    """A process for each language: nobody is hostile here, and its beginning is what costs."""
    with ExitStack() as stack:
        started = {}

        def of(kind):
            if kind not in started:
                one = pool.Worker(kind, Limits(), confined=False)
                started[kind] = stack.enter_context(one)
            return started[kind]

        yield of


@pytest.mark.sample(2)
@pytest.mark.parametrize("one", FOLDERS, ids=lambda one: one.name)
def test_every_solution_passes(one, workers):
    verdict = judge(one.exercise, one.code("answer.py"), worker=workers(one.exercise.kind))
    assert (verdict.status, verdict.points) == ("PASS", one.exercise.points), verdict


@pytest.mark.sample(4)
@pytest.mark.parametrize("one", FOLDERS, ids=lambda one: one.name)
def test_every_answer_is_told_for_what_it_is(one, workers):
    """A mistake is one in the cases that learners see, too."""
    names = chosen(one)
    graded = list(mistakes.graded(one, names, worker=workers(one.exercise.kind)))
    assert [f"{name}: {fault}" for name, faults in graded for fault in faults] == []
    told = [name for name, _ in graded if name != "the starter"]
    assert told == names and len(graded) == len(told) + 1


@pytest.mark.parametrize("one", FOLDERS, ids=lambda one: one.name)
def test_every_exercise_has_five_wrong_answers_and_two_other_right_ones(one):
    assert mistakes.lacks(one.code("answer.py"), mistakes.answers(one)) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_race_is_found_whatever_the_numbers_are(seed, workers):
    """Every thread of a row writes the same value: no order of the threads gives a wrong C."""
    answers = mistakes.answers(folder("05.3"))
    (lucky,) = (answer for answer in answers if answer.name == "lucky_value")
    assert judge(exercise("05.3"), lucky.source, seed=seed, worker=workers("cuda")).status == "RACE"


def test_a_solution_passes_in_a_process_of_its_own():
    for name in ("01.1", "05.1", "10.1"):
        verdict = judge(exercise(name), folder(name).code("answer.py"))
        assert (verdict.status, verdict.points) == ("PASS", exercise(name).points)
