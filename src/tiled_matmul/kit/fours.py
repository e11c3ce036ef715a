"""Rows that can be read by aligned fours: four neighbours, from a multiple of their 16 bytes on."""

from __future__ import annotations

from typing import Any


def fours(*tensors: Any) -> bool:
    """Can all of these row-major tensors be read by aligned fours, along each of their rows?"""
    return all(x.shape[1] % 4 == 0 and x.data_ptr() % (4 * x.element_size()) == 0 for x in tensors)


def rows_of_fours(b: Any) -> Any:
    """Return b (K, N) if its rows are made of aligned fours, else a copy with rows that are.

    The copy is wider, by columns of zeros: (K, N rounded up to a multiple of 4).
    """
    if fours(b):
        return b
    from torch.nn.functional import pad

    return pad(b, (0, -b.shape[1] % 4)) if b.shape[1] % 4 else b.clone()
