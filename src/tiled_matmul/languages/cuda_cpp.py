"""CUDA C++: the language of the ladder's twins (`ladder/twins/`), compiled by NVRTC.

Nothing interprets it: without a GPU a twin can be compiled, and not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiled_matmul.languages.language import Language
from tiled_matmul.languages.numba_cuda import NUMBA_CUDA


class CudaCpp(Language):
    """CUDA C++, whose launches are made from those of a rung in Numba CUDA."""

    def missing(self) -> str:
        from tiled_matmul.kit import cuda_cpp

        return NUMBA_CUDA.missing() or cuda_cpp.missing()

    def versions(self) -> dict[str, str]:
        from tiled_matmul.kit import cuda_cpp

        return super().versions() | ({} if self.missing() else {"nvrtc": cuda_cpp.version()})

    def launch(self, kernel: Any, *arguments: Any, **options: Any) -> None:
        from tiled_matmul.kit.cuda_cpp import launch

        launch(kernel, *arguments, **options)

    def compiled(self, matmul: Callable, a: Any, b: Any, cc: tuple[int, int]) -> list:
        from tiled_matmul.kit.launch import launched
        from tiled_matmul.microscope.compiled.cuda import cuobjdump, find_tool, read

        tool = find_tool("cuobjdump")
        kernels = [kernel for kernel, _ in launched(matmul, a, b)]
        return [read(each.name, cc, *cuobjdump(each.cubin(cc), tool)) for each in kernels]

    def source(self, kernel: Any) -> str:
        return kernel.text

    def lines(self, kernel: Any) -> list[str]:
        return [line for line in kernel.text.splitlines() if line.strip()]


CUDA_CPP = CudaCpp(
    name="cuda-cpp",
    title="CUDA C++",
    module="numba",
    packages=(*NUMBA_CUDA.packages, "cuda-bindings"),
    sanitizers=("memcheck", "racecheck"),
)
