"""The recorder of visits: it sees what ran, and refuses what is no product."""

import numpy as np
import pytest

from tiled_matmul.check import assert_matmul
from tiled_matmul.ladder.loop_orders import KERNELS
from tiled_matmul.ladder.loops_python import loops_1
from tiled_matmul.models.cache import iterations
from tiled_matmul.models.visits import replay, visits
from tiled_matmul.problem import Problem


def test_loops_1_visits_i_then_j_then_k():
    assert visits(loops_1, 2, 3, 4) == list(iterations("ijk", 2, 3, 4))


@pytest.mark.parametrize("order", ["ikj", "kij", "jki", "kji"])
def test_a_compiled_nest_is_seen_through_its_python_form(order):
    assert visits(KERNELS[order], 4, 3, 2) == list(iterations(order, 4, 3, 2))


def test_indices_outside_are_noted_as_they_are():
    def one_too_far(a, b, c):
        for i in range(3):
            c[i, 0] += a[i, 0] * b[0, 0]

    assert visits(one_too_far, 2, 1, 1) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]


def test_a_nest_that_mixes_its_indices_is_refused():
    def wrong_row_of_b(a, b, c):
        c[0, 1] += a[0, 0] * b[1, 1]

    def transposed(a, b, c):
        c[1, 0] += a[0, 0] * b[0, 1]

    def reads_c_twice(a, b, c):
        c[0, 0] = c[0, 0] + c[0, 0] + a[0, 0] * b[0, 0]

    with pytest.raises(ValueError, match=r"A\[0, 0\] · B\[1, 1\] does not belong into C\[0, 1\]"):
        visits(wrong_row_of_b, 2, 2, 2)
    with pytest.raises(ValueError, match=r"does not belong into C\[1, 0\]"):
        visits(transposed, 2, 2, 2)
    with pytest.raises(ValueError, match="A was read 1 times, B 1 and C 2"):
        visits(reads_c_twice, 2, 2, 2)


def test_replay_does_the_arithmetic_in_the_order_given():
    a, b = Problem(5, 4, 37).inputs(3)
    order = list(iterations("ijk", 5, 4, 37))
    c = replay(order, a, b)
    assert_matmul(c, a, b)
    assert c.dtype == np.float32
    assert np.array_equal(c, replay(iterations("kij", 5, 4, 37), a, b))
    assert not np.array_equal(c, replay(reversed(order), a, b))
    assert_matmul(replay(reversed(order), a, b), a, b)


def test_replay_lets_no_visit_wrap_around():
    a, b = Problem.square(2).inputs()
    with pytest.raises(IndexError, match="lies outside"):
        replay([(-1, 0, 0)], a, b)
    with pytest.raises(IndexError):
        replay([(0, 0, 2)], a, b)
