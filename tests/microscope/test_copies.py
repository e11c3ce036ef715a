"""microscope/cuda/copies.py: asynchronous copies land when waited for; every misuse is found."""

import numpy as np
import pytest
from numba import cuda, float32, float64, int32, uint64

from tiled_matmul.kit.intrinsics import (
    commit_copies,
    copy_async,
    copy_async4,
    load4,
    store4,
    wait_copies,
)
from tiled_matmul.microscope.cuda import KernelError, TypingError, stands_for, trace
from tiled_matmul.microscope.cuda.execute import ORDERS
from tiled_matmul.microscope.cuda.kernel import jit

N = 32


def ramp(count=4 * N, dtype="float32"):
    return np.arange(1, count + 1).astype(dtype)


def ran(kernel, *args, block=N, **options):
    """Trace a kernel in every order; return the trace of the first."""
    traces = [trace(kernel, 1, block, *args, order=order, **options) for order in ORDERS]
    kinds = [[(f.kind, f.lines, f.count) for f in t.findings] for t in traces]
    assert kinds[0] == kinds[1] == kinds[2]
    return traces[0]


def lines(kernel, *texts):
    """Return the numbers of the lines that hold these texts."""
    import inspect

    source, first = inspect.getsourcelines(getattr(kernel, "py_func", kernel))
    return tuple(
        next(first + at for at, line in enumerate(source) if text in line) for text in texts
    )


@jit
def neighbour(x, y):
    s = cuda.shared.array(N, float32)
    i = cuda.threadIdx.x
    copy_async(s, i, x, i, 1)
    commit_copies()
    wait_copies(0)
    cuda.syncthreads()
    y[i] = s[(i + 1) % N]


def test_what_was_waited_for_is_there():
    x, y = ramp(N), np.zeros(N, "float32")
    t = ran(neighbour, x, y)
    assert not t.findings and y.tolist() == np.roll(x, -1).tolist()
    assert t.global_loads.requests == 1 and t.global_loads.sectors == 4
    assert t.shared_stores.requests == 1 and t.shared_stores.wavefronts == 1
    assert t.shared_loads.requests == 1
    assert t.count("global", "load", asynchronous=True) == t.global_loads
    assert t.count("global", "load", asynchronous=False).requests == 0
    assert t.count("shared", "store", asynchronous=True) == t.shared_stores
    assert t.count("global", "store", asynchronous=True).requests == 0
    assert [r.site.op for r in t.requests()] == ["load", "store", "load", "store"]
    assert [r.site.array for r in t.requests()] == ["x", "s", "s", "y"]
    assert len(t.accesses()) == 4 * N
    assert "flight" not in repr(t) and "landing" not in repr(t)


@jit
def in_fours(x, y, present):
    s = cuda.shared.array((N, 4), float32, alignment=16)
    i = uint64(cuda.threadIdx.x)
    copy_async4(s, (i, uint64(0)), x, uint64(4) * i, present[i])
    commit_copies()
    wait_copies(0)
    cuda.syncthreads()
    for j in range(4):
        y[i, j] = s[N - 1 - i, j]


@pytest.mark.parametrize("there", range(5))
def test_only_what_is_present_is_read_and_the_rest_is_zero(there):
    x, y = ramp(), np.full((N, 4), -1, "float32")
    present = np.full(N, there)
    t = ran(in_fours, x, y, present)
    expected = np.where(np.arange(4) < there, x.reshape(N, 4), 0)[::-1]
    assert not t.findings and np.array_equal(y, expected)
    copied = t.count("global", "load", asynchronous=True)
    assert copied.asked_bytes == N * there * 4
    assert copied.sectors == (N // 2 if there else 0)
    stored = t.shared_stores
    assert (stored.requests, stored.lanes, stored.asked_bytes) == (1, N, 16 * N)
    assert stored.wavefronts == 4  # a quarter of the warp at a time


def test_an_address_where_nothing_is_present_is_not_read():
    x, y = ramp(4 * (N - 1)), np.zeros((N, 4), "float32")
    present = np.full(N, 4)
    t = ran(in_fours, x, y, present)
    assert [f.kind for f in t.findings] == ["out of bounds"]
    assert t.findings[0].index == (4 * (N - 1),)
    present[-1] = 0
    assert not ran(in_fours, x, y, present).findings and not y[0].any()


def test_one_element_of_eight_bytes():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float64)
        i = cuda.threadIdx.x
        copy_async(s, i, x, (i, 1), i % 2)
        commit_copies()
        wait_copies(0)
        y[i] = s[i]

    x, y = ramp(2 * N, "float64").reshape(N, 2), np.zeros(N)
    t = ran(kernel, x, y)
    assert not t.findings
    assert np.array_equal(y, np.where(np.arange(N) % 2, x[:, 1], 0))
    assert t.global_loads.lanes == N // 2 and t.shared_stores.asked_bytes == 8 * N


