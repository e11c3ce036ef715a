"""What the exercises of this chapter with one size of tiles have in common."""

from __future__ import annotations

SHORT_TILES = (
    "The last tile may be shorter than T: then its loop has to end at the matrix's edge. Or two "
    "indices are exchanged: A is M × K and B is K × N, so `a[i, k]` and `b[k, j]`."
)
