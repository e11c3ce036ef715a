"""Rewrite a kernel's source into a Python function that one thread of the interpreter can run.

The statements keep their form and line numbers, so tracebacks, prints and debuggers work. Four
things change in the syntax tree. An element of an array is read and written through a call that
checks bounds and records the access. A barrier becomes a `yield`, which passes control to the next
thread. Names of `numba.cuda` become values of the thread. Numbers get Numba's types: an index that
provably stays small remains a Python int, every other number is a typed scalar.

For the record, each iteration of each loop has a number, the path, by which the accesses of a
warp's threads in one instruction are grouped afterwards. The key of an access is
path · (number of sites) + site.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import itertools
import linecache
import math
import operator
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda import kinds, values
from tiled_matmul.microscope.cuda.copies import Copy
from tiled_matmul.microscope.cuda.errors import StepLimit, TypingError, Unsupported
from tiled_matmul.microscope.cuda.hints import instead
from tiled_matmul.microscope.cuda.inner import Inner
from tiled_matmul.microscope.cuda.kinds import (
    ARRAY,
    OTHER,
    SHAPE,
    SIZE,
    STRIDES,
    Many,
    Row,
    is_int,
    is_large,
    is_tuple,
    is_unsigned,
    join,
    widened,
)
from tiled_matmul.microscope.cuda.loops import Loops
from tiled_matmul.microscope.cuda.names import (
    ATOMIC_OPERANDS,
    BARRIERS,
    COLLECTIVES,
    FEATURES,
    FENCES,
    LANE_FUNCTIONS,
    LANE_VALUES,
    OPERANDS,
    SMALL,
    STANDINS,
    Access,
    Standin,
    functions,
    hashable,
    is_device_function,
    numba_dtype,
)
from tiled_matmul.microscope.cuda.program import Program, Site
from tiled_matmul.microscope.cuda.shapes import Shapes, folded, part_at, stored
from tiled_matmul.microscope.cuda.source import Source, parameters, python_function, read
from tiled_matmul.microscope.cuda.trees import (
    assign,
    call,
    lane_attribute,
    read_name,
    write_name,
)
from tiled_matmul.microscope.cuda.unsigned import as_written, cast_type

SUM = SMALL + 24  # bits assumed for sums of such values
ROUNDS = 8

WRAPPING = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
COMPARISONS = {ast.Is: "is", ast.IsNot: "is not"}
BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


@dataclass
class _Compiled:
    name: str
    waits: bool
    returns: Any


@dataclass
class _Shared:
    """The state that all functions of one program share."""

    record: bool
    cuda: Any
    sites: list[Site] = field(default_factory=list)
    space: dict[str, Any] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # in `space`, by the id of the value there
    compiled: dict[tuple, _Compiled] = field(default_factory=dict)
    open: list[Any] = field(default_factory=list)  # the functions being translated
    fences: bool = False
    loops: list[tuple[int, bool]] = field(default_factory=list)  # as in program.Paths
    outside: dict[tuple, Any] = field(default_factory=dict)  # what (function, a, b) was, for `a.b`

    @functools.cached_property
    def features(self) -> dict[int, str]:
        """The names in numba.cuda by the ids of what they name, which a kernel may import."""
        found = {name: getattr(self.cuda, name, None) for name in FEATURES[::-1]}
        return {id(value): name for name, value in found.items() if value is not None}

    def constant(self, value: Any) -> str:
        name = self.names.setdefault(id(value), f"_simt_{len(self.space)}")
        self.space[name] = value
        return name


def rewrite(kernel: Any, arguments: Iterable[Any], record: bool, max_steps: int) -> Program:
    """Return the program of a kernel for arguments as `memory.bind` returns them.

    `record` says whether accesses are recorded; `max_steps` limits the iterations of the loops in
    one block. Raises Unsupported or TypingError, which name the line, and KernelError for a kernel
    without source. A program is used again for arguments of the same kinds, as long as its source
    and every value from outside the kernel are the same; do not run it twice at a time.
    """
    request = (
        python_function(kernel),
        tuple(_kind_of(argument) for argument in arguments),
        record,
        max_steps,
    )
    program, outside, sources = _rewritten(*request)
    moved = any(_outside(*name)[1] is not value for name, value in outside.items())
    if moved or any(linecache.getlines(file) != lines for file, lines in sources.items()):
        _rewritten.cache_clear()
        program, *_ = _rewritten(*request)
    return program


@functools.lru_cache(maxsize=64)
def _rewritten(
    function: Callable, known: tuple, record: bool, max_steps: int
) -> tuple[Program, dict[tuple, Any], dict[str, list[str]]]:
    """Return a program, {(function, a, b): value of `a.b` outside}, and {file: its lines}."""
    import numba.cuda

    shared = _Shared(record, numba.cuda)
    shared.space |= _helpers(max_steps)
    entry = _compile(shared, function, known)
    if entry.returns is not None:
        raise TypingError(f"{function.__name__} returns a value; a kernel writes to its arguments")
    program = Program(
        function.__name__,
        shared.space[entry.name],
        entry.waits,
        shared.sites,
        shared.space,
        shared.loops,
        shared.fences,
    )
    used = [each for each, _ in shared.compiled if isinstance(each, types.FunctionType)]
    files = {each.__code__.co_filename for each in used}
    return program, shared.outside, {file: linecache.getlines(file) for file in files}


def _outside(function: Callable, name: str, *attributes: str) -> tuple[bool, Any]:
    """Return (whether `name.attribute` exists outside a function, its Python object)."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in cells:
        defined, value = True, cells[name].cell_contents
    else:
        spaces = (cast_type(), function.__globals__, vars(builtins))
        space = next((space for space in spaces if name in space), {})
        defined, value = name in space, space.get(name)
    for attribute in attributes:
        if not defined or not hasattr(value, attribute):
            return False, None
        value = getattr(value, attribute)
    return defined, value


def _kind_of(argument: Any) -> Any:
    if isinstance(argument, bool):
        return OTHER
    if type(argument) is int:
        return kinds.bits(min(63, max(SMALL, argument.bit_length())), kinds.of_constant(argument))
    if isinstance(argument, tuple):
        return tuple(_kind_of(part) for part in argument)
    return OTHER if isinstance(argument, (values.Typed, np.generic)) else ARRAY


def _compile(shared: _Shared, function: Callable, known: tuple) -> _Compiled:
    key = (function, known)
    if key in shared.compiled:
        return shared.compiled[key]
    source = read(function)
    if function in shared.open:
        raise Unsupported(f"{source.name} calls itself; kernels here have no recursion")
    names = parameters(function)
    if len(known) != len(names):
        raise TypingError(
            f"{source.name} takes {len(names)} arguments ({', '.join(names)}), got {len(known)}"
        )
    return _made(shared, key, _Translator(shared, function, source, names, known))


