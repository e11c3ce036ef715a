"""grader/: what chapters 1 to 3 need: loops that are watched, arguments that are drawn, nests."""

from itertools import permutations

import numpy as np
import pytest

from tiled_matmul.grader import compare, kinds, nests, pool
from tiled_matmul.grader.folders import exercise, folder
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import LOOPS, Call, Case, Count, Exercise, Limits, Operation, Slip
from tiled_matmul.grader.watched import Outside, Record
from tiled_matmul.ladder import ORDERS
from tiled_matmul.ladder.loops_tiled import loops_3, loops_4
from tiled_matmul.models.cache import strides
from tiled_matmul.models.visits import visits

PAIRS = folder("02.2").module("judge").PAIRS
LEGAL = folder("02.2").module("judge")
TILED = folder("03.1").module("judge")


@pytest.fixture(scope="module")
def worker():
    with pool.Worker("loops", Limits(), confined=False) as one:
        yield one


@pytest.fixture
def watched():
    """Return (record, A, B, C), 3×4, 4×5 and 3×5, with the numbers 0, 1, 2, … and an old C."""
    record = Record()
    a, b = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
    return record, *record.watch(A=a, B=b, C=np.full((3, 5), 99.0))


def test_watched_matrices_answer_as_arrays_do(watched):
    _, a, b, c = watched
    assert (a.shape, a.size, a.ndim, len(b), a.dtype) == ((3, 4), 12, 2, 4, np.float64)
    assert a[1, 2] == a[1][2] == a[-2, -2] == 6 and isinstance(a[1, 2], float)
    assert [row[0] for row in a] == [0, 4, 8] and b[1:, 2].shape == (3,)
    c[:] = 0
    c[0] += a[0, 1] * b[1]
    c[1, 1:3] = [7, 8]
    assert np.array_equal(np.asarray(c)[:2], [[5, 6, 7, 8, 9], [0, 7, 8, 0, 0]])
    assert np.array_equal(b[:, 0] * 2 + a[0], [0, 11, 22, 33])


def test_reads_writes_and_whole_rows_are_counted(watched):
    record, a, b, c = watched
    c[:] = 0
    c[0, 0] += a[0, 1] * b[1][0]
    assert (record.reads, record.writes, record.whole_rows) == ({"A": 1, "B": 1, "C": 1}, 16, 0)
    c[1] += a[0, 1] * b[1]
    assert record.reads == {"A": 2, "B": 6, "C": 6} and record.whole_rows == 3
    assert not record.findings


def test_multiplications_by_an_element_are_counted_once(watched):
    record, a, b, c = watched
    assert a[1, 0] * b[0, 2] == 8 and record.products == 1
    assert 2 * a[1, 0] * b[0, 2] + a[0, 1] == 17 and record.products == 2
    copied = [a[1, k] for k in range(4)]
    assert record.longest == 5  # with the one behind the last product
    assert sum(x * b[k, 1] for k, x in enumerate(copied)) == 212 and record.products == 6
    assert a[1, 1] ** 2 == 25 and a.dtype.type(a[1, 1]) * 2.0 == 10 and record.products == 7
    c[0, 0] = a[1, 0] * b[0, 2]
    assert np.array_equal(a[1, 0] * b[0], [0, 4, 8, 12, 16]) and record.products == 8


def test_with_factors_the_use_of_an_element_is_an_access_wherever_it_is_kept():
    places = np.arange(12).reshape(3, 4), np.arange(12, 32).reshape(4, 5)
    record = Record(True, [part.tolist() for part in places])
    a, b, c = record.watch(A=np.ones((3, 4)), B=np.ones((4, 5)), C=np.zeros((3, 5)))
    kept, other = [a[2, k] for k in range(4)], b[1, 3]
    assert record.touched == [8, 9, 10, 11, 20] and record.longest == 5
    kept[1] * other
    assert record.touched[5:] == [9, 32 + 13] and record.products == 1 and record.waiting == 0
    other * (2 * kept[1] + 1)  # the same product again
    assert record.touched[7:] == [] and record.products == 1
    for one, two in ((kept[2], other), (kept[1], kept[1]), (other, other), (kept[1], 2.0)):
        one * two  # none of the products that make C
    assert record.touched[7:] == [] and record.products == 1
    free = kept[2] * other % 1e9 * 1.0  # of another step of k, and still an element
    free * b[2, 3]
    assert record.touched[7:] == [25, 10, 32 + 13] and record.products == 2
    c[2, 3] += kept[1] / (1 / other)
    assert record.products == 2 and record.writes == 1 and record.touched[10:] == [9, 20, 45]


