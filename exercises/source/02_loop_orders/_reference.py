"""What computes the answer to 02.2: which exchanges of loops change a bit, and why.

`differs` draws numbers and compares the bits; `conflict` names two iterations that need the same
element and come the other way round after the exchange.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiled_matmul.grader.nests import DRAWS, Nest, exchanged, nest_named, run, turns_of


def differs(nest: str, pair: str, seed: int = 0) -> tuple[int, tuple[int, ...]] | None:
    """Return (seed, index) where the exchange of two loops changes a bit; None if it never does."""
    loops = exchanged(nest, pair)
    for number in range(seed, seed + DRAWS):
        was, now = run(nest, None, number), run(nest, loops, number)
        if was.tobytes() != now.tobytes():
            return number, tuple(int(x) for x in np.argwhere(was != now)[0])
    return None


def conflict(nest: str, pair: str) -> str | None:
    """Say which turns come the other way round after an exchange, if one needs the other."""
    one = nest_named(nest)
    touched: dict[tuple, list[tuple[int, tuple[int, ...], bool]]] = {}
    after = turns_of(one, exchanged(nest, pair))
    when = {turn: number for number, turn in enumerate(after)}
    for number, turn in enumerate(turns_of(one, one.loops)):
        for place, writes in _touches(one, turn):
            for earlier, other, wrote in touched.get(place, ()):
                if earlier != number and (wrote or writes) and when[other] > when[turn]:
                    return _told(one, place, (other, wrote), (turn, writes))
            touched.setdefault(place, []).append((number, turn, writes))
    return None


class _Noted:
    """Stands in for an array: notes what is asked of it."""

    def __init__(self, name: str, into: list) -> None:
        self.name, self.into = name, into

    def __getitem__(self, index: Any) -> int:
        self.into.append(((self.name, index), False))
        return 1

    def __setitem__(self, index: Any, value: int) -> None:
        self.into.append(((self.name, index), True))


def _touches(one: Nest, turn: tuple[int, ...]) -> list[tuple[tuple, bool]]:
    into: list = []
    space = {name: _Noted(name, into) for name in one.shapes}
    names = dict(zip(sorted(one.loops), turn, strict=True))
    exec(compile(one.line, "<nest>", "exec"), {"min": min, **space, **names})
    return into


def _told(one: Nest, place: tuple, first: tuple, second: tuple) -> str:
    name, index = place
    spelled = f"{name}[{', '.join(map(str, index if isinstance(index, tuple) else (index,)))}]"
    (earlier, wrote), (later, writes) = first, second
    names = f"({', '.join(sorted(one.loops))})"
    does = {True: "writes", False: "reads"}
    return (
        f"Turn {names} = {earlier} {does[wrote]} {spelled}, then turn {later} {does[writes]} it; "
        "after the exchange, the other way round."
    )
