"""A kernel that is ready to run, the places in its source, and the turns of its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tiled_matmul.microscope.cuda.source import line_text


@dataclass(frozen=True)
class Site:
    """A place in the source that reads or writes an array, or waits.

    `op` is "load", "store", "atomic" or "barrier"; `text` is the source, such as "a[row, k]", and
    `array` how the source calls the array. `sets`: does it write without regard to what was there?
    `used`: does the source use what it gives? `asynchronous`: is it part of an asynchronous copy?
    Such a copy has places of two more ops, where it is under way and where it lands: "flight" and
    "landing". They are for findings; no count has them.
    """

    id: int
    line: int
    column: int
    op: str
    text: str
    array: str
    function: str
    file: str
    sets: bool
    used: bool
    asynchronous: bool = False

    @property
    def source(self) -> str:
        """The text of the line that it stands in, stripped."""
        return line_text(self.file, self.line)


class Paths:
    """Numbers for the turns of loops: the same turn of the same loop has one number everywhere."""

    def __init__(self, sites: int, loops: list[tuple[int, bool]]) -> None:
        self.sites = sites
        self.loops = loops  # of each: how many sites stand before it, and is it a while?
        self.parents: list[tuple[int, int, int]] = [(-1, -1, 0)]
        self._turns: dict[tuple[int, int], list[int]] = {}

    def turns(self, path: int, loop: int) -> Iterator[int]:
        """Yield the path of each turn of a loop that is entered on `path`."""
        known = self._turns.setdefault((path, loop), [])
        turn = 0
        while True:
            if turn == len(known):
                known.append(len(self.parents) * self.sites)
                self.parents.append((path // self.sites, loop, turn))
            yield known[turn]
            turn += 1

    def program_order(self, key: int) -> tuple[tuple[int, int, int], ...]:
        """Return what sorts keys in the order in which a thread comes by them."""
        path, site = divmod(key, self.sites)
        steps = [(2 * site, 0, 0)]
        while path:
            path, loop, turn = self.parents[path]
            before, is_while = self.loops[loop]
            place = 2 * before - 1  # between the sites before it and those in it
            if is_while and steps[-1][0] < place:
                # What stands before a while loop and has a turn's path is its condition, computed
                # again when the turn is over.
                later, *rest = steps[-1]
                steps[-1] = (later + 2 * self.sites, *rest)
            steps.append((place, loop, turn))
        return tuple(reversed(steps))


@dataclass
class Program:
    """A kernel ready to run: `function(lane, path, *arguments)`, a generator if it `waits`.

    `fences`: does it order its accesses for other blocks with a threadfence?
    """

    name: str
    function: Callable
    waits: bool
    sites: list[Site]
    space: dict[str, Any]
    loops: list[tuple[int, bool]]
    fences: bool

    def place(self, site: int) -> str:
        """Return "line N of NAME: text" of a site."""
        at = self.sites[site]
        return f"line {at.line} of {at.function}: {at.source}"