def _made(shared: _Shared, key: tuple, translator: _Translator) -> _Compiled:
    """Return what `shared.compiled` keeps under `key`, a function and the kinds it is given."""
    source = translator.source
    shared.open.append(key[0])
    try:
        tree = translator.translate()
    finally:
        shared.open.pop()
    name = tree.name
    code = compile(ast.Module([tree], []), source.file, "exec")
    exec(code, shared.space)
    # So that tracebacks and debuggers show its own name.
    runs = shared.space[name]
    runs.__code__ = runs.__code__.replace(co_name=source.name)
    runs.__name__ = runs.__qualname__ = source.name
    made = _Compiled(name, translator.waits, translator.returns)
    shared.compiled[key] = made
    return made


def _shown(value: Any) -> str:
    """Return a value's text as on a GPU, with six decimal places for floats."""
    if isinstance(value, tuple) and type(value) is tuple:
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        raise Unsupported("print of an array: print its elements in a loop")
    return f"{value:f}" if isinstance(value, np.floating) else str(value)


def _print(*given: Any) -> None:
    print(*map(_shown, given))


def _helpers(max_steps: int) -> dict[str, Any]:
    """Return the functions that rewritten code calls by name."""
    steps = [0]

    def tick(line: int, name: str) -> None:
        steps[0] += 1
        if steps[0] > max_steps:
            raise StepLimit(
                f"the loop in line {line} of {name} ran more than {max_steps:,} iterations in one "
                "block; does it end? (Threads run one after another here, so a loop that waits for "
                "another thread's store never ends. trace takes max_steps=.)"
            )

    def span(iterations: range, line: int, name: str) -> Any:
        if not iterations[max_steps >> 4 :]:  # of which len() would fail from 63 bits on
            return iterations
        return (tick(line, name) or iteration for iteration in iterations)

    def typed_range(line: int, name: str, *ends: Any) -> Any:
        iterations = span(range(*map(values.truncate, ends)), line, name)
        if any(values.dtype_of(end) == values.UINT64 for end in ends):
            return map(values.u64, iterations)
        return map(values.i64, iterations)

    def restart() -> None:
        steps[0] = 0

    return {
        "__builtins__": builtins,
        "_simt_tick": tick,
        "_simt_span": span,
        "_simt_range": typed_range,
        "_simt_restart": restart,
        "_simt_int64": values.int64,
        "_simt_int32": values.Int32,
        "_simt_u64": values.u64,
        "_simt_i64": lambda value: value if type(value) is values.i64 else values.i64(value),
        "_simt_flag": values.flag,
        "_simt_index": values.index,
        "_simt_truncate": values.truncate,  # Numba takes floats as the ends of a range
        "_simt_divide": values.divide,
        "_simt_divmod": divmod,
        "_simt_quotient": lambda x, y: x // y if y else 0,
        "_simt_remainder": lambda x, y: x % y if y else 0,
        "_simt_power": values.power,
        "_simt_left": values.shift_left,
        "_simt_right": values.shift_right,
        "_simt_bit": values.bitwise,
        "_simt_and": operator.and_,
        "_simt_or": operator.or_,
        "_simt_xor": operator.xor,
        "_simt_invert": values.invert,
        "_simt_negative": values.negative,
        "_simt_positive": values.positive,
        "_simt_print": _print,
        "_simt_zip": zip,
        "_simt_enumerate": enumerate,
        "_simt_alike": values.alike,
        "_simt_beside": values.beside_literal,
        "_simt_length": values.length,
        "_simt_next": next,
        "_simt_iterations_of": range,
        "_simt_len": len,
        "_simt_least": min,
        "_simt_most": max,
        "_simt_size": abs,
        "_simt_slice": slice,
        "_simt_access": Access,
        "_simt_copy": Copy,
    }


