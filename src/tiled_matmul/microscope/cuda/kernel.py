"""The interpreter's `cuda.jit` and its launches, and `watch`, which traces all launches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tiled_matmul.machine.backend import NeedsGpu
from tiled_matmul.microscope.cuda.names import FEATURES
from tiled_matmul.microscope.cuda.prepare import launch_shape, prepare
from tiled_matmul.microscope.cuda.signatures import parsed
from tiled_matmul.microscope.cuda.trace import trace

_watching: list[tuple[list, dict]] = []


class Kernel:
    """A kernel, or a device function, that runs in the interpreter."""

    extensions: tuple = ()
    specialized = False

    def __init__(
        self,
        function: Callable,
        device: bool,
        options: dict | None = None,
        only: Sequence[tuple] = (),
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.device = device
        self.only = only  # the types of arguments that it takes, by its signatures; () is any
        self.targetoptions = dict(options or {})  # for a compiler; the interpreter ignores them

    def __getitem__(self, configuration: tuple) -> Launch:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError(
                "a launch is kernel[grid, block], with a stream and bytes of dynamic shared memory "
                f"if needed; got kernel[{configuration!r}]"
            )
        if self.device:
            raise ValueError(f"{self.__name__} is a device function: kernels call it")
        grid, block = configuration[:2]
        return Launch(self, grid, block, configuration[3] if len(configuration) == 4 else 0)

    def __call__(self, *arguments: Any) -> None:
        kind = "device function" if self.device else "kernel"
        raise TypeError(
            f"{self.__name__} is a {kind}: "
            + (
                "kernels call it"
                if self.device
                else f"launch it as {self.__name__}[grid, block](…)"
            )
        )

    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> Launch:
        """Return a launch with this grid and block, as `kernel[griddim, blockdim]` does."""
        return self[griddim, blockdim, stream, sharedmem]

    def specialize(self, *arguments: Any) -> Kernel:
        """Return the kernel: the interpreter runs it for arguments of any type."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in COMPILED:
            raise AttributeError(f"a kernel has no {name}")
        raise NeedsGpu(
            f"{name} is about compiled code, and the interpreter runs {self.__name__} here. "
            "`try_compiled` of tiled_matmul.page compiles a kernel for a GPU that need not be there"
        )

    def forall(self, count: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable:
        """Return a 1-D launch with a thread for each of `count` elements, which may be 0.

        Raises ValueError for a count that is not an int of 0 or more.
        """
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
            raise ValueError(f"forall takes a number of elements, got {count!r}")
        if count == 0:
            return lambda *arguments: None
        threads = tpb or 128
        return Launch(self, -(-count // threads), threads, sharedmem)

    def __repr__(self) -> str:
        return f"<{self.__name__}, run by the interpreter>"


class Launch:
    """A kernel with its grid and block; calling it runs the kernel."""

    def __init__(self, kernel: Kernel, grid: Any, block: Any, sharedmem: int) -> None:
        launch_shape(grid, block, sharedmem)
        self.kernel, self.grid, self.block, self.sharedmem = kernel, grid, block, sharedmem

    def __call__(self, *arguments: Any) -> None:
        run(self.kernel, self.grid, self.block, *arguments, sharedmem=self.sharedmem)


def run(kernel: Any, grid: Any, block: Any, *arguments: Any, sharedmem: int = 0) -> None:
    """Launch a kernel in the interpreter; only inside `watch` is it traced.

    Errors are those of `trace`. Without a trace, OutOfBounds and DivergentBarrier are raised
    instead of findings.
    """
    if _watching:
        traces, options = _watching[-1]
        traces.append(trace(kernel, grid, block, *arguments, sharedmem=sharedmem, **options))
        return
    runner, numbers, finish = prepare(kernel, grid, block, arguments, None, sharedmem)
    runner.run(numbers)
    finish()


@contextmanager
def watch(**options: Any):
    """Yield a list to which a trace of every launch inside the `with` is appended.

    It traces a rung's own launches: `with watch() as traces: cuda_naive.matmul(a, b)`. `options`
    are those of `trace`: blocks, order, seed, max_steps.
    """
    traces: list = []
    _watching.append((traces, options))
    try:
        yield traces
    finally:
        _watching.pop()


def watched() -> bool:
    """Return whether launches are traced, inside a `watch`."""
    return bool(_watching)


# What belongs to the compiled code of a kernel.
COMPILED = frozenset(
    ("overloads", "signatures", "nopython_signatures", "stats", "compile", "compile_device")
    + ("inspect_asm", "inspect_llvm", "inspect_sass", "inspect_sass_cfg", "inspect_lto_ptx")
    + ("inspect_types", "inspect_cfg", "inspect_disasm_cfg", "get_regs_per_thread", "get_overload")
    + ("get_shared_mem_per_block", "get_const_mem_size", "get_local_mem_per_thread")
    + ("get_max_threads_per_block", "max_cooperative_grid_blocks", "ptx", "definition")
)
JIT_OPTIONS = frozenset(
    ("argtypes", "restype", "inline", "fastmath", "link", "debug", "opt", "lineinfo", "cache")
    + ("launch_bounds", "max_registers", "boundscheck", "forceinline", "shared_memory_carveout")
    + ("ensure_shared_memory", "lto", "abi", "abi_info")
)


def jit(func_or_sig: Any = None, device: bool = False, **options: Any) -> Any:
    """Stand in for `numba.cuda.jit`; the compiler's options are accepted."""
    unknown = set(options) - JIT_OPTIONS
    if unknown:
        raise TypeError(f"cuda.jit has no option {', '.join(sorted(unknown))}")
    if options.get("link"):
        raise NeedsGpu(f"link={options['link']!r} needs a GPU: the interpreter runs Python alone")
    if isinstance(func_or_sig, Kernel):
        return func_or_sig
    if hasattr(func_or_sig, "__code__"):
        return Kernel(func_or_sig, device, options)
    only = () if func_or_sig is None else parsed(func_or_sig)
    return lambda function: Kernel(function, device, options, () if device else only)


def install() -> None:
    """Let `numba.cuda.jit` make kernels for the interpreter, in this process.

    Names that only kernels use are added to `numba.cuda`, so that they can be imported.
    """
    from numba import cuda

    cuda.jit = jit
    for name in FEATURES:
        if not hasattr(cuda, name):
            setattr(cuda, name, _InKernels(name))


class _InKernels:
    """A name of `numba.cuda` that works only inside kernels."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *arguments: Any) -> None:
        raise TypeError(f"cuda.{self._name} is for kernels, and this is not one")

    def __getattr__(self, name: str) -> _InKernels:
        if name.startswith("_"):
            raise AttributeError(name)
        return _InKernels(f"{self._name}.{name}")

    def __repr__(self) -> str:
        return f"<cuda.{self._name}, for kernels>"
