"""Python itself: loops over numpy arrays, which nothing compiles."""

from __future__ import annotations

from tiled_matmul.languages.language import Language


class OnCpu(Language):
    """A language whose kernels are functions that run on the CPU."""

    def untraced(self) -> str:
        return "runs on the CPU; only CUDA kernels can be traced"


PYTHON = OnCpu(
    name="python",
    title="Python",
    device="cpu",
    module="numpy",
    packages=("numpy",),
    sanitizers=(),
)