def _is_dtype_type(node: ast.expr) -> bool:
    """Return whether this is `….dtype.type`, an array's element type as a function."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "type"
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "dtype"
    )


class _Translator(Loops, Shapes, Inner):
    """The translation of one function, repeated until the kinds of its names no longer change."""

    def __init__(
        self, shared: _Shared, function: Callable, source: Source, names: list[str], known: tuple
    ) -> None:
        self.shared = shared
        self.function = function
        self.source = source
        self.parameters = names
        self.env: dict[str, Any] = dict(zip(names, known, strict=True))
        self.locals = {*self.parameters, *stored(source.tree)}
        self.inner: dict[str, ast.FunctionDef] = {}
        self.lambdas: dict[ast.Lambda, ast.FunctionDef] = {}
        self.waits = False
        self.ignored: ast.expr | None = None  # a statement that is nothing but this expression

    @property
    def returns(self) -> Any:
        """The kind of the function's return value; None if it returns nothing."""
        return self.env.get("return")

    # The function's body.

    def translate(self) -> ast.FunctionDef:
        first_site, first_loop = len(self.shared.sites), len(self.shared.loops)
        compiled = dict(self.shared.compiled)
        for round_number in itertools.count():
            del self.shared.sites[first_site:]
            del self.shared.loops[first_loop:]
            self.shared.compiled = dict(compiled)
            self.waits, self.temporaries = False, 0
            before = dict(self.env)
            body = self.block(self.source.tree.body)
            if self.env == before:
                break
            if round_number >= ROUNDS:
                # A value that still grows from round to round may need all bits.
                for name, kind in self.env.items():
                    if is_int(kind) and kind != before.get(name):
                        self.env[name] = kinds.widest(kind)
        name = f"_simt_{self.source.name}_{len(self.shared.compiled)}"
        arguments = [ast.arg("_simt_lane"), ast.arg("_simt_path")]
        arguments += [ast.arg(parameter) for parameter in self.parameters]
        tree = ast.FunctionDef(
            name=name,
            args=ast.arguments([], arguments, None, [], [], None, []),
            body=body or [ast.Pass()],
            decorator_list=[],
            returns=None,
        )
        if hasattr(ast, "TypeAlias"):  # Python 3.12 and later
            tree.type_params = []
        ast.copy_location(tree, self.source.tree)
        return ast.fix_missing_locations(tree)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            made = getattr(self, f"do_{type(statement).__name__}", None)
            if made is None:
                raise self.unsupported(statement, f"a {type(statement).__name__} statement")
            for new in made(statement):
                # What is inside of it gets its place at the end, in `translate`.
                out.append(new if hasattr(new, "lineno") else ast.copy_location(new, statement))
        return out

    def unsupported(self, node: ast.AST, what: str, better: str = "") -> Unsupported:
        """Return the error for a construct; `better` says what to write, if `instead` does not."""
        return Unsupported(
            f"{what} is not supported in a kernel, {self.source.place(node)} "
            f"(instead: {better or instead(node)})"
        )

    def mistyped(self, node: ast.AST, what: str) -> TypingError:
        return TypingError(f"{what}, {self.source.place(node)}")

    # Statements.

    def do_Expr(self, node: ast.Expr) -> list[ast.stmt]:  # noqa: N802
        if isinstance(node.value, ast.Constant):
            return [ast.copy_location(ast.Pass(), node)]
        self.ignored = node.value
        value, _ = self.expression(node.value)
        return [ast.copy_location(ast.Expr(value), node)]

    def do_Pass(self, node: ast.Pass) -> list[ast.stmt]:  # noqa: N802
        return [node]

    do_Break = do_Continue = do_Pass  # noqa: N815

    def do_Assert(self, node: ast.Assert) -> list[ast.stmt]:  # noqa: N802
        made = ast.Assert(self.test(node.test), node.msg and self.as_python(node.msg))
        return [ast.copy_location(made, node)]

    def do_Raise(self, node: ast.Raise) -> list[ast.stmt]:  # noqa: N802
        return [self.as_python(node)]

    def as_python(self, tree: Any) -> Any:
        """Return a copy of a tree in which only names from outside the function are replaced."""
        tree = copy.deepcopy(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in self.locals:
                known, value = self.lookup(node.id)
                node.id = self.shared.constant(value) if known else node.id
        return tree

    def do_Return(self, node: ast.Return) -> list[ast.stmt]:  # noqa: N802
        left: ast.stmt = ast.Pass()
        if len(self.shared.open) == 1:  # not of a device function
            left = assign(lane_attribute("left"), ast.Constant(node.lineno))
        empty = node.value is None or (
            isinstance(node.value, ast.Constant) and node.value.value is None
        )
        if empty:
            return [left, ast.copy_location(ast.Return(None), node)]
        value, kind = self.expression(node.value)
        self.assigned("return", kind)
        if self.returns == OTHER:
            value = self.typed(value, kind)
        return [ast.copy_location(ast.Return(value), node)]

    def do_If(self, node: ast.If) -> list[ast.stmt]:  # noqa: N802
        test = self.test(node.test)
        made = ast.If(test, self.block(node.body), self.block(node.orelse))
        return [ast.copy_location(made, node)]

    def do_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:  # noqa: N802
        if node.value is None:
            return [ast.copy_location(ast.Pass(), node)]
        return self.assign(node.target, node.value, node)

    def do_Assign(self, node: ast.Assign) -> list[ast.stmt]:  # noqa: N802
        if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
            return self.named_lambda(node.targets[0].id, node.value)
        if len(node.targets) == 1:
            return self.assign(node.targets[0], node.value, node)
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        value, kind = self.expression(node.value, *names[:1])
        name = self.temporary(kind)
        made: list[ast.stmt] = [assign(write_name(name), value)]
        for target in node.targets:
            made += self.assign(target, ast.copy_location(read_name(name), node), node)
        return made

    def do_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:  # noqa: N802
        target = node.target
        if isinstance(target, ast.Name):
            value = ast.BinOp(ast.copy_location(read_name(target.id), node), node.op, node.value)
            return self.assign(target, ast.copy_location(value, node), node)
        if not isinstance(target, ast.Subscript):
            raise self.unsupported(node, "an assignment to an attribute", "an element, x[i]")
        # The array and its indices are evaluated once and used twice.
        made: list[ast.stmt] = []
        array, kind = self.expression(target.value)
        holder = self.temporary(kind)
        made.append(assign(write_name(holder), array))
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        indices = []
        for part in parts:
            index, index_kind = self.index(part)
            name = self.temporary(index_kind)
            made.append(assign(write_name(name), index))
            indices.append((read_name(name), index_kind))
        text, called = self.text(target), self.text(target.value)
        load = self.element(node, holder, indices, "load", text, called)
        value, value_kind = self.binary(node, node.op, (load, OTHER), self.expression(node.value))
        value = self.typed(value, value_kind)
        store = self.element(node, holder, indices, "store", text, called, value)
        return [*made, ast.copy_location(ast.Expr(store), node)]

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            made, kind = self.expression(value, name=target.id)
            before = self.env.get(target.id)
            if isinstance(kind, tuple) and isinstance(before, tuple) and len(kind) != len(before):
                what = f"{target.id} for tuples of different lengths"
                raise self.unsupported(node, what, "a name for each")
            if isinstance(kind, tuple) and Row in map(type, kind):
                what = f"{target.id} for elements of several arrays"
                raise self.unsupported(node, what, "a name for each, for x, y in zip(…)")
            if is_int(kind) and kind < 64 and self.adds_to(target.id, value):
                kind = kinds.bits(SUM, kind)
            self.assigned(target.id, kind)
            if self.env[target.id] == OTHER:
                made = self.typed(made, kind)
            return [ast.copy_location(assign(write_name(target.id), made), node)]
        if isinstance(target, ast.Subscript):
            return [ast.copy_location(ast.Expr(self.store(target, value, node)), node)]
        if isinstance(target, (ast.Tuple, ast.List)):
            return self.unpack(target, value, node)
        what = f"an assignment to {ast.unparse(target)}"
        raise self.unsupported(node, what, "a name, or an element, x[i]")

    def unpack(
        self, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt
    ) -> list[ast.stmt]:
        for part in target.elts:
            if isinstance(part, ast.Starred):
                raise self.unsupported(part, "Starred")
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            # One by one, so that a new array gets its target's name.
            names = [part.id if isinstance(part, ast.Name) else "" for part in target.elts]
            parts = [
                self.expression(part, name) for part, name in zip(value.elts, names, strict=True)
            ]
            made: ast.expr = ast.Tuple([part for part, _ in parts], ast.Load())
            kind: Any = tuple(part_kind for _, part_kind in parts)
        else:
            made, kind = self.expression(value)
        if not isinstance(kind, tuple):
            part = kinds.part_of(kind) if isinstance(kind, Many) else kind and OTHER
            kind = (part,) * len(target.elts)
        if len(kind) != len(target.elts):
            raise self.mistyped(node, f"{len(kind)} values for {len(target.elts)} names")
        names = [self.temporary(part) for part in kind]
        holders = ast.Tuple([write_name(name) for name in names], ast.Store())
        out: list[ast.stmt] = [assign(holders, made)]
        for part, name in zip(target.elts, names, strict=True):
            out += self.assign(part, ast.copy_location(read_name(name), node), node)
        return out

    def adds_to(self, name: str, value: ast.expr) -> bool:
        """Return whether this only adds to a name something small that does not depend on it.

        To need more bits than SUM, such a sum would take more iterations than can be run.
        """
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
            return False
        used = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
        if not isinstance(value.left, ast.Name) or value.left.id != name or used.count(name) > 1:
            return False
        before, added = self.operand_kinds
        return is_int(before) and before <= SUM and is_int(added) and added <= SMALL

    def assigned(self, name: str, kind: Any) -> None:
        self.env[name] = join(self.env.get(name), kind)

    def temporary(self, kind: Any) -> str:
        self.temporaries += 1
        name = f"_simt_t{self.temporaries}"
        self.locals.add(name)
        self.env[name] = kind
        return name

    # Expressions. Each method returns (the new tree, the kind of its value).

    def expression(self, node: ast.expr, name: str = "") -> tuple[ast.expr, Any]:
        if isinstance(node, ast.Call):
            made, kind = self.call(node, name)
        else:
            method = getattr(self, f"see_{type(node).__name__}", None)
            if method is None:
                raise self.unsupported(node, f"{type(node).__name__} ({self.text(node)})")
            made, kind = method(node)
        return ast.copy_location(made, node), kind

    def typed(self, made: ast.expr, kind: Any) -> ast.expr:
        """Return the tree of a value, converted to a typed scalar."""
        if not is_int(kind):
            return made
        if isinstance(made, ast.Constant):
            make = values.u64 if is_unsigned(kind) else values.i64
            return read_name(self.shared.constant(make(made.value)))
        return call("_simt_u64" if is_unsigned(kind) else "_simt_i64", made)

    def see_Constant(self, node: ast.Constant) -> tuple[ast.expr, Any]:  # noqa: N802
        return self.constant(node, node.value)

    def constant(self, node: ast.expr, value: Any) -> tuple[ast.expr, Any]:
        if isinstance(value, (bool, np.bool_)):
            return read_name(self.shared.constant(values.flag(value))), OTHER
        if type(value) is int:
            if value.bit_length() > 63:
                return read_name(self.shared.constant(values.u64(value))), OTHER
            return ast.Constant(value), kinds.of_constant(value)
        if type(value) is float:
            return read_name(self.shared.constant(values.f64(value))), OTHER
        if isinstance(value, np.generic) and value.dtype in values.DTYPES:
            return read_name(self.shared.constant(values.carrier(value.dtype)(value))), OTHER
        if isinstance(value, (str, type(None))):
            return ast.Constant(value), OTHER
        if isinstance(value, tuple):
            parts = [self.constant(node, part) for part in value]
            made = ast.Tuple([part for part, _ in parts], ast.Load())
            return made, tuple(kind for _, kind in parts)
        if isinstance(value, np.ndarray):
            what = f"{self.text(node)}, an array from outside,"
            raise self.unsupported(node, what, "an argument of the kernel")
        what = f"{self.text(node)}, a {type(value).__name__},"
        raise self.unsupported(node, what, "a number, a tuple of numbers, or an argument")

    def see_Name(self, node: ast.Name) -> tuple[ast.expr, Any]:  # noqa: N802
        kind = self.env.get(node.id)
        if isinstance(kind, Row):
            index = read_name(node.id), SIZE
            return self.element(node, kind.array, [index], "load", kind.text, kind.text), OTHER
        if node.id in self.inner:
            raise self.unsupported(node, f"{node.id}, a function, as a value", "a call")
        return (read_name(node.id), kind) if node.id in self.locals else self.outside(node)

    def outside(self, node: ast.expr) -> tuple[ast.expr, Any]:
        """Translate a name, plain or dotted, from outside the function."""
        feature = self.feature(node)
        if feature is not None:
            if feature in LANE_VALUES:
                attribute, count = LANE_VALUES[feature]
                return lane_attribute(attribute, ast.Load()), kinds.Natural(count)
            if feature in ("threadIdx", "blockIdx", "blockDim", "gridDim"):
                return lane_attribute(feature, ast.Load()), OTHER
            raise self.unsupported(node, f"cuda.{feature}", "a call, or one of its axes, .x")
        known, value = self.resolve(node)
        if not known:
            raise self.mistyped(node, f"{self.text(node)} is not defined")
        dtype = numba_dtype(value)
        if dtype is not None:
            return read_name(self.shared.constant(dtype)), OTHER
        return self.constant(node, value)

    def see_Attribute(self, node: ast.Attribute) -> tuple[ast.expr, Any]:  # noqa: N802
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.locals:
            return self.outside(node)
        value, _ = self.expression(node.value)
        kind: Any = OTHER
        if node.attr in ("shape", "strides"):
            kind = SHAPE if node.attr == "shape" else STRIDES
        elif node.attr in ("size", "ndim", "itemsize", "nbytes"):
            kind = SIZE
        elif node.attr == "T":
            kind = ARRAY
        elif node.attr in ("x", "y", "z"):
            kind = SIZE
        elif node.attr != "dtype":
            raise self.unsupported(node, f"attribute .{node.attr}", ".shape, .size or .ndim")
        return ast.Attribute(value, node.attr, ast.Load()), kind

    def see_JoinedStr(self, node: ast.JoinedStr) -> tuple[ast.expr, Any]:  # noqa: N802
        if not all(isinstance(part, ast.Constant) for part in node.values):
            raise self.unsupported(node, f"JoinedStr ({self.text(node)})")
        return ast.Constant("".join(part.value for part in node.values)), OTHER

    def see_Tuple(self, node: ast.Tuple) -> tuple[ast.expr, Any]:  # noqa: N802
        if any(isinstance(part, ast.Starred) for part in node.elts):
            return self.joined(node)
        parts = [self.expression(part) for part in node.elts]
        # The joined kind of a tuple's parts may not distinguish uint64 from int64.
        parts = [(self.typed(*part), OTHER) if is_unsigned(part[1]) else part for part in parts]
        made = ast.Tuple([part for part, _ in parts], ast.Load())
        return made, tuple(kind for _, kind in parts)

    def joined(self, node: ast.Tuple) -> tuple[ast.expr, Any]:
        """Translate `(*x, 1)` as `x + (1,)`."""
        pieces = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                pieces.append(self.expression(part.value))
                if pieces[-1][1] is not None and not is_tuple(pieces[-1][1]):
                    raise self.unsupported(part, f"Starred ({self.text(part)})")
            else:
                pieces.append(self.see_Tuple(ast.Tuple([part], ast.Load())))
        return functools.reduce(lambda x, y: self.binary(node, ast.Add(), x, y), pieces)

    def see_Subscript(self, node: ast.Subscript) -> tuple[ast.expr, Any]:  # noqa: N802
        value, kind = self.expression(node.value)
        if is_tuple(kind):
            return self.part(node, value, kind)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.index(part) for part in parts]
        made = self.element(node, value, indices, "load", self.text(node), self.text(node.value))
        return made, ARRAY if any(kind == ARRAY for _, kind in indices) else OTHER

    def part(self, node: ast.Subscript, value: ast.expr, kind: Any) -> tuple[ast.expr, Any]:
        """Translate an element or a slice of a tuple."""
        place = self.constant_place(node.slice)
        if isinstance(node.slice, ast.Slice):
            if place is None:
                raise self.mistyped(
                    node, f"a tuple is cut at constants only: give numbers in {self.text(node)}"
                )
            ends = [ast.Constant(end) for end in (place.start, place.stop, place.step)]
            made = ast.Subscript(value, call("_simt_slice", *ends), ast.Load())
            return made, kind if isinstance(kind, Many) else kind[place]
        if isinstance(kind, tuple) and place is not None:
            if (part := part_at(kind, place)) is None and place not in range(-len(kind), len(kind)):
                raise self.mistyped(node, f"{self.text(node)} of a tuple of {len(kind)}")
            return ast.Subscript(value, ast.Constant(place), ast.Load()), part
        index, _ = self.index(node.slice)
        return ast.Subscript(self.alike(value, kind), index, ast.Load()), kinds.part_of(kind)

    def store(self, target: ast.Subscript, value: ast.expr, node: ast.stmt) -> ast.expr:
        array, _ = self.expression(target.value)
        made = self.typed(*self.expression(value))
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        indices = [self.index(part) for part in parts]
        text, called = self.text(target), self.text(target.value)
        return self.element(node, array, indices, "store", text, called, made)

    def index(self, node: ast.expr) -> tuple[ast.expr, Any]:
        """Translate an index: a number, a slice, or a variable that holds a tuple."""
        if isinstance(node, ast.Slice):
            ends = [
                ast.Constant(None) if end is None else self.expression(end)[0]
                for end in (node.lower, node.upper, node.step)
            ]
            return call("_simt_slice", *ends), ARRAY
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return node, ARRAY
        made, kind = self.expression(node)
        if kind == OTHER:
            return call("_simt_index", made), SMALL
        return made, kind

    def element(
        self,
        node: ast.AST,
        array: ast.expr | str,
        indices: list[tuple[ast.expr, Any]],
        op: str,
        text: str,
        called: str,
        value: ast.expr | None = None,
    ) -> ast.expr:
        """Return the call that reads or writes an element."""
        array = read_name(array) if isinstance(array, str) else array
        key = self.key(node, op, text, called)
        stored = [] if value is None else [value]  # Python evaluates it before the indices
        trees = [tree for tree, _ in indices]
        if len(indices) > 3 or not all(is_int(kind) for _, kind in indices):
            name = "get" if value is None else "put"
            method = ast.Attribute(array, name, ast.Load())
            return ast.Call(method, [*stored, ast.Tuple(trees, ast.Load()), key], [])
        method = ast.Attribute(array, f"{'l' if value is None else 's'}{len(trees)}", ast.Load())
        return ast.Call(method, [*stored, *trees, key], [])

    def key(
        self, node: ast.AST, op: str, text: str, called: str, asynchronous: bool = False
    ) -> ast.expr:
        """Add a site and return the tree of its key."""
        lands = op == ("landing" if asynchronous else "store")
        site = Site(
            len(self.shared.sites),
            node.lineno,
            node.col_offset,
            op,
            text,
            called,
            self.source.name,
            self.source.file,
            lands or text.split("(")[0].endswith("atomic.exch"),
            node is not self.ignored,
            asynchronous,
        )
        self.shared.sites.append(site)
        number = ast.Constant(site.id)
        if not self.shared.record:
            return number
        return ast.BinOp(read_name("_simt_path"), ast.Add(), number)

    def text(self, node: ast.expr) -> str:
        if not hasattr(node, "text"):  # else it is known from a round before
            node.text = ast.unparse(as_written(copy.deepcopy(node)))
        return node.text

    def see_BinOp(self, node: ast.BinOp) -> tuple[ast.expr, Any]:  # noqa: N802
        left, right = self.expression(node.left), self.expression(node.right)
        made = self.binary(node, node.op, left, right)
        self.operand_kinds = left[1], right[1]
        return made

    def binary(self, node: ast.AST, op: ast.operator, left: tuple, right: tuple) -> tuple:
        (x, x_kind), (y, y_kind) = left, right
        if isinstance(op, ast.Mod) and isinstance(getattr(x, "value", None), str):
            raise self.unsupported(node, "% with a text", "several values, print('x', x)")
        if is_tuple(x_kind) and is_tuple(y_kind) and isinstance(op, ast.Add):
            if isinstance(x_kind, tuple) and isinstance(y_kind, tuple):
                return ast.BinOp(x, op, y), x_kind + y_kind
            kind = join(x_kind, y_kind)
            return self.alike(ast.BinOp(x, op, y), kind), kind
        if is_tuple(x_kind) or is_tuple(y_kind):
            if (value := folded(node)) is None:
                raise self.mistyped(node, "a tuple takes + with a tuple, and no other arithmetic")
            return self.constant(node, value)
        if is_int(x_kind) and is_int(y_kind):
            if is_unsigned(x_kind) and is_unsigned(y_kind):
                if kinds.stays_unsigned(op, y, x_kind, y_kind):
                    return self.whole(op, x, y, x_kind, y_kind)
                if type(op) in WRAPPING:
                    return self.wrapped(op, x, y, x_kind, y_kind)
            elif max(x_kind, y_kind) < 64:
                return self.whole(op, x, y, x_kind, y_kind)
        if None in (x_kind, y_kind):  # not yet known in this round
            return ast.BinOp(x, op, y), None
        x, y = self.typed(x, x_kind), self.typed(y, y_kind)
        called = {
            ast.Pow: "_simt_power",
            ast.LShift: "_simt_left",
            ast.RShift: "_simt_right",
        }.get(type(op))
        if called:
            return call(called, x, y), OTHER
        bitwise = {ast.BitAnd: "_simt_and", ast.BitOr: "_simt_or", ast.BitXor: "_simt_xor"}
        if type(op) in bitwise:
            return call("_simt_bit", read_name(bitwise[type(op)]), x, y), OTHER
        if isinstance(op, ast.MatMult):
            raise self.unsupported(node, "@", "a loop that adds the products")
        return ast.BinOp(x, op, y), OTHER

    def wrapped(self, op: ast.operator, x: ast.expr, y: ast.expr, m: int, n: int) -> tuple:
        """Translate an operation on two uint64, held as Python ints, that may wrap around."""
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            quotient = isinstance(op, ast.FloorDiv)
            name = "_simt_quotient" if quotient else "_simt_remainder"
            return call(name, x, y), kinds.bits(m if quotient else n, m)
        if isinstance(x, ast.Constant) and isinstance(y, ast.Constant):
            value = BINARY[type(op)](x.value, y.value) & values.ONES
            return ast.Constant(value), kinds.Unsigned(value.bit_length())
        made = ast.BinOp(ast.BinOp(x, op, y), ast.BitAnd(), ast.Constant(values.ONES))
        return made, kinds.Unsigned(64)

    def whole(self, op: ast.operator, x: ast.expr, y: ast.expr, m: int, n: int) -> tuple:
        """Translate an operation on two small Python ints of the kinds m and n."""
        constant = y.value if isinstance(y, ast.Constant) else None
        made: ast.expr = ast.BinOp(x, op, y)
        if isinstance(op, ast.Div):
            return call("_simt_divide", x, y), OTHER
        if isinstance(op, ast.Pow):
            return call("_simt_power", x, y), OTHER
        if isinstance(op, (ast.Add, ast.Sub)):
            bits = max(m, n) + 1
        elif isinstance(op, ast.Mult):
            bits = m + n
        elif isinstance(op, ast.LShift):
            bits = 64 if constant is None else m + constant
            if constant is None or not 0 <= constant < 64:
                return call("_simt_left", self.typed(x, m), self.typed(y, n)), OTHER
        elif isinstance(op, ast.Mod):
            bits = n
        elif isinstance(op, (ast.FloorDiv, ast.RShift)):
            bits = m
        else:
            bits = max(m, n)
        if isinstance(x, ast.Constant) and isinstance(y, ast.Constant) and type(op) in BINARY:
            try:
                folded, count = self.constant(made, BINARY[type(op)](x.value, y.value))
                if is_int(count):
                    count = kinds.of_result(op, count, m, n)
                return folded, count
            except (ZeroDivisionError, ValueError):
                pass
        kind = kinds.of_result(op, bits, m, n)
        if bits > 63 and not is_unsigned(kind):
            return call("_simt_int64", made), 63
        return made, kind

    def see_UnaryOp(self, node: ast.UnaryOp) -> tuple[ast.expr, Any]:  # noqa: N802
        value, kind = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            return call("_simt_flag", ast.UnaryOp(node.op, value)), OTHER
        if is_unsigned(kind):
            value = self.typed(value, kind)
        elif is_int(kind):
            kind = int(kind)
            if isinstance(value, ast.Constant) and isinstance(node.op, ast.USub):
                return ast.Constant(-value.value), kind
            made = ast.UnaryOp(node.op, value)
            return (made, kind) if kind < 63 else (call("_simt_int64", made), 63)
        if kind is None:
            return value, None
        called = {ast.Invert: "_simt_invert", ast.USub: "_simt_negative"}.get(type(node.op))
        return call(called or "_simt_positive", value), OTHER

    def see_BoolOp(self, node: ast.BoolOp) -> tuple[ast.expr, Any]:  # noqa: N802
        return ast.BoolOp(node.op, [self.expression(value)[0] for value in node.values]), OTHER

    def see_Compare(self, node: ast.Compare) -> tuple[ast.expr, Any]:  # noqa: N802
        return call("_simt_flag", self.compare(node)), OTHER

    def compare(self, node: ast.Compare) -> ast.expr:
        sides = [self.expression(node.left)]
        for op, left, right in zip(
            node.ops, (node.left, *node.comparators), node.comparators, strict=False
        ):
            named = isinstance(op, (ast.Is, ast.IsNot))
            if named and not self.is_single(left) and not self.is_single(right):
                raise self.unsupported(node, f"a comparison by {COMPARISONS[type(op)]}")
            inside = isinstance(op, (ast.In, ast.NotIn))
            sides.append(self.members(right) if inside else self.expression(right))
        signs = {is_unsigned(kind) for _, kind in sides}
        if not all(is_int(kind) and (kind < 54 or len(signs) == 1) for _, kind in sides):
            # Compared with a float32, a Python int would be rounded to float32, and Numba compares
            # a uint64 and an int64 as float64.
            sides = [
                (self.typed(*side) if is_large(side[1]) or is_unsigned(side[1]) else side[0], 0)
                for side in sides
            ]
        left, *right = (side for side, _ in sides)
        return ast.Compare(left, node.ops, right)

    def is_single(self, node: ast.expr) -> bool:
        """Return whether this is None, True or False, the values that `is` compares with."""
        value = node.value if isinstance(node, ast.Constant) else self.resolve(node)[1]
        constant = isinstance(node, ast.Constant) or self.resolve(node)[0]
        return constant and (value is None or isinstance(value, bool))

    def test(self, node: ast.expr) -> ast.expr:
        """Return the tree of a condition, of which only the truth matters."""
        if isinstance(node, ast.BoolOp):
            made: ast.expr = ast.BoolOp(node.op, [self.test(value) for value in node.values])
        elif isinstance(node, ast.Compare):
            made = self.compare(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            made = ast.UnaryOp(node.op, self.test(node.operand))
        else:
            return self.expression(node)[0]
        return ast.copy_location(made, node)

    def see_IfExp(self, node: ast.IfExp) -> tuple[ast.expr, Any]:  # noqa: N802
        test = self.test(node.test)
        yes, no = self.expression(node.body), self.expression(node.orelse)
        yes, no = self.beside(yes, node.orelse), self.beside(no, node.body)
        kind = join(yes[1], no[1])
        if kind == OTHER:
            yes, no = (self.typed(*yes), OTHER), (self.typed(*no), OTHER)
        return ast.IfExp(test, yes[0], no[0]), kind

    def beside(self, value: tuple[ast.expr, Any], other: ast.expr) -> tuple[ast.expr, Any]:
        """Give a value the type that it has if the other branch is a literal number."""
        if not isinstance(other, ast.Constant) or type(other.value) not in (int, float):
            return value
        if value[1] is None or (is_int(value[1]) and type(other.value) is int):
            return value
        return call("_simt_beside", self.typed(*value), other), OTHER

    # Calls.

    def call(self, node: ast.Call, name: str) -> tuple[ast.expr, Any]:
        feature = self.feature(node.func)
        if feature is not None:
            return self.cuda_call(node, feature, name)
        if isinstance(node.func, ast.Name) and node.func.id in self.inner:
            return self.inner_call(node)
        known, value = self.resolve(node.func)
        if not known:
            if _is_dtype_type(node.func) and len(node.args) == 1 and not node.keywords:
                dtype, _ = self.expression(node.func.value)
                value, _ = self.expression(node.args[0])
                return call(self.shared.constant(values.cast), dtype, value), OTHER
            if isinstance(node.func, ast.Attribute):
                if node.func.attr == "fill" and len(node.args) == 1:
                    return self.fill(node)
                raise self.unsupported(node, f"method .{node.func.attr}()")
            if isinstance(node.func, ast.Lambda):
                raise self.unsupported(node.func, "Lambda")
            raise self.mistyped(node, f"{self.text(node.func)} is not defined")
        if id(value) in STANDINS:
            return self.standin(node, STANDINS[id(value)][1])
        dtype = numba_dtype(value)
        if dtype is not None:
            return self.cast(node, dtype)
        if value in (print, breakpoint):
            return self.plain(node, value)
        if self.is_range(node.func):
            return self.range_of(node)
        if node.keywords and not is_device_function(value):
            raise self.unsupported(node, f"a keyword in a call of {self.text(node.func)}")
        if value is math.log and len(node.args) != 1:
            what = "math.log takes one value in a kernel; write math.log2, or log(x) / log(base)"
            raise self.mistyped(node, what)
        if value is divmod and len(node.args) == 2:
            return self.quotient_and_remainder(*map(self.expression, node.args))
        table = functions()
        if hashable(value) and value in table:
            arguments = [self.expression(argument) for argument in node.args]
            ints = bool(arguments) and all(is_int(kind) for _, kind in arguments)
            signs = {is_unsigned(kind) for _, kind in arguments}
            trees = [tree for tree, _ in arguments]
            if value is len:
                return call("_simt_len", *trees), SIZE
            if (
                ints
                and len(signs) == 1
                and value in (min, max, abs, int)
                and len(trees) + (value is abs or value is int) > 1
            ):
                plain = {min: "_simt_least", max: "_simt_most", abs: "_simt_size"}
                made = call(plain[value], *trees) if value in plain else trees[0]
                kind = None
                for _, each in arguments:
                    kind = join(kind, each)
                if value is abs and not is_unsigned(kind):
                    kind = kinds.Natural(kind)
                if kind > 62 and not is_unsigned(kind):
                    return call("_simt_int64", made), int(kind)
                return made, kind
            if True in signs:
                trees = [
                    self.typed(*each) if is_unsigned(each[1]) else each[0] for each in arguments
                ]
            return call(self.shared.constant(table[value]), *trees), OTHER
        if is_device_function(value):
            return self.device_call(node, value)
        if isinstance(value, types.FunctionType):
            what = f"{value.__name__}(), a plain function,"
            raise self.unsupported(node, what, "decorate it with @cuda.jit(device=True)")
        raise self.unsupported(node, f"{self.text(node.func)}()")

    def fill(self, node: ast.Call) -> tuple[ast.expr, Any]:
        """Translate `array.fill(value)` as `array[...] = value`."""
        array, _ = self.expression(node.func.value)
        value = self.typed(*self.expression(node.args[0]))
        text, called = self.text(node), self.text(node.func.value)
        everything = [(ast.Constant(...), ARRAY)]
        return self.element(node, array, everything, "store", text, called, value), OTHER

    def quotient_and_remainder(self, left: tuple, right: tuple) -> tuple[ast.expr, Any]:
        (x, m), (y, n) = left, right
        if is_int(m) and is_int(n) and max(m, n) < 64 and not (is_unsigned(m) or is_unsigned(n)):
            kind = tuple(self.whole(op, x, y, m, n)[1] for op in (ast.FloorDiv(), ast.Mod()))
            return call("_simt_divmod", x, y), kind
        function = self.shared.constant(values.quotient_and_remainder)
        kind = None if None in (m, n) else OTHER
        return call(function, self.typed(x, m), self.typed(y, n)), (kind, kind)

    def plain(self, node: ast.Call, function: Callable) -> tuple[ast.expr, Any]:
        if node.keywords:
            raise self.unsupported(node, f"a keyword in a call of {function.__name__}")
        arguments = [self.expression(argument)[0] for argument in node.args]
        name = "_simt_print" if function is print else function.__name__
        return call(name, *arguments), OTHER

    def cast(self, node: ast.Call, dtype: np.dtype) -> tuple[ast.expr, Any]:
        if len(node.args) != 1 or node.keywords:
            raise self.mistyped(node, f"{dtype} takes one value")
        value, kind = self.expression(node.args[0])
        signed = dtype.kind == "i" and dtype.itemsize >= 4
        if is_int(kind) and signed and kind < 8 * dtype.itemsize:
            return value, kinds.Natural(kind) if kinds.is_natural(kind) else kind
        if kinds.is_natural(kind) and dtype == values.UINT64:
            return value, kinds.Unsigned(kind)
        name = f"_simt_cast_{dtype}"
        self.shared.space.setdefault(name, values.caster(dtype))
        return call(name, value), OTHER

    def device_call(self, node: ast.Call, kernel: Any) -> tuple[ast.expr, Any]:
        function = python_function(kernel)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        operands = [self.expression(argument) for argument in node.args]
        keywords = {k.arg: self.expression(k.value) for k in node.keywords}
        given = function.__defaults__ or ()
        defaults = dict(zip(names[len(names) - len(given) :], given, strict=True))
        for parameter in names[len(operands) :]:
            if parameter in keywords:
                operands.append(keywords.pop(parameter))
            elif parameter in defaults:
                operands.append(self.constant(node, defaults[parameter]))
        if keywords or len(operands) != len(names):
            raise self.mistyped(
                node, f"{function.__name__} takes ({', '.join(names)}), got {self.text(node)}"
            )
        return self.enter(operands, lambda known: _compile(self.shared, function, known))

    def compile(self, source: Source, names: list[str], known: tuple) -> _Compiled:
        """Return a function that is defined in this one, compiled."""
        key = (source.tree, known)
        if key not in self.shared.compiled:
            translator = _Translator(self.shared, self.function, source, names, known)
            translator.inner = dict(self.inner)
            return _made(self.shared, key, translator)
        return self.shared.compiled[key]

    def enter(self, operands: list[tuple], compiled_for: Callable) -> tuple[ast.expr, Any]:
        """Translate the call of a device function; `compiled_for` takes its arguments' kinds."""
        if any(kind is None for _, kind in operands):
            return ast.Constant(None), None
        compiled = compiled_for(tuple(widened(kind) for _, kind in operands))
        path: ast.expr = read_name("_simt_path")
        if self.shared.record:
            path = call("_simt_next", self.paths(self.new_loop()))
        made: ast.expr = call(
            compiled.name, read_name("_simt_lane"), path, *(tree for tree, _ in operands)
        )
        if compiled.waits:
            self.waits = True
            made = ast.YieldFrom(made)
        return made, compiled.returns

    def standin(self, node: ast.Call, standin: Standin) -> tuple[ast.expr, Any]:
        if node.keywords:
            raise self.unsupported(node, f"a keyword in a call of {self.text(node.func)}")
        accesses = [self.standin_access(node, op, standin.arrays) for op in standin.ops]
        arguments = [self.operand(argument) for argument in node.args]
        return call(self.shared.constant(standin.function), *accesses, *arguments), OTHER

    def operand(self, node: ast.expr) -> ast.expr:
        """Translate an argument of a stand-in, to which a uint64 is an int like others."""
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self.expression(part)[0] for part in node.elts], ast.Load())
        return self.expression(node)[0]

    def standin_access(self, node: ast.Call, op: str, arrays: tuple[int, ...]) -> ast.expr:
        if op == "copies":
            return lane_attribute("copies", ast.Load())
        text = self.text(node)
        read, written = (self.text(node.args[i]) if i < len(node.args) else "" for i in arrays)
        if op != "copy":
            array = read if op == "load" else written
            return call("_simt_access", self.key(node, op, text, array))
        keys = [
            self.key(node, each, text, read if each == "load" else written, asynchronous=True)
            for each in ("load", "store", "flight", "landing")
        ]
        return call("_simt_copy", read_name("_simt_lane"), *keys)

    def cuda_call(self, node: ast.Call, feature: str, name: str) -> tuple[ast.expr, Any]:
        if feature in ("grid", "gridsize"):
            return self.grid(node, feature)
        if feature in ("shared.array", "local.array"):
            return self.array(node, feature, name)
        if feature in FENCES:
            self.shared.fences = True
            return ast.Constant(None), OTHER
        if feature.startswith("atomic."):
            return self.atomic(node, feature.removeprefix("atomic."))
        operands = [self.typed(*self.expression(argument)) for argument in node.args]
        if feature in ("popc", "clz", "ffs", "brev") and node.args:
            operands[0] = self.of_own_width(node.args[0], operands[0])
        if node.keywords:
            raise self.unsupported(node, f"a keyword in cuda.{feature}")
        expected = OPERANDS.get(feature, 1)
        if feature not in COLLECTIVES and feature in FEATURES and len(operands) != expected:
            raise self.mistyped(
                node, f"cuda.{feature} takes {expected} values, got {len(operands)}"
            )
        if feature == "syncthreads":
            return self.wait(node, None)
        if feature in BARRIERS:
            return self.wait(node, BARRIERS[feature], *operands)
        if feature == "activemask":
            return self.wait(node, feature)
        if feature in COLLECTIVES:
            if feature == "syncwarp" and not operands:
                operands = [ast.Constant(0xFFFFFFFF)]
            if len(operands) != COLLECTIVES[feature] + 1:
                raise self.mistyped(node, f"cuda.{feature} takes a mask and its operands")
            return self.wait(node, feature, *operands)
        if feature == "lanemask_lt":
            return lane_attribute("lanemask_lt", ast.Load()), 32
        if feature in LANE_FUNCTIONS:
            return call(self.shared.constant(LANE_FUNCTIONS[feature]), *operands), OTHER
        raise self.unsupported(node, f"cuda.{feature}")

    def of_own_width(self, node: ast.expr, made: ast.expr) -> ast.expr:
        """Mark a small int that Numba holds in 32 bits: threadIdx.x and the like, and int32(…)."""
        is_cast = isinstance(node, ast.Call) and numba_dtype(self.resolve(node.func)[1]) == np.int32
        return call("_simt_int32", made) if is_cast or self.feature(node) in LANE_VALUES else made

    def wait(self, node: ast.Call, kind: str | None, *operands: ast.expr) -> tuple:
        """Translate a barrier: the thread yields its key, or (key, kind, operands…)."""
        self.waits = True
        key = self.key(node, "barrier", self.text(node), "")
        if kind is None:
            return ast.Yield(key), OTHER
        parts = [key, ast.Constant(kind), *operands]
        return ast.Yield(ast.Tuple(parts, ast.Load())), OTHER

    def grid(self, node: ast.Call, feature: str) -> tuple[ast.expr, Any]:
        axes = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if axes not in (1, 2, 3) or node.keywords:
            raise self.mistyped(node, f"cuda.{feature} takes 1, 2 or 3")
        parts = [lane_attribute(f"{feature}_{axis}", ast.Load()) for axis in "xyz"[:axes]]
        if axes == 1:
            return parts[0], SIZE
        return ast.Tuple(parts, ast.Load()), (SIZE,) * axes

    def atomic(self, node: ast.Call, name: str) -> tuple[ast.expr, Any]:
        from tiled_matmul.microscope.cuda.memory import ATOMICS

        if name == "compare_and_swap" and len(node.args) == 3:
            zero = ast.copy_location(ast.Constant(0), node)
            arguments, name = [node.args[0], zero, *node.args[1:]], "cas"
        else:
            arguments = node.args
        if name not in ATOMICS:
            raise self.unsupported(node, f"cuda.atomic.{name}")
        if node.keywords or len(arguments) != 2 + ATOMIC_OPERANDS.get(name, 1):
            raise self.mistyped(node, f"cuda.atomic.{name} takes an array, an index and a value")
        array, _ = self.expression(arguments[0])
        place = arguments[1]
        parts = place.elts if isinstance(place, ast.Tuple) else [place]
        indices = [self.index(part)[0] for part in parts]
        operands = [self.typed(*self.expression(argument)) for argument in arguments[2:]]
        called = self.text(arguments[0])
        key = self.key(node, "atomic", self.text(node), called)
        made = ast.Call(
            ast.Attribute(array, "atomic", ast.Load()),
            [
                ast.Constant(name),
                ast.Tuple(indices, ast.Load()),
                ast.Tuple(operands, ast.Load()),
                key,
            ],
            [],
        )
        return made, OTHER

    # Names from outside the function.

    def dotted(self, node: ast.expr) -> tuple[ast.Name, list[str]] | None:
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return None
        return node, names[::-1]

    def feature(self, node: ast.expr) -> str | None:
        """Return "syncthreads" or "threadIdx.x" for a name that belongs to numba.cuda."""
        parts = self.dotted(node)
        if parts is None:
            return None
        root, names = parts
        defined, value = self.lookup(root.id)
        if not defined:
            return None
        while names and value is not self.shared.cuda and isinstance(value, types.ModuleType):
            value, names = getattr(value, names[0], None), names[1:]
        if value is self.shared.cuda:
            feature = ".".join(names)
            known = feature.split(".")[0]
            if known in FEATURES:
                return feature
            # Types and functions of the host are looked up like other names.
            attribute = getattr(value, known, None) if known else None
            if known and (numba_dtype(attribute) is not None or is_device_function(attribute)):
                return None
            return feature or None
        known = self.shared.features.get(id(value))
        return None if known is None else ".".join([known, *names])

    def lookup(self, *names: str) -> tuple[bool, Any]:
        defined, value = _outside(self.function, *names)
        self.shared.outside[self.function, *names] = value
        return defined, value

    def resolve(self, node: ast.expr) -> tuple[bool, Any]:
        """Return (whether a dotted name exists, its Python object)."""
        parts = self.dotted(node)
        if parts is None:
            return False, None
        root, names = parts
        return self.lookup(root.id, *names)
