"""Run one case in a worker, for each kind of exercise.

This is the course's code, in the same process as the learner's. A driver gets the learner's
namespace, the header of the request and the case's data; it returns the header of the reply and the
bytes of its outputs. It judges nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from tiled_matmul.grader import wire
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import LOOPS, MODULES, VALUES, cover

MAX_STEPS = 100_000  # iterations of a block's while loops: thousands of times an answer's need
SHOWN = 3  # findings of a kind that are passed on
MOST_BY_CHANCE = 0.75  # of C's elements are the same when B's columns are moved
MOST_TEXT = 1500
MOST_NAME = 80
MOST_DEPTH = 8  # of lists within lists in a result
MOST_PLAIN = 10_000  # numbers in an array that is a result
COPIES = ("copy_async", "commit_copies", "wait_copies")
VIEWS = ("tile", "copy_tile_async")
BETWEEN = 7  # what lies between the elements of a matrix with wide strides
MMA_K = 16  # products that an instruction of the tensor cores adds to each sum
CORNER = 64  # rows and columns of the larger matrix beyond A and B

Reply = tuple[dict, list[bytes]]


def prepare(kind: str) -> dict[str, Any]:
    """Import what a kind's answers and drivers use; return the namespace without given constants.

    A nursery imports it once for many workers.
    """
    if kind == "cuda":
        from tiled_matmul.kit import backend

        backend.select()
        import numba
        from numba import cuda

        import tiled_matmul.grader.advice
        import tiled_matmul.grader.builds
        import tiled_matmul.grader.counted
        import tiled_matmul.microscope.cuda.trace  # noqa: F401
        from tiled_matmul.kit import intrinsics, tile_view
        from tiled_matmul.microscope.cuda.kernel import install

        # From here on `cuda.jit` makes kernels for the interpreter; `builds` has Numba's own.
        install()
        copies = {name: getattr(intrinsics, name) for name in COPIES}
        copies |= {name: getattr(tile_view, name) for name in VIEWS}
        return {"cuda": cuda, "math": math, "np": np, "numba": numba, **copies}
    if kind == "triton":
        from tiled_matmul.machine import backend

        backend.select()
        import warnings

        import torch  # noqa: F401
        import triton
        import triton.language as tl
        from triton.runtime.interpreter import interpreter_builder

        import tiled_matmul.grader.builds
        import tiled_matmul.microscope.triton.interpreter
        import tiled_matmul.microscope.triton.trace  # noqa: F401

        # Without debug, nobody reads these checks, and they take half of the time.
        options = replace(interpreter_builder.options, sanitize_overflow=False)
        interpreter_builder.options = options
        warnings.filterwarnings("ignore", "tl.make_block_ptr")
        warnings.filterwarnings("ignore", "invalid value")  # from NumPy, about NaN
        return {"triton": triton, "tl": tl}
    own = (VALUES if kind == "values" else LOOPS).modules - {"triton"}
    modules = {as_name: import_module(name) for name, as_name in MODULES.items() if as_name in own}
    modules["std_nptyping"] = SimpleNamespace(NDArray=Annotation, ArrayLike=Annotation)
    if kind == "values":
        own = {"std_enum": _enums(), "std_copy": _copies(), "triton": _host_functions()}
        return modules | own
    from tiled_matmul.grader.watched import TYPES, Float

    return modules | {"np": TYPES, "float": Float}


class Annotation:
    """Stands for a type in annotations: NumPy's own makes arrays of any memory if called."""

    def __new__(cls, *arguments: object) -> Annotation:
        raise TypeError(sentence("error: annotation"))

    def __class_getitem__(cls, item: object) -> type[Annotation]:
        return cls


def _host_functions() -> SimpleNamespace:
    """Return what plain Python takes from Triton, whose import takes a second."""

    def next_power_of_2(n: int) -> int:
        return 1 << (n - 1).bit_length() if n > 0 else 0

    return SimpleNamespace(cdiv=cover, next_power_of_2=next_power_of_2)


def _copies() -> SimpleNamespace:
    """Return `copy` and `deepcopy` of one argument: a memo of the answer's own could hand them any
    object and any name."""
    import copy

    return SimpleNamespace(copy=lambda x: copy.copy(x), deepcopy=lambda x: copy.deepcopy(x))


