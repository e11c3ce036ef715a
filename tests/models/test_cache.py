"""The cache model: small cases worked by hand, and a plain reference that it has to equal."""

from collections import OrderedDict
from itertools import product

import numpy as np
import pytest
from plain_cache import played

from tiled_matmul.ladder import ORDERS
from tiled_matmul.models import cache as module
from tiled_matmul.models.cache import (
    LEVEL_1,
    Cache,
    Misses,
    iterations,
    level_1,
    loop_misses,
    ranked_right,
    recent_misses,
    strides,
    tiled_misses,
)

LINE = 16  # floats in a line of 64 bytes


def reference(*arguments, **settings):
    misses, accesses, _ = played(*arguments, **settings)
    return Misses(**misses, accesses=accesses)


CACHES = (
    Cache(1024, line=64, ways=1),
    Cache(1024, line=64, ways=2),
    Cache(1536, line=64, ways=12),
    Cache(960, line=32, ways=5),  # six sets: no power of two
    Cache(512, line=128, ways=4),  # one set
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("cache", CACHES, ids=str)
@pytest.mark.parametrize("shape", [(9, 9, 9), (16, 16, 16), (5, 33, 18), (1, 1, 1), (20, 3, 7)])
@pytest.mark.sample(4)
def test_loop_misses_equal_the_plain_reference(order, cache, shape):
    assert loop_misses(order, *shape, cache) == reference(order, *shape, cache)


@pytest.mark.parametrize("order", ["ikj", "ijk", "kji"])
@pytest.mark.parametrize("tile", [1, 4, 7, 100])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_tiled_misses_equal_the_plain_reference(order, tile, itemsize):
    shape, cache = (11, 17, 13), Cache(1024, ways=4)
    counted = tiled_misses(tile, *shape, cache, itemsize, order)
    assert counted == reference(order, *shape, cache, itemsize, tile)


def test_a_tile_as_large_as_the_problem_changes_nothing():
    cache = Cache(1024, ways=4)
    for order in ORDERS:
        tiled = tiled_misses(64, 20, 30, 40, cache, order=order)
        assert tiled == loop_misses(order, 20, 30, 40, cache)


@pytest.mark.parametrize("order", ORDERS)
def test_a_cache_that_holds_everything_fetches_each_line_once(order):
    m, n, k = 32, 48, 64
    misses = loop_misses(order, m, n, k, Cache(2**20, ways=16))
    assert (misses.a, misses.b, misses.c) == (m * k // LINE, k * n // LINE, m * n // LINE)


@pytest.mark.parametrize("order", ORDERS)
def test_misses_lie_between_the_compulsory_and_the_accesses(order):
    for cache in CACHES:
        misses = loop_misses(order, 24, 16, 40, cache)
        compulsory = sum(-(-size * 4 // cache.line) for size in (24 * 40, 40 * 16, 24 * 16))
        assert compulsory <= misses.total <= misses.accesses


@pytest.mark.parametrize("order", ORDERS)
def test_accesses_are_two_a_step_and_one_a_round_of_the_innermost_loop(order):
    sizes = dict(zip("ijk", (6, 10, 15), strict=True))
    steps = 6 * 10 * 15
    misses = loop_misses(order, 6, 10, 15, LEVEL_1)
    assert misses.accesses == 2 * steps + steps // sizes[order[2]]


def test_one_line_cache_worked_by_hand():
    # One set of one line: whatever is touched pushes out what was there. 1 × 2 · 2 × 1, ikj.
    # k=0: A miss, B miss, C miss; k=1: A (same line, but pushed out) miss, B miss, C miss.
    assert loop_misses("ikj", 1, 1, 2, Cache(64, ways=1)) == Misses(2, 2, 2, 6)
    # With k innermost C waits in a register: touched once, in the first step.
    assert loop_misses("ijk", 1, 1, 2, Cache(64, ways=1)) == Misses(2, 2, 1, 5)


def test_least_recently_used_gives_way_and_not_the_first_that_came():
    # 1 × 3 · 3 × 16 with k innermost: A is one line, C is one, B three. Two ways, one set. A round:
    #   A B0 C | A B1 | A B2      C pushes A out, so A misses at B1, and hits at B2, being newer
    #                             than B1. It is still there for the next round.
    # So A misses once a round and once more at the start, B and C always. First in, first out
    # would lose A to B2 as well.
    assert loop_misses("ijk", 1, 16, 3, Cache(128, ways=2)) == Misses(17, 48, 16, 112)


@pytest.mark.parametrize("order, by_hand", [("ikj", 2 / 16), ("ijk", 17 / 16), ("jki", 2)])
def test_the_count_by_hand_holds_for_a_cache_too_small_to_keep_anything(order, by_hand):
    # What the innermost loop does not index misses once a round of that loop.
    n = 128
    misses = loop_misses(order, n, n, n, Cache(8 * 64, ways=8)).total
    assert misses / n**3 == pytest.approx(by_hand + 1 / n, rel=1e-3)


def test_a_power_of_two_drives_a_column_into_few_sets():
    # 16 sets of 8. A row of 64 floats is 4 lines, so a column has 4 sets, which hold 32 lines.
    cache = Cache(128 * 64, ways=8)
    crowded = loop_misses("ijk", 64, 64, 64, cache)
    spread = loop_misses("ijk", 62, 62, 62, cache)
    assert crowded.b == 64**3
    assert spread.b < 62**3 / 8


def test_more_ways_at_the_same_number_of_sets_never_cost_a_miss():
    for order in ORDERS:
        totals = [
            loop_misses(order, 24, 40, 33, Cache(8 * 64 * ways, ways=ways)).total
            for ways in range(1, 9)
        ]
        assert totals == sorted(totals, reverse=True)


def test_iterations_visit_each_index_once_in_the_order_of_the_name():
    for order in ORDERS:
        visits = list(iterations(order, 2, 3, 4))
        assert sorted(visits) == list(product(range(2), range(3), range(4)))
        position = [dict(zip("ijk", visit, strict=True)) for visit in visits]
        keys = [tuple(at[loop] for loop in order) for at in position]
        assert keys == sorted(keys)


def test_strides_are_those_of_numpy_arrays():
    m, n, k = 3, 5, 7
    arrays = {"A": np.empty((m, k)), "B": np.empty((k, n)), "C": np.empty((m, n))}
    axes = {"A": "ik", "B": "kj", "C": "ij"}
    for order in ORDERS:
        expected = tuple(
            arrays[x].strides[axes[x].index(order[2])] // 8 if order[2] in axes[x] else 0
            for x in "ABC"
        )
        assert strides(order, m, n, k) == expected


def test_set_of_deals_lines_out_in_turn():
    cache = Cache(4 * 64 * 2, ways=2)
    assert [cache.set_of(address) for address in (0, 63, 64, 255, 256, 320)] == [0, 0, 1, 3, 0, 1]
    assert str(cache) == "0.5 KiB in 4 sets of 2 lines of 64 bytes"


def test_ranked_right_counts_decided_pairs():
    predicted = {"a": 1.0, "b": 2.0, "c": 2.05}
    assert ranked_right(predicted, {"a": 1, "b": 5, "c": 4}) == (2, 2)
    assert ranked_right(predicted, {"a": 4.5, "b": 5, "c": 4}) == (1, 2)
    assert ranked_right(predicted, {"a": 9, "b": 5, "c": 4}, margin=0) == (0, 3)
    with pytest.raises(ValueError, match="predicted are .*'c'.*measured are"):
        ranked_right(predicted, {"a": 1, "b": 2})


def test_level_1_reads_what_linux_tells(tmp_path):
    def tell(index, **facts):
        folder = tmp_path / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, value in facts.items():
            (folder / name).write_text(f"{value}\n")

    assert level_1(tmp_path) is None
    common = {"coherency_line_size": 64, "ways_of_associativity": 8}
    tell(0, level=1, type="Instruction", size="64K", **common)
    tell(1, level=2, type="Unified", size="1024K", **common)
    tell(2, level=1, type="Data")  # a virtual machine that hides the rest
    assert level_1(tmp_path) is None
    tell(3, level=1, type="Data", size="32K", **common)
    assert level_1(tmp_path) == Cache(32768, 64, 8)


@pytest.mark.parametrize("size, line, ways", [(0, 64, 8), (1024, 0, 8), (1024, 64, 0)])
def test_caches_without_room_are_refused(size, line, ways):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        Cache(size, line, ways)


def test_bad_questions_are_refused():
    with pytest.raises(ValueError, match="1000 bytes is no whole number of sets of 8 lines"):
        Cache(1000)
    for order in ("ijj", "ij", "ijkl", "IJK", "", 5):
        with pytest.raises(ValueError, match="arrangement of ijk, got"):
            loop_misses(order, 4, 4, 4, LEVEL_1)
        with pytest.raises(ValueError, match="arrangement of ijk, got"):
            strides(order, 4, 4, 4)
        with pytest.raises(ValueError, match="arrangement of ijk, got"):
            next(iterations(order, 4, 4, 4))
    for sizes in ((0, 4, 4), (4, -1, 4)):
        with pytest.raises(ValueError, match="must be at least 1"):
            loop_misses("ijk", *sizes, LEVEL_1)
    with pytest.raises(ValueError, match="must be at least 1"):
        tiled_misses(0, 4, 4, 4, LEVEL_1)


# Planted faults: replacement that is wrong in one of the usual ways must differ from the reference.


TOUCH = module._touch.py_func


def first_in_first_out(sets, row, line):
    row = sets[row]
    if line in row:
        return False
    row[1:] = row[:-1].copy()
    row[0] = line
    return True


def forgets_the_last_way(sets, row, line):
    return TOUCH(sets[:, :-1], row, line)


def takes_the_newest(sets, row, line):
    row = sets[row]
    if line in row:
        return False
    row[0] = line
    return True


def right_one(sets, row, line):
    return TOUCH(sets, row, line)


@pytest.mark.parametrize(
    "touch, same",
    [
        (right_one, True),
        (first_in_first_out, False),
        (forgets_the_last_way, False),
        (takes_the_newest, False),
    ],
)
def test_a_faulty_replacement_is_noticed(touch, same, monkeypatch):
    monkeypatch.setattr(module, "_simulate", module._simulate.py_func)
    monkeypatch.setattr(module, "_touch", touch)
    cache = Cache(512, ways=4)
    counted = loop_misses.__wrapped__("ijk", 9, 10, 11, cache)  # not what is remembered
    assert (counted == reference("ijk", 9, 10, 11, cache)) is same


def recent_reference(touches, sizes, capacity):
    """What `recent_misses` counts, by a dictionary in the order of use."""
    kept, misses = OrderedDict(), [0] * len(sizes)
    for piece in touches:
        if piece in kept:
            kept.move_to_end(piece)
            continue
        misses[piece] += 1
        if sizes[piece] <= capacity:
            kept[piece] = sizes[piece]
        while sum(kept.values()) > capacity:
            kept.popitem(last=False)
    return misses


@pytest.mark.parametrize("capacity", [1, 5, 17, 40, 1000])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_recent_misses_equal_the_plain_reference(capacity, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 12)
    touches = rng.integers(0, 12, 400)
    found = recent_misses(touches, sizes, capacity)
    assert found.tolist() == recent_reference(touches.tolist(), sizes.tolist(), capacity)


def test_recent_misses_by_hand():
    assert recent_misses([0, 1, 0, 2, 0, 1], [1, 1, 1], 2).tolist() == [1, 2, 1]
    assert recent_misses([0, 1, 2] * 3, [1, 1, 1], 2).tolist() == [3, 3, 3]
    # The large piece is never kept and pushes nothing out.
    assert recent_misses([0, 1, 1, 0], [1, 9], 2).tolist() == [1, 2]
    assert recent_misses(np.array([], int), [4], 8).tolist() == [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 3], [1, 1, 1], 2), "pieces 0 to 3, but 3 sizes"),
        (([-1], [1], 2), "pieces -1 to -1, but 1 sizes"),
        (([0], [0], 2), "bytes must be 1 or more, got a capacity of 2 and 0"),
        (([0], [1], 0), "bytes must be 1 or more, got a capacity of 0 and 1"),
    ],
)
def test_recent_misses_refuse_what_has_no_size(arguments, message):
    with pytest.raises(ValueError, match=message):
        recent_misses(*arguments)
