"""What chapter 5's figures conclude by themselves: their titles, and what they light up."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.ladder.cuda_shared_tiles import cuda_shared_tiles_kernel
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.plots import shared, style

BANDS = [((128, 512), (1.5, 3)), ((1024, 2048), (3, 5))]


@cuda.jit
def no_tiles(a, b, c):
    x = cuda.threadIdx.x
    c[x, 0] = a[x, 0] * b[0, x]


def traced(kernel, n=6, block=(3, 3)):
    matrices = [np.ones((n, n), np.float32) for _ in range(3)]
    return trace(kernel, (n // block[0], n // block[1]), block, *matrices)


@pytest.fixture(scope="module")
def tiled():
    return traced(with_constants(cuda_shared_tiles_kernel, TILE=3))


def test_staging_counts_what_the_thread_does(tiled):
    alt = shared.staging(tiled, thread=5).alt
    assert alt.startswith("Each thread stages 2 elements for its block, and reads 6")
    assert "thread (2, 1) stores" in alt and "row 1 of A's tile and column 2 of B's" in alt
    assert "Each element is read 3 times" in alt


def test_staging_of_another_kernel_is_refused():
    with pytest.raises(ValueError, match="no_tiles has no two equal tiles in shared memory"):
        shared.staging(traced(no_tiles, block=(6, 1)), thread=0)


def test_answers_marks_what_is_wrong():
    right = np.arange(16.0).reshape(4, 4)
    figure = shared.answers(right, right, tile=3)
    assert figure.alt.startswith("All 16 numbers are as expected")
    assert style.FAULT.lower() not in figure.svg.lower()
    wrong = right.copy()
    wrong[1, 2], wrong[3, 3] = np.nan, 0
    figure = shared.answers(wrong, right, tile=3)
    assert figure.alt.startswith("2 of 16 numbers are not as expected")
    assert figure.svg.lower().count(style.FAULT.lower()) == 2


def test_speedups_counts_those_inside():
    found = {"over x": {128: 2.0, 512: 3.5, 1024: 4.0}, "over y": {}}
    figure = shared.speedups(found, BANDS)
    assert figure.alt.startswith("2 of 3 speed-ups lie in the expected range")
    assert "over x: 2.00 at 128, 3.50 at 512, 4.00 at 1024" in figure.alt
    assert "over y" not in figure.alt


def test_speedups_without_a_clock_shows_the_expectation():
    figure = shared.speedups({"over x": {}}, BANDS)
    assert "no clock here" in figure.alt and "1.5 to 3 from 128 to 512" in figure.alt
