"""Check a launch and prepare it: shapes, arguments, and the kernel's program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda.execute import ORDERS, Dim3, Runner
from tiled_matmul.microscope.cuda.hardware import MAX_BLOCK, MAX_GRID, MAX_THREADS, SHARED_BYTES
from tiled_matmul.microscope.cuda.memory import Log, Memory
from tiled_matmul.microscope.cuda.operands import bind
from tiled_matmul.microscope.cuda.rewrite import rewrite
from tiled_matmul.microscope.cuda.signatures import converted
from tiled_matmul.microscope.cuda.source import parameters, python_function

MAX_STEPS = 3_000_000


def dim3(what: str, given: Any, limits: tuple[int, int, int]) -> Dim3:
    """Return grid or block sizes as (x, y, z). Raises TypeError or ValueError, which quote them."""
    sizes = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(
        isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in sizes
    ):
        raise TypeError(f"{what} must be one to three ints (x, y, z), got {given!r}")
    full = Dim3(*(int(n) for n in (*sizes, 1, 1)[:3]))
    for axis, size, limit in zip("xyz", full, limits, strict=True):
        if not 1 <= size <= limit:
            raise ValueError(f"{what} {axis} must be at least 1 and at most {limit}, got {given!r}")
    return full


def launch_shape(grid: Any, block: Any, sharedmem: Any) -> tuple[Dim3, Dim3]:
    """Return (grid, block). Raises TypeError or ValueError for sizes that no GPU can launch."""
    grid, block = dim3("grid", grid, MAX_GRID), dim3("block", block, MAX_BLOCK)
    threads = block.x * block.y * block.z
    if threads > MAX_THREADS:
        raise ValueError(f"block {tuple(block)} has {threads} threads; a GPU allows {MAX_THREADS}")
    whole = isinstance(sharedmem, int) and not isinstance(sharedmem, bool)
    if not whole or not 0 <= sharedmem <= SHARED_BYTES:
        raise ValueError(
            f"dynamic shared memory must be 0 to {SHARED_BYTES} bytes, got {sharedmem!r}"
        )
    return grid, block


def prepare(
    kernel: Any,
    grid: Any,
    block: Any,
    arguments: Sequence[Any],
    log: Log | None,
    sharedmem: int = 0,
    blocks: Iterable[tuple[int, ...]] | None = None,
    order: str = "forward",
    seed: int = 0,
    max_steps: int = MAX_STEPS,
) -> tuple[Runner, Sequence[int], Callable[[], None]]:
    """Return (the runner, the numbers of the blocks to run, a function that writes results back).

    Arguments and errors are as in `trace`; without a `log` nothing is recorded.
    """
    grid, block = launch_shape(grid, block, sharedmem)
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
        raise ValueError(f"max_steps must be a positive int, got {max_steps!r}")
    function = python_function(kernel)
    names = parameters(function)
    if len(arguments) != len(names):
        raise TypeError(
            f"{function.__name__} takes {len(names)} arguments ({', '.join(names)}), "
            f"got {len(arguments)}"
        )
    if only := getattr(kernel, "only", ()):
        arguments = converted(function.__name__, only, arguments)
    numbers = _block_numbers(blocks, grid)
    memory = Memory(log, 1)
    bound, finish = bind(memory, names, tuple(arguments))
    program = rewrite(function, bound, log is not None, max_steps)
    memory.sites = max(1, len(program.sites))
    runner = Runner(program, grid, block, bound, memory, sharedmem, order, seed)
    return runner, numbers, finish


def _block_numbers(blocks: Iterable[tuple[int, ...]] | None, grid: Dim3) -> Sequence[int]:
    if blocks is None:
        return range(grid.x * grid.y * grid.z)
    numbers = []
    if not isinstance(blocks, Iterable) or isinstance(blocks, str):
        raise TypeError(f"blocks must list blocks as (x, y, z), got {blocks!r}")
    for place in blocks:
        indices = tuple(place) if isinstance(place, (tuple, list)) else (place,)
        full = (*indices, 0, 0, 0)[: max(3, len(indices))]
        inside = 1 <= len(indices) <= 3 and all(
            isinstance(p, (int, np.integer)) and 0 <= p < n for p, n in zip(full, grid, strict=True)
        )
        if not inside:
            raise ValueError(f"block {place!r} is not in the grid {tuple(grid)}")
        numbers.append(full[0] + grid.x * (full[1] + grid.y * full[2]))
    if not numbers:
        raise ValueError("blocks names no block to run")
    return sorted(set(numbers))
