"""Gluon: a dialect of Triton whose kernels say what each warp does, and when it waits.

It comes with Triton, which compiles it. Without a GPU, the course's interpreter runs its kernels
(`microscope/gluon/`), which reports what nothing orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiled_matmul.languages.triton import TRITON, Triton

ORDERS = ("forward", "shuffle")  # when they have to wait, or also where a draw says so


class Gluon(Triton):
    """Triton, with an interpreter of the course's own."""

    def untraced(self) -> str:
        return ""

    def trace(self, matmul: Callable, a: Any, b: Any, **options: Any) -> list:
        from tiled_matmul.kit.backend import select
        from tiled_matmul.kit.withheld import of
        from tiled_matmul.microscope.gluon import collect, is_gluon, trace_gluon

        order, seed = options.get("order", "forward"), options.get("seed", 0)
        if order not in ORDERS:
            known = " or ".join(ORDERS)
            raise ValueError(f"roles take turns in the order {known}, got {order!r}")
        drawn = seed if order == "shuffle" else None
        traces: list = []
        if select().name == "simulator":
            with collect(drawn) as traces:
                matmul(a, b)
        # A rung may launch another kernel here, and this one where it is compiled for.
        launches = [] if traces else [x for x in of(matmul, a, b) if is_gluon(x.kernel)]
        traces += [
            trace_gluon(each.kernel, each.grid, *each.arguments, seed=drawn, **each.options)
            for each in launches
        ]
        if not traces:
            raise ValueError(
                f"with operands of {a.dtype} of {tuple(a.shape)} and {tuple(b.shape)} this rung "
                "launches no kernel in Gluon"
            )
        return traces


GLUON = Gluon(
    name="gluon",
    title="Gluon",
    module=TRITON.module,
    packages=TRITON.packages,
    absent=TRITON.absent,
    simulator="the course's interpreter of Gluon",
    graphs=True,
    strided=True,
)
