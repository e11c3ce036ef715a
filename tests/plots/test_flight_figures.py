"""Copies in flight: what the figures read out of traces, and what they conclude."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.ladder import (
    cuda_async,
    cuda_best,
    cuda_double_buffer,
    cuda_tile_view,
    cuda_vectorised,
    cuda_warp_tiles,
)
from tiled_matmul.microscope.cuda import trace, watch
from tiled_matmul.plots import flight
from tiled_matmul.plots.flight import Flight
from tiled_matmul.problem import Problem


def traced(matmul, m, n, k, **options):
    a, b = Problem(m, n, k).inputs(kind="integers", device="cpu")
    with watch() as traces:
        matmul(a, b, **options)
    return traces[0]


def test_one_buffer_copies_or_multiplies():
    t = traced(cuda_tile_view.matmul, 6, 6, 12, tile=4)
    found = flight.flights(t, 6, 12, 4, block=(1, 0))
    assert found == [Flight(tile, 2 * tile, 2 * tile + 1, 2 * tile + 1) for tile in range(3)]
    assert flight.overlapping(found) == 0


def test_two_buffers_do_both():
    edge = cuda_double_buffer.TILE_K
    t = traced(cuda_double_buffer.matmul, 4, 4, 3 * edge)
    found = flight.flights(t, 4, 3 * edge, edge)
    assert [(each.tile, each.ahead) for each in found] == [(0, 1), (1, 1), (2, 1)]
    assert flight.overlapping(found) == 2


def test_three_stages_are_two_tiles_ahead():
    edge = cuda_async.TILE_K
    t = traced(cuda_async.matmul, 4, 4, 3 * edge)
    found = flight.flights(t, 4, 3 * edge, edge)
    assert [(each.begun, each.first_use) for each in found] == [(0, 1), (0, 2), (1, 3)]


def test_two_tiles_through_registers_are_not_told_apart():
    t = traced(cuda_vectorised.matmul, 4, 4, 16)
    with pytest.raises(ValueError, match="copies 2 tiles of 4 in phase 0"):
        flight.flights(t, 4, 16, 4)


@cuda.jit
def idle(a, b):
    if a.shape[0] > 100:
        b[0] = a[0]


def test_a_kernel_that_loads_nothing_is_refused():
    with pytest.raises(ValueError, match="no access was followed"):
        flight.flights(trace(idle, 1, 1, np.zeros(4), np.zeros(4)), 2, 2, 1)


IN_TURNS = [Flight(0, 0, 1, 1), Flight(1, 2, 3, 3)]
AHEAD = [Flight(0, 0, 2, 3), Flight(1, 1, 3, 3)]


def test_schedules_say_who_does_both():
    alt = flight.schedules({"one": IN_TURNS, "two": AHEAD}).alt
    assert alt.startswith("Copies and multiplications share a phase in two.")
    assert "tile 1 begun in phase 2, multiplied in phase 3" in alt
    assert "tile 0 begun in phase 0, multiplied in phases 2 to 3" in alt
    assert flight.schedules({"one": IN_TURNS}).alt.startswith("No phase copies and multiplies.")
    assert flight.overlapping(AHEAD) == 1


@pytest.mark.parametrize("kernels", [{}, {"one": []}])
def test_no_tile_is_no_schedule(kernels):
    with pytest.raises(ValueError, match="no tile to draw"):
        flight.schedules(kernels)


def test_the_bill_names_both_times():
    alt = flight.bill({"one": (5.0, 4.0), "two": (4.1, 4.2)}, "So").alt
    assert alt == "So. one: 5 ms, 4 without loads; two: 4.1 ms, 4.2 without loads."
    with pytest.raises(ValueError, match="no time"):
        flight.bill({}, "So")


def test_a_warps_tile_is_what_it_stores_and_reads():
    rung = cuda_warp_tiles
    t = traced(rung.matmul, rung.TILE_M, rung.TILE_N, rung.TILE_K)
    first, second = (flight.warp_tile(t, warp) for warp in (0, 1))
    assert first.owned == {(i, j) for i in range(rung.WARP_M) for j in range(rung.WARP_N)}
    assert first.rows == second.rows == set(range(rung.WARP_M))
    assert second.columns == set(range(rung.WARP_N, 2 * rung.WARP_N))
    alt = flight.warp_maps({"first": first, "second": second}).alt
    assert alt.startswith("For one k a warp reads 96 or 96 elements")
    assert f"32 of A + 64 of B, {first.wavefronts} wavefronts" in alt


def test_a_kernel_without_tiles_has_no_warp_tile():
    t = trace(idle, 1, 1, np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="no array called 'c'"):
        flight.warp_tile(t)


def test_fragments_cross_the_border_of_a_tile_only_with_two_sets():
    one_set = flight.fragments(traced(cuda_async.matmul, 4, 4, 2 * cuda_async.TILE_K))
    small = cuda_best.SETTINGS[1]
    t = traced(cuda_best.matmul, 4, 4, 2 * small.tile_k, setting=small)
    two_sets = flight.fragments(t)
    for found, deep in ((one_set, cuda_async.TILE_K), (two_sets, small.tile_k)):
        assert [(each.tile, each.k) for each in found[: deep + 1]] == [
            *((0, k) for k in range(deep)),
            (1, 0),
        ]
    figure = flight.fragment_schedules({"one set": (one_set, 0), "two sets": (two_sets, 1)})
    assert figure.alt.startswith("Loads without a multiplication beside them: 3, then 0.")
    with pytest.raises(ValueError, match="one: one tile has no border"):
        flight.fragment_schedules({"one": (one_set[:3], 0)})
    with pytest.raises(ValueError, match="thread 9999 of cuda_best_kernel loads nothing"):
        flight.fragments(t, 9999)
