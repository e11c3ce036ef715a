"""How many blocks fit on one multiprocessor: its registers, shared memory and places for warps.

Source: NVIDIA, CUDA C++ Programming Guide, tables "Technical Specifications per Compute
Capability"; registers are given out 256 at a time to a warp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

WARP, REGISTERS, GRAIN, RESERVED = 32, 65536, 256, 1024

# By compute capability: warps and blocks that may be there at once, KiB of shared memory.
LIMITS = {
    (7, 0): (64, 32, 96),
    (7, 5): (32, 16, 64),
    (8, 0): (64, 32, 164),
    (8, 6): (48, 16, 100),
    (8, 7): (48, 16, 164),
    (8, 9): (48, 24, 100),
    (9, 0): (64, 32, 228),
    (10, 0): (64, 32, 228),
    (10, 3): (64, 32, 228),
    (12, 0): (48, 24, 100),
    (12, 1): (48, 24, 100),
}


class Needs(Protocol):
    """What a compiled kernel needs: registers a thread, bytes of shared memory a block."""

    name: str
    cc: tuple[int, int]
    registers: int
    shared_bytes: int


@dataclass(frozen=True)
class Occupancy:
    """`blocks` of one kernel share a multiprocessor, `warps` in all; `limit` says what runs out.

    `share` is `warps` over the most that the multiprocessor could hold.
    """

    blocks: int
    warps: int
    share: float
    limit: str


def occupancy(made: Needs, threads: int) -> Occupancy:
    """Return what fits on a multiprocessor of `made.cc` in blocks of `threads` threads.

    Raises ValueError for a compute capability that is not in LIMITS, or a block that fits nowhere.
    """
    if made.cc not in LIMITS:
        known = ", ".join(f"{major}.{minor}" for major, minor in LIMITS)
        raise ValueError(f"no limits are known for compute capability {made.cc}; known: {known}")
    most_warps, most_blocks, shared_kib = LIMITS[made.cc]
    warps = -(-threads // WARP)
    a_warp = -(-made.registers * WARP // GRAIN) * GRAIN
    reserved = RESERVED if made.cc >= (8, 0) else 0
    fits = {
        "registers": REGISTERS // a_warp // warps,
        "shared memory": shared_kib * 1024 // max(1, made.shared_bytes + reserved),
        "warps": most_warps // warps,
        "blocks": most_blocks,
    }
    limit = min(fits, key=fits.__getitem__)
    if not fits[limit]:
        raise ValueError(f"{made.name} with {threads} threads a block does not fit: {limit}")
    blocks = fits[limit]
    return Occupancy(blocks, blocks * warps, blocks * warps / most_warps, limit)
