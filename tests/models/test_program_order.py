"""order.py: the order is the kernel's, and the traffic is what a plain reference counts."""

from collections import OrderedDict

import numpy as np
import pytest
import torch

from tiled_matmul.kit.variants import edited
from tiled_matmul.ladder.triton_swizzled import triton_swizzled_kernel
from tiled_matmul.models.program_order import (
    Setting,
    hilbert_order,
    l2_after,
    program_order,
    traffic,
    waves,
)

MIB = 2**20


def by_the_interpreter(tiles_m, tiles_n, group_m, kernel=triton_swizzled_kernel):
    """The tile of C that each program stores, found by launching ever more programs."""
    m, n, k, edge = tiles_m * 16, tiles_n * 16, 16, 16
    a, b = torch.ones(m, k), torch.ones(k, n)
    seen, found = np.zeros((tiles_m, tiles_n), bool), []
    for programs in range(1, tiles_m * tiles_n + 1):
        c = torch.full((m, n), float("nan"))
        sizes = (m, n, k, *a.stride(), *b.stride(), *c.stride(), edge, edge, edge)
        kernel[(programs,)](a, b, c, *sizes, "ieee", group_m, True, False)
        stored = ~np.isnan(c.numpy()[::edge, ::edge])
        new = np.argwhere(stored & ~seen)
        found.append(tuple(new[0].tolist()) if len(new) == 1 else None)
        seen = stored
    return found


@pytest.mark.parametrize("group_m", [1, 2, 3, 4, 9])
@pytest.mark.sample(8)
def test_the_order_is_what_the_kernel_runs(group_m):
    wanted = [tuple(tile) for tile in program_order(5, 3, group_m).tolist()]
    assert by_the_interpreter(5, 3, group_m) == wanted


def test_a_kernel_that_forgets_the_short_group_is_told_apart():
    hasty = edited(triton_swizzled_kernel, "min(tiles_m - first_m, GROUP_M)", "GROUP_M")
    assert None in by_the_interpreter(5, 3, 2, hasty)


def test_orders_by_hand():
    assert program_order(2, 3).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert program_order(3, 2, 2).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]]
    columns = program_order(3, 2, 3).tolist()
    assert (
        columns == program_order(3, 2, 100).tolist() == [[i, j] for j in (0, 1) for i in range(3)]
    )


@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (1, 9), (13, 11), (64, 32)])
@pytest.mark.parametrize("group_m", [1, 2, 5, 8, 64])
def test_every_tile_has_one_program(shape, group_m):
    found = program_order(*shape, group_m)
    assert found.shape == (shape[0] * shape[1], 2)
    assert {tuple(tile) for tile in found.tolist()} == set(np.ndindex(shape))


def test_waves_of_the_tutorials_example():
    row, grouped = (waves(program_order(9, 9, group), 9) for group in (1, 3))
    assert {wave.tiles for wave in row} == {10} and {wave.tiles for wave in grouped} == {6}
    assert (row[1].first, row[1].rows, row[1].columns) == (9, (1,), tuple(range(9)))
    assert grouped[3].rows == (3, 4, 5) and grouped[3].columns == (0, 1, 2)
    last = waves(program_order(9, 9), 80)[-1]
    assert (last.first, last.programs, last.rows, last.columns) == (80, 1, (8,), (8,))


def test_bytes_of_a_wave():
    setting = Setting(8192, 8192, 8192)
    first = setting.waves[0]
    assert (len(first.rows), len(first.columns), len(setting.waves)) == (5, 32, 16)
    assert setting.step_bytes(first) == (5 * 128 + 32 * 256) * 64 * 2
    assert setting.strip_bytes(first) == setting.step_bytes(first) * 128
    ragged = Setting(130, 300, 10, (128, 256, 64), alive=100)
    assert ragged.tiles == (2, 2, 1)
    assert ragged.step_bytes(ragged.waves[0]) == (130 + 300) * 10 * 2


