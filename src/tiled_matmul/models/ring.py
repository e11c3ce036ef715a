"""A ring of buffers with full and empty barriers, in whole units of time.

A producer copies tiles into the buffers, a consumer multiplies them. Both are generators that yield
while they wait, as a warp does at `mbarrier.try_wait`. Source: NVIDIA, PTX ISA, "mbarrier".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

LONGEST = 10_000  # units of time after which a run counts as endless


@dataclass
class Barrier:
    """An mbarrier: its phase flips between 0 and 1 when `expected` arrivals have come."""

    expected: int = 1
    arrived: int = 0
    phase: int = 0

    def arrive(self) -> None:
        """Count one arrival."""
        self.arrived += 1
        if self.arrived == self.expected:
            self.arrived, self.phase = 0, 1 - self.phase

    def passed(self, phase: int) -> bool:
        """Return whether the phase with this number is over; before the first flip, 1 is."""
        return self.phase != phase


@dataclass
class Copy:
    """A copy of one tile into a buffer: when it begins and when its bytes have arrived."""

    tile: int
    buffer: int
    begin: int
    end: int


@dataclass
class Work:
    """A product of the tile that `buffer` holds at `begin`, or the store of C (`tile` is None)."""

    tile: int | None
    buffer: int | None
    begin: int
    end: int


@dataclass
class Ring:
    """`stages` buffers with their barriers, and what has happened to them so far."""

    stages: int = 3
    copy_time: int = 4
    multiply_time: int = 2
    time: int = 0
    finished: bool = False
    copies: list[Copy] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    full: list[Barrier] = field(init=False)
    empty: list[Barrier] = field(init=False)
    holds: list[int | None] = field(init=False)

    def __post_init__(self) -> None:
        self.full = [Barrier() for _ in range(self.stages)]
        self.empty = [Barrier() for _ in range(self.stages)]
        self.holds = [None] * self.stages

    def copy(self, tile: int, buffer: int) -> None:
        """Begin to copy a tile; the buffer's full barrier is told when the bytes have arrived."""
        self.copies.append(Copy(tile, buffer, self.time, self.time + self.copy_time))

    def multiply(self, buffer: int) -> Iterator[None]:
        """Multiply the tile that the buffer holds."""
        yield from self._work(self.holds[buffer], buffer, self.multiply_time)

    def store(self, time: int) -> Iterator[None]:
        """Store a tile of C."""
        yield from self._work(None, None, time)

    @property
    def multiplied(self) -> list[int | None]:
        """The tile that each product has used."""
        return [each.tile for each in self.work if each.buffer is not None]

    @property
    def stored(self) -> int:
        """The number of tiles of C that have been stored."""
        return sum(each.buffer is None and each.end <= self.time for each in self.work)

    def _work(self, tile: int | None, buffer: int | None, time: int) -> Iterator[None]:
        self.work.append(Work(tile, buffer, self.time, self.time + time))
        for _ in range(time):
            yield

    def _deliver(self) -> None:
        for each in self.copies:
            if each.end == self.time:
                self.holds[each.buffer] = each.tile
                self.full[each.buffer].arrive()


def run(producer: Callable, consumer: Callable, tiles: int = 8, **times: int) -> Ring:
    """Return the ring after `producer(ring, tiles)` and `consumer(ring, tiles)` have run.

    `times` are `stages`, `copy_time` and `multiply_time`. If one of the two never ends, `finished`
    is False.
    """
    ring = Ring(**times)
    running = [consumer(ring, tiles), producer(ring, tiles)]
    while running and ring.time < LONGEST:
        ring._deliver()
        running = [each for each in running if next(each, "over") != "over"]
        ring.time += bool(running)
    ring.finished = not running
    return ring


def seam(
    persistent: bool, steps: int = 4, store_time: int = 4, outputs: int = 2, **times: int
) -> Ring:
    """Return a run over `outputs` tiles of C, with `steps` tiles along K each; `times` as in `run`.

    If `persistent`, the copies for the next tile of C need only a free buffer. Otherwise the next
    tile belongs to another program, which begins when the one before has stored its tile.
    """

    def copies(ring: Ring, tiles: int) -> Iterator[None]:
        for i in range(tiles):
            buffer, phase = i % ring.stages, i // ring.stages % 2
            while not ring.empty[buffer].passed(1 - phase):
                yield
            while not persistent and ring.stored < i // steps:
                yield
            ring.copy(i, buffer)
            yield

    def products(ring: Ring, tiles: int) -> Iterator[None]:
        for i in range(tiles):
            buffer, phase = i % ring.stages, i // ring.stages % 2
            while not ring.full[buffer].passed(phase):
                yield
            yield from ring.multiply(buffer)
            ring.empty[buffer].arrive()
            if i % steps == steps - 1:
                yield from ring.store(store_time)

    return run(copies, products, outputs * steps, **times)
