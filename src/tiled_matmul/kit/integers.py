"""What `@unsigned` gives the compiler: integers as in CUDA C, and loops that count.

Three habits of Numba's keep the compiler from seeing what it sees in a kernel in CUDA C:

* A loop over `range(…)` is Python's iterator: a second number counts the iterations down, and each
  step first asks whether one is left. So the compiler sees neither that k is never negative nor
  that an address only grows by a stride.
* The sum of two integers has 64 bits, whatever they have. So indices fill registers in pairs, and
  fewer loads can be under way at once.
* The sizes of arrays have 64 bits, so stepping down a column takes a sum of two instructions.

So Numba gets a kernel that is `@unsigned` with its integers in 32 bits,

    for k in range(a, b, s):            _at, _end = a, b
        …                               while _at < _end:
                                            k = _at
                                            _at = _add(_at, s)
                                            …

and its arrays with sizes that fit into 32 bits if there are several axes. A sum or product of two
such integers has 32 bits and must fit, as in CUDA C; an array's `.size` has 64, and so has what is
computed with it. An array may have more than 2³¹ elements; an axis of one with several axes may
not, which `kit.launch.launch` checks. The interpreter runs the kernel as written.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types, uint32
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from tiled_matmul.microscope.cuda.names import names_outside

MAX_SIZE = 2**31 - 2**16  # of an array with several axes, along each: a kernel adds a tile to it
I32, I64 = ir.IntType(32), ir.IntType(64)
NO_OVERFLOW = ("nsw", "nuw")


@intrinsic
def _argument(typingctx, thing):
    """Return `thing`: an array with sizes known to fit into 32 bits, an integer without a sign."""
    whole = types.uint64 if isinstance(thing, types.Integer) and thing.signed else thing

    def generate(context, builder, signature, arguments):
        if not isinstance(thing, types.Array) or thing.ndim < 2:
            return context.cast(builder, arguments[0], thing, whole)
        array = context.make_array(thing)(context, builder, arguments[0])
        sizes = cgutils.unpack_tuple(builder, array.shape, thing.ndim)
        # Extended with a sign: for one without, the compiler makes no IMAD.WIDE.
        known = [builder.sext(builder.trunc(size, I32), I64) for size in sizes]
        array.shape = cgutils.pack_array(builder, known)
        return array._getvalue()

    return whole(thing), generate


@intrinsic
def _whole(typingctx, number):
    """Return `number` as an integer without a sign, in 32 bits if it has no more."""
    if not isinstance(number, types.Integer | types.Boolean):
        raise TypingError(f"the ends of a range are integers, got {number}")
    narrow = isinstance(number, types.Boolean) or number.bitwidth <= 32
    to = types.uint32 if narrow else types.uint64

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], number, to)

    return to(number), generate


@intrinsic
def _size(typingctx, shape, axis):
    """Return shape[axis], for a constant axis: in 32 bits if there are several axes."""
    if not isinstance(shape, types.BaseTuple) or not isinstance(axis, types.IntegerLiteral):
        raise TypingError(f"a size is shape[axis], with a constant axis, got {shape} and {axis}")
    to = types.uint32 if len(shape) > 1 else types.uint64
    number = axis.literal_value

    def generate(context, builder, signature, arguments):
        size = builder.extract_value(arguments[0], number)
        return context.cast(builder, size, shape[number], to)

    return to(shape, axis), generate


def _in_32_bits(operation: Callable, instruction: str, flags: tuple[str, ...] | None) -> Callable:
    """Return an operation that gives 32 bits for two of 32 bits, and is Numba's for all others."""

    @intrinsic
    def operate(typingctx, x, y):
        if x == y == types.uint32:

            def narrow(context, builder, signature, arguments):
                more = {} if flags is None else {"flags": flags}
                return getattr(builder, instruction)(*arguments, **more)

            return types.uint32(x, y), narrow
        numba = typingctx.resolve_function_type(operation, (x, y), {})

        def generate(context, builder, signature, arguments):
            given = zip(arguments, signature.args, numba.args, strict=True)
            cast = [context.cast(builder, value, *kinds) for value, *kinds in given]
            return context.get_function(operation, numba)(builder, cast)

        return numba.return_type(x, y), generate

    return operate


