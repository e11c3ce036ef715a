"""The tile tracer: runs Triton kernels without a GPU and sees which tile each program touches."""

from tiled_matmul.microscope.triton.findings import Finding
from tiled_matmul.microscope.triton.places import Array
from tiled_matmul.microscope.triton.record import Event
from tiled_matmul.microscope.triton.trace import TileTrace, trace_tiles

__all__ = ["Array", "Event", "Finding", "TileTrace", "trace_tiles"]