def test_factors_of_a_transposed_product_are_those_of_its_definition():
    case = Case(2, 3, 4)
    [x, y] = compare.header(exercise("02.3"), case)["factors"]
    assert x == [[0, 2, 4, 6], [1, 3, 5, 7]] and y[0] == [8, 9, 10] and len(y) == 4


def test_an_old_c_a_negative_index_and_one_outside_are_found(watched):
    record, a, _, c = watched
    c[0, 1] += 1
    assert a[-1, 0] == 8 and a[0][-1] == 3
    c[0, 2] += 1
    for index in ((3, 0), (0, 4)):
        with pytest.raises(Outside):
            a[index]
    with pytest.raises(Outside):
        a[1][9]
    with pytest.raises(Outside):
        c[1:, :2][2, 0]
    with pytest.raises(IndexError):
        a[0.5]
    with pytest.raises(IndexError):
        a[0, 0, 0]
    told = {
        kind: (found["message"], found["count"]) for (kind, _), found in record.findings.items()
    }
    assert told["uninitialised read"][1] == 2 and "C[0, 1] before" in told["uninitialised read"][0]
    assert told["negative index"][1] == 2 and "A[-1, 0]" in told["negative index"][0]
    assert record.findings["out of bounds", "C"]["message"].endswith(
        "[2, 0] of a part of C, and that part is 2×2."
    )
    told["out of bounds"] = (record.findings["out of bounds", "A"]["message"], 3)
    assert told["out of bounds"][1] == 3 and "A[3, 0], and A is 3×4" in told["out of bounds"][0]


def test_words_fetched_are_those_of_a_cache_in_which_the_oldest_gives_way():
    record = Record()
    record.watch(A=np.zeros((1, 4)))
    record.touched = [1, 2, 3, 1, 2, 3]
    assert [record.fetched(words) for words in (1, 2, 3)] == [6, 6, 3]
    record.touched = [1, 2, 1, 3, 1, 2]
    assert record.fetched(2) == 4


def test_a_cache_of_lines_or_tiles_loads_whole_ones():
    record = Record()
    a, b = record.watch(A=np.zeros((3, 5)), B=np.zeros((2, 4)))
    for row in range(3):
        for column in range(5):
            a[row, column]
    # Lines of 4: each row of A has two, whose second one holds a single element.
    assert record.fetched(1, 1, 4) == 6 and record.fetched(1, 1, 5) == 3
    # Tiles of 2×2: six in A, each of the first row again and again with room for two.
    assert record.fetched(3, 2, 2) == 6 and record.fetched(2, 2, 2) == 9
    b[0, 0] = b[1, 3] = 1  # other tiles than those of A
    assert record.fetched(9, 2, 2) == 8


def test_the_driver_hands_back_what_was_watched():
    a, b = Case(2, 3, 4).inputs(0)
    request = {"entry": "f", "shapes": [(2, 4), (4, 3), (2, 3)], "dtype": "float32"}
    request |= {"arrays": "abc", "product": True, "scale": 1, "launch": [9, [2, 1, 4], [2, 2, 2]]}
    blobs = [a.tobytes(), b.tobytes(), bytes(24)]
    reply, data = kinds.run("loops", {"f": lambda a, b, c: c[5, 0]}, request, blobs)
    assert [found["kind"] for found in reply["findings"]] == ["out of bounds"]
    assert reply["counts"] == dict.fromkeys(
        ("reads of A", "reads of B", "reads of C", "writes of C", "whole rows", "words fetched")
        + (
            "products",
            "reads without a product",
            "lines fetched by cache 2",
            "tiles fetched by cache 3",
        ),
        0,
    )
    assert data == [bytes(24), a.tobytes(), b.tobytes()]


# What exercises are made of.


