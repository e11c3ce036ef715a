"""`trace_tiles`: run a Triton kernel and record which tiles each program accesses."""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Callable
from typing import Any

from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.table import Table, plural
from tiled_matmul.microscope.table import table as show_table
from tiled_matmul.microscope.triton.findings import TileFinding
from tiled_matmul.microscope.triton.places import Array
from tiled_matmul.microscope.triton.record import Event, TileRecord

MOST_PROGRAMS = 4096
SHOWN_FINDINGS = 8
# Options of a launch for the compiler, not for the kernel.
LAUNCH_OPTIONS = (
    *("num_warps", "num_stages", "num_ctas", "maxnreg", "debug", "enable_fp_fusion"),
    *("launch_cooperative_grid", "launch_pdl", "warp_size", "sanitize_overflow", "ir_override"),
)
NO_KERNEL = "trace_tiles takes a function under @triton.jit, got {}"


def trace_tiles(kernel: Any, grid: Any, *args: Any, **options: Any) -> TileTrace:
    """Run a Triton kernel in Triton's interpreter and return the record of its accesses.

    `kernel` is a function under `@triton.jit`; `grid` is a tuple of 1 to 3 positive ints, or a
    function of the launch's arguments that returns one; `args` and `options` are those of a launch:
    torch tensors of any strides, tensor descriptors, numbers. The interpreter runs on the CPU and
    copies tensors from and to the GPU, so the kernel's stores are in the tensors afterwards.

    Out of bounds, a load returns the content of the array's allocation, or outside that NaN (0 for
    integers), and a store writes nothing; both are findings. Raises TypeError or ValueError for a
    launch that is not possible, and KernelError if the kernel raises an exception, or if Triton's
    compiler refuses what the interpreter ran.
    """
    jit = _jit(kernel)
    fn = jit.fn
    arguments = _bind(fn, args, options)
    size = _grid(grid, arguments)
    from tiled_matmul.microscope.triton import interpreter
    from tiled_matmul.microscope.triton.front_end import refusal

    copies: dict[int, Any] = {}
    arguments = {name: _on_cpu(name, value, copies) for name, value in arguments.items()}
    fixed = interpreter.constants(fn)
    in_arguments = [
        _arrays_in(name, value) for name, value in arguments.items() if name not in fixed
    ]
    held = [one for several in in_arguments for one in several]
    record, tensors = TileRecord([_array(*one) for one in held]), [tensor for *_, tensor in held]
    interpreter.run(fn, size, arguments, tensors, record)
    refused = refusal(jit, arguments)
    if refused:
        raise KernelError(refused)
    for original, copy in copies.values():
        original.copy_(copy)
    return TileTrace(fn.__name__, size, record)


class TileTrace:
    """The record of one launch: `programs`, `events` in order, `arrays` and `findings`."""

    def __init__(self, name: str, grid: tuple[int, int, int], record: TileRecord) -> None:
        self.name, self.grid = name, grid
        self.arrays: tuple[Array, ...] = tuple(record.arrays)
        self.programs: tuple[tuple[int, int, int], ...] = tuple(record.programs)
        self.events: tuple[Event, ...] = tuple(record.events)
        self.findings: tuple[TileFinding, ...] = tuple(record.findings())

    def array(self, name: str) -> Array:
        """Return the array of that name. Raises ValueError, which lists the arrays."""
        for array in self.arrays:
            if array.name == name:
                return array
        known = ", ".join(array.name for array in self.arrays)
        raise ValueError(f"{self.name} has no array called {name!r}; it has {known}")

    def select(
        self,
        program: int | tuple[int, ...] | None = None,
        op: str | None = None,
        array: str | None = None,
    ) -> list[Event]:
        """Return the events, restricted to a program, an op and an array.

        `program` is (x, y, z), without trailing zeros if you like. Raises ValueError for an unknown
        program or array.
        """
        if array is not None:
            self.array(array)
        place = None if program is None else self.program(program)
        return [
            event
            for event in self.events
            if place in (None, event.program)
            and op in (None, event.op)
            and array in (None, event.array)
        ]

    def program(self, place: int | tuple[int, ...]) -> tuple[int, int, int]:
        """Return a program's coordinates (x, y, z). Raises ValueError if no such program ran."""
        whole = (*(place if isinstance(place, tuple) else (place,)), 0, 0)[:3]
        if whole not in self.programs:
            raise ValueError(f"{self.name} ran in a grid of {self.grid}; no program is at {place}")
        return whole

    def tiles(self, array: str, op: str = "load") -> dict[tuple, list[Event]]:
        """Return the events of an array by their tile: {(rows, cols): [Event, …]}.

        Events without any unmasked element are left out. Raises ValueError for an unknown array.
        """
        by_tile: dict[tuple, list[Event]] = {}
        for event in self.select(op=op, array=array):
            if event.elements:
                by_tile.setdefault((*event.plane, event.rows, event.cols), []).append(event)
        return by_tile

    def by_array(self) -> Table:
        """Return a table of the loads, stores and atomics of each array, over all programs."""
        rows = []
        for array in self.arrays:
            for op in ("load", "store", "atomic"):
                events = self.select(op=op, array=array.name)
                if events:
                    rows.append(
                        {
                            "array": array.name,
                            "shape": "×".join(map(str, array.shape)),
                            "op": op,
                            "programs": len({event.program for event in events}),
                            "accesses": len(events),
                            "different tiles": len(self.tiles(array.name, op)),
                            "bytes": sum(event.bytes for event in events),
                            "times the array": sum(event.elements for event in events)
                            / max(1, math.prod(array.shape)),
                        }
                    )
        return show_table(rows)

    def __repr__(self) -> str:
        shown = self.findings[:SHOWN_FINDINGS]
        more = len(self.findings) - len(shown)
        lines = [self._headline(), repr(self.by_array()), *(f"- {finding}" for finding in shown)]
        return "\n".join(lines + [f"- and {more} more findings"] * (more > 0))

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(str(f))}</li>" for f in self.findings[:SHOWN_FINDINGS])
        more = len(self.findings) - SHOWN_FINDINGS
        items += f"<li>and {more} more findings</li>" if more > 0 else ""
        listed = f"<ul>{items}</ul>" if items else ""
        return f"<p>{html.escape(self._headline())}</p>{self.by_array()._repr_html_()}{listed}"

    def _headline(self) -> str:
        count = len(self.findings)
        verdict = plural(count, "finding") if count else "nothing wrong"
        programs = plural(len(self.programs), "program")
        return f"{self.name}: {programs} in a grid of {self.grid}; {verdict}"


