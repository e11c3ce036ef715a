"""Shared code of kernels in Gluon: their tiles, descriptors, and the functions around a product.

`hopper` says where such a kernel runs: on GPUs with `wgmma`, for 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper as names
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.layouts import describable
from tiled_matmul.kit.programs import aligned_copy
from tiled_matmul.kit.withheld import withholding
from tiled_matmul.machine.device import shared_limit

HOPPER = (9, 0)
PIECE = 64  # columns of C that a group stores at a time
GROUP_ROWS = (64, 128)
MOST_GROUPS = 3
WIDTHS = (0, 16, 32, 64, 128, 256)
HEIGHTS = (64, 128, 256)
DEPTHS = (32, 64, 128)
MOST_SUMS = 128  # of a thread
BARRIER_BYTES = 1024  # room for barriers, and for buffers to begin at multiples of 1,024 bytes
# Registers of a thread that multiplies, by the number of groups, and of one that copies.
REGISTERS = {1: 240, 2: 240, 3: 160}
FEW = gl.constexpr(24)
# Triton 3.8 gave these two shorter names, and 3.9 took the longer ones away.
async_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
async_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@dataclass(frozen=True)
class Tile:
    """Tiles of a kernel in Gluon: `groups` groups of warps own `rows` rows of A each.

    They share a tile of B of `wide` columns, and beside it one of `narrow`, which may be 0. `k` is
    the block along K; the ring has room for `stages` of them.
    """

    rows: int
    groups: int
    wide: int
    narrow: int
    k: int
    stages: int

    @property
    def registers(self) -> int:
        """The registers of a thread that multiplies."""
        return REGISTERS[self.groups]

    @property
    def height(self) -> int:
        """The rows of the tile of C."""
        return self.rows * self.groups

    @property
    def width(self) -> int:
        """The columns of the tile of C."""
        return self.wide + self.narrow

    @property
    def piece(self) -> int:
        """The columns that are stored at a time."""
        return min(PIECE, self.wide, self.narrow or self.wide, PIECE * 64 // self.rows)

    @property
    def shared_bytes(self) -> int:
        """The bytes of 16-bit elements in shared memory, those of C's pieces among them."""
        ring = self.stages * (self.height + self.width) * self.k
        return 2 * (ring + self.height * self.piece)

    def check(self) -> None:
        """Raise TypeError or ValueError unless such a kernel can be made."""
        for name, values in (("wide", WIDTHS[1:]), ("narrow", WIDTHS), ("k", (32, 64, 128))):
            if getattr(self, name) not in values:
                known = ", ".join(map(str, values))
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        positive("num_stages", self.stages)
        if self.stages < 2:  # a stage is given back when the next product has begun
            raise ValueError(f"num_stages must be 2 or more, got {self.stages}")
        most = shared_limit(HOPPER)
        if self.shared_bytes > most:
            raise ValueError(
                f"{self} takes {self.shared_bytes} bytes of shared memory; there are {most}"
            )
        sums, most = self.rows * self.width // 128, self.registers - 40
        if sums > most:
            raise ValueError(f"{self} has {sums} sums for each thread; {most} are possible")


@dataclass(frozen=True)
class Order:
    """How a kernel walks over C, in groups of `group_m`, and which matrices lie by columns.

    With `cut`, K is in parts, each with sums of its own. With `overlap` the kernel starts early,
    waits for the one before it, and lets the next one start early.
    """

    group_m: int
    a_transposed: bool
    b_transposed: bool
    c_transposed: bool
    cut: bool = False
    overlap: bool = False

    @property
    def leads(self) -> bool:
        """Does it let the next kernel start early? With K in parts that takes longer."""
        return self.overlap and not self.cut


def tile_of(block: Any, num_stages: Any) -> Tile:
    """Return the Tile of a block (rows, columns or (wide, narrow), K).

    Groups have 64 rows each, 128 where that would be more than MOST_GROUPS. Raises TypeError or
    ValueError for a block that cannot be.
    """
    if not isinstance(block, tuple) or len(block) != 3:
        raise TypeError(f"block must be (rows, columns or (wide, narrow), K), got {block!r}")
    high, columns, k = block
    widths = columns if isinstance(columns, tuple) else (columns, 0)
    if len(widths) != 2:
        raise TypeError(f"a block has one width or two, got {block!r}")
    positive("BLOCK_M", high)
    rows = next((r for r in GROUP_ROWS if high % r == 0 and high // r <= MOST_GROUPS), None)
    if rows is None:
        raise ValueError(f"a block has 1 to 3 times 64 or 128 rows, got {high}")
    tile = Tile(rows, high // rows, *widths, k, num_stages)
    tile.check()
    return tile


def runs_on(tensor: Any, capability: tuple[int, int]) -> bool:
    """Return whether kernels for 16-bit floats and this compute capability multiply such a tensor.

    Without a GPU they do: they are compiled only, or the interpreter runs them.
    """
    gpu = select().gpu
    return tensor.element_size() == 2 and (gpu is None or gpu.capability == capability)


def hopper(tensor: Any) -> bool:
    """Return whether kernels with `wgmma` multiply such a tensor here."""
    return runs_on(tensor, HOPPER)


def multicasts() -> bool:
    """Return whether blocks of a cluster can share copies: from Triton 3.8 on.

    The interpreter can from 3.7 on, whose Gluon has the names. Triton 3.7 also compiles such
    kernels, but there each block arrives at a barrier of its own where it should arrive at the one
    that they share, so that nobody waits for the other blocks.
    """
    interpreted = select().name == "simulator" and not withholding() and hasattr(names, "cluster")
    return interpreted or tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 8)


def of_rows(tensor: Any, rows: int, columns: int, bases: Sequence = ()) -> Any:
    """Return a descriptor of a row-major matrix for tiles of rows × columns, in Gluon's layout.

    `bases` say how the blocks of a cluster share a tile. A matrix that no descriptor fits is first
    copied to new memory.
    """
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    tensor = tensor if describable(tensor) else aligned_copy(tensor)
    kind = getattr(gl, str(tensor.dtype).removeprefix("torch."))
    shares = {"cga_layout": list(bases)} if bases else {}
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], kind, **shares)
    sizes = list(tensor.shape), list(tensor.stride())
    return TensorDescriptor(tensor, *sizes, [rows, columns], layout)


