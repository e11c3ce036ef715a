"""Functions defined inside a kernel, a part of `rewrite`'s translator.

Such a function becomes a device function. The kernel's variables that it uses become parameters:
each call passes the values that they have then.
"""

from __future__ import annotations

import ast
from typing import Any

from tiled_matmul.microscope.cuda.shapes import own_nodes, stored
from tiled_matmul.microscope.cuda.source import Source


def names_of(tree: ast.FunctionDef) -> list[str]:
    return [parameter.arg for parameter in tree.args.args]


class Inner:
    """The methods of the translator for functions inside a kernel."""

    def do_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:  # noqa: N802
        more = node.args.vararg, node.args.kwarg, node.args.kwonlyargs, node.args.posonlyargs
        if any(more) or node.decorator_list:
            what = "a function in a kernel with a decorator, *, ** or /"
            raise self.unsupported(node, what, "the function outside of the kernel")
        if stored(self.source.tree).count(node.name) > 1 or node.name in self.parameters:
            raise self.unsupported(node, f"a second meaning of {node.name}", "another name")
        for default in node.args.defaults:
            if not isinstance(default, ast.Constant):
                raise self.unsupported(default, "a default that is no number", "an argument")
        self.inner[node.name] = node
        return [ast.copy_location(ast.Pass(), node)]

    def named_lambda(self, name: str, node: ast.Lambda) -> list[ast.stmt]:
        """Translate `name = lambda …: …` as a def; the node is one and the same in all rounds."""
        if node not in self.lambdas:
            back = ast.copy_location(ast.Return(node.body), node)
            made = ast.FunctionDef(name, node.args, [back], [], None)
            made.type_params = []
            self.lambdas[node] = ast.copy_location(made, node)
        return self.do_FunctionDef(self.lambdas[node])

    def captured(self, tree: ast.FunctionDef, *callers: ast.FunctionDef) -> list[str]:
        """Return the variables of this kernel that a function inside of it uses, itself or not."""
        if tree in callers:
            return []
        own = {*names_of(tree), *stored(tree)}
        names = {node.id for node in own_nodes(tree) if isinstance(node, ast.Name)} - own
        found = names & self.locals - set(self.inner)
        for name in names & set(self.inner):
            further = set(self.captured(self.inner[name], tree, *callers))
            if further & own:
                what = f"{min(further & own)}, which {name} takes from the kernel,"
                raise self.unsupported(tree, what, f"another name in {tree.name}")
            found |= further
        return sorted(found)

    def inner_call(self, node: ast.Call) -> tuple[ast.expr, Any]:
        tree = self.inner[node.func.id]
        if tree in self.shared.open:
            raise self.unsupported(node, f"{tree.name}, which calls itself,", "a loop")
        if node.keywords:
            raise self.mistyped(node, f"{tree.name} takes its arguments by position, without names")
        names, defaults = names_of(tree), tree.args.defaults
        missing = len(names) - len(node.args)
        if not 0 <= missing <= len(defaults):
            raise self.mistyped(node, f"{tree.name} takes ({', '.join(names)})")
        captured = self.captured(tree)
        given = [*node.args, *defaults[len(defaults) - missing :]]
        given += [ast.copy_location(ast.Name(name, ast.Load()), node) for name in captured]
        source = Source(tree.name, self.source.file, tree)
        return self.enter(
            [self.expression(argument) for argument in given],
            lambda known: self.compile(source, [*names, *captured], known),
        )
