"""Arrays inside a kernel: bounds are checked, and every access is recorded.

Addresses are as on a GPU: each allocation begins on a multiple of 512 bytes, a view lies at its
place in its allocation, and static shared arrays follow each other. The record of an access is two
integers. The key identifies the instruction and the iterations of the loops around it; the slot
holds array, byte address and width.
"""

from __future__ import annotations

import itertools
import math
import operator
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import values
from tiled_matmul.microscope.cuda.errors import KernelError, OutOfBounds, TypingError, Unsupported
from tiled_matmul.microscope.cuda.hardware import SHARED_BYTES, STATIC_SHARED_BYTES

GLOBAL_START = 1 << 30  # addresses below it are a block's shared memory
WIDTH_BITS = 3
ARRAY_SHIFT = 50
ADDRESS_MASK = (1 << ARRAY_SHIFT - WIDTH_BITS) - 1
MAX_ARRAYS = 1 << 63 - ARRAY_SHIFT


@dataclass(frozen=True)
class ArrayInfo:
    """An array that a kernel uses. `start` is its lowest address, `strides` are in bytes.

    `allocation` is the address of the allocation around it; 0 for shared memory.
    """

    id: int
    name: str
    space: str
    shape: tuple[int, ...]
    dtype: np.dtype
    start: int = field(repr=False)
    strides: tuple[int, ...] = field(repr=False)
    allocation: int = field(repr=False, default=0)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Log:
    """The record of a kernel's run."""

    def __init__(self) -> None:
        self.keys = array("q")
        self.slots = array("q")
        # One entry for each run of a thread, up to its next barrier or its end.
        self.starts = array("q")
        self.blocks = array("q")
        self.threads = array("h")
        self.phases = array("l")
        self.clocks = array("l")
        self.vectors: list[tuple[int, ...]] = []  # vector clocks of lanes after a syncwarp
        # For each block and thread, the values that it received from other lanes.
        self.received: dict[tuple[int, int], int] = {}
        # For each site and array, the first bad index and the number of bad indices.
        self.misses: dict[tuple, tuple[Miss, int]] = {}


@dataclass(frozen=True)
class Miss:
    """An index outside an array, or a negative one that counted from the end."""

    kind: str
    site: int
    array: ArrayInfo
    shape: tuple[int, ...]
    index: tuple[int, ...]
    block: int
    thread: int


