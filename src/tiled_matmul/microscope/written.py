"""From a kernel back to the function that somebody wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def function_of(kernel: Any) -> Callable:
    """Return the Python function that a kernel was made of, before any loop was unrolled.

    `kernel` is one of Numba's (`py_func`), one of Triton's (`fn`, under `autotune` too), or a plain
    function.
    """
    function = getattr(kernel, "py_func", kernel)
    while hasattr(function, "fn"):
        function = function.fn
    return getattr(function, "as_written", function)
