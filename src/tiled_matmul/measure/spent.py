"""What the seconds of a measurement are spent on: counted by name, without what is further in."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator

CLOCK, COMPILER, REST = "the clock", "compiling and checking", "the rest"

_spent: Counter[str] = Counter()


@contextlib.contextmanager
def spending(on: str) -> Iterator[None]:
    """Count the seconds in here as spent on something, but for what is counted further in."""
    began, before = time.monotonic(), sum(_spent.values())
    try:
        yield
    finally:
        inner = sum(_spent.values()) - before
        _spent[on] += time.monotonic() - began - inner


def forget() -> None:
    """Count anew."""
    _spent.clear()


def shares(seconds: float) -> str:
    """Return in words what so many seconds were spent on."""
    found = {name: _spent[name] for name in (CLOCK, COMPILER)}
    found[REST] = max(0.0, seconds - sum(found.values()))
    return ", ".join(f"{name} {each / max(seconds, 1e-9):.0%}" for name, each in found.items())
