"""Shapes and other constants that Numba must know before a kernel runs, a part of `rewrite`."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiled_matmul.microscope.cuda.kinds import ARRAY
from tiled_matmul.microscope.cuda.trees import lane_method, read_name

# The instructions of an expression that Python has computed when it compiled it.
FOLDED = {"RESUME", "NOP", "LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST", "RETURN_VALUE"}


def own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside of it."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield from own_nodes(node)


def stored(tree: ast.AST) -> list[str]:
    """Return each name that a function gives a value, as often as it does."""
    names = [n.id for n in own_nodes(tree) if isinstance(n, ast.Name) and is_store(n)]
    return names + [n.name for n in own_nodes(tree) if isinstance(n, ast.FunctionDef)]


def is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def folded(node: ast.AST) -> Any:
    """Return the value of `2 * 4` or `(4, 5)[1]`, which Python itself computes, else None."""
    if any(isinstance(each, (ast.Name, ast.Call, ast.Yield)) for each in ast.walk(node)):
        return None
    try:
        code = compile(ast.Expression(node), "", "eval")
    except (SyntaxError, TypeError, ValueError):
        return None
    return eval(code) if FOLDED >= {step.opname for step in dis.get_instructions(code)} else None


def part_at(whole: tuple, place: Any) -> Any:
    """Return whole[place], or None if there is no such element."""
    inside = isinstance(place, slice) or -len(whole) <= place < len(whole)
    return whole[place] if inside else None


def _is_constant(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return type(value) is int


class Shapes:
    """The methods of the translator for constants and for new arrays."""

    def constant_of(self, node: ast.expr, names: tuple[str, ...] = ()) -> Any:
        """Return the int or tuple that Numba knows this to be before the kernel runs, or None.

        It knows numbers, what Python computes of numbers, names from outside the kernel, and local
        names for such values; it does not compute with names. `names` are those looked up already.
        """
        value = folded(node)
        if isinstance(node, ast.Name) and node.id not in self.locals:
            value = self.lookup(node.id)[1]
        elif isinstance(node, ast.Name) and node.id not in names:
            value = self.constant_of_local(node.id, names)
        elif isinstance(node, ast.Tuple):
            value = tuple(self.constant_of(part, names) for part in node.elts)
        elif isinstance(node, ast.Subscript):
            whole, place = self.constant_of(node.value, names), self.constant_place(node.slice)
            if isinstance(whole, tuple) and place is not None:
                value = part_at(whole, place)
        return value if _is_constant(value) else None

    def constant_place(self, node: ast.expr) -> Any:
        """Return a constant index of a tuple, an int or a slice, or None if it is computed."""
        if not isinstance(node, ast.Slice):
            place = self.constant_of(node)
            return place if type(place) is int else None
        ends = [end and self.constant_of(end) for end in (node.lower, node.upper, node.step)]
        given = (node.lower, node.upper, node.step)
        return slice(*ends) if [e is None for e in ends] == [g is None for g in given] else None

    def constant_of_local(self, name: str, names: tuple[str, ...]) -> Any:
        """Return the constant that a local name is, if it is assigned only once, else None."""
        if name in self.parameters or stored(self.source.tree).count(name) != 1:
            return None
        for node in own_nodes(self.source.tree):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            for target in targets if isinstance(node, (ast.Assign, ast.AnnAssign)) else ():
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                at = [i for i, p in enumerate(parts) if isinstance(p, ast.Name) and p.id == name]
                if not at or node.value is None:
                    continue
                value = self.constant_of(node.value, (*names, name))
                if parts == [target]:
                    return value
                return value[at[0]] if isinstance(value, tuple) and len(value) > at[0] else None
        return None

    def array(self, node: ast.Call, feature: str, name: str) -> tuple[ast.expr, Any]:
        options = dict(zip(("shape", "dtype", "alignment", "more"), node.args, strict=False))
        options |= {keyword.arg: keyword.value for keyword in node.keywords}
        if not {"shape", "dtype"} <= set(options) <= {"shape", "dtype", "alignment"}:
            raise self.mistyped(node, f"cuda.{feature} takes shape, dtype and alignment")
        shape = ast.Constant(self.shape(options["shape"], feature))
        dtype, _ = self.expression(options["dtype"])
        alignment = self.expression(options["alignment"])[0] if "alignment" in options else None
        where = read_name(self.shared.constant((self.function, node.lineno, node.col_offset)))
        name = name or "shared array" if feature == "shared.array" else name or "local array"
        if feature == "local.array":
            return lane_method("local", ast.Constant(name), shape, dtype), ARRAY
        return lane_method(
            "shared", where, ast.Constant(name), shape, dtype, alignment or ast.Constant(None)
        ), ARRAY

    def shape(self, node: ast.expr, feature: str) -> Any:
        """Return a new array's shape. Raises TypingError unless it is constant, as for Numba."""
        known = self.constant_of(node)
        if known is not None:
            return known
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        part = next(part for part in parts if self.constant_of(part) is None)
        value = self.resolve(part)[1] if self.dotted(part) else folded(part)
        if isinstance(value, (bool, float, str, np.generic)):
            kind = type(value).__name__
            raise self.mistyped(
                node, f"the shape of cuda.{feature} takes ints, {self.text(part)} is a {kind}"
            )
        names = [each.id for each in ast.walk(part) if isinstance(each, ast.Name)]
        advice = "give a number, or a name that is defined outside of the kernel"
        if isinstance(part, ast.BinOp) and not self.locals & set(names):
            text = self.text(part)
            advice = f"write SIZE = {text} outside of the kernel and SIZE instead of {text}"
        raise self.mistyped(
            node,
            f"the shape of cuda.{feature} must be a constant: {self.text(part)} is computed; "
            + advice,
        )
