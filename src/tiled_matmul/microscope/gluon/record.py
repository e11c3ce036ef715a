"""What one launch of a kernel in Gluon did: events in their order, bytes, and faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tiled_matmul.microscope.gluon.findings import GluonFinding
from tiled_matmul.microscope.gluon.values import Descriptor

LINE = 128  # bytes that the L2 hands out together


@dataclass(frozen=True)
class Event:
    """One step of a role: `kind` is "wait", "expect", "arrive", "copy", "landed", "product", …

    `phase` is that of the barrier before the step, or the one that was waited for; `completes` says
    whether the step completes it. `corner` is where a copied or stored tile begins in its matrix,
    `blocks` are those that a copy fills, and `under_way` the products that a role leaves under way.
    """

    number: int
    program: int
    block: int
    role: str
    kind: str
    buffer: str
    line: int
    function: str
    phase: int | None = None
    completes: bool = False
    barrier: str = ""
    corner: Sequence[int] = ()
    blocks: Sequence[int] = ()
    under_way: int = 0


@dataclass
class Traffic:
    """The copies of one descriptor: how many there were, into how many buffers, and their bytes.

    `lines` are the lines of 128 bytes that the copies ask the L2 for, `bytes` what they fill.
    """

    copies: int = 0
    filled: int = 0
    bytes: int = 0
    lines: int = 0


@dataclass
class Record:
    """The record that the clusters of a launch write to.

    `file` is that of the kernel, and `codes` are the kernel's and its helpers' code objects;
    `files` says where each (line, function) stands that did something.
    """

    file: str = ""
    codes: set[Any] = field(default_factory=set)
    files: dict[tuple[int, str], str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    found: dict[tuple, GluonFinding] = field(default_factory=dict)
    copies: dict[str, Traffic] = field(default_factory=dict)
    memories: dict[str, int] = field(default_factory=dict)

    def note(self, **fields: Any) -> None:
        """Add an Event of these fields."""
        self.events.append(Event(number=len(self.events), **fields))

    def find(self, **fields: Any) -> None:
        """Add a GluonFinding of these fields, or count one more of the same two lines."""
        key = fields["kind"], fields["line"], fields["other"]
        if fields["kind"] == "deadlock":
            key = "deadlock", fields["block"], fields["role"]
        known = self.found.get(key)
        count = 1 if known is None else known.count + 1
        self.found[key] = known or GluonFinding(count=1, **fields)
        self.found[key] = replace(self.found[key], count=count)

    def memory(self, memory: Any) -> None:
        """Note an allocation of shared memory."""
        self.memories[memory.name] = memory.nbytes

    def traffic(self, descriptor: Descriptor, corner: Sequence[int], blocks: int) -> None:
        """Count a copy into the buffers of so many blocks."""
        counted = self.copies.setdefault(descriptor.name, Traffic())
        counted.copies += 1
        counted.filled += blocks
        counted.bytes += blocks * descriptor.nbytes_per_cta
        counted.lines += lines(descriptor, corner)


def lines(descriptor: Descriptor, corner: Sequence[int]) -> int:
    """Return how many lines of the L2 the copy of a share asks for.

    The copy engine asks row by row, for as many bytes of a row as the layout's swizzle is wide. On
    a GPU an allocation begins with a line, so a view's offset counts, and no address here does.
    """
    rows, columns = descriptor.inside(corner)
    size = descriptor.memory.element_size()
    wide = (getattr(descriptor.layout, "swizzle_byte_width", 0) or LINE) // size
    start = descriptor.memory.storage_offset() * size % LINE
    asked = 0
    for row in range(rows.start, rows.stop):
        for first in range(columns.start, columns.stop, wide):
            begin = start + (row * descriptor.strides[0] + first) * size
            end = begin + (min(first + wide, columns.stop) - first) * size
            asked += (end - 1) // LINE - begin // LINE + 1
    return asked
