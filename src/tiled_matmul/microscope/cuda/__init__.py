"""The microscope for CUDA kernels: run Numba kernels without a GPU and record every access."""

from tiled_matmul.microscope.cuda.errors import (
    DivergentBarrier,
    KernelError,
    OutOfBounds,
    StepLimit,
    TypingError,
    Unsupported,
)
from tiled_matmul.microscope.cuda.kernel import watch
from tiled_matmul.microscope.cuda.names import Access, stands_for
from tiled_matmul.microscope.cuda.trace import Trace, trace

__all__ = [
    "Access",
    "DivergentBarrier",
    "KernelError",
    "OutOfBounds",
    "StepLimit",
    "Trace",
    "TypingError",
    "Unsupported",
    "stands_for",
    "trace",
    "watch",
]
