"""Select where kernels run: on the GPU, or in the microscope, which replaces `numba.cuda.jit`."""

from __future__ import annotations

from tiled_matmul.machine import backend
from tiled_matmul.microscope.cuda.kernel import install


def select() -> backend.Backend:
    """Return this process's back end; if it is the simulator, install the microscope.

    Raises BackendError as `machine.backend.select` does.
    """
    chosen = backend.select()
    if chosen.name == "simulator":
        install()
    return chosen
