"""The ring of buffers: phases flip, no buffer is lost or reused too early, stages hide latency."""

import pytest

from tiled_matmul.models.ring import Barrier, run, seam


def copies(ring, tiles, wait=True):
    for i in range(tiles):
        buffer, phase = i % ring.stages, i // ring.stages % 2
        while wait and not ring.empty[buffer].passed(1 - phase):
            yield
        ring.copy(i, buffer)
        yield


def products(ring, tiles, phases=2):
    for i in range(tiles):
        buffer, phase = i % ring.stages, i // ring.stages % phases
        while not ring.full[buffer].passed(phase):
            yield
        yield from ring.multiply(buffer)
        ring.empty[buffer].arrive()


def test_a_barrier_flips_after_all_arrivals():
    barrier = Barrier(expected=2)
    assert barrier.passed(1)
    barrier.arrive()
    assert not barrier.passed(0)
    barrier.arrive()
    assert (barrier.phase, barrier.arrived, barrier.passed(0)) == (1, 0, True)


@pytest.mark.parametrize(("stages", "time"), [(1, 48), (2, 26), (3, 20), (4, 20)])
def test_stages_hide_the_copies(stages, time):
    ring = run(copies, products, stages=stages)
    assert ring.finished
    assert ring.multiplied == list(range(8))
    assert ring.work[-1].end == time


@pytest.mark.parametrize(("copy_time", "multiplied"), [(4, [0, 1, 2]), (6, [0, 1, 2, 0, 1, 2])])
def test_one_phase_waits_for_ever_or_reads_old_tiles(copy_time, multiplied):
    ring = run(copies, lambda ring, tiles: products(ring, tiles, 1), copy_time=copy_time)
    assert ring.finished == (copy_time == 6)
    assert ring.multiplied[:6] == multiplied


def test_without_the_empty_barrier_tiles_are_lost():
    ring = run(lambda ring, tiles: copies(ring, tiles, wait=False), products)
    assert ring.multiplied != list(range(8))


def test_a_persistent_program_copies_through_the_seam():
    one_each, stays = (seam(persistent).work[-1].end for persistent in (False, True))
    assert one_each - stays == 4  # the first copy of the second tile