def test_loads_of_a_wave():
    ragged = Setting(130, 300, 70, (128, 256, 64), alive=3)
    loads = list(ragged.loads(ragged.waves[0]))
    assert loads[:4] == [
        (("A", 0, 0), 128 * 64 * 2),
        (("A", 1, 0), 2 * 64 * 2),
        (("B", 0, 0), 256 * 64 * 2),
        (("B", 0, 1), 44 * 64 * 2),
    ]
    assert loads[4:6] == [(("A", 0, 1), 128 * 6 * 2), (("A", 1, 1), 2 * 6 * 2)]
    assert sum(nbytes for _, nbytes in loads) == ragged.strip_bytes(ragged.waves[0])


def test_what_the_cache_holds_after_a_wave():
    setting = Setting(32, 32, 32, (16, 16, 16), alive=2, itemsize=1)  # tiles of 256 bytes
    first, second = (l2_after(setting, 10**6, wave) for wave in (0, 1))
    assert (first.loaded, first.found) == (6 * 256, 0)  # a strip of A, two of B
    assert first.a.tolist() == [[True, True], [False, False]] and first.b.all()
    assert first.c.tolist() == [[True, True], [False, False]]
    assert (second.loaded, second.found) == (6 * 256, 4 * 256) and second.c.all()
    # Room for four tiles: the wave's two of C, and of the last iteration B's.
    small = l2_after(setting, 4 * 256, 0)
    assert not small.a.any() and small.b.tolist() == [[False, False], [True, True]]
    assert l2_after(setting, 4 * 256, 1).found == 0
    with pytest.raises(ValueError, match="waves 0 to 1, got 2"):
        l2_after(setting, 1000, 2)


@pytest.mark.parametrize("l2_bytes", [700, 5_000, 20_000])
@pytest.mark.parametrize("group_m", [1, 2])
def test_waves_miss_together_what_a_launch_misses(group_m, l2_bytes):
    setting = Setting(100, 130, 50, (16, 32, 8), group_m, alive=5)
    each = [l2_after(setting, l2_bytes, wave) for wave in range(len(setting.waves))]
    assert sum(x.loaded - x.found for x in each) == traffic(setting, l2_bytes).missed


def reference(setting, l2_bytes):
    """The model the slow way: (bytes of A, bytes of B) that are fetched."""
    kept, used, fetched = OrderedDict(), 0, {"a": 0, "b": 0, "c": 0}
    (m, n, k), (bm, bn, bk) = (setting.m, setting.n, setting.k), setting.block
    high = lambda i: min(bm, m - i * bm)  # noqa: E731
    wide = lambda j: min(bn, n - j * bn)  # noqa: E731
    deep = lambda p: min(bk, k - p * bk)  # noqa: E731

    def touch(key, elements):
        nonlocal used
        size = elements * setting.itemsize
        if key in kept:
            kept.move_to_end(key)
            return
        fetched[key[0]] += size
        if size > l2_bytes:
            return
        kept[key] = size
        used += size
        while used > l2_bytes:
            used -= kept.popitem(last=False)[1]

    programs = setting.order.tolist()
    for first in range(0, len(programs), setting.alive):
        wave = programs[first : first + setting.alive]
        for p in range(-(-k // bk)):
            for i in dict.fromkeys(i for i, _ in wave):
                touch(("a", i, p), high(i) * deep(p))
            for j in dict.fromkeys(j for _, j in wave):
                touch(("b", p, j), wide(j) * deep(p))
        for i, j in wave:
            touch(("c", i, j), high(i) * wide(j))
    return fetched["a"], fetched["b"]


@pytest.mark.parametrize("l2_bytes", [1, 700, 5_000, 20_000, 10**6])
@pytest.mark.parametrize("group_m", [1, 2, 4])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (100, 130, 50), (16, 200, 9), (1, 1, 1)])
def test_traffic_equals_the_plain_reference(sizes, group_m, l2_bytes):
    setting = Setting(*sizes, (16, 32, 8), group_m, alive=5, itemsize=2)
    counted = traffic(setting, l2_bytes)
    assert (counted.a, counted.b) == reference(setting, l2_bytes)
    assert counted.waves == len(setting.waves)


