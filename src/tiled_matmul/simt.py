"""The old name of the microscope for CUDA kernels: `from tiled_matmul.simt import trace`."""

from tiled_matmul.microscope.cuda import *  # noqa: F403
from tiled_matmul.microscope.cuda import __all__ as __all__
