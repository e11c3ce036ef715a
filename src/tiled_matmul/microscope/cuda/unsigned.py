"""Insert the casts of `kit.unsigned` into the syntax tree of a kernel with unsigned integers.

`source.read` does this for every marked function. The interpreter runs this tree; for the compiler,
`kit.integers` then writes the casts as operations on 32 bits. A cast keeps the original node, for
messages and for that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tiled_matmul.microscope.cuda.names import LANE_VALUES, RANGES, names_outside

MARK = "has_unsigned_integers"
CAST = "_uint64"  # the name of the type in a tree with casts
COMPARED = (min, max, abs)
NOT_CAST = ("grid", "gridsize")


def is_marked(function: Callable) -> bool:
    """Return whether the function is decorated with `kit.unsigned.unsigned`."""
    return hasattr(function, MARK)


def cast_type() -> dict[str, Any]:
    """Return {CAST: uint64}, the name that a tree with casts needs in addition."""
    from numba import uint64

    return {CAST: uint64}


def with_casts(
    function: Callable, tree: ast.FunctionDef, place: Callable[[ast.AST], str]
) -> ast.FunctionDef:
    """Return the tree of `function` with casts; it changes `tree` itself.

    `place` returns a node's line for messages. Raises ValueError for a negative constant, for
    cuda.grid, and for a name that is not defined yet.
    """
    writer = _Writer(function, place)
    tree.body = [writer.visit(statement) for statement in tree.body]
    return ast.fix_missing_locations(tree)


def as_written(node: ast.AST) -> ast.AST:
    """Return the expression without inserted casts; it changes `node` itself."""
    return _Eraser().visit(node)


class _Eraser(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        return self.generic_visit(getattr(node, "written", node))


class _Writer(ast.NodeTransformer):
    def __init__(self, function: Callable, place: Callable[[ast.AST], str]) -> None:
        from numba import cuda

        self.place, self.cuda = place, cuda
        self.local = set(function.__code__.co_varnames)
        self.known = names_outside(function)

    def cast(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call) and hasattr(node, "written"):
            return node
        made = ast.Call(ast.Name(CAST, ast.Load()), [node], [])
        made.written = node
        return ast.copy_location(made, node)

    def outside(self, node: ast.AST) -> Any:
        """Return the value of a name, plain or dotted, from outside the kernel, or None."""
        if isinstance(node, ast.Attribute):
            return getattr(self.outside(node.value), node.attr, None)
        if not isinstance(node, ast.Name) or node.id in self.local:
            return None
        if node.id not in self.known:
            raise ValueError(f"{node.id} is not defined yet, {self.place(node)}")
        return self.known[node.id]

    def feature(self, node: ast.AST) -> str:
        """Return "threadIdx.x" for cuda.threadIdx.x, and "" for names outside numba.cuda."""
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        return ".".join(reversed(names)) if names and self.outside(node) is self.cuda else ""

    def is_constant(self, node: ast.AST) -> bool:
        """Return whether it is a constant integer, written as a number or a name."""
        value = node.value if isinstance(node, ast.Constant) else self.outside(node)
        return type(value) is int

    def is_bare(self, node: ast.AST) -> bool:
        """Return whether it is only a constant or a tuple of them, such as a shape or an index."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(map(self.is_bare, node.elts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node = node.operand
        return isinstance(node, ast.Constant) or self.is_constant(node)

    def unless_bare(self, node: ast.expr) -> ast.expr:
        return node if self.is_bare(node) else self.visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:  # noqa: N802
        return self.cast(node) if self.is_constant(node) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802
        return self.cast(node) if self.is_constant(node) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # noqa: N802
        of_the_lane = self.feature(node) in LANE_VALUES
        of_an_array = node.attr == "size" and self.outside(node) is None
        return self.cast(node) if of_the_lane or of_an_array or self.is_constant(node) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:  # noqa: N802
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides"):
            return self.cast(node)
        node.value = self.visit(node.value)
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts = [self.unless_bare(part) for part in node.slice.elts]
        elif not isinstance(node.slice, ast.Slice):
            node.slice = self.unless_bare(node.slice)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        feature = self.feature(node.func)
        if feature in NOT_CAST:
            raise ValueError(
                f"cuda.{feature} has a sign: write it with threadIdx, {self.place(node)}"
            )
        if feature.split(".")[0] in ("shared", "local", "const"):
            return node
        function = self.outside(node.func)
        if function is len:
            return self.cast(node)
        if any(function is each for each in RANGES):
            node.args = [self.cast(self.visit(end)) for end in node.args]
        elif any(function is each for each in COMPARED):
            node.args = [self.visit(argument) for argument in node.args]
        else:
            node.args = [self.unless_bare(argument) for argument in node.args]
            for keyword in node.keywords:
                keyword.value = self.unless_bare(keyword.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802
        node.left = self.visit(node.left)
        power = isinstance(node.op, ast.Pow)  # Numba writes x ** 2 as a product
        node.right = self.unless_bare(node.right) if power else self.visit(node.right)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802
        if isinstance(node.op, ast.USub) and self.is_constant(node.operand):
            raise ValueError(f"an unsigned integer is never negative, {self.place(node)}")
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:  # noqa: N802
        value, target = node.value, node.targets[0]
        if (
            isinstance(value, ast.Attribute)
            and value.attr in ("shape", "strides")
            and isinstance(target, ast.Tuple)
        ):
            sizes = [
                self.cast(ast.Subscript(value, ast.Constant(axis), ast.Load()))
                for axis in range(len(target.elts))
            ]
            node.value = ast.copy_location(ast.Tuple(sizes, ast.Load()), value)
            return node
        return self.generic_visit(node)
