"""How many blocks fit on a multiprocessor, against sums by hand and, on a GPU, its driver."""

from collections import Counter

import pytest

from tiled_matmul.microscope.compiled.cuda import Compiled
from tiled_matmul.models.occupancy import LIMITS, Occupancy, occupancy


def made(registers, shared=0, cc=(9, 0)):
    return Compiled("kernel", cc, registers, 0, shared, Counter(), Counter(), Counter())


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "expected"),
    [
        (32, 0, 256, Occupancy(8, 64, 1.0, "registers")),
        (128, 8320, 256, Occupancy(2, 16, 0.25, "registers")),
        (129, 8320, 256, Occupancy(1, 8, 0.125, "registers")),  # a register more, a block less
        (255, 0, 256, Occupancy(1, 8, 0.125, "registers")),
        (40, 0, 256, Occupancy(6, 48, 0.75, "registers")),
        (16, 0, 1024, Occupancy(2, 64, 1.0, "warps")),
        (16, 0, 32, Occupancy(32, 32, 0.5, "blocks")),
        (16, 0, 33, Occupancy(32, 64, 1.0, "warps")),  # two warps, one nearly empty
        (16, 113 * 1024, 32, Occupancy(2, 2, 2 / 64, "shared memory")),
        (16, 114 * 1024, 32, Occupancy(1, 1, 1 / 64, "shared memory")),  # a kilobyte is reserved
    ],
)
def test_on_an_h200(registers, shared, threads, expected):
    assert occupancy(made(registers, shared), threads) == expected


def test_other_gpus_have_other_limits():
    assert occupancy(made(32, cc=(7, 5)), 256).warps == 32
    assert occupancy(made(32, cc=(8, 6)), 256).warps == 48
    assert occupancy(made(16, 32 * 1024, (7, 5)), 32).blocks == 2  # nothing is reserved there


def test_what_does_not_fit_and_what_is_not_known_are_errors():
    with pytest.raises(ValueError, match="does not fit: registers"):
        occupancy(made(255), 1024)
    with pytest.raises(ValueError, match=r"capability \(6, 0\); known: 7.0"):
        occupancy(made(32, cc=(6, 0)), 256)


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [64, 256])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (8, 8), (8, 16)])
def test_the_driver_says_the_same(rows, columns, threads):
    from numba import cuda, float32, types

    from tiled_matmul.ladder import cuda_thread_tile_2d
    from tiled_matmul.microscope.compiled.cuda import compiled

    matrices = (types.Array(float32, 2, "C"),) * 3
    kernel = cuda_thread_tile_2d.kernel(rows, columns)
    found = compiled(kernel, *matrices)
    if found.cc not in LIMITS:
        pytest.skip(f"no limits are known for {found.cc}")
    kernel.compile(matrices)
    function = kernel.overloads[matrices]._codelibrary.get_cufunc()
    blocks = cuda.current_context().get_active_blocks_per_multiprocessor(function, threads, 0)
    assert occupancy(found, threads).blocks == blocks
