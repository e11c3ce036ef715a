"""Chapter 5: mistakes are told apart, and an integer kernel is judged to the last digit."""

from itertools import combinations

import numpy as np
import pytest

from tiled_matmul.grader.compare import Stop, product, request
from tiled_matmul.grader.folders import exercise, folder
from tiled_matmul.grader.spec import Case

CASES = [
    (name, case)
    for name in ("05.1", "05.2")
    for case in exercise(name).cases
    # Where a size is 1, many a mistake has the same result as another.
    if min(case.m, case.n, case.k) > 4
]


@pytest.mark.parametrize(("name", "case"), CASES, ids=str)
def test_no_two_mistakes_have_one_result(name, case):
    a, b = (x.astype(np.float64) for x in case.inputs(3))
    made = [(slip.message, slip.answer(case, a, b)) for slip in exercise(name).slips]
    wrong = [(said, c) for said, c in made if c is not None and not np.allclose(c, a @ b)]
    for (said, c), (other, d) in combinations(wrong, 2):
        if not (said.startswith("A thread beyond C") and other.startswith("A thread beyond C")):
            assert not np.allclose(c, d), (said, other)


def test_every_mistake_shows_in_some_case():
    for one in ("05.1", "05.2"):
        cases = exercise(one).cases
        for slip in exercise(one).slips:
            shown = []
            for case in cases:
                a, b = (x.astype(np.float64) for x in case.inputs(3))
                c = slip.answer(case, a, b)
                shown.append(c is not None and not np.allclose(c, a @ b))
            assert any(shown), slip.message


def test_a_large_case_is_not_taken_apart():
    case = Case(517, 389, 301)
    a, b = case.inputs(0)
    assert exercise("05.1").slips[0].answer(case, a, b) is None


def compared(case, seed, c):
    one = exercise("05.4")
    product(one, case, request(one, case, seed)[1], c.tobytes())


def told(case, c, seed=1):
    with pytest.raises(Stop) as caught:
        compared(case, seed, c.astype(case.dtype))
    return caught.value.diagnosis


@pytest.mark.parametrize("seed", range(20))
def test_what_floats_leave_of_integers_is_seen_for_any_numbers(seed):
    """Sums in float32 are near, those in float64 are cut off; right ones wrap around."""
    small, large, wraps = exercise("05.4").cases[:3]
    for case in (small, large, wraps):
        a, b = case.inputs(seed)
        compared(case, seed, a @ b)
    a, b = large.inputs(seed)
    near = np.zeros(large.shapes[2], np.float32)
    for k in range(large.k):
        near += np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    assert told(large, near, seed) == "rounded"
    a, b = wraps.inputs(seed)
    cut = folder("05.4").module("judge")._cut_off(wraps, a.astype(np.float64), b.astype(np.float64))
    assert told(wraps, cut, seed) == "cut off"


def test_whole_numbers_that_are_merely_wrong_are_not_called_rounded():
    large = exercise("05.4").cases[1]
    a, b = large.inputs(1)
    assert told(large, a @ b + 1000) == "value"
    small = exercise("05.4").cases[4]
    a, b = small.inputs(1)
    assert told(small, a @ b + 1) == "value"


def test_what_the_stencil_needs_at_least_is_counted_by_hand():
    """Tiles of 4 with their halos, cut off at A's edges: 5, 6 and 5 of 12 columns, 5 and 5 of 8."""
    stencil = folder("05.6").module("judge")
    assert stencil.fewest_loads(Case(8, 12, 1)) == (5 + 5) * (5 + 6 + 5)
    assert stencil._most_loads(Case(8, 12, 1)) == 6 * 6 * 6


@pytest.mark.parametrize("name", ["05.5", "05.6", "05.7"])
def test_mistakes_beyond_products_show_in_some_case(name):
    one = exercise(name)
    for slip in one.slips:
        shown = []
        for case in one.cases:
            inputs = [x.astype(np.float64) for x in one.inputs(case, 3)]
            c = slip.answer(case, *inputs)
            if one.operation.result is None:
                x, y = one.operation.product(case, *inputs)
                right = x @ y
            else:
                right = one.operation.result(case, *inputs)[0]
            shown.append(c is not None and not np.allclose(c, right))
        assert any(shown), slip.message
