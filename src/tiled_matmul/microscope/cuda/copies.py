"""Asynchronous copies from global to shared memory, for each thread.

A new copy joins the thread's open group, which `commit` closes, and lands when the thread waits for
that group. On a GPU it may land sooner. A copy reads its source when it begins. Until it lands it
is under way, which the record repeats in each phase, that is, between each two barriers: no other
access to those bytes is allowed in that time. A copy without a wait never lands. That is not a
fault, since a kernel may end with copies under way.
Source: NVIDIA, PTX ISA, "cp.async", "cp.async.commit_group" and "cp.async.wait_group".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tiled_matmul.microscope.cuda import values
from tiled_matmul.microscope.cuda.errors import KernelError, TypingError

SIZES = (4, 8, 16)  # bytes


class Copies:
    """The copies of one thread that are under way."""

    def __init__(self) -> None:
        self.open: list[_UnderWay] = []
        self.groups: list[list[_UnderWay]] = []

    def commit(self) -> None:
        """Close the open group, which may be empty."""
        self.groups.append(self.open)
        self.open = []

    def wait(self, newest: int) -> None:
        """Land all closed groups except the `newest` ones."""
        if newest < 0:
            raise KernelError(f"a wait leaves 0 groups or more under way, got {newest}")
        while len(self.groups) > newest:
            for copy in self.groups.pop(0):
                copy.land()

    def __iter__(self) -> Iterator[_UnderWay]:
        for group in self.groups:
            yield from group
        yield from self.open


@dataclass
class _UnderWay:
    array: Any
    element: int
    values: list
    flight_key: int
    landing_key: int

    def record(self) -> None:
        """Record in a new phase that the copy is still under way."""
        self.array.note(self.element, len(self.values), self.flight_key)

    def land(self) -> None:
        self.array.data[self.element : self.element + len(self.values)] = self.values
        self.array.note(self.element, len(self.values), self.landing_key)


class Copy:
    """One copy of a thread, which the stand-in of an intrinsic begins."""

    def __init__(self, lane: Any, load_key: int, *keys: int) -> None:
        self.copies = lane.copies
        self.load_key, self.key, self.flight_key, self.landing_key = load_key, *keys

    def begin(
        self, target: Any, at: Any, source: Any, start: Any, count: int, present: int
    ) -> None:
        """Begin a copy of `count` consecutive elements from source[start] to target[at].

        Only the first `present` elements are read; the rest are zeros. If `present` is 0, `start`
        may lie anywhere.
        """
        if (target.info.space, source.info.space) != ("shared", "global"):
            raise KernelError(
                "an asynchronous copy goes from global to shared memory, got "
                f"{source.info.space} to {target.info.space}"
            )
        width = count * source.itemsize
        if target.dtype != source.dtype or width not in SIZES:
            raise TypingError(
                f"a copy moves 4, 8 or 16 bytes of one type, got {count} of {source.dtype} into "
                f"{target.dtype}"
            )
        at, start, present = _ints(at), _ints(start), int(values.number(present))
        if not 0 <= present <= count:
            raise KernelError(f"0 to {count} elements are present, got {present}")
        source.check_alignment(start, width)
        read: list = []
        while present > len(read):
            # A recorded access is 1, 2 or 4 elements wide.
            part = 1 << (present - len(read)).bit_length() - 1
            read += source.span((*start[:-1], start[-1] + len(read)), part, self.load_key)
        element = target.claim(at, count, self.key)
        if element is not None:
            read += [target.zero()] * (count - len(read))
            copy = _UnderWay(target, element, read, self.flight_key, self.landing_key)
            self.copies.open.append(copy)


def _ints(index: Any) -> tuple[int, ...]:
    return tuple(map(values.index, index if isinstance(index, tuple) else (index,)))
