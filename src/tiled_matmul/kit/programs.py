"""Code shared by the Triton launchers: block checks, the grid, descriptors and launches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import triton
import triton.language as tl

from tiled_matmul.kit import plans, withheld
from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.layouts import ALIGNED, describable, either_way, nearer_by_columns
from tiled_matmul.microscope.cuda.hardware import MAX_GRID

SMALLEST_BLOCK = 16  # tl.dot needs at least this much along K
LONGEST_NUMBER = 2**31  # a program counts tiles and steps in 32 bits
WARPS = (1, 2, 4, 8, 16)
LOADED = 16  # bytes that a thread loads at once, at most, from a multiple of them
# Block and warps for products on CUDA cores: accumulators and operands fit into registers.
SMALL = (64, 64, 16), 8
# Block and warps where tiles pass through registers because nothing copies them directly to shared
# memory, or where a block has 99 KiB of shared memory.
MIDDLE = (128, 128, 32), 8


@triton.jit
def grouped(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):  # noqa: N803
    """Return the (tile_m, tile_n) of a program: GROUP_M tiles down, then the next column."""
    group = program // (GROUP_M * tiles_n)
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    return group * GROUP_M + within % rows, within // rows


@triton.jit
def halves(tile):
    """Return the left and the right half of a tile's columns."""
    rows: tl.constexpr = tile.shape[0]
    half: tl.constexpr = tile.shape[1] // 2
    return tl.split(tl.permute(tl.reshape(tile, (rows, 2, half)), (0, 2, 1)))


