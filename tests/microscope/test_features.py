"""The interpreter: all that a kernel may use, each with a result worked out another way."""

import importlib.util
import itertools
import math
import sys
import traceback

import numba.cuda
import numpy as np
import pytest
import torch
from numba import cuda, float32, float64, int32, int64, uint32
from numba.cuda import blockDim, blockIdx, grid, syncthreads, threadIdx

from tiled_matmul.microscope.cuda import Access, stands_for, trace, watch
from tiled_matmul.microscope.cuda.kernel import jit, run
from tiled_matmul.microscope.cuda.values import Int32

FULL = 0xFFFFFFFF
ROWS, COLUMNS = 3, 5
SHAPE = (ROWS, COLUMNS)


def launched(kernel, grid_size, block, *args, **options):
    """Run a kernel without and with a record; return what it wrote to `args[0]`, equal for both."""
    results = []
    for way in (run, trace):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        way(kernel, grid_size, block, *given, **options)
        results.append(given[0])
    assert results[0].tobytes() == results[1].tobytes()
    return results[0]


def zeros(shape, dtype="int64"):
    return np.zeros(shape, dtype)


# --- where a thread stands ------------------------------------------------------------------------


def test_indices_and_sizes_in_three_dimensions():
    def kernel(out):
        t, b = cuda.threadIdx, cuda.blockIdx
        x, y, z = cuda.grid(3)
        row = out[x, y, z]
        row[0], row[1], row[2] = t.x, t.y, t.z
        row[3], row[4], row[5] = b.x, b.y, cuda.blockIdx.z
        row[6], row[7], row[8] = cuda.blockDim.x, cuda.blockDim.y, cuda.blockDim.z
        row[9], row[10], row[11] = cuda.gridDim.x, cuda.gridDim.y, cuda.gridDim.z
        row[12] = cuda.laneid
        row[13] = cuda.warpsize

    grid_size, block = (2, 3, 2), (3, 2, 4)
    sizes = tuple(g * b for g, b in zip(grid_size, block, strict=True))
    out = launched(kernel, grid_size, block, zeros((*sizes, 14)))
    for place in itertools.product(*map(range, sizes)):
        (bx, tx), (by, ty), (bz, tz) = (divmod(p, b) for p, b in zip(place, block, strict=True))
        lane = (tx + 3 * (ty + 2 * tz)) % 32
        assert out[place].tolist() == [tx, ty, tz, bx, by, bz, *block, *grid_size, lane, 32]


def test_grid_and_gridsize():
    def kernel(out):
        x, y = cuda.grid(2)
        i = cuda.grid(1)
        sx, sy = cuda.gridsize(2)
        a, b, c = cuda.gridsize(3)
        if y == 0:
            out[x, 0], out[x, 1], out[x, 2], out[x, 3] = i, cuda.gridsize(1), sx, sy
            out[x, 4] = a * 100 + b * 10 + c

    out = launched(kernel, (3, 2), (4, 2), zeros((12, 5)))
    assert out.tolist() == [[i, 12, 12, 4, 1241] for i in range(12)]


def test_the_three_ways_to_import():
    def plain(out):
        i = grid(1)
        out[i] = blockIdx.x * 100 + blockDim.x * 10 + threadIdx.x
        syncthreads()
        out[i] += 1

    def dotted(out):
        i = numba.cuda.grid(1)
        out[i] = numba.cuda.blockIdx.x * 100 + numba.cuda.blockDim.x * 10 + numba.cuda.threadIdx.x
        numba.cuda.syncthreads()
        out[i] += numba.int64(1)

    def short(out):
        i = cuda.grid(1)
        out[i] = cuda.blockIdx.x * 100 + cuda.blockDim.x * 10 + cuda.threadIdx.x
        cuda.syncthreads()
        out[i] += 1

    expected = [block * 100 + 40 + thread + 1 for block in range(3) for thread in range(4)]
    for kernel in (plain, dotted, short):
        assert launched(kernel, 3, 4, zeros(12)).tolist() == expected


# --- arrays ---------------------------------------------------------------------------------------


def test_static_shared_memory_is_a_blocks_own():
    def kernel(out):
        tile = cuda.shared.array(8, numba.int32)
        i = cuda.threadIdx.x
        tile[i] = cuda.grid(1)
        cuda.syncthreads()
        out[cuda.grid(1)] = tile[7 - i]

    expected = [b * 8 + 7 - i for b in range(4) for i in range(8)]
    assert launched(kernel, 4, 8, zeros(32)).tolist() == expected


