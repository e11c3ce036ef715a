"""Loops 3 and Loops 4: the same visits as Loops 1, in the order that each promises."""

import numpy as np
import pytest

from tiled_matmul.check import MatmulError, assert_matmul, run_checked
from tiled_matmul.ladder import loops_tiled
from tiled_matmul.ladder.loop_orders import ijk
from tiled_matmul.ladder.loops_python import loops_1
from tiled_matmul.ladder.loops_tiled import loops_3, loops_4, matmul
from tiled_matmul.models.visits import visits
from tiled_matmul.problem import Problem

SHAPES = [(1, 1, 1), (9, 9, 9), (10, 11, 5), (4, 8, 12), (3, 17, 2)]


@pytest.mark.parametrize("tile", [1, 3, 4, 16])
@pytest.mark.parametrize("shape", SHAPES)
def test_loops_3_is_loops_1(shape, tile):
    assert visits(loops_3, *shape, *shape, tile) == visits(loops_1, *shape)


@pytest.mark.parametrize("tile", [1, 3, 4, 16])
@pytest.mark.parametrize("shape", SHAPES)
def test_loops_4_visits_the_same_once_each_with_k_ascending(shape, tile):
    seen = visits(loops_4, *shape, *shape, tile)
    assert sorted(seen) == visits(loops_1, *shape)
    last = {}
    for i, j, k in seen:
        assert k == last.get((i, j), -1) + 1
        last[i, j] = k
    corners = [(i // tile, j // tile, k // tile) for i, j, k in seen]
    assert corners == sorted(corners)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_keep_every_bit_of_the_untiled_sum(dtype):
    m, n, k = 61, 53, 97
    a, b = Problem(m, n, k, dtype).inputs(5)
    untiled, c_3 = np.empty((m, n), dtype), np.empty((m, n), dtype)
    ijk(a, b, untiled)
    loops_3(a, b, c_3, m, n, k, 16)
    assert_matmul(untiled, a, b)
    assert np.array_equal(untiled, c_3)
    for tile in (1, 16, 64, 100):
        assert np.array_equal(untiled, matmul(a, b, tile=tile))


def test_signed_and_unsigned_sizes_give_the_same_bits():
    m, n, k = 33, 17, 41
    a, b = Problem(m, n, k).inputs(2)
    signed = np.empty((m, n), np.float32)
    loops_4(a, b, signed, m, n, k, 8)
    assert np.array_equal(signed, matmul(a, b, tile=8))


def test_a_tile_larger_than_any_integer_register_is_one_tile():
    run_checked(matmul, *Problem(3, 4, 5).inputs(), tile=10**30)


def test_the_check_sees_a_nest_that_drops_the_ragged_tile():
    def whole_tiles_only(a, b, out, tile=4):
        m, n, k = (size - size % tile for size in (*out.shape, a.shape[1]))
        out[:] = 0
        out[:m, :n] = loops_tiled.matmul(a[:m, :k].copy(), b[:k, :n].copy(), tile=tile)
        return out

    run_checked(whole_tiles_only, *Problem(8, 8, 8).inputs(), tile=4)
    with pytest.raises(MatmulError):
        run_checked(whole_tiles_only, *Problem(10, 8, 8).inputs(), tile=4)
