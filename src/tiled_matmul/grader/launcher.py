"""The process that launches kernels on the GPU: `python -m tiled_matmul.grader.launcher FD`.

It receives machine code (see `builds`), never a learner's Python. The inputs, the launch, the clock
and the copies back are the course's own, so an answer cannot patch them. It judges nothing.
Requests and replies have the format of `wire`. A fault destroys the process's CUDA context, and
`on_gpu` then starts another process.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tiled_matmul.grader import wire

MOST_BYTES = 256 << 20
MOST_TEXT = 2000
ROUNDS = 10  # of a timing
SPARE = 6  # sets of inputs beyond the rounds: for warm-up calls and repeated samples
OTHERS = 1 << 20  # distance from the seeds of the answer's inputs to those of the baseline's
PROBE = 256  # edge of the product that shows that the GPU works
STANDARD_SHARED = 48 << 10  # bytes of shared memory that a launch gets without opting in


class GpuError(Exception):
    """The GPU failed; `name` is the driver's, such as CUDA_ERROR_ILLEGAL_ADDRESS, or ""."""

    name = ""


class BadCode(Exception):
    """The machine code does not hold a kernel that can be launched with these arguments."""


def main() -> None:
    """Serve requests until there are none."""
    out = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
    requests = sys.stdin.buffer
    if wire.read_from(requests.read, MOST_BYTES) is None:
        return
    wire.send(out, {"ready": True})
    while (received := wire.read_from(requests.read, MOST_BYTES)) is not None:
        header, blobs = received
        try:
            reply = SERVICES[header["do"]](header, blobs)
        except Exception as error:
            reply = {"error": _described(error)}, []
        wire.send(out, *reply)


def _described(error: Exception) -> dict[str, str]:
    """Return an error for the reply. A fault on the GPU has the driver's name for it."""
    if not isinstance(error, GpuError | BadCode):
        try:
            _wait()
        except GpuError as fault:
            error = fault
        except Exception:  # there is no GPU to wait for: report the first error
            pass
    described = {"type": type(error).__name__, "message": str(error)[:MOST_TEXT]}
    return described | {"name": getattr(error, "name", "")}


