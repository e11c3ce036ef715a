"""A zoo of small CUDA kernels, faulty and correct, with what the microscope has to say about each.

Every kernel runs in the simulator and compiles for a GPU. The lines at fault carry a comment
`# fault: NAME`; the findings name them, and `Specimen.expected` resolves the names to numbers.
FAULTY and CORRECT list the specimens. A faulty kernel is not for a GPU: some write out of bounds.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import boolean, cuda, float32, int32, uint8

FULL = 0xFFFFFFFF  # all lanes of a warp
T = 4  # edge of the small tiles


@dataclass(frozen=True)
class Fault:
    """One finding that must come: its kind, its array and the names of the marked lines."""

    kind: str
    array: str
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Specimen:
    """A kernel and how to launch it. `make_args()` returns fresh arguments, numpy arrays mostly.

    A faulty one has `findings`. A correct one has `reference(*args)`: given fresh arguments, it
    returns the tuple of arrays that the launch has to leave in the last ones.
    """

    name: str
    kernel: Callable
    grid: tuple[int, ...] | int
    block: tuple[int, ...] | int
    make_args: Callable[[], tuple]
    findings: tuple[Fault, ...] = ()
    reference: Callable[..., tuple] | None = None
    sharedmem: int = 0
    helpers: tuple[Callable, ...] = ()

    def expected(self) -> set[tuple[str, str, tuple[int, ...]]]:
        """Return (kind, array, sorted line numbers) of each finding that must come.

        Raises KeyError for a mark that stands in no line of the kernel or its helpers.
        """
        lines = self.marked_lines()
        return {
            (fault.kind, fault.array, tuple(sorted(lines[mark] for mark in fault.marks)))
            for fault in self.findings
        }

    def marked_lines(self) -> dict[str, int]:
        """Return the line number of each mark. Raises ValueError for a mark that stands twice."""
        marked = {}
        for function in (self.kernel, *self.helpers):
            text, first = inspect.getsourcelines(inspect.unwrap(function))
            for number, line in enumerate(text, first):
                found = re.search(r"# fault: (\w+)$", line.rstrip())
                if not found:
                    continue
                if found[1] in marked:
                    raise ValueError(f"{self.name} marks two lines as {found[1]!r}")
                marked[found[1]] = number
        return marked


FAULTY: list[Specimen] = []
CORRECT: list[Specimen] = []


def faulty(grid, block, args, *findings, sharedmem=0, helpers=()):
    """List the decorated kernel as one in which exactly `findings` have to be found."""

    def enlist(kernel):
        name = inspect.unwrap(kernel).__name__
        FAULTY.append(
            Specimen(
                name, kernel, grid, block, args, findings, sharedmem=sharedmem, helpers=helpers
            )
        )
        return kernel

    return enlist


def correct(grid, block, args, reference, sharedmem=0):
    """List the decorated kernel as one in which nothing may be found."""

    def enlist(kernel):
        name = inspect.unwrap(kernel).__name__
        CORRECT.append(
            Specimen(name, kernel, grid, block, args, (), reference, sharedmem=sharedmem)
        )
        return kernel

    return enlist


def race(array: str, *marks: str) -> Fault:
    return Fault("race", array, marks)


def outside(array: str, *marks: str) -> Fault:
    return Fault("out of bounds", array, marks)


def negative(array: str, *marks: str) -> Fault:
    return Fault("negative index", array, marks)


def unwritten(array: str, *marks: str) -> Fault:
    return Fault("uninitialised read", array, marks)


def divergent(*marks: str) -> Fault:
    return Fault("divergent barrier", "", marks)


def whole(*shape: int, dtype=np.float32, start: int = 1) -> np.ndarray:
    """Return an array of small whole numbers, so that sums are exact in any order."""
    size = math.prod(shape)
    return ((np.arange(size) * 5 + start) % 11).astype(dtype).reshape(shape)


def zeros(*shape: int, dtype=np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def vectors(*sizes: int) -> Callable[[], tuple]:
    """Return what makes (input, ..., output): vectors of these sizes, the last one zeros."""
    return lambda: (
        *(whole(size, start=n) for n, size in enumerate(sizes[:-1])),
        zeros(sizes[-1]),
    )


def matrices(m: int, n: int, k: int) -> Callable[[], tuple]:
    """Return what makes (a, b, c) for a product of these sizes."""
    return lambda: (whole(m, k), whole(k, n, start=3), zeros(m, n))


def product(a, b, c):
    return (a @ b,)


# --- faulty: barriers missing ---------------------------------------------------------------------

both_tiles = (race("a_tile", "store_a", "load"), race("b_tile", "store_b", "load"))


@faulty((2, 2), (T, T), matrices(8, 8, 8), *both_tiles)
@cuda.jit
def matmul_without_first_barrier(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(0, a.shape[1], T):
        a_tile[ty, tx] = a[row, k + tx]  # fault: store_a
        b_tile[ty, tx] = b[k + ty, col]  # fault: store_b
        for j in range(T):
            acc += a_tile[ty, j] * b_tile[j, tx]  # fault: load
        cuda.syncthreads()
    c[row, col] = acc


@faulty((2, 2), (T, T), matrices(8, 8, 8), *both_tiles)
@cuda.jit
def matmul_without_second_barrier(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(0, a.shape[1], T):
        a_tile[ty, tx] = a[row, k + tx]  # fault: store_a
        b_tile[ty, tx] = b[k + ty, col]  # fault: store_b
        cuda.syncthreads()
        for j in range(T):
            acc += a_tile[ty, j] * b_tile[j, tx]  # fault: load
    c[row, col] = acc


@faulty((2, 2), (T, T), matrices(8, 8, 8), *both_tiles)
@cuda.jit
def matmul_without_barriers(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(0, a.shape[1], T):
        a_tile[ty, tx] = a[row, k + tx]  # fault: store_a
        b_tile[ty, tx] = b[k + ty, col]  # fault: store_b
        for j in range(T):
            acc += a_tile[ty, j] * b_tile[j, tx]  # fault: load
    c[row, col] = acc


@faulty(
    (2, 2),
    (T, T),
    matrices(6, 7, 5),
    race("a_tile", "copy_a", "load"),
    race("a_tile", "fill_a", "load"),
    race("b_tile", "copy_b", "load"),
    race("b_tile", "fill_b", "load"),
)
@cuda.jit
def ragged_matmul_without_second_barrier(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(0, a.shape[1], T):
        if row < a.shape[0] and k + tx < a.shape[1]:
            a_tile[ty, tx] = a[row, k + tx]  # fault: copy_a
        else:
            a_tile[ty, tx] = 0  # fault: fill_a
        if k + ty < b.shape[0] and col < b.shape[1]:
            b_tile[ty, tx] = b[k + ty, col]  # fault: copy_b
        else:
            b_tile[ty, tx] = 0  # fault: fill_b
        cuda.syncthreads()
        for j in range(T):
            acc += a_tile[ty, j] * b_tile[j, tx]  # fault: load
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@faulty(2, 8, vectors(16, 16), race("s", "store", "load"))
@cuda.jit
def broadcast_without_barrier(a, out):
    s = cuda.shared.array(1, float32)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        s[0] = a[i]  # fault: store
    out[i] = s[0]  # fault: load


@faulty(1, 64, vectors(64, 1), race("s", "add"))
@cuda.jit
def reduction_without_barrier_in_its_loop(a, out):
    s = cuda.shared.array(64, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]
    cuda.syncthreads()
    reach = 32
    while reach > 0:
        if tx < reach:
            s[tx] += s[tx + reach]  # fault: add
        reach //= 2
    if tx == 0:
        out[0] = s[0]


@faulty(1, 32, vectors(32, 1), race("s", "add"))
@cuda.jit
def warp_synchronous_reduction_without_syncwarp(a, out):
    s = cuda.shared.array(32, float32)
    lane = cuda.laneid
    s[lane] = a[lane]
    cuda.syncwarp()
    reach = 16
    while reach > 0:
        if lane < reach:
            s[lane] += s[lane + reach]  # fault: add
        reach //= 2
    if lane == 0:
        out[0] = s[0]


@faulty(1, 64, vectors(64, 64), race("s", "store", "load"))
@cuda.jit
def syncwarp_where_syncthreads_is_needed(a, out):
    s = cuda.shared.array(64, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]  # fault: store
    cuda.syncwarp()
    out[tx] = s[63 - tx]  # fault: load


@faulty(1, 8, vectors(8, 8), race("s", "store", "load"))
@cuda.jit
def fence_where_a_barrier_is_needed(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]  # fault: store
    cuda.threadfence_block()
    out[tx] = s[7 - tx]  # fault: load


@faulty(1, 8, vectors(8, 8), race("s", "add"))
@cuda.jit
def prefix_sum_in_place(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]
    cuda.syncthreads()
    reach = 1
    while reach < 8:
        if tx >= reach:
            s[tx] += s[tx - reach]  # fault: add
        cuda.syncthreads()
        reach *= 2
    out[tx] = s[tx]


@faulty(1, 8, vectors(8, 8, 8), race("s", "first_load", "second_store"))
@cuda.jit
def tile_reused_too_early(a, b, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]
    cuda.syncthreads()
    total = s[7 - tx]  # fault: first_load
    s[tx] = b[tx]  # fault: second_store
    cuda.syncthreads()
    out[tx] = total + s[(tx + 1) % 8]


@faulty(1, 8, vectors(24, 8), race("s", "store", "load"))
@cuda.jit
def barrier_missing_from_the_second_iteration_on(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    total = float32(0)
    for step in range(3):
        s[tx] = a[step * 8 + tx]  # fault: store
        cuda.syncthreads()
        total += s[7 - tx]  # fault: load
        if step == 0:
            cuda.syncthreads()
    out[tx] = total


@faulty(1, 8, vectors(32, 8), race("s", "prefetch", "load"))
@cuda.jit
def double_buffer_with_its_barrier_after_the_prefetch(a, out):
    s = cuda.shared.array((2, 8), float32)
    tx = cuda.threadIdx.x
    total = float32(0)
    s[0, tx] = a[tx]
    for step in range(4):
        if step + 1 < 4:
            s[(step + 1) % 2, tx] = a[(step + 1) * 8 + tx]  # fault: prefetch
        cuda.syncthreads()
        total += s[step % 2, 7 - tx]  # fault: load
    out[tx] = total


@faulty(1, 8, vectors(32, 8), race("s", "first", "load"))
@cuda.jit
def double_buffer_with_its_barrier_at_the_end(a, out):
    s = cuda.shared.array((2, 8), float32)
    tx = cuda.threadIdx.x
    total = float32(0)
    s[0, tx] = a[tx]  # fault: first
    for step in range(4):
        if step + 1 < 4:
            s[(step + 1) % 2, tx] = a[(step + 1) * 8 + tx]
        total += s[step % 2, 7 - tx]  # fault: load
        cuda.syncthreads()
    out[tx] = total


@cuda.jit(device=True)
def put(tile, index, value):
    tile[index] = value  # fault: put


@faulty(1, 8, vectors(8, 8), race("s", "put", "load"), helpers=(put,))
@cuda.jit
def store_in_a_device_function_without_barrier(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    put(s, tx, a[tx])
    out[tx] = s[7 - tx]  # fault: load


@faulty(1, 8, vectors(8, 8, 8), race("y", "store", "load"))
@cuda.jit
def global_memory_without_barrier(a, y, out):
    tx = cuda.threadIdx.x
    y[tx] = 2 * a[tx]  # fault: store
    out[tx] = y[7 - tx]  # fault: load


# --- faulty: two threads, one element -------------------------------------------------------------


@faulty(1, 8, vectors(8, 8), race("s", "store"))
@cuda.jit
def two_threads_store_one_shared_element(a, out):
    s = cuda.shared.array(4, float32)
    tx = cuda.threadIdx.x
    s[tx // 2] = a[tx]  # fault: store
    cuda.syncthreads()
    out[tx] = s[tx // 2]


@faulty(1, 8, vectors(8, 4), race("out", "store"))
@cuda.jit
def two_threads_store_one_global_element(a, out):
    tx = cuda.threadIdx.x
    out[tx // 2] = a[tx]  # fault: store


@faulty(1, (4, 4, 2), lambda: (whole(2, 4, 4), zeros(2, 4, 4)), race("s", "store"))
@cuda.jit
def layers_of_a_block_share_one_tile(a, out):
    s = cuda.shared.array((4, 4), float32)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    s[y, x] = a[z, y, x]  # fault: store
    cuda.syncthreads()
    out[z, y, x] = s[y, x]


@faulty(1, (8, 8), lambda: (whole(8, 8), zeros(8, 8)), race("tile", "store"))
@cuda.jit
def flat_index_with_the_wrong_width(a, out):
    tile = cuda.shared.array(64, float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty * T + tx] = a[ty, tx]  # fault: store
    cuda.syncthreads()
    out[ty, tx] = tile[ty * T + tx]


@faulty(1, 8, vectors(8, 8, 8), race("dyn", "store_x", "store_y"), sharedmem=64)
@cuda.jit
def dynamic_shared_memory_cut_too_early(a, b, out):
    dyn = cuda.shared.array(0, float32)
    tx = cuda.threadIdx.x
    x = dyn[:8]
    y = dyn[7:15]
    x[tx] = a[tx]  # fault: store_x
    y[tx] = b[tx]  # fault: store_y
    cuda.syncthreads()
    out[tx] = x[7 - tx] + y[7 - tx]


@faulty(1, 8, vectors(8, 8, 8), race("x", "store_x", "store_y"), sharedmem=64)
@cuda.jit
def two_dynamic_arrays_begin_at_one_place(a, b, out):
    x = cuda.shared.array(0, float32)
    y = cuda.shared.array(0, float32)
    tx = cuda.threadIdx.x
    x[tx] = a[tx]  # fault: store_x
    y[7 - tx] = b[tx]  # fault: store_y
    cuda.syncthreads()
    out[tx] = x[tx]


@faulty(1, 8, vectors(8, 1), race("found", "store"))
@cuda.jit
def every_thread_stores_the_same_value(a, found):
    if a[cuda.threadIdx.x] >= 0:
        found[0] = 1  # fault: store


@faulty(1, 8, vectors(8, 8), race("s", "store", "load"))
@cuda.jit
def right_by_luck_if_threads_run_in_order(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]  # fault: store
    left = max(tx - 1, 0)
    out[tx] = s[left]  # fault: load


@faulty(1, 8, vectors(1, 8), race("flag", "store", "load"))
@cuda.jit
def flag_without_barrier(flag, out):
    tx = cuda.threadIdx.x
    if tx == 0:
        flag[0] = 1  # fault: store
    out[tx] = flag[0]  # fault: load


@faulty(1, (5, 5), lambda: (whole(5, 5),), race("a", "load", "store"))
@cuda.jit
def transpose_in_place(a):
    col, row = cuda.grid(2)
    value = a[col, row]  # fault: load
    a[row, col] = value  # fault: store


@faulty(2, 4, lambda: (whole(9),), race("a", "smooth"))
@cuda.jit
def stencil_in_place(a):
    i = cuda.grid(1)
    a[i] = a[i] + a[i + 1]  # fault: smooth


@faulty(2, 4, lambda: (lambda a: (a[:-1], a[1:]))(whole(9)), race("a", "shift"))
@cuda.jit
def output_overlaps_input(a, out):
    i = cuda.grid(1)
    out[i] = 2 * a[i]  # fault: shift


@faulty(1, 8, lambda: (whole(8),) * 2, race("a", "reverse"))
@cuda.jit
def one_array_passed_as_input_and_output(a, out):
    tx = cuda.threadIdx.x
    out[7 - tx] = a[tx]  # fault: reverse


# --- faulty: blocks, atomics ----------------------------------------------------------------------


@faulty(3, 4, vectors(12, 1), race("c", "store"))
@cuda.jit
def every_block_stores_one_element(a, c):
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        c[0] = a[i]  # fault: store


@faulty(3, 4, vectors(12, 12), race("out", "own", "halo"))
@cuda.jit
def halo_of_the_neighbour_block_stored(a, out):
    i = cuda.grid(1)
    out[i] = a[i]  # fault: own
    if cuda.threadIdx.x == 0 and i > 0:
        out[i - 1] = a[i]  # fault: halo


@faulty(2, 8, vectors(16, 1), race("c", "add"))
@cuda.jit
def blocks_accumulate_without_atomic(a, c):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[cuda.grid(1)]
    cuda.syncthreads()
    if tx == 0:
        for j in range(8):
            c[0] += s[j]  # fault: add


@faulty(2, 8, vectors(16, 16, 16), race("y", "store", "load"))
@cuda.jit
def barrier_does_not_reach_other_blocks(a, y, out):
    i = cuda.grid(1)
    y[i] = a[i]  # fault: store
    cuda.syncthreads()
    out[i] = y[15 - i]  # fault: load


@faulty(1, 16, lambda: (whole(16, dtype=np.int32), zeros(11, dtype=np.int32)), race("h", "count"))
@cuda.jit
def histogram_without_atomic(a, h):
    h[a[cuda.threadIdx.x]] += 1  # fault: count


@faulty(1, 8, vectors(8, 1, 1), race("c", "atomic", "load"))
@cuda.jit
def plain_load_beside_atomic(a, c, out):
    tx = cuda.threadIdx.x
    cuda.atomic.add(c, 0, a[tx])  # fault: atomic
    if tx == 0:
        out[0] = c[0]  # fault: load


@faulty(2, 8, vectors(16, 2), race("s", "clear", "atomic"))
@cuda.jit
def cleared_without_barrier_before_atomic(a, out):
    s = cuda.shared.array(1, float32)
    if cuda.threadIdx.x == 0:
        s[0] = 0  # fault: clear
    cuda.atomic.add(s, 0, a[cuda.grid(1)])  # fault: atomic
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = s[0]


@faulty(2, 8, vectors(16, 2), unwritten("s", "atomic"))
@cuda.jit
def never_cleared_before_atomic(a, out):
    s = cuda.shared.array(1, float32)
    cuda.atomic.add(s, 0, a[cuda.grid(1)])  # fault: atomic
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = s[0]


# --- faulty: barriers that not all threads reach --------------------------------------------------


@faulty(1, 8, vectors(8, 8), divergent("barrier"))
@cuda.jit
def barrier_in_a_branch(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    if tx < 6:
        s[tx] = a[tx]
        cuda.syncthreads()  # fault: barrier
        out[tx] = s[5 - tx]


@faulty(1, 8, vectors(8, 8), divergent("barrier"))
@cuda.jit
def barrier_in_the_branch_of_one_thread(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]
    if tx == 5:
        cuda.syncthreads()  # fault: barrier
    out[tx] = s[tx]


@faulty(2, 8, vectors(13, 13), divergent("leave", "barrier"))
@cuda.jit
def early_return_before_a_barrier(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    if i >= a.size:
        return  # fault: leave
    s[tx] = a[i]
    cuda.syncthreads()  # fault: barrier
    out[i] = s[tx] + s[0]


@faulty(1, 4, vectors(4, 4), divergent("barrier"))
@cuda.jit
def barrier_in_a_loop_of_each_threads_own_length(a, out):
    s = cuda.shared.array(4, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]
    for _ in range(tx + 1):
        cuda.syncthreads()  # fault: barrier
    out[tx] = s[tx]


@faulty(1, 8, vectors(8, 8), divergent("even", "odd"))
@cuda.jit
def a_barrier_in_each_side_of_a_branch(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    if tx % 2 == 0:
        s[tx] = a[tx]
        cuda.syncthreads()  # fault: even
    else:
        s[tx] = -a[tx]
        cuda.syncthreads()  # fault: odd
    out[tx] = s[tx]


@faulty(1, 8, vectors(8, 1), divergent("barrier"))
@cuda.jit
def reduction_with_its_barrier_in_the_branch(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]
    cuda.syncthreads()
    reach = 4
    while reach > 0:
        if tx < reach:
            s[tx] += s[tx + reach]
            cuda.syncthreads()  # fault: barrier
        reach //= 2
    if tx == 0:
        out[0] = s[0]


@cuda.jit(device=True)
def wait():
    cuda.syncthreads()  # fault: wait


@faulty(1, 8, vectors(8, 8), divergent("wait"), helpers=(wait,))
@cuda.jit
def device_function_with_a_barrier_called_in_a_branch(a, out):
    tx = cuda.threadIdx.x
    if a[tx] > 5:
        wait()
    out[tx] = a[tx]


# --- faulty: indices ------------------------------------------------------------------------------


@faulty(
    (2, 2),
    (4, 4),
    lambda: (whole(5, 6), zeros(5, 6)),
    outside("a", "line"),
    outside("out", "line"),
)
@cuda.jit
def guard_with_less_or_equal(a, out):
    col, row = cuda.grid(2)
    if row <= a.shape[0] and col < a.shape[1]:
        out[row, col] = 2 * a[row, col]  # fault: line


@faulty(
    (2, 2),
    (4, 4),
    lambda: (whole(5, 7), zeros(5, 7)),
    outside("a", "load"),
    outside("out", "store"),
)
@cuda.jit
def guard_on_the_wrong_axis(a, out):
    col, row = cuda.grid(2)
    if row < a.shape[1] and col < a.shape[0]:
        value = a[row, col]  # fault: load
        out[row, col] = value  # fault: store


@faulty((2, 2), (4, 4), matrices(5, 6, 3), outside("b", "load"), outside("c", "store"))
@cuda.jit
def guard_on_rows_only(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0]:
        acc = float32(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]  # fault: load
        c[row, col] = acc  # fault: store


@faulty((2, 2), (4, 4), matrices(5, 6, 3), outside("a", "load"), outside("b", "load"))
@cuda.jit
def loop_one_too_long(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        for k in range(a.shape[1] + 1):
            acc += a[row, k] * b[k, col]  # fault: load
        c[row, col] = acc


@faulty((2, 2), (4, 4), lambda: (whole(5, 7), zeros(5, 7)), outside("a", "load"))
@cuda.jit
def indices_swapped(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[col, row]  # fault: load


@faulty(
    (1, 2),
    (8, 4),
    lambda: (whole(4, 16), zeros(4, 16)),
    outside("a", "line"),
    outside("out", "line"),
)
@cuda.jit
def grid_turned_by_a_right_angle(a, out):
    col, row = cuda.grid(2)
    out[row, col] = a[row, col]  # fault: line


@faulty(3, 8, vectors(20, 20), outside("a", "line"), outside("out", "line"))
@cuda.jit
def grid_too_large_and_no_guard(a, out):
    i = cuda.grid(1)
    out[i] = 2 * a[i]  # fault: line


@faulty(2, 8, vectors(13, 13), negative("a", "line"))
@cuda.jit
def left_neighbour_of_the_first_element(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] - a[i - 1]  # fault: line


@faulty(1, 8, vectors(8, 8), negative("out", "line"))
@cuda.jit
def store_left_of_the_first_element(a, out):
    tx = cuda.threadIdx.x
    out[tx - 1] = a[tx]  # fault: line


@faulty(1, 8, vectors(8, 8), outside("a", "line"))
@cuda.jit
def index_far_below_the_first_element(a, out):
    tx = cuda.threadIdx.x
    out[tx] = a[tx - 20]  # fault: line


@faulty(1, 8, vectors(8, 8), negative("a", "line"), outside("a", "line"))
@cuda.jit
def indices_below_and_far_below(a, out):
    tx = cuda.threadIdx.x
    out[tx] = a[tx - 10]  # fault: line


@faulty(1, 32, vectors(32, 32), outside("s", "store"), outside("s", "load"))
@cuda.jit
def shared_array_smaller_than_the_block(a, out):
    s = cuda.shared.array(16, float32)
    tx = cuda.threadIdx.x
    s[tx] = a[tx]  # fault: store
    cuda.syncthreads()
    out[tx] = s[31 - tx]  # fault: load


@faulty(1, 8, vectors(8, 8), outside("dyn", "store"), outside("dyn", "load"), sharedmem=16)
@cuda.jit
def too_little_dynamic_shared_memory(a, out):
    dyn = cuda.shared.array(0, float32)
    tx = cuda.threadIdx.x
    dyn[tx] = a[tx]  # fault: store
    cuda.syncthreads()
    out[tx] = dyn[7 - tx]  # fault: load


# --- faulty: shared memory that nobody has written ------------------------------------------------


@faulty(1, (T, T), matrices(3, 3, 3), unwritten("a_tile", "load"), unwritten("b_tile", "load"))
@cuda.jit
def tile_edge_without_zero_fill(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        a_tile[row, col] = a[row, col]
    if row < b.shape[0] and col < b.shape[1]:
        b_tile[row, col] = b[row, col]
    cuda.syncthreads()
    acc = float32(0)
    for k in range(T):
        acc += a_tile[row, k] * b_tile[k, col]  # fault: load
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@faulty(1, (T, T), matrices(4, 4, 4), unwritten("b_tile", "load"))
@cuda.jit
def tile_never_filled(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    col, row = cuda.grid(2)
    a_tile[row, col] = a[row, col]
    cuda.syncthreads()
    acc = float32(0)
    for k in range(T):
        acc += a_tile[row, k] * b_tile[k, col]  # fault: load
    c[row, col] = acc


@faulty(2, 8, vectors(18, 16), unwritten("tile", "load"))
@cuda.jit
def stencil_without_its_halo(a, out):
    tile = cuda.shared.array(10, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[tx + 1] = a[i + 1]
    cuda.syncthreads()
    out[i] = tile[tx] + tile[tx + 1] + tile[tx + 2]  # fault: load


@faulty(1, 8, lambda: (zeros(8, dtype=np.int32),), unwritten("s", "load"))
@cuda.jit
def integers_never_written(out):
    s = cuda.shared.array(8, int32)
    tx = cuda.threadIdx.x
    out[tx] = s[tx]  # fault: load


@faulty(1, 8, vectors(8, 1), unwritten("s", "load"))
@cuda.jit
def read_by_one_lane_before_another_writes(a, out):
    s = cuda.shared.array(1, float32)
    if cuda.laneid == 0:
        out[0] = s[0]  # fault: load
    cuda.syncwarp()
    if cuda.laneid == 1:
        s[0] = a[0]


@faulty(
    4,
    8,
    lambda: (whole(32), zeros(4), zeros(1, dtype=np.int32), zeros(1)),
    race("partial", "store", "load"),
)
@cuda.jit
def block_announced_before_its_sum_is_stored(a, partial, counter, out):
    last = cuda.shared.array(1, int32)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        last[0] = cuda.atomic.add(counter, 0, 1) == cuda.gridDim.x - 1
        cuda.threadfence()
        partial[cuda.blockIdx.x] = a[i]  # fault: store
    cuda.syncthreads()
    if last[0] and cuda.threadIdx.x == 1:
        for block in range(cuda.gridDim.x):
            out[0] += partial[block]  # fault: load


# --- faulty in two ways at once -------------------------------------------------------------------


@faulty(
    2,
    8,
    vectors(14, 14),
    race("s", "store", "load"),
    outside("a", "store"),
    outside("out", "load"),
)
@cuda.jit
def neither_guard_nor_barrier(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tx] = a[i]  # fault: store
    out[i] = s[7 - tx]  # fault: load


@faulty(1, 8, vectors(8, 4), race("s", "store"), race("s", "store", "load"))
@cuda.jit
def stored_twice_and_read_without_barrier(a, out):
    s = cuda.shared.array(4, float32)
    tx = cuda.threadIdx.x
    s[tx % 4] = a[tx]  # fault: store
    if tx < 4:
        out[tx] = s[3 - tx]  # fault: load


@faulty(1, 8, vectors(8, 8), negative("out", "left"), race("out", "left", "last"))
@cuda.jit
def negative_index_wraps_onto_another_threads_element(a, out):
    tx = cuda.threadIdx.x
    out[tx - 1] = a[tx]  # fault: left
    if tx == 7:
        out[7] = 0  # fault: last


# --- correct: products ----------------------------------------------------------------------------


@correct((2, 2), (16, 16), matrices(17, 18, 19), product)
@cuda.jit
def matmul_tiles_of_16(a, b, c):
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(0, a.shape[1], 16):
        a_tile[ty, tx] = 0
        if row < a.shape[0] and k + tx < a.shape[1]:
            a_tile[ty, tx] = a[row, k + tx]
        b_tile[ty, tx] = 0
        if k + ty < b.shape[0] and col < b.shape[1]:
            b_tile[ty, tx] = b[k + ty, col]
        cuda.syncthreads()
        for j in range(16):
            acc += a_tile[ty, j] * b_tile[j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@correct((1, 1), (32, 32), matrices(20, 30, 40), product)
@cuda.jit
def matmul_tiles_of_32(a, b, c):
    a_tile = cuda.shared.array((32, 33), float32)
    b_tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for tile in range((a.shape[1] + 31) // 32):
        k = tile * 32
        inside = row < a.shape[0] and k + tx < a.shape[1]
        a_tile[ty, tx] = a[row, k + tx] if inside else float32(0)
        inside = k + ty < b.shape[0] and col < b.shape[1]
        b_tile[ty, tx] = b[k + ty, col] if inside else float32(0)
        cuda.syncthreads()
        for j in range(min(32, a.shape[1] - k)):
            acc += a_tile[ty, j] * b_tile[j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@correct((2, 2), (T, T), matrices(7, 6, 13), product)
@cuda.jit
def matmul_with_two_buffers_and_one_barrier(a, b, c):
    a_tile = cuda.shared.array((2, T, T), float32)
    b_tile = cuda.shared.array((2, T, T), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    steps = (a.shape[1] + T - 1) // T
    for step in range(steps + 1):
        if step < steps:
            k = step * T
            here = step % 2
            a_tile[here, ty, tx] = 0
            b_tile[here, ty, tx] = 0
            if row < a.shape[0] and k + tx < a.shape[1]:
                a_tile[here, ty, tx] = a[row, k + tx]
            if k + ty < b.shape[0] and col < b.shape[1]:
                b_tile[here, ty, tx] = b[k + ty, col]
        if step > 0:
            before = (step - 1) % 2
            for j in range(T):
                acc += a_tile[before, ty, j] * b_tile[before, j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@correct((3, 3), (3, 3), matrices(9, 9, 9), product)
@cuda.jit
def puzzle_of_9_by_9_in_tiles_of_3(a, b, c):
    a_tile = cuda.shared.array((3, 3), float32)
    b_tile = cuda.shared.array((3, 3), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.y * 3 + ty
    col = cuda.blockIdx.x * 3 + tx
    acc = float32(0)
    for tile in range(3):
        a_tile[ty, tx] = a[row, tile * 3 + tx]
        b_tile[ty, tx] = b[tile * 3 + ty, col]
        cuda.syncthreads()
        for k in range(3):
            acc += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    c[row, col] = acc


@correct(1, (2, 2), matrices(16, 16, 5), product)
@cuda.jit
def matmul_with_8_by_8_registers(a, b, c):
    acc = cuda.local.array((8, 8), float32)
    a_column = cuda.local.array(8, float32)
    b_row = cuda.local.array(8, float32)
    row, col = cuda.threadIdx.y * 8, cuda.threadIdx.x * 8
    for i in range(8):
        for j in range(8):
            acc[i, j] = 0
    for k in range(a.shape[1]):
        for i in range(8):
            a_column[i] = a[row + i, k]
            b_row[i] = b[k, col + i]
        for i in range(8):
            for j in range(8):
                acc[i, j] += a_column[i] * b_row[j]
    for i in range(8):
        for j in range(8):
            c[row + i, col + j] = acc[i, j]


@correct((2, 2), (4, 4), lambda: (lambda a: (a, a.T, zeros(6, 6)))(whole(6, 5)), product)
@cuda.jit
def matrix_times_its_own_transpose(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc


# --- correct: sums --------------------------------------------------------------------------------


def total(a, out):
    return (np.array([a.sum()]),)


@correct(2, 64, vectors(100, 2), lambda a, out: (np.array([a[:64].sum(), a[64:].sum()]),))
@cuda.jit
def tree_reduction(a, out):
    s = cuda.shared.array(64, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tx] = a[i] if i < a.size else float32(0)
    cuda.syncthreads()
    reach = 32
    while reach > 0:
        if tx < reach:
            s[tx] += s[tx + reach]
        cuda.syncthreads()
        reach //= 2
    if tx == 0:
        out[cuda.blockIdx.x] = s[0]


@correct(1, 96, vectors(96, 1), total)
@cuda.jit
def shuffle_reduction(a, out):
    partial = cuda.shared.array(32, float32)
    tx = cuda.threadIdx.x
    lane, warp = tx % 32, tx // 32
    value = a[tx]
    for step in range(5):
        value += cuda.shfl_down_sync(FULL, value, 16 >> step)
    if lane == 0:
        partial[warp] = value
    cuda.syncthreads()
    if warp == 0:
        value = partial[lane] if lane < 3 else float32(0)
        for step in range(5):
            value += cuda.shfl_xor_sync(FULL, value, 16 >> step)
        if lane == 0:
            out[0] = value


@correct(1, 64, vectors(64, 2), lambda a, out: (a.reshape(2, 32).sum(1),))
@cuda.jit
def syncwarp_reduction(a, out):
    s = cuda.shared.array(64, float32)
    tx = cuda.threadIdx.x
    lane = tx % 32
    s[tx] = a[tx]
    cuda.syncwarp()
    reach = 16
    while reach > 0:
        if lane < reach:
            s[tx] += s[tx + reach]
        cuda.syncwarp()
        reach //= 2
    if lane == 0:
        out[tx // 32] = s[tx]


@cuda.jit(device=True)
def block_sum(s, tx, size):
    reach = size // 2
    while reach > 0:
        cuda.syncthreads()
        if tx < reach:
            s[tx] += s[tx + reach]
        reach //= 2
    cuda.syncthreads()
    return s[0]


@correct(2, 16, vectors(32, 32), lambda a, out: (np.repeat(a.reshape(2, 16).sum(1), 16),))
@cuda.jit
def device_function_with_barriers(a, out):
    s = cuda.shared.array(16, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tx] = a[i]
    out[i] = block_sum(s, tx, 16)


@correct(5, 8, lambda: (whole(5, 21), whole(21, start=2), zeros(5)), lambda a, x, out: (a @ x,))
@cuda.jit
def matvec_with_block_reduction(a, x, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    row = cuda.blockIdx.x
    acc = float32(0)
    for k in range(tx, a.shape[1], cuda.blockDim.x):
        acc += a[row, k] * x[k]
    s[tx] = acc
    result = block_sum(s, tx, 8)
    if tx == 0:
        out[row] = result


@correct(1, 16, vectors(16, 16), lambda a, out: (np.cumsum(a),))
@cuda.jit
def prefix_sum_with_two_buffers(a, out):
    s = cuda.shared.array((2, 16), float32)
    tx = cuda.threadIdx.x
    s[0, tx] = a[tx]
    cuda.syncthreads()
    source = 0
    reach = 1
    while reach < 16:
        value = s[source, tx]
        if tx >= reach:
            value += s[source, tx - reach]
        source = 1 - source
        s[source, tx] = value
        cuda.syncthreads()
        reach *= 2
    out[tx] = s[source, tx]


# --- correct: atomics -----------------------------------------------------------------------------


@correct(
    2,
    32,
    lambda: (whole(50, dtype=np.int32), zeros(11, dtype=np.int32)),
    lambda a, h: (np.bincount(a, minlength=11),),
)
@cuda.jit
def histogram_with_atomics(a, h):
    counts = cuda.shared.array(11, int32)
    tx = cuda.threadIdx.x
    if tx < 11:
        counts[tx] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < a.size:
        cuda.atomic.add(counts, a[i], 1)
    cuda.syncthreads()
    if tx < 11:
        cuda.atomic.add(h, tx, counts[tx])


@correct(3, 8, vectors(24, 1), lambda a, out: (np.array([a.max()]),))
@cuda.jit
def atomic_maximum(a, out):
    cuda.atomic.max(out, 0, a[cuda.grid(1)])


@correct(
    2,
    16,
    lambda: (whole(32), zeros(1), np.zeros(1, np.int32)),
    lambda a, best, n: (np.array([a.max()]), np.array([(a > 4).sum()])),
)
@cuda.jit
def votes_and_atomics(a, best, n):
    i = cuda.grid(1)
    count = cuda.syncthreads_count(1 if a[i] > 4 else 0)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(n, 0, count)
    cuda.atomic.max(best, 0, a[i])


# --- correct: stencils and moves ------------------------------------------------------------------


@correct((2, 2), (8, 8), lambda: (whole(11, 13), zeros(13, 11)), lambda a, out: (a.T,))
@cuda.jit
def transpose_through_a_padded_tile(a, out):
    tile = cuda.shared.array((8, 9), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * 8 + tx
    row = cuda.blockIdx.y * 8 + ty
    if row < a.shape[0] and col < a.shape[1]:
        tile[ty, tx] = a[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * 8 + tx
    row = cuda.blockIdx.x * 8 + ty
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[tx, ty]


@correct(2, 8, vectors(18, 16), lambda a, out: (a[:-2] + a[1:-1] + a[2:],))
@cuda.jit
def stencil_with_its_halo(a, out):
    tile = cuda.shared.array(10, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[tx + 1] = a[i + 1]
    if tx == 0:
        tile[0] = a[i]
    if tx == cuda.blockDim.x - 1:
        tile[tx + 2] = a[i + 2]
    cuda.syncthreads()
    out[i] = tile[tx] + tile[tx + 1] + tile[tx + 2]


def six_neighbours(a, out):
    sums = np.zeros_like(a)
    inner = slice(1, -1)
    for axis in range(3):
        for shift in (1, -1):
            sums += np.roll(a, shift, axis)
    result = np.zeros_like(a)
    result[inner, inner, inner] = sums[inner, inner, inner]
    return (result,)


@correct((2, 2, 2), (4, 2, 3), lambda: (whole(5, 4, 6), zeros(5, 4, 6)), six_neighbours)
@cuda.jit
def stencil_in_three_dimensions(a, out):
    x, y, z = cuda.grid(3)
    if 0 < z < a.shape[0] - 1 and 0 < y < a.shape[1] - 1 and 0 < x < a.shape[2] - 1:
        acc = a[z - 1, y, x] + a[z + 1, y, x]
        acc += a[z, y - 1, x] + a[z, y + 1, x]
        acc += a[z, y, x - 1] + a[z, y, x + 1]
        out[z, y, x] = acc


@correct(2, 8, lambda: (2.0, whole(37), whole(37, start=3)), lambda s, x, y: (s * x + y,))
@cuda.jit
def grid_stride_axpy(s, x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = s * x[i] + y[i]


@correct(1, 8, vectors(8, 8, 8), lambda a, b, out: (a[::-1] + np.roll(b, -1),), sharedmem=64)
@cuda.jit
def dynamic_shared_memory_as_two_arrays(a, b, out):
    dyn = cuda.shared.array(0, float32)
    tx = cuda.threadIdx.x
    size = cuda.blockDim.x
    x = dyn[:size]
    y = dyn[size : 2 * size]
    x[tx] = a[tx]
    y[tx] = b[tx]
    cuda.syncthreads()
    out[tx] = x[size - 1 - tx] + y[(tx + 1) % size]


@correct(2, 8, vectors(16, 16), lambda a, out: (3 * a,))
@cuda.jit
def a_thread_reads_what_it_wrote(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tx] = a[i]
    s[tx] = 2 * s[tx]
    out[i] = s[tx]
    out[i] = out[i] + a[i]


@correct(3, 8, vectors(24, 24), lambda a, out: (a + a[0],))
@cuda.jit
def every_thread_reads_one_element(a, out):
    s = cuda.shared.array(1, float32)
    if cuda.threadIdx.x == 7:
        s[0] = a[0]
    cuda.syncthreads()
    i = cuda.grid(1)
    out[i] = a[i] * 1 + s[0] + a[0] - s[0]


@correct(1, 32, vectors(32, 32), lambda a, out: (a[::-1],))
@cuda.jit
def lanes_write_elements_of_their_own(a, out):
    lane = cuda.laneid
    out[31 - lane] = a[lane]


@correct(
    2,
    8,
    lambda: (whole(13), zeros(13, dtype=np.bool_), zeros(13, dtype=np.uint8)),
    lambda a, mask, level: (a > 4, np.where(a > 4, 255, 1)),
)
@cuda.jit
def booleans_and_bytes(a, mask, level):
    big = cuda.shared.array(8, boolean)
    levels = cuda.shared.array(8, uint8)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < a.size:
        big[tx] = a[i] > 4
        levels[tx] = 1
        if big[tx]:
            levels[tx] = 255
        mask[i] = big[tx]
        level[i] = levels[tx]


@correct(
    1,
    8,
    lambda: (lambda buffer: (buffer[:8], buffer[8:]))(whole(16)),
    lambda left, right: (np.arange(8), -np.arange(8)),
)
@cuda.jit
def disjoint_views_of_one_array(left, right):
    tx = cuda.threadIdx.x
    left[tx] = tx
    right[tx] = -tx


# --- correct: what a hasty detector would report --------------------------------------------------


@correct(
    2, 8, vectors(13, 13), lambda a, out: (np.where(np.roll(a, 1) > 4, 1, 0) * (np.arange(13) > 0),)
)
@cuda.jit
def guard_that_ends_before_the_index(a, out):
    i = cuda.grid(1)
    if i < a.size and i > 0 and a[i - 1] > 4:
        out[i] = 1


@correct(2, 8, vectors(16, 16), lambda a, out: (np.concatenate([a[7::-1], a[8:]]),))
@cuda.jit
def barrier_in_a_branch_that_a_whole_block_takes(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tx] = a[i]
    if cuda.blockIdx.x == 0:
        cuda.syncthreads()
        out[i] = s[7 - tx]
    else:
        out[i] = s[tx]


@correct(3, 4, vectors(12, 12), lambda a, out: (a * np.repeat([1, 2, 3], 4),))
@cuda.jit
def barriers_in_a_loop_of_each_blocks_own_length(a, out):
    s = cuda.shared.array(4, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    s[tx] = 0
    for _ in range(cuda.blockIdx.x + 1):
        cuda.syncthreads()
        value = s[3 - tx] + a[cuda.blockIdx.x * 4 + 3 - tx]
        cuda.syncthreads()
        s[3 - tx] = value
    cuda.syncthreads()
    out[i] = s[tx]


@correct(2, 8, vectors(13, 13), lambda a, out: (2 * a,))
@cuda.jit
def early_return_after_the_last_barrier(a, out):
    s = cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < a.size:
        s[tx] = a[i]
    cuda.syncthreads()
    if i >= a.size:
        return
    out[i] = 2 * s[tx]


@correct(1, 8, vectors(8, 8, 8), lambda a, y, out: (2 * a, 2 * a[::-1]))
@cuda.jit
def barrier_orders_global_memory_in_a_block(a, y, out):
    tx = cuda.threadIdx.x
    y[tx] = 2 * a[tx]
    cuda.syncthreads()
    out[tx] = y[7 - tx]


@correct(1, 8, vectors(8, 8), lambda a, out: (a + a[::-1],))
@cuda.jit
def two_arrays_of_one_shape_on_one_line(a, out):
    x, y = cuda.shared.array(8, float32), cuda.shared.array(8, float32)
    tx = cuda.threadIdx.x
    x[tx] = a[tx]
    y[7 - tx] = a[tx]
    cuda.syncthreads()
    out[tx] = x[tx] + y[tx]


@correct(
    4,
    8,
    lambda: (whole(32), zeros(4), zeros(1, dtype=np.int32), zeros(1)),
    lambda a, partial, counter, out: (a[::8].sum(keepdims=True),),
)
@cuda.jit
def last_block_adds_what_all_have_stored(a, partial, counter, out):
    last = cuda.shared.array(1, int32)
    i = cuda.grid(1)
    if cuda.threadIdx.x == 0:
        partial[cuda.blockIdx.x] = a[i]
        cuda.threadfence()
        last[0] = cuda.atomic.add(counter, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0] and cuda.threadIdx.x == 1:
        for block in range(cuda.gridDim.x):
            out[0] += partial[block]


@correct(
    1,
    8,
    lambda: (whole(8, dtype=np.int32), zeros(1, dtype=np.int32)),
    lambda a, out: (a.sum(keepdims=True),),
)
@cuda.jit
def cleared_by_an_atomic_exchange(a, out):
    s = cuda.shared.array(1, int32)
    tx = cuda.threadIdx.x
    if tx == 0:
        cuda.atomic.exch(s, 0, 0)
    cuda.syncthreads()
    cuda.atomic.add(s, 0, a[tx])
    cuda.syncthreads()
    if tx == 0:
        out[0] = s[0]
