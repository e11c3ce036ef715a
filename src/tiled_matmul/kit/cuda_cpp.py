"""Kernels in CUDA C++, read as text, compiled by NVRTC and launched like Numba's.

    using T = float;
    constexpr int TILE = 16;

    extern "C" __global__ void cuda_shared_tiles_kernel(const T* a, …, int M, int N, int K)

Such a file is complete: nvcc compiles it as it stands. Before NVRTC does, the type after
`using T =` and the values of constants are replaced by those of a launch. A kernel takes pointers
to dense matrices, then the ints M, N and K, then for a tensor of several matrices their number and
the length of a row, then other numbers, such as alpha. It counts elements in `int`, as most kernels
in CUDA C++ do, so no tensor may have 2³¹ elements or more; `arguments` refuses them.

Nothing says `__restrict__`: a kernel in Numba cannot, and these load from A and B before they store
to C. int32 is compiled as `unsigned int`, whose sums and products wrap around by definition.
Source: NVIDIA, NVRTC.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiled_matmul.kit import plans, withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.machine_code import Code, Launch, answer
from tiled_matmul.microscope.cuda.kernel import watched

TYPES = {"float32": "float", "float64": "double", "int32": "unsigned int"}
TYPE = re.compile(r"^using T = [^;]+;", re.M)
CONSTANTS = re.compile(r"^constexpr (?:int|bool) ([^;]+);", re.M)
CONSTANT = re.compile(r"(\w+) = ([^,;]+)")
LARGEST = 2**31 - 2**16  # of M, N and K: a kernel adds a tile or two to them, as ints
MOST_ELEMENTS = 2**31 - 1  # of a tensor: an int holds the place of each


class NotCompiled(RuntimeError):
    """NVRTC rejects a kernel; the message holds its log."""


@functools.cache
def missing() -> str:
    """Return why NVRTC cannot compile here, as a message of one line; "" if it can."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:  # the package or its library is missing; the type varies
        reason = " ".join(str(error).split())[:80]
        return f"NVRTC is not here, numba-cuda[cu13] or a CUDA toolkit brings it ({reason})"
    return ""


def version() -> str:
    """Return NVRTC's version, such as "13.5". Raises ModuleNotFoundError where it is missing."""
    need()
    from cuda.bindings import nvrtc

    return ".".join(map(str, _nvrtc(nvrtc.nvrtcVersion())))


def capabilities() -> tuple[int, ...]:
    """Return what NVRTC compiles for: 90 is the compute capability 9.0.

    Raises ModuleNotFoundError where it is missing.
    """
    need()
    from cuda.bindings import nvrtc

    return tuple(_nvrtc(nvrtc.nvrtcGetSupportedArchs()))


def need() -> None:
    """Raise ModuleNotFoundError, with the message of `missing`, where NVRTC is missing."""
    if message := missing():
        raise ModuleNotFoundError(message, name="cuda.bindings.nvrtc")


def constants(text: str) -> dict[str, str]:
    """Return the constants of a file by name, each as the expression that the text has."""
    return {
        name: " ".join(value.split())
        for listed in CONSTANTS.findall(text)
        for name, value in CONSTANT.findall(listed)
    }


def with_values(text: str, dtype: str, values: Mapping[str, int | bool]) -> str:
    """Return a file's text with the type of `dtype`, one of TYPES, and these values of constants.

    Raises TypeError for another dtype, and ValueError for a constant that the text does not have,
    for a value that is no int or bool, and for a text without `using T = …;`.
    """
    if dtype not in TYPES:
        raise TypeError(f"CUDA C++ takes {', '.join(TYPES)} here, got {dtype}")
    if not TYPE.search(text):
        raise ValueError("the text has no line 'using T = …;'")
    known = constants(text)
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"there is no constant {name!r}; the text has {', '.join(known)}")
        if not isinstance(value, int):
            raise ValueError(f"{name} must be an int or a bool, got {value!r}")

    def replaced(match: re.Match) -> str:
        name = match[1]
        return f"{name} = {str(values[name]).lower()}" if name in values else match[0]

    text = CONSTANTS.sub(lambda match: CONSTANT.sub(replaced, match[0]), text)
    return TYPE.sub(f"using T = {TYPES[dtype]};", text)


