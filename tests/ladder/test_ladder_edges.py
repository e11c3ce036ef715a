"""Every one of Numba's GPU rungs where kernels break: thin and long, large ints, crooked addresses.

On a GPU at sizes that cross every tile; in the interpreter at the smallest that show the same.
"""

import numpy as np
import pytest
import torch

from tiled_matmul.check import MatmulError, run_checked
from tiled_matmul.kit.backend import select
from tiled_matmul.ladder import LADDER, rung
from tiled_matmul.languages import NUMBA_CUDA
from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.problem import Problem, as_layout

GPU = [r for r in LADDER if r.language is NUMBA_CUDA]
ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
# Each of M, N and K alone, one short of and one beyond a tile, and K that ends within one.
SHAPES = ["1x300x200", "300x1x200", "300x200x1", "1x1x1", "127x129x33", "257x131x70", "132x260x36"]
LONG = ["3x5x100000", "130x7x20001"]
SMALL = "9x12x8"  # K and N multiples of 4, so that a rung with wide loads wants to take them

every_rung = pytest.mark.parametrize("r", GPU, ids=lambda r: r.name)


def operands(r, shape, kind, dtype="float32", seed=11):
    return as_layout(*Problem.parse(shape, dtype).inputs(seed, kind, PLACE), r.layout)


def shifted(tensor, elements=1):
    """Return the same values in the same layout, beginning so many elements into an allocation."""
    across = tensor.is_contiguous()
    rows = tensor if across else tensor.T
    room = torch.empty(rows.numel() + elements, dtype=rows.dtype, device=rows.device)
    moved = room[elements:].reshape(rows.shape).copy_(rows)
    assert moved.data_ptr() == room.data_ptr() + elements * rows.element_size()
    return moved if across else moved.T


def large_ints(r, m, n, k):
    """Return operands whose products leave int32, and whose sums do once more."""
    random = np.random.default_rng(3)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    a, b = (
        torch.from_numpy(random.integers(low, high, shape, np.int32, endpoint=True)).to(PLACE)
        for shape in ((m, k), (k, n))
    )
    a[0, 0] = b[0, 0] = low
    return as_layout(a, b, r.layout)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("shape", SHAPES)
@every_rung
def test_thin_and_ragged_problems_are_right(r, shape, kind):
    run_checked(r.matmul, *operands(r, shape, kind))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("shape", LONG)
@every_rung
def test_a_very_long_k_stays_within_the_derived_bound(r, shape, kind):
    run_checked(r.matmul, *operands(r, shape, kind))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", ["130x140x150", "128x256x64"])
@pytest.mark.parametrize("r", [r for r in GPU if "float64" in r.dtypes], ids=lambda r: r.name)
def test_float64_is_right(r, shape):
    run_checked(r.matmul, *operands(r, shape, "normal", "float64"))


@pytest.mark.sample(3)
@pytest.mark.parametrize("r", [r for r in GPU if "int32" in r.dtypes], ids=lambda r: r.name)
def test_int32_wraps_around(r):
    m, n, k = (130, 136, 140) if ON_GPU else (3, 4, 8)
    a, b = large_ints(r, m, n, k)
    c = run_checked(r.matmul, a, b)
    exact = a.cpu().numpy().astype(object) @ b.cpu().numpy().astype(object)
    assert max(abs(value) for value in exact.flat) > 2**33  # so there was something to wrap
    assert int(c[0, 0]) == (int(exact[0, 0]) + 2**31) % 2**32 - 2**31


@pytest.mark.sample(3)
@pytest.mark.parametrize("which", ["a", "b", "out", "all"] if ON_GPU else ["all"])
@every_rung
def test_operands_that_begin_beside_16_bytes_are_right_or_refused(r, which):
    a, b = operands(r, "132x260x36" if ON_GPU else SMALL, "integers")
    expected = (a.cpu().double() @ b.cpu().double()).float()
    out = torch.full((a.shape[0], b.shape[1]), -7.0, device=PLACE)
    a, b, out = (
        shifted(tensor) if which in (name, "all") else tensor
        for name, tensor in (("a", a), ("b", b), ("out", out))
    )
    try:
        c = r.matmul(a, b, out=out)
    except ValueError as error:
        assert "align" in str(error)
        return
    assert c is out and torch.equal(out.cpu(), expected)


@pytest.mark.skipif(ON_GPU, reason="a GPU would be of no use to the tests after this one")
def test_a_launcher_that_does_not_look_at_addresses_is_caught():
    from tiled_matmul.kit.launch import launch
    from tiled_matmul.ladder import cuda_vectorised as module

    class Blind:
        layout = "nn"

        @staticmethod
        def matmul(a, b, out):
            launch(module.cuda_vectorised_kernel, (1, 1), (module.THREADS, 1), a, b, out)
            return out

    with pytest.raises(KernelError, match="16 bytes at an address that is no multiple"):
        test_operands_that_begin_beside_16_bytes_are_right_or_refused(Blind, "all")


@pytest.mark.parametrize("edge", [4, 12])
def test_what_lies_beside_out_stays_as_it_was(edge):
    # C in the middle of a larger buffer: stores past its end would show.
    for r in GPU if ON_GPU else [r for r in GPU if r.chapter < 7]:
        a, b = operands(r, f"{edge}x{edge + 4}x{edge}", "integers")
        room = torch.full((3 * edge * (edge + 4),), -7.0, device=PLACE)
        middle = slice(edge * (edge + 4), 2 * edge * (edge + 4))
        run = r.matmul(a, b, out=room[middle].reshape(edge, edge + 4))
        assert torch.equal(run.cpu(), (a.cpu().double() @ b.cpu().double()).float()), r.name
        room[middle] = -7.0
        assert bool((room == -7.0).all()), r.name


def test_sums_that_do_not_wrap_are_caught():
    """The planted fault: an int32 product summed in float64 and cut off at the ends of int32."""
    r = rung("cuda_naive")

    def saturates(a, b, out=None):
        exact = a.double() @ b.double()
        out.copy_(exact.clamp(-(2.0**31), 2.0**31 - 1).int())
        return out

    with pytest.raises(MatmulError):
        run_checked(saturates, *large_ints(r, 3, 4, 5))
