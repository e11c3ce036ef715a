"""Kernels whose memory accesses are counted twice: by a GPU's counters and by the interpreter.

`CASES` lists the launches. `measure patterns` takes a GPU's counters of each, and
`test_hardware.py` compares them with a trace. Values are small integers, so that every order
of adding gives the same sum and results compare exactly.

A compiler may leave out, move or widen accesses; these kernels are written so that on compute
capability 9.0 it does not, except where a case says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, float32, float64, int32, int64, uint8, uint64
from numba.types import float16

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.intrinsics import commit_copies, copy_async, copy_async4, wait_copies
from tiled_matmul.ladder.cuda_article import cuda_article_kernel
from tiled_matmul.ladder.cuda_async import cuda_async_kernel
from tiled_matmul.ladder.cuda_best import SETTINGS, cuda_best_kernel
from tiled_matmul.ladder.cuda_coalesced import cuda_coalesced_kernel
from tiled_matmul.ladder.cuda_double_buffer import cuda_double_buffer_kernel
from tiled_matmul.ladder.cuda_naive import cuda_naive_kernel
from tiled_matmul.ladder.cuda_padded import cuda_padded_kernel
from tiled_matmul.ladder.cuda_puzzle import cuda_puzzle_kernel
from tiled_matmul.ladder.cuda_shared_tiles import cuda_shared_tiles_kernel
from tiled_matmul.ladder.cuda_supersteps import cuda_supersteps_kernel
from tiled_matmul.ladder.cuda_thread_tile_1d import cuda_thread_tile_1d_kernel
from tiled_matmul.ladder.cuda_thread_tile_2d import cuda_thread_tile_2d_kernel
from tiled_matmul.ladder.cuda_tile_hand import cuda_tile_hand_kernel
from tiled_matmul.ladder.cuda_tile_view import cuda_tile_view_kernel
from tiled_matmul.ladder.cuda_transposed import cuda_transposed_kernel
from tiled_matmul.ladder.cuda_unrolled import cuda_unrolled_kernel
from tiled_matmul.ladder.cuda_vectorised import cuda_vectorised_kernel
from tiled_matmul.ladder.cuda_warp_tiles import cuda_warp_tiles_kernel
from tiled_matmul.specimens.vectors import (
    load4_global,
    load4_shared,
    store4_global,
    store4_shared,
)

LANES = 32


@dataclass(frozen=True)
class Case:
    """One launch: `kernel[grid, block]`, grid and block as (x, y, z) or shorter, with arguments.

    `make_args()` returns the arguments, the same at each call: numpy arrays, which may be views
    of a longer one, and numbers. `expect(*args)`, given them unharmed, returns {position: what
    the launch has to leave in that array}. `note` says what the case shows.
    `merged_shared_loads` is the reason for which the compiler's shared loads are not the source's,
    `rearranged` the one for which lanes meet in other global accesses than in the source; "" says
    that nothing differs. `unexplained` says what differs for no reason that is known. `sharedmem`
    is the launch's dynamic shared memory in bytes.
    """

    name: str
    kernel: Any
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    make_args: Callable[[], list]
    note: str
    expect: Callable[..., dict[int, np.ndarray]]
    merged_shared_loads: str = ""
    rearranged: str = ""
    unexplained: str = ""
    sharedmem: int = 0


CASES: list[Case] = []


def case(name, kernel, grid, block, make_args, note, expect, **rest):
    CASES.append(Case(name, kernel, grid, block, make_args, note, expect, **rest))


def values(*shape, dtype=np.float32, seed=0):
    """Return an array of small integers: -4 to 4, without a sign 0 to 8."""
    low, high = (0, 9) if np.dtype(dtype).kind == "u" else (-4, 5)
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def filled(out, index, value):
    """Return a copy of `out` in which `index` holds `value`."""
    out = out.copy()
    out[index] = value
    return out


# Global memory: who reads next to whom


@cuda.jit
def copy(x, y):
    i = cuda.grid(1)
    y[i] = x[i]


@cuda.jit
def copy_guarded(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[i]


@cuda.jit
def load_strided(x, y, stride):
    i = cuda.grid(1)
    y[i] = x[i * stride]


@cuda.jit
def store_strided(x, y, stride):
    i = cuda.grid(1)
    y[i * stride] = x[i]


@cuda.jit
def load_next(x, y):
    i = cuda.grid(1)
    y[i] = x[i + 1]


@cuda.jit
def load_reversed(x, y):
    i = cuda.grid(1)
    y[i] = x[x.shape[0] - 1 - i]


@cuda.jit
def load_one(x, y):
    i = cuda.grid(1)
    y[i] = x[cuda.blockIdx.x]


@cuda.jit
def odd_lanes(x, y):
    i = cuda.grid(1)
    if i % 2 == 1:
        y[i] = x[i]


@cuda.jit
def first_lanes(x, y, lanes):
    i = cuda.grid(1)
    if i % 32 < lanes:
        y[i] = x[i]


@cuda.jit
def one_lane_stores(x, y):
    i = cuda.grid(1)
    value = x[i]
    if cuda.threadIdx.x == 5:
        y[cuda.blockIdx.x] = value


@cuda.jit
def three_neighbours(x, y):
    i = cuda.grid(1)
    if 0 < i and i < x.shape[0] - 1:
        y[i] = x[i - 1] + x[i] + x[i + 1]


@cuda.jit
def grid_stride(x, y):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        y[i] = x[i]


@cuda.jit
def early_return(x, y):
    i = cuda.grid(1)
    if i % 4 == 2:
        return
    y[i] = x[i]


for size in (np.float16, np.int8, np.uint8, np.int32, np.float32, np.float64):
    case(
        f"copy {np.dtype(size)}",
        copy,
        3,
        128,
        lambda size=size: [values(384, dtype=size), zeros(384, dtype=size)],
        "side by side, elements of 1 to 8 bytes",
        lambda x, y: {1: x},
    )
for size in (np.uint8, np.float16, np.float32, np.float64):
    for stride in (2, 3, 8, 32):
        case(
            f"load stride {stride} {np.dtype(size)}",
            load_strided,
            2,
            64,
            lambda size=size, stride=stride: [
                values(128 * stride, dtype=size),
                zeros(128, dtype=size),
                stride,
            ],
            "lanes a stride apart",
            lambda x, y, stride: {1: x[::stride]},
        )
for stride in (2, 3, 8):
    case(
        f"store stride {stride}",
        store_strided,
        2,
        64,
        lambda stride=stride: [values(128), zeros(128 * stride), stride],
        "stores a stride apart",
        lambda x, y, stride: {1: filled(y, np.s_[::stride], x)},
    )
for size in (np.float16, np.float32, np.float64):
    case(
        f"view from 1, {np.dtype(size)}",
        copy,
        2,
        64,
        lambda size=size: [values(129, dtype=size)[1:], zeros(130, dtype=size)[1:129]],
        "both arrays are views that start one element in: a sector more",
        lambda x, y: {1: x},
    )
case(
    "load next",
    load_next,
    2,
    64,
    lambda: [values(129), zeros(128)],
    "a[i + 1]: a sector more",
    lambda x, y: {1: x[1:]},
)
case(
    "load reversed",
    load_reversed,
    2,
    64,
    lambda: [values(128), zeros(128)],
    "lanes in reverse: the same sectors",
    lambda x, y: {1: x[::-1]},
)
case(
    "load one",
    load_one,
    3,
    64,
    lambda: [values(3), zeros(192)],
    "all lanes read one element",
    lambda x, y: {1: np.repeat(x, 64)},
)
case(
    "odd lanes",
    odd_lanes,
    2,
    64,
    lambda: [values(128), zeros(128)],
    "half of the lanes",
    lambda x, y: {1: filled(y, np.s_[1::2], x[1::2])},
)
for lanes in (1, 7, 9):
    case(
        f"first {lanes} lanes",
        first_lanes,
        2,
        64,
        lambda lanes=lanes: [values(128), zeros(128), lanes],
        "the first lanes of each warp",
        lambda x, y, lanes: {1: np.where(np.arange(128) % 32 < lanes, x, y)},
    )
for block in (1, 33, 48, 1024):
    case(
        f"copy in blocks of {block}",
        copy,
        2,
        block,
        lambda block=block: [values(2 * block), zeros(2 * block)],
        "each block's last warp is filled as far as there are threads",
        lambda x, y: {1: x},
    )
case(
    "copy guarded",
    copy_guarded,
    5,
    128,
    lambda: [values(520), zeros(520)],
    "the guard leaves one warp partly active and others idle",
    lambda x, y: {1: x},
)
case(
    "one lane stores",
    one_lane_stores,
    3,
    32,
    lambda: [values(96), zeros(3)],
    "one lane of each warp stores",
    lambda x, y: {1: x[5::32]},
    rearranged="the compiler moved the load behind the condition, where one lane is left",
)
case(
    "three neighbours",
    three_neighbours,
    3,
    64,
    lambda: [values(170), zeros(170)],
    "three loads, two of them misaligned, guarded",
    lambda x, y: {1: filled(y, np.s_[1:-1], x[:-2] + x[1:-1] + x[2:])},
)
case(
    "grid stride",
    grid_stride,
    2,
    64,
    lambda: [values(704), zeros(704)],
    "each thread takes an element of every 128; half of the warps go round once more",
    lambda x, y: {1: x},
)
case(
    "grid stride ragged",
    grid_stride,
    2,
    64,
    lambda: [values(700), zeros(700)],
    "some lanes of one warp go round 6 times, the others 5 times",
    lambda x, y: {1: x},
    rearranged="the compiler makes two loops of it, the rest and rounds of four; in the second, "
    "lanes of the ragged warp are a round apart and touch more sectors",
)
case(
    "early return",
    early_return,
    2,
    64,
    lambda: [values(128), zeros(128)],
    "a quarter of the lanes return before they load",
    lambda x, y: {1: np.where(np.arange(128) % 4 == 2, y, x)},
)


# Global memory: more dimensions


@cuda.jit
def copy_2d(x, y):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        y[row, col] = x[row, col]


@cuda.jit
def copy_2d_x_is_row(x, y):
    row, col = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        y[row, col] = x[row, col]


@cuda.jit
def copy_3d(x, y):
    k, j, i = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        y[i, j, k] = x[i, j, k]


@cuda.jit
def transpose(x, y):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        y[col, row] = x[row, col]


@cuda.jit
def row_sums(x, y):
    row = cuda.grid(1)
    total = x[row, 0]
    for k in range(1, x.shape[1]):
        total += x[row, k]
    y[row] = total


@cuda.jit
def column_sums(x, y):
    col = cuda.grid(1)
    total = x[0, col]
    for k in range(1, x.shape[0]):
        total += x[k, col]
    y[col] = total


def copies(kernel, shape, grid, block, note, dtype=np.float32, order="C", name=""):
    case(
        name or f"{kernel.__name__} {shape} in {block}",
        kernel,
        grid,
        block,
        lambda: [
            np.asarray(values(*shape, dtype=dtype), order=order),
            np.asarray(zeros(*shape, dtype=dtype), order=order),
        ],
        note,
        lambda x, y: {1: x},
    )


copies(copy_2d, (11, 10), (4, 4), (3, 3), "blocks of 9 threads, ragged")
copies(copy_2d, (23, 31), (4, 5), (10, 5), "50 threads: rows of 10 over two warps")
copies(copy_2d, (16, 64), (4, 1), (16, 16), "two rows of 16 a warp")
copies(copy_2d, (6, 70), (3, 6), (32, 1), "a warp a row, ragged")
copies(copy_2d_x_is_row, (23, 31), (3, 5), (8, 8), "neighbours take neighbouring rows")
copies(copy_2d_x_is_row, (64, 8), (2, 2), (32, 4), "a warp reads down a column")
copies(
    copy_2d,
    (23, 31),
    (4, 5),
    (10, 5),
    "column-major arrays: strides come from the array",
    order="F",
    name="copy_2d column-major",
)
copies(copy_3d, (5, 7, 9), (3, 3, 3), (4, 3, 2), "blocks of 24 threads in three dimensions")
for size in (np.float32, np.float64):
    case(
        f"transpose {np.dtype(size)}",
        transpose,
        (2, 3),
        (32, 32),
        lambda size=size: [values(96, 64, dtype=size), zeros(64, 96, dtype=size)],
        "loads side by side, stores a row apart",
        lambda x, y: {1: x.T},
    )
case(
    "transpose ragged",
    transpose,
    (5, 4),
    (16, 16),
    lambda: [values(50, 70), zeros(70, 50)],
    "transpose of a size that no block divides",
    lambda x, y: {1: x.T},
)
case(
    "row sums",
    row_sums,
    1,
    64,
    lambda: [values(64, 21), zeros(64)],
    "a thread a row: lanes a row apart",
    lambda x, y: {1: x.sum(1)},
)
case(
    "column sums",
    column_sums,
    1,
    64,
    lambda: [values(21, 64), zeros(64)],
    "a thread a column: lanes side by side",
    lambda x, y: {1: x.sum(0)},
)


# Global memory: indices from data, divergence


@cuda.jit
def gather(x, index, y):
    i = cuda.grid(1)
    y[i] = x[index[i]]


@cuda.jit
def scatter(x, index, y):
    i = cuda.grid(1)
    y[index[i]] = x[i]


@cuda.jit
def two_sides(x, y, out):
    i = cuda.grid(1)
    if i % 3 == 0:
        value = x[i] * 2
    else:
        value = y[i + 1] + x[2 * i]
    out[i] = value


@cuda.jit
def four_ways(x, out):
    i = cuda.grid(1)
    way = i % 4
    if way == 0:
        value = x[i] * 3
    elif way == 1:
        value = x[i] + x[2 * i]
    elif way == 2:
        value = x[3 * i] - 1
    else:
        value = float32(7)
    out[i] = value


@cuda.jit
def both_conditions(x, y, out):
    i = cuda.grid(1)
    value = float32(1)
    if x[i] > 0 and y[i] > 0:
        value = x[i + 1]
    out[i] = value


@cuda.jit
def walk_list(after, x, y):
    i = cuda.grid(1)
    total = float32(0)
    j = i
    while j >= 0:
        total += x[j]
        j = after[j]
    y[i] = total


@cuda.jit
def walk_until(after, x, y):
    i = cuda.grid(1)
    j = i
    total = float32(0)
    while True:
        value = x[j]
        if value == 4:
            break
        total += value
        j = after[j]
        if j < 0:
            return
    y[i] = total


@cuda.jit
def trips_by_lane(trips, x, y):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(trips[i]):
        total += x[k, i]
    y[i] = total


@cuda.jit
def load_now_and_then(x, y):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(x.shape[0]):
        if (i + k) % 3 == 0:
            total += x[k, i]
    y[i] = total


@cuda.jit
def histogram(x, counts):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit(device=True)
def blend(x, i):
    return x[i] + 2 * x[i + 1]


@cuda.jit
def calls_a_function(x, y):
    i = cuda.grid(1)
    y[i] = blend(x, i) + blend(x, 2 * i)


@cuda.jit
def private_array(x, y):
    i = cuda.grid(1)
    mine = cuda.local.array(8, float32)
    for k in range(8):
        mine[k] = x[k, i]
    total = float32(0)
    for k in range(8):
        total += mine[(k * 3 + i) % 8]
    y[i] = total


def index_of(kind, n, high, seed):
    random = np.random.default_rng(seed)
    chosen = random.permutation(high)[:n] if kind == "distinct" else random.integers(0, high, n)
    return chosen.astype(np.int32)


for high in (8, 40, 700):
    case(
        f"gather from {high}",
        gather,
        2,
        64,
        lambda high=high: [values(high), index_of("any", 128, high, seed=high), zeros(128)],
        "random indices, repeated ones among them",
        lambda x, index, y: {2: x[index]},
    )
case(
    "gather float64",
    gather,
    2,
    64,
    lambda: [values(300, dtype=np.float64), index_of("any", 128, 300, 1), zeros(128)],
    "random indices, 8 bytes each",
    lambda x, index, y: {2: x[index]},
)
for high in (128, 900):
    case(
        f"scatter to {high}",
        scatter,
        2,
        64,
        lambda high=high: [values(128), index_of("distinct", 128, high, seed=high), zeros(high)],
        "random indices, each once",
        lambda x, index, y: {2: filled(y, index, x)},
    )
case(
    "two sides",
    two_sides,
    2,
    64,
    lambda: [values(256), values(129, seed=1), zeros(128)],
    "if and else both load: each its own lanes",
    lambda x, y, out: {2: np.where(np.arange(128) % 3 == 0, x[:128] * 2, y[1:] + x[::2])},
)
case(
    "four ways",
    four_ways,
    2,
    64,
    lambda: [values(384), zeros(128)],
    "four branches, one of them without a load",
    lambda x, out: {
        1: np.choose(
            np.arange(128) % 4, [x[:128] * 3, x[:128] + x[:256:2], x[:384:3] - 1, np.full(128, 7)]
        )
    },
)
case(
    "both conditions",
    both_conditions,
    2,
    64,
    lambda: [values(129), values(128, seed=1), zeros(128)],
    "`and` loads its second half only where the first holds",
    lambda x, y, out: {2: np.where((x[:-1] > 0) & (y > 0), x[1:], 1).astype(np.float32)},
)


def lists(n, longest, seed):
    """Return int32 `after`: from element i < n a walk of 1 to `longest` steps, -1 ends it."""
    random = np.random.default_rng(seed)
    after = np.full(n * longest, -1, np.int32)
    places = n + random.permutation(n * (longest - 1)).astype(np.int32)
    for start in range(n):
        here = start
        for step in range(random.integers(0, longest)):
            after[here] = here = places[start * (longest - 1) + step]
    return after


def walked(after, x, start, until=None):
    """Return the sum along a list up to a value of `until`; 0 if the list ends before that one."""
    total, here = 0, start
    while here >= 0:
        if x[here] == until:
            return total
        total += x[here]
        here = after[here]
    return total if until is None else 0


case(
    "walk a list",
    walk_list,
    2,
    64,
    lambda: [lists(128, 6, seed=3), values(768), zeros(128)],
    "each lane walks its own list: 1 to 6 rounds",
    lambda after, x, y: {2: np.array([walked(after, x, i) for i in range(128)])},
)
case(
    "walk until",
    walk_until,
    2,
    64,
    lambda: [lists(128, 9, seed=4), values(1152), zeros(128)],
    "lanes leave a loop by break and by return",
    lambda after, x, y: {2: np.array([walked(after, x, i, until=4) for i in range(128)])},
)
case(
    "trips by lane",
    trips_by_lane,
    2,
    64,
    lambda: [
        np.random.default_rng(5).integers(0, 9, 128).astype(np.int32),
        values(9, 128),
        zeros(128),
    ],
    "each lane goes round 0 to 8 times",
    lambda trips, x, y: {2: np.where(np.arange(9)[:, None] < trips, x, 0).sum(0)},
    rearranged="the compiler makes two loops of it, rounds of four and the rest; lanes that go "
    "round 3 and 4 times share rounds in the source and none in these loops",
)
case(
    "load now and then",
    load_now_and_then,
    2,
    64,
    lambda: [values(10, 128), zeros(128)],
    "a load inside an if inside a loop",
    lambda x, y: {1: np.where(np.add.outer(np.arange(10), np.arange(128)) % 3 == 0, x, 0).sum(0)},
)
case(
    "histogram",
    histogram,
    3,
    64,
    lambda: [index_of("any", 150, 16, 6), zeros(16, dtype=np.int32)],
    "loads beside atomics, which are counted apart",
    lambda x, counts: {1: np.bincount(x, minlength=16).astype(np.int32)},
)
case(
    "calls a function",
    calls_a_function,
    2,
    64,
    lambda: [values(256), zeros(128)],
    "a device function loads, called twice",
    lambda x, y: {1: x[:128] + 2 * x[1:129] + x[:256:2] + 2 * x[1:256:2]},
)
case(
    "private array",
    private_array,
    2,
    64,
    lambda: [values(8, 128), zeros(128)],
    "a local array is neither global nor shared memory",
    lambda x, y: {1: x.sum(0)},
)


# Matrix products


@cuda.jit
def tiled_x_is_column(a, b, c):
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 16):
        a_tile[y, x] = float32(0)
        b_tile[y, x] = float32(0)
        if row < a.shape[0] and start + x < a.shape[1]:
            a_tile[y, x] = a[row, start + x]
        if start + y < b.shape[0] and col < b.shape[1]:
            b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(16):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@cuda.jit
def tiled_x_is_row(a, b, c):
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    row, col = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 16):
        a_tile[x, y] = a[row, start + y]
        b_tile[x, y] = b[start + x, col]
        cuda.syncthreads()
        for k in range(16):
            acc += a_tile[x, k] * b_tile[k, y]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def tiled_padded(a, b, c):
    a_tile = cuda.shared.array((16, 17), float32)
    b_tile = cuda.shared.array((16, 17), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    row, col = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 16):
        a_tile[x, y] = a[row, start + y]
        b_tile[x, y] = b[start + x, col]
        cuda.syncthreads()
        for k in range(16):
            acc += a_tile[x, k] * b_tile[k, y]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def tiled_32(a, b, c):
    a_tile = cuda.shared.array((32, 32), float32)
    b_tile = cuda.shared.array((32, 32), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 32):
        a_tile[y, x] = a[row, start + x]
        b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(32):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def tiled_32_padded(a, b, c):
    a_tile = cuda.shared.array((32, 33), float32)
    b_tile = cuda.shared.array((32, 33), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 32):
        a_tile[y, x] = a[row, start + x]
        b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(32):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def tiled_flat(a, b, c):
    a_tile = cuda.shared.array(256, float32, alignment=16)
    b_tile = cuda.shared.array(256, float32, alignment=16)
    x = uint64(cuda.threadIdx.x)
    y = uint64(cuda.threadIdx.y)
    width = uint64(16)
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 16):
        a_tile[y * width + x] = a[row, start + cuda.threadIdx.x]
        b_tile[y * width + x] = b[start + cuda.threadIdx.y, col]
        cuda.syncthreads()
        for k in range(16):
            acc += a_tile[y * width + uint64(k)] * b_tile[uint64(k) * width + x]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def tiled_float64(a, b, c):
    a_tile = cuda.shared.array((16, 17), float64)
    b_tile = cuda.shared.array((16, 17), float64)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float64(0)
    for start in range(0, a.shape[1], 16):
        a_tile[y, x] = a[row, start + x]
        b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(16):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def tiled_3(a, b, c):
    a_tile = cuda.shared.array((3, 3), float32)
    b_tile = cuda.shared.array((3, 3), float32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for start in range(0, a.shape[1], 3):
        a_tile[y, x] = float32(0)
        b_tile[y, x] = float32(0)
        if row < a.shape[0] and start + x < a.shape[1]:
            a_tile[y, x] = a[row, start + x]
        if start + y < b.shape[0] and col < b.shape[1]:
            b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(3):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


def product(name, kernel, m, n, k, grid, block, note, dtype=np.float32, **rest):
    case(
        name,
        kernel,
        grid,
        block,
        lambda: [
            values(m, k, dtype=dtype),
            values(k, n, dtype=dtype, seed=1),
            zeros(m, n, dtype=dtype),
        ],
        note,
        lambda a, b, c: {2: a @ b},
        **rest,
    )


TILE = (16, 16)
FOURS = "four neighbours of a row of A's tile come by one 16-byte load"
product("naive 64", cuda_naive_kernel, 64, 64, 64, (4, 4), TILE, "the ladder's rung")
product("naive ragged", cuda_naive_kernel, 37, 45, 29, (3, 3), TILE, "the ladder's rung, ragged")
product("naive 8x8", cuda_naive_kernel, 20, 18, 13, (3, 3), (8, 8), "the ladder's rung, 8x8 blocks")
product("coalesced 64", cuda_coalesced_kernel, 64, 64, 64, (4, 4), TILE, "the ladder's rung")
product(
    "coalesced ragged", cuda_coalesced_kernel, 37, 45, 29, (3, 3), TILE, "the ladder's rung, ragged"
)
product(
    "coalesced float64",
    cuda_coalesced_kernel,
    24,
    40,
    17,
    (2, 3),
    (32, 8),
    "the ladder's rung, 8 bytes an element, a warp a row",
    dtype=np.float64,
)
product(
    "tiles, x is column",
    tiled_x_is_column,
    64,
    64,
    64,
    (4, 4),
    TILE,
    "16x16 shared tiles",
    merged_shared_loads=FOURS,
)
product(
    "tiles, x is column, ragged",
    tiled_x_is_column,
    37,
    45,
    29,
    (3, 3),
    TILE,
    "16x16 shared tiles, zeros past the edges",
    merged_shared_loads=FOURS,
)
product(
    "tiles, x is row",
    tiled_x_is_row,
    64,
    64,
    64,
    (4, 4),
    TILE,
    "bank conflicts in the stores",
    merged_shared_loads=FOURS,
)
product("tiles, padded", tiled_padded, 64, 64, 64, (4, 4), TILE, "x is row, rows of 17")
product(
    "tiles of 32",
    tiled_32,
    64,
    64,
    64,
    (2, 2),
    (32, 32),
    "a warp a row of the tile",
    merged_shared_loads=FOURS,
)
product("tiles of 32, padded", tiled_32_padded, 64, 64, 64, (2, 2), (32, 32), "rows of 33")
product(
    "tiles, flat",
    tiled_flat,
    64,
    64,
    64,
    (4, 4),
    TILE,
    "flat aligned tiles with unsigned indices",
    merged_shared_loads=FOURS,
)
product(
    "tiles, float64",
    tiled_float64,
    32,
    48,
    32,
    (3, 2),
    TILE,
    "tiles of 8-byte elements, rows of 17",
    dtype=np.float64,
)
product("tiles of 3", tiled_3, 8, 10, 7, (4, 3), (3, 3), "9 threads a block, ragged")


def flat_product(name, kernel, m, n, k, grid, note, dtype=np.float32, sizes="mnk", **rest):
    """A product whose matrices are flat and whose sizes are arguments, in the order of `sizes`."""
    given = {"m": m, "n": n, "k": k}
    case(
        name,
        kernel,
        grid,
        TILE,
        lambda: [
            values(m * k, dtype=dtype),
            values(k * n, dtype=dtype, seed=1),
            zeros(m * n, dtype=dtype),
            *(given[size] for size in sizes),
        ],
        note,
        lambda a, b, c, *_: {2: (a.reshape(m, k) @ b.reshape(k, n)).ravel()},
        **rest,
    )


for edge in (16, 32):
    product(
        f"shared {edge}",
        with_constants(cuda_shared_tiles_kernel, TILE=edge),
        64,
        64,
        64,
        (64 // edge, 64 // edge),
        (edge, edge),
        "the ladder's rung",
        merged_shared_loads=FOURS,
    )
product(
    "shared 16 ragged",
    cuda_shared_tiles_kernel,
    37,
    45,
    29,
    (3, 3),
    TILE,
    "the ladder's rung, zeros past the edges",
    merged_shared_loads=FOURS,
)
product("puzzle 9", cuda_puzzle_kernel, 9, 9, 9, (3, 3), (3, 3), "the ladder's rung")
product(
    "puzzle ragged", cuda_puzzle_kernel, 8, 10, 7, (4, 3), (3, 3), "the ladder's rung, short tiles"
)
flat_product(
    "article 64",
    cuda_article_kernel,
    64,
    64,
    64,
    (4, 4),
    "the ladder's rung, x is row",
    np.int32,
    "mkn",
    merged_shared_loads=FOURS,
)
flat_product(
    "supersteps 64",
    cuda_supersteps_kernel,
    64,
    64,
    64,
    (4, 4),
    "the ladder's rung, three barriers a tile",
    merged_shared_loads=FOURS,
)


# x is the row: which half of the access is mended? Rows of 16 or 32 that are not padded begin on 16
# bytes, so that the compiler can take four neighbours at once.
for edge in (16, 32):
    for pad, mended in ((0, "nothing"), (0, "loading"), (1, "banks"), (1, "both")):
        product(
            f"x is row, {edge}, mended: {mended}",
            with_constants(
                cuda_padded_kernel,
                TILE=edge,
                PITCH=edge + pad,
                COALESCED=mended in ("loading", "both"),
            ),
            32,
            32,
            64,
            (32 // edge, 32 // edge),
            (edge, edge),
            f"the ladder's rung, rows of {edge + pad}",
            merged_shared_loads="" if pad else FOURS,
        )
product(
    "padded float64",
    with_constants(cuda_padded_kernel, TILE=16, PITCH=17),
    37,
    45,
    29,
    (3, 3),
    TILE,
    "the ladder's rung, 8 bytes an element, ragged",
    dtype=np.float64,
)


def product_of_layout(layout, m, n, k, tile, note, **constants):
    """A product by the ladder's rung whose operands lie row by row ("n") or column by column."""
    shapes = {"a": (m, k), "b": (k, n)}

    def stored(seed, letter, rows, columns):
        if letter == "n":
            return values(rows, columns, seed=seed)
        return values(columns, rows, seed=seed).T

    case(
        note,
        with_constants(
            cuda_transposed_kernel,
            TILE=tile,
            PITCH=tile + 1,
            **{"A_BY_COLUMNS": layout[0] == "t", "B_BY_COLUMNS": layout[1] == "t", **constants},
        ),
        (-(-n // tile), -(-m // tile)),
        (tile, tile),
        lambda: [
            *(stored(i, layout[i], *shapes[name]) for i, name in enumerate(shapes)),
            zeros(m, n),
        ],
        "the ladder's rung",
        lambda a, b, c: {2: a @ b},
    )


for layout in ("nn", "tn", "nt", "tt"):
    product_of_layout(layout, 32, 32, 64, 32, f"transposed {layout}")
product_of_layout("tt", 37, 45, 29, 16, "transposed tt ragged")
product_of_layout(
    "tt", 32, 32, 64, 32, "transposed tt, as if nn", A_BY_COLUMNS=False, B_BY_COLUMNS=False
)


# Asynchronous copies


@cuda.jit
def copied_through_shared(index, x, y):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    at = index[t]
    copy_async(s, t, x, at, at < x.shape[0])
    commit_copies()
    wait_copies(0)
    cuda.syncthreads()
    y[t] = s[63 - t]


@cuda.jit
def copied_in_fours(index, x, y):
    s = cuda.shared.array(256, float32, alignment=16)
    t = cuda.threadIdx.x
    at = index[t]
    copy_async4(s, 4 * t, x, at, min(4, max(0, x.shape[0] - at)))
    commit_copies()
    wait_copies(0)
    cuda.syncthreads()
    for i in range(4):
        y[64 * i + t] = s[64 * i + t]


def copied(index, width, x):
    """Return x[index] and its neighbours, `width` in all, with zeros beyond its end."""
    return np.r_[x, np.zeros(4096, x.dtype)][index[:, None] + np.arange(width)].ravel()


for name, lanes in {
    "in a row": np.arange(64),
    "two rows apart": np.arange(64) * 16,
    "all lanes one": np.zeros(64, np.int64),
    "half of them beyond the end": np.arange(64) * 4 + np.where(np.arange(64) % 32 < 16, 0, 1024),
    "a warp beyond the end": np.arange(64) + np.where(np.arange(64) < 32, 0, 1024),
}.items():
    case(
        f"copy of 4 bytes: {name}",
        copied_through_shared,
        1,
        64,
        lambda lanes=lanes: [lanes.astype(np.int32), values(1024), zeros(64)],
        "an asynchronous copy of two warps",
        lambda index, x, y: {2: copied(index, 1, x)[::-1]},
    )
    case(
        f"copy of 16 bytes: {name}",
        copied_in_fours,
        1,
        64,
        lambda lanes=lanes: [4 * lanes.astype(np.int32), values(4096), zeros(256)],
        "an asynchronous copy of two warps",
        lambda index, x, y: {2: copied(index, 4, x)},
    )
for name, kernel in (("hand", cuda_tile_hand_kernel), ("view", cuda_tile_view_kernel)):
    product(
        f"tile {name} ragged",
        with_constants(kernel, TILE=16),
        37,
        45,
        29,
        (3, 3),
        TILE,
        "the ladder's rung, asynchronous copies",
        merged_shared_loads=FOURS,
    )


# Tiles of C for a thread

product(
    "thread tile 1d ragged",
    cuda_thread_tile_1d_kernel,
    70,
    37,
    13,
    (1, 2),
    512,
    "the ladder's rung, a column of 8 a thread",
    merged_shared_loads="four neighbours of a column of A's tile come by one 16-byte load",
)
product(
    "thread tile 2d ragged",
    cuda_thread_tile_2d_kernel,
    130,
    37,
    13,
    (1, 2),
    256,
    "the ladder's rung, 8x8 a thread",
    merged_shared_loads="the four rows and columns of a quad come by one 16-byte load each",
)
for dtype in (np.float32, np.float64):
    product(
        f"vectorised ragged {np.dtype(dtype)}",
        cuda_vectorised_kernel,
        130,
        36,
        12,
        (1, 2),
        256,
        "the ladder's rung, 8x8 a thread, all in fours",
        dtype=dtype,
    )


def product_of_flat(name, kernel, m, n, k, grid, threads, note, *alpha):
    """A product whose A and B are flat, C is not, and C's factor `alpha` is 1, if there is one."""
    case(
        name,
        kernel,
        grid,
        threads,
        lambda: [values(m * k), values(k * n, seed=1), zeros(m, n), *alpha],
        note,
        lambda a, b, c, *_: {2: a.reshape(m, k) @ b.reshape(k, n)},
    )


ONE = np.float32(1)
for name, kernel in (
    ("double buffer", cuda_double_buffer_kernel),
    ("unrolled", cuda_unrolled_kernel),
    ("warp tiles", cuda_warp_tiles_kernel),
):
    note = "the ladder's rung, 8x8 a thread, two buffers"
    product_of_flat(f"{name} ragged", kernel, 134, 36, 12, (1, 2), 256, note)
product_of_flat(
    *("async ragged", cuda_async_kernel, 70, 36, 21, (1, 2), 128),
    "the ladder's rung, 8x8 a thread, three buffers",
)
for setting in SETTINGS[:3]:
    edges = f"{setting.tile_m}x{setting.tile_n}"
    product_of_flat(
        f"best {edges} ragged",
        with_constants(
            cuda_best_kernel, max_registers=setting.max_registers, **setting.constants(True)
        ),
        *(setting.tile_m + 2, 36, 21, (1, 2), setting.threads),
        f"the ladder's rung, a setting of {edges}",
        ONE,
    )

# Shared memory


@cuda.jit
def transpose_tile(x, y):
    tile = cuda.shared.array((32, 32), float32)
    col, row = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    y[row, col] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def transpose_tile_padded(x, y):
    tile = cuda.shared.array((32, 33), float32)
    col, row = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    y[row, col] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def transpose_tile_float64(x, y):
    tile = cuda.shared.array((32, 32), float64)
    col, row = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    y[row, col] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def transpose_tile_float64_padded(x, y):
    tile = cuda.shared.array((32, 33), float64)
    col, row = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    y[row, col] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def shared_strided(x, y, stride):
    s = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    s[t * stride] = x[t]
    cuda.syncthreads()
    y[t] = s[(t + 1) % 32 * stride]


@cuda.jit
def shared_one(x, y):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[3] + s[t // 32]


@cuda.jit
def shared_by_one_lane(x, y):
    s = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    value = x[t]
    if t % 32 == 9:
        s[t // 32] = value
    cuda.syncthreads()
    y[t] = s[(t + 7) % 4]


@cuda.jit
def shared_three(x, y):
    singles = cuda.shared.array(96, float32)
    whole = cuda.shared.array(96, int32)
    doubles = cuda.shared.array(96, float64)
    t = cuda.threadIdx.x
    singles[t] = x[t]
    whole[95 - t] = t
    doubles[t // 2 + 48 * (t % 2)] = x[t]
    cuda.syncthreads()
    y[t] = singles[95 - t] + whole[t // 3] + doubles[t]


@cuda.jit
def shared_dynamic(x, y):
    s = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    n = cuda.blockDim.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    y[cuda.grid(1)] = s[n - 1 - t]


@cuda.jit
def tree_sum(x, y):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


@cuda.jit
def tree_sum_interleaved(x, y):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 1
    while step < cuda.blockDim.x:
        if t * 2 * step < cuda.blockDim.x:
            s[t * 2 * step] += s[t * 2 * step + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


@cuda.jit
def warp_sum(x, y):
    i = cuda.grid(1)
    value = x[i]
    half = 16
    while half > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, half)
        half //= 2
    if cuda.laneid == 0:
        y[i // 32] = value


def tile_transpose(name, kernel, dtype, note):
    case(
        name,
        kernel,
        (2, 3),
        (32, 32),
        lambda: [values(96, 64, dtype=dtype), zeros(64, 96, dtype=dtype)],
        note,
        lambda x, y: {1: x.T},
    )


tile_transpose("transpose tile", transpose_tile, np.float32, "loads down a column: one bank")
tile_transpose(
    "transpose tile padded", transpose_tile_padded, np.float32, "rows of 33: no conflict"
)
tile_transpose("transpose tile float64", transpose_tile_float64, np.float64, "8 bytes, one bank")
tile_transpose(
    "transpose tile float64 padded",
    transpose_tile_float64_padded,
    np.float64,
    "8 bytes, rows of 33",
)
for stride in (1, 2, 3, 4, 8, 16, 32):
    case(
        f"shared stride {stride}",
        shared_strided,
        1,
        32,
        lambda stride=stride: [values(32), zeros(32), stride],
        "stores and loads a stride apart",
        lambda x, y, stride: {1: np.roll(x, -1)},
    )
case(
    "shared broadcast",
    shared_one,
    1,
    128,
    lambda: [values(128), zeros(128)],
    "all lanes of a warp load one element",
    lambda x, y: {1: x[3] + np.repeat(x[:4], 32)},
)
case(
    "shared by one lane",
    shared_by_one_lane,
    1,
    128,
    lambda: [values(128), zeros(128)],
    "one lane of each warp stores",
    lambda x, y: {1: x[9::32][(np.arange(128) + 7) % 4]},
    rearranged="the compiler moved the load behind the condition, where one lane is left",
)
case(
    "three shared arrays",
    shared_three,
    1,
    96,
    lambda: [values(96), zeros(96)],
    "arrays of 4, 4 and 8 bytes an element",
    lambda x, y: {
        1: (x[::-1] + (95 - np.arange(96) // 3) + np.concatenate([x[::2], x[1::2]])).astype(
            np.float32
        )
    },
    rearranged="the compiler loads once what the source loads twice",
)
case(
    "dynamic shared",
    shared_dynamic,
    2,
    96,
    lambda: [values(192), zeros(192)],
    "shared memory whose size the launch gives",
    lambda x, y: {1: x.reshape(2, 96)[:, ::-1].ravel()},
    sharedmem=96 * 4,
)
for kernel in (tree_sum, tree_sum_interleaved):
    case(
        kernel.__name__.replace("_", " "),
        kernel,
        2,
        256,
        lambda: [values(512), zeros(2)],
        "fewer lanes at each step, whole warps idle in the last",
        lambda x, y: {1: x.reshape(2, 256).sum(1)},
    )
case(
    "warp sum",
    warp_sum,
    2,
    64,
    lambda: [values(128), zeros(4)],
    "shuffles move values without memory",
    lambda x, y: {1: x.reshape(4, 32).sum(1)},
)


# Shared memory: one access of one warp, its elements chosen at will. -1 leaves a lane out.

ELEMENTS = 1056  # 33 a lane: room for a stride of 33


def shared_loader(dtype):
    @cuda.jit
    def shared_load(index, y):
        s = cuda.shared.array(ELEMENTS, dtype)
        t = cuda.threadIdx.x
        for j in range(ELEMENTS // 32):
            s[t + 32 * j] = t + j
        cuda.syncthreads()
        i = index[t]
        if i >= 0:
            y[t] = s[i]

    return shared_load


def shared_storer(dtype):
    @cuda.jit
    def shared_store(index, x, y):
        s = cuda.shared.array(ELEMENTS, dtype)
        t = cuda.threadIdx.x
        i = index[t]
        if i >= 0:
            s[i] = x[t]
        cuda.syncthreads()
        i = index[(t + 1) % 32]
        if i >= 0:
            y[t] = s[i]

    return shared_store


def patterns():
    """Return {name: element of each lane, -1 for none}."""
    lane = np.arange(LANES)
    random = np.random.default_rng(7)
    found = {f"stride {stride}": lane * stride for stride in (1, 2, 3, 4, 5, 8, 16, 32, 33)}
    found["reversed"] = lane[::-1]
    found["one element"] = np.full(LANES, 5)
    found["element a half-warp"] = lane // 16 * 8 + 1
    found["element a half-warp, same bank"] = lane // 16 * 32
    found["element a quarter-warp"] = lane // 8 * 3
    found["element a pair"] = lane // 2
    found["element a pair, 16 apart"] = lane // 2 * 16
    found["both halves the same"] = lane % 16
    found["both halves the same, stride 2"] = lane % 16 * 2
    found["all quarters the same"] = lane % 8
    found["eight lanes' four elements"] = lane % 4
    found["halves swapped"] = (lane + 16) % 32
    found["halves interleaved"] = lane % 16 * 2 + lane // 16
    found["quarters swapped"] = lane ^ 8
    found["pairs across halves"] = lane // 2 + 16 * (lane % 2)
    found["second half conflicts"] = np.where(lane < 16, lane, (lane - 15) * 16)
    found["halves 32 apart"] = lane % 16 + 32 * (lane // 16)
    found["quarters 32 apart"] = lane % 8 + 32 * (lane // 8)
    found["eighths 64 apart"] = lane % 4 + 64 * (lane // 4)
    found["odd lanes"] = np.where(lane % 2 == 1, lane, -1)
    found["odd lanes, side by side"] = np.where(lane % 2 == 1, lane // 2, -1)
    found["first 7 lanes"] = np.where(lane < 7, lane, -1)
    found["first half"] = np.where(lane < 16, lane, -1)
    found["second half"] = np.where(lane >= 16, lane, -1)
    found["middle half"] = np.where((lane >= 8) & (lane < 24), lane, -1)
    found["one lane"] = np.where(lane == 20, 40, -1)
    found["a lane of each half"] = np.where(lane % 16 == 3, lane, -1)
    found["a lane of each half, same bank"] = np.where(lane % 16 == 3, lane // 16 * 32, -1)
    for below in (8, 16, 24, 32, 64):
        for turn in (1, 2):
            found[f"random below {below}, {turn}"] = random.integers(0, below, LANES)
    for below in (32, 64, 128, ELEMENTS):
        for turn in (1, 2):
            found[f"permuted below {below}, {turn}"] = random.permutation(below)[:LANES]
    for turn in (1, 2):
        some = random.integers(0, 64, LANES)
        active = random.random(LANES) < 0.5
        found[f"random below 64, some lanes, {turn}"] = np.where(
            random.random(LANES) < 0.5, some, -1
        )
    for turn in (1, 2):
        some = random.permutation(64)[:LANES]
        active = random.random(LANES) < 0.5
        found[f"permuted below 64, some lanes, {turn}"] = np.where(active, some, -1)
    return {name: np.asarray(lanes, np.int32) for name, lanes in found.items()}


FEW = (
    "stride 1",
    "stride 2",
    "stride 3",
    "stride 4",
    "stride 8",
    "stride 32",
    "stride 33",
    "reversed",
    "one element",
    "element a pair, 16 apart",
    "both halves the same",
    "odd lanes",
    "first 7 lanes",
    "random below 64, 1",
    "permuted below 64, 1",
    "permuted below 128, 1",
    "permuted below 1056, 1",
    "permuted below 64, some lanes, 1",
)


def distinct(lanes):
    active = lanes[lanes >= 0]
    return len(set(active.tolist())) == len(active)


def loaded(index, y):
    number = np.arange(ELEMENTS)
    return {1: np.where(index < 0, y, (number % 32 + number // 32)[index]).astype(y.dtype)}


def stored(index, x, y):
    following = np.roll(index, -1)
    return {2: np.where(following < 0, y, np.roll(x, -1))}


for words, size in ((uint8, np.uint8), (float16, np.float16), (float32, np.float32),
                    (float64, np.float64)):  # fmt: skip
    loader, storer = shared_loader(words), shared_storer(words)
    for pattern, lanes in patterns().items():
        if size in (np.uint8, np.float16) and pattern not in FEW:
            continue
        case(
            f"shared load {np.dtype(size)}: {pattern}",
            loader,
            1,
            LANES,
            lambda lanes=lanes, size=size: [lanes.copy(), zeros(LANES, dtype=size)],
            "one shared load of one warp",
            loaded,
        )
        if distinct(lanes):
            case(
                f"shared store {np.dtype(size)}: {pattern}",
                storer,
                1,
                LANES,
                lambda lanes=lanes, size=size: [
                    lanes.copy(),
                    values(LANES, dtype=size),
                    zeros(LANES, dtype=size),
                ],
                "one shared store of one warp; the loads are the store's, one lane on",
                stored,
            )


# 16 bytes a lane


@cuda.jit
def vector_load_shared(index, x, y):
    s = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    for j in range(32):
        s[t + 32 * j] = x[t + 32 * j]
    cuda.syncthreads()
    i = index[t]
    if i >= 0:
        p, q, r, u = load4_shared(s, int64(4) * i)
        y[t] = p
        y[t + 32] = q
        y[t + 64] = r
        y[t + 96] = u


@cuda.jit
def vector_store_shared(index, x, y):
    s = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    for j in range(32):
        s[t + 32 * j] = float32(0)
    cuda.syncthreads()
    i = index[t]
    if i >= 0:
        store4_shared(s, int64(4) * i, x[t], x[t + 32], x[t + 64], x[t + 96])
    cuda.syncthreads()
    for j in range(32):
        y[t + 32 * j] = s[t + 32 * j]


@cuda.jit
def vector_load_global(index, x, y):
    t = cuda.threadIdx.x
    i = index[t]
    if i >= 0:
        p, q, r, u = load4_global(x, int64(4) * i)
        y[t] = p
        y[t + 32] = q
        y[t + 64] = r
        y[t + 96] = u


@cuda.jit
def vector_store_global(index, x, y):
    t = cuda.threadIdx.x
    i = index[t]
    if i >= 0:
        store4_global(y, int64(4) * i, x[t], x[t + 32], x[t + 64], x[t + 96])


def vector_patterns():
    """Return {name: number of each lane's four, below 256, -1 for none}."""
    random = np.random.default_rng(8)
    kept = {
        name: lanes for name, lanes in patterns().items() if lanes.max() < 256 and "33" not in name
    }
    for below in (8, 16, 32, 64, 256):
        kept[f"random fours below {below}"] = random.integers(0, below, LANES).astype(np.int32)
        if below >= LANES:
            lanes = random.permutation(below)[:LANES].astype(np.int32)
            kept[f"permuted fours below {below}"] = lanes
    return kept


def fours(source, index, y):
    """Return y after each active lane t put its four to y[t], y[t + 32], y[t + 64], y[t + 96]."""
    out = y.copy().reshape(4, LANES)
    active = index >= 0
    out[:, active] = source.reshape(-1, 4)[index[active]].T
    return out.ravel()


def fours_back(index, x, y):
    """Return y after each active lane t put x[t], x[t + 32], ... to its four."""
    out = y.copy().reshape(-1, 4)
    active = index >= 0
    out[index[active]] = x.reshape(4, LANES).T[active]
    return out.ravel()


UNEXPLAINED = {
    (
        "shared",
        "permuted below 64, some lanes, 2",
    ): "five wavefronts, as counted; the rule that fits "
    "all other patterns calls two of them conflicts, the GPU one"
}
for pattern, lanes in vector_patterns().items():
    for memory, loader, storer in (
        ("shared", vector_load_shared, vector_store_shared),
        ("global", vector_load_global, vector_store_global),
    ):
        if memory == "global" and pattern not in FEW and "fours" not in pattern:
            continue
        case(
            f"{memory} load of 16 bytes: {pattern}",
            loader,
            1,
            LANES,
            lambda lanes=lanes: [lanes.copy(), values(1024), zeros(128)],
            f"one 16-byte {memory} load of one warp",
            lambda index, x, y: {2: fours(x, index, y)},
            unexplained=UNEXPLAINED.get((memory, pattern), ""),
        )
        if distinct(lanes):
            case(
                f"{memory} store of 16 bytes: {pattern}",
                storer,
                1,
                LANES,
                lambda lanes=lanes: [lanes.copy(), values(128), zeros(1024)],
                f"one 16-byte {memory} store of one warp",
                lambda index, x, y: {2: fours_back(index, x, y)},
            )
