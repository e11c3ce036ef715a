"""The microscope for CUDA kernels by its old name: `from tiled_matmul.simt import trace`."""

from tiled_matmul.microscope.cuda import *  # noqa: F403
from tiled_matmul.microscope.cuda import __all__ as __all__