@jit
def stages(x, y):
    """Three groups, of which the newest one stays under way; each thread reads its own."""
    s = cuda.shared.array((3, N), int32)
    i = cuda.threadIdx.x
    for k in range(3):
        copy_async(s, (k, i), x, k * N + i, 1)
        commit_copies()
    wait_copies(1)
    y[0, i] = s[0, i]
    y[1, i] = s[1, i]
    wait_copies(0)
    y[2, i] = s[2, i]


def test_the_newest_groups_stay_under_way():
    x, y = ramp(3 * N, "int32"), np.zeros((3, N), "int32")
    assert not ran(stages, x, y).findings
    assert np.array_equal(y, x.reshape(3, N))


# --- planted faults -------------------------------------------------------------------------------


@jit
def too_few_waited_for(x, y):
    s = cuda.shared.array((3, N), int32)
    i = cuda.threadIdx.x
    for k in range(3):
        copy_async(s, (k, i), x, k * N + i, 1)
        commit_copies()
    wait_copies(1)
    y[2, i] = s[2, i]


def test_a_wait_for_too_few_groups_is_found():
    y = np.zeros((3, N), "int32")
    t = ran(too_few_waited_for, ramp(3 * N, "int32"), y)
    unread, race = t.findings
    assert unread.kind == "uninitialised read" and "no copy to it has landed" in str(unread)
    assert race.kind == "race" and race.count == N
    assert race.lines == lines(too_few_waited_for, "copy_async(", "y[2, i]")
    assert race.threads[0] == race.threads[1]
    assert "copied to" in str(race) and "no wait for the copy between" in str(race)
    assert "wait_copies" in race.remedy
    assert (y[2] != ramp(3 * N)[2 * N :]).all()


def test_a_group_that_was_not_closed_is_not_waited_for():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        copy_async(s, i, x, i, 1)
        wait_copies(0)
        y[i] = s[i]

    y = np.zeros(N, "float32")
    assert {f.kind for f in ran(kernel, ramp(N), y).findings} == {"race", "uninitialised read"}
    assert np.isnan(y).all()


@jit
def no_wait(x, y):
    s = cuda.shared.array(N, float32)
    i = cuda.threadIdx.x
    copy_async(s, i, x, i, 1)
    commit_copies()
    cuda.syncthreads()
    cuda.syncthreads()
    y[i] = s[(i + 1) % N]


def test_barriers_are_no_wait():
    y = np.zeros(N, "float32")
    t = ran(no_wait, ramp(N), y)
    assert [f.kind for f in t.findings] == ["uninitialised read", "race"]
    assert t.races[0].count == N and "while the copy may be under way" in str(t.races[0])
    assert t.races[0].lines == lines(no_wait, "copy_async(", "y[i] =")
    assert np.isnan(y).all()


@jit
def no_barrier(x, y):
    s = cuda.shared.array(N, float32)
    i = cuda.threadIdx.x
    copy_async(s, i, x, i, 1)
    commit_copies()
    wait_copies(0)
    y[i] = s[(i + 1) % N]


def test_a_wait_is_no_barrier():
    t = ran(no_barrier, ramp(N), np.zeros(N, "float32"))
    assert [f.kind for f in t.findings] == ["race"]
    assert t.races[0].count == N
    assert t.races[0].lines == lines(no_barrier, "copy_async(", "y[i] =")


