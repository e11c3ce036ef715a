"""plots/program_order.py: what is drawn is the model's, and counted bytes stand beside it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from traced_example import cells

from tiled_matmul.models.program_order import Setting
from tiled_matmul.plots import program_order as figures

TOY = Setting(9 * 64, 9 * 64, 9 * 64, (64, 64, 64), 1, 9)
PAIR = {"row by row": TOY, "groups of 3": replace(TOY, group_m=3)}


def test_orders_say_what_the_first_wave_wants_and_number_the_tiles():
    figure = figures.orders(PAIR, "Ten tiles or six")
    assert "row by row: the first 9 programs load 1 strip of A and 9 strips of B" in figure.alt
    assert "groups of 3: the first 9 programs load 3 strips of A and 3 strips" in figure.alt
    for text in (">80<", ">Ten tiles or six<", "3 of A + 3 of B", "= 6 strips, 442 KB"):
        assert text in figure.svg
    large = figures.orders({"x": Setting(4096, 4096, 4096)}, "Many")
    assert "= 25 strips" in large.svg and ">80<" not in large.svg


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(688128, "688 KB"), (1.13e6, "1.13 MB"), (2.312e9, "2.31 GB"), (96, "96 bytes")],
)
def test_bytes_in_words(nbytes, text):
    assert figures.size_text(nbytes) == text


def test_owners_show_a_tile_without_a_program_and_one_outside():
    grids = {"right": np.array([[0, 1], [2, 3]]), "wrong": np.array([[0, 2], [1, -1], [3, -1]])}
    figure = figures.owners(grids, 2, "One is missing")
    assert "right: 0 1, 2 3; wrong: 0 2, 1 none, 3 none." in figure.alt
    assert figure.svg.count(">none<") == 1 and ">3<" in figure.svg


def test_addresses_show_offsets_and_where_they_are():
    offsets = np.array([[20, 21], [0, 1]])
    figure = figures.addresses(offsets, (10, 1), 3, 10)
    assert "m is 2, 0, k is 0, 1. The offsets are 20 21; 0 1." in figure.alt
    assert "they are elements of rows 0, 2." in figure.alt and ">21<" in figure.svg


def test_l2_contents_say_what_a_wave_finds():
    figure = figures.l2_contents(PAIR, 10**6, "All stays")
    assert "row by row, wave 1: 1 strip of A and 9 strips of B, 737 KB; it finds n" in figure.alt
    assert "row by row, wave 2: 1 strip of A and 9 strips of B, 737 KB; it finds 6" in figure.alt
    assert "at its end the L2 has tiles of the last 100% of K" in figure.alt
    assert ">finds 664 KB<" in figure.svg and ">1 MB stay<" in figure.svg


def test_by_group_shows_the_model_and_what_was_counted():
    model = {8192: {1: 8.6, 8: 5.5, 16: 4.5}}
    figure = figures.by_group(model, {8192: {1: 9.25}}, "Groups help")
    assert "8.6 (counted 9.25) at 1, 5.5 at 8, 4.5 at 16" in figure.alt
    assert ">counted<" in figure.svg
    alone = figures.by_group(model, {}, "Groups help")
    assert ">counted<" not in alone.svg and "(counted" not in alone.alt


def test_by_size_shows_lines_and_the_limit():
    times = {"row by row": {4096: 1.0, 8192: 8.6}, "groups of 8": {4096: 1.0, 8192: 5.6}}
    figure = figures.by_size(times, {4096: 9.9, 8192: 19.9}, {"A and B fit": 4000}, "Late")
    assert "row by row: 1 at 4096, 8.6 at 8192; groups of 8" in figure.alt
    assert "as the arithmetic: 9.9 at 4096, 19.9 at 8192." in figure.alt
    assert ">A and B fit<" in figure.svg and ">counted<" not in figure.svg


def test_by_size_shows_what_was_counted_of_a_line():
    times = {"row by row": {4096: 2.5, 8192: 8.6}, "groups of 8": {4096: 2.8, 8192: 5.6}}
    found = {"row by row": {8192: 9.0}, "groups of 8": {}}
    figure = figures.by_size(times, {4096: 9.9}, {}, "Late", found)
    assert "row by row: 2.5 at 4096, 8.6 (counted 9) at 8192; groups of 8: 2.8 at" in figure.alt
    assert ">counted<" in figure.svg


def test_the_walk_goes_wave_by_wave():
    walk = figures.order_walk(PAIR, "Ten or six", "9 programs")
    assert len(walk.steps) == 9
    assert str(walk.steps[0]) == (
        "Wave 1 of 9: row by row: 1 strip of A and 9 strips of B, 10 of them new; "
        "groups of 3: 3 strips of A and 3 strips of B, 6 of them new."
    )
    assert "row by row: 1 strip of A and 9 strips of B, 1 of them new" in str(walk.steps[3])
    assert "groups of 3: 3 strips of A and 3 strips of B, 6 of them new" in str(walk.steps[3])
    second = walk.steps[1].lit
    assert cells(second, 0) == {(1, k) for k in range(9)}  # A, whole strips along K
    assert cells(second, 2) == {(1, j) for j in range(9)}  # C, what the wave stores
    assert cells(second, 5) == {(k, j) for k in range(9) for j in (3, 4, 5)}  # B, of the groups
    assert cells(second, 6) == {(i, j) for i in range(3) for j in (3, 4, 5)}
    every = [cells(step.lit, 6) for step in walk.steps]
    assert set().union(*every) == {(i, j) for i in range(9) for j in range(9)}
    page = walk._repr_html_()
    data = json.loads(re.search(r'walk-data">(.*?)</script>', page)[1])
    assert len(data["panels"]) == 8 and len(data["frames"]) == 9
    assert ">groups of 3</text>" in page and max(x for x, _, _ in data["panels"]) < figures.WIDTH


def test_a_walk_of_launches_that_do_not_fit_is_refused():
    with pytest.raises(ValueError, match="of the same tiles, as many alive"):
        figures.order_walk({"a": TOY, "b": replace(TOY, alive=8)}, "t", "w")
    with pytest.raises(ValueError, match="one or two launches"):
        figures.order_walk(PAIR | {"c": TOY}, "t", "w")
