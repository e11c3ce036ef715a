"""Launches that are noted instead of made, so that they can be compiled, counted or described."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tiled_matmul.kit import plans


class Withheld(NamedTuple):
    """A launch that was not made. A Numba kernel has no options, a Triton kernel no block."""

    kernel: Any
    grid: tuple
    block: tuple | None
    arguments: tuple
    options: dict


_launches: list[Withheld] | None = None


@contextmanager
def withheld() -> Iterator[list[Withheld]]:
    """Make launchers append to the yielded list instead of launching."""
    global _launches
    before, _launches = _launches, []
    try:
        with plans.paused():
            yield _launches
    finally:
        _launches = before


def withholding() -> bool:
    """Return whether this is inside `withheld`, where nothing runs or can be timed."""
    return _launches is not None


def withhold(
    kernel: Any, grid: tuple, block: tuple | None, arguments: tuple, options: dict
) -> bool:
    """Note a launch if this is inside `withheld`. Returns whether it was noted."""
    if _launches is None:
        return False
    _launches.append(Withheld(kernel, grid, block, arguments, options))
    return True


def of(matmul: Callable, *operands: Any, **options: Any) -> list[Withheld]:
    """Return the launches of a rung's `matmul(*operands, **options)` in order; none is made.

    The launcher's exceptions pass through.
    """
    with withheld() as launches:
        matmul(*operands, **options)
    return launches
