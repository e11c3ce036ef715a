"""Occupancy: how many blocks fit on one multiprocessor, by registers, shared memory and warps.

Source: NVIDIA, CUDA C++ Programming Guide, tables "Technical Specifications per Compute
Capability". A warp's registers are allocated in units of 256.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

WARP, REGISTERS, REGISTER_UNIT = 32, 65536, 256
SYSTEM_SHARED_BYTES = 1024  # of each block, from compute capability 8.0 on

# By compute capability: maximum resident warps and blocks, KiB of shared memory.
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
    """What a compiled kernel needs: registers per thread, bytes of shared memory per block."""

    name: str
    cc: tuple[int, int]
    registers: int
    shared_bytes: int


@dataclass(frozen=True)
class Occupancy:
    """The `blocks` of one kernel, with `warps` in all, that fit on a multiprocessor.

    `share` is `warps` over the maximum of the multiprocessor. `limit` names the resource that runs
    out first.
    """

    blocks: int
    warps: int
    share: float
    limit: str


def occupancy(made: Needs, threads: int) -> Occupancy:
    """Return the occupancy of the compiled kernel `made` in blocks of `threads` threads.

    Raises ValueError for a compute capability that is not in LIMITS, and for a block that does not
    fit on a multiprocessor.
    """
    if made.cc not in LIMITS:
        known = ", ".join(f"{major}.{minor}" for major, minor in LIMITS)
        raise ValueError(f"no limits are known for compute capability {made.cc}; known: {known}")
    most_warps, most_blocks, shared_kib = LIMITS[made.cc]
    warps = -(-threads // WARP)
    warp_registers = -(-made.registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    reserved = SYSTEM_SHARED_BYTES if made.cc >= (8, 0) else 0
    fits = {
        "registers": REGISTERS // warp_registers // warps,
        "shared memory": shared_kib * 1024 // max(1, made.shared_bytes + reserved),
        "warps": most_warps // warps,
        "blocks": most_blocks,
    }
    limit = min(fits, key=fits.__getitem__)
    if not fits[limit]:
        raise ValueError(f"{made.name} with {threads} threads a block does not fit: {limit}")
    blocks = fits[limit]
    return Occupancy(blocks, blocks * warps, blocks * warps / most_warps, limit)
