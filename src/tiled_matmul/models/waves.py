"""Waves: in how many waves the multiprocessors compute the tiles, and how full the last one is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Waves:
    """A launch of `tiles`, one at a time on each of `multiprocessors`.

    Raises TypeError or ValueError unless both are positive ints.
    """

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
        """The number of waves; a partial last one counts."""
        return -(-self.tiles // self.multiprocessors)

    @property
    def last(self) -> int:
        """The number of multiprocessors with a tile in the last wave."""
        return self.tiles - (self.count - 1) * self.multiprocessors

    @property
    def fill(self) -> float:
        """The share of the multiprocessors' time in which they have a tile."""
        return self.tiles / (self.count * self.multiprocessors)


def side_by_side(
    programs: int, resident: int, start: float, latency: float, share: float, steps: float
) -> float:
    """Return how long a multiprocessor takes for so many programs, up to `resident` at a time.

    A program takes `start`, and for each of its steps `latency`, or `share` for each program that
    runs beside it if that is longer. The result has the unit of the three.
    """
    laps, rest = divmod(programs, resident)
    step = laps * max(latency, resident * share) + (max(latency, rest * share) if rest else 0)
    return start * (laps + (rest > 0)) + steps * step
