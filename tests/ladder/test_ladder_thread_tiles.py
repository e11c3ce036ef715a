"""Tiles of C for a thread: which kernel is launched when, all sizes, and the microscope."""

import numpy as np
import pytest

from tiled_matmul.check import MatmulError, run_checked
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import launch
from tiled_matmul.ladder import cuda_thread_tile_1d, cuda_thread_tile_2d, cuda_vectorised
from tiled_matmul.microscope.cuda import watch
from tiled_matmul.problem import Problem

RUNGS = {
    "cuda_thread_tile_1d": cuda_thread_tile_1d,
    "cuda_thread_tile_2d": cuda_thread_tile_2d,
    "cuda_vectorised": cuda_vectorised,
}


def device() -> str:
    return "cuda" if select().on_gpu else "cpu"


def inputs(shape, dtype="float32", kind="integers", seed=3):
    return Problem.parse(shape, dtype).inputs(seed, kind, device())


def traced(rung, shape, dtype="float32", **options):
    with watch(**options) as traces:
        rung.matmul(*inputs(shape, dtype))
    return traces[0]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((shape, "float32") for shape in ("132x136x4", "1x4x4", "4x132x8")),
        *(("9x20x12", dtype) for dtype in ("float32", "float64", "int32")),
    ],
)
def test_fours_are_right_at_ragged_edges(shape, dtype):
    a, b = inputs(shape, dtype)
    run_checked(cuda_vectorised.matmul, a, b)


@pytest.mark.parametrize(
    ("shape", "fours"),
    [("8x8x8", True), ("7x8x8", True), ("8x7x8", False), ("8x8x7", False), ("1x1x1", False)],
)
@pytest.mark.sample(3)
def test_the_launcher_takes_fours_only_where_rows_begin_at_fours(shape, fours):
    assert traced(cuda_vectorised, shape).name.startswith(
        "cuda_vectorised_kernel" if fours else "cuda_thread_tile_2d_kernel"
    )


@pytest.mark.parametrize("shifted", ["a", "b", "out"])
@pytest.mark.sample(4)
def test_a_matrix_that_begins_between_fours_is_right_all_the_same(shifted):
    a, b = inputs("8x8x8")
    given = {"a": a, "b": b, "out": a.new_empty((8, 8))}
    aligned = given[shifted]
    room = aligned.new_empty(65)
    given[shifted] = room[1:].reshape(8, 8)
    given[shifted][:] = aligned
    with watch() as traces:
        c = cuda_vectorised.matmul(**given)
    assert traces[0].name.startswith("cuda_thread_tile_2d_kernel")
    assert bool((c == cuda_vectorised.matmul(a, b)).all())


@pytest.mark.sample(6)
@pytest.mark.parametrize("size", [(4, 4), (4, 12), (8, 4), (12, 8), (16, 16)])
def test_all_tiles_of_a_thread_give_the_same_product(size):
    rows, columns = size
    a, b = inputs("67x70x9")
    run_checked(cuda_thread_tile_2d.matmul, a, b, rows=rows, columns=columns)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rows": 6}, ValueError, "rows must be a multiple of 4, got 6"),
        ({"columns": 20}, ValueError, "columns must be at least 1 and at most 16, got 20"),
        ({"rows": 0}, ValueError, "rows must be at least 1"),
        ({"columns": 8.0}, TypeError, "columns must be an int, got 8.0"),
    ],
)
def test_impossible_tiles_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        cuda_thread_tile_2d.matmul(*inputs("4x4x4"), **options)


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.sample(4)
def test_int32_wraps_around(name):
    import torch

    a = torch.full((4, 8), 2**30 + 1, dtype=torch.int32, device=device())
    b = torch.full((8, 4), 3, dtype=torch.int32, device=device())
    expected = np.full((4, 4), 8 * 3 * (2**30 + 1), np.int64).astype(np.int32)
    assert (RUNGS[name].matmul(a, b).cpu().numpy() == expected).all()


@pytest.mark.parametrize(
    ("name", "shape", "loads", "wavefronts"),
    [
        ("cuda_thread_tile_1d", (64, 64, 8), 9 / 8, 9 / 8),
        ("cuda_thread_tile_2d", (128, 128, 8), 16 / 64, 24 / 64),  # two meet in a bank: source only
        ("cuda_vectorised", (128, 128, 8), 4 / 64, 12 / 64),
    ],
)
def test_loads_of_shared_memory_for_each_multiply_add(name, shape, loads, wavefronts):
    t = traced(RUNGS[name], "x".join(map(str, shape)))
    products = int(np.prod(shape))
    assert t.shared_loads.lanes == loads * products
    assert 32 * t.shared_loads.wavefronts == wavefronts * products
    assert t.shared_stores.bank_conflicts == 0


def test_without_the_padding_storing_a_transposed_meets_conflicts():
    kernel = with_constants(cuda_thread_tile_2d.cuda_thread_tile_2d_kernel, A_ROW=128)
    a, b = inputs("8x8x8")
    with watch() as traces:
        launch(kernel, (1, 1), (256, 1), a, b, a.new_empty((8, 8)))
    assert traces[0].shared_stores.bank_conflicts > 0


def test_tiles_of_another_size_than_the_grids_are_caught():
    def too_few_blocks(a, b, out):
        kernel = cuda_thread_tile_2d.kernel(4, 4)
        launch(kernel, (1, 1), (256, 1), a, b, out)  # 64 × 64 of it, as if a thread had 8 × 8
        return out

    with pytest.raises(MatmulError):
        run_checked(too_few_blocks, *inputs("70x70x4"))
