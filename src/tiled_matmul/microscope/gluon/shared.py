"""Shared memory: buffers of tiles, which are checked at each access, and barriers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tiled_matmul.microscope.gluon.clocks import Buffer, Clock
from tiled_matmul.microscope.gluon.values import Shares, shares, torch_dtype


class Memory:
    """What one `allocate_shared_memory` gives: a share of memory for each block of a cluster.

    Leading dimensions, beyond those of the layout, number the buffers. Unwritten elements are NaN,
    or -1 for integers.
    """

    def __init__(self, name: str, dtype: Any, shape: Sequence[int], layout: Any, blocks: int):
        self.name, self.dtype, self.layout = name, dtype, layout
        self.shape = [int(size) for size in shape]
        self.barriers = type(layout).__name__ == "MBarrierLayout"
        rank = 1 if self.barriers else int(getattr(layout, "rank", len(self.shape)))
        self.shares: Shares = shares(layout, rank, blocks)
        self.leading = len(self.shape) - rank
        if self.leading < 0:
            raise ValueError(f"{name}: a layout of rank {rank} for the shape {self.shape}")
        self.local = self.shares.local(self.shape)
        kind = torch_dtype(dtype)
        fill = math.nan if kind.is_floating_point else -1
        self.data = [torch.full(self.local, fill).to(kind) for _ in range(blocks)]
        self.state: dict[tuple[int, tuple[int, ...]], Any] = {}

    @property
    def nbytes(self) -> int:
        """The bytes of a block's share."""
        return math.prod(self.local) * self.data[0].element_size()

    def buffer(self, block: int, index: tuple[int, ...]) -> Buffer:
        """Return the accesses to one buffer of a block."""
        return self.state.setdefault((block, index), Buffer())

    def barrier(self, block: int, index: tuple[int, ...]) -> Barrier:
        """Return the barrier that a block's arrivals go to: that of the first block of its group.

        Raises ValueError before `mbarrier.init`.
        """
        leader = self.shares.leader(block)
        if (leader, index) not in self.state:
            raise ValueError(f"{self.name}{list(index)} is used before `mbarrier.init`")
        return self.state[leader, index]


@dataclass
class View:
    """A part of a Memory: with `index`, one buffer of it; `order` is that of its dimensions."""

    memory: Memory
    index: tuple[int, ...] = ()
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        rank = len(self.memory.shape) - len(self.index)
        self.order = self.order or tuple(range(rank))

    @property
    def shape(self) -> list[int]:
        """The shape of the whole tile."""
        own = self.memory.shape[len(self.index) :]
        return [own[i] for i in self.order]

    @property
    def dtype(self) -> Any:
        """The elements' dtype."""
        return self.memory.dtype

    @property
    def layout(self) -> Any:
        """The memory's layout."""
        return self.memory.layout

    @property
    def name(self) -> str:
        """The memory's name and the buffer's index."""
        return self.memory.name + (str(list(self.index)) if self.index else "")

    def data(self, block: int) -> torch.Tensor:
        """Return the elements of a block's share; changes are changes of the memory."""
        return self.memory.data[block][self.index].permute(self.order)

    def indexed(self, at: Any) -> View:
        """Return buffer number `at`. Raises IndexError, which quotes it, beyond the last."""
        if len(self.index) >= self.memory.leading:
            raise ValueError(f"{self.name} is one buffer, of {self.shape}: it has no index")
        at, size = int(at), self.memory.shape[len(self.index)]
        if not 0 <= at < size:
            raise IndexError(f"{self.name} has no index {at}: it has {size}")
        return View(self.memory, (*self.index, at))

    def permuted(self, order: Sequence[int]) -> View:
        """Return the same buffer with its dimensions in another order."""
        return View(self.memory, self.index, tuple(self.order[i] for i in order))


@dataclass
class Barrier:
    """A barrier in shared memory: it counts arrivals and bytes, and completes phase after phase.

    `arrivals` and `bytes` are those that the phase still waits for; `bytes` is below zero while
    more arrived than was expected. `clock` knows what was over at the arrivals so far, `completed`
    what was over when the last phase completed; `fenced` and `completed_fenced` are what the copy
    engine saw of it.
    """

    name: str
    count: int
    arrivals: int
    bytes: int = 0
    phase: int = 0
    clock: Clock = field(default_factory=Clock)
    fenced: Clock = field(default_factory=Clock)
    completed: Clock = field(default_factory=Clock)
    completed_fenced: Clock = field(default_factory=Clock)

    def passed(self, parity: int) -> bool:
        """Is the phase of this parity over, so that a wait for it ends?"""
        return self.phase % 2 != parity % 2

    def arrive(self, clock: Clock, fenced: Clock, count: int, bytes: int) -> bool:
        """Note arrivals, and bytes that are expected; return whether they complete the phase.

        Bytes that have arrived are below zero.
        """
        self.arrivals -= count
        self.bytes += bytes
        self.clock.join(clock)
        self.fenced.join(fenced)
        if self.arrivals > 0 or self.bytes != 0:
            return False
        self.phase += 1
        self.arrivals += self.count
        self.completed, self.completed_fenced = Clock(self.clock), Clock(self.fenced)
        return True

    def __str__(self) -> str:
        missing = [f"{self.arrivals} of {self.count} arrivals"] if self.arrivals > 0 else []
        if self.bytes:
            missing.append(f"{self.bytes:,} bytes")
        return f"{self.name} is in its phase {self.phase}, which lacks {' and '.join(missing)}"
