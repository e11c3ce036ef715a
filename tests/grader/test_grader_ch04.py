"""Exercise 04.2: the limits on sectors are what the microscope counts for a kernel in rows."""

import numpy as np
import pytest

from tiled_matmul.grader.folders import exercise, folder
from tiled_matmul.grader.spec import Case
from tiled_matmul.ladder.cuda_coalesced import cuda_coalesced_kernel
from tiled_matmul.microscope.cuda import trace

IN_ROWS = folder("04.2").module("judge")


@pytest.mark.parametrize("case", exercise("04.2").cases, ids=str)
def test_the_limit_is_what_the_chapters_kernel_asks_for(case):
    a, b = (x.copy() for x in case.inputs(0))  # allocations of their own, as in a worker
    grid, block = exercise("04.2").launch(case)
    t = trace(cuda_coalesced_kernel, grid, block, a, b, np.zeros((case.m, case.n), np.float32))
    assert IN_ROWS.load_sectors(case) == t.global_loads.sectors
    assert IN_ROWS.store_sectors(case) == t.global_stores.sectors


def test_the_chapters_four_sectors_a_step():
    case = Case(64, 64, 64)
    assert (
        IN_ROWS.load_sectors(case) == 16 * 8 * 64 * 4 and IN_ROWS.store_sectors(case) == 16 * 8 * 4
    )


def test_the_grid_of_04_2_covers_c_whichever_axis_is_x():
    for case in exercise("04.2").cases:
        (across, down), (x, y) = exercise("04.2").launch(case)
        assert min(across * x, down * y) >= max(case.m, case.n)
