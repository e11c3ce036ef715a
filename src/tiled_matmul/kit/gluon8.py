"""What a kernel in Gluon for 8-bit floats needs besides `kit.gluon`: its tile and its scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.float8 import SHARED, Scales, by_k
from tiled_matmul.kit.gluon import HOPPER, MOST_GROUPS, REGISTERS
from tiled_matmul.kit.withheld import withholding
from tiled_matmul.machine.device import shared_limit

ROWS = 64  # of a group of four warps
KINDS = {"float8_e4m3fn": gl.float8e4nv, "float8_e5m2": gl.float8e5}
FAST, PROMOTED, BY_BLOCKS = (gl.constexpr(mode) for mode in range(3))
OPEN = gl.constexpr(hasattr(gl.shared_memory_descriptor, "reinterpret"))  # Triton 3.9's name
SPARE = 32  # registers of a thread that hold neither sums nor scales


@dataclass(frozen=True)
class Tile8:
    """A tile of C: `groups` groups of warps own 64 rows each, of `wide` columns.

    The ring has room for `stages` blocks of 128 of K. `mode` is FAST, PROMOTED or BY_BLOCKS; then
    rows of A, or columns of B, share scales in blocks of 128 with `a_square` and `b_square`.
    `group_m` is how many tiles a group has along M. C's elements have `c_bytes`.
    """

    groups: int
    wide: int
    stages: int
    group_m: int
    mode: int
    a_square: bool = False
    b_square: bool = False
    c_bytes: int = 2
    rows: int = ROWS
    k: int = SHARED

    @property
    def registers(self) -> int:
        """The registers of a thread that multiplies."""
        return REGISTERS[self.groups]

    @property
    def height(self) -> int:
        """The rows of the tile."""
        return self.rows * self.groups

    @property
    def width(self) -> int:
        """The columns of the tile."""
        return self.wide

    @property
    def piece(self) -> int:
        """The columns that are stored at a time."""
        return min((64 if self.groups == MOST_GROUPS else 128) // self.c_bytes, self.wide)

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory, but for barriers."""
        scales = self.height * (not self.a_square) + self.wide * (not self.b_square)
        scales *= 4 * (self.mode == BY_BLOCKS.value)
        ring = self.stages * ((self.height + self.wide) * self.k + scales)
        return ring + self.height * self.piece * self.c_bytes

    def check(self) -> None:
        """Raise TypeError or ValueError unless such a kernel can be made."""
        positive("groups", self.groups, MOST_GROUPS)
        positive("num_stages", self.stages)
        if self.wide not in (32, 64, 128, 256):
            raise ValueError(f"a tile is 32, 64, 128 or 256 columns wide, got {self.wide!r}")
        most = shared_limit(HOPPER)
        if self.shared_bytes > most:
            raise ValueError(
                f"{self} takes {self.shared_bytes} bytes of shared memory; there are {most}"
            )
        numbers = ROWS * self.wide // 128 * (1 if self.mode == FAST.value else 2)
        if self.mode == BY_BLOCKS.value and not self.b_square:
            numbers += self.wide // 4  # scales of columns
        if numbers > self.registers - SPARE:
            raise ValueError(
                f"{self} has {numbers} numbers for each thread; "
                f"{self.registers - SPARE} are possible"
            )


def tile8_of(block: Any, num_stages: Any, group_m: int, mode: int, c_bytes: int, squares: tuple):
    """Return the Tile8 of a block (rows, columns). Raises TypeError or ValueError if none is it."""
    if not isinstance(block, tuple) or len(block) != 2:
        raise TypeError(f"block must be (rows, columns), got {block!r}")
    positive("BLOCK_M", block[0])
    if block[0] % ROWS:
        raise ValueError(f"a block has 64, 128 or 192 rows, got {block[0]}")
    tile = Tile8(block[0] // ROWS, block[1], num_stages, group_m, mode, *squares, c_bytes)
    tile.check()
    return tile


def can_run() -> bool:
    """Return whether such a kernel can run here, or is only compiled."""
    gpu = select().gpu
    return withholding() if gpu is None else gpu.capability == HOPPER


def described8(tensor: Any, rows: int, columns: int) -> Any:
    """Return a descriptor in Gluon's layout for tiles of rows × columns of a row-major matrix."""
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    name = str(tensor.dtype).removeprefix("torch.")
    kind = KINDS.get(name) or getattr(gl, name)
    if rows == 1:  # scales
        layout = gl.NVMMASharedLayout(0, kind.primitive_bitwidth, 2)
    else:
        layout = gl.NVMMASharedLayout.get_default_for([rows, columns], kind)
    shape, strides = list(tensor.shape), list(tensor.stride())
    return TensorDescriptor(tensor, shape, strides, [rows, columns], layout)


def scales_in(scales: Any, how: Scales, columns: int) -> Any:
    """Return what the kernel reads scales through: a descriptor of (⌈K/128⌉, rows), or them."""
    if how.square or not how.by_blocks:
        return scales
    return described8(by_k(scales), 1, columns)


@gluon.jit
def make_ring8(tensors, TILE: gl.constexpr):  # noqa: N803
    """Return buffers for tiles of A, B and their scales, and for C; and the barriers."""
    a, b, c, scale_a, scale_b = tensors
    STAGES: gl.constexpr = TILE.stages  # noqa: N806
    GROUPS: gl.constexpr = TILE.groups  # noqa: N806
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES * GROUPS] + a.block_shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_shape, b.layout)
    c_pieces = gl.allocate_shared_memory(c.dtype, [GROUPS] + c.block_shape, c.layout)
    a_scales, b_scales = a_tiles, b_tiles
    if TILE.mode == BY_BLOCKS:
        if not TILE.a_square:
            shape: gl.constexpr = [STAGES * GROUPS] + scale_a.block_shape
            a_scales = gl.allocate_shared_memory(gl.float32, shape, scale_a.layout)
        if not TILE.b_square:
            shape_b: gl.constexpr = [STAGES] + scale_b.block_shape
            b_scales = gl.allocate_shared_memory(gl.float32, shape_b, scale_b.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(full.index(slot), count=1)  # one warp copies
        mbarrier.init(empty.index(slot), count=GROUPS)
    return (a_tiles, b_tiles, a_scales, b_scales, c_pieces), (full, empty)


@gluon.jit
def zeros8(ROWS: gl.constexpr, WIDTH: gl.constexpr):  # noqa: N803
    """Return sums of zero for one group of four warps."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 32])
    return gl.zeros((ROWS, WIDTH), gl.float32, layout)


@gluon.jit
def copied_scales(tile, like, AXIS: gl.constexpr):  # noqa: N803
    """Return scales from shared memory, with an axis more, as the sums `like` lie."""
    size: gl.constexpr = tile.shape[1]
    layout: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    if OPEN:
        flat = tile.reinterpret(gl.float32, [size], layout)
    else:
        flat = tile._reinterpret(gl.float32, [size], layout)
    return gl.expand_dims(flat.load(gl.SliceLayout(AXIS, like.type.layout)), AXIS)


@gluon.jit
def end_scales(scales, first, size, step, like, AXIS: gl.constexpr):  # noqa: N803
    """Return the scales of rows, or of columns, for the end of a sum, with an axis more."""
    COUNT: gl.constexpr = like.shape[1 - AXIS]  # noqa: N806
    at = first + gl.arange(0, COUNT, layout=gl.SliceLayout(AXIS, like.type.layout))
    found = gl.load(scales + at.to(gl.int64) * step, mask=at < size, other=0.0)
    return gl.expand_dims(found, AXIS)