def _enums() -> SimpleNamespace:
    """Return classes for enumerations of an answer's own, which make no classes when called."""
    import enum

    class Kind(enum.EnumMeta):
        def __call__(cls, value: Any) -> Any:
            return super().__call__(value)

    class Enum(enum.Enum, metaclass=Kind):
        pass

    class IntEnum(enum.IntEnum, metaclass=Kind):
        pass

    return SimpleNamespace(Enum=Enum, IntEnum=IntEnum, auto=enum.auto)


def run(kind: str, space: dict, request: dict, blobs: list[bytes]) -> Reply:
    """Run one case, or build its kernel where the request names a compute capability."""
    if "cc" in request:
        from tiled_matmul.grader.builds import build

        return build(kind, space, request)
    return DRIVERS[kind](space, request, blobs)


def given(request: dict) -> dict[str, Any]:
    """Return a request's given constants, with the tuples that JSON turned into lists restored."""
    return {name: _tuples(value) for name, value in request.get("given", {}).items()}


def _operands(request: dict, blobs: list[bytes]) -> tuple[np.ndarray, ...]:
    shapes, dtype = request["shapes"], request["dtype"]
    return tuple(
        np.frombuffer(bytearray(blob), dtype).reshape(shape)
        for blob, shape in zip(blobs, shapes, strict=True)
    )


def _outputs(*arrays: np.ndarray) -> list[bytes]:
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


def _cuda(space: dict, request: dict, blobs: list[bytes]) -> Reply:
    """Run a Numba kernel in the interpreter, and report its findings."""
    from tiled_matmul.grader import counted
    from tiled_matmul.grader.advice import advise, without_barrier
    from tiled_matmul.microscope.cuda import trace

    named = zip(request["arrays"], _operands(request, blobs), strict=True)
    arrays = [np.asfortranarray(x) if name in request["by_columns"] else x for name, x in named]
    grid, block = request["launch"]
    kernel = space[request["entry"]]
    options = {"order": request["order"], "seed": 1, "max_steps": MAX_STEPS}
    t = trace(kernel, tuple(grid), tuple(block), *arrays, **options)
    findings = []
    for several in (t.divergent_barriers, t.out_of_bounds, t.races, t.uninitialised_reads):
        findings += [_finding(one, *advise(t, one, request["product"])) for one in several[:SHOWN]]
    for one in findings:
        one["message"] = without_barrier(one["kind"], one["message"])
    return {"findings": findings, "counts": counted.counts(t, request.get("counts"))}, _outputs(
        arrays[-1], *arrays[:-1]
    )


def _triton(space: dict, request: dict, blobs: list[bytes]) -> Reply:
    """Run a Triton kernel in its interpreter, program by program."""
    from tiled_matmul.microscope.triton import interpreter, trace_tiles

    arrays = tensors(request, blobs)
    strides = [stride for x in arrays for stride in x.stride()]
    (grid,) = request["launch"][:1]
    options = request["launch"][1]
    kernel = space[request["entry"]]

    def run(arrays: tuple, **way: float) -> Any:
        with _as_on_a_gpu(arrays[0].element_size()), interpreter.differently(**way):
            return trace_tiles(
                kernel, tuple(grid), *arrays, *request["extents"], *strides, **options
            )

    t = run(arrays, backwards=request["order"] == "reverse", scale=request["scale"])
    kinds = dict.fromkeys(one.kind for one in t.findings)
    findings = [[one for one in t.findings if one.kind == kind][:SHOWN] for kind in kinds]
    findings = [_finding(one) for several in findings for one in several]
    # An atomic operation reads and writes.
    loaded, stored = (_by_program(t, op, "atomic") for op in ("load", "store"))
    products = _by_program(t, "dot")
    counts = {
        "elements loaded": sum(loaded),
        "elements loaded by a program": max(loaded),
        "elements stored": sum(stored),
        "elements stored by a program": max(stored),
        "products": sum(products),
        "products of a program": max(products),
    }
    counts |= _corners(t, request["arrays"][-1]) if request.get("walk") else {}
    if request["moved"] and not _from_dots(run, request, blobs, arrays[-1]):
        counts["products"] = 0
    outputs = _outputs(_scaled_back(arrays[-1].numpy(), request), *(x.numpy() for x in arrays[:-1]))
    return {"findings": findings, "counts": counts}, outputs


