"""A GPU that is not here, for launchers that choose kernels and tiles by its capability."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tiled_matmul.machine import backend

ROOMS = ("tiled_matmul.kit.", "tiled_matmul.ladder.")
# These say where operands have to lie, and launch.
REALLY_HERE = ("tiled_matmul.kit.backend", "tiled_matmul.kit.launch")


@contextmanager
def other_gpu(capability: tuple[int, int]) -> Iterator[None]:
    """Within this, every launcher that is loaded takes a GPU of this kind to be the one here."""
    there = backend.Backend("gpu", "for a test", backend.Gpu("a GPU", capability, "13.0"))
    asking = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(ROOMS) and name not in REALLY_HERE and "select" in vars(module)
    ]
    assert asking
    with pytest.MonkeyPatch.context() as patch:
        for module in asking:
            patch.setattr(module, "select", lambda: there)
        yield
