"""Choose where kernels run: on a GPU, or in simulators if there is no usable GPU.

Numba's CUDA and Triton read their simulator switches when they are imported, so the choice comes
first: importing `tiled_matmul` and one of them, in any order, makes it (`kit/backend.py`).
`select()` chooses once per process; the set-up cell of each notebook calls it.
`TILED_MATMUL_BACKEND=gpu|simulator` overrides the choice; `compiler` leaves both compilers switched
on without a GPU, so that their code can be inspected. In the simulators, it does not matter what
was imported before. For a GPU, a library that was imported as its simulator is an error.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass

OVERRIDE = "TILED_MATMUL_BACKEND"
NUMBA_CONFIGS = ("numba.core.config", "numba.cuda.core.config")
NAMES = ("gpu", "simulator", "compiler")
SWITCHES = {"numba.cuda": "NUMBA_ENABLE_CUDASIM", "triton": "TRITON_INTERPRET"}
# What cuInit returns where there is no GPU: CUDA_ERROR_NO_DEVICE and CUDA_ERROR_STUB_LIBRARY.
NO_GPU = {
    100: "the NVIDIA driver reports no GPU",
    34: "only a stub of the NVIDIA driver is installed, as it comes with the CUDA toolkit",
}


class BackendError(RuntimeError):
    """The requested back end cannot be used; the message names the cause and the fix."""


class NeedsGpu(BackendError, AttributeError):
    """Something that only a GPU, or the compiler for one, can do; `hasattr` finds it missing."""


@dataclass(frozen=True)
class Gpu:
    """A GPU; `driver_cuda` is the newest CUDA version that its driver supports."""

    name: str
    capability: tuple[int, int]
    driver_cuda: str


@dataclass(frozen=True)
class Backend:
    """The choice of a back end. `name` is one of NAMES; `reason` explains the choice in words."""

    name: str
    reason: str
    gpu: Gpu | None = None

    @property
    def on_gpu(self) -> bool:
        return self.name == "gpu"


_selected: Backend | None = None


def probe_gpu() -> tuple[Gpu | None, str]:
    """Return (the first GPU or None, what the driver reports in words).

    Calls libcuda through ctypes, which takes milliseconds, and imports neither torch nor Numba.
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
    if status in NO_GPU:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hides = status == 100 and visible is not None
        return None, NO_GPU[status] + f" with CUDA_VISIBLE_DEVICES={visible!r}" * hides
    if status != 0:
        return None, f"the NVIDIA driver's library is here, but cuInit fails with error {status}"
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        return None, NO_GPU[100]
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
    gpu, report = probe_gpu()
    if gpu is None:
        return None, report
    import torch

    if not torch.cuda.is_available():
        build = torch.version.cuda or "none: a CPU build"
        return None, f"{report}, but torch {torch.__version__} cannot use it (its CUDA: {build})"
    return gpu, report


def decide(override: str | None = None) -> Backend:
    """Return the back end for this machine, without any side effect.

    `override` is one of NAMES, or None to let the hardware decide. Raises BackendError for any
    other name, and for "gpu" if no GPU is usable.
    """
    if override is not None and override not in NAMES:
        raise BackendError(f"{OVERRIDE}={override!r} is not known; use one of {', '.join(NAMES)}")
    if override == "simulator":
        return Backend("simulator", f"{OVERRIDE}=simulator asks for the simulators")
    if override == "compiler":
        return Backend("compiler", f"{OVERRIDE}=compiler asks for compiled code, not for a run")
    gpu, report = _usable_gpu()
    if gpu is not None:
        return Backend("gpu", report, gpu)
    if override == "gpu":
        raise BackendError(f"{OVERRIDE}=gpu demands a GPU, but {report}")
    return Backend("simulator", report)


def select() -> Backend:
    """Return this process's back end; the first call chooses it and sets the simulator switches.

    Imports neither Numba nor Triton. Raises BackendError if one of them was imported as its
    simulator and the choice is another, or if `TILED_MATMUL_BACKEND` names an unknown back end or a
    GPU that is not usable.
    """
    global _selected
    if _selected is None:
        chosen = decide(os.environ.get(OVERRIDE))
        simulate = chosen.name == "simulator"
        if not simulate:
            _refuse_simulators(chosen)
        for switch in SWITCHES.values():
            os.environ[switch] = "1" if simulate else "0"
        # The course uses small grids on purpose; every cell would print the warning.
        warn = os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
        # Numba has read its variables if it is imported; `numba.cuda` may come much later.
        for config in filter(None, map(sys.modules.get, NUMBA_CONFIGS)):
            config.ENABLE_CUDASIM = int(simulate)
            if warn == "0":
                config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        # Triton fuses a product and a sum into one FMA; 3.9 warns that 3.10 will not by itself.
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
        _selected = chosen
    return _selected


def is_simulated(library: str) -> bool:
    """Return whether `numba.cuda` or `triton` has been imported as its simulator."""
    if library == "numba.cuda":
        jit = getattr(sys.modules[library], "jit", None)
        return "simulator" in getattr(jit, "__module__", "")
    # Triton decorates functions of its own, such as `tl.zeros`, when it is imported.
    standard = sys.modules.get("triton.language.standard")
    return type(getattr(standard, "zeros", None)).__name__ == "InterpretedFunction"


def let_device_functions_compile() -> None:
    """Give Numba a compute capability: it asks the current GPU for one to compile device functions.

    Their code is the same for every GPU until the kernel that calls them is compiled.
    """
    from types import SimpleNamespace

    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))


def _refuse_simulators(chosen: Backend) -> None:
    for library, switch in SWITCHES.items():
        if library in sys.modules and is_simulated(library):
            raise BackendError(
                f"{library} was imported with {switch}=1, as its simulator, before the course "
                f"chose the back end {chosen.name!r} ({chosen.reason}). Restart Python without "
                f"{switch}, or with {OVERRIDE}=simulator if you want the simulators"
            )
