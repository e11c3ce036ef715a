"""models/many.py: bytes by hand, lines through points, times that follow from both."""

from __future__ import annotations

import pytest

from tiled_matmul.models.many import (
    Line,
    Machine,
    divisors,
    grid_of,
    held,
    in_layers,
    received,
)

CUTS = ("rows", "columns", "inner", "scattered", "gathered", "ring", "pulled", "summa")
MACHINE = Machine(
    Line(2, 700e6),
    {"gathered": Line(20, 250e3), "reduced": Line(20, 300e3), "passed on": Line(20, 290e3)}
    | {"pulled": Line(20, 370e3)},
    4.8e6,
)


def test_bytes_by_hand():
    n = 1000  # so that a matrix has 2 MB
    assert [received(cut, n, n, n, 4) / 2e6 for cut in CUTS] == pytest.approx(
        [0, 0, 1.5, 0.75, 0.75, 0.75, 0.75, 0.5]
    )
    assert [held(cut, n, n, n, 4) / 2e6 for cut in CUTS[:3]] == [1.25, 1.25, 0.5]
    # Of 64 ranks each has 1/8 of the rows and lacks 7/8 of the columns, twice.
    assert received("summa", n, n, n, 64) / 2e6 == pytest.approx(2 * 1 / 8 * 7 / 8)
    assert received("inner", 10, 20, 30, 2, bytes_each=4) == 10 * 20 * 4
    with pytest.raises(ValueError, match="no cut 'diagonal'"):
        received("diagonal", 1, 1, 1, 2)


def test_bytes_in_layers_by_hand():
    n = 1000
    assert in_layers(1, n, n, n, 64) == received("summa", n, n, n, 64)
    # Of 64 ranks in 4 layers each has 1/4 of the rows and of K, and lacks 3/4 of its columns, twice;
    # its tile of C, 1/16, has sums in 3 other layers.
    by_hand = 2 * 1 / 4 * 1 / 4 * 3 / 4 + 3 / 4 / 16
    assert in_layers(4, n, n, n, 64) / 2e6 == pytest.approx(by_hand)
    assert in_layers(64, n, n, n, 64) == received("scattered", n, n, n, 64)
    assert received("layered", n, n, n, 64) == min(in_layers(c, n, n, n, 64) for c in divisors(64))
    assert divisors(12) == [1, 2, 3, 4, 6, 12]


def test_layers_are_chosen_by_time_and_never_slower_than_one_grid():
    sizes = 16384, 16384, 16384
    for ranks in (2, 6, 16, 64, 1024):
        layered = MACHINE.us("layered", *sizes, ranks)
        assert layered <= MACHINE.us("summa", *sizes, ranks)
        assert layered <= MACHINE.us("scattered", *sizes, ranks) * (1 + 1e-9)
    assert MACHINE.us("layered", *sizes, 64) < 0.95 * MACHINE.us("summa", *sizes, 64)


def test_grids_are_as_square_as_can_be():
    grids = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 6: (2, 3), 8: (2, 4), 12: (3, 4)}
    assert {ranks: grid_of(ranks) for ranks in grids} == grids


def test_a_line_goes_through_its_points():
    line = Line.fitted([(10, 7.0), (20, 12.0), (40, 22.0)])
    assert (line.fixed, line.rate) == pytest.approx((2, 2)) and line.us(100) == pytest.approx(52)
    assert Line.fitted([(1, 1.0), (2, 2.2), (4, 4.8)]).fixed == 0  # never below
    with pytest.raises(ValueError, match="needs two amounts"):
        Line.fitted([(1, 1.0), (1, 2.0)])


def test_one_rank_receives_nothing_and_more_ranks_take_less_if_nothing_travels():
    sizes = 8192, 8192, 8192
    alone = MACHINE.us("rows", *sizes, 1)
    assert all(MACHINE.us(cut, *sizes, 1) == alone for cut in CUTS)
    assert MACHINE.us("columns", *sizes, 2) == pytest.approx(alone / 2, rel=0.01)


def test_only_what_is_pulled_overlaps():
    sizes, moved = (8192, 8192, 8192), 8192 * 8192
    product = MACHINE.us("rows", *sizes, 2)
    transfer = MACHINE.transfers["gathered"].us(moved)
    assert MACHINE.us("gathered", *sizes, 2) == pytest.approx(product + transfer)
    assert MACHINE.us("ring", *sizes, 2) > product + 200
    assert MACHINE.us("pulled", *sizes, 2) == pytest.approx(product, rel=0.01)
    assert MACHINE.us("inner", *sizes, 2) > MACHINE.us("scattered", *sizes, 2)
    assert MACHINE.bound(*sizes, 2) == product
    # Where the transfer is longer, it is waited for.
    small = 512, 512, 512
    assert MACHINE.us("pulled", *small, 2) > MACHINE.transfers["pulled"].us(512 * 512)
    assert MACHINE.bound(*small, 2) == MACHINE.transfers["pulled"].us(512 * 512)


def test_a_grid_receives_less_than_a_ring_with_many_ranks():
    sizes = 16384, 16384, 16384
    assert received("summa", *sizes, 256) < received("ring", *sizes, 256) / 4
    assert MACHINE.us("summa", *sizes, 256) < MACHINE.us("pulled", *sizes, 256)
    assert MACHINE.us("summa", *sizes, 4) > MACHINE.us("pulled", *sizes, 4)
