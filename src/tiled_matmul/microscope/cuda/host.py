"""The host's side of `numba.cuda` in the simulators: arrays, streams, events, what a GPU is asked.

Arrays are those of Numba's own simulator, with the limits of arrays on a GPU. Calls that make sense
without a GPU work, as `cuda.stream` does; all others raise NeedsGpu, which says what to do instead.
The device is described as the H200 on which the course measures, as far as the interpreter obeys
its limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tiled_matmul.machine.backend import OVERRIDE, NeedsGpu, is_simulated
from tiled_matmul.machine.device import PEAKS
from tiled_matmul.microscope.cuda import hardware
from tiled_matmul.microscope.cuda import kernel as kernels

REFERENCE, CAPABILITY = "H200", (9, 0)
NO_CLOCK = (
    "a time needs a GPU: kernels run in the interpreter here, which is right and slow. The "
    "course's `measure` shows times of a real GPU"
)
COMPILERS = (
    *("compile", "compile_ptx", "compile_all", "compile_for_current_device"),
    "compile_ptx_for_current_device",
)
COMPILE_INSTEAD = (
    f"Start Python with {OVERRIDE}=compiler: then Numba compiles, for a GPU that need not be there"
)
UFUNC_INSTEAD = "Write a kernel, or leave target out: then Numba compiles for the CPU"


def install() -> None:
    """Make `numba.cuda`, which has been imported, what it is in the simulators of this course.

    Kernels that were decorated before run in the interpreter from now on.
    """
    from numba import cuda

    if not is_simulated("numba.cuda") and cuda.jit is not kernels.jit:
        _simulate(cuda)
    from numba.cuda import vectorizers
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
    from numba.cuda.simulator.kernel import FakeCUDAKernel

    run_in_interpreter(FakeCUDAKernel)
    limit(FakeCUDAArray)
    kernels.install()
    for name, value in _replaced(FakeCUDAArray).items():
        setattr(cuda, name, value)
    for name in COMPILERS:
        if getattr(cuda, name, None) is None:
            setattr(cuda, name, needs_gpu(f"cuda.{name}", COMPILE_INSTEAD))
    cuda.__getattr__ = _missing
    for name in ("CUDAVectorize", "CUDAGUFuncVectorize"):
        getattr(vectorizers, name).__init__ = needs_gpu("target='cuda'", UFUNC_INSTEAD)


def _simulate(cuda: Any) -> None:
    """Give `numba.cuda`, imported as a compiler, what the host calls in Numba's simulator."""
    # The compiler's own kernels; after the simulator, this name may be another module.
    from numba.cuda.dispatcher import CUDADispatcher

    run_in_interpreter(CUDADispatcher)
    from numba.cuda import simulator

    for name, value in vars(simulator).items():
        if not name.startswith("_") and type(value).__name__ != "module":
            setattr(cuda, name, value)
    cuda.is_available, cuda.cuda_error = (lambda: True), (lambda: None)


def needs_gpu(what: str, instead: str) -> Callable:
    """Return a function in place of `what`, which raises NeedsGpu."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise NeedsGpu(f"{what} needs a GPU, and kernels run in the interpreter here. {instead}")

    return refuse


def _missing(name: str) -> Any:
    raise NeedsGpu(
        f"numba.cuda has no {name} here, where kernels run in the interpreter without a GPU"
    )


# Kernels that were decorated before.


def run_in_interpreter(kind: type) -> None:
    """Let kernels of Numba's own class run in the interpreter."""

    def as_ours(kernel: Any) -> kernels.Kernel:
        options = getattr(kernel, "targetoptions", {})
        device = getattr(kernel, "_device", options.get("device", False))
        return kernels.Kernel(kernel.py_func, device, options)

    kind.__getitem__ = lambda self, configuration: as_ours(self)[configuration]
    kind.__call__ = lambda self, *arguments: as_ours(self)(*arguments)
    kind.forall = lambda self, *sizes, **options: as_ours(self).forall(*sizes, **options)
    kind.configure = lambda self, *sizes, **options: as_ours(self).configure(*sizes, **options)


# Arrays.