def _from_dots(run: Callable, request: dict, blobs: list[bytes], c: Any) -> bool:
    """Does C come from `tl.dot`? `run(arrays, moved=…)` is the launch, and C what it stored.

    Most of it is another C with the columns of B moved, and the dots feel that.
    """
    from tiled_matmul.microscope.triton.interpreter import Hooks

    moved = tensors(request, blobs)
    run(moved, moved=True, scale=request["scale"])
    unchanged = bool((moved[-1] == c)[c != 0].float().mean() > MOST_BY_CHANCE)
    # A wrapped row or column, alone in its matrix, is the same wherever it is moved.
    matrices = [x for x in moved[:-1] if x.ndim > 1]
    alike = any(min(x.shape[-2:]) == 1 or bool((x == x.mean()).all()) for x in matrices)
    return alike or (Hooks.moved and not unchanged)


def _by_program(t: Any, *ops: str) -> list[int]:
    """Return how many elements each program accesses or multiplies by these operations."""
    elements = dict.fromkeys(t.programs, 0)
    for op in ops:
        for event in t.select(op=op):
            elements[event.program] += event.elements
    return list(elements.values())


def _scaled_back(c: np.ndarray, request: dict) -> np.ndarray:
    return c if request["scale"] == 1 else c / c.dtype.type(request["scale"])


def _corners(t: Any, output: str) -> dict[str, int]:
    """Return the first row and column that each program stores: {"row of program 0": 16, …}."""
    corners: dict[str, int] = {}
    for event in t.select(op="store", array=output):
        if not event.elements:
            continue
        for axis, first in (("row", event.rows[0]), ("column", event.cols[0])):
            key = f"{axis} of program {event.program[0]}"
            corners[key] = max(0, min(first, corners.get(key, first)))
    return corners


def tensors(request: dict, blobs: list[bytes]) -> tuple[Any, ...]:
    """Return the inputs and C as torch tensors, stored as the request says."""
    import torch

    *inputs, c = (torch.from_numpy(array) for array in _operands(request, blobs))
    if request["corner"]:
        inputs = [_corner(x) for x in inputs]
    arrays = [_apart(x) for x in (*inputs, c)] if request.get("apart") else [*inputs, c]
    named = zip(request["arrays"], arrays, strict=True)
    return tuple(_by_columns(x) if name in request["by_columns"] else x for name, x in named)


def _by_columns(x: Any) -> Any:
    """Return matrices stored by columns, or a vector as a column of a matrix of three."""
    if x.ndim > 1:
        return x.mT.contiguous().mT
    matrix = x.new_full((len(x), 3), BETWEEN)
    matrix[:, 0] = x
    return matrix[:, 0]


def _corner(x: Any) -> Any:
    """Return x as the upper left corner of a larger matrix of zeros."""
    rows, columns = x.shape  # of a matrix: no other array has a corner
    large = x.new_zeros((rows + CORNER, columns + CORNER))
    large[:rows, :columns] = x
    return large[:rows, :columns]


def _apart(x: Any) -> Any:
    """Return x with its elements in every second column of a larger matrix, and rows between."""
    if x.ndim == 1:
        return _apart(x[None])[0]
    *parts, rows, columns = x.shape
    large = x.new_full((*parts, rows + 2, 2 * columns + 3), BETWEEN)
    large[..., :rows, : 2 * columns : 2] = x
    return large[..., :rows, : 2 * columns : 2]


