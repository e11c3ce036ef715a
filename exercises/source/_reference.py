"""What computes the results of exercises on numbers in more than one chapter."""

from __future__ import annotations

from tiled_matmul.grader.spec import cover


def tiles_of(m: int, n: int, block_m: int, block_n: int) -> int:
    """Return how many tiles of block_m × block_n cover a C of m × n."""
    return cover(m, block_m) * cover(n, block_n)


def used(m: int, n: int, block_m: int, block_n: int, sms: int) -> float:
    """Return the share of the multiprocessors' time in which they have a tile of C."""
    return filled(tiles_of(m, n, block_m, block_n), sms)


def filled(tiles: float, sms: int) -> float:
    """Return which share of the places in all waves, the last one whole, so many tiles take."""
    return tiles / (-(-tiles // sms) * sms)