# A difference below zero wraps around; then it must not be said to fit.
OPERATIONS = {
    ast.Add: ("_add", _in_32_bits(operator.add, "add", NO_OVERFLOW)),
    ast.Sub: ("_sub", _in_32_bits(operator.sub, "sub", ())),
    ast.Mult: ("_mul", _in_32_bits(operator.mul, "mul", NO_OVERFLOW)),
    ast.FloorDiv: ("_div", _in_32_bits(operator.floordiv, "udiv", None)),
    ast.Mod: ("_mod", _in_32_bits(operator.mod, "urem", None)),
}
NAMES = {
    "_argument": _argument,
    "_whole": _whole,
    "_size": _size,
    "_uint32": uint32,
    **dict(OPERATIONS.values()),
}


def as_in_c(function: Callable, tree: ast.FunctionDef, unrolled: str = "") -> ast.FunctionDef:
    """Return the tree of the unsigned `function` for Numba; it changes `tree` itself.

    `tree` has the casts of `microscope.cuda.unsigned`. A loop stays as it is if it has an `else`,
    several targets, or goes over another iterable than `range`; `unrolled` is what loops to be
    unrolled go over.
    """
    writer = _Writer(function, unrolled)
    tree.body = writer.statements(tree.body)
    start = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    given = [
        _at(tree.body[start], _assign(each.arg, _call("_argument", _read(each.arg))))
        for each in tree.args.args
    ]
    tree.body[start:start] = given
    return ast.fix_missing_locations(tree)


class _Writer(ast.NodeTransformer):
    """Writes operations on integers in 32 bits, and loops over `range(…)` as loops that count."""

    def __init__(self, function: Callable, unrolled: str) -> None:
        self.loops, self.unrolled = 0, unrolled
        self.known = names_outside(function)

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        made = map(self.visit, nodes)
        return [one for each in made for one in (each if isinstance(each, list) else [each])]

    def visit_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        if not hasattr(node, "written"):
            return self.generic_visit(node)
        of, number = node.written, self.constant(node.written)
        if isinstance(of, ast.Attribute) and of.attr == "size":
            return node
        if isinstance(of, ast.Subscript) and getattr(of.value, "attr", "") in ("shape", "strides"):
            if of.value.attr == "strides" or not isinstance(of.slice, ast.Constant):
                return node
            return ast.copy_location(_call("_size", of.value, of.slice), node)
        if number is None and not isinstance(of, ast.Attribute):
            return ast.copy_location(_call("_whole", self.visit(node.args[0])), node)
        if number is not None and number > MAX_SIZE:
            return node
        return ast.copy_location(_call("_uint32", node.args[0]), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        if type(node.op) not in OPERATIONS:
            return node
        name, _ = OPERATIONS[type(node.op)]
        return ast.copy_location(_call(name, node.left, node.right), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:  # noqa: N802
        self.generic_visit(node)
        if type(node.op) not in OPERATIONS or not isinstance(node.target, ast.Name):
            return node
        name, _ = OPERATIONS[type(node.op)]
        made = _assign(node.target.id, _call(name, _read(node.target.id), node.value))
        return _at(node, made)

    def visit_For(self, node: ast.For) -> Any:  # noqa: N802
        call = node.iter
        over = (
            call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        )
        if not over or over != self.unrolled:
            node.iter = self.visit(call)
        node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
        if node.orelse or not isinstance(node.target, ast.Name):
            return node
        self.loops += 1
        at, last = f"_at{self.loops}", f"_end{self.loops}"
        if over and over == self.unrolled:  # a range has 64 bits, if its ends have no sign
            named = _assign(node.target.id, _call("_uint32", _read(at)))
            node.target = ast.copy_location(ast.Name(at, ast.Store()), node.target)
            node.body.insert(0, _at(node, named))
            return node
        if self.known.get(over) is not range or call.keywords or not 1 <= len(call.args) <= 3:
            return node
        first, end = (_number(0), call.args[0]) if len(call.args) == 1 else call.args[:2]
        step = call.args[2] if len(call.args) == 3 else _number(1)
        grown = _assign(at, _call("_add", _read(at), step))
        body = [_at(node, each) for each in (_assign(node.target.id, _read(at)), grown)]
        loop = ast.While(ast.Compare(_read(at), [ast.Lt()], [_read(last)]), body + node.body, [])
        return [_at(node, each) for each in (_assign(at, first), _assign(last, end), loop)]

    def constant(self, node: ast.expr) -> int | None:
        """Return the integer that an expression is, if it is a constant, or a name of one."""
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.Name):
            value = self.known.get(node.id)
            return value if type(value) is int else None
        return None


def _number(value: int) -> ast.expr:
    return _call("_uint32", ast.Constant(value))


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_read(name), list(arguments), [])


def _read(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _at(place: ast.AST, node: ast.stmt) -> ast.stmt:
    """Return the new statement at the place of another, for messages."""
    return ast.fix_missing_locations(ast.copy_location(node, place))
