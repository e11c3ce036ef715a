"""The faults of a Triton kernel in sentences: their place, their effect, and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tiled_matmul.microscope.table import plural
from tiled_matmul.microscope.triton.places import Array

VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}
AXES = ("row", "column")


@dataclass(frozen=True)
class TileFinding:
    """One fault of a line of the kernel, or of an array as a whole.

    `kind` is "unmasked tail" (an access past the end of a row or column, where the next one
    begins), "out of bounds" (no element lies there), "no tile" (the pointers do not follow the
    array's strides), "stored twice" (by two programs), "not stored" or "not read" (by no program).
    `program` is the first program with the fault, `programs` counts them; `index` is one element,
    `rows` and `cols` are the ranges that hold all `count` elements. The last two kinds have line 0.
    """

    kind: str
    op: str
    array: str
    line: int
    function: str
    program: tuple[int, ...]
    programs: int
    index: tuple[int, ...]
    rows: tuple[int, int]
    cols: tuple[int, int]
    count: int
    message: str = field(repr=False)
    remedy: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


class Stray:
    """The elements outside an array that one line accesses, collected over all programs."""

    def __init__(self, op: str, array: Array, line: int, function: str) -> None:
        self.op, self.array, self.line, self.function = op, array, line, function
        self.programs: dict[tuple[int, ...], None] = {}
        self.index: tuple[int, ...] = ()
        self.low = np.zeros(0)
        self.high = np.zeros(0)
        self.count = self.next_line = self.same_memory = 0
        self.across = False

    def add(
        self,
        program: tuple[int, ...],
        places: np.ndarray,
        next_line: int,
        same_memory: int,
        across: bool,
    ) -> None:
        """Add a program's accesses; `places` has a row of coordinates for each one outside."""
        low, high = places.min(axis=0), places.max(axis=0)
        if not self.programs:
            self.index, self.low, self.high = tuple(map(int, places[0])), low, high
        self.programs[program] = None
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.count += len(places)
        self.next_line += next_line
        self.same_memory += same_memory
        self.across |= across

    def finding(self) -> TileFinding:
        array, shape = self.array, self.array.shape
        beyond, axes = [], []
        for axis, (low, high, n) in enumerate(zip(self.low, self.high, shape, strict=True)):
            if low < 0 or high >= n:
                # Coordinates inside this axis are outside along another one.
                first = low if low < 0 else max(low, n)
                last = high if high >= n else -1
                beyond.append(_span(_axis_name(axis, len(shape)), int(first), int(last) + 1))
                axes.append(axis)
        first = next(iter(self.programs))
        what = " and ".join(beyond) or "elements between its own"
        message = (
            f"Line {self.line} {VERBS[self.op]} {what} of {array.name}, which is {sizes(array)}: "
            f"{self._effect(axes)} First in program {first}, at {_point(self.index)}; "
            f"{plural(self.count, 'element')} in {plural(len(self.programs), 'program')}."
        )
        return TileFinding(
            "unmasked tail" if self.next_line else "out of bounds",
            self.op,
            array.name,
            self.line,
            self.function,
            first,
            len(self.programs),
            self.index,
            *_ranges(self.low, self.high),
            self.count,
            message,
            self._remedy(axes),
        )

    def _effect(self, axes: Sequence[int]) -> str:
        load, array = self.op == "load", self.array
        beyond = self.count > self.same_memory
        if self.next_line:
            line = "row" if len(array.shape) - 1 in axes else "column"
            rest = f" and, past the last {line}, {'NaN' if load else 'other data'}" * beyond
            if load:
                return f"the load returns the beginning of the next {line}{rest}."
            return f"a GPU overwrites the beginning of the next {line}{rest}; here nothing is lost."
        if load and self.same_memory:
            return f"the load returns data of the tensor that {array.name} is a view of."
        if load:
            return (
                f"{array.name} has no elements there. A GPU reads other data or stops with an "
                "error; here the load returns NaN, or 0 for integers."
            )
        return (
            f"{array.name} has no elements there. A GPU overwrites other data or stops with an "
            "error; here nothing is lost."
        )

    def _remedy(self, axes: Sequence[int]) -> str:
        if self.across:
            return "The tile runs along the wrong axis: are strides swapped?"
        ends = [_axis_name(axis, len(self.array.shape)) + "s" for axis in axes] or ["elements"]
        other = ", other=0.0" if self.op == "load" else ""
        return (
            f"Restrict the {self.op} to the {' and '.join(ends)} that exist: with mask=…{other}, "
            "with boundary_check on a block pointer, or with a descriptor of the right shape."
        )


class NoTile:
    """The pointers of one line that do not form a tile of their array."""

    def __init__(self, op: str, array: Array, line: int, function: str) -> None:
        self.op, self.array, self.line, self.function = op, array, line, function
        self.programs: dict[tuple[int, ...], None] = {}
        self.first: tuple = ()
        self.count = 0

    def add(self, program: tuple, steps: tuple, index: tuple, ranges: tuple, count: int) -> None:
        self.first = self.first or (steps, index, ranges)
        self.programs[program] = None
        self.count += count

    def finding(self) -> TileFinding:
        (steps, index, ranges), array = self.first, self.array
        first = next(iter(self.programs))
        message = (
            f"Line {self.line} {VERBS[self.op]} elements that form no tile of {array.name}: "
            f"the pointers step {' and '.join(f'{step:,}' for step in steps)} elements down and "
            f"across, but {array.name} has the strides "
            f"{' and '.join(f'{s:,}' for s in array.strides)}. First in program {first}."
        )
        return TileFinding(
            "no tile",
            self.op,
            array.name,
            self.line,
            self.function,
            first,
            len(self.programs),
            index,
            *ranges[-2:],
            self.count,
            message,
            f"Did the launch pass the strides of {array.name}, in the kernel's order?",
        )


def stored_twice(
    array: Array,
    line: int,
    function: str,
    programs: tuple[tuple[int, ...], tuple[int, ...]],
    several: int,
    elements: np.ndarray,
) -> TileFinding:
    """Return the finding for double stores.

    `elements` is the mask of elements that more than one program stored, `several` the number of
    such programs, and `programs` two of them.
    """
    index, rows, cols, count = _extent(elements)
    one, other = programs
    return TileFinding(
        "stored twice",
        "store",
        array.name,
        line,
        function,
        other,
        several,
        index,
        rows,
        cols,
        count,
        f"Programs {one} and {other} both store {array.name}{list(index)} (line {line}): "
        f"{plural(count, 'element')} in {_box(rows, cols)} come from more than one program, and "
        "it is undefined which value remains.",
        "Give each program a tile of its own: look at how program_id becomes rows and columns.",
    )


def untouched(array: Array, op: str, elements: np.ndarray) -> TileFinding:
    """Return the finding for the mask `elements`, which no program stored, or loaded."""
    index, rows, cols, count = _extent(elements)
    whole = f"{_box(rows, cols)} of {array.name}, which is {sizes(array)}"
    if op == "store":
        message = f"No program stores {whole}: {plural(count, 'element')} keep their old values."
        remedy = (
            "Is the grid large enough, cdiv(size, BLOCK) along each axis, and are the masks right?"
        )
    else:
        message = f"No program reads {whole}: {plural(count, 'element')} do not enter the result."
        remedy = "Does the loop run over the last, incomplete block too? Is the grid large enough?"
    kind = "not stored" if op == "store" else "not read"
    return TileFinding(
        kind, op, array.name, 0, "", (), 0, index, rows, cols, count, message, remedy
    )


def sizes(array: Array) -> str:
    return "×".join(map(str, array.shape)) if array.shape[0] > 1 else f"{array.cols} long"


def _extent(elements: np.ndarray) -> tuple:
    places = np.argwhere(elements)
    low, high = places.min(axis=0), places.max(axis=0)
    return tuple(map(int, places[0])), *_ranges(low, high), len(places)


def _ranges(low: np.ndarray, high: np.ndarray) -> tuple:
    return tuple((int(a), int(b) + 1) for a, b in zip(low[-2:], high[-2:], strict=True))


def _axis_name(axis: int, ndim: int) -> str:
    back = axis - ndim + 2
    return AXES[back] if back >= 0 else "plane"


def _span(name: str, start: int, stop: int) -> str:
    return f"{name} {start}" if stop - start == 1 else f"{name}s {start} to {stop - 1}"


def _box(rows: tuple[int, int], cols: tuple[int, int]) -> str:
    return f"{_span('row', *rows)}, {_span('column', *cols)}"


def _point(index: tuple[int, ...]) -> str:
    names = (_axis_name(axis, len(index)) for axis in range(len(index)))
    return ", ".join(f"{name} {at}" for name, at in zip(names, index, strict=True))
