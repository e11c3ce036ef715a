"""tiles/: what a program touches is named rightly, and each way to go wrong is found.

The kernels multiply 100×70 by 70×80 in tiles of 32, so that every edge is ragged.
"""

import importlib
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("triton")
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

import tiled_matmul
from tiled_matmul.ladder.triton_block_pointers import triton_block_pointers_kernel
from tiled_matmul.ladder.triton_swizzled import triton_swizzled_kernel
from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.triton import Array, places, record, trace_tiles

M, N, K, TILE = 100, 80, 70, 32
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def product_kernel(
    a,
    b,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    TILE: tl.constexpr,
    MASK_K: tl.constexpr = True,
    MASK_C: tl.constexpr = True,
    LOOP: tl.constexpr = "all",
):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    steps = tl.cdiv(K, TILE)
    if LOOP == "one too many":
        steps += 1
    if LOOP == "whole blocks":
        steps = K // TILE
    for step in range(0, steps):
        k = step * TILE + tl.arange(0, TILE)
        a_mask, b_mask = m[:, None] < M, n[None, :] < N
        if MASK_K:
            a_mask, b_mask = a_mask & (k[None, :] < K), b_mask & (k[:, None] < K)
        a_tile = tl.load(a + m[:, None] * a_row + k[None, :] * a_col, mask=a_mask, other=0.0)
        b_tile = tl.load(b + k[:, None] * b_row + n[None, :] * b_col, mask=b_mask, other=0.0)
        acc = tl.dot(a_tile, b_tile, acc, input_precision="ieee")
    at = c + m[:, None] * c_row + n[None, :] * c_col
    if MASK_C:
        tl.store(at, acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
    else:
        tl.store(at, acc.to(c.dtype.element_ty))


def inputs(m=M, n=N, k=K, layout=lambda x: x, dtype=torch.float16):
    generator = torch.Generator().manual_seed(5)
    sizes = (m, k), (k, n), (m, n)
    return [layout(torch.randn(size, generator=generator).to(DEVICE, dtype)) for size in sizes]


def row_major(x):
    return x


def column_major(x):
    return x.T.contiguous().T


def view(x):
    """A matrix in the middle of a larger one."""
    room = x.new_full((x.shape[0] + 3, x.shape[1] + 9), 7.0)
    room[2:-1, 4:-5] = x
    return room[2:-1, 4:-5]


LAYOUTS = (row_major, column_major, view)


def arguments(a, b, c):
    return a, b, c, a.shape[0], b.shape[1], a.shape[1], *a.stride(), *b.stride(), *c.stride()


def product(a, b, c, grid=None, **options):
    size = triton.cdiv(a.shape[0], TILE), triton.cdiv(b.shape[1], TILE)
    return trace_tiles(product_kernel, grid or size, *arguments(a, b, c), TILE=TILE, **options)


def line_of(text, kernel=product_kernel):
    """Return the line in the file at which a kernel's source first contains `text`."""
    code = kernel.fn.__code__
    with open(code.co_filename, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return next(i for i in range(code.co_firstlineno, len(lines)) if text in lines[i - 1])


def only(findings, kind, array):
    found = [finding for finding in findings if (finding.kind, finding.array) == (kind, array)]
    assert len(found) == 1, findings
    return found[0]


# What is recorded.


@triton.jit
def nosy_kernel(c):
    tl.store(c, interpreter_builder.zero)  # noqa: F821


def test_a_kernel_sees_none_of_the_names_that_tritons_interpreter_has():
    """Triton puts all of them among the kernel's globals."""
    with pytest.raises(Exception, match="interpreter_builder"):
        trace_tiles(nosy_kernel, (1,), torch.zeros(1))


def test_every_load_dot_and_store_of_a_program_is_there_in_order():
    t = product(*inputs())
    events = t.select(program=(3, 1))
    assert [event.op for event in events] == ["load", "load", "dot"] * 3 + ["store"]
    assert [
        (e.rows, e.cols, e.step, e.elements, e.bytes) for e in t.select((3, 1), "load", "a")
    ] == [
        ((96, 128), (0, 32), 0, 4 * 32, 8 * 32),
        ((96, 128), (32, 64), 1, 4 * 32, 8 * 32),
        ((96, 128), (64, 96), 2, 4 * 6, 8 * 6),
    ]
    assert [(e.rows, e.cols) for e in t.select((3, 1), "load", "b")] == [
        ((0, 32), (32, 64)),
        ((32, 64), (32, 64)),
        ((64, 96), (32, 64)),
    ]
    (stored,) = t.select((3, 1), "store")
    assert (stored.array, stored.rows, stored.cols) == ("c", (96, 128), (32, 64))
    assert stored.elements == 4 * 32 and stored.line == line_of("mask=(m[:, None] < M) & (n")
    dots = t.select((3, 1), "dot")
    assert [(d.array, d.rows, d.cols, d.elements, d.step) for d in dots] == [
        ("", (0, 32), (0, 32), 32**3, step) for step in range(3)
    ]
    assert {event.line for event in t.select(op="load", array="a")} == {line_of("a_tile = tl.load")}
    assert {event.function for event in t.events} == {"product_kernel"}
    assert not any(event.wraps or event.outside for event in t.events)


def test_programs_run_with_x_fastest_as_a_gpu_numbers_them():
    t = product(*inputs())
    assert t.grid == (4, 3, 1)
    assert t.programs[:5] == ((0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (0, 1, 0))
    assert len(t.programs) == 12


def test_tiles_are_listed_with_who_touched_them():
    t = product(*inputs())
    tiles = t.tiles("a")
    assert len(tiles) == 4 * 3
    assert [e.program for e in tiles[(64, 96), (0, 32)]] == [(2, y, 0) for y in range(3)]
    table = repr(t)
    assert "12 programs in a grid of (4, 3, 1); nothing wrong" in table
    row = next(line for line in table.splitlines() if line.startswith("b"))
    assert row.split() == ["b", "70×80", "load", "12", "36", "9", "44,800", "4"]
    assert "<table>" in t._repr_html_()


def test_what_is_stored_is_in_the_tensor():
    a, b, c = inputs()
    product(a, b, c)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=0.02, rtol=1e-2)


# Right kernels, in all three ways of addressing.

RUNGS = {
    "block_pointers": triton_block_pointers_kernel,
    "swizzled": triton_swizzled_kernel,
}
SHAPES = ((100, 80, 70), (1, 80, 70), (33, 1, 20), (40, 33, 1), (32, 64, 32), (1, 1, 1))


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", RUNGS)
def test_right_kernels_are_clean(name, shape, layout):
    a, b, c = inputs(*shape, layout)
    down, across = triton.cdiv(shape[0], 32), triton.cdiv(shape[1], 32)
    one = name == "swizzled"
    grid = (down * across,) if one else (across, down)
    extra = (2, True, True) if one else ()
    t = trace_tiles(RUNGS[name], grid, *arguments(a, b, c), 32, 32, 32, "ieee", *extra, num_warps=4)
    assert not t.findings
    torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=0.02, rtol=1e-2)
    wanted = {
        ((32 * i, 32 * i + 32), (32 * k, 32 * k + 32))
        for i in range(down)
        for k in range(triton.cdiv(shape[2], 32))
    }
    assert set(t.tiles("a")) == wanted
    assert sum(event.elements for event in t.select(op="store")) == shape[0] * shape[1]
    if not one:
        assert sum(e.elements for e in t.select(op="load", array="b")) == shape[1] * shape[2] * down


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@triton.jit
def waiting_kernel(x, out, SIZE: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    at = tl.arange(0, SIZE)
    values = tl.load(x + at)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + at, values)


def test_a_kernel_that_waits_for_another_waits_for_nothing_here():
    x, out = torch.arange(16.0), torch.zeros(16)
    real = tl.extra.cuda.gdc_wait
    t = trace_tiles(waiting_kernel, (1,), x, out, SIZE=16, launch_pdl=True)
    assert torch.equal(x, out) and not t.findings and tl.extra.cuda.gdc_wait is real


def test_every_triton_rung_is_clean_through_its_launcher(monkeypatch):
    seen = []
    names = ("block_pointers", "swizzled", "descriptors", "persistent", "specialised", "split_k")
    for name in names:
        module = importlib.import_module(f"tiled_matmul.ladder.triton_{name}")
        monkeypatch.setattr(
            module,
            "launch",
            lambda kernel, grid, *a, **o: seen.append(trace_tiles(kernel, grid, *a, **o)),
        )
        a, b, _ = inputs()
        result = module.matmul(a, b, block=(32, 32, 32))
        torch.testing.assert_close(result.float(), a.float() @ b.float(), atol=0.02, rtol=1e-2)
    assert len(seen) == len(names) + 1  # split-K launches two
    assert not [str(finding) for t in seen for finding in t.findings]


def test_rows_that_wrap_around_are_told_as_one_tile():
    a, b, c = inputs()
    t = trace_tiles(
        triton_swizzled_kernel, (12,), *arguments(a, b, c), 32, 32, 32, "ieee", 4, True, True
    )
    first = t.select((3,), "load", "a")[0]
    assert (first.rows, first.wraps, first.elements) == ((96, 128), "rows", 32 * 32)
    last = t.select((11,), "load", "b")[-1]
    assert (last.rows, last.cols, last.wraps) == ((64, 96), (64, 96), "cols")
    assert last.elements == 6 * 32


@triton.jit
def descriptor_kernel(a, b, c, M, N, K, TILE: tl.constexpr, MADE_HERE: tl.constexpr):
    if MADE_HERE:
        a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [TILE, TILE])
        b = tl.make_tensor_descriptor(b, [K, N], [N, 1], [TILE, TILE])
        c = tl.make_tensor_descriptor(c, [M, N], [N, 1], [TILE, TILE])
    top, left = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    acc = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, K, TILE):
        acc = tl.dot(a.load([top, k]), b.load([k, left]), acc)
    c.store([top, left], acc.to(tl.float16))


