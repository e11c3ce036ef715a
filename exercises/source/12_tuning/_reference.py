"""What computes the results of 12.2 and 12.3."""

from __future__ import annotations

from ._shared import BANDWIDTH, BYTES, FLOPS, WGMMA_ROWS


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
