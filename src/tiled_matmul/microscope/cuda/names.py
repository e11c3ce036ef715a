"""The meaning of names inside a kernel: `numba.cuda`, functions, types and stand-ins."""

from __future__ import annotations

import builtins
import math
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import values

SMALL = 31  # bits assumed for sizes, block numbers and loop counters
LANE_VALUES = {
    **{f"threadIdx.{axis}": (f"threadIdx_{axis}", 10) for axis in "xyz"},
    **{f"blockIdx.{axis}": (f"blockIdx_{axis}", SMALL) for axis in "xyz"},
    **{f"blockDim.{axis}": (f"blockDim_{axis}", 11) for axis in "xyz"},
    **{f"gridDim.{axis}": (f"gridDim_{axis}", SMALL) for axis in "xyz"},
    "laneid": ("laneid", 5),
    "warpsize": ("warpsize", 6),
}
BARRIERS = {"syncthreads_count": "count", "syncthreads_and": "and", "syncthreads_or": "or"}
# Collectives of a warp, with the number of operands after the mask.
COLLECTIVES = {
    "syncwarp": 0,
    "shfl_sync": 2,
    "shfl_up_sync": 2,
    "shfl_down_sync": 2,
    "shfl_xor_sync": 2,
    "all_sync": 1,
    "any_sync": 1,
    "eq_sync": 1,
    "ballot_sync": 1,
    "match_any_sync": 1,
    "match_all_sync": 1,
}
OPERANDS = {"syncthreads": 0, "activemask": 0, "lanemask_lt": 0, "fma": 3, "selp": 3}
FENCES = ("threadfence", "threadfence_block", "threadfence_system")
ATOMIC_OPERANDS = {"cas": 2}


def _bits_of(value: Any) -> str:
    """Return all binary digits of an integer's type."""
    count = 8 * values.dtype_of(value).itemsize
    return f"{int(value) & (1 << count) - 1:0{count}b}"


def _reversed(value: Any) -> Any:
    """Return brev(value): it reverses 64 bits of a uint64, and the lower 32 of other types."""
    if values.dtype_of(value) == values.UINT64:
        return values.u64(int(_bits_of(value)[::-1], 2))
    return values.caster(np.dtype("uint32"))(int(f"{int(value) & 0xFFFFFFFF:032b}"[::-1], 2))


LANE_FUNCTIONS: dict[str, Callable] = {
    "popc": lambda x: values.i64(_bits_of(x).count("1")),
    "clz": lambda x: values.i64((_bits_of(x) + "1").index("1")),
    "ffs": lambda x: values.i64(_bits_of(x)[::-1].find("1") + 1),
    "brev": _reversed,
    "fma": values.fma,
    "selp": lambda condition, x, y: x if condition else y,
    "cbrt": values.reals(math.cbrt),
    "nanosleep": lambda ns: None,
    "lanemask_lt": None,
}
FEATURES = (
    *("threadIdx", "blockIdx", "blockDim", "gridDim", "laneid", "warpsize", "grid", "gridsize"),
    *("shared", "local", "const", "atomic", "syncthreads", "activemask", "cg"),
    *(*BARRIERS, *COLLECTIVES, *FENCES, *LANE_FUNCTIONS),
)


# Functions of math that Numba has not for a GPU under numpy's name, as np.sqrt.
NOT_OF_NUMPY = (
    *("exp", "expm1", "log1p", "sqrt", "fabs", "floor", "ceil", "trunc", "isinf", "isfinite"),
)

RANGES: set[Callable] = {range}  # the functions that loops iterate over; `kit.unroll` adds its own


@dataclass
class Standin:
    """The Python function that runs in place of an intrinsic: `function(access, *arguments)`."""

    function: Callable
    ops: tuple[str, ...]
    arrays: tuple[int, ...]


STANDINS: dict[int, tuple[Any, Standin]] = {}


