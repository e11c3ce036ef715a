"""Clusters of thread blocks in Gluon: who has which part of a tile, and which barriers they share.

A program in Gluon is a cluster, and a tile of it is shared among its blocks. A layout says how: it
has a basis for each bit of a block's number, which is how many shares further that bit moves along
each dimension. A basis of zeros means that the blocks with and without that bit have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier

from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.gluon import Tile, async_load, of_rows, start_copy, tile_of
from tiled_matmul.kit.programs import describe

BLOCKS = (1, 2, 4, 8, 16)
cluster = getattr(hopper, "cluster", None)  # Triton 3.6 has none


@dataclass(frozen=True)
class Cluster:
    """A cluster of `blocks` thread blocks, one below the other in C: they share tiles of B.

    Bases of layouts: by `own`, each block has a barrier; by `shared`, all have that of the first;
    by `stacked`, each has its rows of a tile; by `same`, all have the same tile.
    """

    blocks: int

    @property
    def own(self) -> list[list[int]]:
        """Of barriers: each block has its own."""
        return [[x] for x in self._bits]

    @property
    def shared(self) -> list[list[int]]:
        """Of barriers: all blocks arrive at that of the first."""
        return [[0] for _ in self._bits]

    @property
    def stacked(self) -> list[list[int]]:
        """Of tiles: each block has its rows."""
        return [[x, 0] for x in self._bits]

    @property
    def same(self) -> list[list[int]]:
        """Of tiles: each block has all of it."""
        return [[0, 0] for _ in self._bits]

    @property
    def _bits(self) -> list[int]:
        return [1 << bit for bit in range(self.blocks.bit_length() - 1)]


@dataclass(frozen=True)
class ClusterTile(Tile):
    """The tiles of a cluster: those of a Tile in each of `blocks` blocks, one below the other."""

    blocks: int = 1

    @property
    def cluster(self) -> Cluster:
        """The cluster, for layouts."""
        return Cluster(self.blocks)

    @property
    def stack(self) -> int:
        """The rows that one group of warps of each block owns, together."""
        return self.rows * self.blocks

    @property
    def wide_sums(self) -> Any:
        """The layout of the sums of the wide tile."""
        return sums_of(self.wide, self.cluster.stacked)

    @property
    def narrow_sums(self) -> Any:
        """The layout of the sums of the narrow tile."""
        return sums_of(self.narrow, self.cluster.stacked)

    @property
    def all_rows(self) -> int:
        """The rows of the cluster's tile of C."""
        return self.height * self.blocks


def at_once(blocks: int, multiprocessors: int) -> int:
    """Return how many clusters of so many blocks, one a multiprocessor, run at the same time.

    A cluster runs in one group of multiprocessors, and groups of 16 or 18 hold pairs without a
    rest, but not fours: on an H200 there is room for 30 fours, and a 31st waits until one ends.
    """
    usable = multiprocessors if blocks <= 2 else multiprocessors * 10 // 11
    return max(1, usable // blocks)


def check_cluster(blocks: Any, fewest: int = 2) -> Cluster:
    """Return a Cluster. Raises TypeError or ValueError unless `blocks` is a power of two to 16.

    `fewest` is the smallest that is taken.
    """
    positive("blocks", blocks)
    known = [x for x in BLOCKS if x >= fewest]
    if blocks not in known:
        raise ValueError(f"blocks must be one of {', '.join(map(str, known))}, got {blocks}")
    return Cluster(blocks)


def cluster_tile(block: Any, num_stages: Any, blocks: Any) -> ClusterTile:
    """Return a ClusterTile of a block (rows, columns or (wide, narrow), K) in each of `blocks`.

    Raises TypeError or ValueError as `tile_of` and `check_cluster` do.
    """
    check_cluster(blocks, fewest=1)
    tile = tile_of(block, num_stages)
    sizes = tile.rows, tile.groups, tile.wide, tile.narrow, tile.k, tile.stages
    return ClusterTile(*sizes, blocks=blocks)


def sums_of(width: int, bases: Sequence) -> Any:
    """Return the layout of sums of `width` columns, whose rows the blocks of a cluster share."""
    shares = {"cga_layout": list(bases)} if bases else {}
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, width, 16], **shares)


def described_for(tensor: Any, rows: int, columns: int, bases: Sequence) -> tuple[Any, bool]:
    """Return (descriptor, transposed) for a cluster's tiles of rows × columns, in Gluon's layout.

    As `describe`: a column-major matrix is described as its transpose. `bases` say how the blocks
    share rows and columns.
    """
    plain, transposed = describe(tensor, rows, columns)
    turned = [basis[::-1] if transposed else basis for basis in bases]
    return of_rows(plain.base, *plain.block_shape, turned), transposed


@gluon.jit
def make_cluster_barriers(
    number: gl.constexpr, count: gl.constexpr, blocks: gl.constexpr, bases: gl.constexpr
):
    """Return `number` barriers in each of `blocks` blocks; `bases` say which blocks share them."""
    layout: gl.constexpr = mbarrier.MBarrierLayout(cga_layout=bases)
    made = gl.allocate_shared_memory(gl.int64, [number, blocks], layout)
    for i in gl.static_range(number):
        mbarrier.init(made.index(i), count=count)
    fence_async_shared()  # the copy engine sees that they are set up
    return made


if hasattr(cluster, "barrier"):  # from Triton 3.8 on

    @gluon.jit
    def leave_together():
        """Let all blocks of a cluster reach this point before one of them ends.

        A block's shared memory ends with it, and others may still arrive at its barriers. Triton
        3.9 ends such kernels with a wait of its own, 3.8 does not.
        """
        cluster.barrier()

else:

    @gluon.jit
    def leave_together():
        """Let all blocks of a cluster reach this point before one of them ends."""
        cluster.arrive()
        cluster.wait()


@gluon.jit
def start_copy_for(
    source, row, column, arrived, to, TRANSPOSED: gl.constexpr, MULTICAST: gl.constexpr  # noqa: N803
):  # fmt: skip
    """Start the copy of the tile at (row, column); with MULTICAST, one copy for all blocks."""
    if not MULTICAST:
        start_copy(source, row, column, arrived, to, TRANSPOSED)
    elif TRANSPOSED:
        async_load(source, [column, row], arrived, to, multicast=True)
    else:
        async_load(source, [row, column], arrived, to, multicast=True)


@gluon.jit
def zeros_for(rows: gl.constexpr, width: gl.constexpr, layout: gl.constexpr):
    """Return sums of zero."""
    return gl.zeros((rows, width), gl.float32, layout)
