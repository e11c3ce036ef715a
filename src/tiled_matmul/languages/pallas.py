"""Pallas: JAX's kernels on tiles, with its back end for Triton, as products.

JAX traces the kernel and lowers it to Triton's IR, and XLA compiles that, here for the description
of an H200; its PTX is assembled by ptxas. The sizes of matrices are constants of the compiler, so a
launch passes three addresses and nothing else.
Pallas also interprets kernels: `makers/make_pallas.py SOURCE --run M N K` checks this one so.
"""

from __future__ import annotations

from tiled_matmul.languages.abroad import CubinLanguage

PALLAS = CubinLanguage(
    name="pallas", title="Pallas", package="jax", target="sm_90a", on_cpu=True, graphs=True
)
