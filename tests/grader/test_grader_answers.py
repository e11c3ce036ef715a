"""Answers that were written without a look at the grader, right ones and wrong ones, as data.

`answers/NN.txt` holds those of a chapter. Each begins with a line

    ##### NN.M name | PASS | what is special about it
    ##### NN.M name | WRONG counts | what is wrong with it

of which the middle is the status, and for a wrong answer the diagnosis. `make test` grades a
sample, which changes with the data; `make test-answers` grades all of them, with SEEDS seeds each.
"""

import os
import random
import re
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tiled_matmul.grader import pool
from tiled_matmul.grader.folders import exercise
from tiled_matmul.grader.judge import STATUSES, judge
from tiled_matmul.grader.spec import PYTHON_KINDS, Limits

FOLDER = Path(__file__).parent / "answers"
HEAD = re.compile(r"##### (\d\d\.\d+) (\w+) \| ([A-Z_]+)(?: ([^|]+))? \| (\S.*)")
SAMPLE = 12
SEEDS = int(os.environ.get("TILED_MATMUL_SEEDS", 0))
"""With how many seeds every answer is graded; 0 is for the sample, each once."""


@dataclass(frozen=True)
class Answer:
    """An answer to an exercise "05.1", and the status and the diagnosis meant for it."""

    exercise: str
    name: str
    status: str
    diagnosis: str
    source: str


def read(path):
    """Return the answers in a file; a line that begins with ##### and is no head raises."""
    out = []
    for part in re.split(r"^(?=#####)", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        line, _, source = part.partition("\n")
        if line:
            head = HEAD.fullmatch(line)
            assert head is not None, f"{path.name}: {line!r}"
            assert head[3] in STATUSES, line
            out.append(Answer(head[1], head[2], head[3], head[4] or "", source))
    return out


ANSWERS = [answer for path in sorted(FOLDER.glob("*.txt")) for answer in read(path)]
CHOSEN = (
    ANSWERS if SEEDS else random.Random(zlib.crc32(repr(ANSWERS).encode())).sample(ANSWERS, SAMPLE)
)
EXERCISES = sorted({answer.exercise for answer in CHOSEN})


@pytest.fixture(scope="module")
def workers():
    """A process for each kind of exercise: nobody is hostile here."""
    with ExitStack() as stack:
        started = {}

        def of(kind):
            if kind not in started or started[kind].process.poll() is not None:
                started[kind] = stack.enter_context(pool.Worker(kind, Limits(), confined=False))
            return started[kind]

        yield of


@pytest.mark.timeout(1800)  # all answers to an exercise, and several seeds
@pytest.mark.parametrize("name", EXERCISES)
def test_no_right_answer_fails_and_no_wrong_one_passes(name, workers):
    one, faults = exercise(name), []
    for answer in CHOSEN:
        if answer.exercise != name:
            continue
        source = f"{one.marker}\n{answer.source}"
        for seed in range(7, 7 + max(1, SEEDS)):
            fresh = {} if answer.status == "TIMEOUT" else {"worker": workers(one.kind)}
            verdict = judge(one, source, seed=seed, **fresh)
            told = verdict.status, verdict.diagnosis
            meant = answer.status, answer.diagnosis
            full = verdict.points == verdict.max_points
            right = told[0] == meant[0] and full == (answer.status == "PASS")
            # With other numbers another of several mistakes may show first.
            if not right or (seed == 7 and told != meant):
                faults.append(f"{answer.name}, seed {seed}: {told}, meant {meant}: {verdict}")
                break
    assert faults == []


def test_there_are_enough_answers_and_each_has_a_name_of_its_own():
    names = [(answer.exercise, answer.name) for answer in ANSWERS]
    assert len(names) == len(set(names))
    right = sum(answer.status == "PASS" for answer in ANSWERS)
    assert right >= 500 and len(ANSWERS) - right >= 550
    assert all(answer.diagnosis for answer in ANSWERS if answer.status != "PASS")
    assert {exercise(answer.exercise).kind for answer in ANSWERS} > set(PYTHON_KINDS)
    exercises_of = {answer.exercise for answer in ANSWERS}
    assert len(exercises_of) >= 59