@pytest.mark.parametrize("made_here", [False, True])
def test_descriptors_from_the_host_and_from_the_kernel(made_here):
    a, b, c = inputs(100, 80, 72)
    wrapped = [x if made_here else TensorDescriptor.from_tensor(x, [32, 32]) for x in (a, b, c)]
    t = trace_tiles(descriptor_kernel, (4, 3), *wrapped, 100, 80, 72, 32, made_here)
    assert not t.findings
    assert [array.name for array in t.arrays] == ["a", "b", "c"]
    loads = t.select((3, 2), "load", "a")
    assert [(e.rows, e.cols, e.elements) for e in loads] == [
        ((96, 128), (0, 32), 128),
        ((96, 128), (32, 64), 128),
        ((96, 128), (64, 96), 32),
    ]
    torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=0.02, rtol=1e-2)


@triton.jit
def beside_kernel(c, TILE: tl.constexpr, MADE_HERE: tl.constexpr):
    if MADE_HERE:
        c = tl.make_tensor_descriptor(c, [40, 40], [40, 1], [TILE, TILE])
    left = tl.program_id(0) * TILE
    c.store([16, left], tl.zeros((TILE, TILE), tl.float16) + c.load([16, left]))


@pytest.mark.parametrize("made_here", [False, True])
def test_a_descriptors_tile_that_is_all_outside_lies_where_it_was_asked_for(made_here):
    c = torch.zeros((40, 40), dtype=torch.float16)
    wrapped = c if made_here else TensorDescriptor.from_tensor(c, [8, 8])
    t = trace_tiles(beside_kernel, (6,), wrapped, 8, made_here)
    for op in ("load", "store"):
        places = [(e.rows, e.cols, e.elements) for e in t.select(op=op)]
        assert places[4:] == [((16, 24), (32, 40), 64), ((16, 24), (40, 48), 0)]
    assert [finding.kind for finding in t.findings if finding.kind != "never stored"] == []


