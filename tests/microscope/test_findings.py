"""microscope/cuda/findings.py: what is a fault and what is not, one small kernel for each rule."""

import numpy as np
import pytest
from numba import cuda, float32, int32

from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.findings import ACROSS

UPPER = 0xFFFF0000  # lanes 16 to 31


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def kinds(kernel, grid, block, *args):
    return [finding.kind for finding in trace(kernel, grid, block, *args).findings]


def test_a_race_before_a_divergent_barrier_counts():
    def races_then_diverges(x):
        x[0] = cuda.threadIdx.x
        if cuda.threadIdx.x < 16:
            cuda.syncthreads()

    assert kinds(races_then_diverges, 1, 32, zeros(1)) == ["divergent barrier", "race"]


def test_a_block_is_judged_though_another_diverges():
    def only_one_diverges(x):
        cuda.syncthreads()
        if cuda.blockIdx.x == 1:
            x[0] = cuda.threadIdx.x
        elif cuda.threadIdx.x < 16:
            cuda.syncthreads()

    assert kinds(only_one_diverges, 2, 32, zeros(1)) == ["divergent barrier", "race"]


def test_divergent_barriers_are_counted_by_block():
    def diverges(x):
        if cuda.threadIdx.x < 16:
            cuda.syncthreads()

    (found,) = trace(diverges, 3, 32, zeros(1)).findings
    assert (found.kind, found.count) == ("divergent barrier", 3)


def test_syncwarp_orders_one_warp_and_not_two():
    def reads(x, out, beyond):
        i = cuda.threadIdx.x
        x[i] = i
        cuda.syncwarp()
        out[i] = x[(i + beyond) % 64]

    assert kinds(reads, 1, 64, zeros(64), zeros(64), 0) == []
    assert kinds(reads, 1, 64, zeros(64), zeros(64), 32) == ["race"]


def test_syncwarp_orders_nothing_for_a_lane_that_takes_no_part():
    def reads_of_the_lower_half(x, out):
        i = cuda.threadIdx.x
        if i < 16:
            x[i] = 1
        else:
            cuda.syncwarp(UPPER)
            out[i] = x[i - 16]

    assert kinds(reads_of_the_lower_half, 1, 32, zeros(16), zeros(32)) == ["race"]


def reads_of_another_block(x, out):
    i = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[i] = 1
        cuda.syncwarp()
    else:
        cuda.syncwarp()
        out[i] = x[(i + 1) % 32]


def reads_behind_a_fence(x, out):
    i = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        x[i] = 1
        cuda.threadfence()
        cuda.syncwarp()
    else:
        cuda.syncwarp()
        out[i] = x[(i + 1) % 32]


@pytest.mark.parametrize("kernel", [reads_of_another_block, reads_behind_a_fence])
def test_syncwarp_orders_nothing_between_blocks(kernel):
    assert kinds(kernel, 2, 32, zeros(32), zeros(32)) == ["race"]


def hands_over(data, flag, out, writer, looks):
    if cuda.blockIdx.x == writer:
        data[0] = 1
        cuda.threadfence()
        cuda.atomic.add(flag, 0, 1)
    elif looks:
        if cuda.atomic.add(flag, 0, 0) >= 0:
            out[0] = data[0]
    else:
        cuda.atomic.add(flag, 0, 0)
        out[0] = data[0]


@pytest.mark.parametrize(
    ("writer", "looks", "found"),
    [
        (0, True, []),
        (1, True, ["race"]),  # the reader's atomic comes before the writer's
        (0, False, ["race"]),  # the reader does not use what the atomic returns
    ],
)
def test_atomics_hand_data_over_to_a_thread_that_looks_afterwards(writer, looks, found):
    flag = zeros(1, dtype=np.int32)
    assert kinds(hands_over, 2, 1, zeros(1), flag, zeros(1), writer, looks) == found


def test_the_same_thread_of_two_blocks_is_two_threads():
    def stores(x):
        x[cuda.threadIdx.x] = cuda.blockIdx.x
        cuda.threadfence()

    (race,) = trace(stores, 2, 32, zeros(32)).findings
    assert (race.kind, race.count) == ("race", 32)


