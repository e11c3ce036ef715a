"""What a trace says about traffic, against counts by hand and where kernels really write."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import launch
from tiled_matmul.ladder import cuda_coalesced, cuda_naive
from tiled_matmul.microscope.cuda import trace, traffic
from tiled_matmul.problem import Problem
from tiled_matmul.specimens.kernels import CASES

KERNELS = {
    "cuda_naive": cuda_naive.cuda_naive_kernel,
    "cuda_coalesced": cuda_coalesced.cuda_coalesced_kernel,
}


def square_trace(name, n, block=(16, 16), **options):
    a, b = (x.numpy() for x in Problem.square(n).inputs(device="cpu"))
    grid = -(-n // block[0]), -(-n // block[1])
    return trace(KERNELS[name], grid, block, a, b, np.empty_like(a), **options)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cuda_coalesced", {"A": 2, "B": 2, "C": 4}), ("cuda_naive", {"A": 16, "B": 1, "C": 16})],
)
def test_one_step_of_a_16x16_block(name, expected):
    t = square_trace(name, 32)
    for warp in range(8):
        requests = t.requests((1, 1), warp)
        for k in (0, 3, 31):
            a, b = requests[2 * k : 2 * k + 2]
            assert (a.array.name, b.array.name) == ("a", "b")
            assert (len(a.sectors), len(b.sectors)) == (expected["A"], expected["B"])
        assert len(requests[-1].sectors) == expected["C"]


def test_fetched_of_a_block():
    for name, asked in (("cuda_coalesced", 4), ("cuda_naive", 17)):
        found = traffic.fetched(square_trace(name, 64, blocks=[(0, 0)]), room=64)
        assert found.requests == 8 * 64 * 2
        assert found.asked == 8 * 64 * asked
        # 16 rows of A, 64 floats each, and 16 columns of B in each of its 64 rows.
        assert found.distinct == 16 * 8 + 64 * 2 == found.missed


def test_fetched_with_little_room_fetches_again():
    t = square_trace("cuda_naive", 64, blocks=[(0, 0)])
    found = traffic.fetched(t, room=4)
    assert found.distinct < found.missed <= found.asked
    with pytest.raises(ValueError, match="got 0"):
        traffic.fetched(t, room=0)


def test_reuse_of_a_product():
    rows = traffic.reuse(square_trace("cuda_coalesced", 32))
    cells = {row[0]: row for row in rows.cells}
    # 4 bytes: each of 32³ steps asks for one; 2 sectors for each of 32 warps a step; 32² once.
    assert cells["a"] == ["a", "load", "131,072", "65,536", "4,096", "32"]
    assert cells["c"] == ["c", "store", "4,096", "4,096", "4,096", "1"]


def test_intensity_counts_all_requests():
    t = square_trace("cuda_coalesced", 32)
    moved = t.global_loads.bytes + t.global_stores.bytes
    assert traffic.intensity(t, 2 * 32**3) == 2 * 32**3 / moved
    idle = trace(does_nothing, 1, 32)
    with pytest.raises(ValueError, match="does_nothing touched no global memory"):
        traffic.intensity(idle, 1)


def does_nothing():
    pass


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 16), (32, 8)])
def test_tiled_loads_is_two_mnk_over_t(rows, columns):
    p = Problem(64, 96, 40)
    expected = p.m * p.n * p.k * (1 / rows + 1 / columns)
    assert traffic.tiled_loads(p, rows, columns) == pytest.approx(expected)


def test_one_thread_an_element_loads_what_tiles_of_one_would():
    t = square_trace("cuda_naive", 20)
    assert t.global_loads.lanes == traffic.tiled_loads(Problem.square(20), 1, 1)


def test_measured_is_what_was_counted_on_a_gpu():
    found = traffic.measured("naive 64")
    assert found == traffic.counted(square_trace("cuda_naive", 64))
    assert found != traffic.counted(square_trace("cuda_coalesced", 64))
    with pytest.raises(ValueError, match="no counters were taken of 'naive 65'.*naive 64"):
        traffic.measured("naive 65")


@pytest.mark.parametrize("name", ["tiles, float64", "copy of 16 bytes: all lanes one"])
def test_what_is_counted_is_what_a_gpu_counts(name):
    """Conflicts count as wavefronts. Asynchronous copies count as loads, and not as stores."""
    (case,) = [case for case in CASES if case.name == name]
    t = trace(case.kernel, case.grid, case.block, *case.make_args(), sharedmem=case.sharedmem)
    counted = traffic.counted(t)
    assert counted == traffic.measured(name)
    if name.startswith("copy"):
        assert counted["load sectors"] != t.global_loads.sectors
        assert counted["shared store requests"] != t.shared_stores.requests
    else:
        assert counted["shared load wavefronts"] != counted["shared load requests"]


def test_sector_elements():
    assert traffic.sector_elements((1, 3), 8) == [4, 5, 6, 7, 12, 13, 14, 15]


@pytest.mark.parametrize("name", KERNELS)
def test_x_runs_where_the_rung_says(name):
    """One block of 8 threads along x writes a piece of a column, or of a row, and nothing else."""
    import torch

    device = "cuda" if select().on_gpu else "cpu"
    a, b = (torch.ones(shape, device=device) for shape in ((9, 2), (2, 9)))
    c = torch.zeros((9, 9), device=device)
    launch(KERNELS[name], (1, 1), (8, 1), a, b, c)
    written = sorted(map(tuple, c.cpu().nonzero().tolist()))
    line = [(i, 0) if name == "cuda_naive" else (0, i) for i in range(8)]
    assert written == line


@cuda.jit
def walks(x, c):
    """Sectors 0 and 1 in both warps; then 0, 2, 0 and 1 in the first one."""
    i = cuda.threadIdx.x
    acc = x[0] + x[8]
    if i < 32:
        acc += x[0] + x[16] + x[0] + x[8]
    c[i] = acc


@pytest.mark.parametrize(("room", "missed"), [(1, 6), (2, 4), (3, 3)])
def test_what_was_used_least_recently_gives_way(room, missed):
    t = trace(walks, 1, 64, np.ones(24, np.float32), np.zeros(64, np.float32))
    assert traffic.fetched(t, (0, 0), room) == traffic.Fetched(8, 8, 3, missed)


@cuda.jit
def adds_up(c):
    cuda.atomic.add(c, 0, 1)


def test_atomics_are_traffic_too():
    t = trace(adds_up, 1, 32, np.zeros(1, np.float32))
    assert traffic.intensity(t, 64) == 64 / 32
    assert traffic.reuse(t).cells == [["c", "atomic", "128", "32", "4", "32"]]


def test_tiled_loads_count_ragged_tiles():
    # Three tiles down and three across: A is read three times, B three times.
    assert traffic.tiled_loads(Problem(10, 7, 5), 4, 3) == 3 * 10 * 5 + 3 * 7 * 5
    assert traffic.tiled_loads(Problem(10, 7, 5), 3, 4) == 2 * 10 * 5 + 4 * 7 * 5
