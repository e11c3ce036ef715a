"""The host's side of Triton in the simulators: launches, tuning, and what a GPU is asked.

Kernels run in Triton's interpreter, those too that were decorated before it was switched on, and
kernels in Gluon in the course's. What makes sense without a GPU works: `autotune` takes its first
configuration, as nothing can be timed. All else raises NeedsGpu, which says what to do instead. The
driver describes the H200 on which the course measures, but its device is the CPU.
"""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from tiled_matmul.machine.backend import NeedsGpu
from tiled_matmul.machine.device import PEAKS
from tiled_matmul.microscope.cuda.hardware import SHARED_BYTES, WARP
from tiled_matmul.microscope.gluon import is_gluon
from tiled_matmul.microscope.gluon import launch as launch_gluon
from tiled_matmul.microscope.triton.fixes import apply_fixes

REFERENCE, ARCHITECTURE = "H200", 90
REGISTERS = 65536  # of a multiprocessor
NO_CLOCK = (
    "a time needs a GPU: kernels run in Triton's interpreter here, which is right and slow. The "
    "course's `measure` shows times of a real GPU"
)
COMPILED = ("cache", "device_caches", "cache_key", "params", "preload", "create_binder", "src")
COMPILE_INSTEAD = (
    "`tile_codes` of tiled_matmul.page compiles a kernel for a GPU that need not be there"
)


def install() -> None:
    """Make Triton, which has been imported, what it is in the simulators of this course."""
    import triton.testing
    from triton import language as tl
    from triton.language import core
    from triton.runtime import driver, interpreter
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.errors import InterpreterError
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    if isinstance(vars(driver).get("_active"), Driver):
        return
    apply_fixes()
    call, run = InterpretedFunction.__call__, InterpretedFunction.run
    functions: dict[Callable, InterpretedFunction] = {}  # a JITFunction is hashed by its source
    running: list[InterpretedFunction] = []

    def interpreted(jit: JITFunction) -> InterpretedFunction:
        """Return a function that was decorated for the compiler, for the interpreter."""
        if jit.fn not in functions:
            functions[jit.fn] = InterpretedFunction(jit.fn)
        return functions[jit.fn]

    def launch(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Interpreted:
        if is_gluon(self):
            launch_gluon(self, grid, *arguments, **options)
            return Interpreted(self.__name__)
        kernel = interpreted(self) if isinstance(self, JITFunction) else self
        running.append(kernel)
        try:
            run(kernel, *arguments, grid=grid, warmup=warmup, **options)
        finally:
            running.pop()
        return Interpreted(kernel.__name__)

    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        if is_gluon(self):
            raise TypeError(
                f"{self.__name__} is a kernel in Gluon, or a function for kernels: launch a kernel "
                f"as {self.__name__}[grid](…)"
            )
        function = interpreted(self) if isinstance(self, JITFunction) else self
        # Triton leaves its language patched behind a call, and the compiler cannot use it then.
        scope = interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": core}))
        try:
            return call(function, *arguments, **options)
        except InterpreterError:
            if running:
                raise
            name = function.__name__
            raise TypeError(
                f"{name} is a kernel, or a function for kernels: launch a kernel as {name}[grid](…)"
            ) from None
        finally:
            scope.restore()

    JITFunction.__call__ = InterpretedFunction.__call__ = called
    InterpretedFunction.__getattr__ = of_compiled_code
    JITFunction.__get__ = as_method  # of a tile: its `sum` is a function for the compiler
    JITFunction.run = InterpretedFunction.run = launch
    Autotuner.do_bench = property(clock_of)
    for name in ("do_bench", "do_bench_cudagraph", "get_dram_gbps", "get_max_tensorcore_tflops"):
        if hasattr(triton.testing, name):
            setattr(triton.testing, name, refuse_to_time)
    driver.set_active(Driver())


def as_method(jit: Any, tile: Any, kind: type | None = None) -> Any:
    return jit if tile is None else partial(jit, tile)


def refuse_to_time(*arguments: Any, **options: Any) -> None:
    raise NeedsGpu(NO_CLOCK)


def clock_of(tuner: Any) -> Callable:
    """Return the function that times a configuration: the one that the kernel's author passed.

    Without one, nothing is timed, and so the first configuration is taken.
    """
    own = not (tuner.use_cuda_graph or tuner.num_warmups or tuner.num_reps)
    if own and tuner._do_bench is not None:
        return tuner._do_bench
    if not getattr(tuner, "warned", False):
        tuner.warned = True
        warnings.warn(
            f"nothing is timed without a GPU: {tuner.base_fn.__name__} takes the first of its "
            "configurations",
            stacklevel=6,
        )
    untimed = [math.nan] * 3
    return lambda call, quantiles: untimed


def of_compiled_code(kernel: Any, name: str) -> Any:
    """Stand in for what a kernel for the compiler has, and one for the interpreter has not."""
    if name not in COMPILED:
        raise AttributeError(f"{type(kernel).__name__!r} object has no attribute {name!r}")
    raise NeedsGpu(
        f"{name} is about compiled code, and Triton's interpreter runs {kernel.fn.__name__} here. "
        f"{COMPILE_INSTEAD}"
    )


class Interpreted:
    """What a launch in the interpreter returns, in place of a compiled kernel."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsGpu(
            f"{name} belongs to a compiled kernel, and {self.name} ran in Triton's interpreter. "
            f"{COMPILE_INSTEAD}"
        )

    def __repr__(self) -> str:
        return f"<{self.name}, run by the interpreter>"


class Utilities:
    """The part of a driver that knows the GPU."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {
            "max_shared_mem": SHARED_BYTES,
            "max_num_regs": REGISTERS,
            "multiprocessor_count": PEAKS[REFERENCE].sms,
            "warpSize": WARP,
        }


class Driver:
    """Triton's driver where there is no GPU."""

    utils = Utilities()

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", ARCHITECTURE, WARP)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is one."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(ARCHITECTURE, 10)

    def get_benchmarker(self) -> Callable:
        return refuse_to_time

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NeedsGpu(f"{name} needs a GPU, and kernels run in Triton's interpreter here")
