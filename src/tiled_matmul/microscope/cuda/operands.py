"""The arguments of a launch: arrays of the host and of a GPU, numbers, and tuples of ints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import values
from tiled_matmul.microscope.cuda.errors import TypingError
from tiled_matmul.microscope.cuda.hardware import ALIGNMENT
from tiled_matmul.microscope.cuda.memory import (
    GLOBAL_START,
    Array,
    Memory,
    checked_dtype,
    row_major,
)


@dataclass
class _Operand:
    name: str
    host: np.ndarray
    low: int  # bounds of its allocation in the machine's memory
    high: int
    address: int


def bind(memory: Memory, names: list[str], arguments: tuple) -> tuple[list, Callable[[], None]]:
    """Return (the kernel's values for these arguments, a function that writes results back).

    Arguments are torch tensors, numpy arrays, arrays on a GPU (Numba's and others) and their views,
    numbers and tuples of ints. An array may stand in `cuda.In`, `cuda.Out` or `cuda.InOut`.
    Raises TypeError, which names the argument, for anything else.
    """
    operands: dict[int, _Operand] = {}
    bound: list[Any] = []
    copies = _Copies(arguments)
    for place, (name, value) in enumerate(zip(names, arguments, strict=True)):
        if isinstance(value, (bool, np.bool_)):
            bound.append(values.flag(value))
        elif isinstance(value, np.generic):
            checked_dtype(name, value.dtype)
            bound.append(values.carrier(value.dtype)(value))
        elif isinstance(value, int):
            if not values.LOW <= value <= values.HIGH:
                raise TypingError(f"{name} = {value} does not fit into int64")
            bound.append(value)
        elif isinstance(value, float):
            bound.append(values.f64(value))
        elif isinstance(value, tuple) and all(isinstance(n, int) for n in value):
            bound.append(value)
        else:
            operands[place] = _operand(name, value, copies)
            bound.append(None)
    starts = _addresses(operands.values())
    for (place, operand), start in zip(operands.items(), starts, strict=True):
        bound[place] = _array(memory, operand, *start)

    def finish() -> None:
        for write in copies.write_back:
            write()

    return bound, finish


def _operand(name: str, value: Any, copies: _Copies) -> _Operand:
    kind = type(value)
    if kind.__module__.split(".")[0] == "torch" and hasattr(value, "untyped_storage"):
        return _tensor(name, value, copies)
    if kind.__module__.endswith("cuda.args") or kind.__module__.endswith("simulator.args"):
        return _operand(name, _hinted(value, copies), copies)
    if _on_gpu(value):
        value = copies.view(value)
    value = getattr(value, "_ary", value)  # of a device array in Numba's simulator
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"argument {name} must be a tensor, an array or a number, got "
            f"{type(value).__name__}: {str(value)[:60]!r}"
        )
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high, _ = _extent(root)
    return _Operand(name, value, low, high, _extent(value)[2])


def _hinted(hint: Any, copies: _Copies) -> Any:
    """Return the array in `cuda.In`, `cuda.Out` or `cuda.InOut`, or what a GPU has in its place.

    A GPU copies the array for an In, and copies new memory back to it for an Out.
    """
    array, kind = hint.value, type(hint).__name__
    if kind == "InOut" or not isinstance(array, np.ndarray):
        return array
    host = array.copy()
    if kind == "Out":
        host.view(np.uint8).fill(0xFF) if host.ndim and host.size else host.fill(0)
        copies.write_back.append(lambda: np.copyto(array, host))
    return host


class _Copies:
    """The memory of a GPU that a launch uses, copied to the host; arrays that overlap share it."""

    def __init__(self, arguments: Iterable[Any]) -> None:
        self.write_back: list[Callable[[], None]] = []
        self.storages: dict[int, Any] = {}  # of torch, by their addresses
        self.pieces: list[tuple[int, int, np.ndarray]] = []
        values = (getattr(x, "value", x) for x in arguments)
        spans = [_span(x.__cuda_array_interface__) for x in values if _on_gpu(x)]
        joined: list[list[int]] = []
        for low, high in sorted(spans):
            if joined and low < joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], high)
            else:
                joined.append([low, high])
        for low, high in joined:
            self._fetch(low, high)

    def _fetch(self, low: int, high: int) -> None:
        from numba import cuda

        cuda.synchronize()
        memory = {"shape": (high - low,), "typestr": "|u1", "data": (low, False), "version": 3}
        raw = cuda.from_cuda_array_interface(memory)
        host = raw.copy_to_host() if high > low else np.zeros(0, np.uint8)
        self.pieces.append((low, high, host))
        if high > low:
            self.write_back.append(lambda: raw.copy_to_device(host))

    def view(self, array: Any) -> np.ndarray:
        """Return the host's copy of an array on a GPU, with the same shape and strides."""
        interface = array.__cuda_array_interface__
        low, high = _span(interface)
        start, host = next(
            (start, host) for start, end, host in self.pieces if start <= low and high <= end
        )
        return np.ndarray(
            interface["shape"],
            np.dtype(interface["typestr"]),
            host,
            interface["data"][0] - start,
            interface.get("strides"),
        )


def _on_gpu(value: Any) -> bool:
    """Return whether this is an array on a GPU, of any library but torch.

    The host can use mapped and managed memory directly.
    """
    if isinstance(value, np.ndarray) or hasattr(value, "untyped_storage"):
        return False
    return hasattr(value, "__cuda_array_interface__")


def _span(interface: dict) -> tuple[int, int]:
    """Return the first address of an array and the address after its last byte."""
    shape, dtype = interface["shape"], np.dtype(interface["typestr"])
    address = interface["data"][0] or 0
    if 0 in shape:
        return address, address
    strides = interface.get("strides") or row_major(shape, dtype.itemsize)
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = address + sum(min(0, step) for step in steps)
    return low, address + sum(max(0, step) for step in steps) + dtype.itemsize


def _tensor(name: str, tensor: Any, copies: _Copies) -> _Operand:
    import torch

    if tensor.layout != torch.strided:
        raise TypeError(f"argument {name} must be a dense tensor, got {tensor.layout}")
    if tensor.requires_grad:
        raise TypeError(f"argument {name} requires grad, and kernels have no gradient")
    if tensor.dtype not in (torch.bool, *_torch_dtypes(torch)):
        raise TypeError(f"argument {name} has dtype {tensor.dtype}, which kernels here cannot take")
    storage, view = tensor.untyped_storage(), tensor
    if tensor.device.type != "cpu":
        # Tensors that share memory on the device share one copy here.
        key = storage.data_ptr()
        if key not in copies.storages:
            copies.storages[key] = host = storage.cpu()
            copies.write_back.append(lambda: tensor.untyped_storage().copy_(host))
        storage = copies.storages[key]
        view = torch.empty(0, dtype=tensor.dtype).set_(
            storage, tensor.storage_offset(), tensor.shape, tensor.stride()
        )
    low = storage.data_ptr()
    return _Operand(name, view.numpy(), low, low + storage.nbytes(), view.data_ptr())


def _torch_dtypes(torch: Any) -> list:
    return [getattr(torch, str(d)) for d in values.DTYPES if d.kind != "b"]


def _extent(host: np.ndarray) -> tuple[int, int, int]:
    address = host.__array_interface__["data"][0]
    low, high = np.lib.array_utils.byte_bounds(host) if host.size else (address, address)
    return low, high, address


def _addresses(operands: Iterable[_Operand]) -> list[tuple[int, int]]:
    """Return (address, start of the allocation) for each operand.

    Operands that share memory in the machine share addresses here.
    """
    operands = list(operands)
    order = sorted(range(len(operands)), key=lambda i: operands[i].low)
    starts = [(0, 0)] * len(operands)
    base, low, high = GLOBAL_START, 0, -1
    for i in order:
        operand = operands[i]
        if operand.low >= high:
            base += -(-max(0, high - low) // ALIGNMENT) * ALIGNMENT
            low, high = operand.low, operand.high
        high = max(high, operand.high)
        starts[i] = base + operand.address - low, base
    return starts


def _array(memory: Memory, operand: _Operand, start: int, allocation: int) -> Array:
    host, name = operand.host, operand.name
    dtype = checked_dtype(f"argument {name}", host.dtype)
    size = dtype.itemsize
    if any(stride % size for stride in host.strides):
        raise TypeError(f"argument {name} has strides {host.strides} that cut its elements")
    if start % size:
        raise TypeError(f"argument {name} begins at an address that no {dtype} may have")
    steps = tuple(stride // size for stride in host.strides)
    backwards = (..., *(slice(None, None, -1) if s < 0 else slice(None) for s in steps))
    offset = sum((n - 1) * -step for n, step in zip(host.shape, steps, strict=True) if step < 0)
    length = 1 + sum((n - 1) * abs(step) for n, step in zip(host.shape, steps, strict=True))
    flat = np.lib.stride_tricks.as_strided(
        host[backwards],
        (length if host.size else 0,),
        (size,),
        writeable=host.flags.writeable,
    )
    first = start - offset * size
    info = memory.info(name, "global", host.shape, dtype, first, host.strides, allocation)
    return Array(memory, info, flat, dtype, host.shape, steps, offset)
