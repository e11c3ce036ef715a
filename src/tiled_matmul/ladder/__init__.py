"""The ladder: every way of multiplying matrices that the course climbs, and the only list of them.

A rung is a module with `matmul(a, b, out=None)`: it checks its operands, allocates, launches and
returns C. Rungs for the CPU take numpy arrays, rungs for the GPU take torch tensors.

Importing this package chooses the back end, because each rung's module imports Numba or Triton,
and those have to be told before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

from tiled_matmul import backend

backend.select()


@dataclass(frozen=True)
class Rung:
    """One step. `device` is "cpu" or "gpu"; `options` are passed to the module's `matmul`."""

    name: str
    title: str
    module: str
    device: str
    chapter: int
    options: dict = field(default_factory=dict)

    @property
    def matmul(self) -> Callable:
        """The launcher `matmul(a, b, out=None)`; its module is imported at first use."""
        launcher = import_module(f"{__name__}.{self.module}").matmul
        return partial(launcher, **self.options) if self.options else launcher


ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")

LADDER: tuple[Rung, ...] = (
    Rung("loops_python", "Loops 1 in Python", "loops_python", "cpu", 1),
    *(
        Rung(f"njit_{order}", f"loops {order}, compiled", "loop_orders", "cpu", 2, {"order": order})
        for order in ORDERS
    ),
    Rung("loops_tiled", "Loops 4, compiled", "loops_tiled", "cpu", 3),
    Rung("cpu_packed", "packed tiles in parallel", "cpu_packed", "cpu", 3),
    Rung("cuda_naive", "a thread an element, x is the row", "cuda_naive", "gpu", 4),
    Rung("cuda_coalesced", "a thread an element, x is the column", "cuda_coalesced", "gpu", 4),
)


def rung(name: str) -> Rung:
    """Return the rung of that name. Raises ValueError that lists the known names."""
    for candidate in LADDER:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in LADDER)
    raise ValueError(f"unknown rung {name!r}; the ladder has {known}")
