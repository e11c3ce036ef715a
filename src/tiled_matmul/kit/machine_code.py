"""Machine code of Numba's kernels, ready to launch: what Numba compiles, or what was kept of it.

Numba takes seconds for kernels whose loops are unrolled. Their code is kept on disk, in the cache
folder of the user, with a key that holds all that it depends on: see
`microscope.compiled.kept`. Numba would also work out the arguments of every launch anew, in 0.2 ms;
here a launch only fills in addresses.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tiled_matmul.kit import plans
from tiled_matmul.microscope.compiled.kept import FOLDER, kept

_codes: dict[tuple, Code] = {}
_thread = threading.local()


def cache() -> Path:
    """Return the folder of what is kept: tiled_matmul in XDG_CACHE_HOME or in ~/.cache.

    The variable of `kept.FOLDER` names another one.
    """
    if named := os.environ.get(FOLDER):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tiled_matmul"


def machine_code(kernel: Any, arguments: Sequence) -> Code:
    """Return a kernel's code for these tensors and numbers, and for the current GPU."""
    import torch
    from numba import cuda

    gpu = torch.cuda.current_device()
    _enter(gpu)
    is_tensor = [isinstance(x, torch.Tensor) for x in arguments]
    passed = [
        cuda.as_cuda_array(x, sync=False) if tensor else x
        for x, tensor in zip(arguments, is_tensor, strict=True)
    ]
    signature = tuple(map(kernel.typeof_pyval, passed))
    key = kernel, signature, gpu
    if key not in _codes:

        def make() -> bytes:
            kernel.compile(signature)
            code = kernel.overloads[signature]._codelibrary.get_cubin()
            return bytes(getattr(code, "code", code))

        if hasattr(kernel.py_func, "is_unrolled"):
            asked = _description(kernel, signature, torch.cuda.get_device_capability(gpu))
            code = kept(asked, (), make, cache())
        else:
            code = make()
        _codes[key] = Code(code, gpu)
    return _codes[key]


def _enter(gpu: int) -> None:
    """Make a GPU's context this thread's own: a new thread has none yet."""
    if getattr(_thread, "gpu", None) != gpu:
        from numba import cuda

        cuda.current_context(gpu)
        _thread.gpu = gpu


def _description(kernel: Any, signature: tuple, capability: tuple[int, int]) -> bytes:
    """Return all that a kernel's code depends on, besides the course's sources and the packages."""
    function = kernel.py_func
    written = getattr(function, "as_written", function)
    constants = {
        name: repr(value)
        for name, value in sorted(written.__globals__.items())
        if name.isupper() and isinstance(value, int | float | str | tuple)
    }
    options = {name: repr(value) for name, value in sorted(kernel.targetoptions.items())}
    place = written.__module__, written.__qualname__
    return pickle.dumps((place, constants, options, [str(x) for x in signature], capability))


class Code:
    """A kernel on a GPU, which is the current one."""

    def __init__(self, code: bytes, gpu: int) -> None:
        from cuda.bindings import driver

        self.gpu = gpu
        self.module = answer(driver.cuModuleLoadData(code))
        (self.function,) = answer(driver.cuModuleEnumerateFunctions(1, self.module))


class Launch:
    """A launch of which everything is known but the addresses of its tensors.

    Numba's kernels receive an array as two pointers that are 0, its number of elements, their
    bytes, its address, its shape and its strides in bytes.
    """

    def __init__(self, code: Code, grid: tuple, block: tuple, arguments: Sequence) -> None:
        self.function, self.module, self.gpu = code.function, code.module, code.gpu
        self.sizes = (*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3])
        self.values: list = []
        self.slots: list[int] = []
        for x in arguments:
            if not hasattr(x, "data_ptr"):
                self.values.append(_number(x))
                continue
            step = x.element_size()
            strides = [step * stride for stride in x.stride()]
            self.slots.append(len(self.values) + 4)
            numbers = (0, 0, x.numel(), step, 0, *x.shape, *strides)
            self.values += map(ctypes.c_int64, numbers)
        self.places = [ctypes.addressof(value) for value in self.values]

    def begin(self, addresses: Sequence[int], stream: int) -> None:
        """Launch with these addresses, on a stream of the current GPU."""
        from cuda.bindings import driver

        _enter(self.gpu)
        # Of this call's own: another thread may launch the same kernel now.
        here, places = (ctypes.c_int64 * len(addresses))(*addresses), self.places.copy()
        first = ctypes.addressof(here)
        for number, slot in enumerate(self.slots):
            places[slot] = first + 8 * number
        parameters = (ctypes.c_void_p * len(places))(*places)
        rest = 0, stream, ctypes.addressof(parameters), 0
        answer(driver.cuLaunchKernel(self.function, *self.sizes, *rest))

    def noted(self, plan: plans.Plan, arguments: Sequence) -> Callable:
        """Return the step of a plan that launches again."""
        numbers = [plan.find(x) for x in arguments if hasattr(x, "data_ptr")]
        begin = self.begin

        def step(tensors: list, stream: int) -> None:
            begin([tensors[number].data_ptr() for number in numbers], stream)

        return step


def _number(x: Any) -> Any:
    """Return a number as C has it, of the type that Numba takes it for."""
    if type(x) in (int, float):
        return (ctypes.c_int64 if type(x) is int else ctypes.c_double)(x)
    if isinstance(x, np.generic):
        return np.ctypeslib.as_ctypes_type(x.dtype)(x.item())
    raise TypeError(f"a kernel takes tensors and numbers, got {x!r}")


def answer(result: tuple, of: str = "the driver") -> Any:
    """Return what a call of the driver, or of NVRTC, returned: a value, several, or None.

    Raises RuntimeError for an error.
    """
    error, *values = result
    if int(error):
        raise RuntimeError(f"{of} refused: {error.name}")
    return values[0] if len(values) == 1 else tuple(values) or None
