"""ladder/tile_view.py and its rungs: views are what they say, and cost what indices by hand do."""

import numpy as np
import pytest
import torch
from numba import cuda, float32

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.intrinsics import commit_copies, wait_copies
from tiled_matmul.kit.tile_view import copy_tile_async, tile
from tiled_matmul.ladder import rung
from tiled_matmul.ladder.cuda_tile_hand import cuda_tile_hand_kernel
from tiled_matmul.ladder.cuda_tile_view import cuda_tile_view_kernel
from tiled_matmul.microscope.compiled.cuda import NoCompiler, compiled_all
from tiled_matmul.microscope.cuda import trace, watch
from tiled_matmul.microscope.cuda.kernel import jit
from tiled_matmul.problem import Problem

ROWS, COLS = 3, 4
RUNGS = ("cuda_tile_hand", "cuda_tile_view")


@jit
def look(x, out, sizes):
    view = tile(x, ROWS, COLS)[cuda.blockIdx.y, cuda.blockIdx.x]
    row, col = cuda.threadIdx.y, cuda.threadIdx.x
    sizes[cuda.blockIdx.y, cuda.blockIdx.x, 0] = view.shape[0]
    sizes[cuda.blockIdx.y, cuda.blockIdx.x, 1] = view.shape[1]
    if row < view.shape[0] and col < view.shape[1]:
        value = view[row, col]
        target = tile(out, ROWS, COLS)[cuda.blockIdx.y, cuda.blockIdx.x]
        target[row, col] = value + 1


def test_views_cover_a_ragged_matrix_and_end_with_it():
    x = np.arange(7 * 10.0).reshape(7, 10)
    out, sizes = np.zeros_like(x), np.zeros((3, 3, 2), "int64")
    t = trace(look, (3, 3), (COLS, ROWS), x, out, sizes)
    assert np.array_equal(out, x + 1)
    assert sizes[:, :, 0].tolist() == [[3] * 3, [3] * 3, [1] * 3]
    assert sizes[:, :, 1].tolist() == [[4, 4, 2]] * 3
    assert {f.array for f in t.findings} == {"sizes"}  # all threads of a block write them
    assert t.count("global", "load").lanes == 70


@jit
def copies(x, out, i, j):
    s = cuda.shared.array((4, 6), float32)
    copy_tile_async(s, tile(x, 4, 6)[i, j], (3, 2))
    commit_copies()
    wait_copies(0)
    cuda.syncthreads()
    for row in range(cuda.threadIdx.y, 4, 2):
        for col in range(cuda.threadIdx.x, 6, 3):
            out[row, col] = s[row, col]


@pytest.mark.parametrize(("i", "j"), [(0, 0), (1, 1), (2, 1), (1, 2), (2, 2), (5, 5)])
def test_a_copy_fills_with_zeros_what_the_view_lacks(i, j):
    x = np.arange(1, 10 * 15 + 1, dtype="float32").reshape(10, 15)
    out = np.full((4, 6), -1, "float32")
    t = trace(copies, 1, (3, 2), x, out, i, j)
    padded = np.zeros((24, 36), "float32")
    padded[:10, :15] = x
    assert np.array_equal(out, padded[4 * i : 4 * i + 4, 6 * j : 6 * j + 6])
    assert not t.findings
    copied = t.count("shared", "store", asynchronous=True)
    assert copied.lanes == 4 * 6 and t.global_loads.lanes == x[4 * i :, 6 * j :][:4, :6].size


def test_threads_that_do_not_divide_the_tile_are_found():
    @jit
    def kernel(x):
        s = cuda.shared.array((4, 6), float32)
        copy_tile_async(s, tile(x, 4, 6)[0, 0], (4, 2))

    t = trace(kernel, 1, (4, 2), np.zeros((4, 6), "float32"))
    assert {f.kind for f in t.findings} == {"out of bounds"}


def test_an_element_beyond_the_view_is_found():
    @jit
    def kernel(x):
        view = tile(x, 4, 4)[1, 1]
        view[cuda.threadIdx.y, cuda.threadIdx.x] = 1

    t = trace(kernel, 1, (4, 4), np.zeros((6, 7)))
    assert [f.kind for f in t.findings] == ["out of bounds"] and t.findings[0].count == 16 - 2 * 3


# --- the rungs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("edge", [1, 5, 8, 32])
@pytest.mark.parametrize("name", RUNGS)
def test_right_with_every_tile_and_type(name, edge, dtype):
    a, b = Problem.parse("11x9x13" if edge > 1 else "5x2x3", dtype).inputs(2, "integers", "cpu")
    assert torch.equal(rung(name).matmul(a, b, tile=edge), a @ b)


def test_int32_wraps_around():
    a = torch.full((3, 4), 2**30, dtype=torch.int32)
    b = torch.full((4, 2), 3, dtype=torch.int32)
    expected = (a.numpy().astype("int64") @ b.numpy().astype("int64")).astype("int32")
    for name in RUNGS:
        assert np.array_equal(rung(name).matmul(a, b).numpy(), expected)


@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.parametrize(
    ("edge", "error", "message"),
    [(0, ValueError, "at least 1"), (33, ValueError, "at most 32"), ("8", TypeError, "an int")],
)
def test_impossible_tiles_are_refused(name, edge, error, message):
    with pytest.raises(error, match=f"tile must be {message}|tile must be .*{message}"):
        rung(name).matmul(*Problem.square(4).inputs(device="cpu"), tile=edge)


@pytest.mark.parametrize("name", RUNGS)
def test_halves_are_refused(name):
    a = torch.zeros((4, 4), dtype=torch.float16)
    with pytest.raises(TypeError, match="float16; this rung takes float32, float64, int32"):
        rung(name).matmul(a, a)


def counts(name, order="forward"):
    a, b = Problem(19, 21, 37).inputs(1, "integers", "cpu")
    with watch(order=order) as traces:
        assert torch.equal(rung(name).matmul(a, b, tile=8), a @ b)
    (t,) = traces
    assert not t.findings
    spaces = [(s, o) for s in ("global", "shared") for o in ("load", "store")]
    return {(*at, way): t.count(*at, asynchronous=way) for at in spaces for way in (True, False)}


def test_views_ask_memory_for_the_same():
    found = counts("cuda_tile_view")
    assert found == counts("cuda_tile_hand")
    assert found["global", "load", False].requests == found["shared", "store", False].requests == 0
    loaded = found["global", "load", True].lanes
    assert loaded == 19 * 37 * 3 + 37 * 21 * 3  # A once for each 8 columns, B for each 8 rows


@pytest.mark.long
@pytest.mark.parametrize("edge", [16, 32])
def test_views_cost_a_few_instructions_and_no_registers(edge):
    made = (torch.zeros(64, 64),) * 3
    kernels = {"hand": cuda_tile_hand_kernel, "view": cuda_tile_view_kernel}
    try:
        found = compiled_all(
            {name: (with_constants(k, TILE=edge), *made) for name, k in kernels.items()}
        )
    except NoCompiler as reason:
        pytest.skip(str(reason))
    hand, view = found["hand"], found["view"]
    assert hand.spilled_bytes == view.spilled_bytes == 0
    assert hand.shared_bytes == view.shared_bytes == 2 * edge * edge * 4
    assert view.registers <= hand.registers + 2
    for kind in ("shared loads", "multiply-adds", "asynchronous copies", "barriers"):
        assert view.count(kind) == hand.count(kind) > 0
    assert hand.inner.total() <= view.inner.total() <= hand.inner.total() + 10
