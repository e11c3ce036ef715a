"""Warp: NVIDIA's kernels in Python, in which a block of threads shares tiles, as products.

Warp writes CUDA C++, which NVRTC compiles, and links cuBLASDx's multiplication for these tiles.
That takes the sums from shared memory, and writes them back there, in each step of the loop.
Machine code of 6 MB comes out, most of it the names of inlined functions: `makers/make_warp.py`
leaves them out. A launch passes the grid of tiles, and each array with its shape and its strides in
bytes.
Warp also compiles for the CPU, where `makers/make_warp.py SOURCE --run M N K` checks the kernel.
"""

from __future__ import annotations

from tiled_matmul.languages.abroad import CubinLanguage

WARP = CubinLanguage(
    name="warp", title="Warp", package="warp-lang", target="sm_90", on_cpu=True, graphs=True
)
