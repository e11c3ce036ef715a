"""Run a kernel in Triton's interpreter with virtual addresses, and record its accesses.

The kernel gets addresses with large gaps between the arrays, so that even a stray pointer can be
attributed to its array. Memory is accessed only after the record has determined which elements
exist. The interpreter's changes to `triton.language` are undone after the run, and kernels are
rewritten in a separate name space, so that a process with a GPU can still compile them. The module
uses private names of `triton.runtime.interpreter`, which exist in Triton 3.6 to 3.9.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import math
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import numpy as np
import triton.compiler.code_generator  # noqa: F401  imported before tl.minimum is patched
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import FunctionRewriter, InterpretedFunction, TensorHandle
from triton.runtime.jit import JITFunction

from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.triton.fixes import apply_fixes
from tiled_matmul.microscope.triton.record import TileRecord

apply_fixes()

ROOM_BITS = 44  # of the addresses of one array, so a pointer may stray by 8 TB either way
MOST_KNOWN = 256  # functions
PAGE = 4096  # alignments up to this are those of the real address
NAN_BITS = {"bf16": 0x7FC0, "fp8e5": 0x7F, "fp8e4nv": 0x7F}  # stored as unsigned integers


class Rewriter(FunctionRewriter):
    """Rewrites a function for the interpreter whenever its globals change, and reads it once."""

    known: ClassVar[dict[types.CodeType, tuple[list[str], types.CodeType]]] = {}

    def rewrite_ast(self) -> Callable:
        self.lines = linecache.getlines(self.fn.__code__.co_filename)
        lines, code = self.known.get(self.fn.__code__, ([], None))
        if code is not None and lines == self.lines:
            return self._executed(code)
        return super().rewrite_ast()

    def _compile_and_exec(self, tree: Any) -> Callable:
        code = compile(tree, self.filename, "exec")
        if len(self.known) == MOST_KNOWN:
            self.known.clear()
        self.known[self.fn.__code__] = self.lines, code
        return self._executed(code)

    def _executed(self, code: types.CodeType) -> Callable:
        variables, made = self.fn.__globals__, dict(self.kwargs)
        # The only name that rewriting puts in. Triton gives a kernel all of its interpreter's.
        variables["interpreter_semantic"] = interpreter.interpreter_semantic
        variables.setdefault("min", _of_tiles(min, tl.minimum))
        variables.setdefault("max", _of_tiles(max, tl.maximum))
        exec(code, variables, made)
        return made[self.fn.__name__]


def _of_tiles(plain: Callable, tiled: Callable) -> Callable:
    """Return what the compiler makes of `min` or `max`: of tiles, `tl.minimum` or `tl.maximum`."""

    def choose(*values: Any, **named: Any) -> Any:
        tiles = any(isinstance(value, tl.tensor) and value.shape for value in values)
        return functools.reduce(tiled, values) if tiles else plain(*values, **named)

    return choose


class Rewritten:
    """Kernels and the functions that they call, as Python functions for the interpreter."""

    def __init__(self) -> None:
        self._functions: dict[Callable, Callable] = {}
        self.names: dict[types.CodeType, str] = {}

    def function(self, fn: Callable) -> Callable:
        if fn not in self._functions:
            variables = fn.__globals__ | inspect.getclosurevars(fn).nonlocals
            # The interpreter adds names to the globals, so they are copied.
            copy = types.FunctionType(fn.__code__, variables, fn.__name__, None, fn.__closure__)
            copy.__defaults__, copy.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
            copy.__annotations__, copy.__module__ = fn.__annotations__, fn.__module__
            made = Rewriter(copy).rewrite_ast()
            self._functions[fn] = made
            if not fn.__module__.startswith("triton."):
                self.names[made.__code__] = fn.__name__
        return self._functions[fn]

    @property
    def call(self) -> Callable:
        """The method that runs when a kernel calls a jit function."""
        return lambda jit, *args, **named: self.function(jit.fn)(*args, **named)

    def line(self) -> tuple[int, str]:
        """Return (line, function) of the kernel's code that runs now."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code in self.names:
                return frame.f_lineno, self.names[frame.f_code]
            frame = frame.f_back
        return 0, ""

    def line_of(self, error: BaseException) -> tuple[int, str]:
        """Return (line, function) of the kernel's code at which an exception was raised."""
        place, step = (0, ""), error.__traceback__
        while step is not None:
            if step.tb_frame.f_code in self.names:
                place = step.tb_lineno, self.names[step.tb_frame.f_code]
            step = step.tb_next
        return place


