"""Rows that can be read in aligned groups of four elements (16 bytes for float32)."""

from __future__ import annotations

from typing import Any


def fours(*tensors: Any) -> bool:
    """Return whether every row of these row-major tensors can be read in aligned fours."""
    return all(x.shape[1] % 4 == 0 and x.data_ptr() % (4 * x.element_size()) == 0 for x in tensors)


def rows_of_fours(b: Any) -> Any:
    """Return b (K, N) if its rows consist of aligned fours, else a copy for which that is true.

    The copy is padded with columns of zeros to (K, N rounded up to a multiple of 4).
    """
    if fours(b):
        return b
    from torch.nn.functional import pad

    return pad(b, (0, -b.shape[1] % 4)) if b.shape[1] % 4 else b.clone()