class Memory:
    """All arrays of one launch. Without a `log`, nothing is recorded."""

    def __init__(self, log: Log | None, sites: int) -> None:
        self.log = log
        self.sites = sites
        self.arrays: list[ArrayInfo] = []
        self.describe: Callable[[int], str] = str
        self.where: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.elements: Callable[[int], Iterable[int]] = itertools.repeat  # the keys of a slice's
        self._shared: dict[tuple, ArrayInfo] = {}
        self._shared_end = 0

    def info(self, name, space, shape, dtype, start, strides, allocation=0) -> ArrayInfo:
        """Register an array and return its ArrayInfo."""
        if len(self.arrays) >= MAX_ARRAYS:
            raise KernelError(f"a kernel may use {MAX_ARRAYS} arrays")
        made = ArrayInfo(len(self.arrays), name, space, shape, dtype, start, strides, allocation)
        self.arrays.append(made)
        return made

    def shared(self, where: tuple, name: str, shape: Any, dtype: Any, alignment: Any) -> ArrayInfo:
        """Return the static shared array that is declared at this place in the source."""
        if where not in self._shared:
            shape, dtype = checked_shape(name, shape), checked_dtype(name, dtype)
            align = dtype.itemsize if alignment is None else int(alignment)
            if align < 1 or align & align - 1:
                raise TypingError(f"alignment of {name} must be a power of 2, got {alignment!r}")
            start = -(-self._shared_end // align) * align
            end = start + math.prod(shape) * dtype.itemsize
            if end > STATIC_SHARED_BYTES:
                raise KernelError(
                    f"{name}{list(shape)} of {dtype} brings the block's static shared memory to "
                    f"{end} bytes; a GPU allows {STATIC_SHARED_BYTES}, and up to {SHARED_BYTES} as "
                    "dynamic shared memory"
                )
            self._shared_end = end
            strides = row_major(shape, dtype.itemsize)
            self._shared[where] = self.info(name, "shared", shape, dtype, start, strides)
        return self._shared[where]

    def dynamic(self, where: tuple, name: str, dtype: Any, nbytes: int) -> ArrayInfo:
        """Return the array over dynamic shared memory that is declared at this place."""
        if where not in self._shared:
            dtype = checked_dtype(name, dtype)
            shape = (nbytes // dtype.itemsize,)
            start = SHARED_BYTES  # static arrays lie below
            strides = (dtype.itemsize,)
            self._shared[where] = self.info(name, "shared", shape, dtype, start, strides)
        return self._shared[where]


def row_major(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Return the strides of a row-major array whose last axis has the stride `step`."""
    strides = []
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of positive ints. Raises TypingError."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    if not shape or not all(isinstance(n, (int, np.integer)) and n >= 1 for n in shape):
        raise TypingError(f"the shape of {name} must be positive integers, got {shape!r}")
    return tuple(int(n) for n in shape)


def checked_dtype(name: str, dtype: Any) -> np.dtype:
    """Return a Numba or numpy type as a dtype that kernels can compute with. Raises TypingError."""
    try:
        checked = np.dtype(dtype if isinstance(dtype, (np.dtype, type)) else str(dtype))
    except TypeError:
        raise TypingError(f"{name} has no dtype of numbers: {dtype!r}") from None
    if checked not in values.DTYPES:
        known = ", ".join(str(d) for d in values.DTYPES)
        raise TypingError(f"{name} has dtype {checked}; kernels here take {known}")
    return checked


def local_info(name: str, shape: tuple[int, ...], dtype: np.dtype) -> ArrayInfo:
    """Return the ArrayInfo of a local array, whose accesses are not recorded."""
    return ArrayInfo(-1, name, "local", shape, dtype, 0, row_major(shape, dtype.itemsize))


class Array:
    """An array inside a kernel. Elements are read by l1, l2, l3 and written by s1, s2, s3.

    For speed these are closures, which are created on first use.
    """

    __array_ufunc__ = None  # so that numpy's scalars do not treat it as a number

    def __init__(self, memory: Memory, info: ArrayInfo, data, dtype, shape, strides, offset):
        self.memory = memory
        self.info = info
        self.data = data
        self.dtype = dtype
        self.shape = shape
        self.steps = strides  # in elements
        self.offset = offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(step * self.itemsize for step in self.steps)

    @property
    def T(self) -> Array:  # noqa: N802
        return self._view(self.shape[::-1], self.steps[::-1], self.offset)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        raise Unsupported(
            "an array as several values: write its elements, x[0], x[1], or loop over it"
        )

    def __bool__(self) -> bool:
        raise TypingError("an array is neither true nor false")

    def __getattr__(self, name: str) -> Any:
        if len(name) == 2 and name[0] in "ls" and name[1] in "0123":
            made = self._loader(int(name[1])) if name[0] == "l" else self._storer(int(name[1]))
            setattr(self, name, made)
            return made
        if name.startswith("__"):  # a protocol that Python tries
            raise AttributeError(name)
        raise Unsupported(f"attribute .{name} of an array")

    def __repr__(self) -> str:
        return f"an array of shape {list(self.shape)} of {self.dtype}"

    def forget(self) -> None:
        """Let each element of a local array be as it is before the first store."""
        self.data[:] = shared_data(self.dtype, len(self.data))

    def _view(self, shape: tuple, steps: tuple, offset: int) -> Array:
        return Array(self.memory, self.info, self.data, self.dtype, shape, steps, offset)

    @cached_property
    def _record(self) -> tuple[Callable, Callable, int, int] | None:
        """Return (append a key, append a slot, slot of element 0, shift of an element)."""
        log = self.memory.log
        if log is None or self.info.space == "local":
            return None
        width = self.itemsize.bit_length() - 1
        first = self.info.id << ARRAY_SHIFT | self.info.start << WIDTH_BITS | width
        return log.keys.append, log.slots.append, first, WIDTH_BITS + width

    def _loader(self, axes: int) -> Callable:
        if axes != len(self.shape):
            return lambda *index_and_key: self.get(index_and_key[:-1], index_and_key[-1])
        get, data, offset = self.get, self.data, self.offset
        plain = isinstance(data, list) or self.dtype.kind == "f" or self.dtype == values.INT64
        convert = None if plain else values.carrier(self.dtype)
        add_key, add_slot, first, shift = self._record or (None, None, 0, 0)
        if axes == 2:
            (n0, n1), (s0, s1) = self.shape, self.steps

            def load2(i, j, key):
                if 0 <= i < n0 and 0 <= j < n1:
                    element = offset + i * s0 + j * s1
                    if add_key is not None:
                        add_key(key)
                        add_slot(first + (element << shift))
                    return data[element] if convert is None else convert(data[element])
                return get((i, j), key)

            return load2
        if axes == 1:
            (n0,), (s0,) = self.shape, self.steps

            def load1(i, key):
                if 0 <= i < n0:
                    element = offset + i * s0
                    if add_key is not None:
                        add_key(key)
                        add_slot(first + (element << shift))
                    return data[element] if convert is None else convert(data[element])
                return get((i,), key)

            return load1
        if axes == 3:
            (n0, n1, n2), (s0, s1, s2) = self.shape, self.steps

            def load3(i, j, k, key):
                if 0 <= i < n0 and 0 <= j < n1 and 0 <= k < n2:
                    element = offset + i * s0 + j * s1 + k * s2
                    if add_key is not None:
                        add_key(key)
                        add_slot(first + (element << shift))
                    return data[element] if convert is None else convert(data[element])
                return get((i, j, k), key)

            return load3
        return lambda *index_and_key: get(index_and_key[:-1], index_and_key[-1])

    def _storer(self, axes: int) -> Callable:
        put, data, offset, kind = self.put, self.data, self.offset, self.dtype.type
        if axes != len(self.shape) or axes not in (1, 2, 3):
            return lambda value, *index_and_key: put(value, index_and_key[:-1], index_and_key[-1])
        cast = values.caster(self.dtype)
        add_key, add_slot, first, shift = self._record or (None, None, 0, 0)
        if axes == 2:
            (n0, n1), (s0, s1) = self.shape, self.steps

            def store2(value, i, j, key):
                if 0 <= i < n0 and 0 <= j < n1:
                    element = offset + i * s0 + j * s1
                    data[element] = value if type(value) is kind else cast(value)
                    if add_key is not None:
                        add_key(key)
                        add_slot(first + (element << shift))
                else:
                    put(value, (i, j), key)

            return store2
        if axes == 3:
            (n0, n1, n2), (s0, s1, s2) = self.shape, self.steps

            def store3(value, i, j, k, key):
                if 0 <= i < n0 and 0 <= j < n1 and 0 <= k < n2:
                    element = offset + i * s0 + j * s1 + k * s2
                    data[element] = value if type(value) is kind else cast(value)
                    if add_key is not None:
                        add_key(key)
                        add_slot(first + (element << shift))
                else:
                    put(value, (i, j, k), key)

            return store3
        (n0,), (s0,) = self.shape, self.steps

        def store1(value, i, key):
            if 0 <= i < n0:
                element = offset + i * s0
                data[element] = value if type(value) is kind else cast(value)
                if add_key is not None:
                    add_key(key)
                    add_slot(first + (element << shift))
            else:
                put(value, (i,), key)

        return store1

    def get(self, index: tuple, key: int) -> Any:
        """Return an element, or a view if `index` has slices or fewer numbers than axes."""
        index = self._flat(index)
        if len(index) != self.ndim or any(type(i) is slice for i in index):
            return self._slice(index, key)
        element = self._element(index, key)
        if element is None:
            return values.caster(self.dtype)(0)
        self._note(element, key)
        stored = self.data[element]
        return stored if isinstance(self.data, list) else values.carrier(self.dtype)(stored)

    def put(self, value: Any, index: tuple, key: int) -> None:
        """Store to an element, or to a slice one value or a tuple's."""
        index = self._flat(index)
        if len(index) != self.ndim or any(type(i) is slice for i in index):
            self._slice(index, key).fill(value, key)
            return
        element = self._element(index, key)
        if element is not None:
            self.data[element] = values.caster(self.dtype)(value)
            self._note(element, key)

    def fill(self, value: Any, key: int) -> None:
        """Store a value to each element, or a tuple's values to those of a row, one by one."""
        if isinstance(value, Array):
            raise Unsupported("storing an array to a slice: store each element in a loop")
        if not isinstance(value, tuple):
            kept = itertools.repeat(value)
        elif self.ndim != 1 or len(value) != self.size:
            shape = list(self.shape)
            raise TypingError(f"a slice of shape {shape} takes a number, got {len(value)} values")
        else:
            kept = iter(values.alike(value))
        cast = values.caster(self.dtype)
        keys = itertools.repeat(key) if self._record is None else self.memory.elements(key)
        for place, one, each in zip(np.ndindex(self.shape), kept, keys, strict=False):
            element = self.offset + sum(map(operator.mul, place, self.steps))
            self.data[element] = cast(one)
            self._note(element, each)

    def atomic(self, name: str, index: tuple, operands: tuple, key: int) -> Any:
        """Do an atomic operation on an element and return its old value."""
        index = self._flat(index)
        if len(index) != self.ndim:
            raise TypingError(f"an atomic needs {self.ndim} indices, got {len(index)}")
        kinds, known = ("u", "uint32 and uint64") if name in ("inc", "dec") else ("iu", "integers")
        kinds, known = (kinds, known) if name in INTEGER_ATOMICS else ("iuf", "numbers")
        if self.itemsize < 4 or self.dtype.kind not in kinds:
            raise TypingError(
                f"cuda.atomic.{name} takes {known} of 4 or 8 bytes, the array holds {self.dtype}"
            )
        cast = values.caster(self.dtype)
        element = self._element(index, key)
        if element is None:
            return cast(0)
        self._note(element, key)
        old = self.data[element]
        old = old if isinstance(self.data, list) else values.carrier(self.dtype)(old)
        self.data[element] = cast(ATOMICS[name](old, *(cast(value) for value in operands)))
        return old

    def span(self, index: tuple, count: int, key: int, kept: Iterable | None = None) -> tuple:
        """Read `count` consecutive elements in one access, or write those of `kept`."""
        element = self.claim(index, count, key)
        if element is None:
            return (self.zero(),) * count
        if kept is not None:
            cast = values.caster(self.dtype)
            self.data[element : element + count] = [cast(value) for value in kept]
            return ()
        stored = self.data[element : element + count]
        if isinstance(self.data, list):
            return tuple(stored)
        return tuple(map(values.carrier(self.dtype), stored))

    def claim(self, index: tuple, count: int, key: int) -> int | None:
        """Record an access to `count` consecutive elements; return the first's index in `data`.

        None means that they are out of bounds.
        """
        element = self._inside(index, count)
        if element is None:
            index = self._flat(index)
            element = self._element(index, key)
            last = self._element((*index[:-1], index[-1] + count - 1), key)
            if element is None or last is None:
                return None
        self._check_address(element, count * self.itemsize)
        self.note(element, count, key)
        return element

    def _inside(self, index: tuple, count: int) -> int | None:
        """Return the index in `data` if `index` is plain ints within the bounds, else None."""
        if len(index) != len(self.shape):
            return None
        element = self.offset
        for i, extent, step in zip(index, self.shape, self.steps, strict=True):
            if type(i) is not int or not 0 <= i < extent:
                return None
            element += i * step
        return element if i + count <= extent else None

    def check_alignment(self, index: tuple, width: int) -> None:
        """Raise KernelError unless one access of `width` bytes is possible from `index` on."""
        if len(index) != self.ndim:
            raise TypingError(f"{len(index)} indices for an array with {self.ndim} axes")
        self._check_address(self.offset + sum(map(operator.mul, index, self.steps)), width)

    def _check_address(self, element: int, width: int) -> None:
        if self.steps[-1] != 1 and width > self.itemsize:
            raise KernelError(f"neighbours in {self!r} do not lie side by side")
        if (self.info.start + element * self.itemsize) % width:
            raise KernelError(f"an access of {width} bytes at an address that is no multiple of it")

    def zero(self) -> Any:
        """Return a zero of this array's type."""
        return values.caster(self.dtype)(0)

    def note(self, element: int, count: int, key: int) -> None:
        """Record an access to `count` consecutive elements: 1, 2 or 4."""
        recording = self._record
        if recording is not None:
            add_key, add_slot, first, shift = recording
            add_key(key)
            add_slot(first + (element << shift) + count.bit_length() - 1)

    def _note(self, element: int, key: int) -> None:
        recording = self._record
        if recording is not None:
            add_key, add_slot, first, shift = recording
            add_key(key)
            add_slot(first + (element << shift))

    def _flat(self, index: tuple) -> tuple:
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if Ellipsis in index:
            at = index.index(Ellipsis)
            missing = self.ndim - len(index) + 1
            index = (*index[:at], *(slice(None),) * missing, *index[at + 1 :])
        if len(index) > self.ndim:
            raise TypingError(f"{len(index)} indices for an array with {self.ndim} axes")
        return tuple(i if type(i) is slice else values.index(i) for i in index)

    def _slice(self, index: tuple, key: int) -> Array:
        shape, steps, offset, missed = [], [], self.offset, False
        index = (*index, *(slice(None),) * (self.ndim - len(index)))
        for i, extent, step in zip(index, self.shape, self.steps, strict=True):
            if type(i) is not slice:
                missed |= not -extent <= i < extent
                offset += i % extent * step
                continue
            ends = (None if end is None else values.index(end) for end in (i.start, i.stop, i.step))
            start, stop, stride = slice(*ends).indices(extent)
            offset += start * step
            shape.append(max(0, len(range(start, stop, stride))))
            steps.append(stride * step)
        if missed:
            # The slice lies outside the array, so the trace goes on with zeros.
            self._miss("out of bounds", index, key)
            nothing = [values.caster(self.dtype)(0)] * math.prod(shape)
            steps = row_major(tuple(shape), 1)
            scratch = local_info(self.info.name, tuple(shape), self.dtype)
            return Array(self.memory, scratch, nothing, self.dtype, tuple(shape), steps, 0)
        if self.memory.log is not None and any(type(i) is not slice and i < 0 for i in index):
            self._miss("negative index", index, key)
        return self._view(tuple(shape), tuple(steps), offset)

    def _element(self, index: tuple, key: int) -> int | None:
        """Return the element's index in `data`, or None if it is out of bounds in a trace."""
        element, wrapped = self.offset, False
        for i, extent, step in zip(index, self.shape, self.steps, strict=True):
            if not -extent <= i < extent:
                self._miss("out of bounds", index, key)
                return None
            if i < 0:
                wrapped, i = True, i + extent
            element += i * step
        if wrapped and self.memory.log is not None:
            self._miss("negative index", index, key)
        return element

    def _miss(self, kind: str, index: tuple, key: int) -> None:
        memory = self.memory
        site = key % memory.sites
        block, thread = memory.where()
        if memory.log is None:
            axis = next(
                a
                for a, (i, n) in enumerate(zip(index, self.shape, strict=False))
                if type(i) is not slice and not -n <= i < n
            )
            raise OutOfBounds(
                f"{memory.describe(site)}: index {[i for i in index if type(i) is not slice]} is "
                f"outside of shape {list(self.shape)} on axis {axis}"
            )
        numbers = tuple(i for i in index if type(i) is not slice)
        miss = Miss(kind, site, self.info, self.shape, numbers, block, thread)
        place = kind, site, self.info.id
        first, count = memory.log.misses.get(place, (miss, 0))
        if (block, thread) < (first.block, first.thread):
            first = miss
        memory.log.misses[place] = first, count + 1


def _no_arithmetic(array: Array, other: Any) -> None:
    raise TypingError(f"not a number: {array!r}; arithmetic takes elements")


for _sign in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    setattr(Array, f"__{_sign}__", _no_arithmetic)
    setattr(Array, f"__r{_sign}__", _no_arithmetic)


INTEGER_ATOMICS = ("and_", "or_", "xor", "inc", "dec", "exch", "cas")
ATOMICS: dict[str, Callable] = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "and_": lambda old, value: values.bitwise(operator.and_, old, value),
    "or_": lambda old, value: values.bitwise(operator.or_, old, value),
    "xor": lambda old, value: values.bitwise(operator.xor, old, value),
    "inc": lambda old, value: 0 if old >= value else old + 1,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
    "exch": lambda old, value: value,
    "max": lambda old, value: value if value > old or math.isnan(old) else old,
    "min": lambda old, value: value if value < old or math.isnan(old) else old,
    "nanmax": lambda old, value: value if value > old or math.isnan(old) else old,
    "nanmin": lambda old, value: value if value < old or math.isnan(old) else old,
    "cas": lambda old, expected, value: value if old == expected else old,
}


def shared_data(dtype: np.dtype, size: int) -> list:
    """Return new shared memory, filled with NaN or, for integers, with a conspicuous pattern."""
    return [values.caster(dtype)(math.nan if dtype.kind == "f" else 0x7A7A7A7A7A7A7A7A)] * size