# Planted faults.


def test_an_unmasked_tail_of_k_is_named_where_it_reaches_the_next_row():
    a, b, c = inputs()
    t = product(a, b, c, MASK_K=False)
    found = only(t.findings, "unmasked tail", "a")
    assert (found.op, found.line) == ("load", line_of("a_tile = tl.load"))
    assert (found.program, found.index) == ((0, 0, 0), (0, 70))
    assert (found.rows, found.cols) == ((0, 100), (70, 96))
    assert found.count == 3 * 100 * 26 and found.programs == 12
    assert "columns 70 to 95 of a, which is 100×70" in str(found)
    assert "the beginning of the next row and, past the last row, NaN" in str(
        found
    ) and "mask=…, other=0.0" in str(found)
    below = only(t.findings, "out of bounds", "b")
    assert (below.rows, below.cols) == ((70, 96), (0, 80))
    assert "rows 70 to 95 of b" in str(below) and "NaN" in str(below)
    assert len(t.findings) == 2
    assert c.isnan().all()  # every row of C was multiplied by what is not there
    outside = [event.outside for event in t.select((0, 0), "load", "a")]
    assert outside == [0, 0, 32 * 26]


def test_in_column_major_the_tail_of_b_reaches_the_next_column():
    t = product(*inputs(layout=column_major), MASK_K=False)
    assert only(t.findings, "out of bounds", "a").cols == (70, 96)
    assert "the beginning of the next column" in str(only(t.findings, "unmasked tail", "b"))


