"""How a Hopper tensor core adds up products of 8-bit floats, bit by bit of what it drops.

An instruction adds 32 products to a sum. All 33 numbers are shifted to the exponent of the largest
one, keep 13 bits behind its leading one, and lose what lies below, without rounding. This was found
by adding powers of two on an H200, and predicts the errors of long sums to two digits.
"""

from __future__ import annotations

import numpy as np

KEPT = 13  # bits behind the leading one of the largest number
ADDED = 32  # products that an instruction adds


def narrow_sums(a: np.ndarray, b: np.ndarray, promote: int | None = None) -> np.ndarray:
    """Return a (M, K) · b (K, N) in float64, as a Hopper tensor core would sum it.

    After every `promote` products, a multiple of 32, a sum is added to one in float64, and begins
    anew; with None it goes on to the end. Raises ValueError for shapes or a `promote` that do not
    fit. It takes memory for 33 numbers for each element.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a (M, K) and b (K, N) do not fit: {a.shape} and {b.shape}")
    if promote is not None and (promote < ADDED or promote % ADDED):
        raise ValueError(f"promote must be None or a multiple of {ADDED}, got {promote}")
    a, b = a.astype(np.float64), b.astype(np.float64)
    total = np.zeros((a.shape[0], b.shape[1]))
    held = np.zeros_like(total)
    for k in range(0, a.shape[1], ADDED):
        products = a[:, k : k + ADDED, None] * b[None, k : k + ADDED]
        terms = np.concatenate([held[:, None], products], axis=1)
        exponent = np.frexp(np.abs(terms).max(axis=1))[1] - 1
        unit = np.ldexp(1.0, exponent - KEPT)
        held = np.trunc(terms / unit[:, None]).sum(axis=1) * unit
        if promote is not None and (k + ADDED) % promote == 0:
            total += held
            held = np.zeros_like(total)
    return total + held
