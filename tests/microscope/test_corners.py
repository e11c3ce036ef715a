"""Corners in which an interpreter lies easily, each found by trying to make it."""

import importlib
import linecache
import sys

import numpy as np
import pytest
from numba import cuda, float32, int32

from tiled_matmul.microscope.cuda import KernelError, trace
from tiled_matmul.microscope.cuda.kernel import jit, run

FULL = 0xFFFFFFFF


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def ran(kernel, grid, block, *args):
    """Return what the last argument holds after a launch; a trace has to leave the same."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    run(kernel, grid, block, *args)
    trace(kernel, grid, block, *copies)
    np.testing.assert_array_equal(args[-1], copies[-1])
    return args[-1]


# --- values ---------------------------------------------------------------------------------------


def test_a_chain_of_names_longer_than_any_fixed_number_of_rounds():
    def window(x, out):
        w0 = w1 = w2 = w3 = w4 = w5 = w6 = w7 = w8 = w9 = w10 = 0
        for k in range(x.shape[0]):
            w0, w1, w2, w3, w4, w5 = w1, w2, w3, w4, w5, w6
            w6, w7, w8, w9, w10 = w7, w8, w9, w10, x[k]
        out[0] = w0

    assert ran(window, 1, 1, np.arange(11) + 0.75, zeros(1, dtype=np.float64))[0] == 0.75


def test_a_value_is_computed_before_the_index_that_it_goes_to():
    @jit(device=True)
    def bump(c):
        c[0] += 1
        return c[0]

    def stores(c, out):
        out[c[0]] = bump(c)
        out[bump(c)] = bump(c)

    assert ran(stores, 1, 1, zeros(1, dtype=np.int32), zeros(4)).tolist() == [0, 1, 0, 2]


def test_masks_of_a_warp_have_32_bits():
    def count(x, out):
        i = cuda.threadIdx.x
        out[0, i] = cuda.popc(cuda.ballot_sync(FULL, True))
        out[1, i] = cuda.clz(x[i])
        out[2, i] = cuda.clz(int32(1))
        out[3, i] = cuda.clz(cuda.threadIdx.x)

    out = ran(count, 1, 32, np.full(32, -1, np.int32), zeros(4, 32, dtype=np.int64))
    assert set(out[0]) == {32} and set(out[1]) == {0} and set(out[2]) == {31}
    assert out[3].tolist() == [32 - i.bit_length() for i in range(32)]


def test_one_array_passed_twice_is_one_array():
    def shift(a, b):
        i = cuda.threadIdx.x
        b[i] = a[(i + 1) % 32]

    x = np.arange(32, dtype=np.float32)
    for twice in (x, cuda.to_device(x)) if hasattr(cuda, "simulator") else (x,):
        assert [race.count for race in trace(shift, 1, 32, twice, twice).races] == [32]


# --- names ----------------------------------------------------------------------------------------


def test_names_of_python_may_be_names_of_a_kernel():
    @jit(device=True)
    def f(x):
        return x + 1

    def clash(zip, out):
        next = f_0 = 0
        for k in range(zip.shape[0]):
            next = next + 1
            f_0 += f(zip[k])
        while next > 0:
            next -= 1
        out[0] = f_0 + min(next, 5)

    assert ran(clash, 1, 1, np.arange(4.0), zeros(1))[0] == 10


def test_two_arrays_of_one_statement_have_names():
    def pair(x, out):
        a, b = cuda.shared.array(32, float32), cuda.shared.array(32, float32)
        i = cuda.threadIdx.x
        a[i] = b[i] = x[i]
        out[i] = a[31 - i] + b[31 - i]

    t = trace(pair, 1, 32, zeros(32), zeros(32))
    assert {info.name for info in t.arrays} == {"x", "out", "a", "b"}
    assert {race.array for race in t.races} == {"a", "b"}


# --- sources --------------------------------------------------------------------------------------


def test_a_file_that_was_edited_after_its_import_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "edited_kernels.py"
    text = "def k(out):\n    out[0] = {}\n\n\ndef other(out):\n    out[0] = 3\n"
    path.write_text(text.format("2 + out[0]"))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("edited_kernels")
    assert ran(module.k, 1, 1, zeros(1))[0] == 2
    moved = text.replace("other(out)", "others(out)").replace("def k", "def j")
    for edited in (text.format("2 - out[0]"), text.format("3 + out[0]"), moved.format("1")):
        path.write_text(edited)
        linecache.checkcache()
        with pytest.raises(KernelError, match="has changed since it was imported"):
            run(module.k, 1, 1, zeros(1))
    del sys.modules["edited_kernels"]


def test_an_indented_kernel_may_have_a_comment_at_the_margin():
    def commented(out):
        out[0] = 1
        # at the margin
        out[0] += 1

    assert ran(commented, 1, 1, zeros(1))[0] == 2


def cell(text: str, name: str, **names):
    """Define a function as a notebook does: a file of its own, whose lines begin at 1."""
    file = f"<cell of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"cuda": cuda, "float32": float32, **names}
    exec(compile(text, file, "exec"), space)
    return space[name]


def test_lines_of_different_cells_are_different_lines():
    put = cell("def put(s, i):\n    s[i] = 1\n    s[0] = 2\n", "put")
    kernel = cell(
        "def kernel(out):\n    s = cuda.shared.array(32, float32)\n"
        "    out[cuda.threadIdx.x] = s[0]; put(s, cuda.threadIdx.x)\n",
        "kernel",
        put=jit(put, device=True),
    )
    t = trace(kernel, 1, 32, zeros(32))
    said = [race.message for race in t.races]
    assert len(said) == 4  # put's two stores, each with the kernel's load, and two pairs of stores
    assert any("line 3 of kernel" in text and "line 3 of put" in text for text in said)
    assert t.count("shared", "load", line=3, function="kernel").requests == 1
    assert t.count("shared", "load", line=3, function="put").requests == 0
    assert "function" in repr(t.by_line())


# --- order and addresses --------------------------------------------------------------------------


@jit(device=True)
def twice(a, i):
    return a[i] * a[i + 1]


def rows_of_a_sparse_matrix(ptr, val, x, out):
    r = cuda.threadIdx.x
    acc = float32(0)
    for k in range(ptr[r], ptr[r + 1]):
        acc += val[k] * x[k]
    out[r] = acc


def condition_that_loads(a, out):
    i = 0
    while a[i] > 0 and a[i + 1] > 0:
        out[i] = a[i]
        i += 1


def around_a_call(a, out):
    i = cuda.threadIdx.x
    out[i] = a[i] + twice(a, i) + twice(a, i + 1) + a[i + 2]


@pytest.mark.parametrize("kernel", [rows_of_a_sparse_matrix, condition_that_loads, around_a_call])
def test_requests_are_numbered_in_the_order_of_the_program(kernel):
    positive = np.r_[np.ones(6), np.zeros(4)].astype(np.float32)
    args = (
        (np.array([0, 2, 3, 6]), positive, positive, zeros(3))
        if kernel is rows_of_a_sparse_matrix
        else (positive, zeros(10))
    )
    accesses = trace(kernel, 1, 3, *args).accesses()
    for thread in range(3):
        numbers = accesses["request"][accesses["thread"] == thread]
        assert (np.diff(numbers) > 0).all(), numbers


def test_addresses_count_from_the_allocation():
    def copy(a, b):
        b[cuda.threadIdx.x] = a[cuda.threadIdx.x]

    load = trace(copy, 1, 32, zeros(1000)[500:], zeros(32)).requests()[0]
    assert load.addresses[:2] == (2000, 2004) and load.sectors == (62, 63, 64, 65, 66)


# --- findings -------------------------------------------------------------------------------------


def test_blocks_race_by_different_widths_too():
    def widths(x, y):
        if cuda.blockIdx.x == 0:
            x[0] = 1
        if cuda.blockIdx.x == 3:
            y[1] = 1

    x = zeros(8)
    assert len(trace(widths, 4, 1, x, x.view(np.uint8)).races) == 1


def test_a_return_in_a_device_function_is_not_the_kernels():
    @jit(device=True)
    def half(a, i):
        if i > 15:
            return
        a[i] = 1

    def leaves(a):
        half(a, cuda.threadIdx.x)
        if cuda.threadIdx.x < 16:
            cuda.syncthreads()

    (finding,) = trace(leaves, 1, 32, zeros(32)).divergent_barriers
    assert "has run to the kernel's end without it" in finding.message and len(finding.lines) == 1


def test_out_of_bounds_of_a_view_says_which_part():
    def part_of(a):
        part = a[8:16]
        part[cuda.threadIdx.x] = 1

    (finding,) = trace(part_of, 1, 9, zeros(64)).out_of_bounds
    assert "writes part[8] in line" in finding.message
    assert "the shape of that part of a is [8]" in finding.message


def test_an_element_that_two_statements_race_for_counts_once():
    def add(out):
        out[0] += 1

    (finding,) = trace(add, 1, 32, zeros(1)).races
    assert finding.count == 1 and "cuda.atomic" in finding.remedy


def test_a_lane_outside_of_its_own_mask_is_refused():
    def masked(out):
        cuda.syncwarp(0xFFFF)
        out[cuda.threadIdx.x] = 1

    with pytest.raises(KernelError, match="lane 16 is not in its own mask, 0x0000ffff"):
        run(masked, 1, 32, zeros(32))


def test_a_constant_that_changed_is_seen_by_the_next_trace():
    width = 2

    @cuda.jit
    def fill(a):
        a[cuda.threadIdx.x] = width

    stored = []
    for width in (2, 2, 3):  # noqa: B007 the kernel reads it
        a = np.zeros(4, np.float32)
        trace(fill, 1, 4, a)
        stored.append(a[0])
    assert stored == [2, 2, 3]
