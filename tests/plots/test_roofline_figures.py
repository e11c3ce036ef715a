"""The two roofs and the bars of occupancy: what is written on them."""

import pytest

from tiled_matmul.machine.device import Peak
from tiled_matmul.plots import roofline

PEAK = Peak("made up", 50, 400, 2000, 40, 100, "nowhere")


def test_two_roofs_shows_both_bandwidths_and_says_each_kernel():
    points = {"tiles": (4.0, 0.25, 5.0), "8×8": (32.0, 2.0, 30.0)}
    figure = roofline.two_roofs(PEAK, (9, 0), points, 40.0, "The finding")
    # 50 TFLOP/s at 2 FLOPs a byte are 25 TB/s.
    assert "25 TB/s of shared memory" in figure.svg and "2 TB/s of global memory" in figure.svg
    assert "8×8: 30 TFLOP/s, 32 FLOPs for each byte of global memory and 2" in figure.alt
    assert figure.alt.startswith("The finding.") and "cuBLAS 40 TFLOP/s" in figure.alt


def test_two_roofs_needs_a_known_gpu():
    with pytest.raises(ValueError, match=r"\(6, 0\)"):
        roofline.two_roofs(PEAK, (6, 0), {"tiles": (4.0, 0.25, 5.0)}, 40.0, "The finding")


def test_occupancy_with_and_without_a_clock():
    figure = roofline.occupancy_against_rate([("4×4", 0.5, 0.4), ("8×8", 0.25, None)], "Less")
    assert "4×4: 50% occupied, 40% of cuBLAS; 8×8: 25% occupied." in figure.alt
