"""Loop unrolling: `for k in unroll(8):` under `@unrolled`.

    @cuda.jit(max_registers=128)
    @unrolled
    def kernel(a, b, c):
        for k in unroll(BK):
            …

The compiler makes BK copies of the body, in each of which it knows k; `unroll(uint64(BK))` gives k
that type, as `range` does. It unrolls short loops by itself, but not ones with as much code as
these, unless it is told to. So `@unrolled` marks the loops, and the marks write on a loop's last
branch what `#pragma unroll` writes in CUDA C++: LLVM's `llvm.loop.unroll.full`. Numba itself sees
one copy: it needs five times as long for eight.
The interpreter runs the kernel as written, with `range` for `unroll`.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types as numba_types
from numba.extending import intrinsic

from tiled_matmul.kit import integers
from tiled_matmul.microscope.cuda.names import RANGES, names_outside
from tiled_matmul.microscope.cuda.source import Source, read
from tiled_matmul.microscope.cuda.unsigned import cast_type, is_marked

MAX_COPIES = 1024
FULL = "llvm.loop.unroll.full"


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
    made = compile_tree(written, replace(source, tree=tree), MARKS)
    made.is_unrolled = True
    return made


# The marks: calls at the end of a loop's body and after the loop, which make no instruction.


@intrinsic
def _end_of_body(typingctx):
    """Remember this block, which Numba is about to end with the branch back to the loop's head."""

    def generate(context, builder, signature, arguments):
        builder.function.end_of_body = builder.block
        return context.get_dummy_value()

    return numba_types.void(), generate


@intrinsic
def _end_of_loop(typingctx):
    """Ask LLVM, on the branch of the block remembered last, to unroll that loop completely."""

    def generate(context, builder, signature, arguments):
        module = builder.module
        full = module.add_metadata([FULL])
        loop = module.add_metadata([f"loop {len(module.metadata)}"])  # one of its own
        loop.operands = loop, full  # LLVM takes a node that begins with itself for a loop's
        builder.function.end_of_body.terminator.set_metadata("llvm.loop", loop)
        return context.get_dummy_value()

    return numba_types.void(), generate


UNROLLED = "_range"
MARKS = {UNROLLED: range, "_end_of_body": _end_of_body, "_end_of_loop": _end_of_loop}


class _Writer(ast.NodeTransformer):
    """Marks the loops over `unroll(…)`, which become loops over `range(…)`."""

    def __init__(self, function: Callable, source: Source) -> None:
        self.source = source
        self.loops = 0
        self.known = cast_type() | names_outside(function)

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802
        if not isinstance(node.iter, ast.Call) or not self.is_unroll(node.iter.func):
            return self.generic_visit(node)
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.error("unroll needs a loop over one name, without else", node)
        for jump in _jumps(node.body):
            word = type(jump).__name__.lower()
            raise self.error(f"an unrolled loop can have no {word}", jump)
        self.check_ends(node.iter)
        self.loops += 1
        node.iter.func = ast.copy_location(ast.Name(UNROLLED, ast.Load()), node.iter.func)
        node = self.generic_visit(node)
        node.body.append(_call("_end_of_body", node.body[-1]))
        return [node, _call("_end_of_loop", node)]

    def visit_Name(self, node: ast.Name) -> ast.Name:  # noqa: N802
        if self.is_unroll(node):
            raise self.error("unroll is allowed in `for … in unroll(…)` only", node)
        return node

    def is_unroll(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.known.get(node.id) is unroll

    def check_ends(self, call: ast.Call) -> None:
        """Raise ValueError unless the ends are constants, and not too far apart."""
        ends = [int(self.constant(end)) for end in call.args]
        if call.keywords or not 1 <= len(ends) <= 3:
            raise self.error("unroll takes one to three numbers", call)
        if len(range(*ends)) > MAX_COPIES:
            raise self.error(f"{len(range(*ends))} copies are more than {MAX_COPIES}", call)

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


def _call(name: str, place: ast.AST) -> ast.stmt:
    """Return a statement that calls a mark, at a statement's place."""
    call = ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))
    return ast.fix_missing_locations(ast.copy_location(call, place))


def _jumps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the `break` and `continue` statements of this loop."""
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue)):
            yield node
        elif not isinstance(node, (ast.For, ast.While)):
            yield from _jumps([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])


def compile_tree(
    function: Callable, source: Source, names: Mapping[str, Any] | None = None
) -> Callable:
    """Compile the source's tree to a function with the globals and line numbers of `function`.

    The tree may also use the type of casts and these `names`. If `function` is marked as unsigned,
    its integers are as in C: see `kit.integers`. Its `as_written` is `function`.
    """
    known = {**cast_type(), **integers.NAMES, **(names or {})}
    cells = {name: types.CellType(value) for name, value in known.items()}
    cells |= zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    module = ast.parse("def _around():\n    " + "".join(f"{name} = " for name in cells) + "None")
    tree = ast.fix_missing_locations(source.tree)
    if is_marked(function):
        tree = integers.as_in_c(function, tree, UNROLLED)
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
