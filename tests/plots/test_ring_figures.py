"""The figure of a ring says in words what it shows."""

import pytest

from tiled_matmul.models.ring import seam
from tiled_matmul.plots import ring as figures


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="no run"):
        figures.ring({}, "So")


def test_the_seam_is_told():
    runs = {"one program a tile": seam(False), "persistent": seam(True)}
    alt = figures.ring(runs, "Copies go on").alt
    assert alt.startswith("Copies go on. one program a tile: 3 buffers, 8 products take 32 units")
    assert "tensor cores are busy for 16" in alt


def test_what_blocks_and_groups_have():
    alone = figures.shares(1, (128, 256, 64), 2, "Two groups")
    assert "1 block of 128×256: 2 groups of warps, each with 64 rows of A" in alone.alt
    pair = figures.shares(2, (128, 256, 64), 2, "Two blocks")
    assert "one copy, for all 2 blocks" in pair.alt and "group 1 of block 1" in pair.svg
    with pytest.raises(ValueError, match="got 0 blocks of"):
        figures.shares(0, (128, 256, 64), 2, "None")