def hello(header: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
    """Return the GPU's name, after a product has shown that the GPU works."""
    import torch

    from tiled_matmul.kit import backend

    gpu = backend.select().gpu
    if gpu is None:
        raise GpuError(f"no GPU: {backend.select().reason}")
    ones = torch.ones(PROBE, PROBE, device="cuda")
    if not bool((ones @ ones == PROBE).all()):
        raise GpuError("a product of ones came out wrong")
    return {"gpu": gpu.name}, []


def run(header: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
    """Launch a kernel once. The blobs are code, inputs and an old C; returns C and the inputs."""
    import torch

    code, *data = blobs
    kernel = Kernel(code, header)
    *inputs, c = _on_gpu(header, data)
    kernel.launch(*inputs, c)
    _wait()
    outputs = [np.ascontiguousarray(x.cpu().numpy()).tobytes() for x in (c, *inputs)]
    kernel.unload()
    torch.cuda.empty_cache()
    return {"launched": True}, outputs


def time(header: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
    """Time a kernel, or a rung with settings, against another rung or "cublas".

    The clock is the book's. Each call has its own inputs, drawn from the seeds that follow `seed`,
    and its own output, filled with NaN. Returns the samples in ms and this GPU's peak rates; the
    outputs follow in the order of the calls.
    """
    import torch

    from tiled_matmul.grader.spec import Case
    from tiled_matmul.ladder import rung
    from tiled_matmul.measure import peaks
    from tiled_matmul.measure.clock import time_interleaved

    case = Case(**header["case"])
    sets = _sets(header, case, header["seed"])
    # With other inputs, so that the baseline leaves no right C of the answer's in memory.
    others = _sets(header, case, header["seed"] + OTHERS)
    against = header["against"]
    baseline = torch.matmul if against == "cublas" else rung(against).matmul
    if blobs:
        launch = Kernel(blobs[0], header).launch
    else:
        tuned, settings = rung(header["of"]).matmul, _tuples(header["settings"])

        def launch(a, b, c):
            tuned(a, b, out=c, **settings)

    answer = Calls(lambda i: launch(*sets[i]), len(sets))
    other = Calls(lambda i: baseline(*others[i][:2], out=others[i][2]), len(others))
    timings = time_interleaved({"answer": answer, "baseline": other}, device="gpu", rounds=ROUNDS)
    _wait()
    outputs = [c.cpu().numpy().tobytes() for _, _, c in sets[: answer.used]]
    samples = {name: list(timing.samples_ms) for name, timing in timings.items()}
    return {**samples, "peak": dataclasses.asdict(peaks.current())}, outputs


def _sets(header: dict, case: Any, seed: int) -> list[list[Any]]:
    """Return A, B and a C full of NaN for each call; the seeds count up from `seed`."""
    sets = []
    for number in range(ROUNDS + SPARE):
        operands = [x.tobytes() for x in case.inputs(seed + number)]
        old = np.full(case.shapes[2], np.nan, case.dtype).tobytes()
        sets.append(_on_gpu(header, [*operands, old]))
    return sets


def _tuples(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the tuples restored that JSON turned into lists."""
    return {name: tuple(x) if isinstance(x, list) else x for name, x in settings.items()}


class Calls:
    """Calls a function with 0, 1, 2, …, so that each call has its own set of inputs."""

    def __init__(self, function: Callable[[int], object], sets: int) -> None:
        self.function, self.sets, self.used = function, sets, 0

    def __call__(self) -> None:
        if self.used == self.sets:
            raise GpuError(f"the clock needs more than {self.sets} sets of inputs")
        self.function(self.used)
        self.used += 1


class Kernel:
    """The only kernel in some machine code, ready to launch. Raises BadCode, GpuError."""

    def __init__(self, code: bytes, header: dict) -> None:
        from cuda.bindings import driver

        self.kind, self.grid, self.block = header["kind"], *header["launch"]
        self.passed, self.numbers = header["passed"], header.get("numbers", [])
        self.shared, self.scratch = header["shared"], header["scratch"]
        self.grid = (*self.grid, 1, 1)[:3]
        self.threads = (32 * header["warps"], 1, 1) if header["warps"] else (*self.block, 1, 1)[:3]
        self.module = _checked(driver.cuModuleLoadData(code))
        functions = _checked(driver.cuModuleGetFunctionCount(self.module))
        if functions != 1:
            raise BadCode(f"the code holds {functions} kernels instead of one")
        (self.function,) = _checked(driver.cuModuleEnumerateFunctions(1, self.module))
        self.sizes = _parameters(self.function)
        if self.shared > STANDARD_SHARED:
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _checked(driver.cuFuncSetAttribute(self.function, most, self.shared))

    def launch(self, *arrays: Any) -> None:
        """Launch on tensors, in torch's current stream, without waiting for the end."""
        import torch
        from cuda.bindings import driver

        values = self._arrays(*arrays) if self.kind == "cuda" else self._pointers(*arrays)
        # Triton kernels have up to two more parameters: pointers to scratch memory.
        extra = len(self.sizes) - len(values)
        if not 0 <= extra <= (0 if self.kind == "cuda" else 2):
            raise BadCode(f"the kernel has {len(self.sizes)} parameters, got {len(values)}")
        if extra and self.scratch:
            blocks = self.grid[0] * self.grid[1] * self.grid[2]
            self.memory = torch.empty(self.scratch * blocks, dtype=torch.uint8, device="cuda")
            values.append(self.memory.data_ptr())
        values += [0] * (len(self.sizes) - len(values))
        cells = [_cell(value, size) for value, size in zip(values, self.sizes, strict=True)]
        pointers = (ctypes.c_void_p * len(cells))(*map(ctypes.addressof, cells))
        stream = torch.cuda.current_stream().cuda_stream
        shape = *self.grid, *self.threads, self.shared
        parameters = ctypes.addressof(pointers)
        _checked(driver.cuLaunchKernel(self.function, *shape, stream, parameters, 0))

    def _arrays(self, *tensors: Any) -> list[int]:
        """Return the parameters by which a Numba kernel receives arrays."""
        out: list[int] = []
        for x in tensors:
            step = x.element_size()
            strides = [step * stride for stride in x.stride()]
            out += [0, 0, x.numel(), step, x.data_ptr(), *x.shape, *strides]
        return out

    def _pointers(self, *tensors: Any) -> list[int]:
        whole = [*(x.data_ptr() for x in tensors), *self.numbers]
        return [whole[i] for i in self.passed]

    def unload(self) -> None:
        from cuda.bindings import driver

        _checked(driver.cuModuleUnload(self.module))


def _parameters(function: Any) -> list[int]:
    """Return the size of each of a kernel's parameters, in bytes."""
    from cuda.bindings import driver

    sizes: list[int] = []
    while True:
        status, _, size = driver.cuFuncGetParamInfo(function, len(sizes))
        if status != driver.CUresult.CUDA_SUCCESS:
            return sizes
        sizes.append(size)


def _cell(value: int, size: int) -> Any:
    if size not in (4, 8):
        raise BadCode(f"a parameter has {size} bytes, not 4 or 8")
    return (ctypes.c_int32 if size == 4 else ctypes.c_int64)(value)


def _on_gpu(header: dict, data: list[bytes]) -> list[Any]:
    """Return inputs and C as tensors, stored as the header says, with the memory around them."""
    import torch

    from tiled_matmul.grader.kinds import tensors

    moved = []
    for x in tensors(header, data):
        whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).cuda()
        moved.append(whole.as_strided(x.shape, x.stride()))
    return moved


def _wait() -> None:
    """Wait for the GPU; raise GpuError with the driver's name for a fault."""
    from cuda.bindings import driver

    _checked(driver.cuCtxSynchronize())


def _checked(result: tuple) -> Any:
    """Return the value of a driver call. Raises GpuError if the call failed."""
    from cuda.bindings import driver

    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        error = GpuError(f"the driver reports {status.name}")
        error.name = status.name
        raise error
    return values[0] if values else None


SERVICES = {"hello": hello, "run": run, "time": time}

if __name__ == "__main__":
    main()
