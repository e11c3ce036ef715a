"""How a Hopper tensor core adds up products of 8-bit floats, bit by bit of what it drops.

An instruction adds 32 products to a sum. Each of these 33 numbers has a place: the exponent of the
sum, or of a product those of its factors added up, though 1.5 · 1.5 is more than 2. All are cut off
13 bits behind the highest place, without rounding, and their sum is cut off 13 bits behind its own
first bit. This was found by adding powers of two on an H200.
"""

from __future__ import annotations

import numpy as np

KEPT = 13  # bits behind a place
ADDED = 32  # products that an instruction adds
NOWHERE = -500  # the place of zero


def narrow_sums(a: np.ndarray, b: np.ndarray, promote: int | None = None) -> np.ndarray:
    """Return a (M, K) · b (K, N) in float32, as a Hopper tensor core would sum it.

    a and b hold 8-bit floats, in any wider dtype. After every `promote` products, a multiple of 32,
    a sum is added to a total in float32 and a new one starts; with None it goes on to the end.
    Raises ValueError for shapes or a `promote` that do not fit. It takes memory for 66 numbers for
    each element.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a (M, K) and b (K, N) do not fit: {a.shape} and {b.shape}")
    if promote is not None and (promote < ADDED or promote % ADDED):
        raise ValueError(f"promote must be None or a multiple of {ADDED}, got {promote}")
    a, b = a.astype(np.float64)[:, :, None], b.astype(np.float64)[None]
    held = np.zeros((len(a), b.shape[2]))
    total = held.astype(np.float32)
    for k in range(0, a.shape[1], ADDED):
        a_part, b_part = a[:, k : k + ADDED], b[:, k : k + ADDED]
        terms = np.concatenate([a_part * b_part, held[:, None]], axis=1)
        places = np.concatenate([place(a_part) + place(b_part), place(held)[:, None]], axis=1)
        held = cut(terms, places.max(axis=1, keepdims=True)).sum(axis=1)
        held = cut(held, place(held))
        if promote is not None and (k + ADDED) % promote == 0:
            total += held.astype(np.float32)
            held = np.zeros_like(held)
    return total + held.astype(np.float32)


def place(x: np.ndarray) -> np.ndarray:
    """Return the exponent of the first bit."""
    return np.where(x == 0, NOWHERE, np.frexp(x)[1] - 1)


def cut(x: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return x without the bits more than KEPT behind a place."""
    unit = np.ldexp(1.0, place - KEPT)
    return np.trunc(x / unit) * unit