def test_shapes_and_types_from_outside():
    def kernel(out):
        a = cuda.shared.array(SHAPE, float32)
        b = cuda.shared.array((ROWS, COLUMNS, 2), dtype=np.float64)
        c = cuda.local.array(shape=COLUMNS, dtype=numba.int32)
        width = 4
        d = cuda.local.array((width, 2), int64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        a[y, x] = x + 0.1
        b[y, x, 1] = y + 0.1
        c[x] = 2.9
        d[3, 1] = 40
        cuda.syncthreads()
        out[y, x] = a[y, x] + b[y, x, 1] + c[x] + d[3, 1]
        out[y, x] += a.shape[0] * 1000 + a.shape[1] * 10000 + len(c) * 100000 + b.ndim * 1000000

    out = launched(kernel, 1, (COLUMNS, ROWS), zeros(SHAPE, "float64"))
    for y, x in np.ndindex(SHAPE):
        assert out[y, x] == float(np.float32(x + 0.1)) + (y + 0.1) + 2 + 40 + 3553000


def test_dynamic_shared_memory_is_one_memory_for_all_types():
    def kernel(out):
        floats = cuda.shared.array(0, float32)
        ints = cuda.shared.array(shape=0, dtype=int32)
        i = cuda.threadIdx.x
        floats[i] = 1.0 + i
        cuda.syncthreads()
        out[i] = ints[i]
        out[i + 4] = len(floats)

    out = launched(kernel, 1, 4, zeros(8, "int32"), sharedmem=32)
    assert out.tolist() == [*np.arange(1, 5, dtype="float32").view("int32").tolist(), 8, 8, 8, 8]


def test_alignment_moves_a_shared_array():
    def kernel(out):
        first = cuda.shared.array(3, float32)
        if aligned:
            second = cuda.shared.array(4, float32, alignment=128)
        else:
            second = cuda.shared.array(4, float32)
        first[0] = 1
        second[0] = 2
        out[0] = first[0] + second[0]

    def starts():
        t = trace(kernel, 1, 1, zeros(1, "float32"))
        stored = [r for r in t.requests((0, 0)) if r.site.op == "store"]
        return {r.array.name: r.addresses[0] for r in stored if r.array.space == "shared"}

    aligned = True
    assert starts() == {"first": 0, "second": 128}
    aligned = False
    assert starts() == {"first": 0, "second": 12}


def test_local_arrays_are_a_threads_own_and_leave_no_record():
    def kernel(out):
        mine = cuda.local.array(4, int64)
        for k in range(4):
            mine[k] = cuda.threadIdx.x * k
        cuda.syncthreads()
        total = 0
        for k in range(4):
            total += mine[k]
        out[cuda.threadIdx.x] = total

    assert launched(kernel, 1, 5, zeros(5)).tolist() == [6 * i for i in range(5)]
    t = trace(kernel, 1, 5, zeros(5))
    assert [a.name for a in t.arrays] == ["out"] and t.global_loads.requests == 0


def test_a_local_array_holds_nothing_of_the_block_before_and_is_no_other_one():
    def kernel(out):
        for k in range(10):  # more than are kept
            mine = cuda.local.array(2, float32)
            out[cuda.blockIdx.x, k] = mine[1]
            mine[1] = k
        first, second = cuda.local.array(2, float32), cuda.local.array(2, float32)
        first[0], second[0] = 1, 2
        out[cuda.blockIdx.x, 10] = first[0] + 10 * second[0] + 100 * cuda.blockIdx.x

    made = launched(kernel, 3, 1, zeros((3, 11), "float32"))
    assert np.isnan(made[:, :10]).all()
    assert made[:, 10].tolist() == [21, 121, 221]


def test_iterations_keep_their_number_where_threads_leave_a_loop_early():
    def kernel(out, a):
        thread = cuda.threadIdx.x
        for k in range(4):
            out[thread] += a[k]
            if k == thread:
                break

    for order in ("forward", "reverse"):
        out, a = zeros(4), np.arange(1, 5)
        t = trace(kernel, 1, 4, out, a, order=order)
        assert out.tolist() == [1, 3, 6, 10]
        loads = [r.lanes for r in t.requests((0, 0)) if r.array.name == "a"]
        assert loads == [(0, 1, 2, 3), (1, 2, 3), (2, 3), (3,)]


def test_views_of_arrays_inside_a_kernel():
    def kernel(out, a):
        row = a[1]
        column = a[:, 2]
        steps = a[0, 1::2]
        backwards = row[::-1]
        block = a[1:, 1:3]
        tail = a[-1][-2:]
        turned = a.T
        deep = a[...]
        out[0] = row[3]
        out[1] = column[2]
        out[2] = steps[1]
        out[3] = backwards[0]
        out[4] = block[1, 1]
        out[5] = tail[1]
        out[6] = turned[4, 1]
        out[7] = turned.shape[0] * 10 + turned.shape[1]
        out[8] = block.T[0, 1]
        out[9] = len(steps) * 10 + len(block)
        out[10] = deep[2, 0]
        row[0] = -1
        block[0, 0] = -2
        turned[2, 0] = -3

    a = np.arange(15).reshape(3, 5)
    places = [(1, 3), (2, 2), (0, 3), (1, 4), (2, 2), (2, 4), (1, 4), None, (2, 1), None, (2, 0)]
    wanted = [a[place] if place else 0 for place in places]
    wanted[7], wanted[9] = 53, 22
    for way in (run, trace):
        given, out = a.copy(), zeros(11)
        way(kernel, 1, 1, out, given)
        assert out.tolist() == wanted
        assert (given[1, 0], given[1, 1], given[0, 2]) == (-1, -2, -3)
        assert np.count_nonzero(given != a) == 3


def transpose(out, a):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x] * 2


BASE = np.arange(70.0, dtype="float32").reshape(7, 10)


def host(a):
    return a.numpy() if isinstance(a, torch.Tensor) else a


@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(
    "cut",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[1:6:2, ::3],
        lambda a: a[2:, 3:8],
        lambda a: a[:, 4:5],
    ],
)
def test_inputs_that_do_not_lie_row_after_row(wrap, cut):
    a = cut(wrap(BASE.copy()))
    out = cut(wrap(np.full((7, 10), -1, "float32"))).T
    before = host(out).copy()
    run(transpose, (2, 2), (8, 8), out, a)
    assert np.array_equal(host(out), 2 * host(a).T)
    again = cut(wrap(np.full((7, 10), -1, "float32"))).T
    assert np.array_equal(host(again), before)
    t = trace(transpose, (2, 2), (8, 8), again, a)
    assert np.array_equal(host(again), host(out))
    n, k = a.shape
    rows = t.accesses()
    assert sorted(rows["element"][rows["array"] == 1].tolist()) == list(range(n * k))


def test_only_the_elements_of_a_view_are_written():
    whole = torch.full((7, 10), -1.0)
    run(transpose, 1, (8, 8), whole[1:5, 2:9:3].T, torch.ones(4, 3)[:3].T.contiguous().T[:, :3])
    assert int((whole == 2).sum()) == 9 and int((whole == -1).sum()) == 61


