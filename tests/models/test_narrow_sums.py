"""narrow_sums: what a Hopper tensor core drops."""

import numpy as np
import pytest

from tiled_matmul.models.narrow_sums import ADDED, KEPT, cut, narrow_sums


def product(values):
    """Return the sum of some numbers, each times one."""
    return narrow_sums(np.array([values]), np.ones((len(values), 1)))[0, 0]


def test_what_lies_13_bits_below_the_largest_is_kept_and_14_bits_is_lost():
    for sign in (1, -1):
        assert product([sign, sign * 2.0**-KEPT]) == sign * (1 + 2.0**-KEPT)
        assert product([sign, sign * 2.0 ** -(KEPT + 1)]) == sign
    later = [2.0**-14] * ADDED
    assert product([1.0] + [0.0] * (ADDED - 1) + later) == 1
    assert product(later) == ADDED * 2.0**-14


def test_a_products_place_is_that_of_its_factors():
    """1.5 · 1.5 is 2.25, but what lies 13 bits below 1 is kept beside it."""
    for factor, kept in ((1.5, 2.0**-KEPT), (2.0, 0.0)):
        a, b = np.zeros((1, ADDED)), np.zeros((ADDED, 1))
        a[0, :2], b[:2, 0] = (factor, 2.0**-7), (factor if factor < 2 else 1, 2.0 ** (7 - KEPT))
        # The sum keeps 13 bits behind its own first one: here those of 2.
        assert cut(np.array(2.25 if kept else 2.0) + kept, np.array(1)) == narrow_sums(a, b)[0, 0]
        a[0, 2], b[2, 0] = -factor, b[0, 0]
        assert narrow_sums(a, b)[0, 0] == kept


def test_a_sum_is_cut_off_too():
    """33 numbers below 2 may be kept to 2^-13 each, and their sum, 32, to 2^-8."""
    a = np.full((1, ADDED), 1.0 + 2.0**-3)
    assert narrow_sums(a, np.ones((ADDED, 1)))[0, 0] == 36
    a[0, 0] += 2.0**-9
    assert narrow_sums(a, np.ones((ADDED, 1)))[0, 0] == 36


def test_it_truncates():
    assert product([1.0, 1.999 * 2.0**-KEPT]) == 1 + 2.0**-KEPT
    assert product([1.0, -1.999 * 2.0**-KEPT]) == 1 - 2.0**-KEPT


def test_promoted_sums_do_not_get_worse_with_k():
    rng = np.random.default_rng(1)
    worst = {}
    for k in (1024, 16384):
        a, b = (rng.integers(8, 17, shape) / 16 for shape in ((4, k), (k, 4)))
        right = a @ b
        for promote in (None, 128):
            found = narrow_sums(a, b, promote)
            assert (found <= right).all()
            worst[k, promote] = ((right - found) / right).max()
    assert worst[16384, None] > 10 * worst[1024, None] > 20 * worst[1024, 128]
    assert worst[16384, 128] < 2.0**-12
    zeros = np.zeros((3, 40))
    assert (narrow_sums(zeros, zeros.T) == 0).all()


@pytest.mark.parametrize("promote", [0, 16, 100])
def test_a_promotion_within_an_instruction_is_refused(promote):
    with pytest.raises(ValueError, match=f"multiple of 32, got {promote}"):
        narrow_sums(np.ones((2, 64)), np.ones((64, 2)), promote)


def test_shapes_that_do_not_fit_are_quoted():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4, 5\)"):
        narrow_sums(np.ones((2, 3)), np.ones((4, 5)))
