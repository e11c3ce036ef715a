"""The microscope: runs CUDA kernels written in Python without a GPU, and sees every access."""

from tiled_matmul.simt.errors import (
    DivergentBarrier,
    KernelError,
    OutOfBounds,
    StepLimit,
    TypingError,
    Unsupported,
)
from tiled_matmul.simt.kernel import watch
from tiled_matmul.simt.names import Access, stands_for
from tiled_matmul.simt.trace import Trace, trace

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
