"""The tile tracer: runs Triton kernels without a GPU and sees which tile each program touches."""

from tiled_matmul.tiles.findings import Finding
from tiled_matmul.tiles.places import Array
from tiled_matmul.tiles.record import Event
from tiled_matmul.tiles.trace import TileTrace, trace_tiles

__all__ = ["Array", "Event", "Finding", "TileTrace", "trace_tiles"]