@jit
def barrier_before_the_wait(x, y):
    s = cuda.shared.array(N, float32)
    i = cuda.threadIdx.x
    copy_async(s, i, x, i, 1)
    commit_copies()
    cuda.syncthreads()
    wait_copies(0)
    y[i] = s[(i + 1) % N]


def test_a_barrier_before_the_wait_does_not_help():
    t = ran(barrier_before_the_wait, ramp(N), np.zeros(N, "float32"))
    assert [f.kind for f in t.findings] == ["race"]


def two_buffers(x, y, early):
    """Two buffers: while one is read the other is filled, for x's rows one after another."""
    s = cuda.shared.array((2, N), float32)
    i = cuda.threadIdx.x
    copy_async(s, (0, i), x, (0, i), 1)
    commit_copies()
    for row in range(x.shape[0]):
        if early:
            copy_async(s, ((row + 1) % 2, i), x, (row + 1, i), row + 1 < x.shape[0])
            commit_copies()
        wait_copies(1 if early else 0)
        cuda.syncthreads()
        if not early:
            copy_async(s, ((row + 1) % 2, i), x, (row + 1, i), row + 1 < x.shape[0])
            commit_copies()
        y[row, i] = s[row % 2, (i + 1) % N]


def test_a_buffer_that_is_still_read_is_not_copied_into():
    x, y = ramp(5 * N).reshape(5, N), np.zeros((5, N), "float32")
    assert not ran(two_buffers, x, y, False).findings
    assert np.array_equal(y, np.roll(x, -1, axis=1))
    t = ran(two_buffers, x, y, True)
    assert [f.kind for f in t.findings] == ["race"]
    assert t.races[0].array == "s" and t.races[0].count == 2 * N


def test_two_copies_to_one_place_race():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        copy_async(s, i, x, i, 1)
        copy_async(s, i, x, i + N, 1)
        commit_copies()
        wait_copies(0)
        y[i] = s[i]

    t = ran(kernel, ramp(), np.zeros(N, "float32"))
    assert [f.kind for f in t.findings] == ["race"]
    assert t.races[0].lines == lines(kernel, "x, i, 1)", "x, i + N, 1)")


def test_a_store_to_where_a_copy_is_under_way_races():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        copy_async(s, i, x, i, 1)
        commit_copies()
        s[i] = 0
        wait_copies(0)
        y[i] = s[i]

    t = ran(kernel, ramp(), np.zeros(N, "float32"))
    assert [f.kind for f in t.findings] == ["race"]
    assert t.races[0].lines == lines(kernel, "copy_async(", "s[i] = 0")


def test_a_store_before_the_copy_and_a_read_after_the_wait_are_in_order():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        s[i] = 0
        y[i] = s[i]
        copy_async(s, i, x, i, 1)
        commit_copies()
        wait_copies(0)
        y[i] = s[i]
        s[i] = 2

    assert not ran(kernel, ramp(), np.zeros(N, "float32")).findings


def test_syncwarp_orders_copies_that_were_waited_for_and_no_others():
    @jit
    def kernel(x, y, waits):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        copy_async(s, i, x, i, 1)
        commit_copies()
        if waits:
            wait_copies(0)
        cuda.syncwarp()
        y[i] = s[(i + 1) % N]

    assert not ran(kernel, ramp(), np.zeros(N, "float32"), True).findings
    t = ran(kernel, ramp(), np.zeros(N, "float32"), False)
    assert [f.kind for f in t.findings] == ["uninitialised read", "race"]


def test_copies_that_are_never_waited_for_are_no_fault():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        copy_async(s, i, x, i, 1)
        y[i] = 1

    t = trace(kernel, 2, N, ramp(), np.zeros(N, "float32"))
    assert [f.array for f in t.findings] == ["y"]  # both blocks write it


def test_the_next_block_begins_with_nothing_under_way():
    @jit
    def kernel(x, y):
        s = cuda.shared.array(N, float32)
        i = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            copy_async(s, i, x, i, 1)
            commit_copies()
        else:
            s[i] = 7
            wait_copies(0)
            y[i] = s[i]
        cuda.syncthreads()

    y = np.zeros(N, "float32")
    assert not trace(kernel, 2, N, ramp(), y).findings and (y == 7).all()


# --- what a GPU would not do ----------------------------------------------------------------------


