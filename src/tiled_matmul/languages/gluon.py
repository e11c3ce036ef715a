"""Gluon: a dialect of Triton whose kernels say what each warp does, and when it waits.

It comes with Triton, which compiles it. No interpreter runs it: without a GPU, the launchers of its
rungs launch a kernel in Triton instead.
"""

from __future__ import annotations

from tiled_matmul.languages.triton import TRITON, Triton


class Gluon(Triton):
    """Triton, except that nothing traces it."""

    def untraced(self) -> str:
        return "is a Gluon program, which neither the microscope nor Triton's interpreter can run"


GLUON = Gluon(
    name="gluon",
    title="Gluon",
    module=TRITON.module,
    packages=TRITON.packages,
    absent=TRITON.absent,
    simulator="Triton's interpreter, which runs a rung in Triton in its place",
    graphs=True,
    strided=True,
)