def check_rings(
    block: Any, num_stages: Any, groups: int = 1, piece: int | None = None, fewest: int = 1
) -> tuple[int, int]:
    """Return (rows of C that a group of warps owns, columns of it that it stores at a time).

    `block` is (BLOCK_M, BLOCK_N, BLOCK_K) for `groups` groups of warps; the ring has `num_stages`
    stages, `fewest` or more, of 16-bit elements; `piece` is how many columns are stored at a time
    at most, None all. Raises TypeError or ValueError for tiles that the tensor cores, the registers
    or the shared memory of a multiprocessor cannot hold.
    """
    if not isinstance(block, tuple) or len(block) != 3:
        raise TypeError(f"block must be (BLOCK_M, BLOCK_N, BLOCK_K), got {block!r}")
    for name, size, known in zip("MNK", block, (HEIGHTS, WIDTHS[1:], DEPTHS), strict=True):
        if type(size) is not int or size not in known:
            among = ", ".join(map(str, known))
            raise ValueError(f"BLOCK_{name} must be one of {among}, got {size!r}")
    positive("num_stages", num_stages)
    if num_stages < fewest:
        raise ValueError(f"num_stages must be {fewest} or more, got {num_stages}")
    rows, high, wide, deep = block[0] // groups, *block
    if rows not in GROUP_ROWS or rows * wide // 128 > MOST_SUMS:
        raise ValueError(
            f"{groups} groups of warps have {rows}×{wide} sums of {block} each; that must be 64 or "
            f"128 rows, and at most {MOST_SUMS} sums for each of 128 threads"
        )
    piece = min(piece or wide, wide)
    bytes = 2 * (num_stages * (high + wide) * deep + high * piece)
    most = shared_limit(HOPPER)
    if bytes > most - BARRIER_BYTES:
        raise ValueError(
            f"{num_stages} stages of {block} take {bytes} bytes of shared memory; there are {most}"
        )
    return rows, piece


@gluon.jit
def tiles(M, N, HEIGHT: gl.constexpr, WIDTH: gl.constexpr):  # noqa: N803
    """Return how many tiles cover C."""
    return gl.cdiv(M, HEIGHT) * gl.cdiv(N, WIDTH)


@gluon.jit
def make_barriers(number: gl.constexpr, count: gl.constexpr):
    """Return `number` barriers, for `count` arrivals each."""
    made = gl.allocate_shared_memory(gl.int64, [number, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(number):
        mbarrier.init(made.index(i), count=count)
    fence_async_shared()  # the copy engine sees that they are set up
    return made


@gluon.jit
def place_of(
    tile, M, N, HEIGHT: gl.constexpr, WIDTH: gl.constexpr, GROUP_M: gl.constexpr  # noqa: N803
):  # fmt: skip
    """Return the first row and column of a tile of C, in chapter 11's groups."""
    tiles_m, tiles_n = gl.cdiv(M, HEIGHT), gl.cdiv(N, WIDTH)
    group = tile // (GROUP_M * tiles_n)
    rows = min(tiles_m - group * GROUP_M, GROUP_M)
    within = tile % (GROUP_M * tiles_n)
    return (group * GROUP_M + within % rows) * HEIGHT, within // rows * WIDTH


@gluon.jit
def start_copy(source, row, column, arrived, to, TRANSPOSED: gl.constexpr):  # noqa: N803
    """Start the copy of the tile at (row, column), which counts at the barrier `arrived`."""
    if TRANSPOSED:
        async_load(source, [column, row], arrived, to)
    else:
        async_load(source, [row, column], arrived, to)


@gluon.jit
def operand(tile, TRANSPOSED: gl.constexpr):  # noqa: N803
    """Return a tile in shared memory as the product takes it."""
    return tile.permute((1, 0)) if TRANSPOSED else tile


@gluon.jit
def zeros(ROWS: gl.constexpr, WIDTH: gl.constexpr):  # noqa: N803
    """Return sums of zero for one group of four warps."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 16])
    return gl.zeros((ROWS, WIDTH), gl.float32, layout)


@gluon.jit
def store(sums, c, row, column, piece, TRANSPOSED: gl.constexpr):  # noqa: N803
    """Store the sums at (row, column) of C, as many columns at a time as `piece` has."""
    to = operand(piece, TRANSPOSED)
    if sums.shape[1] == to.shape[1]:
        tma.store_wait(0)  # until the piece before it has left shared memory
        to.store(sums.to(c.dtype))
        fence_async_shared()
        if TRANSPOSED:
            async_store(c, [column, row], piece)
        else:
            async_store(c, [row, column], piece)
    else:
        HALF: gl.constexpr = sums.shape[1] // 2  # noqa: N806
        near, far = sums.reshape((sums.shape[0], 2, HALF)).permute(0, 2, 1).split()
        store(near, c, row, column, piece, TRANSPOSED)
        store(far, c, row, column + HALF, piece, TRANSPOSED)
