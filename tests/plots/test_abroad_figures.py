"""plots/abroad.py: bars in groups, with their shares of the baseline's rate."""

import pytest

from tiled_matmul.plots import abroad as figures


def test_bars_are_sorted_and_say_their_share():
    shown = figures.rates({"4096": [("x", 300.0), ("cuBLAS", 600.0), ("y", 660.0)]}, "cuBLAS", "F")
    assert shown.alt.startswith("F. 4096; y 660 TFLOP/s, 1.10; cuBLAS 600 TFLOP/s; x 300 TFLOP/s")
    assert "y: 660, 1.10" in shown.svg


@pytest.mark.parametrize("wrong", [{}, {"4096": []}])
def test_nothing_cannot_be_drawn(wrong):
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.rates(wrong, "cuBLAS", "F")


def test_each_group_has_the_baseline():
    with pytest.raises(ValueError, match="4096 has no bar of 'cuBLAS', only x"):
        figures.rates({"4096": [("x", 1.0)]}, "cuBLAS", "F")