def test_a_large_cache_reads_all_once_and_none_reads_all_that_is_asked():
    setting = Setting(100, 130, 50, (16, 32, 8), 2, alive=5)
    large, none = traffic(setting, 10**9), traffic(setting, 1)
    assert large.missed == large.compulsory == (100 + 130) * 50 * 2 and large.times == 1
    # No cache: a step's tiles are still asked for together.
    wanted = sum(setting.strip_bytes(wave) for wave in setting.waves)
    assert none.missed == wanted < none.asked == (5 * 100 + 7 * 130) * 50 * 2
    assert none.hit_rate == 1 - wanted / none.asked


def test_strips_that_do_not_fit_are_paid_for_by_every_wave():
    setting = Setting(16384, 16384, 16384)
    counted = traffic(setting, 60 * MIB)
    wanted = sum(setting.strip_bytes(wave) for wave in setting.waves)
    assert min(setting.strip_bytes(wave) for wave in setting.waves[:-1]) > 60 * MIB
    assert 0.97 < counted.missed / wanted <= 1


def test_the_model_meets_what_a_gpu_counted():
    """A float32 kernel with one block on each multiprocessor, row by row, at 4096³."""
    from tiled_matmul.measure import counters

    counted = counters.reference()["cuda_best"]
    assert counted.longest.grid == (16, 32, 1)  # tiles of 128×256
    setting = Setting(4096, 4096, 4096, (128, 256, 8), 1, 132, itemsize=4)
    assert traffic(setting, 60 * MIB).missed == pytest.approx(counted["dram_read_bytes"], rel=0.05)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="group_m must be 1 or more, got 0"):
        program_order(3, 3, 0)
    with pytest.raises(ValueError, match="alive must be 1 or more, got -1"):
        waves(program_order(3, 3), -1)
    with pytest.raises(ValueError, match="block_n must be 1 or more, got 0"):
        Setting(8, 8, 8, (16, 0, 16))
    with pytest.raises(TypeError, match="m must be an integer, got 8.0"):
        Setting(8.0, 8, 8)
    with pytest.raises(ValueError, match="l2_bytes must be 1 or more"):
        traffic(Setting(8, 8, 8), 0)
    with pytest.raises(ValueError, match="67,108,864 programs are more than"):
        traffic(Setting(2**17, 2**17, 16, (16, 16, 16)), MIB)
    with pytest.raises(ValueError, match="tiles to ask for are more than"):
        traffic(Setting(2**13, 2**13, 2**16, (16, 32, 16)), MIB)


@pytest.mark.parametrize("edge", [1, 2, 4, 8, 16])
def test_hilberts_curve_visits_each_tile_once_and_steps_to_a_neighbour(edge):
    order = hilbert_order(edge, edge)
    assert len(np.unique(order, axis=0)) == edge * edge
    assert (np.abs(np.diff(order, axis=0)).sum(axis=1) == 1).all()
    assert order[0].tolist() == [0, 0]


@pytest.mark.parametrize("tiles", [(1, 7), (7, 1), (5, 3), (3, 9)])
def test_hilberts_curve_leaves_out_what_is_not_in_c(tiles):
    order = hilbert_order(*tiles)
    assert sorted(map(tuple, order)) == [(m, n) for m in range(tiles[0]) for n in range(tiles[1])]
    assert (Setting(*(64 * t for t in tiles), 64, (64, 64, 64), 0).order == order).all()
    with pytest.raises(ValueError, match="-1"):
        Setting(64, 64, 64, group_m=-1)
