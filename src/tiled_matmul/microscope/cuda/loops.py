"""Rewrite the loops of a kernel, a part of `rewrite`'s translator.

A loop over an array, or over enumerate and zip of arrays, becomes a loop over indices, whose body
begins with the loads of the elements: each load belongs to its iteration.
"""

from __future__ import annotations

import ast
from typing import Any

from tiled_matmul.microscope.cuda import kinds
from tiled_matmul.microscope.cuda.kinds import OTHER, Many, Row, is_int, is_tuple
from tiled_matmul.microscope.cuda.names import RANGES, SMALL, hashable
from tiled_matmul.microscope.cuda.trees import assign, call, read_name, write_name


class Loops:
    """The methods of the translator for loops."""

    def do_While(self, node: ast.While) -> list[ast.stmt]:  # noqa: N802
        test = self.test(node.test)
        loop = self.new_loop(is_while=True)
        tick = call("_simt_tick", ast.Constant(node.lineno), ast.Constant(self.source.name))
        body: list[ast.stmt] = [ast.Expr(tick)]
        iterations = f"_simt_iterations{loop}"
        if self.shared.record:
            body.append(assign(write_name("_simt_path"), call("_simt_next", read_name(iterations))))
        body += self.block(node.body)
        made = ast.copy_location(ast.While(test, body, self.block(node.orelse)), node)
        return self.with_path(made, loop, assign(write_name(iterations), self.paths(loop)))

    def do_For(self, node: ast.For) -> list[ast.stmt]:  # noqa: N802
        iterations, kind = self.iterations(node.iter)
        loop = self.new_loop()
        body: list[ast.stmt] = []
        if isinstance(node.target, ast.Name) and not isinstance(kind, (tuple, Row)):
            name = node.target.id
            self.assigned(name, kind)
            if is_int(kind) and self.env[name] == OTHER:
                body.append(assign(write_name(name), self.typed(read_name(name), kind)))
        else:
            name = self.temporary(kind)
            element = ast.copy_location(read_name(name), node)
            body += self.assign(node.target, element, node)
        body += self.block(node.body)
        target: ast.expr = write_name(name)
        if self.shared.record:
            target = ast.Tuple([target, write_name("_simt_path")], ast.Store())
            iterations = call("_simt_along", iterations, *self.path_of(loop))
        made = ast.For(target, iterations, body, self.block(node.orelse))
        return self.with_path(ast.copy_location(made, node), loop)

    def paths(self, loop: int) -> ast.expr:
        return call("_simt_iterations", *self.path_of(loop))

    def path_of(self, loop: int) -> tuple[ast.expr, ast.expr]:
        return read_name("_simt_path"), ast.Constant(loop)

    def with_path(self, made: ast.For | ast.While, loop: int, *before: ast.stmt) -> list[ast.stmt]:
        """Return a loop after which the path is again that before it."""
        if not self.shared.record:
            return [made]
        outside = f"_simt_outside{loop}"
        back = assign(write_name("_simt_path"), read_name(outside))
        if made.orelse:
            made.orelse.insert(0, back)
        return [assign(write_name(outside), read_name("_simt_path")), *before, made, back]

    def new_loop(self, is_while: bool = False) -> int:
        self.shared.loops.append((len(self.shared.sites), is_while))
        return len(self.shared.loops) - 1

    def iterations(self, node: ast.expr) -> tuple[ast.expr, Any]:
        """Return (the iterable of a for loop, the kind of its elements)."""
        where = ast.Constant(node.lineno), ast.Constant(self.source.name)
        if isinstance(node, ast.Call):
            function = self.resolve(node.func)[1]
            if function in (enumerate, zip):
                return self.together(node, function)
            if self.is_range(node.func):
                ends, kind = self.ends_of_range(node)
                if kind == OTHER:
                    return call("_simt_range", *where, *(self.typed(*end) for end in ends)), OTHER
                iterations = call("_simt_iterations_of", *(end for end, _ in ends))
                small = all(
                    isinstance(end, ast.Constant) and abs(end.value) < 1 << 16 for end, _ in ends
                )
                return (iterations if small else call("_simt_span", iterations, *where)), kind
        if isinstance(node, ast.List):  # Python itself makes a tuple of it
            node = ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)
        value, kind = self.expression(node)
        if isinstance(kind, Many):
            return call("_simt_span", value, *where), kind.part
        if isinstance(kind, tuple):
            return self.alike(value, kind), kinds.part_of(kind)
        if kind is None:
            return value, None
        holder = self.temporary(kind)
        length = call("_simt_length", ast.NamedExpr(write_name(holder), value))
        return call("_simt_iterations_of", length), Row(holder, self.text(node))

    def is_range(self, node: ast.expr) -> bool:
        known, value = self.resolve(node)
        return known and hashable(value) and value in RANGES

    def ends_of_range(self, node: ast.Call) -> tuple[list, Any]:
        """Return (the ends of a range, the kind of its elements, or OTHER for typed scalars)."""
        if node.keywords or not 1 <= len(node.args) <= 3:
            raise self.mistyped(node, "range takes one to three numbers")
        ends = [self.expression(argument) for argument in node.args]
        ints = all(is_int(kind) for _, kind in ends)
        return ends, kinds.of_iterations([kind for _, kind in ends]) if ints else OTHER

    def range_of(self, node: ast.Call) -> tuple[ast.expr, Any]:
        """Translate a range that is a value: `k in range(4)`, `steps = range(4)`."""
        ends, kind = self.ends_of_range(node)
        trees = [end if is_int(each) else call("_simt_truncate", end) for end, each in ends]
        return call("_simt_iterations_of", *trees), Many(63 if kind == OTHER else kind)

    def together(self, node: ast.Call, function: type) -> tuple[ast.expr, Any]:
        """Translate enumerate(…) or zip(…) of a for loop."""
        if node.keywords or (function is enumerate and len(node.args) not in (1, 2)):
            name = function.__name__
            raise self.mistyped(node, f"{name} takes its arguments by position, as in {name}(t, 1)")
        if function is zip:
            parts = [self.iterations(argument) for argument in node.args]
            return call("_simt_zip", *(tree for tree, _ in parts)), tuple(k for _, k in parts)
        values, kind = self.iterations(node.args[0])
        start, count = self.index(node.args[1]) if len(node.args) > 1 else (ast.Constant(0), 0)
        count = kinds.bits(min(63, max(SMALL, count) + 1), count if count else kinds.SIZE)
        return call("_simt_enumerate", values, start), (count, kind)

    def alike(self, made: ast.expr, kind: Any) -> ast.expr:
        """Return a tuple's tree for a use of any of its elements, which must have one type."""
        joined = kinds.part_of(kind)
        same = not isinstance(kind, tuple) or all(part == joined for part in kind)
        return made if same or not kinds.has_other(joined) else call("_simt_alike", made)

    def members(self, node: ast.expr) -> tuple[ast.expr, Any]:
        """Translate the right side of `in`."""
        if isinstance(node, ast.List):
            node = ast.copy_location(ast.Tuple(node.elts, ast.Load()), node)
        made, kind = self.expression(node)
        if is_tuple(kind):
            return self.alike(made, kind), kind
        if kind is not None:
            what = "`in` with anything but a tuple or range(…)"
            raise self.unsupported(node, what, "== in a loop over the elements")
        return made, kind
