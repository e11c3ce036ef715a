"""ladder/constants.py: one kernel in several sizes, each made once, with the options it had."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.microscope.cuda import trace

STEP, COUNT = 10, 3


@cuda.jit
def steps(x):
    """Adds STEP."""
    x[cuda.threadIdx.x] += STEP


@cuda.jit(max_registers=40, fastmath=True)
@unrolled
def copies(x):
    for k in unroll(COUNT):
        x[k] += STEP


def result(kernel, threads=4):
    x = np.zeros(4, np.int32)
    trace(kernel, 1, threads, x)
    return x.tolist()


def test_a_constant_has_another_value_and_the_kernel_keeps_its_own():
    assert result(with_constants(steps, STEP=7)) == [7] * 4
    assert result(steps) == [10] * 4 and STEP == 10


def test_what_is_not_named_stays():
    assert result(with_constants(copies, COUNT=2), 1) == [10, 10, 0, 0]
    assert result(with_constants(copies, COUNT=4, STEP=1), 1) == [1] * 4


def test_the_same_constants_give_the_same_object():
    made = with_constants(steps, STEP=7)
    assert with_constants(steps, STEP=7) is made
    assert with_constants(steps, STEP=8) is not made
    assert with_constants(steps, STEP=7, max_registers=40) is not made


def test_the_copy_can_be_told_by_its_name_and_docstring():
    made = with_constants(steps, STEP=7).py_func
    assert (made.__name__, made.__doc__, made.__module__) == ("steps", "Adds STEP.", __name__)


def test_loops_are_unrolled_by_the_new_constant():
    made = with_constants(copies, COUNT=4)
    assert made.py_func.as_written.__code__ is copies.py_func.as_written.__code__
    assert made.py_func.is_unrolled and made.py_func.__globals__["COUNT"] == 4
    with pytest.raises(ValueError, match="5000 copies are more than 1024"):
        with_constants(copies, COUNT=5000)


def test_options_are_kept():
    assert with_constants(copies, STEP=1).targetoptions["max_registers"] == 40
    assert with_constants(copies, STEP=1).targetoptions["fastmath"] is True
    assert "max_registers" not in with_constants(steps, STEP=1).targetoptions


def test_registers_can_be_given():
    made = with_constants(copies, max_registers=64)
    assert made.targetoptions["max_registers"] == 64 and made.targetoptions["fastmath"] is True
    assert copies.targetoptions["max_registers"] == 40
    assert with_constants(steps, STEP=2, max_registers=32).targetoptions["max_registers"] == 32
    assert result(made, 1) == [10, 10, 10, 0]


@pytest.mark.parametrize("name", ["STEPS", "COUNT", "x", "trace"])
def test_a_name_that_the_kernel_does_not_use_is_quoted(name):
    # COUNT and trace are there, and nothing in `steps` asks for them.
    with pytest.raises(ValueError, match=f"steps has no constant '{name}'"):
        with_constants(steps, **{name: 1})
