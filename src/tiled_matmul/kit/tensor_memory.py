"""Tensor memory of Blackwell GPUs, in Gluon: where it is, and how sums come out of it.

Triton 3.8 took `get_tmem_reg_layout` away: there, `load` finds the layout of the registers itself.
"""

from __future__ import annotations

from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell as names

from tiled_matmul.kit.gluon import runs_on

BLACKWELL = (10, 0)
ROWS = 128  # of tensor memory; it has 512 columns of 32 bits


def blackwell(tensor: Any) -> bool:
    """Return whether kernels for tensor memory multiply such a tensor here."""
    return runs_on(tensor, BLACKWELL)


if hasattr(names, "get_tmem_reg_layout"):
    from triton.experimental.gluon.language.nvidia.blackwell import get_tmem_reg_layout

    @gluon.jit
    def load_sums(sums):
        """Return sums of float32 from tensor memory in the registers of four warps."""
        shape: gl.constexpr = (sums.shape[0], sums.shape[1])
        lanes: gl.constexpr = get_tmem_reg_layout(gl.float32, shape, sums.layout, 4)
        return sums.load(lanes)

else:

    @gluon.jit
    def load_sums(sums):
        """Return sums of float32 from tensor memory in the registers of four warps."""
        return sums.load()