def test_loops_may_have_an_operation_with_other_arrays(worker):
    squares = Operation(
        arrays=("x", "y", "c"),
        shapes=lambda case: ((case.m, case.k), (1, case.m), (case.m, case.m)),
        result=lambda case, x, y: (x @ x.T + y, abs(x) @ abs(x).T + abs(y)),
        terms=lambda case: case.k + 1,
    )
    reads = Count("reads of Y", lambda case: case.m, "Y is read again.")
    one = make(
        operation=squares, counts=(reads,), parameters=("x", "y", "c"), launch=lambda case: (9,)
    )
    right = (
        "def f(x, y, c):\n    for j in range(len(c)):\n        bias = y[0, j]\n"
        "        for i in range(len(c)):\n"
        "            c[i, j] = bias + sum(x[i, k] * x[j, k] for k in range(x.shape[1]))\n"
    )
    assert judge(one, right, seed=0, worker=worker).status == "PASS"
    verdict = judge(one, right.replace("bias +", "y[0, j] +"), seed=0, worker=worker)
    assert "Y is read again" in verdict.message and verdict.points == 2
    verdict = judge(one, right.replace("y[0, j]", "y[j, 0]"), seed=0, worker=worker)
    assert "accesses Y[1, 0], and Y is 1×2. The first index counts rows" in verdict.message
    verdict = judge(one, right.replace("bias +", "c[i, j] + bias +"), seed=0, worker=worker)
    assert verdict.diagnosis == "uninitialised read" and "before you read it" in verdict.message
    verdict = judge(one, right.replace("bias +", "float('nan') +"), seed=0, worker=worker)
    assert verdict.diagnosis == "not finite"
    with pytest.raises(ValueError, match="neither values nor"):
        make(kind="values", cases=(Call(),), answer=int, operation=squares)


def make(**changed) -> Exercise:
    return Exercise(
        **{"name": "99.1", "title": "x", "points": 4, "entry": "f", "parameters": ("a", "b", "c")}
        | {"kind": "loops", "rules": LOOPS, "cases": (Case(2, 3, 4),)}
        | {"hints": {"other": 1}, **changed}
    )


RIGHT = """def f(a, b, c):
    c[:] = 0
    for k in range(len(b)):
        for i in range(2):
            for j in range({columns}):
                c[i, j] += a[i, k] * b[k, j]
"""


def test_arguments_are_drawn_anew_and_repeated_from_a_seed():
    call = Call(draw=lambda rng: (int(rng.integers(1 << 40)),), hidden=True)
    assert call.drawn(1) == call.drawn(1) != call.drawn(2)
    assert str(call.drawn(1)).strip("()").isdigit() and call.drawn(1).hidden
    assert Call((3,)).drawn(1) == Call((3,))


def test_a_slip_says_which_c_comes_of_it_and_nan_may_be_anything(worker):
    def twice(case, a, b):
        made = 2 * (a @ b)
        made[0] = np.nan
        return made

    slips = (Slip(lambda *_: None, "none", "None."), Slip(twice, "twice", "Rows of 2."))
    source = RIGHT.format(columns=3) + "    for j in range(3):\n        c[1, j] *= 2\n"
    found = judge(make(slips=slips), source, worker=worker)
    assert (found.status, found.diagnosis) == ("WRONG", "twice") and "Rows of 2." in found.message
    # The right product is no slip, and neither is another wrong one.
    assert judge(make(slips=slips), RIGHT.format(columns=3), worker=worker).status == "PASS"
    assert judge(make(slips=slips), RIGHT.format(columns=2), worker=worker).diagnosis == "zero"


def test_half_of_the_points_are_for_who_is_right_in_all_cases(worker):
    counts = (Count("reads of A", lambda case: 0, "Too many."),)
    two = make(counts=counts, cases=(Case(2, 3, 4), Case(2, 5, 4)))
    found = judge(two, RIGHT.format(columns="c.shape[1]"), worker=worker)
    assert (found.points, found.diagnosis) == (2, "counts") and found.message.startswith("A 2×4")
    found = judge(two, RIGHT.format(columns=3), worker=worker)
    assert (found.points, found.diagnosis) == (0, "zero")


# Chapter 2.


@pytest.mark.parametrize("order", ORDERS)
def test_the_strides_are_the_chapters(order):
    assert tuple(folder("02.1").module("judge")._moves(order, 5, 7, 3)) == strides(order, 5, 7, 3)


def test_what_a_nest_shows_is_what_runs():
    for name, nest in nests.NESTS.items():
        arrays = nests._arrays(nest, 4)
        exec(nest.text("ji" if len(nest.loops) == 2 else "kji"), arrays)
        target = nest.line[0]
        assert np.array_equal(arrays[target], nests.run(name, "".join(sorted(nest.loops))[::-1], 4))
    a, b = (nests._arrays(nests.NESTS["product"], 0)[x].astype(float) for x in "ab")
    c = nests._arrays(nests.NESTS["product"], 0)["c"]
    assert np.allclose(nests.run("product"), c + a @ b, atol=1e-5)