def limit(kind: type) -> None:
    """Give arrays of Numba's simulator the limits of arrays on a GPU.

    There, an index is an int or a slice, a transpose is a new matrix, `reshape` and `ravel` copy
    nothing, and no array with a negative stride is copied to the host.
    """
    if hasattr(kind, "limited"):
        return
    kind.limited = True
    getitem, setitem, to_host = kind.__getitem__, kind.__setitem__, kind.copy_to_host

    def checked(self: Any, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        names = self.dtype.names is not None and isinstance(index, str)
        if not names and not all(isinstance(part, (int, np.integer, slice)) for part in parts):
            raise TypeError(
                f"an array on a GPU is indexed with ints and slices from the host, got {index!r}"
            )
        return index

    def transpose(self: Any, axes: Any = None) -> Any:
        if axes and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise NotImplementedError(
                f"an array on a GPU has a transpose if it has 2 axes; this one has {self.ndim}"
            )
        return kind(np.array(np.transpose(self._ary, axes), order="C"), self.stream)

    def reshape(self: Any, *shape: Any, order: str = "C") -> Any:
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        made = np.reshape(self._ary, shape, order=order)
        if made.shape == self._ary.shape:
            return kind(self._ary, self.stream)
        dense = self._ary.flags.c_contiguous or self._ary.flags.f_contiguous
        if not dense or (made.size and not np.shares_memory(made, self._ary)):
            raise NotImplementedError(
                f"an array on a GPU with shape {tuple(self.shape)} and strides {self.strides} can "
                f"have the shape {made.shape} as a copy only: copy_to_host first"
            )
        return kind(made, self.stream)

    def ravel(self: Any, order: str = "C", stream: Any = 0) -> Any:
        return reshape(self, -1, order=order)

    def copy_to_host(self: Any, ary: Any = None, stream: Any = 0) -> Any:
        if any(stride < 0 for stride in self.strides):
            raise NotImplementedError(
                f"an array on a GPU with strides {self.strides} is not copied to the host: copy "
                "the array that it is a view of"
            )
        return to_host(self, ary, stream)

    kind.__getitem__ = lambda self, index: getitem(self, checked(self, index))
    kind.__setitem__ = lambda self, index, value: setitem(self, checked(self, index), value)
    kind.getitem = lambda self, index, stream=0: self[index]
    kind.setitem = lambda self, index, value, stream=0: kind.__setitem__(self, index, value)
    kind.transpose, kind.reshape, kind.ravel = transpose, reshape, ravel
    kind.copy_to_host = copy_to_host
    kind.get_ipc_handle = needs_gpu("get_ipc_handle", "Another process cannot use this array")


class OnHost(np.ndarray):
    """Memory that the host and kernels use, as pinned, mapped and managed memory is."""

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        ary = np.empty(self.shape, self.dtype) if ary is None else ary
        np.copyto(ary, self)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        np.copyto(self, getattr(ary, "_ary", ary))


# Streams and events.


class Stream:
    """A stream: everything is done as soon as it is asked for."""

    handle = 0

    def __int__(self) -> int:
        return 0

    def synchronize(self) -> None:
        """Return at once, as nothing is under way."""

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        yield self

    def add_callback(self, callback: Callable, arg: Any = None) -> None:
        callback(self, 0, arg)

    def async_done(self) -> Any:
        import asyncio

        done = asyncio.get_running_loop().create_future()
        done.set_result(self)
        return done

    def __repr__(self) -> str:
        return "<a stream of the interpreter>"


class Event:
    """An event: it has always happened, and there is no clock that it could have read."""

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing

    def record(self, stream: Any = 0) -> None:
        """Do nothing: there is no clock to read."""

    wait = record

    def synchronize(self) -> None:
        """Return at once, as nothing is under way."""

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        raise NeedsGpu(NO_CLOCK)


def event_elapsed_time(start: Event, end: Event) -> float:
    return start.elapsed_time(end)


# The device.


class MemoryInfo(NamedTuple):
    """Bytes of memory."""

    free: int
    total: int


class Device:
    """What a kernel's launch may ask about the device."""

    id = 0
    name = "the interpreter (no GPU)"
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    compute_capability = CAPABILITY
    supports_float16 = supports_bfloat16 = True
    supports_fp8 = False
    WARP_SIZE = hardware.WARP
    MULTIPROCESSOR_COUNT = PEAKS[REFERENCE].sms
    MAX_THREADS_PER_BLOCK = hardware.MAX_THREADS
    MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = hardware.MAX_BLOCK
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = hardware.MAX_GRID
    MAX_SHARED_MEMORY_PER_BLOCK = hardware.STATIC_SHARED_BYTES
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = hardware.SHARED_BYTES

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NeedsGpu(
            f"{name} needs a GPU that can be asked; here kernels run in the interpreter, which has "
            f"{', '.join(n for n in vars(Device) if n.isupper())}"
        )

    def get_primary_context(self) -> Context:
        return CONTEXT

    def reset(self) -> None:
        """Do nothing: there is no state to lose."""

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Context:
    """The current context. As in a `with`, it also has what the device has."""

    id = 0
    device = Device()

    def get_memory_info(self) -> MemoryInfo:
        """Return the memory of this machine, where arrays lie without a GPU."""
        try:
            page = os.sysconf("SC_PAGE_SIZE")
            free, total = (os.sysconf(f"SC_{which}PHYS_PAGES") for which in ("AV", ""))
        except (ValueError, OSError):  # not on macOS
            raise NeedsGpu("get_memory_info needs a GPU on this system") from None
        return MemoryInfo(free * page, total * page)

    def synchronize(self) -> None:
        """Return at once, as nothing is under way."""

    reset = push = pop = synchronize

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *raised: object) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def __repr__(self) -> str:
        return f"<context of {self.device.name}>"


