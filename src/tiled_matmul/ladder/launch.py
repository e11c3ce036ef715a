"""What the Numba CUDA launchers share: the grid that covers C, and torch's stream."""

from __future__ import annotations

from tiled_matmul.backend import select
from tiled_matmul.ladder.arguments import positive
from tiled_matmul.simt.hardware import MAX_GRID, MAX_THREADS
from tiled_matmul.simt.kernel import run, watched

MAX_GRID_YZ = MAX_GRID[1]


def check_block(block: tuple[int, int]) -> tuple[int, int]:
    """Return block (x, y) if a GPU can launch it; raise TypeError or ValueError quoting it."""
    if not isinstance(block, tuple) or len(block) != 2:
        raise TypeError(f"block must be a pair (x, y), got {block!r}")
    x, y = (positive(f"block {axis}", size) for axis, size in zip("xy", block, strict=True))
    if x * y > MAX_THREADS:
        raise ValueError(f"block {block} has {x * y} threads; a GPU allows {MAX_THREADS}")
    return x, y


def covering_grid(extent_x: int, extent_y: int, block: tuple[int, int]) -> tuple[int, int]:
    """Return the grid (x, y) of blocks that covers extent_x × extent_y elements, rounded up.

    Raises ValueError where the grid would be taller than a GPU can launch.
    """
    grid = -(-extent_x // block[0]), -(-extent_y // block[1])
    if grid[1] > MAX_GRID_YZ:
        raise ValueError(
            f"{extent_y} elements along y in blocks of {block[1]} need {grid[1]} blocks; "
            f"a GPU allows {MAX_GRID_YZ} along y"
        )
    return grid


def launch(kernel, grid: tuple, block: tuple, *tensors) -> None:
    """Launch a Numba kernel on torch tensors, in the order of torch's current stream.

    Without a GPU, or where somebody watches, the interpreter runs it to its end.
    """
    if not select().on_gpu or watched():
        run(kernel, grid, block, *tensors)
        return
    import torch
    from numba import cuda

    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    kernel[grid, block, stream](*(cuda.as_cuda_array(tensor, sync=False) for tensor in tensors))