def test_an_unmasked_tail_in_a_view_reads_what_lies_beside_it():
    a, b, c = inputs(layout=view)
    t = product(a, b, c, MASK_K=False)
    (of_a,) = [finding for finding in t.findings if finding.array == "a"]
    assert of_a.kind == "unmasked tail" and of_a.cols == (70, 96)
    b_under = [finding for finding in t.findings if finding.array == "b"]
    assert "data of the tensor that b is a view of" in str(b_under[0])


def test_a_store_without_a_mask_is_found_and_writes_nothing_beyond():
    a, b, _ = inputs()
    room = torch.full((110, 90), 7.0, dtype=torch.float16, device=DEVICE)
    c = room[:M, :N]
    t = product(a, b, c, MASK_C=False)
    (found,) = t.findings
    assert (found.op, found.array) == ("store", "c")
    assert found.line == line_of("tl.store(at, acc.to(c.dtype.element_ty))")
    assert "here nothing is lost" in str(found)
    assert (room[M:] == 7).all() and (room[:, N:] == 7).all()
    torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=0.02, rtol=1e-2)
    a, b, c = inputs()
    t = product(a, b, c, MASK_C=False)
    found = only(t.findings, "unmasked tail", "c")
    assert "overwrites the beginning of the next row" in str(found)
    assert not [f for f in t.findings if f.kind in ("stored twice", "not stored")]


@triton.jit
def block_pointer_kernel(x, out, M, N, TILE: tl.constexpr, CHECK: tl.constexpr):
    top, left = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    x_tile = tl.make_block_ptr(x, (M, N), (N, 1), (top, 0), (TILE, TILE), (1, 0))
    x_tile = tl.advance(x_tile, (0, left))
    if CHECK:
        values = tl.load(x_tile, boundary_check=(0, 1), padding_option="nan")
    else:
        values = tl.load(x_tile, boundary_check=(0,))
    out_tile = tl.make_block_ptr(out, (M, N), (N, 1), (top, left), (TILE, TILE), (1, 0))
    tl.store(out_tile, values, boundary_check=(0, 1))


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
def test_a_block_pointer_with_an_edge_that_is_not_checked():
    x = torch.randn(40, 50, device=DEVICE)
    out = torch.zeros_like(x)
    assert not trace_tiles(block_pointer_kernel, (2, 2), x, out, 40, 50, 32, True).findings
    assert torch.equal(out, x)
    (found,) = trace_tiles(block_pointer_kernel, (2, 2), x, out, 40, 50, 32, False).findings
    assert (found.kind, found.array) == ("unmasked tail", "x")
    assert (found.rows, found.cols, found.count) == ((0, 40), (50, 64), 40 * 14)


@triton.jit
def cast_kernel(x, out, null):
    at = tl.arange(0, 4)
    wide = x.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(out + at, tl.load(wide + at))
    tl.store(null.to(tl.int64).to(tl.pointer_type(tl.int32)) + at, at, mask=at > 4)
    if tl.load(out) < 0:
        tl.store(null.to(tl.int64).to(tl.pointer_type(tl.int32)) + at, at)


def test_pointers_of_another_type_and_from_nowhere():
    x = torch.tensor([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4], dtype=torch.int8, device=DEVICE)
    out = torch.zeros(4, dtype=torch.int32, device=DEVICE)
    trace_tiles(cast_kernel, (1,), x, out, 0)
    assert out.tolist() == [1, 2, 3, 0]  # the fourth begins inside and ends outside
    with pytest.raises(KernelError, match="from none of the kernel's arguments"):
        trace_tiles(cast_kernel, (1,), x - 5, out, 0)