class Memory:
    """The arrays' real memory behind the kernel's virtual addresses."""

    def __init__(self, tensors: list[Any], record: TileRecord, code: Rewritten) -> None:
        self.record, self.code = record, code
        self.described: tuple | None = None  # a descriptor's shape and strides, the tile's corner
        self.real = [tensor.data_ptr() for tensor in tensors]
        self.shown = [
            ((number + 1) << ROOM_BITS) + real % PAGE for number, real in enumerate(self.real)
        ]

    def behind(self, op: str, pointers: Any, mask: np.ndarray) -> tuple[Any, np.ndarray]:
        """Record an access; return (the real pointers, the mask of those that may be accessed)."""
        shown = pointers.data
        active = np.broadcast_to(mask, shown.shape).astype(bool)
        owner = ((shown + np.uint64(1 << ROOM_BITS - 1)) >> np.uint64(ROOM_BITS)).astype(int) - 1
        line, function = self.code.line()
        real, allowed = np.zeros(shown.shape, np.uint64), np.zeros(shown.shape, bool)
        known = (0 <= owner) & (owner < len(self.real))
        if (active & ~known).any():
            raise KernelError("a pointer comes from none of the kernel's arguments")
        for number in np.unique(owner[active]) if active.any() else owner[known][:1]:
            array, mine = self.record.arrays[number], owner == number
            distance = (shown - np.uint64(self.shown[number])).astype(np.int64)
            items = distance // array.itemsize
            requested, corner = active & mine, self._corner(array)
            fits = self.record.access(op, int(number), items, requested, line, function, corner)
            # A pointer may have been cast to one of wider elements.
            width = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
            allowed |= fits & (distance + width <= array.memory[1] * array.itemsize)
            real[mine] = (distance + self.real[number]).astype(np.uint64)[mine]
        return TensorHandle(real, pointers.dtype), allowed

    def _corner(self, array: Any) -> tuple[int, ...] | None:
        """Return the first index of a descriptor's tile, if it describes the array as it is."""
        if self.described is None or self.described[:2] != (array.shape, array.strides):
            return None
        return self.described[2]


class Hooks:
    """The functions that replace the interpreter's accesses and dots."""

    scale, move, moved, backwards = 1, False, False, False  # see `differently`

    def __init__(self, memory: Memory, builder: Any) -> None:
        self.memory = memory
        self.own = {name: getattr(builder, name) for name in self.names()}

    @classmethod
    def names(cls) -> list[str]:
        return [name for name in vars(cls) if name.startswith("create_")]

    def create_masked_load(self, pointers, mask, other, *rest, **named):
        real, allowed = self.memory.behind("load", pointers, mask.data)
        kind = pointers.get_element_ty()
        values = np.zeros(allowed.shape, interpreter._get_np_dtype(kind))
        if other is not None:
            values[:] = other.data
        # A mask that was combined with a scalar comparison holds integers, 0 and 1.
        nothing = np.broadcast_to(mask.data, allowed.shape).astype(bool) & ~allowed
        values[nothing] = _nan(kind)
        allowed, values = TensorHandle(allowed, tl.int1), TensorHandle(values, kind)
        return self.own["create_masked_load"](real, allowed, values, *rest, **named)

    def create_masked_store(self, pointers, value, mask, *rest, **named):
        real, allowed = self.memory.behind("store", pointers, mask.data)
        allowed = TensorHandle(allowed, tl.int1)
        return self.own["create_masked_store"](real, value, allowed, *rest, **named)

    def create_atomic_rmw(self, operation, pointers, value, mask, *rest, **named):
        real, allowed = self.memory.behind("atomic", pointers, mask.data)
        allowed = TensorHandle(allowed, tl.int1)
        return self.own["create_atomic_rmw"](operation, real, value, allowed, *rest, **named)

    def create_atomic_cas(self, pointers, *rest, **named):
        real, allowed = self.memory.behind("atomic", pointers, np.ones(pointers.data.shape, bool))
        if not allowed.all():
            raise KernelError("an atomic_cas outside of its array")
        return self.own["create_atomic_cas"](real, *rest, **named)

    def create_descriptor_load(self, descriptor, corner, *rest, **named):
        with self._describing(descriptor, corner):
            return self.own["create_descriptor_load"](descriptor, corner, *rest, **named)

    def create_descriptor_store(self, descriptor, value, corner):
        with self._describing(descriptor, corner):
            return self.own["create_descriptor_store"](descriptor, value, corner)

    @contextmanager
    def _describing(self, descriptor: Any, corner: list) -> Iterator[None]:
        """Tell the accesses inside the tile's corner, which pointers outside cannot reveal."""
        lists = descriptor.shape, descriptor.strides, corner
        self.memory.described = tuple(tuple(int(i.data.item()) for i in each) for each in lists)
        try:
            yield
        finally:
            self.memory.described = None

    def create_dot(self, a, b, sums, *rest, **named):
        m, k, n = *a.data.shape[-2:], b.data.shape[-1]
        self.memory.record.dot(m, n, k, *self.memory.code.line())
        if self.move:
            columns = np.roll(b.data, 1, axis=-1)
            Hooks.moved |= not np.array_equal(columns, b.data)
            b = TensorHandle(columns, b.dtype)
        if self.scale == 1:
            return self.own["create_dot"](a, b, sums, *rest, **named)
        zeros = TensorHandle(np.zeros_like(sums.data), sums.dtype)
        made = self.own["create_dot"](a, b, zeros, *rest, **named)
        return TensorHandle(sums.data + made.data * made.data.dtype.type(self.scale), sums.dtype)


