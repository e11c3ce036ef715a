"""An answer's kernel as machine code, made beside the learner's code, in a process without a GPU.

What comes out crosses over as bytes, with what a launch needs to know. Who launches it is
`launcher`, a process in which nothing of a learner's Python ever runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def build(kind: str, space: dict, request: dict) -> tuple[dict, list[bytes]]:
    """Compile the kernel for the compute capability that the request names.

    Without an entry it is a kernel of its own, which shows that compiling works. The reply says
    which of the launch's arguments are passed (the rest are constants in the code), how many warps
    a block has and how much shared and scratch memory it needs; 0 warps: as many as the launch's
    block.
    """
    cc = tuple(request["cc"])
    if "entry" not in request:
        return _own_cuda(cc) if kind == "cuda" else _own_triton(cc)
    kernel = space[request["entry"]]
    return (_cuda if kind == "cuda" else _triton)(kernel, request, cc)


def _own_cuda(cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    """Show that this machine compiles a kernel at all."""
    from numba import cuda

    @cuda.jit
    def copy(a, b, c):
        c[0, 0] = a[0, 0]

    return _cuda(copy, {"dtype": "float32", "by_columns": ""}, cc)


def _own_triton(cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    import triton
    import triton.language as tl

    @triton.jit
    def copy(a, b, c):
        tl.store(c, tl.load(a))

    return _triton(copy, {"dtype": "float32", "numbers": [], "launch": [[1], {}]}, cc)


def _cuda(kernel: Any, request: dict, cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    from numba import from_dtype, types

    from tiled_matmul.microscope.compiled.cuda import cubin

    dtype = from_dtype(np.dtype(request["dtype"]))
    layouts = ["F" if name in request["by_columns"] else "C" for name in "abc"]
    signature = tuple(types.Array(dtype, 2, layout) for layout in layouts)
    return _reply([cubin(kernel, signature, cc, source_lines=True)], [0, 1, 2])


def _triton(kernel: Any, request: dict, cc: tuple[int, int]) -> tuple[dict, list[bytes]]:
    import torch

    from tiled_matmul.microscope.compiled.triton import Pointer, build

    pointers = [Pointer(getattr(torch, request["dtype"]), 0)] * 3
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
