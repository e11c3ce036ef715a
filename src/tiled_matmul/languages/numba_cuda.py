"""Numba CUDA: kernels under `@cuda.jit`, which say what one thread does.

Without a GPU, the course's interpreter runs them (`microscope/cuda/`); `kit/backend.py` puts it in
the place of Numba's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiled_matmul.languages.language import Language


class NumbaCuda(Language):
    """Numba CUDA, with the microscope for threads."""

    def untraced(self) -> str:
        return ""

    def trace(self, matmul: Callable, a: Any, b: Any, **options: Any) -> list:
        from tiled_matmul.microscope.cuda import watch

        with watch(**options) as traces:
            matmul(a, b)
        return traces

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        from tiled_matmul.kit.launch import launch

        launch(kernel, *arguments, **options)

    def compiled(self, matmul: Callable, a: Any, b: Any, cc: tuple[int, int]) -> list:
        from tiled_matmul.kit.launch import launched
        from tiled_matmul.microscope.compiled.cuda import compiled

        return [compiled(kernel, *given, cc=cc) for kernel, given in launched(matmul, a, b)]


NUMBA_CUDA = NumbaCuda(
    name="numba-cuda",
    title="Numba CUDA",
    module="numba",  # numba-cuda, which compiles, is for Linux only; the interpreter needs Numba
    packages=("numba", "numba-cuda"),
    simulator="the course's interpreter",
    sanitizers=("memcheck", "racecheck"),
)
