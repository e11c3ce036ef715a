"""The packed CPU rung: right on ragged shapes, honest about its claims, loud about bad input."""

import re
import subprocess
import sys

import llvmlite.binding
import numba
import numpy as np
import pytest

from tiled_matmul import ladder
from tiled_matmul.check import MatmulError, assert_matmul, run_checked
from tiled_matmul.kit import vectors
from tiled_matmul.ladder import cpu_packed

TILE = (cpu_packed.TILE_M, cpu_packed.TILE_N)
SHAPES = [  # M, N, K
    (1, 1, 1),
    (9, 9, 9),
    (17, 33, 65),
    (130, 70, 95),
    (127, 129, 131),
    (128, 128, 32),  # exactly one tile
    (129, 1, 33),  # one more than a tile in M and K
    (1, 257, 4),
    (300, 20, 4000),
]


def inputs(m, n, k, dtype="float32"):
    rng = np.random.default_rng([m, n, k])
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.sample(6)
def test_right_on_ragged_shapes(shape, dtype):
    a, b = inputs(*shape, dtype)
    before = a.copy(), b.copy()
    c = run_checked(cpu_packed.matmul, a, b, tile=TILE)
    assert c.shape == shape[:2] and c.dtype == dtype
    assert np.array_equal(a, before[0]) and np.array_equal(b, before[1])


def test_whole_numbers_are_exact():
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (130, 95)).astype("float32")
    b = rng.integers(-8, 9, (95, 70)).astype("float32")
    assert np.array_equal(cpu_packed.matmul(a, b), a.astype("int64") @ b.astype("int64"))


def test_out_is_filled_and_returned():
    a, b = inputs(17, 33, 65)
    out = np.full((17, 33), np.nan, "float32")
    assert cpu_packed.matmul(a, b, out=out) is out
    assert np.array_equal(out, cpu_packed.matmul(a, b))


def test_it_is_the_rung_of_the_ladder():
    a, b = inputs(9, 9, 9)
    rung = ladder.rung("cpu_packed")
    assert (rung.device, rung.chapter) == ("cpu", 3)
    assert np.array_equal(rung.matmul(a, b), cpu_packed.matmul(a, b))


def test_sums_run_in_the_order_of_k_whatever_the_tile():
    """An element's bits depend on its row and column only, not on where the tiles were cut."""
    a, b = inputs(300, 140, 97)
    whole = cpu_packed.matmul(a, b)
    part = cpu_packed.matmul(a[131:].copy(), np.ascontiguousarray(b[:, 5:]))
    assert np.array_equal(whole[131:, 5:], part)


def test_same_bits_on_any_number_of_threads():
    a, b = inputs(300, 290, 97)
    threads = numba.get_num_threads()
    whole = cpu_packed.matmul(a, b)
    try:
        numba.set_num_threads(1)
        assert np.array_equal(whole, cpu_packed.matmul(a, b))
    finally:
        numba.set_num_threads(threads)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_reach_their_row_and_no_other(odd):
    """Zeros fill the ragged edge up; they must not spread 0·∞ over C."""
    a, b = inputs(17, 33, 65)
    a[16, 64] = odd
    c = cpu_packed.matmul(a, b)
    assert np.array_equal(c[16], np.sign(b[64]) * odd, equal_nan=True)
    clean = np.arange(17) != 16
    assert_matmul(c[clean].copy(), a[clean].copy(), b)


def test_packed_tiles_hold_the_matrix_and_zeros():
    matrix = np.arange(1, 36, dtype="float32").reshape(5, 7)
    tiles = cpu_packed.packed(matrix, 4, 3)
    assert tiles.shape == (2, 3, 12) and tiles.ctypes.data % vectors.LINE == 0
    unpacked = tiles.reshape(2, 3, 4, 3).transpose(0, 2, 1, 3).reshape(8, 9)
    assert np.array_equal(unpacked[:5, :7], matrix)
    assert unpacked.sum() == matrix.sum() and np.count_nonzero(unpacked) == matrix.size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_aligned_zeros_are_aligned_whole_and_zero_in_compiled_code_too(dtype):
    compiled = numba.njit(lambda size, like: cpu_packed.aligned_zeros(size, like.dtype))
    like = np.empty(0, dtype)
    kept = [compiled(size, like) for size in (1, 15, 16, 17, 4096, 100_000)]
    kept += [cpu_packed.aligned_zeros(size, dtype) for size in (1, 15, 16, 17, 4096, 100_000)]
    assert [len(zeros) for zeros in kept] == [1, 15, 16, 17, 4096, 100_000] * 2
    assert all(zeros.ctypes.data % vectors.LINE == 0 for zeros in kept)
    assert not any(zeros.any() for zeros in kept)
    assert {zeros.dtype for zeros in kept} == {np.dtype(dtype)}


def test_a_skipped_last_tile_is_caught(monkeypatch):
    """The check fails if packing forgets the last column of A's tiles."""
    right = cpu_packed.packed

    def forgetful(matrix, rows, columns):
        tiles = right(matrix, rows, columns)
        if (rows, columns) == (cpu_packed.TILE_M, cpu_packed.TILE_K):
            tiles[:, -1] = 0
        return tiles

    a, b = inputs(17, 33, 65)
    run_checked(cpu_packed.matmul, a, b)
    monkeypatch.setattr(cpu_packed, "packed", forgetful)
    with pytest.raises(MatmulError):
        run_checked(cpu_packed.matmul, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_to_the_widest_fused_multiply_adds(dtype):
    features = llvmlite.binding.get_host_cpu_features()
    if not features.get("fma"):
        pytest.skip("this CPU has no x86 fused multiply-add")
    register = "zmm" if features.get("avx512f") else "ymm"
    cpu_packed.matmul(*inputs(9, 9, 9, dtype))
    letter = {"float32": "s", "float64": "d"}[dtype]
    widest = rf"vfmadd\d+p{letter}.*%{register}"
    assemblies = {
        str(signature[0].dtype): text
        for signature, text in cpu_packed.multiply_tiles.inspect_asm().items()
    }
    assert len(re.findall(widest, assemblies[dtype])) >= 16


@pytest.mark.parametrize(
    "a, b, out, error",
    [
        (np.ones((2, 3), "f4"), np.ones((2, 3), "f4"), None, ValueError),
        (np.ones(3, "f4"), np.ones((3, 2), "f4"), None, ValueError),
        (np.ones((0, 3), "f4"), np.ones((3, 2), "f4"), None, ValueError),
        (np.ones((2, 3), "f4"), np.ones((3, 2), "f8"), None, TypeError),
        (np.ones((2, 3), "f2"), np.ones((3, 2), "f2"), None, TypeError),
        (np.ones((2, 3), "i4"), np.ones((3, 2), "i4"), None, TypeError),
        (np.ones((3, 2), "f4").T, np.ones((3, 2), "f4"), None, ValueError),
        (np.ones((2, 3), "f4"), np.ones((3, 2), "f4"), np.ones((2, 3), "f4"), ValueError),
        ([[1.0]], np.ones((1, 1), "f4"), None, TypeError),
    ],
)
def test_bad_operands_raise(a, b, out, error):
    with pytest.raises(error):
        cpu_packed.matmul(a, b, out=out)


def test_read_only_inputs_are_taken():
    a, b = inputs(17, 33, 65)
    a.flags.writeable = b.flags.writeable = False
    run_checked(cpu_packed.matmul, a, b)


def test_import_compiles_and_prints_nothing():
    code = (
        "from tiled_matmul.ladder import cpu_packed as p; "
        "print(len(p.pack.overloads) + len(p.multiply_tiles.overloads))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
