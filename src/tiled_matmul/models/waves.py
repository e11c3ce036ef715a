"""Waves: how many tiles each multiprocessor gets, and how full the last round is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Waves:
    """How many tiles wait for how many multiprocessors, each of which takes one at a time."""

    tiles: int
    multiprocessors: int

    def __post_init__(self) -> None:
        for name in ("tiles", "multiprocessors"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, got {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be positive, got {value}")

    @property
    def count(self) -> int:
        """How many waves there are, the last one counted whole."""
        return -(-self.tiles // self.multiprocessors)

    @property
    def last(self) -> int:
        """How many multiprocessors have a tile in the last wave."""
        return self.tiles - (self.count - 1) * self.multiprocessors

    @property
    def fill(self) -> float:
        """The share of all multiprocessors' time in which they have a tile."""
        return self.tiles / (self.count * self.multiprocessors)
