"""Where kernels run: on the GPU, or in the microscope, which replaces `numba.cuda.jit` then."""

from __future__ import annotations

from tiled_matmul.machine import backend
from tiled_matmul.microscope.cuda.kernel import install


def select() -> backend.Backend:
    """Return this process's back end and make it ready, at the first call.

    Raises BackendError as `machine.backend.select` does.
    """
    chosen = backend.select()
    if chosen.name == "simulator":
        install()
    return chosen