def test_swapped_strides_are_found_and_named():
    a, b, c = inputs()
    strides = a.stride(1), a.stride(0), *b.stride(), *c.stride()
    t = trace_tiles(product_kernel, (4, 3), a, b, c, M, N, K, *strides, TILE)
    found = [finding for finding in t.findings if finding.array == "a"]
    assert found[0].kind == "unmasked tail" and "are strides swapped?" in str(found[0])


def test_strides_of_another_matrix_make_no_tile():
    a, b, c = inputs()
    strides = *b.stride(), *b.stride(), *c.stride()
    t = trace_tiles(product_kernel, (4, 3), a, b, c, M, N, K, *strides, TILE)
    found = only(t.findings, "no tile", "a")
    assert "the pointers step 80 and 1 elements" in str(found)
    assert "a has the strides 70 and 1" in str(found)


def test_two_programs_on_one_tile():
    t = product(*inputs(), grid=(4, 3, 2))
    found = only(t.findings, "stored twice", "c")
    assert found.program == (0, 0, 1) and found.programs == 24
    assert found.index == (0, 0) and found.count == M * N
    assert "Programs (0, 0, 0) and (0, 0, 1) both store c[0, 0]" in str(found)
    assert found.line == line_of("mask=(m[:, None] < M) & (n")
    assert len(t.findings) == 1


def test_a_missing_program():
    t = product(*inputs(), grid=(3, 3))
    found = only(t.findings, "not stored", "c")
    assert (found.rows, found.cols) == ((96, 100), (0, 80)) and found.count == 4 * 80
    assert "No program stores rows 96 to 99, columns 0 to 79 of c" in str(found)
    assert only(t.findings, "not read", "a").rows == (96, 100)


def test_a_loop_that_leaves_out_the_last_block():
    t = product(*inputs(), LOOP="whole blocks")
    assert only(t.findings, "not read", "a").cols == (64, 70)
    assert only(t.findings, "not read", "b").rows == (64, 70)
    assert len(t.findings) == 2


def test_a_loop_of_one_turn_too_many_is_beside_the_matrix_and_not_in_its_next_row():
    a, b, c = inputs(64, 64, 96)  # whole tiles: their addresses are some tile's, one row on
    t = product(a, b, c, MASK_K=False, LOOP="one too many")
    found = only(t.findings, "unmasked tail", "a")
    assert (found.rows, found.cols) == ((0, 64), (96, 128))
    assert only(t.findings, "out of bounds", "b").rows == (96, 128)


@triton.jit
def far_kernel(x, out, room, distance):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at + distance))
    tl.store(room + at + distance, tl.load(x + at))


@pytest.mark.parametrize("distance", [-(2**40), -8, 8, 2**40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32])
def test_out_of_bounds_nothing_is_touched(distance, dtype):
    x = torch.arange(1, 17, device=DEVICE).to(dtype)
    out = torch.zeros_like(x)
    memory = torch.full((48,), 99, dtype=dtype, device=DEVICE)
    room = memory[16:32]
    t = trace_tiles(far_kernel, (1,), x, out, room, distance)
    inside = [at for at in range(16) if 0 <= at + distance < 16]
    for array in ("x", "room"):
        found = only(t.findings, "out of bounds", array)
        assert found.count == 16 - len(inside)
        assert found.index == (0, 16 if distance == 8 else distance)
    for at in range(16):
        if at in inside:
            assert out[at] == x[at + distance] and room[at + distance] == x[at]
        elif dtype.is_floating_point:
            assert out[at].isnan()
        else:
            assert out[at] == 0
    assert (memory[:16] == 99).all() and (memory[32:] == 99).all()


def test_around_a_view_its_tensor_is_read_and_not_written():
    memory = torch.arange(48.0, device=DEVICE)
    before = memory.clone()
    x, out = memory[16:32], torch.zeros(16, device=DEVICE)
    t = trace_tiles(far_kernel, (1,), x, out, memory[16:32], -8)
    assert torch.equal(out, before[8:24])
    assert torch.equal(memory[:16], before[:16]) and torch.equal(memory[24:], before[24:])
    assert "data of the tensor that x is a view of" in str(only(t.findings, "out of bounds", "x"))


