"""Cubins: products in machine code for Hopper, kept with how to launch them.

Beside `NAME.cubin` lies `NAME.json`: what the product was made from (the keys of `products.KEYS`),
and how its kernel takes C (M, N) = A (M, K) · B (K, N), all row-major and dense:

- "entry" is the kernel's name, "block" its threads, "shared" the bytes of dynamic shared memory.
- "grid" has three axes. An axis is a number, or [size, edge], which is size / edge rounded up, or a
  list of such pairs, whose product it is.
- "arguments" are the kernel's parameters in order:
  {"address": "A"}; {"int32": [values]} and {"int64": [values]}; {"bytes": n}, n zero bytes;
  {"map": "A", "box": [columns, rows], "swizzle": bytes, "l2": bytes}, a tensor map with zeros
  outside; {"struct": [such entries, and {"pad": n}]}, aligned as in C.
- a value is a number, a size, such as "M", a list, which is the product of its values, or
  {"ceil": [value, edge]}.

It also says what cuobjdump found: "registers", "stack" in bytes, and "instructions" by name.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul.files import read_json
from tiled_matmul.kit import plans, withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.layouts import ALIGNED
from tiled_matmul.kit.machine_code import Code, Launch, _enter, answer
from tiled_matmul.kit.products import KEYS, ProductError, check_head
from tiled_matmul.microscope.cuda.kernel import watched

CAPABILITY = 9, 0  # machine code for Hopper runs on nothing else
LAYOUT = ("entry", "grid", "block", "shared", "arguments")
MAP_BYTES, MAP_ALIGNED = 128, 64
MAX_ELEMENTS = 2**31
FILLED = 64  # sets of addresses whose arguments a launch remembers


@dataclass(frozen=True)
class Cubin:
    """A kernel in machine code, and what the JSON beside it says."""

    path: Path
    head: Mapping[str, str]
    layout: Mapping[str, Any]
    code: bytes

    @property
    def name(self) -> str:
        """The name of the file, without its ending."""
        return self.path.stem


def read(path: Path, source: Path, compiler: str) -> Cubin:
    """Return the product in a file, made from `source` by `compiler`, such as "warp 1.19.0".

    Raises ProductError if it or the JSON is missing, if that lacks a key, or if the product was
    made from another text or by another compiler.
    """
    path = Path(path)
    told = path.with_suffix(".json")
    for each in (path, told):
        if not each.is_file():
            raise ProductError(f"there is no product {each.name}; `make languages` makes it")
    try:
        values = read_json(told)
    except ValueError as error:
        raise ProductError(str(error)) from error
    if not isinstance(values, dict):
        raise ProductError(f"{told.name} holds no keys")
    check_head(told.name, values, source, compiler)
    if missing := [key for key in LAYOUT if key not in values]:
        raise ProductError(f"{told.name} does not say its {', '.join(missing)}")
    if values.get("cluster", [1, 1, 1]) != [1, 1, 1]:
        raise ProductError(f"{told.name} wants a cluster {values['cluster']}; nothing launches one")
    return Cubin(path, {key: values[key] for key in KEYS}, values, path.read_bytes())


def chosen(products: Mapping[str, Mapping[str, Any]], **wanted: Any) -> str:
    """Return the first of the files that was compiled with these constants; None is without one.

    Raises ValueError that lists what there is.
    """
    for name, known in products.items():
        if all(known.get(constant) == value for constant, value in wanted.items()):
            return name
    asked = ", ".join(f"{x}={y}" for x, y in wanted.items() if y is not None)
    listed = "; ".join(", ".join(f"{x}={y}" for x, y in each.items()) for each in products.values())
    raise ValueError(f"nothing is compiled with {asked}; there is {listed}")


def need_multiples(of: int, **sizes: int) -> None:
    """Raise ValueError unless each of these sizes is a multiple of `of`."""
    if wrong := [f"{name}={size}" for name, size in sizes.items() if size % of]:
        raise ValueError(
            f"{' and '.join(sizes)} must be multiples of {of}, got {' and '.join(wrong)}"
        )


def need_aligned(**tensors: Any) -> None:
    """Raise ValueError unless each of these tensors begins at a multiple of 16 bytes."""
    for name, tensor in tensors.items():
        if tensor.data_ptr() % ALIGNED:
            raise ValueError(
                f"{name} must begin at a multiple of {ALIGNED} bytes, got the address "
                f"{tensor.data_ptr():#x}"
            )


def grid_of(product: Cubin, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the grid for sizes by name: M, N and K."""
    return tuple(_axis(axis, sizes) for axis in product.layout["grid"])


