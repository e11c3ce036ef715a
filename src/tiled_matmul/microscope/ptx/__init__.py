"""See: run PTX without a GPU, whatever language it was compiled from, and count what threads do.

May import: models, machine. Front doors: `parse`, `run`.
"""

from __future__ import annotations

from tiled_matmul.microscope.ptx.parse import Instruction, Kernel, PtxError, parse
from tiled_matmul.microscope.ptx.run import Copied, Ran, run

__all__ = ["Copied", "Instruction", "Kernel", "PtxError", "Ran", "parse", "run"]