def test_what_lies_between_the_elements_of_a_view_is_not_its_own():
    memory = torch.zeros(32, device=DEVICE)
    t = trace_tiles(far_kernel, (1,), torch.ones(16, device=DEVICE), memory[::2], memory[::2], 0)
    found = only(t.findings, "out of bounds", "out")
    assert found.count == 8 and "writes elements between its own" in str(found)
    assert memory[:16].tolist() == [1, 0] * 8 and not memory[16:].any()


@triton.jit
def masked_copy_kernel(source, target, size, HOW: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(0, size, BLOCK):
        i = start + BLOCK - 1 - tl.arange(0, BLOCK)
        mask = i < size
        if HOW == "and":
            mask = mask & (start < size)
        if HOW == "and first":
            mask = (start < size) & mask
        if HOW == "or":
            mask = mask | (start > size)
        if HOW == "exclusive or":
            mask = mask ^ (start > size)
        tl.store(target + i, tl.load(source + i, mask=mask, other=-1.0))


@pytest.mark.parametrize("how", ("alone", "and", "and first", "or", "exclusive or"))
def test_a_mask_may_be_combined_with_a_scalar(how):
    source, target = torch.arange(5.0, device=DEVICE), torch.full((8,), -7.0, device=DEVICE)
    t = trace_tiles(masked_copy_kernel, (1,), source, target, 5, how, 8)
    assert target.tolist() == [0, 1, 2, 3, 4, -1, -1, -1] and not t.findings


@triton.jit
def workspace_kernel(x, out, room):
    at = tl.arange(0, 16)
    tl.store(room + at, tl.load(x + at))
    tl.store(out + at, tl.load(room + at))


def test_a_workspace_need_not_be_all_used():
    x, out, room = (torch.ones(n, device=DEVICE) for n in (16, 16, 40))
    assert not trace_tiles(workspace_kernel, (1,), x, out, room).findings


# Kernels that do other things.


@triton.jit
def helper(x, at, n):
    return tl.load(x + at, mask=at < n, other=0.0)


@triton.jit
def sums_kernel(x, total, count, copy, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = helper(x, at, n)
    tl.store(copy + at, values, mask=at < n)
    tl.atomic_add(total, tl.sum(values, axis=0))
    tl.atomic_add(count + at % 2, 1, mask=at < n)


def test_vectors_helpers_and_atomics():
    x = torch.arange(37.0, device=DEVICE)
    total, count = torch.zeros(1, device=DEVICE), torch.zeros(2, dtype=torch.int32, device=DEVICE)
    copy = torch.zeros(37, device=DEVICE)
    t = trace_tiles(sums_kernel, (3,), x, total, count, copy, 37, BLOCK=16)
    assert not t.findings
    assert total.item() == x.sum().item() and count.tolist() == [19, 18]
    last = t.select((2,), "load")[0]
    assert (last.rows, last.cols, last.elements, last.function) == ((0, 1), (32, 48), 5, "helper")
    assert [e.elements for e in t.select(op="atomic", array="total")] == [1, 1, 1]
    assert t.select((2,), "atomic", "count")[0].elements == 5


def test_an_atomic_beyond_its_array_is_found():
    x, total = torch.arange(37.0, device=DEVICE), torch.zeros(1, device=DEVICE)
    short = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    t = trace_tiles(sums_kernel, (3,), x, total, short, torch.zeros_like(x), 37, BLOCK=16)
    found = only(t.findings, "out of bounds", "count")
    assert found.op == "atomic" and found.count == 18 and short.item() == 19


@triton.jit
def flat_kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size), mask=at < size)


def test_a_matrix_may_be_walked_as_a_vector():
    x = torch.randn(10, 7, device=DEVICE)
    out = torch.zeros_like(x)
    t = trace_tiles(flat_kernel, (5,), x, out, 70, BLOCK=16)
    assert not t.findings and torch.equal(out, x)
    t = trace_tiles(flat_kernel, (5,), x, out, 80, BLOCK=16)
    assert {finding.kind for finding in t.findings} == {"out of bounds"}
    assert {finding.count for finding in t.findings} == {10}


