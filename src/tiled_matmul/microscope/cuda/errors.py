"""What can stop a kernel that runs in the interpreter. Every message says where, and what came."""

from __future__ import annotations


class KernelError(Exception):
    """Something that the interpreter of `simt/` will not run on with."""


class Unsupported(KernelError, NotImplementedError):
    """The kernel uses what this interpreter, or Numba on a GPU, does not know."""


class OutOfBounds(KernelError, IndexError):
    """A thread indexed an array outside of its shape."""


class DivergentBarrier(KernelError, RuntimeError):
    """Some threads wait at a barrier that others never reach."""


class StepLimit(KernelError, RuntimeError):
    """A loop went on for longer than any loop of this course should."""


class TypingError(KernelError, TypeError):
    """Numba would refuse to compile this, for the types that came."""
