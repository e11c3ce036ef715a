"""The sector model against requests counted by hand, and against where the kernels really write."""

import numpy as np
import pytest

from tiled_matmul.problem import Problem
from tiled_matmul.simt import traffic

LANES = np.arange(32)


@pytest.mark.parametrize(
    ("addresses", "itemsize", "expected"),
    [
        (LANES * 4, 4, 4),  # 128 bytes side by side
        (LANES * 8, 8, 8),
        (LANES * 2, 2, 2),
        (LANES * 4096, 4, 32),  # a row apart
        (LANES * 0, 4, 1),  # all lanes want one element
        (LANES * 4 + 4, 4, 5),  # side by side, but not from a sector's start
        (LANES[::-1] * 4, 4, 4),  # who wants which does not matter
        (np.array([30]), 4, 2),  # one element across two sectors
        (np.array([], dtype=np.int64), 4, 0),
    ],
)
def test_sectors(addresses, itemsize, expected):
    assert traffic.sectors(addresses, itemsize) == expected


@pytest.mark.parametrize(
    ("addresses", "itemsize", "words"),
    [
        (np.arange(33), 4, "33 addresses"),
        (np.array([-4]), 4, "-4"),
        (np.array([0]), 0, "itemsize must be positive, got 0"),
    ],
)
def test_sectors_refuses(addresses, itemsize, words):
    with pytest.raises(ValueError, match=words):
        traffic.sectors(addresses, itemsize)


def block_16x16(x_is_row: bool):
    """The warps of one 16×16 block: thread = 16·y + x, 32 threads a warp."""
    thread = np.arange(256).reshape(16, 16)  # [y, x]
    if x_is_row:
        thread = thread.T
    return traffic.lanes_of(thread // 32, thread % 32)


def test_lanes_of_puts_x_first():
    rows, columns = block_16x16(x_is_row=False)
    assert rows.shape == columns.shape == (8, 32)
    assert rows[1].tolist() == [2] * 16 + [3] * 16
    assert columns[1].tolist() == [*range(16), *range(16)]
    swapped_rows, swapped_columns = block_16x16(x_is_row=True)
    assert (swapped_rows == columns).all() and (swapped_columns == rows).all()


def test_lanes_of_leaves_idle_lanes_at_minus_one():
    rows, columns = traffic.lanes_of([[0, 0, 0]], [[0, 1, 5]])
    assert columns[0, :6].tolist() == [0, 1, -1, -1, -1, 2]
    assert (rows[0, 6:] == -1).all()
    asked = traffic.requests(rows[0], columns[0], 0, Problem(1, 3, 7))
    assert asked["B"].tolist() == [0, 4, 8]


@pytest.mark.parametrize(
    ("warp", "lane", "words"),
    [
        ([[0, 0]], [[1, 1]], "stands at two elements"),
        ([[0, -1]], [[0, 1]], "got warps from -1"),
        ([[0, 0]], [[0, 32]], "to 32"),
        ([[0, 0]], [[0], [1]], "alike"),
    ],
)
def test_lanes_of_refuses(warp, lane, words):
    with pytest.raises(ValueError, match=words):
        traffic.lanes_of(warp, lane)


@pytest.mark.parametrize(
    ("x_is_row", "expected"),
    [(False, {"A": 2, "B": 2, "C": 4}), (True, {"A": 16, "B": 1, "C": 16})],
)
def test_one_step_of_a_16x16_block(x_is_row, expected):
    problem = Problem.square(256)
    for warp in zip(*block_16x16(x_is_row), strict=True):
        for k in (0, 3, 255):
            assert traffic.step_sectors(*warp, k, problem) == expected


def test_loads_of_a_block():
    problem = Problem.square(64)
    for x_is_row, asked in ((False, 4), (True, 17)):
        rows, columns = block_16x16(x_is_row)
        counted = traffic.loads(rows, columns, problem, room=64)
        assert counted.requests == 8 * 64 * 2
        assert counted.asked == 8 * 64 * asked
        # 16 rows of A, 64 floats each, and 16 columns of B in each of its 64 rows.
        assert counted.distinct == 16 * 8 + 64 * 2 == counted.missed


def test_loads_with_little_room_fetch_again():
    rows, columns = block_16x16(x_is_row=True)
    problem = Problem.square(64)
    counted = traffic.loads(rows, columns, problem, room=4)
    assert counted.distinct < counted.missed <= counted.asked
    with pytest.raises(ValueError, match="got 0"):
        traffic.loads(rows, columns, problem, room=0)


@pytest.mark.parametrize("name", ["cuda_naive", "cuda_coalesced"])
def test_x_runs_where_the_rung_says(name):
    """One block of 8 threads along x writes a piece of a column, or of a row, and nothing else."""
    import torch

    from tiled_matmul.backend import select
    from tiled_matmul.ladder import cuda_coalesced, cuda_naive
    from tiled_matmul.ladder.launch import launch

    kernel = {
        "cuda_naive": cuda_naive.cuda_naive_kernel,
        "cuda_coalesced": cuda_coalesced.cuda_coalesced_kernel,
    }[name]
    device = "cuda" if select().on_gpu else "cpu"
    a, b = (torch.ones(shape, device=device) for shape in ((9, 2), (2, 9)))
    c = torch.zeros((9, 9), device=device)
    launch(kernel, (1, 1), (8, 1), a, b, c)
    written = sorted(map(tuple, c.cpu().nonzero().tolist()))
    line = [(i, 0) if name == "cuda_naive" else (0, i) for i in range(8)]
    assert written == line
