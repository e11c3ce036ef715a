"""The tile tracer: run Triton kernels without a GPU and record the tiles of each program.

Importing this package supplies block pointers to a Triton that has none: see `block_pointers`.
"""

from tiled_matmul.microscope.triton.block_pointers import supply
from tiled_matmul.microscope.triton.findings import TileFinding
from tiled_matmul.microscope.triton.places import Array
from tiled_matmul.microscope.triton.record import Event
from tiled_matmul.microscope.triton.trace import TileTrace, trace_tiles

__all__ = ["Array", "Event", "TileFinding", "TileTrace", "trace_tiles"]

supply()
