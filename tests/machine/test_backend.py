"""backend.py: the choice of the machine; it is made once, so each test has its own process."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tiled_matmul.machine import backend

GPU = backend.Gpu("Test GPU", (9, 0), "13.0")


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {key: value for key, value in os.environ.items() if key not in SWITCHES}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


SWITCHES = {*backend.SWITCHES.values(), backend.OVERRIDE}


SELECT = "from tiled_matmul.kit import backend\nprint(backend.select().name)"
SIMULATED = {"numba.cuda": "NUMBA_ENABLE_CUDASIM", "triton": "TRITON_INTERPRET"}


@pytest.mark.parametrize("library", SIMULATED)
def test_a_simulator_that_was_imported_first_is_refused_by_the_compilers(library):
    switch = SIMULATED[library]
    environment = {backend.OVERRIDE: "compiler", switch: "1"}
    done = run_python(f"import {library}\n{SELECT}", **environment)
    assert f"{library} was imported with {switch}=1" in done.stderr
    assert f"Restart Python without {switch}" in done.stderr


def test_unknown_override_is_quoted():
    with pytest.raises(backend.BackendError, match="'cpu' is not known"):
        backend.decide("cpu")


def test_a_demanded_gpu_that_is_missing_is_an_error(monkeypatch):
    monkeypatch.setattr(backend, "probe_gpu", lambda: (None, "no NVIDIA driver is installed"))
    with pytest.raises(backend.BackendError, match="demands a GPU, but no NVIDIA driver"):
        backend.decide("gpu")
    assert backend.decide(None).name == "simulator"


@pytest.mark.parametrize(
    ("status", "visible", "report"),
    [
        (100, None, "the NVIDIA driver reports no GPU"),
        (100, "", "the NVIDIA driver reports no GPU with CUDA_VISIBLE_DEVICES=''"),
        (34, None, "only a stub of the NVIDIA driver is installed"),
        (803, None, "the NVIDIA driver's library is here, but cuInit fails with error 803"),
    ],
)
def test_why_there_is_no_gpu_is_told_apart(monkeypatch, status, visible, report):
    monkeypatch.setattr(
        backend.ctypes, "CDLL", lambda name: SimpleNamespace(cuInit=lambda _: status)
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpu, text = backend.probe_gpu()
    assert gpu is None and text.startswith(report)
    assert ("VISIBLE" in text) == (visible is not None)


def test_a_gpu_that_torch_cannot_use_is_named(monkeypatch):
    cuda, version = SimpleNamespace(is_available=lambda: False), SimpleNamespace(cuda=None)
    torch = SimpleNamespace(cuda=cuda, version=version, __version__="2.13.0+cpu")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(backend, "probe_gpu", lambda: (GPU, "the driver reports Test GPU"))
    chosen = backend.decide(None)
    assert chosen.name == "simulator"
    assert "Test GPU, but torch 2.13.0+cpu cannot use it" in chosen.reason
    with pytest.raises(backend.BackendError, match="cannot use it"):
        backend.decide("gpu")


def test_a_usable_gpu_is_taken(monkeypatch):
    monkeypatch.setattr(backend, "_usable_gpu", lambda: (GPU, "found"))
    assert backend.decide(None) == backend.Backend("gpu", "found", GPU)
    assert backend.decide("simulator").name == "simulator"


def test_importing_the_package_is_quick_and_loads_nothing_heavy():
    done = run_python(
        "import sys, time; start = time.perf_counter()\n"
        "import tiled_matmul, tiled_matmul.machine.backend\n"
        "heavy = [m for m in ('numba', 'torch', 'triton') if m in sys.modules]\n"
        "print(time.perf_counter() - start, heavy)"
    )
    seconds, loaded = done.stdout.split(maxsplit=1)
    assert float(seconds) < 2 and loaded.strip() == "[]"


@pytest.mark.gpu
def test_the_driver_and_torch_agree_on_the_gpu():
    import torch

    gpu, _ = backend.probe_gpu()
    assert gpu.name == torch.cuda.get_device_name(0)
    assert gpu.capability == torch.cuda.get_device_capability(0)


def test_simulator_on_demand_runs_kernels_in_the_interpreter_and_not_in_numbas_simulator():
    code = (
        "from tiled_matmul.kit import backend; import os; chosen = backend.select()\n"
        "from numba import config, cuda\n"
        "print(chosen.name, os.environ['TRITON_INTERPRET'], config.ENABLE_CUDASIM)\n"
        "from numba.cuda import grid, threadIdx\n"
        "import numba.cuda.simulator.kernel as numbas\n"
        "def refuse(*a): raise SystemExit('Numba ran it')\n"
        "numbas.FakeCUDAKernel.__call__ = refuse\n"
        "from tiled_matmul.ladder import LADDER\n"
        "from tiled_matmul.problem import Problem\n"
        "rungs = [rung for rung in LADDER if rung.language.name == 'numba-cuda']\n"
        "for rung in rungs[::4]:\n"
        "    rung.matmul(*Problem(5, 6, 7).inputs(device='cpu'))\n"
        "try: cuda.grid(1)\n"
        "except TypeError as error: print(error)\n"
        "print(type(cuda.jit(refuse)).__module__, cuda.threadIdx.x)\n"
    )
    done = run_python(code, TILED_MATMUL_BACKEND="simulator")
    assert done.stdout.splitlines() == [
        "simulator 1 1",
        "cuda.grid is for kernels, and this is not one",
        "tiled_matmul.microscope.cuda.kernel <cuda.threadIdx.x, for kernels>",
    ], done.stderr


COMPILE = """
from tiled_matmul.machine import backend
chosen = backend.select()
import os
from numba import config, cuda, types
print(chosen.name, chosen.on_gpu, config.ENABLE_CUDASIM, os.environ["TRITON_INTERPRET"])

