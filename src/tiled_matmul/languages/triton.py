"""Triton: kernels under `@triton.jit`, which say what one program does with tiles.

Without a GPU, Triton's own interpreter runs them, with the course's fixes (`microscope/triton/`);
`kit/backend.py` switches it on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiled_matmul.languages.language import Language


class Triton(Language):
    """What Triton's compiler compiles: Triton's programs, and Gluon's."""

    def untraced(self) -> str:
        return (
            "is a Triton program, which has tiles and no threads; "
            "tiled_matmul.trace_tiles traces it, from Python"
        )

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        from tiled_matmul.kit.programs import launch

        launch(kernel, *arguments, **options)

    def compiled(self, matmul: Callable, a: Any, b: Any, cc: tuple[int, int]) -> list:
        from tiled_matmul.kit.programs import launched
        from tiled_matmul.microscope.compiled.triton import tile_code

        return [
            tile_code(kernel, *given, cc=cc, **options)
            for kernel, given, options in launched(matmul, a, b)
        ]


TRITON = Triton(
    name="triton",
    title="Triton",
    module="triton",
    packages=("triton",),
    absent="Triton is not installed: the chapters on it need it, and it exists for Linux only",
    simulator="Triton's interpreter",
    graphs=True,
    strided=True,
)