@dataclass(frozen=True)
class CppKernel:
    """A kernel in CUDA C++ with the type and the constants of a launch.

    `text` is what NVRTC compiles, `max_registers` the limit of registers for a thread, if any.
    """

    name: str
    text: str
    max_registers: int | None = None

    def cubin(self, cc: tuple[int, int]) -> bytes:
        """Return the machine code for a compute capability, such as (9, 0). Needs no GPU.

        Raises ModuleNotFoundError without NVRTC, ValueError for a capability that NVRTC does not
        know, and NotCompiled with NVRTC's log.
        """
        need()
        from cuda.bindings import nvrtc

        if 10 * cc[0] + cc[1] not in capabilities():
            raise ValueError(f"NVRTC {version()} does not compile for {cc[0]}.{cc[1]}")
        options = [f"-arch=sm_{cc[0]}{cc[1]}"]
        options += [f"-maxrregcount={self.max_registers}"] if self.max_registers else []
        file = f"{self.name}.cu".encode()
        program = _nvrtc(nvrtc.nvrtcCreateProgram(self.text.encode(), file, 0, [], []))
        try:
            flags = [option.encode() for option in options]
            (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
            if int(error):
                log = b" " * _nvrtc(nvrtc.nvrtcGetProgramLogSize(program))
                _nvrtc(nvrtc.nvrtcGetProgramLog(program, log))
                raise NotCompiled(f"{self.name}: {log.decode().rstrip(chr(0)).strip()}")
            code = b" " * _nvrtc(nvrtc.nvrtcGetCUBINSize(program))
            _nvrtc(nvrtc.nvrtcGetCUBIN(program, code))
            return code
        finally:
            nvrtc.nvrtcDestroyProgram(program)


def twin(launch: withheld.Withheld, text: str) -> CppKernel:
    """Return the kernel of a file's `text` with the type and the constants of a Numba launch.

    The names in capitals that the Numba kernel reads are the constants; its limit of registers is
    the twin's, too. Raises TypeError or ValueError as `with_values` does.
    """
    kernel = launch.kernel
    function = getattr(kernel.py_func, "as_written", kernel.py_func)
    names = [name for name in function.__code__.co_names if name.isupper()]
    known = {name: function.__globals__[name] for name in names if name in function.__globals__}
    values = {name: value for name, value in known.items() if isinstance(value, int)}
    dtype = next(x.dtype for x in launch.arguments if hasattr(x, "data_ptr"))
    most = getattr(kernel, "targetoptions", {}).get("max_registers")
    name = function.__name__
    try:
        written = with_values(text, str(dtype).removeprefix("torch."), values)
    except ValueError as error:
        raise ValueError(f"{name} in CUDA C++: {error}") from None
    return CppKernel(name, written, most)


def arguments(launch: withheld.Withheld, m: int, n: int, k: int) -> tuple:
    """Return what the twin of a Numba launch takes: its tensors, sizes from M, N and K on, numbers.

    A Numba kernel's own ints are sizes, which M, N and K replace. Raises ValueError for a tensor
    that is not dense, quoting its strides, for one with more than MOST_ELEMENTS elements, quoting
    its shape, and for sizes from LARGEST on.
    """
    tensors = [x for x in launch.arguments if hasattr(x, "data_ptr")]
    for x in tensors:
        if not x.is_contiguous() and not x.mT.is_contiguous():
            raise ValueError(
                f"a kernel in CUDA C++ takes dense matrices, got shape {tuple(x.shape)} with "
                f"strides {tuple(x.stride())}; copy it first"
            )
        if x.numel() > MOST_ELEMENTS:
            raise ValueError(
                "a kernel in CUDA C++ counts elements in int and takes fewer than 2³¹ of them, got "
                f"shape {tuple(x.shape)} with {x.numel():,}; the kernel in Numba takes more"
            )
    for name, size in (("M", m), ("N", n), ("K", k)):
        if size >= LARGEST:
            raise ValueError(f"a kernel in CUDA C++ takes sizes below {LARGEST}, got {name}={size}")
    numbers = [x for x in launch.arguments if not hasattr(x, "data_ptr") and type(x) is not int]
    more = [size for x in tensors if x.ndim == 3 for size in (x.shape[0], x.shape[2])]
    return (*tensors, *map(np.int32, (m, n, k, *more)), *numbers)


class PlainLaunch(Launch):
    """A launch of a kernel in C++, which receives of a tensor its address alone."""

    def __init__(self, code: Code, grid: tuple, block: tuple, arguments: Sequence) -> None:
        tensors = [hasattr(x, "data_ptr") for x in arguments]
        pairs = zip(arguments, tensors, strict=True)
        super().__init__(code, grid, block, [np.int64(0) if is_one else x for x, is_one in pairs])
        self.slots = [number for number, is_one in enumerate(tensors) if is_one]


def launch(kernel: CppKernel, grid: tuple, block: tuple, *arguments: Any) -> None:
    """Launch a kernel on torch tensors and numpy numbers, on torch's current stream.

    Inside `withheld` the launch is noted. Raises ValueError without a GPU and inside a trace, and
    otherwise as `CppKernel.cubin` does.
    """
    if withheld.withhold(kernel, grid, block, arguments, {}):
        return
    if not select().on_gpu:
        raise ValueError(f"a kernel in CUDA C++ needs a GPU: {select().reason}")
    if watched():
        raise ValueError(f"{kernel.name} in CUDA C++ runs on the GPU, where nothing traces it")
    import torch

    made = PlainLaunch(_code(kernel, torch.cuda.current_device()), grid, block, arguments)
    addresses = [x.data_ptr() for x in arguments if hasattr(x, "data_ptr")]
    made.begin(addresses, torch.cuda.current_stream().cuda_stream)
    plans.note(lambda plan: made.noted(plan, arguments))


@functools.cache
def _code(kernel: CppKernel, gpu: int) -> Any:
    """Return a kernel's code on a GPU, which is the current one."""
    import torch

    return Code(kernel.cubin(torch.cuda.get_device_capability(gpu)), gpu)


def _nvrtc(result: tuple) -> Any:
    return answer(result, "NVRTC")