def test_wrong_addresses_types_and_numbers_are_refused():
    x, y = ramp(), np.zeros(N, "float32")

    @jit
    def unaligned(x, y):
        s = cuda.shared.array((4, N), float32, alignment=16)
        copy_async4(s, (0, 0), x, 1, 4)

    @jit
    def unaligned_target(x, y):
        s = cuda.shared.array((4, N), float32, alignment=16)
        copy_async4(s, (0, 2), x, 0, 0)

    @jit
    def backwards(x, y):
        s = cuda.shared.array(N, float32)
        x[0] = s[0]
        copy_async(x, 0, s, 0, 1)

    @jit
    def other_type(x, y):
        s = cuda.shared.array(N, int32)
        copy_async(s, 0, x, 0, 1)

    @jit
    def five(x, y):
        s = cuda.shared.array(N, float32, alignment=16)
        copy_async4(s, 0, x, 0, 5)

    @jit
    def spaced(x, y):
        s = cuda.shared.array(N, float32, alignment=16)
        copy_async4(s, 0, x[::4], 0, 4)

    @jit
    def negative(x, y):
        wait_copies(-1)

    for kernel, error, message in (
        (unaligned, KernelError, "16 bytes at an address that is no multiple"),
        (unaligned_target, KernelError, "16 bytes at an address that is no multiple"),
        (backwards, KernelError, "from global to shared memory, got shared to global"),
        (other_type, TypingError, "1 of float32 into int32"),
        (five, KernelError, "0 to 4 elements are present, got 5"),
        (spaced, KernelError, "do not lie side by side"),
        (negative, KernelError, "got -1"),
    ):
        with pytest.raises(error, match=message):
            trace(kernel, 1, 1, x, y)

    @jit
    def wide(x, y):
        s = cuda.shared.array(N, float64, alignment=16)
        copy_async4(s, 0, x, 0, 4)

    with pytest.raises(TypingError, match="4 of float64"):
        trace(wide, 1, 1, ramp(dtype="float64"), y)


def test_a_stand_in_that_does_something_else_is_refused():
    with pytest.raises(ValueError, match="cannot do fetch"):
        stands_for(object(), "load", "fetch")


# --- vectors --------------------------------------------------------------------------------------


@jit
def vectors(x, y):
    s = cuda.shared.array((N, 4), x.dtype, alignment=16)
    i = uint64(cuda.threadIdx.x)
    store4(s, (i, uint64(0)), load4(x, uint64(4) * i))
    cuda.syncthreads()
    store4(y, uint64(4) * i, load4(s, (N - 1 - cuda.threadIdx.x, 0)))


@pytest.mark.parametrize(("dtype", "each"), [("float32", 1), ("int32", 1), ("float64", 2)])
def test_four_of_eight_bytes_are_two_accesses_of_sixteen(dtype, each):
    x, y = ramp(dtype=dtype), np.zeros(4 * N, dtype)
    t = ran(vectors, x, y)
    assert not t.findings
    assert np.array_equal(y.reshape(N, 4), x.reshape(N, 4)[::-1])
    for counts in (t.global_loads, t.global_stores, t.shared_loads, t.shared_stores):
        assert counts.requests == each
        assert counts.asked_bytes == 4 * N * x.itemsize
    assert {r.width for r in t.requests()} == {16}
    # Of 8 bytes each, the two loads take halves of every sector.
    assert t.global_loads.sectors == (16 if each == 1 else 2 * 32)


def test_what_was_loaded_can_be_indexed_and_unpacked():
    @jit
    def kernel(x, y):
        i = cuda.threadIdx.x
        v = load4(x, 4 * i)
        first, _, third, _ = v
        for e in range(4):
            y[i, e] = v[e]
        y[i, 0] += v[uint64(3)] + first + third

    for dtype in ("float32", "float64"):
        x, y = ramp(dtype=dtype), np.zeros((N, 4), dtype)
        t = ran(kernel, x, y)
        expected = x.reshape(N, 4).copy()
        expected[:, 0] += x[3::4] + x[::4] + x[2::4]
        assert not t.findings and np.array_equal(y, expected)
        assert t.global_loads.requests == {"float32": 1, "float64": 2}[dtype] + 1
