"""Run: one product over several GPUs, or over several processes of a CPU.

May import: the operator, the ladder and what lies below them. Front doors: `run`, `tried`, and
in `cuts` the functions that run on each rank.
"""

from tiled_matmul.distributed.launch import RanksError, run, tried

__all__ = ["RanksError", "run", "tried"]
