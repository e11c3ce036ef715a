"""Which machine is this: one with a usable GPU, or one that runs kernels in simulators?

Numba and Triton read their simulator switches when they are imported, so the decision has to fall
before either is. `select()` decides once per process; the set-up cell of each notebook calls it,
and so does importing `tiled_matmul.ladder`. `TILED_MATMUL_BACKEND=gpu|simulator` overrides it;
`compiler` leaves Numba and Triton as they are where no GPU is, to look at the code that they make.
Without a GPU, `numba.cuda.jit` makes kernels for the interpreter of `simt/`; Numba's own simulator
is switched on too, for what stands around kernels: `cuda.synchronize`, `cuda.to_device`, streams.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass

OVERRIDE = "TILED_MATMUL_BACKEND"
NAMES = ("gpu", "simulator", "compiler")
SWITCHES = {"numba": "NUMBA_ENABLE_CUDASIM", "triton": "TRITON_INTERPRET"}
TRUE = ("1", "true", "yes", "on", "y")  # as Triton reads its switch


class BackendError(RuntimeError):
    """The machine cannot be used as asked; the message says what was found and what mends it."""


@dataclass(frozen=True)
class Gpu:
    """What the NVIDIA driver reports; `driver_cuda` is the newest CUDA version it supports."""

    name: str
    capability: tuple[int, int]
    driver_cuda: str


@dataclass(frozen=True)
class Backend:
    """Where kernels run. `name` is one of NAMES; `reason` is a sentence for people."""

    name: str
    reason: str
    gpu: Gpu | None = None

    @property
    def on_gpu(self) -> bool:
        return self.name == "gpu"


_selected: Backend | None = None


def probe_gpu() -> tuple[Gpu | None, str]:
    """Return (first GPU or None, a sentence saying what was found), asking the driver only.

    Loads libcuda by ctypes and takes milliseconds; imports neither torch nor Numba.
    """
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            cuda = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        return None, "no NVIDIA driver is installed"
    status = cuda.cuInit(0)
    if status != 0:
        return None, f"the NVIDIA driver is installed but cuInit failed with CUDA error {status}"
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return None, "the NVIDIA driver reports no GPU"
    device = ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    text = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(text, len(text), device)
    major, minor, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    major_attribute, minor_attribute = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
    cuda.cuDeviceGetAttribute(ctypes.byref(major), major_attribute, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), minor_attribute, device)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    supported = f"{version.value // 1000}.{version.value % 1000 // 10}"
    gpu = Gpu(text.value.decode(), (major.value, minor.value), supported)
    return gpu, f"the driver (CUDA {supported}) reports {gpu.name}"


def _usable_gpu() -> tuple[Gpu | None, str]:
    gpu, found = probe_gpu()
    if gpu is None:
        return None, found
    import torch

    if not torch.cuda.is_available():
        build = torch.version.cuda or "none: a CPU build"
        return None, f"{found}, but torch {torch.__version__} cannot use it (its CUDA: {build})"
    return gpu, found


def decide(override: str | None = None) -> Backend:
    """Return the back end this machine should use, changing nothing.

    `override` is one of NAMES, or None for the machine's own choice. Raises BackendError for
    any other word, and when a GPU is demanded and none is usable.
    """
    if override is not None and override not in NAMES:
        raise BackendError(f"{OVERRIDE}={override!r} is not known; use one of {', '.join(NAMES)}")
    if override == "simulator":
        return Backend("simulator", f"{OVERRIDE}=simulator asks for the simulators")
    if override == "compiler":
        return Backend("compiler", f"{OVERRIDE}=compiler asks for compiled code, not for a run")
    gpu, found = _usable_gpu()
    if gpu is not None:
        return Backend("gpu", found, gpu)
    if override == "gpu":
        raise BackendError(f"{OVERRIDE}=gpu demands a GPU, but {found}")
    return Backend("simulator", found)


def select() -> Backend:
    """Return this process's back end, deciding and setting the switches at the first call.

    Raises BackendError if Numba or Triton was imported before and is set the other way, or if
    `TILED_MATMUL_BACKEND` asks for what is not there.
    """
    global _selected
    if _selected is None:
        chosen = decide(os.environ.get(OVERRIDE))
        simulate = chosen.name == "simulator"
        _refuse_if_loaded(simulate)
        for switch in SWITCHES.values():
            os.environ[switch] = "1" if simulate else "0"
        # Teaching grids are small on purpose; the warning would be printed into every cell.
        os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
        if chosen.name == "compiler":
            _let_device_functions_compile()
        _selected = chosen
    return _selected


def _let_device_functions_compile() -> None:
    """Numba compiles device functions for the current GPU; here one of their callers has it.

    What it makes of them is the same for every GPU until the kernel is compiled.
    """
    from types import SimpleNamespace

    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))


def _refuse_if_loaded(simulate: bool) -> None:
    for library, switch in SWITCHES.items():
        if library not in sys.modules:
            continue
        if library == "numba":
            loaded_as = bool(sys.modules["numba"].config.ENABLE_CUDASIM)
        else:
            loaded_as = os.environ.get(switch, "").lower() in TRUE
        if loaded_as != simulate:
            wanted = "the simulators" if simulate else "the GPU"
            raise BackendError(
                f"{library} was imported before the course could choose {wanted}: restart the "
                f"kernel and run the set-up cell first, or set {switch}={int(simulate)} yourself"
            )
