"""Code shared by the Numba CUDA launchers: the grid that covers C, and torch's stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tiled_matmul.kit import plans, withheld
from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.integers import MAX_SIZE
from tiled_matmul.microscope.cuda.hardware import MAX_GRID, MAX_THREADS
from tiled_matmul.microscope.cuda.kernel import run, watched
from tiled_matmul.microscope.cuda.unsigned import is_marked
from tiled_matmul.microscope.written import function_of

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


def launched(matmul: Callable, a: Any, b: Any, **options: Any) -> list[tuple]:
    """Return the launches of a Numba CUDA rung in order, each as (kernel, arguments).

    Nothing is launched; `compiled(kernel, *arguments)` compiles one. `matmul` is the rung's
    launcher and `options` are its options. Its exceptions pass through.
    """
    launches = withheld.of(matmul, a, b, **options)
    return [(each.kernel, each.arguments) for each in launches]


def _check_sizes(kernel: Any, arguments: tuple) -> None:
    """Raise ValueError for a size that `kit.integers` would change."""
    for x in arguments:
        shape = tuple(getattr(x, "shape", ()))
        if len(shape) > 1 and max(shape) > MAX_SIZE:
            name = function_of(kernel).__name__
            raise ValueError(f"{name} allows {MAX_SIZE} elements along an axis, got {shape}")


def launch(kernel, grid: tuple, block: tuple, *arguments) -> None:
    """Launch a Numba kernel on torch tensors and numbers, on torch's current stream.

    Without a GPU, or inside a trace, the interpreter runs the kernel to completion instead. Raises
    ValueError if a kernel without signs gets a tensor with several axes of which one is too long
    for 32 bits.
    """
    if is_marked(function_of(kernel)):
        _check_sizes(kernel, arguments)
    if withheld.withhold(kernel, grid, block, arguments, {}):
        return
    if not select().on_gpu or watched():
        run(kernel, grid, block, *arguments)
        return
    import torch

    from tiled_matmul.kit.machine_code import Launch, machine_code

    made = Launch(machine_code(kernel, arguments), grid, block, arguments)
    addresses = [x.data_ptr() for x in arguments if isinstance(x, torch.Tensor)]
    made.begin(addresses, torch.cuda.current_stream().cuda_stream)
    plans.note(lambda plan: made.noted(plan, arguments))
