"""TileLang: tiles in shared memory, fragments in registers, and pipelined loops, as products.

TileLang writes CUDA C++ with CUTLASS's headers, and nvcc compiles it. For Hopper it gives the
copies with TMA to a warp group of their own, so a block has 128 threads more than `threads` says.
Its host code makes the tensor maps; here the course makes them.
"""

from __future__ import annotations

from tiled_matmul.languages.abroad import CubinLanguage

TILELANG = CubinLanguage(name="tilelang", title="TileLang", target="sm_90a", graphs=True)
