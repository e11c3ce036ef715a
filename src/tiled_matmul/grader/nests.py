"""Loop nests, and what becomes of them when their loops run in another order.

A nest is a line of Python in loops over i, j and perhaps k. `run` runs it with its loops in any
order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

SQUARE = {"i": 6, "j": 6, "k": 6}
DRAWS = 24  # sums in another order have the same bits now and then, and not so many times


@dataclass(frozen=True)
class Nest:
    """A nest: its loops from the outermost on, its line, and where its loops begin and end.

    `shapes` are the arrays of the line, by their indices: "ij" is as many rows as `sizes` gives i.
    What an index like `i - 1` or `j + 1` asks for is there, because of `first` and `short`. `whole`
    draws whole numbers, which are not rounded.
    """

    loops: str
    line: str
    shapes: dict[str, str]
    first: int = 0
    short: int = 0
    whole: bool = True
    sizes: Mapping[str, int] = field(default_factory=lambda: {"i": 6, "j": 7, "k": 5})

    @property
    def pairs(self) -> tuple[str, ...]:
        """The pairs of loops that can be exchanged, in the order of the alphabet."""
        return tuple("".join(sorted(pair)) for pair in combinations(sorted(self.loops), 2))

    def range(self, loop: str) -> range:
        """Return what a loop counts."""
        return range(self.first, self.size(loop) - self.short)

    def size(self, index: str) -> int:
        """Return how long an array is along an index."""
        return self.sizes.get(index, 1)

    def text(self, loops: str | None = None) -> str:
        """Return the nest as Python."""
        lines = []
        for depth, loop in enumerate(loops or self.loops):
            span = self.range(loop)
            words = f"{span.start}, {span.stop}" if span.start else f"{span.stop}"
            lines.append("    " * depth + f"for {loop} in range({words}):")
        return "\n".join([*lines, "    " * len(lines) + self.line])


NESTS = {
    "product": Nest(
        "ijk", "c[i, j] += a[i, k] * b[k, j]", {"c": "ij", "a": "ik", "b": "kj"}, whole=False
    ),
    "total": Nest("ij", "s[0] += a[i, j]", {"s": "1", "a": "ij"}, whole=False),
    "wave": Nest("ij", "x[i, j] += x[i - 1, j] + x[i, j - 1]", {"x": "ij"}, first=1),
    "slant": Nest("ij", "x[i, j] += x[i - 1, j + 1]", {"x": "ij"}, first=1, short=1),
    "paths": Nest("kij", "d[i, j] = min(d[i, j], d[i, k] + d[k, j])", {"d": "ij"}, sizes=SQUARE),
    "in place": Nest("ijk", "c[i, j] += c[i, k] * b[k, j]", {"c": "ij", "b": "kj"}, sizes=SQUARE),
}


def exchanged(nest: str, pair: str) -> str:
    """Return a nest's loops with two of them exchanged. Raises ValueError for other loops."""
    one = nest_named(nest)
    if "".join(sorted(pair)) not in one.pairs:
        raise ValueError(f"{nest} has the pairs {', '.join(one.pairs)}, got {pair!r}")
    return one.loops.translate(str.maketrans(pair, pair[::-1]))


def run(nest: str, loops: str | None = None, seed: int = 0) -> np.ndarray:
    """Run a nest on numbers drawn from a seed; return the array that it writes."""
    one = nest_named(nest)
    loops = one.loops if loops is None else loops
    if sorted(loops) != sorted(one.loops):
        raise ValueError(f"{nest} has the loops {one.loops}, in any order; got {loops!r}")
    arrays = _arrays(one, seed)
    _go(one, loops, arrays)
    return arrays[one.line.partition("[")[0]]


def nest_named(name: str) -> Nest:
    if name not in NESTS:
        raise ValueError(f"there is no nest {name!r}; there are {', '.join(NESTS)}")
    return NESTS[name]


def _arrays(one: Nest, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, indices in one.shapes.items():
        shape = tuple(one.size(index) for index in indices)
        drawn = rng.integers(1, 20, shape) if one.whole else rng.standard_normal(shape)
        arrays[name] = drawn.astype(np.int64 if one.whole else np.float32)
    return arrays


def turns_of(one: Nest, loops: str) -> list[tuple[int, ...]]:
    """Return what (i, j) or (i, j, k) are, turn by turn."""
    names = sorted(loops)
    turns = []
    for values in product(*(one.range(loop) for loop in loops)):
        at = dict(zip(loops, values, strict=True))
        turns.append(tuple(at[name] for name in names))
    return turns


def _go(one: Nest, loops: str, arrays: dict[str, Any]) -> None:
    code = compile(one.line, "<nest>", "exec")
    names = sorted(loops)
    with np.errstate(over="ignore"):
        for turn in turns_of(one, loops):
            exec(code, {"min": min, **arrays, **dict(zip(names, turn, strict=True))})
