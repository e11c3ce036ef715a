"""What is wrong with a kernel, in sentences: where it is, what comes of it, what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tiled_matmul.microscope.triton.places import Array

VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}
AXES = ("row", "column")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a line of the kernel, or with an array as a whole.

    `kind` is "unmasked tail" (past the end of a row or column, where the array's memory goes on
    with the next one), "out of bounds" (nothing of the array is there), "no tile" (the pointers do
    not follow the array's strides), "stored twice" (by two programs), "not stored" or "not read"
    (by any). `program` is the first that does it and `programs` how many do; `index` is an element,
    `rows` and `cols` the ranges that hold all of the `count` elements. What nobody did has line 0.
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
    """The elements outside of an array that one line asks for, gathered over all programs."""

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
        """`places` has a row of coordinates for each element that is not one of the array."""
        low, high = places.min(axis=0), places.max(axis=0)
        if not self.programs:
            self.index, self.low, self.high = tuple(map(int, places[0])), low, high
        self.programs[program] = None
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.count += len(places)
        self.next_line += next_line
        self.same_memory += same_memory
        self.across |= across

    def finding(self) -> Finding:
        array, shape = self.array, self.array.shape
        beyond, axes = [], []
        for axis, (low, high, n) in enumerate(zip(self.low, self.high, shape, strict=True)):
            if low < 0 or high >= n:
                # What is inside on the way belongs to other lines of elements.
                first = low if low < 0 else max(low, n)
                last = high if high >= n else -1
                beyond.append(_span(_axis_name(axis, len(shape)), int(first), int(last) + 1))
                axes.append(axis)
        first = next(iter(self.programs))
        what = " and ".join(beyond) or "elements between its own"
        message = (
            f"Line {self.line} {VERBS[self.op]} {what} of {array.name}, which is {sizes(array)}: "
            f"{self._comes_of_it(axes)} First in program {first}, at {_point(self.index)}; "
            f"{many(self.count, 'element')} in {many(len(self.programs), 'program')}."
        )
        return Finding(
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

    def _comes_of_it(self, axes: Sequence[int]) -> str:
        load, array = self.op == "load", self.array
        beyond = self.count > self.same_memory
        if self.next_line:
            line = "row" if len(array.shape) - 1 in axes else "column"
            rest = f" and, past the last {line}, {'NaN' if load else 'what lies there'}" * beyond
            if load:
                return f"what comes is the beginning of the next {line}{rest}."
            return f"a GPU overwrites the beginning of the next {line}{rest}; here nothing is lost."
        if load and self.same_memory:
            return f"what comes is data of the tensor that {array.name} is a view of."
        if load:
            return "nothing of it lies there. A GPU reads what does, or stops; here NaN came, or 0."
        return (
            "nothing of it lies there. A GPU overwrites what does, or stops; here nothing is lost."
        )

    def _remedy(self, axes: Sequence[int]) -> str:
        if self.across:
            return "The tile runs along the other axis than it should: are strides swapped?"
        ends = [_axis_name(axis, len(self.array.shape)) + "s" for axis in axes] or ["elements"]
        other = ", other=0.0" if self.op == "load" else ""
        return (
            f"Let the {self.op} ask only for {' and '.join(ends)} there are: with mask=…{other}, "
            "with boundary_check on a block pointer, or with a descriptor of the right shape."
        )


class Odd:
    """Pointers of one line that do not make a tile of the array they point into."""

    def __init__(self, op: str, array: Array, line: int, function: str) -> None:
        self.op, self.array, self.line, self.function = op, array, line, function
        self.programs: dict[tuple[int, ...], None] = {}
        self.first: tuple = ()
        self.count = 0

    def add(self, program: tuple, steps: tuple, index: tuple, ranges: tuple, count: int) -> None:
        self.first = self.first or (steps, index, ranges)
        self.programs[program] = None
        self.count += count

    def finding(self) -> Finding:
        (steps, index, ranges), array = self.first, self.array
        first = next(iter(self.programs))
        message = (
            f"Line {self.line} {VERBS[self.op]} what is no tile of {array.name}: the pointers step "
            f"{' and '.join(f'{step:,}' for step in steps)} elements down and across, "
            f"{array.name} has the strides {' and '.join(f'{s:,}' for s in array.strides)}. First "
            f"in program {first}."
        )
        return Finding(
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
            f"Are these the strides of {array.name}, in the order in which the kernel takes them?",
        )


def stored_twice(
    array: Array,
    line: int,
    function: str,
    programs: tuple[tuple[int, ...], tuple[int, ...]],
    several: int,
    elements: np.ndarray,
) -> Finding:
    """`elements` is a mask of what more than one program stored; `several` how many did so."""
    index, rows, cols, count = _extent(elements)
    one, other = programs
    return Finding(
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
        f"{many(count, 'element')} in {_box(rows, cols)} come from more than one program, and "
        "which of them stays is a matter of luck.",
        "Give each program a tile of its own: look at how program_id becomes rows and columns.",
    )


def untouched(array: Array, op: str, elements: np.ndarray) -> Finding:
    """`elements` is a mask of what no program stored, or loaded."""
    index, rows, cols, count = _extent(elements)
    whole = f"{_box(rows, cols)} of {array.name}, which is {sizes(array)}"
    if op == "store":
        message = f"No program stores {whole}: {many(count, 'element')} stay what they were."
        remedy = (
            "Is the grid large enough, cdiv(size, BLOCK) along each axis, and are the masks right?"
        )
    else:
        message = f"No program reads {whole}: {many(count, 'element')} take no part."
        remedy = "Does the loop run over the last, incomplete block too? Is the grid large enough?"
    kind = "not stored" if op == "store" else "not read"
    return Finding(kind, op, array.name, 0, "", (), 0, index, rows, cols, count, message, remedy)


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


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