@triton.jit
def planes_kernel(x, out, rows, cols, TILE: tl.constexpr):
    i, j = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    at = tl.program_id(0) * rows * cols + i * cols + j
    inside = (i < rows) & (j < cols)
    tl.store(out + at, tl.load(x + at, mask=inside), mask=inside)


def test_an_array_of_matrices_names_the_plane():
    x = torch.randn(3, 10, 7, device=DEVICE)
    out = torch.zeros_like(x)
    t = trace_tiles(planes_kernel, (3,), x, out, 10, 7, TILE=16)
    assert not t.findings and torch.equal(out, x)
    assert [event.plane for event in t.select(op="load")] == [(0,), (1,), (2,)]
    t = trace_tiles(planes_kernel, (2,), x, out, 10, 7, TILE=16)
    assert {finding.kind for finding in t.findings} == {"not stored", "not read"}


def test_one_tensor_in_two_arguments_is_one_matrix_to_the_findings():
    a, _, c = inputs(64, 64, 64)
    t = trace_tiles(product_kernel, (1, 2), *arguments(a, a, c), TILE=32)
    assert [finding.array for finding in t.findings if finding.kind == "not read"] == []
    assert only(t.findings, "not stored", "c").rows == (32, 64)


def test_grids_may_be_functions_of_the_launch():
    a, b, c = inputs()
    t = product(a, b, c, grid=lambda meta: (triton.cdiv(meta["M"], meta["TILE"]), 3))
    assert t.grid == (4, 3, 1) and not t.findings


# Bad input.


def plain(a):
    return a


@triton.jit
def failing_kernel(a, BLOCK: tl.constexpr):
    x = tl.load(a + tl.arange(0, BLOCK))
    tl.static_assert(BLOCK == 3, "BLOCK is not three")
    tl.store(a + tl.arange(0, BLOCK), x)


def test_what_is_no_kernel_is_refused():
    for kernel in (plain, 3, "kernel", None):
        with pytest.raises(TypeError, match="@triton.jit"):
            trace_tiles(kernel, (1,), torch.zeros(1))


@pytest.mark.parametrize("grid", [(0,), (2, -1), (1, 1, 1, 1), (), (2.0,), (True,)])
def test_grids_of_wrong_sizes_are_refused(grid):
    with pytest.raises(ValueError, match="grid must be .* got " + re.escape(str(grid))):
        product(*inputs(), grid=lambda meta: grid)


@pytest.mark.parametrize("grid", [4, [4, 3], "4"])
def test_grids_that_are_no_tuples_are_refused(grid):
    with pytest.raises(TypeError, match="grid must be a tuple"):
        product(*inputs(), grid=grid)


def test_too_many_programs_and_accesses_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="1,000,000 programs; a trace takes at most 4,096"):
        product(*inputs(), grid=(1000, 1000))
    monkeypatch.setattr(record, "MOST_EVENTS", 40)
    with pytest.raises(KernelError, match="access 40 of this launch"):
        product(*inputs())


def test_arguments_that_do_not_fit_are_refused():
    a, b, c = inputs()
    with pytest.raises(TypeError, match="product_kernel cannot be called.*'TILE'"):
        trace_tiles(product_kernel, (4, 3), *arguments(a, b, c))
    with pytest.raises(TypeError, match="no argument 'TILES'; it has a, b"):
        product(a, b, c, TILES=3)
    with pytest.raises(TypeError, match="a is a numpy array"):
        trace_tiles(failing_kernel, (1,), np.zeros(16), 16)
    with pytest.raises(ValueError, match="a lies on meta"):
        trace_tiles(failing_kernel, (1,), torch.zeros(16, device="meta"), 16)
    t = product(a, b, c)
    with pytest.raises(ValueError, match="no array called 'd'; it has a, b, c"):
        t.select(array="d")
    with pytest.raises(ValueError, match="no program is at"):
        t.select((9, 9))


def test_what_a_kernel_raises_names_the_line_and_leaves_triton_as_it_was():
    builder = interpreter.interpreter_builder
    before = tl.load, tl.tensor.__add__, type(failing_kernel).__call__
    x = torch.zeros(16, device=DEVICE)
    line = line_of("tl.static_assert", failing_kernel)
    with pytest.raises(
        KernelError, match=f"stopped at line {line} of failing_kernel: BLOCK is not"
    ):
        trace_tiles(failing_kernel, (1,), x, BLOCK=16)
    assert before == (tl.load, tl.tensor.__add__, type(failing_kernel).__call__)
    assert not [name for name in vars(builder) if name.startswith("create_")]
    assert not hasattr(type(failing_kernel), "__get__")


