"""kit/unsigned.py: kernels whose integers have no sign, in the interpreter."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.kit.variants import edited
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.kernel import jit
from tiled_matmul.microscope.written import function_of

ROWS, TILE = 8, 64

# --- the interpreter ------------------------------------------------------------------------------


@jit
@unsigned
def difference(x, out):
    i = cuda.threadIdx.x
    out[i] = 1 if i - TILE > x.size else 0


@jit
def signed_difference(x, out):
    i = cuda.threadIdx.x
    out[i] = 1 if i - TILE > x.size else 0


def test_a_difference_below_zero_wraps_around_in_the_interpreter_too():
    x, out = np.zeros(4), np.zeros(4, np.int32)
    trace(difference, 1, 4, x, out)
    assert out.tolist() == [1] * 4
    trace(with_constants(difference, TILE=2), 1, 4, x, out)
    assert out.tolist() == [1, 1, 0, 0]
    trace(signed_difference, 1, 4, x, out)
    assert out.tolist() == [0] * 4


@jit
@unrolled
@unsigned
def sums(x, out):
    rows, columns = x.shape
    i = cuda.threadIdx.x
    total = 0
    for k in unroll(3):
        total += x[i, columns - 1 - k]
    if i < rows:
        out[i] = total


def test_findings_and_sites_quote_what_was_written():
    x, out = np.arange(20).reshape(4, 5), np.zeros(4, np.int64)
    t = trace(sums, 1, 4, x, out)
    assert out.tolist() == [9, 24, 39, 54] and not t.findings
    assert "x[i, columns - 1 - k]" in {site.text for site in t.sites}
    wrong = edited(sums, "columns - 1 - k", "columns - 6 + k")
    (finding,) = trace(wrong, 1, 1, x, out).findings
    assert finding.texts == ("total += x[i, columns - 6 + k]",)
    assert finding.index == (0, 2**64 - 1)


def test_variants_and_copies_with_other_constants_stay_unsigned_and_unrolled():
    for kernel in (edited(sums, "total = 0", "total = 1"), with_constants(difference, TILE=2)):
        assert "_uint64" in kernel.py_func.__code__.co_freevars
    assert hasattr(edited(sums, "total = 0", "total = 1").py_func, "is_unrolled")
    assert not hasattr(with_constants(difference, TILE=2).py_func, "is_unrolled")
    assert function_of(sums).__code__.co_firstlineno == sums.py_func.__code__.co_firstlineno


# --- what it refuses ------------------------------------------------------------------------------


def negative(out):
    out[0] = len(out) * -1


def by_grid(out):
    out[cuda.grid(1)] = 0


def too_early(out):
    out[0] = out[0] + NOT_YET  # noqa: F821


@unrolled
def copies(out):
    for k in unroll(2):
        out[k] = k


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (negative, r"never negative, line \d+ of negative: out\[0\] = len\(out\) \* -1"),
        (by_grid, r"cuda.grid has a sign.*, line \d+ of by_grid"),
        (too_early, r"NOT_YET is not defined yet, line \d+ of too_early"),
        (copies, "copies: @unsigned stands right above the kernel"),
    ],
)
def test_what_has_a_sign_is_refused_with_its_line(function, message):
    with pytest.raises(ValueError, match=message):
        unsigned(function)
