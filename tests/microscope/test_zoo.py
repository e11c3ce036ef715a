"""The interpreter: finds what is wrong in every faulty kernel of the zoo, else nothing."""

import itertools
import re

import numpy as np
import pytest
from simt_zoo import CORRECT, FAULTY, Specimen

from tiled_matmul.kit.backend import select
from tiled_matmul.ladder import LADDER
from tiled_matmul.languages import NUMBA_CUDA
from tiled_matmul.microscope.cuda import DivergentBarrier, OutOfBounds, Trace, trace, watch
from tiled_matmul.problem import Problem

ORDERS = [("forward", 0), ("reverse", 0), ("shuffle", 1), ("shuffle", 2), ("shuffle", 3)]
LISTS = {
    "race": "races",
    "out of bounds": "out_of_bounds",
    "negative index": "out_of_bounds",
    "uninitialised read": "uninitialised_reads",
    "divergent barrier": "divergent_barriers",
}

every_faulty = pytest.mark.parametrize("specimen", FAULTY, ids=lambda s: s.name)
every_correct = pytest.mark.parametrize("specimen", CORRECT, ids=lambda s: s.name)
simulator_only = pytest.mark.skipif(select().on_gpu, reason="a GPU does not say what went wrong")


def named(name: str) -> Specimen:
    return next(specimen for specimen in (*FAULTY, *CORRECT) if specimen.name == name)


def traced(specimen: Specimen, order: str, seed: int, args: tuple | None = None) -> Trace:
    return trace(
        specimen.kernel,
        specimen.grid,
        specimen.block,
        *(specimen.make_args() if args is None else args),
        sharedmem=specimen.sharedmem,
        order=order,
        seed=seed,
    )


def found(t: Trace) -> list[tuple[str, str, tuple[int, ...]]]:
    return sorted((f.kind, f.array, tuple(sorted(f.lines))) for f in t.findings)


def assert_outputs(specimen: Specimen, args: tuple) -> None:
    wanted = specimen.reference(*specimen.make_args())
    for output, right in zip(args[-len(wanted) :], wanted, strict=True):
        np.testing.assert_array_equal(output, right)


# --- faulty ---------------------------------------------------------------------------------------


@every_faulty
def test_exactly_the_fault_is_found_where_it_is(specimen):
    """In every order of the threads."""
    for order, seed in ORDERS:
        t = traced(specimen, order, seed)
        assert found(t) == sorted(specimen.expected()), (order, seed)
        for finding in t.findings:
            assert_it_says_where(finding)
            assert [name for name in set(LISTS.values()) if finding in getattr(t, name)] == [
                LISTS[finding.kind]
            ], (order, seed)
            if order != "shuffle":
                assert_its_threads_did_it(t, finding)


def assert_it_says_where(finding) -> None:
    assert finding.array in finding.message
    assert finding.message in str(finding) and finding.remedy in str(finding)
    assert len(finding.lines) == len(finding.texts) == len(set(finding.lines))
    for line, text in zip(finding.lines, finding.texts, strict=True):
        assert "# fault: " in text
        quoted = re.search(rf"\b{line}\b", str(finding))
        assert quoted or text.split("  #")[0] in str(finding), str(finding)


def assert_its_threads_did_it(t: Trace, finding) -> None:
    assert finding.count >= 1
    for block, thread in finding.threads:
        assert all(0 <= i < n for i, n in zip(block, t.grid, strict=True))
        assert all(0 <= i < n for i, n in zip(thread, t.block, strict=True))
    if finding.kind == "race":
        assert_two_accesses_collide(t, finding)
    elif finding.kind == "uninitialised read":
        assert_read(t, finding)
    elif finding.kind == "divergent barrier":
        assert finding.index == () and finding.space == ""
    else:
        assert_outside(t, finding)


def assert_two_accesses_collide(t: Trace, finding) -> None:
    first, second = finding.threads
    assert first != second
    if finding.space == "shared":
        assert first[0] == second[0]
    for one, other in itertools.product(
        accesses_of(t, finding, first), accesses_of(t, finding, second)
    ):
        ops = {t.sites[one["site"]].op, t.sites[other["site"]].op}
        lines = {t.sites[one["site"]].line, t.sites[other["site"]].line}
        together = one["block"] != other["block"] or one["phase"] == other["phase"]
        if lines == set(finding.lines) and ops not in ({"load"}, {"atomic"}) and together:
            return
    raise AssertionError(f"no two accesses of these threads collide there: {finding}")


def assert_read(t: Trace, finding) -> None:
    (thread,) = finding.threads
    ops = {t.sites[row["site"]].op for row in accesses_of(t, finding, thread)}
    assert ops & {"load", "atomic"}


def assert_outside(t: Trace, finding) -> None:
    shape = array_of(t, finding).shape
    assert len(finding.index) == len(shape)
    below = [-n <= i < 0 for i, n in zip(finding.index, shape, strict=True)]
    beyond = [not -n <= i < n for i, n in zip(finding.index, shape, strict=True)]
    assert any(below) and not any(beyond) if finding.kind == "negative index" else any(beyond)