def test_a_kernel_runs_as_before_after_a_trace():
    a, b, c = inputs()
    product(a, b, c)
    again = torch.zeros_like(c)
    product_kernel[(4, 3)](*arguments(a, b, again), TILE=TILE)
    torch.testing.assert_close(again, c, atol=0.02, rtol=1e-2)


COMPILE = """
from tiled_matmul.kit import backend
from tiled_matmul import trace_tiles
assert backend.select().name == "compiler"
import torch, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import sys; sys.path.insert(0, {tests!r})
import jit_example as example
assert type(example.kernel).__name__ == "JITFunction"
def compiled():
    signature = {{"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}}
    source = ASTSource(example.kernel, signature, {{"BLOCK": 32}})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
names = set(vars(example))
x = torch.arange(40.0); out = torch.zeros(2)
t = trace_tiles(example.kernel, (2,), x, out, 40, BLOCK=32)
assert not t.findings and out.tolist() == [2 * x[:32].sum(), 2 * x[32:].sum()], (t, out)
assert [e.function for e in t.select((1,))] == ["doubled", "kernel"], t.events
assert set(vars(example)) == names
try:
    tl.cdiv(3, 2)
except RuntimeError as error:
    assert "outside of the scope" in str(error)
else:
    raise AssertionError("tl.cdiv can be called")
assert ".visible .entry kernel" in compiled()
print("compiled after a trace")
"""


@pytest.mark.long
def test_where_triton_compiles_it_goes_on_compiling():
    env = os.environ | {"TILED_MATMUL_BACKEND": "compiler", "TRITON_INTERPRET": "0"}
    code = COMPILE.format(tests=os.path.dirname(os.path.dirname(__file__)))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "compiled after a trace" in done.stdout, done.stderr


def test_the_package_offers_it():
    assert tiled_matmul.trace_tiles is trace_tiles
    with pytest.raises(AttributeError, match="no attribute 'trace_tile'"):
        _ = tiled_matmul.trace_tile


def test_256_cubed_takes_seconds():
    a, b, c = inputs(256, 256, 256)
    start = time.perf_counter()
    t = trace_tiles(
        triton_swizzled_kernel, (16,), *arguments(a, b, c), 64, 64, 32, "ieee", 8, True, False
    )
    assert time.perf_counter() - start < 5
    assert len(t.select(op="dot")) == 16 * 8 and not t.findings


# Where a tile lies, whatever its strides.


@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    pad=st.integers(0, 3),
    column_major=st.booleans(),
    across=st.booleans(),
    tile=st.sampled_from([(1, 4), (4, 1), (4, 4), (2, 8)]),
    start=st.tuples(st.integers(0, 8), st.integers(0, 8)),
)
def test_masked_tiles_are_found_where_they_are(size, pad, column_major, across, tile, start):
    rows, cols = size
    strides = (1, rows + pad) if column_major else (cols + pad, 1)
    array = Array("x", size, strides, "float32", 4, 0, (0, 1000))
    start = min(start[0], rows - 1), min(start[1], cols - 1)
    row = start[0] + np.arange(tile[0])[:, None]
    col = start[1] + np.arange(tile[1])[None, :]
    offsets = row * strides[0] + col * strides[1]
    active = (row < rows) & (col < cols)
    row, col = np.broadcast_arrays(row, col)
    if across:
        offsets, active, row, col = offsets.T, active.T, row.T, col.T
    place = places.find(array, offsets, active)
    found = [np.broadcast_to(along, offsets.shape)[active] for along in place.index]
    assert np.array_equal(found[0], row[active]) and np.array_equal(found[1], col[active])
    assert place.inside(array, offsets)[active].all()
    if min(size) > 1 and min(tile) > 1 and min(active.sum(0).max(), active.sum(1).max()) > 1:
        ends = tuple((s, s + n) for s, n in zip(start, tile, strict=True))
        assert place.ranges == ends and place.axes == ((1, 0) if across else (0, 1))
