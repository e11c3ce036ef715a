"""grader/compare.readable and grader/advice: a message quotes its lines and names its axes."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.grader.advice import advise
from tiled_matmul.grader.compare import readable
from tiled_matmul.microscope.cuda import trace

SOURCE = "# exercise 05.1: the 9×9 puzzle\n@cuda.jit\ndef puzzle(a, b, c):\n    x = a[0]\n    " + (
    "c[row, col] = a[row, 0] * b[0, col] + a[row, 1] * b[1, col] + 1000\n\n    pass\n"
)


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("KeyError (line 4): 'x'", "KeyError (line 4: `x = a[0]`): 'x'"),
        ("Line 4 reads C. Line 4 again.", "Line 4 (`x = a[0]`) reads C. Line 4 again."),
        ("in line 4 of puzzle, and", "in line 4 of puzzle (`x = a[0]`), and"),
        ("in line 4 of copy_async, and", "in copy_async, and"),
        ("line 4 of puzzle: x = a[0]: no", "line 4 of puzzle: x = a[0]: no"),
        ("in line 6", "in line 6"),
        ("in line 99", "in line 99"),
        ("in line 0", "in line 0"),
        (f"in line {'9' * 5000}", f"in line {'9' * 5000}"),
        ("lines 3 and 4", "lines 3 and 4"),
        ("thread (3, 0, 0) waits", "thread (x 3, y 0) waits"),
        ("thread (3, 1, 2) of block (1, 0, 0)", "thread (x 3, y 1, z 2) of block (x 1, y 0)"),
    ],
)
def test_lines_are_quoted_and_axes_named(message, wanted):
    assert readable(message, SOURCE) == wanted


def test_a_long_line_is_cut():
    said = readable("in line 5.", SOURCE)
    assert said == "in line 5 (`c[row, col] = a[row, 0] * b[0, col] + a[row, 1] * b[1, col]…`)."


def kinds(kernel, block, *shapes):
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    t = trace(kernel, (1, 1), block, *arrays)
    return [advise(t, found) for found in (*t.out_of_bounds, *t.races)]


def test_swapped_indices_and_a_guard_that_is_missing():
    @cuda.jit
    def swapped(b):
        b[cuda.threadIdx.x, cuda.threadIdx.y] = 1

    @cuda.jit
    def unguarded(b):
        b[cuda.threadIdx.y, cuda.threadIdx.x] = 1

    ((kind, said),) = kinds(swapped, (7, 5), (5, 7))
    assert kind == "swapped indices" and "b has K rows and N columns, b[k, col]" in said
    for shape in ((5, 6), (4, 5), (2, 3)):
        ((kind, _),) = kinds(unguarded, (7, 5), shape)
        assert kind == "out of bounds", shape
    ((kind, said),) = kinds(unguarded, (7, 5), (4, 7))  # the rows of b are along K
    assert kind == "along K" and "Or does the loop along K go too far" in said


def test_which_of_two_barriers_is_missing():
    @cuda.jit
    def first(a):
        tile = cuda.shared.array(4, np.float32)
        for turn in range(3):
            tile[cuda.threadIdx.x] = turn
            a[cuda.threadIdx.x] = tile[3 - cuda.threadIdx.x]
            cuda.syncthreads()

    @cuda.jit
    def second(a):
        tile = cuda.shared.array(4, np.float32)
        for turn in range(3):
            tile[cuda.threadIdx.x] = turn
            cuda.syncthreads()
            a[cuda.threadIdx.x] = tile[3 - cuda.threadIdx.x]

    @cuda.jit
    def reads_first(a):
        tile = cuda.shared.array(4, np.float32)
        tile[cuda.threadIdx.x] = 0
        cuda.syncthreads()
        for turn in range(3):
            a[cuda.threadIdx.x] = tile[3 - cuda.threadIdx.x]
            cuda.syncthreads()
            tile[cuda.threadIdx.x] = turn

    assert [kind for kind, _ in kinds(first, 4, 4)] == ["race"]
    assert [kind for kind, _ in kinds(second, 4, 4)] == ["race on the next turn"]
    assert [kind for kind, _ in kinds(reads_first, 4, 4)] == ["race on the next turn"]


def test_an_element_of_two_threads():
    @cuda.jit
    def same(c):
        c[cuda.threadIdx.y, cuda.threadIdx.y] = 1

    @cuda.jit
    def handed_on(c):
        c[0, cuda.threadIdx.x] = 1
        c[1, cuda.threadIdx.x] = c[0, 3 - cuda.threadIdx.x]

    assert {kind for kind, _ in kinds(same, (4, 4), (4, 4))} == {"same element"}
    assert {kind for kind, _ in kinds(handed_on, (4, 1), (4, 4))} == {"race"}
