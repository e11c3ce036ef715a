"""fragments.py: 32 lanes hold each element of a fragment once, where PTX's tables say."""

import itertools

import numpy as np
import pytest

from tiled_matmul.models.fragments import LANES, SHAPES, held, sums_of, swizzled


@pytest.mark.parametrize("operand", SHAPES)
def test_each_element_is_held_once(operand):
    rows, columns = SHAPES[operand]
    everything = [cell for lane in range(LANES) for cell in held(operand, lane)]
    assert sorted(everything) == list(itertools.product(range(rows), range(columns)))


def test_places_are_those_of_the_ptx_isa():
    # Lane 9 is the second of group 2: a0, a1 at row 2, columns 2 and 3; a2, a3 eight rows below;
    # a4, a5 eight columns on; then both.
    assert held("A", 9) == [
        (2, 2), (2, 3), (10, 2), (10, 3), (2, 10), (2, 11), (10, 10), (10, 11),
    ]  # fmt: skip
    assert held("B", 9) == [(2, 2), (3, 2), (10, 2), (11, 2)]
    assert held("C", 9) == [(2, 2), (2, 3), (10, 2), (10, 3)]


def test_registers_hold_neighbours_along_k():
    # Two float16 share a register, so pairs have to lie side by side along K.
    for lane in range(LANES):
        a, b = np.array(held("A", lane)), np.array(held("B", lane))
        assert ((a[1::2] - a[::2]) == (0, 1)).all() and ((b[1::2] - b[::2]) == (1, 0)).all()


@pytest.mark.parametrize(("operand", "lane"), [("D", 0), ("A", 32), ("A", -1)])
def test_other_operands_and_lanes_are_refused(operand, lane):
    with pytest.raises(ValueError, match="A, B or C and a lane 0 to 31"):
        held(operand, lane)


@pytest.mark.parametrize("columns", [8, 64, 256])
def test_each_sum_of_a_warp_group_is_held_once(columns):
    everything = [cell for thread in range(128) for cell in sums_of(thread, columns)]
    assert sorted(everything) == list(itertools.product(range(64), range(columns)))
    for thread, size in ((128, 8), (-1, 8), (0, 12), (0, 0)):
        with pytest.raises(ValueError, match="0 to 127"):
            sums_of(thread, size)


def test_the_swizzle_permutes_rows_and_columns():
    for number in range(8):
        assert sorted(swizzled(number, chunk) for chunk in range(8)) == list(range(8))
        assert sorted(swizzled(row, number) for row in range(8)) == list(range(8))
    assert swizzled(11, 2) == 1
