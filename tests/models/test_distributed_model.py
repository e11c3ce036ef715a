"""models/distributed.py: bytes by hand, lines through points, times that follow from both."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from tiled_matmul.distributed import cuts
from tiled_matmul.models.distributed import (
    AXES,
    Line,
    Machine,
    Part,
    channels,
    divisors,
    grid_of,
    held,
    in_layers,
    parts,
    received,
    steps,
)

CUTS = ("rows", "columns", "inner", "scattered", "gathered", "ring", "pulled", "summa")
MACHINE = Machine(
    Line(2, 700e6),
    {"gathered": Line(20, 250e3), "reduced": Line(20, 300e3), "broadcast": Line(20, 290e3)}
    | {"pulled": Line(20, 370e3), "copied": Line(3, 4.2e6), "added": Line(3, 2.8e6)},
    {4: Line(20, 80e3), 8: Line(20, 160e3), 16: Line(20, 300e3), 32: Line(20, 360e3)},
)


def test_bytes_by_hand():
    n = 1000  # so that a matrix has 2 MB
    assert [received(cut, n, n, n, 4) / 2e6 for cut in CUTS] == pytest.approx(
        [0, 0, 1.5, 0.75, 0.75, 0.75, 0.75, 0.5]
    )
    assert [held(cut, n, n, n, 4) / 2e6 for cut in CUTS[:3]] == [1.25, 1.25, 0.5]
    # Of 64 ranks each has 1/8 of the rows and lacks 7/8 of the columns, twice.
    assert received("summa", n, n, n, 64) / 2e6 == pytest.approx(2 * 1 / 8 * 7 / 8)
    assert received("inner", 10, 20, 30, 2, bytes_each=4) == 10 * 20 * 4
    with pytest.raises(ValueError, match="no cut 'diagonal'"):
        received("diagonal", 1, 1, 1, 2)


def test_bytes_in_layers_by_hand():
    n = 1000
    assert in_layers(1, n, n, n, 64) == received("summa", n, n, n, 64)
    # Of 64 ranks in 4 layers, each has 1/4 of the rows and of K, and lacks 3/4 of that, twice;
    # its tile of C, 1/16, has sums in 3 other layers.
    by_hand = 2 * 1 / 4 * 1 / 4 * 3 / 4 + 3 / 4 / 16
    assert in_layers(4, n, n, n, 64) / 2e6 == pytest.approx(by_hand)
    assert in_layers(64, n, n, n, 64) == received("scattered", n, n, n, 64)
    assert received("layered", n, n, n, 64) == min(in_layers(c, n, n, n, 64) for c in divisors(64))
    assert divisors(12) == [1, 2, 3, 4, 6, 12]


def test_layers_are_chosen_by_time_and_never_slower_than_one_grid():
    sizes = 16384, 16384, 16384
    for ranks in (2, 6, 16, 64, 1024):
        layered = MACHINE.us("layered", *sizes, ranks)
        assert layered <= MACHINE.us("summa", *sizes, ranks)
        assert layered <= MACHINE.us("scattered", *sizes, ranks) * (1 + 1e-9)
    assert MACHINE.us("layered", *sizes, 64) < 0.95 * MACHINE.us("summa", *sizes, 64)


def test_grids_are_as_square_as_can_be():
    grids = {1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 6: (2, 3), 8: (2, 4), 12: (3, 4)}
    assert {ranks: grid_of(ranks) for ranks in grids} == grids


def test_ranks_share_channels_until_a_part_is_large():
    mb = 2**20
    assert [channels(mb, ranks) for ranks in (2, 3, 4, 8, 16, 64)] == [16, 8, 8, 4, 2, 1]
    assert [channels(x * mb, 4) for x in (128, 129, 256, 257, 1024)] == [8, 16, 16, 32, 32]
    assert [channels(x * mb, 8) for x in (64, 65)] == [4, 8]


def test_a_send_takes_the_time_of_its_channels():
    assert MACHINE.passed_on(80e6, 2) == pytest.approx(20 + 80 / 0.3)
    assert MACHINE.passed_on(60e6, 8) == pytest.approx(20 + 60 / 0.08)
    assert MACHINE.passed_on(30e6, 16) == pytest.approx(20 + 30 / 0.04)  # half of the fewest


def test_a_line_goes_through_its_points():
    line = Line.fitted([(10, 7.0), (20, 12.0), (40, 22.0)])
    assert (line.fixed, line.rate) == pytest.approx((2, 2)) and line.us(100) == pytest.approx(52)
    assert Line.fitted([(1, 1.0), (2, 2.2), (4, 4.8)]).fixed == 0  # never below
    with pytest.raises(ValueError, match="needs two amounts"):
        Line.fitted([(1, 1.0), (1, 2.0)])


def test_one_rank_receives_nothing_and_more_ranks_take_less_if_nothing_travels():
    sizes = 8192, 8192, 8192
    alone = MACHINE.us("rows", *sizes, 1)
    assert all(MACHINE.us(cut, *sizes, 1) == alone for cut in CUTS)
    assert MACHINE.us("columns", *sizes, 2) == pytest.approx(alone / 2, rel=0.01)


def test_only_what_is_pulled_overlaps():
    sizes, moved = (8192, 8192, 8192), 8192 * 8192
    product = MACHINE.us("rows", *sizes, 2)
    transfer = MACHINE.transfers["gathered"].us(moved)
    assert MACHINE.us("gathered", *sizes, 2) == pytest.approx(product + transfer)
    assert MACHINE.us("ring", *sizes, 2) > product + 200
    copied = MACHINE.transfers["copied"].us(2 * moved)  # its own rows, for the others
    assert MACHINE.us("pulled", *sizes, 2) == pytest.approx(product + copied, rel=0.01)
    assert MACHINE.us("inner", *sizes, 2) > MACHINE.us("scattered", *sizes, 2)
    assert MACHINE.bound(*sizes, 2) == product
    # Where the transfer is longer, it is waited for.
    small = 512, 512, 512
    assert MACHINE.us("pulled", *small, 2) > MACHINE.transfers["pulled"].us(512 * 512)
    assert MACHINE.bound(*small, 2) == MACHINE.transfers["pulled"].us(512 * 512)


def test_a_grid_receives_less_than_a_ring_with_many_ranks():
    sizes = 16384, 16384, 16384
    assert received("summa", *sizes, 256) < received("ring", *sizes, 256) / 4
    assert MACHINE.us("summa", *sizes, 256) < MACHINE.us("pulled", *sizes, 256)
    assert MACHINE.us("summa", *sizes, 4) > MACHINE.us("pulled", *sizes, 4)


SEVERAL = [(cut, ranks) for cut in AXES for ranks in (1, 2, 3, 4, 6, 8, 9, 12)]


def place(part):
    """Return the index of a part in its matrix."""
    return slice(*part.rows), slice(*part.columns)


def test_parts_are_those_of_the_cuts():
    assert {*CUTS} == {*AXES}
    m, n, k, ranks = 12, 24, 36, 6
    given = {"A": (m, k), "B": (k, n), "C": (m, n)}
    for cut, axes in AXES.items():
        known = cuts.CUTS[cut]
        assert axes == (known.a, known.b, known.c)
        for rank in range(ranks):
            whole = [torch.arange(rows * wide).view(rows, wide) for rows, wide in given.values()]
            own = parts(cut, m, n, k, ranks, rank)
            for part, x, ours in zip(
                own, whole, known.parts(*whole, rank=rank, count=ranks), strict=True
            ):
                assert torch.equal(x[place(part)], ours)
            sizes = [x[place(part)].numel() for part, x in zip(own[:2], whole[:2], strict=True)]
            assert 2 * sum(sizes) == held(cut, m, n, k, ranks)


@pytest.mark.parametrize(("cut", "ranks"), SEVERAL)
def test_steps_make_c_of_what_is_held_and_arrives(cut, ranks):
    """Each rank begins with its own parts. What has not come is NaN, and spoils what it is in."""
    m, n, k = 12 * ranks, 24 * ranks, 36 * ranks
    numbers = np.random.default_rng(5)
    a, b = numbers.integers(-2, 3, (m, k)) * 1.0, numbers.integers(-2, 3, (k, n)) * 1.0
    memory, moved = [], [0] * ranks
    own = [parts(cut, m, n, k, ranks, rank) for rank in range(ranks)]
    for rank in range(ranks):
        mine = {"A": a * np.nan, "B": b * np.nan, "C": np.zeros((m, n))}
        for part, x in zip(own[rank][:2], (a, b), strict=True):
            mine[part.matrix][place(part)] = x[place(part)]
        memory.append(mine)
    terms = [np.zeros((m, n), int) for _ in range(ranks)]  # of how many ranks a sum of C is
    every = [steps(cut, m, n, k, ranks, rank) for rank in range(ranks)]
    for now in zip(*every, strict=True):
        before = [{name: x.copy() for name, x in mine.items()} for mine in memory]
        had = [x.copy() for x in terms]
        for rank, step in enumerate(now):
            for one in step.arrives:
                at, name = place(one.part), one.part.matrix
                assert one.source != rank
                came, mine = before[one.source][name][at], memory[rank][name]
                moved[rank] += came.size * 2
                if name != "C":
                    assert one.sums == 0 and np.isnan(mine[at]).all()  # it comes once
                    mine[at] = came
                    continue
                assert (had[one.source][at] == one.sums).all()
                if one.sums < ranks:
                    mine[at] += came
                    terms[rank][at] += one.sums
                else:
                    assert (terms[rank][at] < ranks).all()
                    mine[at], terms[rank][at] = came, ranks
            if step.product:
                rows, columns, inner = (
                    slice(*x) for x in (step.product.rows, step.product.columns, step.product.inner)
                )
                made = before[rank]["A"][rows, inner] @ before[rank]["B"][inner, columns]
                memory[rank]["C"][rows, columns] += made
                terms[rank][rows, columns] += 1
    wanted = a @ b
    for rank in range(ranks):
        at = place(own[rank][2])
        np.testing.assert_array_equal(memory[rank]["C"][at], wanted[at])
        assert moved[rank] == pytest.approx(received(cut, m, n, k, ranks))


def calls_of(monkeypatch, cut, ranks, rank, m, n, k):
    """Run a cut as one rank of several, alone. Return its transfers and products in their order.

    Elements of A are the number of the rank whose they are. All ranks do the same, so what the
    rank before passes on is what this one does, one number lower.
    """
    calls = []
    part_of_a, part_of_b, _ = parts(cut, m, n, k, ranks, rank)
    size = [part.rows[1] - part.rows[0] for part in (part_of_a, part_of_b)]
    wide = [part.columns[1] - part.columns[0] for part in (part_of_a, part_of_b)]
    a, b = torch.full((size[0], wide[0]), float(rank)), torch.ones(size[1], wide[1])

    def passed_on(here, there):
        there.fill_((here[0, 0].item() - 1) % ranks)
        calls.append((int(there[0, 0]), (rank - 1) % ranks))
        return []

    def multiply(here, b, out):
        row = out.storage_offset() // out.stride(0)
        calls.append(("product", int(here[0, 0]), (row, row + len(out))))

    def pull(other, shape, dtype):
        calls.append((other, other))
        return torch.full(shape, float(other))

    def broadcast(tensor, source, group):
        if source != rank:
            calls.append((source, tuple(tensor.shape)))

    def matmul(a, b):
        calls.append("product")
        return a @ b

    high, wide = grid_of(ranks)
    grid = (high, wide), divmod(rank, wide), None, None
    alone = SimpleNamespace(
        get_world_size=lambda: ranks, get_rank=lambda: rank, broadcast=broadcast, Work=None
    )
    fakes = {"dist": alone, "passed_on": passed_on, "multiply": multiply, "matmul": matmul}
    fakes |= {"symmetric": lambda x: (x, MagicMock(get_buffer=pull)), "grid": lambda: grid}
    fakes |= {"copy_stream": MagicMock()}
    for name, fake in fakes.items():
        monkeypatch.setattr(cuts, name, fake)
    for name in ("current_stream", "stream"):
        monkeypatch.setattr(torch.cuda, name, MagicMock())
    cuts.CUTS[cut].run(a, b)
    return calls


@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 9])
@pytest.mark.parametrize("cut", ["ring", "pulled"])
def test_rows_come_and_are_multiplied_in_the_order_of_the_cut(monkeypatch, cut, ranks):
    m, n, k = 2 * ranks, 3 * ranks, 4
    for rank in range(ranks):
        calls = calls_of(monkeypatch, cut, ranks, rank, m, n, k)
        made = steps(cut, m, n, k, ranks, rank)
        come = [(one.part.rows[0] // 2, one.source) for step in made for one in step.arrives]
        assert [call for call in calls if call[0] != "product"] == come
        rows = [step.product.rows for step in made]
        assert [call for call in calls if call[0] == "product"] == [
            ("product", first // 2, (first, last)) for first, last in rows
        ]


@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 9, 12])
def test_panels_are_broadcast_as_summa_does_it(monkeypatch, ranks):
    m, n, k = 2 * ranks, 3 * ranks, 4 * ranks
    for rank in range(ranks):
        wanted = []
        for step in steps("summa", m, n, k, ranks, rank):
            for one in step.arrives:
                shape = tuple(last - first for first, last in (one.part.rows, one.part.columns))
                wanted.append((one.source, shape))
            wanted += ["product"] if step.product else []
        assert calls_of(monkeypatch, "summa", ranks, rank, m, n, k) == wanted


def test_steps_by_hand():
    ring = steps("ring", 40, 8, 10, 4, 0)
    assert [step.product.rows for step in ring] == [(0, 10), (30, 40), (20, 30), (10, 20)]
    assert [step.arrives[0].part for step in ring[:2]] == [
        Part("A", (30, 40), (0, 10)),
        Part("A", (20, 30), (0, 10)),
    ]
    assert ring[3].arrives == ()
    sums = [step.arrives[0] for step in steps("inner", 30, 5, 9, 3, 1)[1:]]
    assert [(one.part.rows, one.sums, one.source) for one in sums] == [
        ((20, 30), 1, 0),
        ((10, 20), 2, 0),
        ((0, 10), 3, 0),
        ((20, 30), 3, 0),
    ]


@pytest.mark.parametrize(
    ("cut", "sizes", "rank", "said"),
    [
        ("layered", (8, 8, 8), 0, "no cut 'layered'; there are rows, columns"),
        ("ring", (8, 8, 8), 4, "no rank 4: the ranks are 0 to 3"),
        ("rows", (10, 8, 8), 0, "M = 10 does not divide into 4 equal parts"),
        ("ring", (8, 9, 7), 0, "N = 9 does not divide into 4 equal parts"),
        ("inner", (8, 9, 7), 0, "K = 7 does not divide into 4 equal parts"),
        ("summa", (8, 8, 7), 0, "K = 7 does not divide into 2 equal parts"),
    ],
)
def test_steps_that_do_not_fit_are_refused(cut, sizes, rank, said):
    with pytest.raises(ValueError, match=said):
        steps(cut, *sizes, 4, rank)
