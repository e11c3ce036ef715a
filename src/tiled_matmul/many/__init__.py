"""Many: one product over several GPUs, or over several processes of a CPU.

May import: the operator, the ladder and what lies below them. Front doors: `run`, and in `cuts` the
functions that run on each rank.
"""

from tiled_matmul.many.launch import RanksError, run

__all__ = ["RanksError", "run"]
