"""Find the Python function behind a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def function_of(kernel: Any) -> Callable:
    """Return the Python function of a kernel, as it was before its loops were unrolled.

    `kernel` is a kernel of Numba or of Triton, with or without `autotune`, or a plain function.
    """
    function = getattr(kernel, "py_func", kernel)
    while hasattr(function, "fn"):
        function = function.fn
    return getattr(function, "as_written", function)
