"""The suite "interpreter": the microscope is as fast beside Numba's simulator as promised."""

import pytest

from tiled_matmul.measure import interpreter, records

WANTED = {"launch": 15, "trace": 6}  # times as fast as Numba's simulator, at least


@pytest.mark.long
def test_a_small_product_keeps_the_promise():
    taken = {case["way"]: values["seconds"] for case, values in interpreter.times(32)}
    assert list(taken) == list(interpreter.WAYS) and len(taken["numba"]) == 1
    for way, times in WANTED.items():
        assert min(taken["numba"]) > times * min(taken[way])


def test_the_record_keeps_the_promise():
    path = interpreter.SUITES[0].path("h200")
    taken = {x.case["way"]: x.values["seconds"] for x in records.load(path, "interpreter")}
    for way, times in WANTED.items():
        assert min(taken["numba"]) > times * min(taken[way])


def test_what_the_process_says_is_shown(monkeypatch):
    monkeypatch.setattr(interpreter, "COURSE", "raise SystemExit('no such kernel')")
    with pytest.raises(RuntimeError, match="the interpreter was not timed: no such kernel"):
        list(interpreter.times(16))
