"""Exercises of chapter 6: the limits and the judge's own function agree with the microscope."""

import numpy as np
import pytest
from numba import cuda, float32, float64

from tiled_matmul.grader import kinds
from tiled_matmul.grader.compare import header
from tiled_matmul.grader.folders import exercise, folder
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.ladder import cuda_transposed
from tiled_matmul.microscope.cuda import trace

SIZE, TYPE = 2048, float32
TRANSPOSED = folder("06.1").module("judge")
WAYS = folder("06.2").module("judge")


@cuda.jit
def one_load(stride, out):
    chain = cuda.shared.array(SIZE, TYPE)
    t = cuda.threadIdx.x
    for i in range(t, SIZE, cuda.blockDim.x):
        chain[i] = i
    cuda.syncthreads()
    out[t] = chain[t * stride]


@pytest.mark.parametrize(("size", "kind"), [(4, float32), (8, float64)])
def test_wavefronts_are_what_the_microscope_counts(size, kind):
    for stride in (*range(36), 48, 64):
        kernel = with_constants(one_load, TYPE=kind)
        t = trace(kernel, 1, 32, stride, np.zeros(32, np.float64))
        assert WAYS.wavefronts(stride, size) == t.shared_loads.wavefronts, stride


def traced(case, **constants):
    a, b = (x.copy() for x in case.inputs(0))  # allocations of their own, as in a worker
    constants = {"TILE": TRANSPOSED.TILE, "A_BY_COLUMNS": True, "B_BY_COLUMNS": False} | constants
    kernel = with_constants(cuda_transposed.cuda_transposed_kernel, **constants)
    c = np.zeros((case.m, case.n), np.float32)
    return trace(kernel, *exercise("06.1").launch(case), a.copy("F"), b, c)


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", exercise("06.1").cases, ids=str)
def test_the_limits_are_those_of_the_chapters_kernel(case):
    t = traced(case, PITCH=TRANSPOSED.TILE + 1)
    assert TRANSPOSED.load_sectors(case) == t.global_loads.sectors
    assert t.global_loads.lanes <= TRANSPOSED.loads(case)  # which has room for clamped loads
    # One conflict in each store, of A's tile and of B's, is few; eight ways are many.
    few, many = (
        x.shared_stores.bank_conflicts + x.shared_loads.bank_conflicts
        for x in (t, traced(case, PITCH=TRANSPOSED.TILE))
    )
    assert 0 < few <= TRANSPOSED.few_conflicts(case) < many


def test_a_worker_lays_a_out_by_columns():
    case = exercise("06.1").cases[1]
    a, b = case.inputs(0)
    request = header(exercise("06.1"), case) | {"entry": "look", "given": {}}
    request |= {"launch": ((1,), (1,)), "by_columns": "a"}
    blobs = [x.tobytes() for x in (a, b, np.zeros((case.m, case.n), np.float32))]
    _, (c, a_after, _) = kinds.run("cuda", {"look": by_columns}, request, blobs)
    assert a_after == a.tobytes()
    strides = np.frombuffer(c, np.float32).reshape(case.m, case.n)[0, :2]
    assert strides.tolist() == [4, 4 * case.m]


@cuda.jit
def by_columns(a, b, c):
    c[0, 0] = a.strides[0]
    c[0, 1] = a.strides[1]
