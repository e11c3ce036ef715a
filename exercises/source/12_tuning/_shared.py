"""What the exercises of chapter 12 share."""

from __future__ import annotations

BYTES, WARP = 2, 32
FLOPS, BANDWIDTH, WGMMA_ROWS = 4096, 128, 64


def step(rows: int, columns: int, depth: int) -> tuple[float, float, str]:
    """Return (clocks of arithmetic, clocks of shared memory, which is longer) of a step along K."""
    arithmetic = 2 * rows * columns * depth / FLOPS
    written = (rows + columns) * depth * BYTES
    read = (rows * depth + rows // WGMMA_ROWS * columns * depth) * BYTES
    shared = (written + read) / BANDWIDTH
    return arithmetic, shared, longer(arithmetic, shared)


def longer(arithmetic: float, shared: float) -> str:
    if arithmetic == shared:
        return "both"
    return "arithmetic" if arithmetic > shared else "shared memory"
