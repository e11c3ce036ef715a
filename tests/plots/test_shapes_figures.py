"""The figures of shapes show the numbers that they were given."""

import pytest

from tiled_matmul.models.waves import Waves
from tiled_matmul.plots import shapes


def test_each_tile_has_its_number_and_only_idle_places_are_hatched():
    ragged = shapes.schedule({"14 tiles": Waves(14, 6)}, "So")
    assert ragged.alt == (
        "So. 14 tiles: 14 tiles on 6 multiprocessors in 3 waves, 4 idle in the last one, 78% busy."
    )
    assert ">13<" in ragged.svg and ">14<" not in ragged.svg
    assert "<pattern" in ragged.svg
    assert "<pattern" not in shapes.schedule({"12 tiles": Waves(12, 6)}, "So").svg


def test_every_block_of_k_has_one_program():
    alt = shapes.split_k(3, 8, "So").alt
    assert "program 0 sums blocks 0, 3, 6; program 1 sums blocks 1, 4, 7; program 2" in alt
    assert "adds the 3 parts" in alt


def test_groups_of_warps_and_their_tiles_are_named():
    alt = shapes.groups_of_warps(64, 3, (128, 64), "So").alt
    assert alt.startswith("So. A tile of C of 192 × 192. Each of 3 groups of four warps owns 64")
    assert "128 and 64 columns wide. One more warp copies" in alt


def test_a_tile_of_two_heights_names_both():
    alt = shapes.two_heights((256, 32), 64, "So").alt
    assert alt.startswith("So. A tile of C with 64 columns and 256 plus 32 rows.")


@pytest.mark.parametrize(
    ("draw", "missing"),
    [
        (lambda: shapes.schedule({}, "So"), "no launch"),
        (lambda: shapes.split_k(1, 8, "So"), "need a block each: 1, 8"),
        (lambda: shapes.split_k(4, 3, "So"), "need a block each: 4, 3"),
        (lambda: shapes.two_heights((256, 0), 64, "So"), "must be positive"),
        (lambda: shapes.groups_of_warps(64, 0, (128, 64), "So"), "must be positive"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, missing):
    with pytest.raises(ValueError, match=missing):
        draw()
