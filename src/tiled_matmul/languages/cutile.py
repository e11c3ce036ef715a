"""cuTile: NVIDIA's language of tiles in Python, compiled by way of Tile IR, as products.

A program has a block of C, and says neither threads nor shared memory. An array of rank 2 is five
parameters: the address, the shape and the strides in elements. Where a kernel copies with TMA, the
tensor maps are parameters that its caller does not see: machine code brings a small routine for the
host, x86, that the driver calls before a launch, and that makes the maps from the arrays.
"""

from __future__ import annotations

from tiled_matmul.languages.abroad import CubinLanguage

CUTILE = CubinLanguage(
    name="cutile", title="cuTile", package="cuda-tile", target="sm_90", graphs=True
)
