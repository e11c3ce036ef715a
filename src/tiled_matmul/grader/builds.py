"""Compile an answer's kernel to machine code, in the learner's process, which has no GPU.

The code crosses over as bytes, with the values that a launch needs. `launcher` launches it, in a
process that never runs a learner's Python.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from tiled_matmul.grader.watched import ANSWER

WARM = (8, 0)  # the compute capability for which it compiles to be ready


def build(kind: str, space: dict, request: dict) -> tuple[dict, list[bytes]]:
    """Compile the kernel for the compute capability that the request names.

    If the request has no entry, a kernel of the course's is compiled, to show that compiling works.
    The reply says which of the launch's arguments are passed (the others are constants in the
    code), the number of warps of a block, and the bytes of shared and scratch memory. 0 warps mean
    as many as the launch's block has.
    """
    cc = tuple(request["cc"])
    if "entry" not in request:
        return _own_cuda(cc) if kind == "cuda" else _own_triton(cc)
    if kind == "cuda":
        with _compiler(cc):
            return _cuda(_defined_again(space, request["entry"]), request, cc)
    return _triton(space[request["entry"]], request, cc)


def warm_up(kind: str) -> None:
    """Let the compiler load what it needs, in a process that will be forked.

    That leaves out what NVIDIA's libraries do behind Numba: after it, a compilation in a forked
    process crashes where there is a driver.
    """
    if kind != "cuda":
        _own_triton(WARM)
        return
    from numba import float32, void
    from numba.cuda.compiler import compile_cuda

    with _compiler(WARM):
        compile_cuda(_copy, void, (float32[:, ::1],) * 3, cc=WARM)


def _copy(a, b, c):
    c[0, 0] = a[0, 0]


@contextmanager
def _compiler(cc: tuple[int, int]) -> Iterator[None]:
    """Let `cuda.jit` be Numba's own, where kernels run in the interpreter.

    For a call of a device function Numba asks the driver which GPU it is; there may be none. With a
    signature it would compile for that GPU at once: the types are those of the case instead.
    """
    from numba import cuda
    from numba.cuda import decorators, dispatcher

    def jit(function: Any = None, *others: Any, **options: Any) -> Any:
        options.pop("cache", None)  # there is no file to find it by again
        known = isinstance(function, FunctionType | dispatcher.CUDADispatcher)
        return decorators.jit(function if known else None, *others, **options)

    device = SimpleNamespace(compute_capability=cc)
    with (
        patch.object(cuda, "jit", jit),
        patch.object(dispatcher, "get_current_device", lambda: device),
    ):
        yield


def _defined_again(space: dict, entry: str) -> Any:
    """Return the kernel as `cuda.jit` makes it now, with all of its device functions."""
    made = dict(space)
    exec(compile("".join(linecache.getlines(ANSWER)), ANSWER, "exec"), made)
    return made[entry]


def _own_cuda(cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    """Compile a kernel of the course's, to show that this machine can."""
    from numba import cuda

    with _compiler(cc):
        plain = {"dtype": "float32", "by_columns": "", "arrays": "abc", "shapes": [(1, 1)] * 3}
        return _cuda(cuda.jit(_copy), plain, cc)


def _own_triton(cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    import triton
    import triton.language as tl

    @triton.jit
    def copy(a, b, c):
        tl.store(c, tl.load(a))

    plain = {"dtype": "float32", "numbers": [], "launch": [[1], {}], "arrays": "abc"}
    return _triton(copy, plain, cc)


def _cuda(kernel: Any, request: dict, cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    from numba import from_dtype, types

    from tiled_matmul.microscope.compiled.cuda import cubin

    dtype = from_dtype(np.dtype(request["dtype"]))
    named = zip(request["arrays"], request["shapes"], strict=True)
    layouts = [(len(shape), "F" if name in request["by_columns"] else "C") for name, shape in named]
    signature = tuple(types.Array(dtype, *layout) for layout in layouts)
    code = cubin(kernel, signature, cc, source_lines=True)
    return _reply([code], list(range(len(signature))))


def _triton(kernel: Any, request: dict, cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    import torch

    from tiled_matmul.microscope.compiled.triton import Pointer, build

    pointers = [Pointer(getattr(torch, request["dtype"]), 0)] * len(request["arrays"])
    arguments = [*pointers, *request["numbers"]]
    options = request["launch"][1]
    made, signature = build(kernel, arguments, options, cc)
    types = list(signature.values())[: len(arguments)]
    passed = [i for i, kind in enumerate(types) if kind != "constexpr"]
    memory = made.metadata.shared, getattr(made.metadata, "global_scratch_size", 0)
    return _reply([made.asm["cubin"]], passed, made.metadata.num_warps, *memory)


def _reply(
    code: list[bytes], passed: list[int], warps: int = 0, shared: int = 0, scratch: int = 0
) -> tuple[dict, list[bytes]]:
    named = {"passed": passed, "warps": warps, "shared": shared, "scratch": scratch}
    return {"findings": [], "counts": {}, "built": named}, code