@contextmanager
def differently(scale: float = 1, moved: bool = False, backwards: bool = False) -> Iterator[None]:
    """Run launches so that a kernel shows what it relies on.

    `tl.dot` multiplies its products by `scale`, which shows in C if that comes from dots. `moved`,
    it multiplies by the columns of its second tile moved by one; `Hooks.moved` says then whether
    that made any difference to a tile. `backwards`, the last program runs first: they have no order
    on a GPU.
    """
    Hooks.scale, Hooks.move, Hooks.moved, Hooks.backwards = scale, moved, False, backwards
    try:
        yield
    finally:
        Hooks.scale, Hooks.move, Hooks.backwards = 1, False, False


def _nan(kind: Any) -> Any:
    if kind in (tl.float16, tl.float32, tl.float64):
        return math.nan
    return NAN_BITS.get(kind.name, 0)


@contextmanager
def interpreting(code: Rewritten, hooks: Hooks, builder: Any) -> Iterator[None]:
    """Let the interpreter handle `triton.language` and calls of jit functions inside the `with`."""
    scope = interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    try:
        for kind in (JITFunction, InterpretedFunction):
            scope.set_attr(kind, "__call__", code.call)
            scope.set_attr(kind, "__get__", _bound)
        # Triton 3.6 converts 1-D arrays to int, which numpy 2.4 no longer allows.
        scope.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
        for name in ("gdc_wait", "gdc_launch_dependents"):  # no kernels overlap here
            scope.set_attr(tl.extra.cuda, name, lambda: None)
        for name in hooks.own:
            setattr(builder, name, getattr(hooks, name))
        yield
    finally:
        for name in hooks.own:
            vars(builder).pop(name, None)
        scope.restore()


def _bound(jit: Any, instance: Any, owner: Any = None) -> Any:
    """Bind a jit function to an instance: members of `tl.tensor` such as sum are jit functions."""
    return jit if instance is None else partial(jit, instance)


def run(
    fn: Callable,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    tensors: list[Any],
    record: TileRecord,
) -> None:
    """Run all programs of a launch, x fastest.

    `tensors` are the CPU tensors in `arguments`, alone, in tuples or in descriptors, in order; the
    record's arrays describe them. Raises KernelError if the kernel raises an exception.
    """
    code, builder = Rewritten(), interpreter.interpreter_builder
    memory = Memory(tensors, record, code)
    with interpreting(code, Hooks(memory, builder), builder):
        kernel, fixed = code.function(fn), constants(fn)
        shown = iter(memory.shown)
        values = {
            name: value if name in fixed else _show(interpreter._implicit_cvt(value), shown)
            for name, value in arguments.items()
        }
        builder.set_grid_dim(*grid)
        places = list(itertools.product(*map(range, reversed(grid))))
        for z, y, x in places[::-1] if Hooks.backwards else places:
            builder.set_grid_idx(x, y, z)
            record.begin((x, y, z))
            try:
                kernel(**values)
            except Exception as error:
                line, function = code.line_of(error)
                where = f"at line {line} of {function}" if line else f"in {fn.__name__}"
                what = str(error) or f"{type(error).__name__}: {_last_line(error)}"
                raise KernelError(f"program {(x, y, z)} stopped {where}: {what}") from error


def _last_line(error: Exception) -> str:
    """Return the source line that raised an exception, such as an assert without a message."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return frame.line or frame.name


def constants(fn: Callable) -> list[str]:
    """Return the names of the arguments that are `tl.constexpr`."""
    return interpreter.GridExecutor(fn, list(inspect.signature(fn).parameters), ()).constexprs


def _show(value: Any, addresses: Iterator[int]) -> Any:
    """Replace the real addresses in an argument by the virtual ones."""
    if isinstance(value, tuple):
        for item in value:
            _show(item, addresses)
        return value
    handle = getattr(value, "handle", None)
    pointer = getattr(handle, "base", handle)  # a descriptor's
    if isinstance(pointer, TensorHandle) and isinstance(pointer.dtype, tl.pointer_type):
        pointer.data[...] = next(addresses)
    return value