def _as_tf32(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers as tensor cores round a factor: to 10 bits behind the first one."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)


@contextmanager
def _as_on_a_gpu(itemsize: int) -> Iterator[None]:
    """Let the interpreter compute as a GPU does where it is kinder, on elements of so many bytes.

    Elements that a mask leaves out without `other` are undefined: here NaN. A product of float32
    tiles rounds its factors to TF32, unless `input_precision` says otherwise. Sums in float16 are
    rounded after each instruction of the tensor cores.
    """
    from unittest.mock import patch

    from triton.runtime.interpreter import TensorHandle

    from tiled_matmul.microscope.cuda.errors import Unsupported
    from tiled_matmul.microscope.triton.interpreter import Hooks, Memory, _nan

    own, own_dot, own_behind = Hooks.create_masked_load, Hooks.create_dot, Memory.behind

    def behind(self, op, pointers, mask):
        # Several elements behind one pointer would be counted as one.
        if pointers.get_element_ty().primitive_bitwidth != 8 * itemsize:
            raise Unsupported(sentence("unknown: pointer"))
        return own_behind(self, op, pointers, mask)

    def dot(self, a, b, d, input_precision, *rest, **named):
        if a.data.dtype == np.float32 and "TF32" == getattr(input_precision, "name", ""):
            a, b = (TensorHandle(_as_tf32(x.data), x.dtype) for x in (a, b))
        if d.data.dtype != np.float16:
            return own_dot(self, a, b, d, input_precision, *rest, **named)
        for k in range(0, a.data.shape[-1], MMA_K):
            of_a = TensorHandle(a.data[..., k : k + MMA_K], a.dtype)
            of_b = TensorHandle(b.data[..., k : k + MMA_K, :], b.dtype)
            d = own_dot(self, of_a, of_b, d, input_precision, *rest, **named)
        return d

    def load(self, pointers, mask, other, *rest, **named):
        values = own(self, pointers, mask, other, *rest, **named)
        if other is None:
            left_out = ~np.broadcast_to(np.asarray(mask.data, bool), values.data.shape)
            values.data[left_out] = _nan(pointers.get_element_ty())
        return values

    hooks = patch.multiple(Hooks, create_masked_load=load, create_dot=dot)
    with hooks, patch.object(Memory, "behind", behind):
        yield


def _loops(space: dict, request: dict, blobs: list[bytes]) -> Reply:
    """Call a function that fills c from its inputs, on arrays that record their accesses.

    If the exercise has a launch, that holds the caches whose loads are counted: the words of each,
    or how many lines or tiles it holds, with their rows and columns.
    """
    from tiled_matmul.grader.watched import Outside, Record

    record = Record(request["product"], request.get("factors"), request["scale"])
    *inputs, c = arrays = _operands(request, blobs)
    names = map(str.upper, request["arrays"])
    with suppress(Outside):
        space[request["entry"]](*record.watch(**dict(zip(names, arrays, strict=True))))
    counts = {f"reads of {name}": count for name, count in record.reads.items()}
    counts |= {"writes of C": record.writes, "whole rows": record.whole_rows}
    counts |= {"products": record.products, "reads without a product": record.longest}
    for number, cache in enumerate(request.get("launch", ()), start=1):
        room, rows, columns = cache if isinstance(cache, list) else (cache, 1, 1)
        what = "words" if rows == columns == 1 else "lines" if rows == 1 else "tiles"
        which = f" by cache {number}" if number > 1 else ""
        counts[f"{what} fetched{which}"] = record.fetched(room, rows, columns)
    return {"findings": list(record.findings.values()), "counts": counts}, _outputs(
        _scaled_back(c, request), *inputs
    )


def _values(space: dict, request: dict, blobs: list[bytes]) -> Reply:
    """Call a function on plain values; its result is sent as JSON."""
    result = space[request["entry"]](*wire.restored(request["arguments"]))
    return {"findings": [], "counts": {}}, [json.dumps(_plain(result)).encode()]


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON holds it; raise TypeError for any type that JSON does not have.

    A number of NumPy's is a number, as a fraction is, and an array of them is a list.
    """
    if isinstance(value, Fraction):
        value = int(value) if value.denominator == 1 else float(value)
    if isinstance(value, np.generic | np.ndarray) and value.size <= MOST_PLAIN:
        value = value.tolist()
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        value = tuple(value)  # of a named tuple
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (list, tuple) and depth < MOST_DEPTH:
        return [_plain(part, depth + 1) for part in value]
    if type(value) is dict and depth < MOST_DEPTH:
        return {str(key): _plain(part, depth + 1) for key, part in value.items()}
    raise TypeError(sentence("error: no json", kind=type(value).__name__))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


def _finding(finding: Any, kind: str = "", remedy: str = "") -> dict:
    return {
        "kind": kind or finding.kind,
        "array": finding.array[:MOST_NAME],
        "message": finding.message[:MOST_TEXT],
        "remedy": (remedy or finding.remedy)[:MOST_TEXT],
        "count": int(finding.count),
    }


DRIVERS: dict[str, Callable[[dict, dict, list[bytes]], Reply]] = {
    "cuda": _cuda,
    "triton": _triton,
    "loops": _loops,
    "values": _values,
}
