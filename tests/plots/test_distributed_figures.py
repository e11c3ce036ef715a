"""The figures of chapter 17 show the parts, times and shares that they were given."""

import pytest

from tiled_matmul.plots import distributed


def test_every_part_has_its_rank_and_whole_matrices_none():
    figure = distributed.parts({"N is cut": (None, 1, 1)}, 4, "So")
    assert all(f">B{rank}<" in figure.svg and f">C{rank}<" in figure.svg for rank in range(4))
    assert ">A0<" not in figure.svg
    assert "A whole on each rank, B cut into columns, C cut into columns" in figure.alt


def test_bars_and_lanes_say_their_microseconds():
    figure = distributed.beside({"ring": 1044.0}, 774.0, 317.0, "So")
    assert ">1,044 µs<" in figure.svg and ">product alone<" in figure.svg
    assert "ring 1,044. The product alone takes 774, the transfer alone 317" in figure.alt
    figure = distributed.lanes({"ring": [("transfer", 0, 10), ("product", 0, 20)]}, "So")
    assert "ring: transfer 0 to 10, product 0 to 20" in figure.alt


def test_lines_are_predicted_and_markers_measured():
    figure = distributed.efficiency({"pulled": {2: 1.0, 4: 0.9}}, {"pulled": [(2, 0.97)]}, "So")
    assert ">pulled, predicted<" in figure.svg and ">pulled, measured<" in figure.svg
    assert "1.00 at 2, 0.90 at 4" in figure.alt
    beside = {"pulled": [(2, 0.97)], "published": [(2, 0.9)]}
    figure = distributed.efficiency({"pulled": {2: 1.0, 4: 0.9}}, beside, "So")
    assert ">published<" in figure.svg


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: distributed.parts({}, 5, "So"), "2 to 4 ranks, got 5"),
        (lambda: distributed.beside({}, 1.0, 1.0, "So"), "no time to draw"),
        (lambda: distributed.lanes({}, "So"), "nothing to draw"),
        (lambda: distributed.efficiency({}, {}, "So"), "no line"),
    ],
)
def test_nothing_to_draw_is_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()
