"""Kernels with other constants: how a launcher gets one kernel in several tile sizes.

Numba takes a kernel's globals for compile-time constants, and a shared array's shape has to be
one. So a kernel is written with names in capitals, `TILE` say, and `with_constants(kernel,
TILE=32)` is the same kernel in which that name has another value. Loops over `unroll(…)` are
written out anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import cuda

from tiled_matmul.kit.unroll import copied, unrolled
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.microscope.cuda.unsigned import is_marked

OPTIONS = ("fastmath", "max_registers", "launch_bounds")


@functools.cache
def with_constants(kernel: Any, *, max_registers: int | None = None, **constants: Any) -> Any:
    """Return `kernel`, a Numba CUDA kernel, compiled with other values of its global constants.

    The same kernel and constants give the same object, so that each is compiled once. Its compiler
    options are kept, but for `max_registers` if that is given. Raises ValueError for a name that
    the kernel does not use.
    """
    function = getattr(kernel.py_func, "as_written", kernel.py_func)
    for name in constants:
        if name not in function.__code__.co_names or name not in function.__globals__:
            raise ValueError(f"{function.__name__} has no constant {name!r} to be given a value")
    options = {} if max_registers is None else {"max_registers": max_registers}
    return compiled_as(kernel, copied(function, constants), **options)


def compiled_as(kernel: Any, function: Callable, **options: Any) -> Any:
    """Return `function` as a kernel made the way `kernel` was: unsigned and unrolled if it was.

    The kernel's options for `cuda.jit` are kept; those in `options` replace them.
    """
    made = kernel.py_func
    if is_marked(getattr(made, "as_written", made)):
        function = unsigned(function)
    if hasattr(made, "is_unrolled"):
        function = unrolled(function)
    given = getattr(kernel, "targetoptions", {})
    return cuda.jit(**{name: given[name] for name in OPTIONS if name in given} | options)(function)
