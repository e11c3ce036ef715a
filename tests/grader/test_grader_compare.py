"""grader/compare: what a worker's reply means, with no worker and no answer."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest

from tiled_matmul.grader import compare, spec
from tiled_matmul.grader.compare import Stop
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.spec import Call, Case, Count, Exercise, Slip

CASE = Case(4, 3, 5, draw="integers")
KERNEL = Exercise(
    *("99.1", "kernel", 1, "kernel", ("a", "b", "c"), "cuda", spec.CUDA, (CASE,)),
    hints={"other": 1, "race": 1, "race of b": 2},
    launch=lambda case: ((1, 1), (8, 8)),
    remedies={"out of bounds": "Guard it."},
)
PAIR = Exercise(
    *("99.2", "pair", 1, "pair", ("n",), "values", spec.CUDA, (Call((4,)),)),
    hints={"other": 1},
    answer=lambda n: [n, n + 1],
    slips=(Slip(lambda n: [n, n], "twice", "That is n twice."),),
)
FINDING = {"kind": "race", "array": "a", "message": "It races.", "remedy": "Wait.", "count": 1}


class Replies:
    """A worker that gives one reply, whatever the request."""

    def __init__(self, reply, data=()):
        self.reply, self.data = reply, list(data)

    def ask(self, header, blobs, seconds, most):
        return self.reply, self.data


def stop(exercise, case, reply, data=(), seed=1):
    """Return the verdict on a reply, None for a right one."""
    try:
        compare.run_case(exercise, case, Replies(reply, data), seed)
    except Stop as stopped:
        return stopped
    return None


def product(change=lambda a, b, c, stale: c):
    """Return the bytes of C, A and B, where C is what `change` makes of the right one."""
    sent = compare.request(KERNEL, CASE, 1)[1]
    a, b, stale = (
        np.frombuffer(x, CASE.dtype).reshape(s) for x, s in zip(sent, CASE.shapes, strict=True)
    )
    return np.ascontiguousarray(change(a, b, a @ b, stale)).tobytes(), sent[0], sent[1]


def facts(findings=(), **counts):
    return {"findings": list(findings), "counts": counts}


RIGHT = product()


def test_a_right_reply_passes():
    assert stop(KERNEL, CASE, facts(), RIGHT) is None
    assert stop(PAIR, Call((4,)), {}, [b"[4, 5]"]) is None


@pytest.mark.parametrize(
    "reply",
    [
        {"findings": []},
        {**facts(), "status": "PASS"},
        {"findings": {}, "counts": {}},
        {"findings": [], "counts": []},
        facts(loads=-1),
        facts(loads=True),
        facts(loads=1.5),
        facts([FINDING] * 65),
        facts([{**FINDING, "kind": 3}]),
        facts([{**FINDING, "array": "a" * 81}]),
        facts([{"kind": "race"}]),
        {"error": "none"},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_nonsense(reply):
    assert stop(KERNEL, CASE, reply, RIGHT).status == "CRASH"


def test_arrays_have_the_sizes_that_were_sent():
    c, a, b = RIGHT
    for data in ((c[:-4], a, b), (c, a, b[:-4]), (c, b, a), (c, a)):
        assert stop(KERNEL, CASE, facts(), data).status == "CRASH"
    for data in ((c, bytes(len(a)), b), (c, a, bytes(len(b)))):
        assert stop(KERNEL, CASE, facts(), data).diagnosis == "inputs"


def test_the_old_c_shows_where_nothing_is_written_or_added_up():
    assert stop(KERNEL, CASE, facts(), product(lambda a, b, c, old: old)).diagnosis == "stale"
    on_top = stop(KERNEL, CASE, facts(), product(lambda a, b, c, old: c + old))
    assert "plus what C held before" in str(on_top)


@pytest.mark.parametrize(("columns", "told"), [(2, True), (1, False)])
def test_a_last_line_is_one_line(columns, told):
    def unwritten_beyond(a, b, c, old):
        return np.concatenate([c[:, :columns], old[:, columns:]], axis=1)

    found = stop(KERNEL, CASE, facts(), product(unwritten_beyond))
    assert (compare.sentence("guard: last line") in str(found)) == told


@pytest.mark.parametrize(
    ("largest", "near", "beyond"),
    [(2**23, False, False), (2**40, True, False), (2**55, True, True)],
)
def test_whole_numbers_are_too_large_for_floats_from_a_size_on(largest, near, beyond):
    case = dataclasses.replace(CASE, dtype="int64")
    a, b = np.array([[largest]]), np.array([[1]])
    assert compare._near_floats(case, a @ b, a, b) == near
    assert compare._beyond_floats(case, a, b) == beyond


def test_counts_tell_why_c_is_wrong():
    stale, wrong = product(lambda a, b, c, old: old), product(lambda a, b, c, old: c + 1)
    says = compare.sentence("no store: nothing"), compare.sentence("unread: tiles")

    def said(data, **counts):
        return [text in str(stop(KERNEL, CASE, facts(**counts), data)) for text in says]

    loads, stores = {"global loads": 9}, {"global stores": 9}
    staged, read = {"shared bytes": 9}, {"shared loads": 9}
    assert said(stale, **loads) == [True, False]
    assert said(stale, **loads, **stores) == said(stale, **stores) == said(stale) == [False, False]
    assert said(wrong, **loads) == [False, False]
    assert said(wrong, **loads, **staged) == [False, True]
    assert said(wrong, **staged) == said(wrong, **loads, **staged, **read) == [False, False]


def test_a_limit_is_the_largest_count_allowed():
    limited = dataclasses.replace(KERNEL, counts=(Count("loads", lambda case: 10, "Too many."),))
    assert stop(limited, CASE, facts(loads=10), RIGHT) is None
    over = stop(limited, CASE, facts(loads=11), RIGHT)
    assert (over.status, over.diagnosis, over.share) == ("WRONG", "counts", 0.5)
    assert stop(limited, CASE, facts(), RIGHT).status == "CRASH"


def test_findings_come_before_the_numbers_and_in_their_order():
    def first(*kinds, exercise=KERNEL, array="a"):
        findings = [{**FINDING, "kind": kind, "array": array} for kind in kinds]
        stopped = stop(exercise, CASE, facts(findings), RIGHT)
        return stopped.status, stopped.diagnosis

    assert first("race") == ("RACE", "race")
    assert first("out of bounds", "race") == ("RACE", "race")
    assert first("race", "negative index") == ("WRONG", "negative index")
    assert first("uninitialised read", "out of bounds") == ("WRONG", "out of bounds")
    assert first("of Triton's own") == ("WRONG", "of Triton's own")
    # A hint for one array goes before one for all, and a broader one before none.
    assert first("race", array="b") == ("RACE", "race of b")
    assert first("clamped") == ("RACE", "race")
    guard = stop(KERNEL, CASE, facts([{**FINDING, "kind": "out of bounds"}]), RIGHT)
    assert str(guard) == "It races. Guard it."


@pytest.mark.parametrize(
    ("kind", "status", "diagnosis"),
    [
        ("StepLimit", "TIMEOUT", "timeout"),
        ("MemoryError", "CRASH", "memory"),
        ("SystemExit", "CRASH", "crash"),
        ("GeneratorExit", "CRASH", "crash"),
        ("UnboundLocalError", "WRONG", "unbound"),
        ("ZeroDivisionError", "WRONG", "error"),
    ],
)
def test_an_exception_has_its_meaning(kind, status, diagnosis):
    stopped = compare.failed({"type": kind, "message": "m", "line": 3})
    assert (stopped.status, stopped.diagnosis) == (status, diagnosis)


@pytest.mark.parametrize(
    ("result", "diagnosis"),
    [
        ([4, 5, 6], "value"),
        ([4], "value"),
        ([4, True], "value"),
        ([4, 4], "twice"),
        (None, "nothing"),
        ({"4": 5}, "value"),
    ],
    ids=str,
)
def test_another_value_is_wrong(result, diagnosis):
    data = [json.dumps(result).encode()]
    stopped = stop(PAIR, Call((4,)), {}, data)
    assert stopped.diagnosis == diagnosis and "should be [4, 5]" in str(stopped)
    # What a hidden call asks for is not given away.
    assert "should be" not in str(stop(PAIR, Call((4,), hidden=True), {}, data))


def test_what_an_exercise_accepts_beside_its_own_answer():
    free = dataclasses.replace(
        PAIR, accepts=lambda arguments, result: "" if sum(result) == 9 else "It is no 9."
    )
    assert stop(free, Call((4,)), {}, [b"[2, 7]"]) is None
    assert "It is no 9." in str(stop(free, Call((4,)), {}, [b"[4, 6]"]))


@pytest.mark.parametrize(
    ("x", "y", "same"),
    [
        (1, True, False),
        (True, 1, False),
        (10**12, 10**12 + 1, False),
        (1.0, 1 + 1e-12, True),
        (1.0, 1 + 1e-6, False),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1", 1, False),
    ],
)
def test_which_values_are_alike(x, y, same):
    assert compare._alike(x, y) is same


def test_how_deep_a_result_may_be():
    deep = []
    for _ in range(compare.MOST_DEPTH):
        deep = [deep]
    assert not compare._deep(deep) and compare._deep([deep]) and compare._deep({"a": [deep]})


COUNTED = [one for one in exercises() if "products" in [count.what for count in one.counts]]


@pytest.mark.parametrize("one", COUNTED, ids=lambda one: one.name)
def test_a_scaled_c_has_the_right_ones_digits(one):
    """Scaled down, small numbers lose some in float16, and scaled up, large ones overflow."""
    for number, case in enumerate([*one.cases] * 3):
        described, blobs = compare.request(one, case, number)
        *inputs, _ = map(partial(compare._array, case.dtype), blobs, one.shapes(case))
        inputs = [x.astype(np.float64) for x in inputs]
        x, y = one.operation.product(case, *inputs) if one.operation else inputs
        right, scale = x @ y, described["scale"]
        plain, back = right.astype(case.dtype), (scale * right).astype(case.dtype) / scale
        assert scale != 1 and np.isfinite(back).all()
        least = np.finfo(case.dtype).smallest_subnormal / 2
        assert (abs(back - right) <= abs(plain - right) + least).all(), (str(case), scale)
