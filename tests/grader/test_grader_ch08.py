"""grader/kinds: barriers, shared bytes and covered copies, as exercises of chapter 8 need them."""

import linecache

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.grader import counted, kinds, starters
from tiled_matmul.grader.compare import header
from tiled_matmul.grader.compare import request as compare_request
from tiled_matmul.grader.folders import exercise
from tiled_matmul.microscope.cuda import trace

(PATH,) = (path for path in starters.solutions() if path.name.startswith("08"))
ANSWERS = starters.answers(PATH)
CASES = exercise("08.2").cases


def counts(name: str, case, solved: bool) -> dict:
    """Return what a worker counts for the solution, or for the starter."""
    one, source = exercise(name), ANSWERS[name][solved]
    file = f"<answer {name} {solved}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = kinds.prepare("cuda") | dict(one.given) | dict(case.given)
    exec(compile(source, file, "exec"), space)
    a, b = case.inputs(0)
    request = header(one, case) | {"counts": None}  # all of them
    stale = np.zeros((case.m, case.n), np.float32)
    return kinds.run("cuda", space, request, [x.tobytes() for x in (a, b, stale)])[0]["counts"]


def sizes(case) -> tuple[int, int, int]:
    """Return (blocks, steps, elements of a tile)."""
    edge = case.given.get("TILE", 4)
    up = [-(-size // edge) for size in (case.m, case.n, case.k)]
    return up[0] * up[1], up[2], edge**2


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.sample(3)
def test_barriers_and_bytes(case):
    blocks, steps, tile = sizes(case)
    before, after = (counts("08.1", case, solved) for solved in (False, True))
    assert (before["barriers"], after["barriers"]) == (2 * blocks * steps, blocks * steps)
    assert (before["shared bytes"], after["shared bytes"]) == (8 * tile, 16 * tile)
    assert after["copies"] == 0 and after["plain global loads"] == after["global loads"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_copies_are_bare_unless_something_is_read_while_they_fly(case):
    blocks, steps, tile = sizes(case)
    before, after = (counts("08.2", case, solved) for solved in (False, True))
    assert before["bare copies"] == before["copies"] == 2 * blocks * steps * tile
    # The first tile's have nothing to hide behind; those of the tile behind the last, nobody reads.
    assert after["bare copies"] == 2 * blocks * tile and after["copies"] == before["copies"]
    assert after["plain global loads"] == 0


def test_a_kernel_without_barriers_has_none():
    @cuda.jit
    def nothing(c):
        c[cuda.grid(1)] = 1

    t = trace(nothing, 2, 4, np.zeros(8, np.float32))
    counts = counted.counts(t)
    assert (counts["barriers"], counts["needless barriers of a block"]) == (0, 0)
    assert (counts["plain global loads"], counts["copies"], counts["bare copies"]) == (0, 0, 0)


def test_a_barrier_that_protects_nothing_is_needless():
    @cuda.jit
    def staged(c):
        tile = cuda.shared.array(8, np.float32)
        x = cuda.threadIdx.x
        cuda.syncthreads()  # nothing before
        for turn in range(5):
            tile[x] = turn
            cuda.syncthreads()
            c[x] = tile[7 - x]
            cuda.syncthreads()  # the last one has nothing behind
            cuda.syncthreads()  # nothing between

    t = trace(staged, 1, 8, np.zeros(8, np.float32))
    counts = counted.counts(t)
    # Either of two barriers in a row could go, so both count.
    assert (counts["barriers"], counts["needless barriers of a block"]) == (16, 11)


def test_a_right_c_by_the_starters_way_has_no_points_where_the_count_is_the_task():
    shares = {count.what: count.share for count in exercise("08.2").counts}
    assert shares["bare copies"] == 0 and shares["plain global loads"] == 0.5


@pytest.mark.parametrize("case", exercise("08.5").cases[:5], ids=str)
def test_in_a_ring_each_tile_flies_over_the_products_of_those_before_it(case):
    blocks, steps, tile = sizes(case)
    one, source = exercise("08.5"), ANSWERS["08.5"][True]
    flown = {}
    for name, wait in (("right", "wait_copies(AHEAD)"), ("for all", "wait_copies(0)")):
        space = kinds.prepare("cuda") | dict(one.given) | dict(case.given)
        text = source.replace("wait_copies(AHEAD)", wait)
        file = f"<ring {name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), space)
        request, blobs = compare_request(one, case, 0)
        flown[name] = kinds.run("cuda", space, request, blobs)[0]["counts"]["phases in flight"]
    ahead = case.given.get("STAGES", 3) - 1
    assert flown["right"] == 2 * blocks * tile * sum(min(t, ahead) for t in range(steps))
    # A copy of each iteration but the last one is waited for in the next.
    assert flown["for all"] == 2 * blocks * tile * (steps - 1)


def test_loads_of_a_warp_count_each_element_once_and_the_busiest_warp():
    @cuda.jit
    def loads(c):
        t = cuda.threadIdx.x
        part = cuda.shared.array(64, np.float32)
        part[t] = t
        cuda.syncthreads()
        c[t] = part[t // 2] + part[0]
        if t < 32:
            c[t] += part[t]

    counted_ = counted.counts(trace(loads, 1, 64, np.zeros(64, np.float32)))
    assert counted_["shared words"] == 2 * (16 + 1) + 32
    assert counted_["shared loads of a warp"] == 96
