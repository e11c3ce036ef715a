"""A kernel that is ready to run, the sites in its source, and the iterations of its loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tiled_matmul.microscope.cuda.source import line_text


@dataclass(frozen=True)
class Site:
    """A place in the source that reads or writes an array, or waits.

    `op` is "load", "store", "atomic" or "barrier"; `text` is the source, such as "a[row, k]", and
    `array` is the array's name there. `sets` says whether it overwrites without reading, `used`
    whether the source uses the result, `asynchronous` whether it belongs to an asynchronous copy.
    Such a copy has sites of two more ops: "flight" while it is under way and "landing". Only the
    findings use them; they are never counted.
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
        """The text of its line, stripped."""
        return line_text(self.file, self.line)


class Paths:
    """Numbers for the iterations of loops: in all threads, one iteration has the same number."""

    def __init__(self, sites: int, loops: list[tuple[int, bool]]) -> None:
        self.sites = sites
        self.loops = loops  # for each loop: the number of sites before it; whether it is a while
        self.parents: list[tuple[int, int, int]] = [(-1, -1, 0)]
        self._iterations: dict[tuple[int, int], list[int]] = {}

    def iterations(self, path: int, loop: int) -> Iterator[int]:
        """Yield the path of each iteration of a loop that is entered on `path`."""
        known = self._iterations.setdefault((path, loop), [])
        iteration = 0
        while True:
            if iteration == len(known):
                known.append(len(self.parents) * self.sites)
                self.parents.append((path // self.sites, loop, iteration))
            yield known[iteration]
            iteration += 1

    def along(self, values: Iterable, path: int, loop: int) -> Iterator[tuple[Any, int]]:
        """Yield (value, path) for each iteration of a for loop that is entered on `path`."""
        known = self._iterations.get((path, loop), ())
        if type(values) is range and not values[len(known) :]:
            return zip(values, known, strict=False)  # some thread has been through all of them
        return zip(values, self.iterations(path, loop), strict=False)

    def elements(self, key: int) -> Iterator[int]:
        """Yield the key of each element that a store to a slice, with this key, writes.

        Such a store counts as a loop at its own place, whose number is ~site.
        """
        path, site = key - key % self.sites, key % self.sites
        return (element + site for element in self.iterations(path, ~site))

    def program_order(self, key: int) -> tuple[tuple[int, int, int], ...]:
        """Return a sort key that puts access keys into the order of a thread's execution."""
        path, site = divmod(key, self.sites)
        steps = [(2 * site, 0, 0)]
        while path:
            path, loop, iteration = self.parents[path]
            before, is_while = self.loops[loop] if loop >= 0 else (~loop, False)
            place = 2 * before - 1  # between the sites before it and those in it
            if is_while and steps[-1][0] < place:
                # A site before a while loop with an iteration's path belongs to the condition,
                # which is evaluated again after that iteration.
                later, *rest = steps[-1]
                steps[-1] = (later + 2 * self.sites, *rest)
            steps.append((place, loop, iteration))
        return tuple(reversed(steps))


@dataclass
class Program:
    """A kernel ready to run: `function(lane, path, *arguments)`, a generator if it `waits`.

    `fences` says whether it uses a threadfence, which orders its accesses for other blocks.
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