CONTEXT = Context()


class Devices(tuple):
    """The list of devices: the interpreter alone."""

    @property
    def current(self) -> Context:
        return CONTEXT

    @property
    def lst(self) -> list[Context]:
        return list(self)


class Runtime:
    """CUDA's runtime, which is not used."""

    def is_supported_version(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NeedsGpu(f"{name} needs CUDA's runtime, and kernels run in the interpreter here")


def select_device(device_id: int) -> Device:
    if device_id != 0:
        raise ValueError(f"there is no GPU, and the interpreter is device 0, got {device_id!r}")
    return CONTEXT.device


def detect() -> bool:
    print("Found 0 CUDA devices. Kernels run in the course's interpreter.")
    return False


# What is put into numba.cuda.


@contextmanager
def _with_nothing(*arrays: Any) -> Iterator[None]:
    yield


def _replaced(kind: type) -> dict[str, Any]:
    """Return what takes the place of names in `numba.cuda`; `kind` is its class of arrays."""
    from numba.cuda.simulator.cudadrv import devicearray

    @contextmanager
    def mapped(*arrays: np.ndarray, stream: Any = 0) -> Iterator[Any]:
        made = [kind(array) for array in arrays]
        yield made[0] if len(made) == 1 else made

    def on_host(
        shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", **_: Any
    ) -> OnHost:
        return np.ndarray(shape, np.dtype(dtype), strides=strides, order=order).view(OnHost)

    def on_host_like(array: Any, **_: Any) -> OnHost:
        return devicearray.device_array_like(array)._ary.view(OnHost)

    def as_cuda_array(array: Any, sync: bool = True) -> Any:
        if isinstance(array, kind):
            return array
        if hasattr(array, "data_ptr") and array.device.type == "cpu":
            return kind(array.detach().numpy())
        raise TypeError(
            "as_cuda_array takes a device array, or in the interpreter a torch tensor on the CPU; "
            f"got {type(array).__name__}"
        )

    def is_cuda_array(array: Any) -> bool:
        return isinstance(array, kind)

    def stream() -> Stream:
        return Stream()

    no_stream = needs_gpu("cuda.external_stream", "Use cuda.stream()")
    no_process = needs_gpu("cuda.open_ipc_array", "Arrays of another process cannot be opened")
    no_linking = needs_gpu(
        "cuda.declare_device", "It calls CUDA C++, which the interpreter cannot run"
    )
    gpus = Devices((CONTEXT,))
    return {
        **dict.fromkeys(("pinned_array", "mapped_array", "managed_array"), on_host),
        **dict.fromkeys(("pinned_array_like", "mapped_array_like"), on_host_like),
        **dict.fromkeys(("default_stream", "legacy_default_stream"), stream),
        **{"stream": stream, "per_thread_default_stream": stream, "external_stream": no_stream},
        **{"event": Event, "event_elapsed_time": event_elapsed_time},
        **{"pinned": _with_nothing, "mapped": mapped, "profiling": _with_nothing},
        **{"profile_start": lambda: None, "profile_stop": lambda: None},
        **{"as_cuda_array": as_cuda_array, "is_cuda_array": is_cuda_array},
        **{"open_ipc_array": no_process, "declare_device": no_linking},
        **{"gpus": gpus, "list_devices": lambda: gpus, "select_device": select_device},
        **{"current_context": lambda devnum=0: CONTEXT, "detect": detect},
        **{"get_current_device": lambda: CONTEXT.device, "runtime": Runtime()},
    }