@triton.jit
def store_tile(c, batch, row, column, tile, HALVES: tl.constexpr):  # noqa: N803
    """Store a tile of matrix number `batch` by a descriptor, in two halves if it is of halves."""
    if HALVES:
        near, far = halves(tile.to(c.dtype))
        c.store([batch, row, column], near.reshape(c.block_shape))
        c.store([batch, row, column + tile.shape[1] // 2], far.reshape(c.block_shape))
    else:
        c.store([batch, row, column], tile.to(c.dtype).reshape(c.block_shape))


def check_blocks(block: Any, num_warps: Any = 4, num_stages: Any = 1) -> None:
    """Raise TypeError or ValueError unless Triton can multiply such tiles.

    `block` is (BLOCK_M, BLOCK_N, BLOCK_K), each a power of two of at least 16; `num_warps` is one
    of WARPS, `num_stages` is positive.
    """
    if not isinstance(block, tuple) or len(block) != 3:
        raise TypeError(f"block must be (BLOCK_M, BLOCK_N, BLOCK_K), got {block!r}")
    for name, size in zip("MNK", block, strict=True):
        positive(f"BLOCK_{name}", size)
        if size < SMALLEST_BLOCK or size & (size - 1):
            raise ValueError(
                f"BLOCK_{name} must be a power of two from {SMALLEST_BLOCK} on, got {size}"
            )
    positive("num_warps", num_warps)
    if num_warps not in WARPS:
        raise ValueError(f"num_warps must be one of {', '.join(map(str, WARPS))}, got {num_warps}")
    positive("num_stages", num_stages)


def usual(
    block: Any, num_warps: Any, tensor: Any, best: tuple, described: bool = False
) -> tuple[Any, Any]:
    """Return (block, num_warps), each None replaced by that of `best`, MIDDLE or SMALL.

    Triton uses tensor cores for 16-bit floats from compute capability 8.0 on. Other products run on
    CUDA cores, and threads lack the registers for a large block's accumulators. `described`
    means that the kernel copies tiles through descriptors, which the hardware supports from 9.0 on.
    """
    gpu = select().gpu
    capability = (9, 0) if gpu is None else gpu.capability
    if tensor.element_size() != 2 or capability < (8, 0):
        best = SMALL
    elif described and not (9, 0) <= capability < (12, 0):
        best = MIDDLE
    return best[0] if block is None else block, best[1] if num_warps is None else num_warps


def check_group(group_m: Any, tiles_n: int) -> None:
    """Raise TypeError or ValueError unless the tiles of a group can be counted in 32 bits."""
    positive("group_m", group_m)
    if group_m * tiles_n >= LONGEST_NUMBER:
        raise ValueError(f"group_m={group_m} times {tiles_n} tiles along N is 2^31 or more")


def check_count(tiles: int) -> int:
    """Return the number of tiles. Raises ValueError if programs cannot count them in 32 bits."""
    if tiles >= LONGEST_NUMBER:
        raise ValueError(f"there are {tiles} tiles; a program counts them in 32 bits")
    return tiles


def check_steps(block: tuple[int, int, int], a: Any, b: Any) -> None:
    """Raise ValueError if BLOCK_K steps along K exceed 32 bits, for the strides of a and b."""
    for name, stride in (("a", a.stride(1)), ("b", b.stride(0))):
        if stride * block[2] >= LONGEST_NUMBER:
            raise ValueError(
                f"{name} has the stride {stride} along K: {block[2]} such steps are 2^31 or more"
            )


def cover(size: int, block: int, axis: str = "x") -> int:
    """Return how many blocks cover `size` elements. Raises ValueError above the grid's limit."""
    blocks = -(-size // block)
    most = MAX_GRID["xyz".index(axis)]
    if blocks > most:
        raise ValueError(
            f"{size} elements in blocks of {block} need {blocks} programs; a GPU allows {most} "
            f"along {axis}"
        )
    return blocks


def describe(tensor: Any, rows: int, columns: int) -> tuple[Any, bool]:
    """Return (descriptor, transposed) for copies of rows × columns tiles of a matrix.

    A descriptor needs one stride of 1; the other strides and the address must be multiples of 16
    bytes. A column-major matrix is described as its transpose, in tiles of columns × rows. A matrix
    that no descriptor fits is first copied to new memory with padded rows. A batch of matrices is
    3-D, and a tile of one matrix is then 1 × rows × columns.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    tensor = made_describable(tensor)
    transposed = not describable(tensor)
    if transposed:
        tensor, rows, columns = tensor.mT, columns, rows
    block = [1] * (tensor.ndim - 2) + [rows, columns]
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block), transposed


def made_describable(tensor: Any) -> Any:
    """Return the matrix if a descriptor fits it or its transpose, else an aligned copy."""
    return tensor if either_way(tensor) else copied_as_it_lies(tensor)


def copied_as_it_lies(tensor: Any) -> Any:
    """Return an aligned copy, by columns if the matrix lies so: to transpose takes much longer."""
    if nearer_by_columns(tensor):
        return aligned_copy(tensor.mT).mT
    return aligned_copy(tensor)


def aligned_copy(tensor: Any) -> Any:
    """Return a copy of the matrix whose rows begin at multiples of 16 bytes."""
    return plans.copied(aligned_like(tensor), tensor)


def aligned_like(tensor: Any) -> Any:
    """Return an uninitialised matrix of this shape whose rows begin at multiples of 16 bytes."""
    *others, columns = tensor.shape
    fit = ALIGNED // tensor.element_size()
    padded = -(-columns // fit) * fit
    return plans.scratch(*others, padded, dtype=tensor.dtype, device=tensor.device)[..., :columns]


def wraps_evenly(m: int, n: int, tensor: Any) -> bool:
    """Return whether rows modulo M and columns modulo N wrap around between two widest loads.

    Only then may a kernel promise that they are neighbours: a load that begins behind the wrap
    would not lie at a multiple of its size, and the GPU stops with a misaligned address.
    """
    run = LOADED // tensor.element_size()
    return m % run == 0 and n % run == 0


def precision(tensor: Any) -> str:
    """Return `input_precision` for `tl.dot`: "ieee" for float32, so that TF32 is not used."""
    return "ieee" if tensor.element_size() == 4 else "tf32"


def launched(matmul: Any, a: Any, b: Any, **options: Any) -> list[tuple]:
    """Return the launches of a Triton rung in order, each as (kernel, arguments, options).

    Nothing is launched; `tile_code(kernel, *arguments, **options)` compiles one. `matmul` is the
    rung's launcher and `options` are its options. Its exceptions pass through.
    """
    launches = withheld.of(matmul, a, b, **options)
    return [(each.kernel, each.arguments, each.options) for each in launches]


@contextmanager
def without_notice() -> Iterator[None]:
    """Suppress the deprecation warning of Triton 3.7 and 3.8 for block pointers.

    It would appear in a cell's output at every use. Chapter 10 mentions it once.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"tl\.make_block_ptr is deprecated")
        yield


def launch(kernel: Any, grid: tuple, *arguments: Any, **options: Any) -> Any:
    """Launch a Triton kernel on torch tensors and return the compiled kernel, if there is one.

    Raises ValueError, before anything runs, for tiles that need more than the GPU has.
    """
    if not options.get("launch_pdl"):  # Triton 3.6 knows it for NVIDIA's GPUs alone
        options.pop("launch_pdl", None)
    if withheld.withhold(kernel, grid, None, arguments, options):
        return None
    from triton.runtime.errors import OutOfResources

    try:
        compiled = kernel[grid](*arguments, **options)
    except OutOfResources as error:
        raise ValueError(
            f"{kernel.__name__} with {options} needs more than this GPU has: {error}"
        ) from error
    plans.kernel(compiled, grid, arguments)
    return compiled


def can_overlap() -> bool:
    """Return whether a kernel can start before the one that it depends on has finished."""
    chosen = select()
    return chosen.name != "simulator" and (chosen.gpu is None or chosen.gpu.capability >= (9, 0))


def overlapping(asked: Any) -> bool:
    """Return whether a kernel is to start early: as asked, or with None wherever it can.

    Raises TypeError for anything else, and ValueError if it is asked for and cannot be.
    """
    if asked is not None and not isinstance(asked, bool):
        raise TypeError(f"overlap must be None, True or False, got {asked!r}")
    if asked and not (can_overlap() or withheld.withholding()):
        raise ValueError("overlap=True needs a GPU of compute capability 9.0 or higher")
    return can_overlap() if asked is None else asked


def memory_on(device: Any) -> Callable:
    """Return Triton's allocator for descriptors that are created in a kernel."""
    import torch

    def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int8, device=device)

    return allocate
