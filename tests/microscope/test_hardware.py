"""The interpreter counts what a GPU's counters count: the stored counters of one, case by case.

`STORED` was taken by `measure patterns` from `specimens.kernels.CASES`.
"""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from numba import cuda, float64

from tiled_matmul import ROOT
from tiled_matmul.kit.intrinsics import commit_copies, copy_async, wait_copies
from tiled_matmul.measure import records
from tiled_matmul.microscope.cuda import hardware, trace
from tiled_matmul.specimens.kernels import (
    CASES,
    cuda_coalesced_kernel,
    load_strided,
    tree_sum_interleaved,
)

STORED = ROOT / "results" / "patterns" / "h200.json"
BY_NAME = {case.name: case for case in CASES}


def in_three(size):
    """Return a grid or block as [x, y, z]."""
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes + [1] * (3 - len(sizes))


def shared_stores(t):
    """Return the counts of stores that are no asynchronous copies."""
    return t.count("shared", "store", asynchronous=False)


# Copies are among the global loads.
GLOBAL = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": lambda t: t.global_loads.requests,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": lambda t: t.global_loads.counted_sectors,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": lambda t: t.global_stores.requests,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": lambda t: t.global_stores.sectors,
}
SHARED_STORES = {
    "smsp__sass_inst_executed_op_shared_st.sum": lambda t: shared_stores(t).requests,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": lambda t: shared_stores(t).wavefronts,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": lambda t: (
        shared_stores(t).bank_conflicts
    ),
}
SHARED_LOADS = {
    "smsp__sass_inst_executed_op_shared_ld.sum": lambda t: t.shared_loads.requests,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": lambda t: t.shared_loads.wavefronts,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": lambda t: (
        t.shared_loads.bank_conflicts
    ),
}
COUNTERS = {**GLOBAL, **SHARED_STORES, **SHARED_LOADS}
CONFLICTS = {name: count for name, count in SHARED_LOADS.items() if "conflicts" in name}
EXCEPTIONS = {"merged_shared_loads": SHARED_LOADS, "rearranged": GLOBAL, "unexplained": CONFLICTS}


LDGSTS = "smsp__inst_executed_op_ldgsts.sum"
COPY_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
COPY_REQUESTS = {
    "smsp__sass_inst_executed_op_global_ld.sum": lambda t: (
        t.count("global", "load", asynchronous=False).requests
    ),
    LDGSTS: lambda t: copied_to(t).requests,
}
THROUGH_L1 = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access.sum": COPY_REQUESTS[LDGSTS],
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum": lambda t: read(t).sectors,
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum": lambda t: (
        read(t).sectors
    ),
}
PAST_L1 = {
    "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum": lambda t: (
        read(t).past_l1_sectors
    ),
}
COPYING = [name for name in BY_NAME if name.startswith(("copy of", "tile hand", "tile view"))]
BOTH_WIDTHS = [name for name in BY_NAME if name.startswith(("async ", "best "))]  # 4 and 16 bytes


def read(t):
    return t.count("global", "load", asynchronous=True)


def copied_to(t):
    return t.count("shared", "store", asynchronous=True)


def in_fours(name):
    """Return whether a launch's copies are of 16 bytes: all of its copies, or none."""
    return name.startswith("copy of 16")


