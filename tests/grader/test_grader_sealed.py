"""grader/sealed: exercises on numbers in a learner's copy, whose results are digests."""

import json

import pytest

from tiled_matmul.grader import mistakes, pool
from tiled_matmul.grader.folders import folders
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.sealed import digests, opened, seal
from tiled_matmul.grader.spec import Limits

FOLDERS = [one for one in folders() if one.exercise.kind == "values"]


@pytest.fixture(scope="module")
def worker():
    with pool.Worker("values", Limits(), confined=False) as one:
        yield one


def same(x, y):
    return bool(set(digests(x, "salt")) & set(digests(y, "salt")))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (3, 3.0),
        (0.1 + 0.2, 0.3),
        (1 / 3, 1 / 3 * (1 + 1e-12)),
        ([1, [2.5, "a"]], (1, (2.5, "a"))),
        ({"b": 1, "a": None}, {"a": None, "b": 1}),
        (2.9999999999999996, 3),
        (-0.07, -7 / 100),
    ],
)
def test_equal_results_have_a_digest_in_common(x, y):
    assert same(x, y)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (3, 4),
        (10**12, 10**12 + 1),
        (0.3, 0.30001),
        (True, 1),
        ("1", 1),
        ([1, 2], [2, 1]),
        ([1, 2], [1, 2, 0]),
        ([1, [2]], [[1], 2]),
        (0.5, -0.5),
        (None, 0),
        ({"a": 1}, {"a": 2}),
        (float("inf"), 1e300),
    ],
)
def test_other_results_have_none(x, y):
    assert not same(x, y)


def test_equal_numbers_meet_wherever_they_lie():
    for step in range(2000):
        x = 1.0 + step * 1.37e-9 * 7919
        assert same(x, x * (1 + 2e-16)), x


@pytest.mark.parametrize("one", FOLDERS, ids=lambda one: one.name)
@pytest.mark.sample(4)
def test_sealed_exercises_judge_as_their_functions_do(one, worker):
    """What is right passes; what is a mistake is told so, by the same diagnosis nearly always."""
    sealed = opened(json.dumps(seal(one.exercise)))
    right = [one.code("answer.py")]
    told, silent = [], []
    for answer in mistakes.answers(one):
        if answer.status == "PASS":
            right.append(answer.source)
        elif answer.status == "WRONG":
            verdict = judge(sealed, answer.source, seed=answer.seed, worker=worker)
            if answer.name == "hard_coded" and verdict.status == "PASS":
                continue
            assert verdict.status == "WRONG", answer.name
            words = [word for word in answer.words if not word.startswith("hint")]
            (told if all(word in verdict.message for word in words) else silent).append(answer.name)
    for source in right:
        for seed in range(3):
            assert judge(sealed, source, seed=seed, worker=worker).status == "PASS", source
    assert len(silent) <= len(told) // 4, (told, silent)


@pytest.mark.parametrize("one", FOLDERS, ids=lambda one: one.name)
def test_only_the_calls_of_the_task_show_their_results(one):
    kept = seal(one.exercise)
    shown = [call for call in kept["calls"] if call["shown"] is not None]
    cases = [case for case in one.exercise.cases if not case.hidden]
    fixed = {repr(case.arguments) for case in cases if case.draw is None}
    if kept["draws"] == 0:  # then they would be the whole answer
        assert shown == []
        return
    assert {call["arguments"] for call in shown} == fixed if fixed else len(shown) == 2
    assert len(kept["calls"]) - len(shown) >= min(16, 4 * kept["draws"])


def test_the_values_that_are_wrong_are_named(worker):
    one = next(one for one in FOLDERS if one.name == "01.2")
    sealed = opened(json.dumps(seal(one.exercise)))
    source = one.code("answer.py").replace("def ", "def right_", 1)
    entry, names = one.exercise.entry, ", ".join(one.exercise.parameters)
    source += f"\n\n\ndef {entry}({names}):\n    first, *rest = right_{entry}({names})\n"
    source += "    return [first + 12345, *rest]\n"
    verdict = judge(sealed, source, seed=1, worker=worker)
    assert verdict.status == "WRONG" and "values are wrong: 1." in verdict.message, verdict


def test_bad_files_are_refused():
    kept = seal(FOLDERS[0].exercise)
    for text in ("", "[]", "{}", json.dumps(kept | {"form": 0}), json.dumps(kept | {"given": "("})):
        with pytest.raises(ValueError, match="no sealed exercise"):
            opened(text)
