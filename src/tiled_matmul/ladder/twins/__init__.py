"""Run: the rungs in Numba CUDA once more, in CUDA C++: what the language costs or saves.

A twin is a file here for each kernel of the ladder, line by line the same algorithm: the same
mapping of threads, guards, tiles in shared memory and widths of loads, and `#pragma unroll` where
the rung says `unroll`. Its launches are the rung's own: the rung's launcher checks the operands and
chooses kernel, grid, block and constants, and the twin's code runs in their place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

from tiled_matmul.languages import CUDA_CPP, Language

FOLDER = Path(__file__).parent
KERNEL = re.compile(r"^def (\w+)_kernel\(", re.M)
IMPORT = re.compile(r"^from tiled_matmul\.ladder(?:\.(\w+))? import (\w+)$", re.M)


@dataclass(frozen=True)
class Twin:
    """A rung in CUDA C++, in the form of a rung; it stands in no list of the climb."""

    rung: Any

    @property
    def name(self) -> str:
        """The name in records: that of the rung and of the language."""
        return name_of(self.rung.name)

    @property
    def title(self) -> str:
        """The rung's title and the language."""
        return f"{self.rung.title}, in {CUDA_CPP.title}"

    @property
    def language(self) -> Language:
        """CUDA C++."""
        return CUDA_CPP

    @property
    def device(self) -> str:
        """Where it runs: "gpu"."""
        return CUDA_CPP.device

    @property
    def chapter(self) -> int:
        """The rung's chapter."""
        return self.rung.chapter

    @property
    def layout(self) -> str:
        """The rung's layout of a and b."""
        return self.rung.layout

    @property
    def dtype(self) -> str:
        """The dtype in which the rung is measured."""
        return self.rung.dtype

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that the rung's launcher takes."""
        return self.rung.dtypes

    @property
    def source(self) -> Path:
        """The file of the kernel."""
        return FOLDER / f"{self.rung.module}.cu"

    @property
    def text(self) -> str:
        """The file's text, which nvcc compiles as it stands."""
        return text_of(self.rung.module)

    def texts(self) -> list[str]:
        """Return the texts of all kernels that it may launch: its own, and those of rungs below.

        A rung whose module imports that of another launches the other's kernel where its own does
        not fit.
        """
        own = self.rung.source
        imported = IMPORT.findall(own.read_text(encoding="utf-8"))
        below = [next(own.parent.glob(f"ch*_{module or name}.py")) for module, name in imported]
        files = [path.read_text(encoding="utf-8") for path in (own, *below)]
        return [text_of(kernel) for file in files for kernel in KERNEL.findall(file)]

    @property
    def available(self) -> bool:
        """Can both compilers be used here? NVRTC, for example, is not everywhere."""
        return self.rung.available and not self.language.missing()

    @cached_property
    def matmul(self) -> Callable:
        """The launcher `matmul(a, b, out=None, **options)`, with the rung's checks and options."""
        from tiled_matmul.kit.plans import remembered  # imports torch

        return remembered(partial(_multiply, self.rung))


def name_of(rung: str) -> str:
    """Return the name of a rung's twin."""
    return f"{rung} in {CUDA_CPP.title}"


def text_of(kernel: str) -> str:
    """Return the text of a kernel, whose name is without "_kernel". Raises ValueError for none."""
    path = FOLDER / f"{kernel}.cu"
    if not path.is_file():
        raise ValueError(f"{kernel} has no twin in {CUDA_CPP.title}: {path} is missing")
    return path.read_text(encoding="utf-8")


def edited(twin: Twin, *changes: tuple[str, str]) -> Callable:
    """Return the launcher of a twin whose texts have `new` in place of `old`, for each pair.

    Raises ValueError for an `old` that no text of the twin has.
    """
    for old, _ in changes:
        if not any(old in text for text in twin.texts()):
            raise ValueError(f"{old!r} is not in the text of {twin.name}")
    return partial(_multiply, twin.rung, changes=changes)


def _multiply(
    rung: Any,
    a: Any,
    b: Any,
    out: Any = None,
    *,
    changes: Sequence[tuple[str, str]] = (),
    **options: Any,
) -> Any:
    """Return a (M, K) · b (K, N) as (M, N), by the kernels that `rung` would launch, in CUDA C++.

    Their texts have each pair of `changes` replaced. Raises TypeError or ValueError as the rung's
    launcher, `cuda_cpp.twin`, `cuda_cpp.arguments` and `cuda_cpp.launch` do, and
    ModuleNotFoundError without NVRTC.
    """
    from tiled_matmul.kit import cuda_cpp, withheld  # import torch

    with withheld.withheld() as launches:
        out = rung.matmul(a, b, out, **options)
    sizes = a.shape[0], b.shape[1], a.shape[1]
    for each in launches:
        name = each.kernel.py_func.__name__.removesuffix("_kernel")
        text = reduce(lambda text, pair: text.replace(*pair), changes, text_of(name))
        kernel = cuda_cpp.twin(each, text)
        given = cuda_cpp.arguments(each, *sizes)
        cuda_cpp.launch(kernel, each.grid, each.block, *given)
    return out
