"""Code shared by the Numba CUDA launchers: the grid that covers C, and torch's stream."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np

from tiled_matmul.kit import plans
from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.backend import select
from tiled_matmul.microscope.cuda.hardware import MAX_GRID, MAX_THREADS
from tiled_matmul.microscope.cuda.kernel import run, watched

MAX_GRID_YZ = MAX_GRID[1]


def check_block(block: tuple[int, int]) -> tuple[int, int]:
    """Return block (x, y) if a GPU can launch it; otherwise raise TypeError or ValueError."""
    if not isinstance(block, tuple) or len(block) != 2:
        raise TypeError(f"block must be a pair (x, y), got {block!r}")
    x, y = (positive(f"block {axis}", size) for axis, size in zip("xy", block, strict=True))
    if x * y > MAX_THREADS:
        raise ValueError(f"block {block} has {x * y} threads; a GPU allows {MAX_THREADS}")
    return x, y


def covering_grid(extent_x: int, extent_y: int, block: tuple[int, int]) -> tuple[int, int]:
    """Return the grid (x, y) of blocks that covers extent_x × extent_y elements, rounded up.

    Raises ValueError if y exceeds the GPU's limit.
    """
    grid = -(-extent_x // block[0]), -(-extent_y // block[1])
    if grid[1] > MAX_GRID_YZ:
        raise ValueError(
            f"{extent_y} elements along y in blocks of {block[1]} need {grid[1]} blocks; "
            f"a GPU allows {MAX_GRID_YZ} along y"
        )
    return grid


def need_capability(wanted: tuple[int, int], what: str) -> None:
    """Raise ValueError if the GPU's compute capability is below `wanted`, such as (8, 0).

    `what` names the feature in the message. The interpreter supports every feature.
    """
    gpu = select().gpu
    if gpu is None or watched() or gpu.capability >= wanted:
        return
    there, needed = (".".join(map(str, version)) for version in (gpu.capability, wanted))
    raise ValueError(f"{what} need compute capability {needed}; {gpu.name} has {there}")


def one(tensor) -> np.generic:
    """Return 1 in the tensor's dtype: an `alpha` that changes nothing."""
    return np.dtype(str(tensor.dtype).removeprefix("torch.")).type(1)


def multiprocessors() -> int:
    """Return the GPU's number of multiprocessors; in the interpreter that of an H200, 132."""
    if not select().on_gpu:
        return 132
    import torch

    return torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count


def launch(kernel, grid: tuple, block: tuple, *arguments) -> None:
    """Launch a Numba kernel on torch tensors and numbers, on torch's current stream.

    Without a GPU, or inside a trace, the interpreter runs the kernel to completion instead.
    """
    if not select().on_gpu or watched():
        run(kernel, grid, block, *arguments)
        return
    import torch
    from numba import cuda

    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    tensor = torch.Tensor
    passed = [cuda.as_cuda_array(x, sync=False) if isinstance(x, tensor) else x for x in arguments]
    kernel[grid, block, stream](*passed)
    plans.note(lambda plan: _again(plan, kernel, grid, block, arguments, passed))


_thread = threading.local()


def _again(plan, kernel, grid: tuple, block: tuple, arguments: tuple, passed: list) -> Callable:
    """Return the step that launches the kernel as Numba has just done, on a plan's tensors."""
    import torch
    from cuda.bindings import driver
    from numba import cuda

    made = kernel.overloads[tuple(map(kernel.typeof_pyval, passed))]
    numbers: list = []  # what Numba passes: of an array its size, address, shape and strides
    slots = []
    for kind, argument, value in zip(made.argument_types, arguments, passed, strict=True):
        first = len(numbers)
        made._prepare_args(kind, value, 0, [], numbers)
        if isinstance(argument, torch.Tensor):
            addresses = [getattr(x, "value", x) for x in numbers]
            slots.append((addresses.index(argument.data_ptr(), first), plan.find(argument)))
    values = [ctypes.c_ssize_t(x) if isinstance(x, int) else x for x in numbers]
    places = [ctypes.addressof(x) for x in values]
    function = made._codelibrary.get_cufunc()  # which ends when nobody holds it
    sizes = (*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3])

    def step(tensors: list, stream: int) -> None:
        if not hasattr(_thread, "context"):
            _thread.context = cuda.current_context()  # a new thread has none yet
        filled, kept = places.copy(), [values]
        for place, which in slots:
            address = ctypes.c_void_p(tensors[which].data_ptr())
            kept.append(address)
            filled[place] = ctypes.addressof(address)
        parameters = (ctypes.c_void_p * len(filled))(*filled)
        rest = 0, stream, ctypes.addressof(parameters), 0
        (error,) = driver.cuLaunchKernel(int(function.handle), *sizes, *rest)
        if error != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"the kernel was not launched: {error}")

    return step
