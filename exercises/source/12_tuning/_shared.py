"""What the exercises of chapter 12 share."""

from __future__ import annotations

BYTES, WARP = 2, 32
FLOPS, BANDWIDTH, WGMMA_ROWS = 4096, 128, 64
