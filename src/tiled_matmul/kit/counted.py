"""What `@unsigned` adds for the compiler: loops that count as in C, and sizes of 32 bits.

Numba compiles `for k in range(…)` as Python's iterator: a second number counts the iterations down,
and every step first asks whether one is left. Both stay in the machine code of a loop whose end is
not a constant, and keep the compiler from finding that addresses only grow by a stride. And sizes
have 64 bits, so that stepping down a column takes a sum of two instructions. So a kernel that is
`@unsigned` reaches Numba with

    for k in range(a, b, s):            _k, _end = a, b
        …                               while _k < _end:
                                            k = _k
                                            _k += s
                                            …

and with arrays whose sizes, if there are several, are known to fit into 32 bits. Then the compiler
unrolls the loop, and adds stride × 4 to an address in one IMAD.WIDE. An array may have more than
2³¹ elements, but no axis of one with several axes may: `kit.launch.launch` checks that.
The interpreter runs the kernel as written.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tiled_matmul.microscope.cuda.unsigned import CAST

MAX_SIZE = 2**31 - 1  # of an array with several axes, along each of them
I32, I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def narrowed(typingctx, thing):
    """Return `thing`; if it is an array with several axes, with sizes that have 32 bits."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        if not isinstance(kind, types.Array) or kind.ndim < 2:
            return arguments[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        sizes = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
        # Extended with a sign: for one without, the compiler makes no IMAD.WIDE.
        known = [builder.sext(builder.trunc(size, I32), I64) for size in sizes]
        array.shape = cgutils.pack_array(builder, known)
        return array._getvalue()

    return thing(thing), generate


NAMES = {"_narrowed": narrowed}


def counted(function: Callable, tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return the tree of the unsigned `function` for Numba; it changes `tree` itself.

    A loop stays as it is if it has an `else`, several targets or a step that is not constant.
    """
    tree = _Counter(function).visit(tree)
    start = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    place = tree.body[start]
    for name in reversed([each.arg for each in tree.args.args]):
        narrow = ast.Call(_read("_narrowed"), [_read(name)], [])
        tree.body.insert(start, _at(place, _assign(name, narrow)))
    return ast.fix_missing_locations(tree)


class _Counter(ast.NodeTransformer):
    """Writes loops over `range(…)` as loops that count."""

    def __init__(self, function: Callable) -> None:
        self.loops = 0
        self.known = {**vars(builtins), **function.__globals__}
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.known |= {name: cell.cell_contents for name, cell in cells}
        for name in function.__code__.co_varnames:
            self.known.pop(name, None)

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802
        self.generic_visit(node)
        call = node.iter
        plain = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if not plain or self.known.get(call.func.id) is not range or call.keywords:
            return node
        if node.orelse or not isinstance(node.target, ast.Name) or not 1 <= len(call.args) <= 3:
            return node
        first, end = (_number(0), call.args[0]) if len(call.args) == 1 else call.args[:2]
        step = call.args[2] if len(call.args) == 3 else _number(1)
        if not self.is_positive(step):
            return node
        self.loops += 1
        at, last = f"_at{self.loops}", f"_end{self.loops}"
        test = ast.Compare(_read(at), [ast.Lt()], [_read(last)])
        next_one = ast.BinOp(_read(at), ast.Add(), step)
        body = [_assign(node.target.id, _read(at)), _assign(at, next_one)]
        made = [_assign(at, first), _assign(last, end)]
        loop = ast.While(test, [_at(node, each) for each in body] + node.body, [])
        return [_at(node, each) for each in (*made, loop)]

    def is_positive(self, node: ast.expr) -> bool:
        """Return whether it is a cast of a positive constant."""
        written = ast.fix_missing_locations(ast.Expression(getattr(node, "written", node)))
        try:
            value = eval(compile(written, "", "eval"), dict(self.known))
        except NameError:  # of the kernel
            return False
        return isinstance(value, int | np.integer) and value > 0


def _number(value: int) -> ast.expr:
    made = ast.Call(_read(CAST), [ast.Constant(value)], [])
    made.written = made.args[0]
    return made


def _read(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _at(place: ast.AST, node: ast.stmt) -> ast.stmt:
    """Return the new statement at the place of another, for messages."""
    return ast.fix_missing_locations(ast.copy_location(node, place))
