"""Recompile a kernel with other constants, for example with another tile size.

Numba treats a kernel's globals as compile-time constants, and a shared array's shape must be one.
So a kernel uses global names in capitals such as `TILE`, and `with_constants(kernel, TILE=32)` is
the same kernel with another value for that name. Loops over `unroll(…)` are unrolled again.
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
    """Return `kernel`, a Numba CUDA kernel, with other values for its global constants.

    Results are cached, so each combination is compiled once. The compiler options are kept, except
    `max_registers` if given. Raises ValueError for a name that the kernel does not use.
    """
    function = getattr(kernel.py_func, "as_written", kernel.py_func)
    for name in constants:
        if name not in function.__code__.co_names or name not in function.__globals__:
            raise ValueError(f"{function.__name__} has no constant {name!r} to be given a value")
    options = {} if max_registers is None else {"max_registers": max_registers}
    return compiled_as(kernel, copied(function, constants), **options)


def compiled_as(kernel: Any, function: Callable, **options: Any) -> Any:
    """Return `function` compiled as `kernel` was: unsigned and unrolled if `kernel` is.

    `options` override the `cuda.jit` options of `kernel`.
    """
    made = kernel.py_func
    if is_marked(getattr(made, "as_written", made)):
        function = unsigned(function)
    if hasattr(made, "is_unrolled"):
        function = unrolled(function)
    given = getattr(kernel, "targetoptions", {})
    return cuda.jit(**{name: given[name] for name in OPTIONS if name in given} | options)(function)
