"""What has happened before what: clocks, and the accesses to one buffer that they order.

A clock maps a source of events to how many of its events are known to be over. Sources are a role
of a block, the products of a role, the stores of a role, and the copies into one buffer: each ends
its events in their order. An access is ordered after another if its clock knows the other's event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Source = tuple


class Clock(dict[Source, int]):
    """The last event of each source that is known to be over."""

    def join(self, other: Mapping[Source, int]) -> None:
        """Know what another clock knows, too."""
        for source, event in other.items():
            if event > self.get(source, 0):
                self[source] = event

    def knows(self, access: Access) -> bool:
        """Is an access over?"""
        return access.event <= self.get(access.source, 0)


@dataclass(frozen=True)
class Access:
    """One access to a buffer, at `line` of `function`: `who` reads or fills it, in words.

    `asynchronous` accesses are made by the copy engine and the tensor cores, others by threads.
    """

    source: Source
    event: int
    who: str
    line: int
    function: str
    writes: bool
    asynchronous: bool

    @property
    def verb(self) -> str:
        """What it does."""
        return "fill" if self.writes else "read"


@dataclass
class Buffer:
    """The accesses to one buffer that a later one has to be ordered after."""

    write: Access | None = None
    reads: dict[Source, Access] = field(default_factory=dict)

    def before(self, access: Access) -> Iterator[Access]:
        """Yield the accesses that must be over before this one begins."""
        if self.write is not None:
            yield self.write
        if access.writes:
            yield from self.reads.values()

    def add(self, access: Access) -> None:
        """Note an access."""
        if access.writes:
            self.write, self.reads = access, {}
        else:
            self.reads[access.source] = access
