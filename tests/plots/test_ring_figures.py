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
