"""The record of a launch: each program's loads, stores and dots, and stray accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.triton import places
from tiled_matmul.microscope.triton.findings import (
    NoTile,
    Stray,
    TileFinding,
    stored_twice,
    untouched,
)
from tiled_matmul.microscope.triton.places import Array

MOST_EVENTS = 500_000
NO_PROGRAM = -1


@dataclass(frozen=True, slots=True)
class Event:
    """A load, store, atomic or dot of one program.

    `rows` and `cols` are the half-open ranges of the tile before masking, which may reach past the
    matrix. `wraps` names the ranges ("rows", "cols", "rows cols") that continue at the other side
    instead, as rows taken `% M` do; they are given as if they did not wrap. `elements` counts the
    unmasked elements that exist, `bytes` their bytes, and `outside` the unmasked ones that do not
    exist. `step` counts, from 0, this program's loads (stores) of this array: in a matmul, the
    iterations of the K loop. `plane` is the index along the axes before the last two. A dot has no
    array; `rows` and `cols` are those of its result, `elements` counts its multiplications.
    """

    program: tuple[int, int, int]
    op: str
    array: str
    rows: tuple[int, int]
    cols: tuple[int, int]
    elements: int
    bytes: int
    line: int
    function: str
    step: int
    outside: int = 0
    wraps: str = ""
    plane: tuple[int, ...] = ()


class Touched:
    """The elements of one array that were read, the program that stored each, and double stores."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.read = np.zeros(array.shape, bool)
        self.owner = np.full(array.shape, NO_PROGRAM, np.int32)
        self.twice = np.zeros(array.shape, bool)
        self.atomic = False
        self.clash: tuple[int, str, int, int] | None = None  # line, function, two programs
        self.clashing: set[int] = set()

    def store(self, at: tuple, program: int, line: int, function: str) -> None:
        before = self.owner[at]
        others = (before != NO_PROGRAM) & (before != program)
        if others.any():
            where = tuple(axis[others] for axis in at)
            self.twice[where] = True
            earlier = before[others]
            self.clash = self.clash or (line, function, int(earlier[0]), program)
            self.clashing |= {program, *map(int, np.unique(earlier))}
        self.owner[at] = program


class TileRecord:
    """The record of one launch. The interpreter calls `begin`, `access` and `dot`."""

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self.events: list[Event] = []
        self.programs: list[tuple[int, int, int]] = []
        # Two arguments may be the same matrix.
        same: dict[tuple, Touched] = {}
        keys = [(array.address, array.shape, array.strides, array.dtype) for array in arrays]
        self._touched = [
            same.setdefault(key, Touched(array)) for key, array in zip(keys, arrays, strict=True)
        ]
        self._strays: dict[tuple, Stray] = {}
        self._no_tiles: dict[tuple, NoTile] = {}
        self._steps: dict[tuple, int] = {}
        self._last: dict[tuple, tuple] = {}

    def begin(self, program: tuple[int, int, int]) -> None:
        self.programs.append(program)
        self._steps, self._last = {}, {}

    def access(
        self,
        op: str,
        number: int,
        offsets: np.ndarray,
        active: np.ndarray,
        line: int,
        function: str,
        corner: tuple[int, ...] | None = None,
    ) -> np.ndarray:
        """Record an access to array `number`; return the mask of elements that may be accessed.

        `offsets` are in elements from the array's first one; `active` is the kernel's mask;
        `corner` is the index of the tile's first element, if it is known.
        """
        array, program = self.arrays[number], self.programs[-1]
        place = self._place(op, number, offsets, active, line, function, corner)
        inside = place.inside(array, offsets)
        asked, strayed = active & inside, active & ~inside
        elements = int(asked.sum())
        event = Event(
            program,
            op,
            array.name,
            *place.ranges[-2:],
            elements,
            elements * array.itemsize,
            line,
            function,
            self._count(op, array.name),
            int(strayed.sum()),
            " ".join(name for name, w in zip(("rows", "cols"), place.wraps[-2:], strict=True) if w),
            place.origin[:-2],
        )
        self._append(event)
        self._touch(op, number, _coordinates(place, asked), line, function)
        low, high = array.memory
        in_memory = (low <= offsets) & (offsets < high)
        key = (op, line, function, number)
        if place.odd and elements:
            no_tile = self._no_tiles.setdefault(key, NoTile(op, array, line, function))
            no_tile.add(program, place.odd, place.origin, place.ranges, elements)
        if event.outside:
            next_line = int(array.locate(offsets[strayed])[1].sum())
            same = int(in_memory[strayed].sum())
            across = place.axes is not None and place.axes[0] > place.axes[-1]
            stray = self._strays.setdefault(key, Stray(op, array, line, function))
            stray.add(program, np.stack(_coordinates(place, strayed), 1), next_line, same, across)
        return active & in_memory if op == "load" else asked

    def _touch(self, op: str, number: int, at: tuple, line: int, function: str) -> None:
        touched = self._touched[number]
        if op == "load":
            touched.read[at] = True
        elif op == "store":
            touched.store(at, len(self.programs) - 1, line, function)
        else:
            touched.atomic = True

    def dot(self, m: int, n: int, k: int, line: int, function: str) -> None:
        step = self._count("dot", "")
        program = self.programs[-1]
        self._append(Event(program, "dot", "", (0, m), (0, n), m * n * k, 0, line, function, step))

    def _append(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) >= MOST_EVENTS:
            raise KernelError(
                f"program {event.program} made access {MOST_EVENTS:,} of this launch at line "
                f"{event.line}: a loop without end, or too large a problem for a trace"
            )

    def _count(self, op: str, name: str) -> int:
        step = self._steps.get((op, name), 0)
        self._steps[op, name] = step + 1
        return step

    def _place(
        self,
        op: str,
        number: int,
        offsets: np.ndarray,
        active: np.ndarray,
        line: int,
        function: str,
        origin: tuple[int, ...] | None = None,
    ) -> places.Place:
        """Find the tile. After two equal steps, it is assumed to lie a third such step away."""
        key = (op, number, line, function)
        here = int(offsets.flat[0])
        before = self._last.get(key)
        if origin is None and before and before[1] and here - before[0] == before[1]:
            origin = tuple(i + step for i, step in zip(before[2], before[3], strict=True))
        place = places.find(self.arrays[number], offsets, active, origin)
        now = place.origin
        went = tuple(i - j for i, j in zip(now, before[2], strict=True)) if before else now
        self._last[key] = (here, here - before[0] if before else 0, now, went)
        return place

    def findings(self) -> list[TileFinding]:
        """Return the findings, in the order of the lines; those without a line come last."""
        listed = [fault.finding() for fault in (*self._strays.values(), *self._no_tiles.values())]
        touches = list(dict.fromkeys(self._touched))
        for touched in touches:
            if touched.clash:
                line, function, one, other = touched.clash
                pair = self.programs[one], self.programs[other]
                several = len(touched.clashing)
                listed.append(
                    stored_twice(touched.array, line, function, pair, several, touched.twice)
                )
        listed.sort(key=lambda finding: finding.line)
        for touched in touches:
            stored, read = touched.owner != NO_PROGRAM, touched.read
            if touched.atomic or (stored.any() and read.any()):
                continue  # a workspace, which need not be used completely
            for op, done in (("store", stored), ("load", read)):
                if done.any() and not done.all():
                    listed.append(untouched(touched.array, op, ~done))
        return listed


def _coordinates(place: places.Place, which: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.broadcast_to(along, which.shape)[which] for along in place.index)