def _axis(axis: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(axis, int):
        return axis
    pairs = [axis] if isinstance(axis[0], str) else axis
    return math.prod(-(-sizes[size] // edge) for size, edge in pairs)


def packed(
    product: Cubin,
    addresses: Mapping[str, int],
    sizes: Mapping[str, int],
    encode: Callable[[Mapping], bytes] = lambda _: bytes(MAP_BYTES),
) -> list[bytes]:
    """Return the bytes of each of the kernel's parameters.

    `addresses` are those of A, B and C, `sizes` are M, N and K, by name. `encode` returns the 128
    bytes of the tensor map that an entry describes; without it they are 0. Raises ValueError for
    what no parameter can be, or what does not fit in it.
    """
    return [_field(entry, addresses, sizes, encode)[0] for entry in product.layout["arguments"]]


def _field(entry: Mapping, addresses: Mapping, sizes: Mapping, encode: Callable) -> tuple:
    """Return (bytes, alignment) of a parameter, or of a field of a struct."""
    match entry:
        case {"address": name}:
            return struct.pack("<Q", addresses[name]), 8
        case {"int32": values}:
            return _numbers("i", values, sizes), 4
        case {"int64": values}:
            return _numbers("q", values, sizes), 8
        case {"bytes": count} | {"pad": count}:
            return bytes(count), 1
        case {"map": _}:
            return encode(entry), MAP_ALIGNED
        case {"struct": fields}:
            made, widest = b"", 1
            for field in fields:
                part, aligned = _field(field, addresses, sizes, encode)
                made += bytes(-len(made) % aligned) + part
                widest = max(widest, aligned)
            return made + bytes(-len(made) % widest), widest
    raise ValueError(f"no parameter of a kernel is {entry!r}")


def _numbers(kind: str, values: Sequence, sizes: Mapping[str, int]) -> bytes:
    numbers = [_value(each, sizes) for each in values]
    try:
        return struct.pack(f"<{len(numbers)}{kind}", *numbers)
    except struct.error as error:
        raise ValueError(f"{numbers} do not fit in the kernel's integers: {error}") from error


def _value(value: Any, sizes: Mapping[str, int]) -> int:
    match value:
        case int():
            return value
        case str():
            return sizes[value]
        case list():
            return math.prod(_value(each, sizes) for each in value)
        case {"ceil": [of, edge]}:
            return -(-_value(of, sizes) // edge)
    raise ValueError(f"no number is {value!r}")


def launch(product: Cubin, a: Any, b: Any, c: Any) -> None:
    """Launch a product on torch's current stream: c (M, N) becomes a (M, K) · b (K, N).

    torch tensors, row-major and dense; the product decides what their dtype and sizes may be, and
    the rung checks it. Raises ValueError where there is no Hopper GPU, inside a trace, and for
    matrices of 2³¹ elements or more.
    """
    (m, k), n = a.shape, b.shape[1]
    sizes = {"M": m, "N": n, "K": k}
    grid, block = grid_of(product, sizes), tuple(product.layout["block"])
    if withheld.withhold(product, grid, block, (a, b, c), {}):
        return
    _need_hopper(product)
    if max(m * n, m * k, k * n) >= MAX_ELEMENTS:
        raise ValueError(f"{product.name} counts in 32 bits: {m}×{n}×{k} is too large for it")
    import torch

    code = _code(product.path, product.code, product.layout["entry"], torch.cuda.current_device())
    made = CubinLaunch(code, product, grid, sizes, a.dtype)
    tensors = [a, b, c]
    made.begin([x.data_ptr() for x in tensors], torch.cuda.current_stream().cuda_stream)
    plans.note(lambda plan: made.noted(plan, tensors))


def _need_hopper(product: Cubin) -> None:
    here = select()
    if not here.on_gpu or watched():
        raise ValueError(f"{product.name} is machine code for Hopper; nothing here runs it")
    if here.gpu.capability != CAPABILITY:
        there, wanted = (".".join(map(str, x)) for x in (here.gpu.capability, CAPABILITY))
        raise ValueError(
            f"{product.name} is machine code for compute capability {wanted}; {here.gpu.name} has "
            f"{there}"
        )


class CubinCode(Code):
    """A product on a GPU, which is the current one.

    It is loaded as a library: machine code may hold a routine of the host that the driver calls
    before a launch, and the compilers that put one there load their code so.
    """

    def __init__(self, code: bytes, entry: str, gpu: int) -> None:
        from cuda.bindings import driver

        self.gpu, self.code = gpu, code
        self.module = answer(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
        kernel = answer(driver.cuLibraryGetKernel(self.module, entry.encode()))
        self.function = answer(driver.cuKernelGetFunction(kernel))

    def allow_shared(self, wanted_bytes: int) -> None:
        """Let the kernel have this much dynamic shared memory."""
        from cuda.bindings import driver

        which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        answer(driver.cuFuncSetAttribute(self.function, which, wanted_bytes))


class CubinLaunch(Launch):
    """A launch of a product of which everything is known but the addresses of A, B and C."""

    def __init__(
        self, code: CubinCode, product: Cubin, grid: tuple, sizes: Mapping[str, int], dtype: Any
    ) -> None:
        super().__init__(code, grid, tuple(product.layout["block"]), ())
        self.shared = product.layout["shared"]
        if self.shared:
            code.allow_shared(self.shared)
        self.product, self.extents, self.dtype = product, sizes, str(dtype)
        self.filled = functools.lru_cache(FILLED)(self._filled)

    def begin(self, addresses: Sequence[int], stream: int) -> None:
        """Launch with these addresses, on a stream of the current GPU."""
        from cuda.bindings import driver

        _enter(self.gpu)
        parameters, _ = self.filled(*addresses)
        rest = self.shared, stream, ctypes.addressof(parameters), 0
        answer(driver.cuLaunchKernel(self.function, *self.sizes, *rest))

    def _filled(self, *addresses: int) -> tuple[ctypes.Array, ctypes.Array]:
        """Return an array of the parameters' places, and the memory that holds them."""
        named = dict(zip("ABC", addresses, strict=True))

        def encode(entry: Mapping) -> bytes:
            return tensor_map(entry, named[entry["map"]], self.extents, self.dtype)

        each = packed(self.product, named, self.extents, encode)
        offsets, size = [], 0
        for part in each:
            offsets.append(size)
            size += len(part) + -len(part) % MAP_ALIGNED
        memory, start = _aligned(size)
        for part, offset in zip(each, offsets, strict=True):
            ctypes.memmove(start + offset, part, len(part))
        places = (ctypes.c_void_p * len(each))(*(start + offset for offset in offsets))
        return places, memory


SHAPES = {"A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N")}
# The driver's numbers: CU_TENSOR_MAP_DATA_TYPE_…, _SWIZZLE_… and _L2_PROMOTION_… of so many bytes.
DATA_TYPES = {"torch.float16": (6, 2), "torch.float32": (7, 4), "torch.bfloat16": (9, 2)}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}


def tensor_map(entry: Mapping, address: int, sizes: Mapping[str, int], dtype: str) -> bytes:
    """Return the driver's description of a matrix, 128 bytes, for copies of boxes of it.

    `entry` is one of a product's arguments, `dtype` is such as "torch.float16". Raises RuntimeError
    if the driver refuses it: a row, and the address, must be multiples of 16 bytes.
    """
    kind, step = DATA_TYPES[dtype]
    rows, columns = (sizes[each] for each in SHAPES[entry["map"]])
    # Called without cuda.bindings, whose tensor maps do not begin at the multiple of 64 bytes that
    # the driver wants.
    memory, start = _aligned(MAP_BYTES)
    error = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(start),
        kind,
        2,
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * 2)(columns, rows),
        (ctypes.c_uint64 * 1)(columns * step),
        (ctypes.c_uint32 * 2)(*entry["box"]),
        (ctypes.c_uint32 * 2)(1, 1),
        0,  # not interleaved
        SWIZZLES[entry.get("swizzle", 0)],
        PROMOTIONS[entry.get("l2", 0)],
        0,  # zeros outside
    )
    if error:
        raise RuntimeError(f"the driver refused a tensor map of {entry}: error {error}")
    return memory.raw[start - ctypes.addressof(memory) :][:MAP_BYTES]


def _aligned(size: int) -> tuple[ctypes.Array, int]:
    """Return memory, and the address in it where `size` bytes begin at a multiple of 64."""
    memory = ctypes.create_string_buffer(size + MAP_ALIGNED)
    start = ctypes.addressof(memory)
    return memory, start + -start % MAP_ALIGNED


@functools.cache
def _code(path: Path, code: bytes, entry: str, gpu: int) -> CubinCode:
    """Return a product's code on a GPU, which is the current one."""
    _enter(gpu)
    return CubinCode(code, entry, gpu)