def test_numpy_inputs_with_negative_strides():
    def kernel(out, a):
        i = cuda.threadIdx.x
        out[i, 0] = a[i]
        out[i, 1] = a[-1 - i]
        cuda.syncthreads()
        a[i] = 100 + i

    for way in (run, trace):
        base, out = np.arange(12), zeros((6, 2))
        way(kernel, 1, 6, out, base[::-2])
        assert out.tolist() == [[11 - 2 * i, 11 - 2 * (5 - i)] for i in range(6)]
        assert base[::-2].tolist() == [100 + i for i in range(6)]
        assert base[::2].tolist() == [0, 2, 4, 6, 8, 10]


def test_arrays_of_no_three_and_four_axes():
    def kernel(out, scalar, cube, hyper):
        i, j, k = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
        here = i, j, k
        out[i, j, k] = cube[here] + hyper[i, j, k, 1] + scalar[()]
        cube[i, j, k] += 1
        hyper[i, j, k, 0] *= 2

    cube, hyper = np.arange(24.0).reshape(2, 3, 4), np.arange(48.0).reshape(2, 3, 4, 2)
    for way in (run, trace):
        given = [zeros((2, 3, 4), "float64"), np.array(0.5), cube.copy(), hyper.copy()]
        way(kernel, 1, (2, 3, 4), *given)
        assert np.array_equal(given[0], cube + hyper[..., 1] + 0.5)
        assert np.array_equal(given[2], cube + 1)
        assert np.array_equal(given[3][..., 0], 2 * hyper[..., 0])


def test_no_axes_of_a_tensor():
    def kernel(out):
        out[()] += 3

    out = torch.tensor(4)
    run(kernel, 1, 1, out)
    t = trace(kernel, 1, 1, out)
    assert int(out) == 10 and t.requests()[0].indices == ((),)


def test_arguments_that_share_memory_do_so_in_the_kernel():
    def kernel(a, b):
        i = cuda.threadIdx.x
        b[i] = a[i] + 10

    for way in (run, trace):
        memory = torch.arange(5)
        way(kernel, 1, 4, memory[:4], memory[1:])
        assert memory.tolist() == [0, 10, 20, 30, 40]
    t = trace(kernel, 1, 4, (memory := torch.arange(5))[:4], memory[1:])
    assert t.races and len(t.arrays) == 2


