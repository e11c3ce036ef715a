"""The errors that stop a kernel in the interpreter. Messages name the place and the value."""

from __future__ import annotations


class KernelError(Exception):
    """The interpreter cannot run the kernel, or cannot go on with it."""


class Unsupported(KernelError, NotImplementedError):
    """The kernel uses a feature that this interpreter, or Numba on a GPU, does not support."""


class OutOfBounds(KernelError, IndexError):
    """A thread used an index outside an array's shape."""


class DivergentBarrier(KernelError, RuntimeError):
    """Some threads wait at a barrier that others never reach."""


class StepLimit(KernelError, RuntimeError):
    """A loop ran more iterations than the limit `max_steps`."""


class TypingError(KernelError, TypeError):
    """Numba would not compile the kernel for the types of these values."""