def without_chance(counters: dict) -> dict:
    """Return counters without the wavefronts that two requests cost when they met by chance.

    In the L1, `l1tex__…` counts those as wavefronts and as bank conflicts, one or two in a run and
    others in the next; `smsp__sass_…` counts the wavefronts of the kernel's own accesses.
    """
    counters = dict(counters)
    for op in ("ld", "st"):
        all_of_them = f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"
        own = f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum"
        chance = max(0, counters[all_of_them] - counters[own])
        counters[all_of_them] -= chance
        counters[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum"] -= chance
    return counters


@pytest.fixture(scope="module")
def stored() -> dict:
    """The file, with each case's counters by name."""
    entries = records.load(STORED, "patterns")
    cases = {each.case["name"]: dict(each.values) for each in entries}
    for case in cases.values():
        case |= case.pop("counters")
    return {"cases": cases, "provenance": entries[-1].run}


def traced(case, kernel=None, arguments=None):
    """Return the trace of a case, or of its launch with another kernel or other arguments."""
    given = case.make_args() if arguments is None else arguments
    return trace(kernel or case.kernel, case.grid, case.block, *given, sharedmem=case.sharedmem)


def differences(counters: dict, run, counts=COUNTERS) -> dict[str, tuple[int, int]]:
    """Return {counter: (the GPU's, the trace's)} of all that differ."""
    both = {name: (counters[name], count(run)) for name, count in counts.items()}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def exceptional(case) -> dict[str, dict]:
    """Return those of EXCEPTIONS that hold for a case."""
    return {kind: names for kind, names in EXCEPTIONS.items() if getattr(case, kind)}


def complaints(case, counters: dict, run) -> list[str]:
    """Return a line for each counter of the GPU's that the trace of a case does not explain."""
    differ = min(differences(counters, run), differences(without_chance(counters), run), key=len)
    allowed = {name for names in exceptional(case).values() for name in names}
    lines = [
        # An exception that no longer differs would hide the next fault.
        f"{case.name}: all counters agree for which {kind} makes an exception"
        for kind, names in exceptional(case).items()
        if not set(differ) & set(names)
    ]
    differ = {name: pair for name, pair in differ.items() if name not in allowed}
    if case.name in {*COPYING, *BOTH_WIDTHS}:
        differ |= differences(counters, run, COPY_REQUESTS)
    if case.name in COPYING:
        through, past = THROUGH_L1, PAST_L1
        if in_fours(case.name):
            through, past = past, through
        differ |= differences(counters, run, through)
        differ |= {name: (counters[name], 0) for name in past if counters[name]}
    lines += [f"{case.name}: {name} is {a} on the GPU, {b} here" for name, (a, b) in differ.items()]
    return lines


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", BY_NAME)
def test_the_interpreter_counts_and_computes_what_the_gpu_does(name, stored):
    case, counters = BY_NAME[name], stored["cases"][name]
    arguments = case.make_args()
    run = traced(case, arguments=arguments)
    assert complaints(case, counters, run) == []
    for position, expected in case.expect(*case.make_args()).items():
        assert (arguments[position] == expected).all()
    if name in {*COPYING, *BOTH_WIDTHS}:
        assert copied_to(run).requests
    if name in COPYING:
        assert_conflicts_are_of_reading_too(name, run, counters[COPY_CONFLICTS])


def assert_conflicts_are_of_reading_too(name, run, counted):
    """What the counter of a copy's bank conflicts can tell.

    No launch writes to one bank twice, and the trace counts that. The GPU reads as well, one lane
    of each bank at a time, equal addresses too: a conflict for each turn but the first, fewer
    where the lanes want several lines. How many fewer is not known: a warp that wants n lines saves
    n / 4 turns in the launches of two warps, but no such rule gives the 161 of the ragged tiles.
    For copies past the L1 cache this counter shows nothing.
    """
    assert copied_to(run).bank_conflicts == 0
    if in_fours(name):
        assert counted == 0
        return
    turns = [
        (Counter(address // 4 % 32 for address in request.addresses).most_common(1)[0][1], request)
        for block in run.blocks
        for warp in range(run.warps)
        for request in run.requests(block, warp)
        if request.site.asynchronous and request.site.op == "load"
    ]
    most = sum(taken - 1 for taken, _ in turns)
    assert counted <= most and (counted > 0) == (most > 0)
    if name.startswith("copy of"):
        lines = (len({address // 128 for address in request.addresses}) for _, request in turns)
        saved = (-(-wanted // 4) for wanted in lines)
        assert counted == sum(
            max(0, taken - free) for (taken, _), free in zip(turns, saved, strict=True)
        )


def test_no_other_launch_counts_asynchronous_copies(stored):
    for counter in (LDGSTS, COPY_CONFLICTS, *THROUGH_L1, *PAST_L1):
        counted = {name for name, counters in stored["cases"].items() if counters[counter]}
        assert counted <= {*COPYING, *BOTH_WIDTHS}, counter
    copying = {name for name, counters in stored["cases"].items() if counters[LDGSTS]}
    assert copying == {*COPYING, *BOTH_WIDTHS}


def test_the_exceptions_are_few():
    assert sum(len(exceptional(case)) for case in CASES) <= len(CASES) // 20


def test_an_exception_that_agrees_is_caught(stored):
    case = BY_NAME["copy float32"]
    planted = dataclasses.replace(case, rearranged="no reason")
    counters, run = stored["cases"][case.name], traced(case)
    assert complaints(case, counters, run) == []
    assert complaints(planted, counters, run) == [
        "copy float32: all counters agree for which rearranged makes an exception"
    ]


@pytest.mark.parametrize("counter", [*COUNTERS, *COPY_REQUESTS, *THROUGH_L1, *PAST_L1])
def test_each_counter_that_differs_is_named(counter, stored):
    case = BY_NAME[COPYING[0]]
    run, counters = traced(case), stored["cases"][case.name]
    wrong = complaints(case, counters | {counter: counters[counter] + 1}, run)
    assert len(wrong) == 1 and f": {counter} is {counters[counter] + 1} on the GPU" in wrong[0]


def test_each_case_is_stored_as_it_is_launched_now(stored):
    assert len(BY_NAME) == len(CASES)
    assert list(stored["cases"]) == list(BY_NAME)
    for name, case in BY_NAME.items():
        counters = stored["cases"][name]
        assert counters["grid"] == in_three(case.grid), name
        assert counters["block"] == in_three(case.block), name
        for reason in ("merged_shared_loads", "rearranged", "unexplained"):
            assert counters.get(reason, "") == getattr(case, reason), f"{name}: take them again"
        for counter in COUNTERS:
            assert type(counters[counter]) is int and counters[counter] >= 0, (name, counter)


def test_the_counters_say_where_they_come_from(stored):
    provenance = stored["provenance"]
    assert provenance["compute_capability"] == "9.0"
    assert "H200" in provenance["gpu"]
    for key in ("driver", "date", "commit"):
        assert provenance[key]
    assert {"python", "numpy", "numba", "numba-cuda", "ncu"} <= set(provenance["versions"])


# Planted faults: a trace of something else must not pass for the stored launch.


def test_another_stride_does_not_match(stored):
    case = BY_NAME["load stride 2 float32"]
    x, y, _ = BY_NAME["load stride 3 float32"].make_args()
    run = traced(case, load_strided, [x, y, 3])
    assert list(differences(stored["cases"][case.name], run)) == [
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    ]


@pytest.mark.parametrize("name", ["naive 64", "naive ragged"])
def test_another_index_map_does_not_match(name, stored):
    assert differences(stored["cases"][name], traced(BY_NAME[name], cuda_coalesced_kernel))


def test_another_order_of_a_reduction_does_not_match(stored):
    case = BY_NAME["tree sum"]
    assert differences(stored["cases"][case.name], traced(case, tree_sum_interleaved))


@pytest.mark.parametrize(
    "name, other",
    [
        ("transpose tile", "transpose tile padded"),
        ("transpose tile float64 padded", "transpose tile float64"),
        ("tiles, x is row", "tiles, padded"),
        ("copy float64", "copy float32"),
        ("copy of 16 bytes: in a row", "copy of 16 bytes: two rows apart"),
        ("copy of 4 bytes: a warp beyond the end", "copy of 4 bytes: in a row"),
        ("view from 1, float32", "copy in blocks of 1"),
        ("shared load float64: stride 1", "shared load float64: stride 2"),
        ("shared load of 16 bytes: stride 1", "shared load of 16 bytes: stride 2"),
    ],
)
def test_another_kernel_does_not_match(name, other, stored):
    assert differences(stored["cases"][name], traced(BY_NAME[other]))


# Rules by hand, where no stored launch tells two of them apart.


def test_halves_of_two_sectors_are_not_one_sector():
    zeros, lanes = np.zeros(2, int), np.arange(2)
    for addresses, sectors in (([0, 16], 1), ([16, 32], 2)):
        copied, _ = hardware.past_l1(zeros, lanes, np.array(addresses), 1)
        assert copied.tolist() == [sectors]


def test_two_words_of_a_bank_are_a_conflict():
    same = np.full(3, 4), np.zeros(3, bool)  # widths, and whether they are loads
    crowded = hardware.conflicting(np.zeros(3, int), np.arange(3), np.array([0, 128, 4]), *same)
    assert crowded.tolist() == [True, True, False]


def test_copies_of_8_bytes_go_through_the_first_cache():
    def copies(x):
        s = cuda.shared.array(32, float64)
        i = cuda.threadIdx.x
        copy_async(s, i, x, i, 1)
        commit_copies()
        wait_copies(0)

    t = trace(copies, 1, 32, np.zeros(32))
    assert t.global_loads.sectors == 8 and t.global_loads.past_l1_sectors == 0


def test_atomics_of_8_bytes_are_served_as_stores_are():
    def adds(x):
        s = cuda.shared.array(32, float64)
        s[cuda.threadIdx.x] = 0
        cuda.atomic.add(s, cuda.threadIdx.x // 2 * 2, 1)

    t = trace(adds, 1, 32, np.zeros(1))
    assert t.shared_atomics.wavefronts == t.shared_stores.wavefronts == 2
