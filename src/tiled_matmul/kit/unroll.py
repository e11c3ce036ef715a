"""Loop unrolling: `for k in unroll(8):` under `@unrolled`.

    @cuda.jit(max_registers=128)
    @unrolled
    def kernel(a, b, c):
        for k in unroll(BK):
            …

Numba compiles BK copies of the body, which begin with `k = 0`, `k = 1` and so on, so the compiler
knows every index; `unroll(uint64(BK))` gives k that type, as `range` does. The compiler unrolls
short loops by itself, but not ones with as much code as these.
The interpreter runs the kernel as written, with `range` for `unroll`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda.names import RANGES
from tiled_matmul.microscope.cuda.source import Source, read
from tiled_matmul.microscope.cuda.unsigned import cast_type

MAX_COPIES = 1024


def unroll(*ends: int) -> range:
    """Return range(*ends); under `@unrolled` a loop over it is unrolled.

    The ends are constants: numbers, and names defined outside the kernel.
    """
    return range(*ends)


RANGES.add(unroll)


def unrolled(function: Callable) -> Callable:
    """Return `function` with its loops over `unroll(…)` unrolled, to be decorated by `cuda.jit`.

    The result's `as_written` is `function`. Raises ValueError, quoting the line, for a loop with
    break, continue or else, for ends that are not constant, and if there is no loop to unroll.
    """
    written = getattr(function, "as_written", function)
    source = read(written)
    writer = _Writer(written, source)
    tree = writer.visit(copy.deepcopy(source.tree))
    if not writer.loops:
        raise ValueError(f"{source.name} has no loop over unroll(…)")
    made = compile_tree(written, replace(source, tree=tree))
    made.is_unrolled = True
    return made


class _Writer(ast.NodeTransformer):
    """Unrolls outer loops first, because the ends of an inner loop may use the outer index."""

    def __init__(self, function: Callable, source: Source) -> None:
        self.source = source
        self.loops = 0
        self.known = {**vars(builtins), **cast_type(), **function.__globals__}
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.known |= {name: cell.cell_contents for name, cell in cells}
        for name in function.__code__.co_varnames:
            self.known.pop(name, None)

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802
        if not isinstance(node.iter, ast.Call) or not self.is_unroll(node.iter.func):
            return self.generic_visit(node)
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.error("unroll needs a loop over one name, without else", node)
        for jump in _jumps(node.body):
            word = type(jump).__name__.lower()
            raise self.error(f"an unrolled loop can have no {word}", jump)
        self.loops += 1
        out: list[ast.stmt] = []
        for index, value in self.indices(node.iter):
            self.known[node.target.id] = index
            head = ast.Assign([ast.Name(node.target.id, ast.Store())], value)
            out.append(ast.copy_location(head, node))
            for statement in copy.deepcopy(node.body):
                made = self.visit(statement)
                out += made if isinstance(made, list) else [made]
        self.known.pop(node.target.id, None)
        return out or ast.copy_location(ast.Pass(), node)

    def visit_Name(self, node: ast.Name) -> ast.Name:  # noqa: N802
        if self.is_unroll(node):
            raise self.error("unroll is allowed in `for … in unroll(…)` only", node)
        return node

    def is_unroll(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.known.get(node.id) is unroll

    def indices(self, call: ast.Call) -> Iterator[tuple[int, ast.expr]]:
        """Yield the index of each iteration, as a number and as an expression."""
        ends = [self.constant(end) for end in call.args]
        if call.keywords or not 1 <= len(ends) <= 3:
            raise self.error("unroll takes one to three numbers", call)
        typed = [
            end.func
            for end, value in zip(call.args, ends, strict=True)
            if isinstance(end, ast.Call) and isinstance(value, np.integer)
        ]
        numbers = range(*(int(end) for end in ends))
        if len(numbers) > MAX_COPIES:
            raise self.error(f"{len(numbers)} copies are more than {MAX_COPIES}", call)
        for number in numbers:
            value: ast.expr = ast.Constant(number)
            if typed:
                value = ast.Call(copy.deepcopy(typed[0]), [value], [])
            yield number, value

    def constant(self, node: ast.expr) -> Any:
        try:
            value = eval(compile(ast.Expression(node), "", "eval"), self.known)
        except NameError as error:
            raise self.error(f"the ends of unroll must be constants ({error})", node) from None
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise self.error(f"the ends of unroll are ints, got {value!r}", node)
        return value

    def error(self, what: str, node: ast.AST) -> ValueError:
        return ValueError(f"{what}, {self.source.place(node)}")


def _jumps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the `break` and `continue` statements of this loop."""
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue)):
            yield node
        elif not isinstance(node, (ast.For, ast.While)):
            yield from _jumps([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])


def compile_tree(function: Callable, source: Source) -> Callable:
    """Compile the source's tree to a function with the globals and line numbers of `function`.

    Its `as_written` is `function`.
    """
    cells = {name: types.CellType(value) for name, value in cast_type().items()}
    cells |= zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    module = ast.parse("def _around():\n    " + "".join(f"{name} = " for name in cells) + "None")
    tree = ast.fix_missing_locations(source.tree)
    module.body[0].body.append(tree)
    code = compile(module, source.file, "exec")
    while code.co_name != tree.name:
        code = next(
            each
            for each in code.co_consts
            if isinstance(each, types.CodeType) and each.co_name in ("_around", tree.name)
        )
    made = copied(function, code=code, closure=tuple(cells[name] for name in code.co_freevars))
    made.as_written = function
    return made


def copied(function: Callable, constants: dict | None = None, **parts: Any) -> Callable:
    """Return a copy of `function`, with `constants` replacing some of its globals.

    `parts` may hold a `code` object and a `closure` that replace its own.
    """
    made = types.FunctionType(
        parts.get("code", function.__code__),
        {**function.__globals__, **constants} if constants else function.__globals__,
        function.__name__,
        function.__defaults__,
        parts.get("closure", function.__closure__),
    )
    made.__doc__, made.__module__ = function.__doc__, function.__module__
    made.__qualname__ = function.__qualname__
    return made