@cuda.jit(device=True)
def twice(x):
    return x + x

@cuda.jit
def kernel(x):
    x[cuda.threadIdx.x] = twice(x[cuda.threadIdx.x])

for cc in ((7, 5), (9, 0)):
    try:
        text, _ = cuda.compile_ptx(kernel.py_func, (types.float32[::1],), cc=cc)
        print("entry" in text, f"sm_{cc[0]}{cc[1]}" in text)
    except Exception as error:
        print(type(error).__name__)

from tiled_matmul.ladder import rung
from tiled_matmul.problem import Problem
a, b = Problem.square(4).inputs(0, "integers", "cpu")
print((rung("cuda_naive").matmul(a, b) == a @ b).all().item())
"""


@pytest.mark.long
def test_the_compiler_on_demand_leaves_numba_as_it_is_and_interprets_what_is_launched():
    done = run_python(COMPILE, TILED_MATMUL_BACKEND="compiler")
    first, *made, right = done.stdout.splitlines()
    assert (first, right) == ("compiler False 0 0", "True"), done.stderr
    if made == ["NvvmSupportError"] * 2:
        pytest.skip("this Numba cannot make PTX")
    # Device functions too, which Numba compiles for the GPU that is not there.
    assert made == ["True True"] * 2


def test_the_choice_imports_nothing_of_numba():
    made = run_python(
        "import sys; from tiled_matmul.machine import backend; backend.select()\n"
        "print('numba' in sys.modules, backend.select().name)",
        TILED_MATMUL_BACKEND="compiler",
    )
    assert made.stdout.split() == ["False", "compiler"], made.stderr


def test_the_compiler_is_known_without_looking_for_a_gpu(monkeypatch):
    monkeypatch.setattr(backend, "_usable_gpu", lambda: pytest.fail("it looked"))
    chosen = backend.decide("compiler")
    assert (chosen.name, chosen.gpu, chosen.on_gpu) == ("compiler", None, False)
    assert "compiled code, not for a run" in chosen.reason