def test_shared_memory_is_initialised_for_each_block():
    def only_one_fills(out):
        s = cuda.shared.array(32, float32)
        i = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            s[i] = 1
        out[cuda.blockIdx.x, i] = s[i]

    (found,) = trace(only_one_fills, 3, 32, zeros(3, 32)).findings
    assert (found.kind, found.count) == ("uninitialised read", 2 * 32)
    assert found.threads[0][0] == (1, 0, 0)


@pytest.mark.parametrize(
    "array",
    [
        zeros(3, 4),
        zeros(4, 3).T,
        zeros(3, 4)[::-1],
        zeros(3, 4)[:, ::-1],
        zeros(4, 3)[::-1, ::-1].T,
    ],
)
def test_the_element_of_a_race_is_named_whatever_the_strides(array):
    def stores(x):
        x[1, 2] = cuda.threadIdx.x

    (race,) = trace(stores, 1, 32, array).findings
    assert race.index == (1, 2)


def test_misses_on_a_line_are_one_finding_that_names_the_first_thread():
    def reads(x, out):
        i = cuda.threadIdx.x
        out[i] = x[i + 30] + x[i + 31]

    (found,) = trace(reads, 1, 32, zeros(32), zeros(32)).findings
    assert (found.kind, found.count) == ("out of bounds", 30 + 31)
    assert found.threads[0][1] == (1, 0, 0)


def test_the_remedy_for_a_race_between_blocks_is_no_barrier():
    def stores(x):
        x[0] = cuda.blockIdx.x * 32 + cuda.threadIdx.x

    (within,) = trace(stores, 1, 32, zeros(1)).findings
    (across,) = trace(stores, 2, 1, zeros(1)).findings
    assert within.remedy != across.remedy
    (both,) = trace(stores, 2, 32, zeros(1)).findings
    assert both.remedy == f"{within.remedy} Threads of different blocks meet there too. {ACROSS}"


def test_a_syncwarp_of_another_warp_orders_no_read_before_a_write():
    def reads_what_the_other_warp_writes(out):
        s = cuda.shared.array(32, float32)
        i = cuda.threadIdx.x
        if i < 32:
            out[i] = s[i]
            cuda.syncwarp()
        else:
            cuda.syncwarp()
            s[i - 32] = 1

    assert kinds(reads_what_the_other_warp_writes, 1, 64, zeros(32)) == ["race"]


def test_an_access_between_two_others_of_a_line_counts():
    def reads_in_the_second_iteration(x, out):
        i = cuda.threadIdx.x
        for k in range(3):
            if i == 0:
                x[0] = k
            elif i == 1 and k == 1:
                out[0] = x[0]
            cuda.syncwarp()

    assert kinds(reads_in_the_second_iteration, 1, 32, zeros(1), zeros(1)) == ["race"]


def passes_on(data, flag, out, before, after):
    i = cuda.threadIdx.x
    if i == 0:
        data[0] = 1
        cuda.threadfence()
        if before:
            cuda.atomic.add(flag, 0, 1)
    elif cuda.atomic.add(flag, 0, 0) >= 0:
        out[0] = data[0]
    cuda.syncthreads()
    if i == 0 and after:
        cuda.atomic.add(flag, 0, 1)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (True, False, []),
        (True, True, []),  # the first atomic has handed the data over; the second does no harm
        (False, True, ["race"]),  # the reader looked before the only hand-over
    ],
)
def test_data_is_handed_over_by_an_atomic_before_the_look(before, after, found):
    flag = zeros(1, dtype=np.int32)
    assert kinds(passes_on, 1, 2, zeros(1), flag, zeros(1), before, after) == found


def test_atomics_in_shared_memory_hand_nothing_over_to_another_block():
    def each_with_its_own_flag(data, out):
        flag = cuda.shared.array(1, int32)
        flag[0] = 0
        if cuda.blockIdx.x == 0:
            data[0] = 1
            cuda.threadfence()
            cuda.atomic.add(flag, 0, 1)
        elif cuda.atomic.add(flag, 0, 0) >= 0:
            out[0] = data[0]

    assert kinds(each_with_its_own_flag, 2, 1, zeros(1), zeros(1)) == ["race"]