def test_every_dtype_is_read_and_written():
    def kernel(out, a):
        out[0] = a[0]
        out[1] = a[1]

    for dtype in ("bool", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
        a = np.array([0, 1], dtype)
        assert launched(kernel, 1, 1, zeros(2, dtype), a).tolist() == [0, 1]
        out = torch.zeros(2, dtype=getattr(torch, dtype))
        trace(kernel, 1, 1, out, torch.from_numpy(a))
        assert out.tolist() == [0, 1]
    for dtype, top in (("uint8", 255), ("uint16", 2**16 - 1), ("uint32", 2**32 - 1)):
        given = np.array([0, top], dtype)
        assert launched(kernel, 1, 1, zeros(2, dtype), given).tolist() == [0, top]
    top = np.array([2**63, 2**64 - 1], "uint64")
    assert launched(kernel, 1, 1, zeros(2, "uint64"), top).tolist() == top.tolist()


# --- barriers and warps ---------------------------------------------------------------------------


def test_barriers_that_vote():
    def kernel(out):
        i = cuda.threadIdx.x
        out[i, 0] = cuda.syncthreads_count(i % 3 == 0)
        out[i, 1] = cuda.syncthreads_and(i >= 0)
        out[i, 2] = cuda.syncthreads_and(i > 0)
        out[i, 3] = cuda.syncthreads_or(i == 39)
        out[i, 4] = cuda.syncthreads_or(i > 39)

    out = launched(kernel, 2, 40, zeros((40, 5)))
    assert (out != 0).tolist() == [[True, True, False, True, False]] * 40
    assert set(out[:, 0]) == {14}


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_shuffles(dtype):
    def kernel(out, values):
        i = cuda.threadIdx.x
        v = values[i]
        out[0, i] = cuda.shfl_sync(FULL, v, 5)
        out[1, i] = cuda.shfl_up_sync(FULL, v, 3)
        out[2, i] = cuda.shfl_down_sync(FULL, v, 4)
        out[3, i] = cuda.shfl_xor_sync(FULL, v, 9)
        out[4, i] = cuda.shfl_sync(FULL, v, (cuda.laneid * 7) % 32)
        keep(cuda.shfl_xor_sync(FULL, v, 1))

    values = (np.arange(64) * 1.5).astype(dtype)
    kept.clear()
    out = launched(kernel, 1, 64, zeros((5, 64), dtype), values)
    lane, base = np.arange(64) % 32, np.arange(64) // 32 * 32
    up, down = np.where(lane < 3, lane, lane - 3), np.where(lane > 27, lane, lane + 4)
    sources = lane * 0 + 5, up, down, lane ^ 9, lane * 7 % 32
    for found, source in zip(out, sources, strict=True):
        assert found.tolist() == values[base + source].tolist()
    carried = {"int32": Int32}.get(dtype, np.dtype(dtype).type)
    assert {type(value) for value in kept} == {carried}


def test_a_warp_sums_by_shuffles():
    def kernel(out, values):
        total = values[cuda.threadIdx.x]
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(FULL, total, offset)
            offset //= 2
        if cuda.laneid == 0:
            out[cuda.threadIdx.x // 32] = total

    values = np.random.default_rng(0).integers(0, 100, 96)
    out = launched(kernel, 1, 96, zeros(3), values)
    assert out.tolist() == values.reshape(3, 32).sum(1).tolist()


def test_votes_and_masks():
    def kernel(out):
        i = cuda.laneid
        out[0, i] = cuda.all_sync(FULL, i < 32)
        out[1, i] = cuda.all_sync(FULL, i < 31)
        out[2, i] = cuda.any_sync(FULL, i == 17)
        out[3, i] = cuda.any_sync(FULL, i == 99)
        out[4, i] = cuda.eq_sync(FULL, i < 32)
        out[5, i] = cuda.eq_sync(FULL, i < 5)
        out[6, i] = cuda.ballot_sync(FULL, i % 4 == 1) & FULL
        out[7, i] = cuda.match_any_sync(FULL, i // 8) & FULL
        if i % 2:
            out[8, i] = cuda.activemask() & FULL

    out = launched(kernel, 1, 32, zeros((9, 32)))
    for row, value in enumerate([1, 0, 1, 0, 1, 0, 0x22222222]):
        assert out[row].tolist() == [value] * 32
    assert out[7].tolist() == [0xFF << lane // 8 * 8 for lane in range(32)]
    assert out[8].tolist() == [0xAAAAAAAA if lane % 2 else 0 for lane in range(32)]


def test_a_full_mask_is_a_signed_number_but_for_activemask():
    """Measured on a GPU: ballot_sync and match_any_sync are of type int32."""

    def kernel(out):
        out[0] = cuda.ballot_sync(FULL, True)
        out[1] = cuda.match_any_sync(FULL, 3)
        out[2] = cuda.activemask()
        out[3] = cuda.ballot_sync(FULL, True) == FULL

    assert launched(kernel, 1, 32, zeros(4)).tolist() == [-1, -1, FULL, 0]


def test_part_of_a_warp_by_its_mask():
    def kernel(out):
        i = cuda.laneid
        shared = cuda.shared.array(32, int32)
        if i < 16:
            shared[i] = i
            cuda.syncwarp(0xFFFF)
            out[i] = shared[15 - i] + cuda.shfl_xor_sync(0xFFFF, i, 1) * 100
        else:
            out[i] = cuda.ballot_sync(0xFFFF0000, i > 20) & FULL

    out = launched(kernel, 1, 32, zeros(32))
    assert out[:16].tolist() == [15 - i + (i ^ 1) * 100 for i in range(16)]
    assert out[16:].tolist() == [0xFFE00000] * 16


# --- bits and small functions ---------------------------------------------------------------------


def test_bits():
    def kernel(out, x):
        i = cuda.threadIdx.x
        out[i, 0] = cuda.popc(x[i])
        out[i, 1] = cuda.clz(x[i])
        out[i, 2] = cuda.ffs(x[i])
        out[i, 3] = cuda.brev(x[i])
        out[i, 4] = cuda.selp(x[i] > uint32(100), 1, 2)

    x = np.array([0, 1, 6, 0x80000000, 0xFFFFFFFF, 12345678], "uint32")
    out = launched(kernel, 1, 6, zeros((6, 5)), x)
    for value, row in zip(x.tolist(), out.tolist(), strict=True):
        text = f"{value:032b}"
        ones, last = text.count("1"), text[::-1].find("1") + 1
        leading = 32 - len(text.lstrip("0"))
        assert row == [ones, leading, last, int(text[::-1], 2), 1 if value > 100 else 2]


def test_bits_of_wider_types():
    """Measured on a GPU: clz counts in its argument's type, brev turns 32 bits but for uint64."""

    def kernel(out, a):
        out[0], out[1], out[2] = cuda.clz(a[0]), cuda.clz(uint32(a[0])), cuda.clz(numba.uint64(0))
        out[3], out[4] = cuda.brev(a[0]), cuda.brev(numba.uint64(2))
        out[5], out[6] = cuda.popc(a[0] - 2), cuda.popc(uint32(a[0] - 2))
        out[7], out[8] = cuda.ffs(a[0] << 40), cuda.clz(a[0] - 2)

    wanted = [63, 31, 64, 2**31, 2**62, 64, 32, 41, 0]
    assert launched(kernel, 1, 1, zeros(9), np.array([1])).tolist() == wanted


def test_fma_rounds_once():
    def kernel(out, x):
        out[0] = cuda.fma(x[0], x[0], -x[1])
        out[1] = x[0] * x[0] - x[1]

    x = np.array([1 + 2**-12, 1 + 2**-11], "float32")
    out = launched(kernel, 1, 1, zeros(2, "float32"), x)
    assert out.tolist() == [2**-24, 0]


# --- atomics --------------------------------------------------------------------------------------

ATOMIC = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "min": min,
    "max": max,
    "and_": lambda old, value: old & value,
    "or_": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "inc": lambda old, value: 0 if old >= value else old + 1,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
}
WHERE = {
    "int32": ("add", "sub", "min", "max", "and_", "or_", "xor", "exch"),
    "int64": ("add", "sub", "min", "max", "and_", "or_", "xor", "exch"),
    "uint32": tuple(ATOMIC),
    "uint64": tuple(ATOMIC),
    "float32": ("add", "sub", "min", "max"),
    "float64": ("add", "sub", "min", "max"),
}


def atomic_kernels():
    """Return a kernel for each atomic function, on global and on shared memory."""
    for name in ATOMIC:
        yield (
            name,
            f"""
def on_global(out, old, values):
    i = cuda.threadIdx.x
    old[i] = cuda.atomic.{name}(out, i % 2, values[i])

def on_shared(out, old, values):
    i = cuda.threadIdx.x
    cell = cuda.shared.array((2, 2), KIND)
    if i < 2:
        cell[i, 1] = out[i]
    cuda.syncthreads()
    old[i] = cuda.atomic.{name}(cell, (i % 2, 1), values[i])
    cuda.syncthreads()
    if i < 2:
        out[i] = cell[i, 1]
""",
        )


@cuda.jit
def pairs_of_lanes(out):
    cell = cuda.shared.array(32, numba.int64)
    cell[cuda.threadIdx.x] = 0
    at = cuda.threadIdx.x // 2
    out[cuda.threadIdx.x] = cell[at]
    cuda.atomic.add(cell, at, 1)


def test_pairs_of_lanes_are_served_together_in_loads_only():
    t = trace(pairs_of_lanes, 1, 32, zeros(32, np.int64))
    waves = {r.site.op: r.wavefronts for r in t.requests() if r.array.space == "shared"}
    assert waves == {"store": 2, "load": 1, "atomic": 2}
    counted = (t.shared_stores, t.shared_loads, t.shared_atomics)
    assert [counts.wavefronts for counts in counted] == [2, 1, 2]


@pytest.mark.parametrize("dtype", WHERE)
def test_atomics_return_what_was_there(dtype, tmp_path):
    values = np.array([7, 3, 12, 5, 1, 6, 9, 2], dtype)
    for name, source in atomic_kernels():
        if name not in WHERE[dtype]:
            continue
        module = loaded(tmp_path, f"{name}_{dtype}", source, KIND=getattr(numba, dtype))
        start = np.array([4, 10], dtype)
        cells, wanted = start.tolist(), []
        for i, value in enumerate(values.tolist()):
            wanted.append(cells[i % 2])
            cells[i % 2] = ATOMIC[name](cells[i % 2], value)
        if dtype[0] == "u":
            cells = [cell % 2 ** (8 * values.itemsize) for cell in cells]
            wanted = [cell % 2 ** (8 * values.itemsize) for cell in wanted]
        for kernel in (module.on_global, module.on_shared):
            for way in (run, trace):
                out, old = start.copy(), zeros(8, dtype)
                t = way(kernel, 1, 8, out, old, values)
                assert (out.tolist(), old.tolist()) == (cells, wanted), (name, kernel.__name__)
                assert t is None or not t.races


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_compare_and_swap(dtype):
    def kernel(out, old):
        i = cuda.threadIdx.x
        old[i] = cuda.atomic.cas(out, 0, i, i + 1)
        old[i + 4] = cuda.atomic.compare_and_swap(out[1:], 7, i)

    out = np.array([0, 7], dtype)
    old = zeros(8, dtype)
    run(kernel, 1, 4, out, old)
    assert out.tolist() == [4, 0] and old.tolist() == [0, 1, 2, 3, 7, 0, 0, 0]


def test_atomics_wrap_around():
    def kernel(a, b):
        cuda.atomic.add(a, 0, 1)
        cuda.atomic.sub(b, 0, 1)

    a, b = np.array([2**31 - 1], "int32"), np.array([0], "uint32")
    trace(kernel, 1, 1, a, b)
    assert a.tolist() == [-(2**31)] and b.tolist() == [2**32 - 1]


# --- device functions -----------------------------------------------------------------------------


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit(device=True)
def square_sum(a, b, scale=0):
    return (square(a) + square(b)) * scale


@cuda.jit(device=True)
def both(a, b):
    return a + b, float32(a) / b


@cuda.jit(device=True)
def handed_round(tile, i, value):
    tile[i] = value
    cuda.syncthreads()
    found = tile[(i + 1) % 4]
    cuda.syncthreads()
    return found


@cuda.jit(device=True)
def scratch(i):
    mine = cuda.local.array(2, int64)
    mine[0] = i
    mine[1] = i * i
    return mine


@cuda.jit(device=True)
def row_of(a, i):
    return a[i]


@cuda.jit(device=True)
def put(a, i, value):
    a[i] = value


@cuda.jit(device=True)
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


def test_device_functions():
    def kernel(out, a):
        i = cuda.threadIdx.x
        tile = cuda.shared.array(4, int64)
        total, part = both(i, 4)
        out[i, 0] = square_sum(i, 2, 3)
        out[i, 1] = square_sum(b=i, a=1, scale=2)
        out[i, 2] = total
        out[i, 3] = part * 4
        out[i, 4] = handed_round(tile, i, i * 10)
        out[i, 5] = handed_round(tile, i, i * 100) + handed_round(tile, i, 1)
        mine = scratch(i)
        out[i, 6] = mine[0] + mine[1]
        out[i, 7] = row_of(a, i)[1] + both(i, 1)[0]
        put(out[i], 8, sign(i - 2))
        out[i, 9] = square(square(i)) + square(0.5) * 4

    a = np.arange(8.0).reshape(4, 2)
    out = launched(kernel, 1, 4, zeros((4, 10), "float64"), a)
    for i, row in enumerate(out.tolist()):
        later = (i + 1) % 4
        wanted = [(i * i + 4) * 3, (1 + i * i) * 2, i + 4, i, later * 10, later * 100 + 1]
        wanted += [i + i * i, 2 * i + 1 + i + 1, (i > 2) - (i < 2), i**4 + 1]
        assert row == wanted


def test_sites_of_a_device_function_belong_to_it():
    def kernel(out):
        put(out, cuda.threadIdx.x, 1)
        put(out, cuda.threadIdx.x + 4, 2)

    t = trace(kernel, 1, 4, zeros(8))
    assert {(s.function, s.op, s.text) for s in t.sites} == {("put", "store", "a[i]")}
    assert [r.elements for r in t.requests()] == [(0, 1, 2, 3), (4, 5, 6, 7)]


# --- control flow and tuples ----------------------------------------------------------------------


def test_control_flow():
    def kernel(out, limit):
        i = cuda.threadIdx.x
        if i >= limit:
            return
        total = 0
        k = 0
        while True:
            k += 1
            if k % 2 == 0:
                continue
            if k > 9:
                break
            total += k
        for j in range(10, 0, -3):
            if j == 4:
                break
            total += j
        for j in range(i):
            for _ in range(j, i):
                total += 1
        for part in (1, 2, 3):
            total += part
        out[i] = total if i % 2 == 0 else -total

    out = launched(kernel, 1, 8, zeros(8), 6)
    counts = [1 + 3 + 5 + 7 + 9 + 10 + 7 + i * (i + 1) // 2 + 6 for i in range(6)]
    assert out.tolist() == [c if i % 2 == 0 else -c for i, c in enumerate(counts)] + [0, 0]


def test_conditions():
    def kernel(out):
        i = cuda.threadIdx.x
        out[i, 0] = 0 < i < 3 <= 3
        out[i, 1] = i > 1 and i < 3 or i == 0
        out[i, 2] = not i
        out[i, 3] = 1 if i == 1 else 2 if i == 2 else 3
        out[i, 4] = (i > 0) + (i > 1) + (i > 2)
        low, high = i > 0, i < 3
        out[i, 5] = low + high
        out[i, 6] = low & high
        out[i, 7] = low == high
        flag = False
        if i == 2:
            flag = True
        out[i, 8] = flag
        out[i, 9] = i != 1 and 10 // (i - 1) > 0

    out = launched(kernel, 1, 4, zeros((4, 10)))
    for i, row in enumerate(out.tolist()):
        wanted = [0 < i < 3, i > 1 and i < 3 or i == 0, not i, [3, 1, 2, 3][i], i]
        wanted += [(i > 0) + (i < 3), 0 < i < 3, (i > 0) == (i < 3), i == 2]
        assert row == [int(w) for w in wanted] + [int(i != 1 and 10 // (i - 1) > 0)]


def test_tuples_and_swaps():
    def kernel(out, sizes, factors):
        i = cuda.threadIdx.x
        a, b = i, i + 1
        a, b = b, a
        (c, d), e = (a * 2, b * 2), 5
        pair = a, b
        m, n = sizes
        out[i, 0], out[i, 1] = pair
        out[i, 2] = c + d * 10 + e * 100
        out[i, 3] = m * n + sizes[1] + len(sizes)
        out[i, 0], out[i, 1] = out[i, 1], out[i, 0]
        x = y = i * 2
        out[i, 4] = x + y + factors[0] * factors[-1]

    out = launched(kernel, 1, 3, zeros((3, 5)), (4, 6), (2, 5))
    assert out.tolist() == [
        [i, i + 1, (i + 1) * 2 + i * 20 + 500, 24 + 6 + 2, 4 * i + 10] for i in range(3)
    ]


def test_augmented_assignment_of_elements_evaluates_once():
    def kernel(out, count):
        i = cuda.threadIdx.x
        out[i] += 5
        out[i] *= 3
        out[i] -= 1
        out[i] //= 2
        out[i] %= 5
        out[i] <<= 2
        out[i] |= 1
        out[i] ^= 7
        out[cuda.atomic.add(count, 0, 1)] += 100

    out, count = np.arange(4), zeros(1)
    run(kernel, 1, 4, out, count)
    wanted = [((((i + 5) * 3 - 1) // 2 % 5 << 2) | 1) ^ 7 for i in range(4)]
    assert out.tolist() == [w + 100 for w in wanted] and count.tolist() == [4]


def test_barriers_inside_expressions_and_conditions():
    def kernel(out):
        i, n = cuda.threadIdx.x, 0
        out[i, 0] = cuda.syncthreads_count(i > 1) + 1 if cuda.blockDim.x > 2 else 0
        while cuda.syncthreads_or(n < i):
            n += 1
            out[i, 1] += 1

    assert launched(kernel, 1, 5, zeros((5, 2))).tolist() == [[4, 4]] * 5


def times(factor):
    @cuda.jit(device=True)
    def multiplied(x):
        return x * factor

    return multiplied


double, triple = times(2), times(3)


@cuda.jit(device=True)
def at_least_a_half(x):
    if x > 2:
        return x
    return 0.5


def test_functions_of_one_name_and_of_two_types():
    def kernel(out):
        i = cuda.threadIdx.x
        out[i, 0], out[i, 1] = double(i), double(triple(0.5))
        out[i, 2] = triple(i)
        out[i, 3] = at_least_a_half(i)

    out = launched(kernel, 1, 4, zeros((4, 4), "float64"))
    assert out.tolist() == [[2 * i, 3, 3 * i, i if i > 2 else 0.5] for i in range(4)]


def test_arrays_chosen_by_the_kernel():
    def kernel(out, a, b):
        i = cuda.threadIdx.x
        chosen = a if i % 2 == 0 else b
        both_arrays = (a, b)
        out[i, 0] = chosen[i]
        for k in range(2):
            out[i, 1] += both_arrays[k][i] * (k + 1)
        for size in a.shape:
            out[i, 2] += size
        out[i, 3] = a.size + a.nbytes + a.itemsize + a.strides[0] + len(a.shape)

    out = launched(kernel, 1, 4, zeros((4, 4)), np.arange(4.0), np.arange(10.0, 14.0))
    for i, row in enumerate(out.tolist()):
        assert row == [10 + i if i % 2 else i, i + 2 * (10 + i), 4, 4 + 32 + 8 + 8 + 1]


def test_bools_and_bytes_in_arrays():
    def kernel(out, flags):
        small = cuda.shared.array(4, np.uint8)
        told = cuda.shared.array(4, np.bool_)
        i = cuda.threadIdx.x
        flags[i] = i > 1
        told[i] = i % 2
        small[i] = 250 + 3 * i
        cuda.syncthreads()
        out[i] = flags[i] + flags[i] + told[3 - i] + small[i]
        if flags[i] and not told[i]:
            out[i] += 1000

    out = launched(kernel, 1, 4, zeros(4), np.zeros(4, "bool"))
    assert out.tolist() == [1 + 250, 253, 2 + 1 + 0 + 1000, 2 + 3]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "uint64", "int64"])
def test_indices_and_loop_bounds_from_arrays(dtype):
    def kernel(out, a):
        out[a[1]] = a[1]
        out[a[0] - 1] += 1
        out[a[2] // 2] = -1
        for k in range(a[0], a[2]):
            out[k + 4] = k / 2

    out = launched(kernel, 1, 1, zeros(12, "float32"), np.array([1, 2, 7], dtype))
    assert out.tolist() == [1, 0, 2, -1, 0, *(k / 2 for k in range(1, 7)), 0]


def test_scalars_of_a_launch_keep_their_types():
    def kernel(out, single, narrow, yes, real, whole):
        out[0] = single * single
        out[1] = single * narrow
        out[2] = 1 if yes else 2
        out[3] = real * whole + single

    single = np.float32(0.1)
    given = single, np.int8(3), True, 2.5, 2**40
    out = launched(kernel, 1, 1, zeros(4, "float64"), *given)
    wanted = [single * single, single * np.float32(3), 1, 2.5 * 2**40 + float(single)]
    assert out.tolist() == [float(value) for value in wanted]


def test_math_and_casts_in_a_kernel():
    def kernel(out, x):
        out[0] = math.sqrt(x[0]) + math.exp(x[1])
        out[1] = float32(0.1)
        out[2] = int(x[1] * 10) + round(x[1]) + math.floor(x[1])
        out[3] = min(x[0], x[1], 1.0) + max(x[0], x[1]) + abs(-x[1])
        out[4] = math.sqrt(x[0]) + float64(3)
        out[5] = x[1] ** 2 + pow(2, 3)

    x = np.array([4.0, 2.5])
    out = launched(kernel, 1, 1, zeros(6, "float64"), x)
    wanted = [2 + math.exp(2.5), float(np.float32(0.1)), 25 + 2 + 2, 1 + 4 + 2.5, 5, 6.25 + 8]
    assert out.tolist() == wanted


# --- what a reader sees ---------------------------------------------------------------------------


def test_print_prints_once_a_thread(capsys):
    def kernel(x):
        i = cuda.grid(1)
        if i % 2 == 0:
            print("thread", i, x[i], i > 2, cuda.blockIdx.x)

    run(kernel, 2, 3, np.arange(6, dtype="float32") / 2)
    wanted = "thread 0 0.000000 False 0\nthread 2 1.000000 False 0\nthread 4 2.000000 True 1\n"
    assert capsys.readouterr().out == wanted
    run(kernel, 2, 3, np.arange(6, dtype="uint8"))
    assert capsys.readouterr().out == "thread 0 0 False 0\nthread 2 2 False 0\nthread 4 4 True 1\n"


def raising(out):
    i = cuda.threadIdx.x
    cuda.syncthreads()
    if i == 2:
        fail(out, i)  # here it fails


@cuda.jit(device=True)
def fail(out, i):
    out[i + 100] = 1  # out of bounds


def test_a_traceback_shows_the_kernels_own_lines():
    with pytest.raises(IndexError) as caught:
        run(raising, 1, 4, zeros(4))
    frames = traceback.extract_tb(caught.value.__traceback__)
    lines = [frame.line for frame in frames if frame.filename == __file__]
    assert "fail(out, i)  # here it fails" in lines
    assert "out[i + 100] = 1  # out of bounds" in lines
    assert "in thread (2, 0, 0) of block (0, 0, 0)" in caught.value.__notes__


def stopping(out):
    i = cuda.threadIdx.x
    doubled = i * 2
    if i == 3:
        breakpoint()
    out[i] = doubled


def test_breakpoints_stop_in_the_kernels_own_frame(monkeypatch):
    found = []

    def hook():
        frame = sys._getframe(1)
        found.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    run(stopping, 1, 4, zeros(4))
    ((file, line, names),) = found
    assert file == __file__
    assert line == stopping.__code__.co_firstlineno + 4
    assert names["i"] == 3 and names["doubled"] == 6 and names["out"].shape == (4,)


def test_a_debugger_sees_each_line_of_the_kernel():
    seen = []
    first = stopping.__code__.co_firstlineno

    def tracer(frame, event, _):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name.startswith("stopping"):
            if event == "line":
                seen.append(frame.f_lineno - first)
            return tracer
        return tracer

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: tracer(frame, event, arg))
    try:
        run(stopping, 1, 1, zeros(1))
    finally:
        sys.settrace(before)
    assert seen == [1, 2, 3, 5]


# --- launches -------------------------------------------------------------------------------------


def doubled(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 2 * a[i]


def test_all_kinds_of_kernels_are_traced():
    from numba.cuda import simulator

    given = torch.arange(10.0)
    kinds = [doubled, jit(doubled), cuda.jit(doubled), jit("void(f4[:], f4[:])")(doubled)]
    if hasattr(simulator, "jit"):
        kinds.append(simulator.jit(doubled))
    shown = set()
    for kernel in kinds:
        out = torch.zeros(10)
        t = trace(kernel, 2, 8, out, given)
        assert out.tolist() == (2 * given).tolist() and t.name == "doubled"
        shown.add(repr(t))
    assert len(shown) == 1


def test_launches_of_a_kernel():
    kernel = jit(doubled)
    given, wanted = np.arange(10.0), (2 * np.arange(10.0)).tolist()
    stream = cuda.stream() if hasattr(cuda, "stream") else 0
    for configured in (
        kernel[2, 8],
        kernel[(2,), (8,)],
        kernel[2, 8, stream],
        kernel[2, 8, 0, 64],
        kernel.forall(10),
        kernel.forall(10, 4),
        kernel.forall(10, tpb=3, stream=stream, sharedmem=16),
    ):
        out = zeros(10, "float64")
        assert configured(out, given) is None
        assert out.tolist() == wanted


def test_the_size_of_dynamic_shared_memory_comes_with_the_launch():
    @jit
    def kernel(out):
        tile = cuda.shared.array(0, int64)
        out[0] = tile.size

    out = zeros(1)
    kernel[1, 1, 0, 80](out)
    assert out.tolist() == [10]


def test_watch_traces_the_launches_inside():
    kernel, out = jit(doubled), zeros(6, "float64")
    with watch() as traces:
        kernel[1, 4](out, np.arange(6.0))
        kernel[2, 4](out, np.arange(6.0))
        with watch() as inner:
            kernel[3, 4](out, np.arange(6.0))
    kernel[4, 4](out, np.arange(6.0))
    assert [t.grid[0] for t in traces] == [1, 2] and [t.grid[0] for t in inner] == [3]
    assert traces[0].block == (4, 1, 1) and traces[0].global_stores.lanes == 4
    assert out.tolist() == [0, 2, 4, 6, 8, 10]


def test_watch_ends_with_an_error():
    kernel = jit(raising)
    with pytest.raises(TypeError), watch():
        kernel[1, 4]()
    with pytest.raises(IndexError):
        kernel[1, 4](zeros(4))


def test_only_some_blocks_run():
    def kernel(out):
        x, y = cuda.grid(2)
        out[y, x] = 1

    out = zeros((4, 6))
    t = trace(kernel, (3, 2), (2, 2), out, blocks=[(2, 0), (0, 1), (2, 0)])
    assert out.tolist() == [[0, 0, 0, 0, 1, 1]] * 2 + [[1, 1, 0, 0, 0, 0]] * 2
    assert t.global_stores.lanes == 8 and set(t.accesses()["block"]) == {2, 3}


def tiled(c, a, b):
    tile_a = cuda.shared.array((4, 4), float32)
    tile_b = cuda.shared.array((4, 4), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(0, a.shape[1], 4):
        inside = row < a.shape[0] and k + x < a.shape[1]
        tile_a[y, x] = a[row, k + x] if inside else 0
        tile_b[y, x] = b[k + y, column] if k + y < b.shape[0] and column < b.shape[1] else 0
        cuda.syncthreads()
        for j in range(4):
            total += tile_a[y, j] * tile_b[j, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def shown(t):
    """Return all that a trace says, as text."""
    parts = [repr(t), repr(t.by_line()), repr(t.by_array()), repr(t.by_warp()), repr(t.by_block())]
    for x, y, w in itertools.product(range(2), range(2), range(1)):
        parts += map(str, t.requests((x, y), w))
    return "\n".join(parts)


def test_the_order_of_the_threads_changes_nothing_without_races():
    rng = np.random.default_rng(3)
    a, b = rng.random((7, 6), "float32"), rng.random((6, 5), "float32")
    texts, results, accesses = set(), set(), set()
    for order, seed in [("forward", 0), ("reverse", 0), ("shuffle", 0), ("shuffle", 1)]:
        c = zeros((7, 5), "float32")
        t = trace(tiled, (2, 2), (4, 4), c, a, b, order=order, seed=seed)
        assert not t.findings
        texts.add(shown(t))
        results.add(c.tobytes())
        rows = t.accesses()
        accesses.add(np.sort(rows, order=list(rows.dtype.names)).tobytes())
    assert len(texts) == len(results) == len(accesses) == 1
    assert np.allclose(c, a @ b)


@pytest.mark.parametrize("order", ["forward", "shuffle"])
def test_two_traces_are_equal_byte_for_byte(order):
    a, b = np.ones((7, 6), "float32"), np.ones((6, 5), "float32")
    traces = [
        trace(tiled, (2, 2), (4, 4), zeros((7, 5), "float32"), a, b, order=order, seed=5)
        for _ in range(2)
    ]
    assert traces[0].accesses().tobytes() == traces[1].accesses().tobytes()
    assert shown(traces[0]) == shown(traces[1])


def test_a_race_shows_another_result_in_another_order():
    def kernel(out):
        out[0] = cuda.threadIdx.x

    results = []
    for order in ("forward", "reverse"):
        out = zeros(1)
        assert len(trace(kernel, 1, 4, out, order=order).races) == 1
        results.append(int(out[0]))
    assert results == [3, 0]


# --- what takes an intrinsic's place --------------------------------------------------------------


def load_pair(array, index):
    """Returns two neighbouring elements; on a GPU it would be an intrinsic."""


@stands_for(load_pair, "load")
def _load_pair(access: Access, array, index):
    return access.load(array, index, 2)


def keep(value):
    """Stands for `kept.append`."""


kept: list = []
stands_for(keep)(kept.append)


def test_intrinsics_are_one_access():
    def kernel(out, a):
        i = cuda.threadIdx.x
        x, y = load_pair(a, 2 * i)
        out[i] = x - y

    out = zeros(8, "float32")
    t = trace(kernel, 1, 8, out, np.arange(16, dtype="float32") ** 2)
    assert out.tolist() == [(2 * i) ** 2 - (2 * i + 1) ** 2 for i in range(8)]
    assert (t.global_loads.requests, t.global_loads.lanes, t.global_loads.sectors) == (1, 8, 2)
    assert t.global_loads.asked_bytes == 64


def loaded(tmp_path, name, source, **names):
    """Return a module made of a text."""
    file = tmp_path / f"{name}.py"
    file.write_text("from numba import cuda\n" + source)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module