def _jit(kernel: Any) -> Any:
    """Return what `@triton.jit` made, which may be under other decorators."""
    jit = inner = kernel
    while not inspect.isfunction(inner) and hasattr(inner, "fn"):
        jit, inner = inner, inner.fn
    if inner is kernel or not inspect.isfunction(inner):
        name = getattr(kernel, "__name__", None)
        description = type(kernel).__name__ + (f" {name!r} without it" if name else f" {kernel!r}")
        raise TypeError(NO_KERNEL.format(description))
    return jit


def _bind(fn: Callable, args: tuple, options: dict[str, Any]) -> dict[str, Any]:
    signature = inspect.signature(fn)
    known = list(signature.parameters)
    unknown = [name for name in options if name not in known and name not in LAUNCH_OPTIONS]
    if unknown:
        raise TypeError(f"{fn.__name__} has no argument {unknown[0]!r}; it has {', '.join(known)}")
    keywords = {name: value for name, value in options.items() if name in known}
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(
            f"{fn.__name__} cannot be called with these arguments: {error}. It takes "
            f"{', '.join(signature.parameters)}; what a tuner would choose has to be given"
        ) from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _grid(grid: Any, arguments: dict[str, Any]) -> tuple[int, int, int]:
    size = grid(arguments) if callable(grid) else grid
    numbers = isinstance(size, tuple) and all(type(axis) is int and axis > 0 for axis in size)
    if not numbers or not 1 <= len(size) <= 3:
        raise (TypeError if not isinstance(size, tuple) else ValueError)(
            f"grid must be a tuple of 1 to 3 positive ints, got {size!r}"
        )
    if math.prod(size) > MOST_PROGRAMS:
        raise ValueError(
            f"grid {size} has {math.prod(size):,} programs; a trace takes at most "
            f"{MOST_PROGRAMS:,}: trace a smaller problem, or larger blocks"
        )
    return (*size, 1, 1)[:3]


def _arrays_in(name: str, value: Any) -> list[tuple]:
    """Return (name, shape, strides, tensor) of each tensor in an argument."""
    if isinstance(value, tuple):
        parts = (_arrays_in(f"{name}[{i}]", item) for i, item in enumerate(value))
        return [held for part in parts for held in part]
    if _is_descriptor(value):
        return [(name, tuple(value.shape), tuple(value.strides), value.base)]
    if hasattr(value, "data_ptr"):
        return [(name, tuple(value.shape), tuple(value.stride()), value)]
    return []


def _is_descriptor(value: Any) -> bool:
    return hasattr(value, "base") and hasattr(value, "block_shape")


def _array(name: str, shape: tuple, strides: tuple, tensor: Any) -> Array:
    size = tensor.element_size()
    start = -tensor.storage_offset()
    memory = start, start + tensor.untyped_storage().nbytes() // size
    missing = max(0, 2 - len(shape))
    shape, strides = (1,) * missing + shape, (0,) * missing + strides
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Array(
        name,
        tuple(map(int, shape)),
        tuple(map(int, strides)),
        dtype,
        size,
        tensor.data_ptr(),
        memory,
    )


def _on_cpu(name: str, value: Any, copies: dict[int, Any]) -> Any:
    """Return an argument with its tensors on the CPU; `copies` collects (storage, copy).

    Views of one allocation stay views of one allocation.
    """
    import dataclasses

    import torch

    if isinstance(value, tuple):
        moved = [_on_cpu(f"{name}[{i}]", item, copies) for i, item in enumerate(value)]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    if _is_descriptor(value):
        return dataclasses.replace(value, base=_on_cpu(name, value.base, copies))
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 0):
        raise TypeError(
            f"{name} is a numpy array; a kernel takes tensors: torch.from_numpy({name})"
        )
    if not hasattr(value, "data_ptr"):
        return value
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(value).__name__}")
    if value.device.type == "cpu":
        return value
    if value.device.type != "cuda":
        raise ValueError(f"{name} lies on {value.device}; a trace takes tensors of cpu or cuda")
    storage = value.untyped_storage()
    if storage.data_ptr() not in copies:
        copies[storage.data_ptr()] = (storage, storage.cpu())
    copy = torch.empty(0, dtype=value.dtype)
    copy.set_(copies[storage.data_ptr()][1], value.storage_offset(), value.shape, value.stride())
    return copy