def stands_for(
    intrinsic: Any, *ops: str, arrays: tuple[int, ...] = (0, 0)
) -> Callable[[Callable], Callable]:
    """Decorate the Python function that the interpreter runs when a kernel calls `intrinsic`.

    `ops` lists the intrinsic's operations in order. For each, the function gets one argument: an
    `Access` for "load" and "store", a `copies.Copy` for "copy", the thread's `copies.Copies` for
    "copies". The call's own arguments follow. `arrays` holds the positions of the arguments that
    are read and written. Raises ValueError for an unknown operation.
    """
    unknown = set(ops) - {"load", "store", "copy", "copies"}
    if unknown:
        raise ValueError(f"a stand-in cannot do {', '.join(sorted(unknown))}")

    def register(function: Callable) -> Callable:
        # The reference to the intrinsic keeps its id unique.
        STANDINS[id(intrinsic)] = (intrinsic, Standin(function, ops, arrays))
        return function

    return register


class Vector(tuple):
    """The elements that an intrinsic loads: a tuple that kernels can index, too."""

    def __add__(self, other: tuple) -> Vector:
        return Vector((*self, *other))

    def l1(self, i: int, key: int) -> Any:
        return self[i]

    def get(self, index: tuple, key: int) -> Any:
        (i,) = index
        return self[i]


class Access:
    """One access of an intrinsic to an array, of one element or a vector."""

    def __init__(self, key: int) -> None:
        self.key = key

    def load(self, array: Any, index: Any, count: int = 1) -> Vector:
        """Return `count` consecutive elements from `index` (an int or a tuple of ints)."""
        return Vector(array.span(_index_tuple(index), count, self.key))

    def store(self, array: Any, index: Any, elements: Iterable) -> None:
        """Write consecutive elements from `index` (an int or a tuple of ints)."""
        elements = tuple(elements)
        array.span(_index_tuple(index), len(elements), self.key, elements)


def _index_tuple(index: Any) -> tuple:
    return index if isinstance(index, tuple) else (index,)


def is_device_function(value: Any) -> bool:
    """Return whether Numba or this package made a kernel or device function of it."""
    return isinstance(getattr(value, "py_func", None), types.FunctionType)


def hashable(value: Any) -> bool:
    """Return whether a value can be a dictionary's key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def numba_dtype(value: Any) -> np.dtype | None:
    """Return the dtype that a Numba or numpy scalar type stands for, or None."""
    name = None
    if isinstance(value, type) and issubclass(value, np.generic):
        name = value
    elif type(value).__name__ in ("Integer", "Float", "Boolean"):
        name = str(value)
    if name is None:
        return None
    try:
        dtype = np.dtype(name)
    except TypeError:
        return None
    return dtype if dtype in values.DTYPES else None


def functions() -> dict[Any, Callable]:
    """Return the functions that run in place of those of Python, math and numpy."""
    table: dict[Any, Callable] = {
        len: len,
        min: values.minimum,
        max: values.maximum,
        abs: values.absolute,
        int: values.to_int,
        float: values.to_float,
        bool: values.flag,
        round: values.rounded,
        pow: values.power,
        sum: values.total,
        np.maximum: values.propagating(values.maximum),
        np.minimum: values.propagating(values.minimum),
    }
    for name, function in values.MATH.items():
        table[getattr(math, name)] = function
        twin = values.ufunc(name)
        if twin is not None and twin.nin == 1 and twin.nout == 1 and name not in NOT_OF_NUMPY:
            table[twin] = function
    return table


def names_outside(function: Callable) -> dict[str, Any]:
    """Return what names stand for that a function uses and does not define.

    These are Python's own, its module's and those of functions around it.
    """
    code = function.__code__
    known = {**vars(builtins), **function.__globals__}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    known |= {name: cell.cell_contents for name, cell in cells}
    return {name: value for name, value in known.items() if name not in code.co_varnames}
