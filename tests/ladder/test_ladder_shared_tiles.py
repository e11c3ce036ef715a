"""The rungs with tiles in shared memory: cuda_shared_tiles, cuda_puzzle, cuda_article and
cuda_supersteps. Right on any tile and type, and each line that keeps them right is needed."""

import numpy as np
import pytest
import torch

from tiled_matmul.check import run_checked
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.variants import edited, without
from tiled_matmul.ladder import cuda_article, cuda_puzzle, cuda_shared_tiles, cuda_supersteps, rung
from tiled_matmul.microscope.cuda import trace, watch
from tiled_matmul.microscope.cuda.traffic import counted, tiled_loads
from tiled_matmul.problem import Problem

RUNGS = ("cuda_puzzle", "cuda_article", "cuda_supersteps", "cuda_shared_16", "cuda_shared_32")
ORDERS = ({}, {"order": "reverse"}, *({"order": "shuffle", "seed": seed} for seed in (1, 2)))
BARRIER = "cuda.syncthreads()"
FLAT = {"cuda_article": cuda_article, "cuda_supersteps": cuda_supersteps}
# The kernel of each, and how many barriers a tile takes.
KERNELS = {
    "cuda_shared_tiles": (cuda_shared_tiles.cuda_shared_tiles_kernel, 2),
    "cuda_puzzle": (cuda_puzzle.cuda_puzzle_kernel, 2),
    "cuda_article": (cuda_article.cuda_article_kernel, 2),
    "cuda_supersteps": (cuda_supersteps.cuda_supersteps_kernel, 3),
}


def place():
    return "cuda" if select().on_gpu else "cpu"


