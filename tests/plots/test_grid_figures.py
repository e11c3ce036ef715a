"""What chapter 4's figures conclude by themselves: their titles and what they light up."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.machine.device import Peak
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.plots import grid

PEAK = Peak("made up", 50, 400, 2000, 40, 100, "nowhere")


@cuda.jit
def one_step(a, b, c, down):
    lane = cuda.threadIdx.x
    row, col = (lane, 0) if down else (0, lane)
    c[row, col] = a[row, 3] * b[3, col]


def requests(down):
    matrices = (np.zeros((64, 64), np.float32) for _ in range(3))
    return trace(one_step, 1, 32, *matrices, down).requests()


def test_lit_shows_the_sector_round_an_element():
    shade = grid._lit(requests(down=False)[0], 16)
    assert shade.pop((0, 3)) == 1.0
    assert shade == {(0, j): 0.3 for j in range(8) if j != 3}
    assert grid._lit(requests(down=True)[0], 16)[(15, 3)] == 1.0


def test_owners_finds_both_readings():
    owner = [
        [1000 * (i // 3) + 100 * (j // 3) + 10 * (i % 3) + j % 3 for j in range(9)]
        for i in range(9)
    ]
    assert (
        "row 4, column 2, and in dark orange row 2, column 4" in grid.owners(owner, 1012, 121).alt
    )


def test_writers_counts_both_faults():
    without = np.array([1, 2, 1, 1, 1, 3])
    alt = grid.writers(without, np.array([1, 1, 1, 1, 0, 0]), 2, 2).alt
    assert "1 elements" in alt and "4 writes fall behind C" in alt


def test_warp_requests_counts_what_it_draws():
    alt = grid.warp_requests({"down": requests(True), "across": requests(False)}).alt
    assert "down: 33 sectors" in alt and "across: 5 sectors" in alt


@pytest.mark.parametrize(
    ("tflops", "title"), [(0.3, "caches must have helped"), (0.1, "far under the flat roof")]
)
def test_roofline_says_who_is_above_it(tflops, title):
    # At 0.1 FLOPs a byte, 2000 GB/s feed 0.2 TFLOP/s.
    svg = grid.roofline(PEAK, [("slow", 0.1, 100, tflops)], ("next", 4)).svg
    assert title in svg


def test_time_against_lines_names_the_cost():
    lines = {"x is the column, 16×16": 4, "x is the row, 32×8": 32}
    times = {"x is the column, 16×16": 2.0, "x is the row, 32×8": 25.0}
    figure = grid.time_against_lines(lines, 0.5, times)
    assert figure.alt.startswith("8 times the lines, 12.5 times the time")
    assert "a line a cycle" in grid.time_against_lines(lines, 0.5, None).alt
