"""What Numba makes of its GPU rungs, without a GPU: a program for test_ptx.py, and a tool.

    TILED_MATMUL_BACKEND=compiler python tests/ladder_ptx.py FILE [PART OF | planted]

Each rung's launcher is called on aligned and on ragged operands; what it would launch is compiled
instead: for each compute capability of CAPABILITIES what it takes for aligned float32, and for 9.0
what it takes for ragged float32 and for aligned operands of other types. So the launcher's own
choice of kernel and constants is what is looked at. FILE gets a JSON list of
`Compiled`. PART OF (0 2, say) takes every second rung; `planted` compiles kernels with faults
instead, on which the checks can fail. Where this Numba cannot make PTX, FILE gets the reason as a
text.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CAPABILITIES = ((7, 5), (8, 0), (9, 0), (12, 0))
ONLY = (9, 0)  # for what is not float32, or not aligned
ALIGNED = (256, 256, 256)
SHAPES = (ALIGNED, (9, 7, 5))
DTYPES = ("float32", "float64", "int32")
METHODS = ("get_asm_strs", "get_asm_str")  # numba-cuda's name for it changed


@dataclass
class Compiled:
    """One kernel of a rung, as its launcher chose it. `needs` is what it asked of the GPU.

    `shapes` are those for which it was chosen, `ptx` maps "9.0" to the text.
    """

    rung: str
    dtype: str
    kernel: str
    shapes: list[list[int]]
    needs: list[int] | None
    ptx: dict[str, str]


class Recorder:
    """Stands in for the launcher's `launch` and `need_capability`."""

    def __init__(self) -> None:
        self.launches: list[tuple[Any, tuple]] = []
        self.needs: tuple[int, int] | None = None

    def launch(self, kernel: Any, grid: tuple, block: tuple, *arguments: Any) -> None:
        self.launches.append((kernel, tuple(numba_type(argument) for argument in arguments)))

    def need_capability(self, wanted: tuple[int, int], what: str) -> None:
        self.needs = max(wanted, self.needs or wanted)


def numba_type(argument: Any) -> Any:
    """Return the type that Numba gives a torch tensor on the GPU, or a number."""
    import torch
    from numba import from_dtype, typeof, types

    if not isinstance(argument, torch.Tensor):
        return typeof(argument)
    layouts = (("C", argument), ("F", argument.T)) if argument.ndim > 1 else (("C", argument),)
    layout = next((name for name, tensor in layouts if tensor.is_contiguous()), "A")
    return types.Array(from_dtype(argument.numpy().dtype), argument.ndim, layout)


def assemble(kernel: Any, signature: tuple, capabilities: tuple) -> dict[str, str]:
    """Return PTX by capability. Numba's front end runs once, the compiler behind it each time."""
    from numba import cuda
    from numba.cuda.codegen import CUDACodeLibrary

    libraries = []
    method = next(name for name in METHODS if hasattr(CUDACodeLibrary, name))
    get = getattr(CUDACodeLibrary, method)

    def remember(library: Any, cc: Any = None) -> Any:
        libraries.append(library)
        return get(library, cc=cc)

    options = getattr(kernel, "targetoptions", {})
    kept = {name: options[name] for name in ("fastmath", "launch_bounds") if name in options}
    setattr(CUDACodeLibrary, method, remember)
    try:
        cuda.compile_ptx(kernel.py_func, signature, cc=capabilities[0], **kept)
    finally:
        setattr(CUDACodeLibrary, method, get)
    made = {}
    for capability in capabilities:
        text = get(libraries[0], cc=capability)
        made["{}.{}".format(*capability)] = text if isinstance(text, str) else "\n".join(text)
    return made


def compile_ladder(part: int = 0, of: int = 1) -> list[Compiled]:
    """Compile what every `of`-th GPU rung launches, from number `part` on."""
    from tiled_matmul.kit import launch

    # Before any rung's module takes them by name.
    recorder = Recorder()
    launch.launch, launch.need_capability = recorder.launch, recorder.need_capability
    import torch

    from tiled_matmul.ladder import LADDER
    from tiled_matmul.languages import NUMBA_CUDA
    from tiled_matmul.problem import as_layout

    found: dict[tuple, Compiled] = {}
    made: dict[tuple, dict[str, str]] = {}  # several rungs hand what they cannot do to one kernel
    rungs = [rung for rung in LADDER if rung.language is NUMBA_CUDA]
    for rung in rungs[part::of]:
        for dtype in DTYPES:
            for shape in SHAPES if dtype == "float32" else (ALIGNED,):
                m, n, k = shape
                kind = getattr(torch, dtype)
                a, b = torch.zeros((m, k), dtype=kind), torch.zeros((k, n), dtype=kind)
                recorder.launches, recorder.needs = [], None
                try:
                    rung.matmul(*as_layout(a, b, rung.layout))
                except (TypeError, ValueError) as error:
                    if dtype == "float32" and shape == ALIGNED:
                        raise ValueError(f"{rung.name} refuses {shape}: {error}") from error
                    continue
                for kernel, signature in recorder.launches:
                    place = (rung.name, dtype, id(kernel), signature)
                    if place not in found:
                        all_of_them = dtype == "float32" and shape == ALIGNED
                        wanted = CAPABILITIES if all_of_them else (ONLY,)
                        wanted = tuple(cc for cc in wanted if cc >= (recorder.needs or (0, 0)))
                        name = kernel.py_func.__name__
                        key = (id(kernel), signature, wanted)
                        ptx = made[key] = made.get(key) or assemble(kernel, signature, wanted)
                        needs = list(recorder.needs) if recorder.needs else None
                        found[place] = Compiled(rung.name, dtype, name, [], needs, ptx)
                    found[place].shapes.append(list(shape))
    return list(found.values())


def compile_planted() -> list[Compiled]:
    """Compile kernels that do what no rung may, each for all capabilities."""
    from numba import cuda, float32, types

    from tiled_matmul.kit.intrinsics import copy_async

    @cuda.jit
    def sums_in_float64(a, c):
        acc = 0.0
        for k in range(a.shape[0]):
            acc += a[k]
        c[0] = acc

    @cuda.jit
    def keeps_an_array_in_local_memory(a, c):
        part = cuda.local.array(8, float32)
        for k in range(a.shape[0]):
            part[k % 8] = a[k]
        c[0] = part[a.shape[0] % 8]

    @cuda.jit
    def copies_without_asking(a, c):
        part = cuda.shared.array(8, float32)
        copy_async(part, 0, a, 0, 1)
        c[0] = part[0]

    signature = (types.Array(types.float32, 1, "C"),) * 2
    return [
        Compiled(kernel.py_func.__name__, "float32", kernel.py_func.__name__, [], None, ptx)
        for kernel in (sums_in_float64, keeps_an_array_in_local_memory, copies_without_asking)
        for ptx in [assemble(kernel, signature, CAPABILITIES)]
    ]


def main(file: str, part: str = "0", of: str = "1") -> None:
    from tiled_matmul.machine import backend

    if backend.select().name != "compiler":
        raise SystemExit(f"set {backend.OVERRIDE}=compiler: {backend.select().reason}")
    from numba.cuda.cudadrv.error import CudaSupportError, NvvmSupportError

    try:
        found = compile_planted() if part == "planted" else compile_ladder(int(part), int(of))
        made: Any = [asdict(one) for one in found]
    except (NvvmSupportError, CudaSupportError) as error:
        made = f"{type(error).__name__}: {error}"
    Path(file).write_text(json.dumps(made), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