def traced(kernel, problem, **options):
    """Return (trace, C, A·B) of a kernel of this file on whole numbers."""
    a, b = (x.numpy() for x in problem.inputs(4, "integers", "cpu"))
    c = np.full((problem.m, problem.n), 1000, a.dtype)
    name = kernel.py_func.__name__.removesuffix("_kernel")
    edge = 3 if name == "cuda_puzzle" else 16
    across, down = -(-problem.n // edge), -(-problem.m // edge)
    sizes = (problem.m, problem.n, problem.k)
    if name in FLAT:
        sizes = (problem.m, problem.k, problem.n) if name == "cuda_article" else sizes
        grid = (down, across) if name == "cuda_article" else (across, down)
        t = trace(kernel, grid, (edge, edge), a.ravel(), b.ravel(), c.ravel(), *sizes, **options)
    else:
        t = trace(kernel, (across, down), (edge, edge), a, b, c, **options)
    return t, c, a @ b


@pytest.mark.parametrize("name", RUNGS)
def test_int32_wraps_around(name):
    random = np.random.default_rng(0)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    a, b = (
        torch.from_numpy(random.integers(low, high, shape, np.int32)).to(place())
        for shape in ((9, 20), (20, 11))
    )
    run_checked(rung(name).matmul, a, b)


@pytest.mark.parametrize(("dtype", "left"), [("float32", 0), ("float64", 1), ("int32", 1)])
@pytest.mark.parametrize("name", RUNGS)
def test_sums_have_the_type_of_the_arrays(name, dtype, left):
    # 2²⁴ + 1 is no float32: summed in float32 the 1 is lost, summed in a wider type it is not.
    a = torch.tensor([[2**24, 1, -(2**24)]], dtype=getattr(torch, dtype), device=place())
    b = torch.ones((3, 1), dtype=a.dtype, device=place())
    assert rung(name).matmul(a, b).item() == left


@pytest.mark.parametrize("tile", [1, 2, 5, 31])
def test_any_tile_gives_the_same_product(tile):
    inputs = Problem(7, 11, 13).inputs(1, "integers", place())
    run_checked(cuda_shared_tiles.matmul, *inputs, tile=tile)
    run_checked(cuda_puzzle.matmul, *inputs, tpb=tile)


@pytest.mark.parametrize("tile", [0, 33])
def test_impossible_tiles_are_refused(tile):
    a, b = Problem.square(4).inputs(device=place())
    with pytest.raises(ValueError, match=f"tile must be at least 1 and at most 32, got {tile}"):
        cuda_shared_tiles.matmul(a, b, tile=tile)
    with pytest.raises(ValueError, match=f"tpb must be at least 1 and at most 32, got {tile}"):
        cuda_puzzle.matmul(a, b, tpb=tile)


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.sample(4)
def test_the_microscope_finds_nothing(name):
    for options in ORDERS:
        with watch(**options) as traces:
            run_checked(rung(name).matmul, *Problem(17, 20, 33).inputs(device=place()))
        assert traces[0].findings == []


def test_the_puzzles_own_numbers():
    a = torch.arange(81, dtype=torch.float32, device=place()).reshape(9, 9)
    c = cuda_puzzle.matmul(a, 2 * a).cpu().ravel()
    assert c[:3].tolist() == [3672, 3744, 3816] and c[-1].item() == 61272


# What global memory is asked for


@pytest.mark.parametrize("tile", [4, 8, 16])
@pytest.mark.parametrize("shape", ["32x32x32", "20x35x9"])
def test_a_tile_is_loaded_once(tile, shape):
    problem = Problem.parse(shape)
    with watch() as traces:
        cuda_shared_tiles.matmul(*problem.inputs(device=place()), tile=tile)
    assert traces[0].global_loads.lanes == tiled_loads(problem, tile, tile)


def test_all_mappings_load_the_same_elements():
    problem = Problem(20, 35, 19)
    lanes = []
    for name in ("cuda_article", "cuda_supersteps", "cuda_shared_16"):
        with watch() as traces:
            rung(name).matmul(*problem.inputs(device=place()))
        lanes.append(traces[0].global_loads.lanes)
    assert lanes == [tiled_loads(problem, 16, 16)] * 3


def test_x_as_the_row_asks_for_more_sectors():
    sectors = []
    for name in ("cuda_shared_16", "cuda_article"):
        with watch() as traces:
            rung(name).matmul(*Problem.square(64).inputs(device=place()))
        sectors.append(counted(traces[0])["load sectors"])
    assert sectors == [4096, 16384]


# Planted faults: each barrier but one is needed, and so is what keeps the edges right.


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.sample(3)
def test_each_barrier_is_there_and_needed(name):
    kernel, barriers = KERNELS[name]
    problem = Problem.square(9 if name == "cuda_puzzle" else 32)
    t, c, right = traced(kernel, problem)
    assert (c == right).all() and not t.findings
    assert t.accesses((0, 0))["phase"].max() == barriers * -(-problem.k // t.block[0])
    for number in range(barriers):
        t, c, right = traced(without(kernel, BARRIER, number), problem)
        if name == "cuda_supersteps" and number == 0:
            assert (c == right).all() and not t.findings
        else:
            assert (c != right).any() and t.races


@pytest.mark.parametrize("name", ["cuda_article", "cuda_supersteps"])
def test_without_zero_fill_only_ragged_sizes_go_wrong(name):
    broken = without(KERNELS[name][0], "] = 0")
    for size, fine in ((32, True), (24, False)):
        _, c, right = traced(broken, Problem.square(size))
        assert bool((c == right).all()) == fine


def test_zeros_in_the_shared_tiles_are_needed():
    kernel, _ = KERNELS["cuda_shared_tiles"]
    broken = edited(kernel, "else zero", "else a.dtype.type(1)")
    for size, fine in ((32, True), (24, False)):
        _, c, right = traced(broken, Problem.square(size))
        assert bool((c == right).all()) == fine


def test_the_puzzles_short_tile_is_needed_at_8_and_not_at_9():
    broken = edited(KERNELS["cuda_puzzle"][0], "min(TPB, a.shape[1] - start)", "TPB")
    for size, fine in ((9, True), (8, False)):
        t, c, right = traced(broken, Problem.square(size))
        assert bool((c == right).all()) == fine
        assert not t.findings  # what is stale was written once, so nothing else notices


def test_constants_make_kernels_of_other_tiles():
    kernel = with_constants(cuda_shared_tiles.cuda_shared_tiles_kernel, TILE=8)
    a, b = (x.numpy() for x in Problem.square(8).inputs(0, "integers", "cpu"))
    c = np.empty_like(a)
    t = trace(kernel, (1, 1), (8, 8), a, b, c)
    assert (c == a @ b).all() and {info.shape for info in t.arrays} == {(8, 8)}
