"""problem.py: sizes, costs and inputs."""

import numpy as np
import pytest

from tiled_matmul.problem import (
    DTYPES,
    ITEM_BYTES,
    LAYOUTS,
    Problem,
    aligned_empty,
    as_layout,
)


def test_costs_of_a_small_product_counted_by_hand():
    problem = Problem(2, 3, 4)
    assert problem.flops == 48
    assert problem.compulsory_bytes == 4 * (8 + 12 + 6)
    assert problem.intensity == 48 / 104


def test_flops_equal_the_operations_of_the_loops():
    m, n, k = 3, 4, 5
    counted = sum(2 for _ in range(m) for _ in range(n) for _ in range(k))
    assert Problem(m, n, k).flops == counted


def test_parse_reads_m_n_k():
    assert Problem.parse("300x20x4000", "float64") == Problem(300, 20, 4000, "float64")


@pytest.mark.parametrize("text", ["", "4096", "4x4", "4x4x4x4", "4x-4x4", "axbxc", "4 x4x4"])
def test_a_malformed_shape_is_quoted(text):
    with pytest.raises(ValueError, match="MxNxK"):
        Problem.parse(text)


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "8"])
def test_sizes_must_be_positive_integers(size):
    with pytest.raises(ValueError, match="N must be a positive integer"):
        Problem(4, size, 4)


def test_sizes_have_an_upper_limit():
    with pytest.raises(ValueError, match=r"K must be at most 2\^63 - 1, got 1000"):
        Problem(1, 1, 10**400)


def test_unknown_dtypes_kinds_and_devices_are_quoted():
    with pytest.raises(ValueError, match="'float8'"):
        Problem(1, 1, 1, "float8")
    with pytest.raises(ValueError, match="'zeros'"):
        Problem(1, 1, 1).inputs(kind="zeros")
    with pytest.raises(ValueError, match="'tpu'"):
        Problem(1, 1, 1).inputs(device="tpu")
    with pytest.raises(ValueError, match="needs a float dtype"):
        Problem(1, 1, 1, "int32").inputs(kind="normal")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_inputs_have_the_shapes_and_the_dtype_and_repeat_with_the_seed(dtype):
    problem = Problem(5, 6, 7, dtype)
    a, b = problem.inputs(seed=3, kind="integers")
    again, _ = problem.inputs(seed=3, kind="integers")
    other, _ = problem.inputs(seed=4, kind="integers")
    assert a.shape == (5, 7) and b.shape == (7, 6) and a.dtype == b.dtype == np.dtype(dtype)
    assert (a == again).all() and not (a == other).all()
    assert (a % 1 == 0).all() and abs(a).max() <= 4 and len(np.unique(a)) > 3


@pytest.mark.parametrize("kind", ["normal", "integers"])
def test_bfloat16_is_for_tensors(kind):
    import torch

    problem = Problem(5, 6, 7, "bfloat16")
    assert problem.compulsory_bytes == 2 * (35 + 42 + 30) and problem.kind == "normal"
    a, b = problem.inputs(3, kind, "cpu")
    single, _ = Problem(5, 6, 7).inputs(3, kind, "cpu")
    assert (a.dtype, b.dtype) == (torch.bfloat16, torch.bfloat16)
    assert torch.equal(a, single.bfloat16()) and tuple(b.shape) == (7, 6)
    with pytest.raises(ValueError, match="numpy has no bfloat16; use the device"):
        problem.inputs()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_has_a_size_and_inputs(dtype):
    import torch

    a, _ = Problem(2, 3, 4, dtype).inputs(kind="integers", device="cpu")
    assert a.dtype == getattr(torch, dtype) and a.element_size() == ITEM_BYTES[dtype]
    assert Problem(2, 3, 4, dtype).kind == ("normal" if a.is_floating_point() else "integers")


def test_float64_inputs_use_all_their_digits():
    a, _ = Problem.square(8, "float64").inputs()
    assert (a != a.astype(np.float32)).any()


def test_tensors_hold_the_same_numbers_as_arrays():
    problem = Problem(4, 5, 6)
    for array, tensor in zip(problem.inputs(7), problem.inputs(7, device="cpu"), strict=True):
        assert (array == tensor.numpy()).all()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["normal", "integers"])
def test_inputs_on_the_gpu(kind):
    a, b = Problem(4, 5, 6).inputs(1, kind, "cuda")
    again, _ = Problem(4, 5, 6).inputs(1, kind, "cuda")
    assert a.is_cuda and tuple(a.shape) == (4, 6) and tuple(b.shape) == (6, 5)
    assert bool((a == again).all()) and float(abs(a).sum()) > 0


def test_arrays_begin_on_a_cache_line():
    for shape in ((3, 5), (1, 1), (40, 41)):
        for array in Problem(*shape, 7).inputs():
            assert array.ctypes.data % 64 == 0 and array.flags.c_contiguous
    assert aligned_empty((2, 3), "int32").shape == (2, 3)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_a_layout_keeps_values_and_shapes(device, layout):
    given = Problem(3, 4, 5).inputs(device=device)
    for array, original, letter in zip(as_layout(*given, layout), given, layout, strict=True):
        assert array.shape == original.shape and bool((array == original).all())
        rows, columns = array.shape
        wanted = (columns, 1) if letter == "n" else (1, rows)
        strides = array.strides if device == "numpy" else array.stride()
        assert tuple(strides) == tuple(s * (4 if device == "numpy" else 1) for s in wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_lies_as_wanted_is_not_copied(layout):
    there = as_layout(*Problem(3, 4, 5).inputs(device="cpu"), layout)
    again = as_layout(*there, layout)
    assert [x.data_ptr() for x in there] == [x.data_ptr() for x in again]


@pytest.mark.parametrize("layout", ["n", "NN", "nx", ""])
def test_an_unknown_layout_is_quoted(layout):
    with pytest.raises(ValueError, match=f"one of nn, tn, nt, tt, got '{layout}'"):
        as_layout(*Problem(3, 4, 5).inputs(), layout)
