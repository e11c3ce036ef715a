"""Counts what one warp's request to global memory costs.

The threads of a warp load together. The hardware looks at their addresses at once and moves whole
sectors of 32 bytes, each once, however many lanes want it and however little of it they want.
Source: NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
"""

from __future__ import annotations

import numpy as np

WARP = 32
SECTOR_BYTES = 32


def sectors(addresses: np.ndarray, itemsize: int) -> int:
    """Return the number of distinct 32-byte sectors that one request touches.

    `addresses` holds the byte address of each active lane's element, at most 32 of them;
    `itemsize` is the element's size in bytes. Raises ValueError for more lanes, negative
    addresses or an itemsize that is not positive.
    """
    addresses = np.asarray(addresses, dtype=np.int64).ravel()
    if addresses.size > WARP:
        raise ValueError(f"a warp has {WARP} lanes, got {addresses.size} addresses")
    if itemsize < 1 or (addresses < 0).any():
        raise ValueError(f"addresses and itemsize must be positive, got itemsize {itemsize}")
    last = addresses + itemsize - 1
    touched = {
        sector
        for low, high in zip(addresses // SECTOR_BYTES, last // SECTOR_BYTES, strict=True)
        for sector in range(low, high + 1)
    }
    return len(touched)


def element_addresses(rows, columns, row_length: int, itemsize: int) -> np.ndarray:
    """Return byte addresses of elements [rows, columns] of a row-major matrix that starts at 0."""
    return (np.asarray(rows) * row_length + np.asarray(columns)) * itemsize