def array_of(t: Trace, finding):
    (array,) = (a for a in t.arrays if (a.name, a.space) == (finding.array, finding.space))
    return array


def accesses_of(t: Trace, finding, thread: tuple) -> np.ndarray:
    """Return one thread's accesses from the finding's lines to the bytes of its element."""
    rows = t.accesses(block=thread[0])
    x, y, z = thread[1]
    rows = rows[rows["thread"] == x + t.block[0] * (y + t.block[1] * z)]
    wanted = finding.space, address(array_of(t, finding), finding.index)
    kept = []
    for row in rows:
        array = t.arrays[row["array"]]
        index = np.unravel_index(row["element"], array.shape)
        at_fault = t.sites[row["site"]].line in finding.lines
        kept.append(at_fault and (array.space, address(array, index)) == wanted)
    return rows[kept]


def address(array, index: tuple) -> int:
    """Return where an element lies; two arrays that overlap have addresses in common."""
    return array.start + sum(i * step for i, step in zip(index, array.strides, strict=True))


def test_a_race_is_found_though_its_values_are_equal():
    specimen = named("every_thread_stores_the_same_value")
    results = []
    for order, seed in ORDERS:
        args = specimen.make_args()
        assert traced(specimen, order, seed, args).races
        results.append(args[-1].tolist())
    assert results == [[1.0]] * len(ORDERS)


def test_a_race_is_found_though_the_result_is_right_by_luck():
    specimen = named("right_by_luck_if_threads_run_in_order")
    a, _ = specimen.make_args()
    right = a[[0, *range(7)]]
    results = {}
    for order in ("forward", "reverse"):
        args = specimen.make_args()
        assert traced(specimen, order, 0, args).races
        results[order] = args[-1]
    np.testing.assert_array_equal(results["forward"], right)
    assert not np.array_equal(results["reverse"], right)


@simulator_only
@every_faulty
def test_a_launch_raises_where_a_trace_goes_on(specimen):
    kinds = {fault.kind for fault in specimen.findings}
    launch = specimen.kernel[specimen.grid, specimen.block, 0, specimen.sharedmem]
    if "out of bounds" in kinds:
        with pytest.raises(OutOfBounds):
            launch(*specimen.make_args())
    elif "divergent barrier" in kinds:
        with pytest.raises(DivergentBarrier):
            launch(*specimen.make_args())
    else:
        launch(*specimen.make_args())


# --- correct --------------------------------------------------------------------------------------


@every_correct
@pytest.mark.sample(3)
def test_nothing_is_found_in_a_correct_kernel_and_its_results_are_right(specimen):
    """In every order of the threads, and when launched without a trace."""
    for order, seed in ORDERS:
        args = specimen.make_args()
        t = traced(specimen, order, seed, args)
        assert [str(finding) for finding in t.findings] == [], (order, seed)
        assert_outputs(specimen, args)
    args = specimen.make_args()
    specimen.kernel[specimen.grid, specimen.block, 0, specimen.sharedmem](*args)
    assert_outputs(specimen, args)


NUMBA = [r for r in LADDER if r.language is NUMBA_CUDA]
# These hand N and K that are not made of fours on to the rung below.
FOURS = ("cuda_vectorised", "cuda_double_buffer", "cuda_unrolled", "cuda_warp_tiles")


@pytest.mark.sample(3)
@pytest.mark.parametrize("rung", NUMBA, ids=lambda r: r.name)
def test_nothing_is_found_in_a_rung(rung):
    """In forward order, on one row; test_ladder_microscope.py has larger shapes in other orders."""
    m, n, k = 1, 40, 7
    if rung.name in FOURS:
        k = 8
    a, b = Problem(m, n, k).inputs(5, "integers", "cuda" if select().on_gpu else "cpu")
    with watch(order="forward") as traces:
        c = rung.matmul(a, b)
    assert traces and all(t.name.startswith(rung.module) for t in traces)
    assert [str(f) for t in traces for f in t.findings] == []
    np.testing.assert_array_equal(c.cpu(), a.cpu() @ b.cpu())


# --- the zoo itself -------------------------------------------------------------------------------


def test_the_zoo_is_large_and_its_names_are_unique():
    assert len(FAULTY) >= 30 and len(CORRECT) >= 18
    names = [specimen.name for specimen in (*FAULTY, *CORRECT)]
    assert len(set(names)) == len(names)


@every_faulty
def test_every_mark_is_named_by_a_finding(specimen):
    named_marks = {mark for fault in specimen.findings for mark in fault.marks}
    assert named_marks == set(specimen.marked_lines())
    assert {fault.kind for fault in specimen.findings} <= set(LISTS)
    assert len(specimen.expected()) == len(specimen.findings) > 0