def test_which_exchanges_keep_the_bits_whatever_the_numbers():
    legal = {
        *(("product", "ij"), ("product", "ik"), ("product", "jk"), ("wave", "ij")),
        *(("paths", "ij"), ("in place", "ij")),
    }
    for seed in range(0, 8000, 1000):
        assert {pair for pair in PAIRS if LEGAL.differs(*pair, seed) is None} == legal
    assert {pair for pair in PAIRS if LEGAL.conflict(*pair) is None} == legal


def test_the_turns_that_a_conflict_names_do_change_places():
    for name, pair in PAIRS:
        told = LEGAL.conflict(name, pair)
        if told is None:
            continue
        first, second = (
            tuple(map(int, part.split(")")[0].split(", ")))
            for part in told.replace("= (", "turn (").split("turn (")[1:]
        )
        nest = nests.NESTS[name]
        before = nests.turns_of(nest, nest.loops)
        after = nests.turns_of(nest, nests.exchanged(name, pair))
        assert before.index(first) < before.index(second)
        assert after.index(first) > after.index(second)


def test_nests_refuse_what_they_have_not():
    with pytest.raises(ValueError, match="no nest 'waves'; there are product"):
        nests.run("waves")
    with pytest.raises(ValueError, match="wave has the loops ij, in any order; got 'ijk'"):
        nests.run("wave", "ijk")
    with pytest.raises(ValueError, match="wave has the pairs ij, got 'ik'"):
        nests.exchanged("wave", "ik")


# Chapter 3.

RANGES = {
    **{"i": "range(0, M, T)", "j": "range(0, N, T)", "k": "range(0, K, T)"},
    **{"I": "range(min(T, M - i))", "J": "range(min(T, N - j))", "K": "range(min(T, K - k))"},
}


def nest_of(order: str):
    """Loops over tiles (small letters) and inside of them (large ones), in an order."""
    lines = ["def f(a, b, c, M, N, K, T):", " c[:] = 0"]
    for depth, loop in enumerate(order, start=1):
        name = loop if loop.islower() else f"{loop.lower()}0"
        lines.append(f"{' ' * depth}for {name} in {RANGES[loop]}:")
    lines.append(f"{' ' * 7}c[i + i0, j + j0] += a[i + i0, k + k0] * b[k + k0, j + j0]")
    space: dict = {}
    exec("\n".join(lines), space)
    return space["f"]


def fetched(loops, case: Case) -> int:
    a, b = case.inputs(0)
    record = Record()
    edge = case.given.get("T", TILED.T)
    three = record.watch(A=a, B=b, C=np.zeros((case.m, case.n), np.float32))
    getattr(loops, "py_func", loops)(*three, case.m, case.n, case.k, edge)
    assert not record.findings and record.reads["A"] == case.m * case.n * case.k
    (words,) = TILED._room(case)
    return record.fetched(words)


@pytest.mark.parametrize("case", exercise("03.1").cases[:5], ids=str)
@pytest.mark.sample(4)
def test_every_order_of_tiles_and_in_tiles_stays_under_the_limit(case):
    most = TILED._three_tiles_each(case)
    assert fetched(loops_4, case) <= most
    for tiles in map("".join, permutations("ijk")):
        for inside in map("".join, permutations("IJK")):
            assert fetched(nest_of(tiles + inside), case) <= most


def test_loops_that_do_not_stay_in_a_tile_are_over_the_limit():
    for case in exercise("03.1").cases[:2]:
        most = TILED._three_tiles_each(case)
        assert fetched(loops_3, case) > most
        for order in ("iIkKjJ", "kKiIjJ", "jJkKiI", "iIjkJK"):
            assert fetched(nest_of(order), case) > most


def test_the_exercise_is_the_chapters_loops_4():
    found = visits(nest_of("ijkIKJ"), 10, 11, 9, 10, 11, 9, 4)
    assert found == visits(loops_4, 10, 11, 9, 10, 11, 9, 4)


@pytest.mark.parametrize(("cache", "each"), [(49152, 4), (12, 4), (11, 4), (59999, 8), (4799, 16)])
def test_the_largest_tile_fits_and_the_next_one_does_not(cache, each):
    edge = folder("03.2").module("judge")._largest(cache, each)
    assert 3 * edge**2 * each <= cache < 3 * (edge + 1) ** 2 * each
