"""Chapter 3's figures: what they draw is what they were given, the same each time."""

import re

from tiled_matmul.models.cache import iterations
from tiled_matmul.plots import tiles

ORDER = list(iterations("ikj", 4, 6, 5))


def test_a_walk_of_b_is_drawn_as_one_line_for_each_sweep():
    def strokes(order):
        svg = tiles.reuse({"order": order}, "finding").svg
        paths = re.findall(r'<path d="([^"]*)"[^>]*stroke: #e69f00', svg, re.IGNORECASE)
        assert len(paths) == 1
        return paths[0].count("M ")

    assert strokes(ORDER) == 4  # B from its first element to its last, once for each row of A
    assert strokes(list(iterations("ijk", 4, 6, 5))) == 4 * 5 * 6  # no two neighbours in memory


def test_sets_say_how_many_are_used_and_how_full_the_fullest_is():
    alt = tiles.sets({"good": [4, 4, 4, 4], "bad": [16, 0, 0, 0]}, 12, "finding").alt
    assert "good: 4 of 4 sets are used, with at most 4 lines in one" in alt
    assert "bad: 1 of 4 sets are used, with at most 16 lines in one" in alt


def test_curves_name_their_numbers():
    traffic = tiles.traffic({"N = 8": {2: 0.5, 4: 0.25}}, 1.0, {"fit": 3}, "finding").alt
    assert "N = 8: 0.500 at 2, 0.250 at 4" in traffic
    measured = tiles.measured({"N = 8": {2: 10.0, 4: 20.5}}, 15.0, "finding").alt
    assert "N = 8: 10 at 2, 20.5 at 4; without tiles 15" in measured
    block = tiles.register_block(4, 8).alt
    assert "8 numbers loaded, 4 stored, 16 multiplications done" in block
    assert "load c3, add a30·b0 + a31·b1 + a32·b2 + a33·b3, store c3" in block


def test_a_strip_is_drawn():
    assert "cut into tiles of 2 by 2" in tiles.strips(6, 6, 6, 2, (1, 2)).alt


def test_the_equation_names_every_term():
    assert tiles.equation(2).alt.endswith("C(i,j) = A(i,0)·B(0,j) + A(i,1)·B(1,j).")
