"""Let the names that an answer's classes bring open the answer's own objects, and no others.

An answer of the kind "values" may have classes, with attributes of any name. `allowed` cannot tell
on which objects such a name is asked for: `x.view` may be a field, and it may be an array's. So the
worker asks when the answer runs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tiled_matmul.grader.allowed import BASES, PUBLIC, dotted
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import MODULES, VALUES

CHECK = "_simt_own"  # a name that no answer may have
MODULE = "answer"  # of the classes of an answer
KNOWN = VALUES.attributes | VALUES.decorators | {*BASES, "np.ndarray"}  # in isinstance


class _Checks(ast.NodeTransformer):
    """Puts `_simt_own(x, "name").name` where `x.name` stands and the name is no known member.

    What is set or deleted is looked at whatever its name: only the answer's own objects are its.
    """

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        known = _is_listed(dotted(node)) or node.attr in VALUES.members or node.attr in PUBLIC
        if known and isinstance(node.ctx, ast.Load):
            return node
        check = ast.Name(CHECK, ast.Load())
        node.value = ast.Call(check, [node.value, ast.Constant(node.attr)], [])
        return node


def _is_listed(name: str | None) -> bool:
    """Is it a module's name that answers have, such as `np.sum`, or the way to one?"""
    root, _, rest = (name or "").partition(".")
    if root not in MODULES.values():
        return False
    if f"{root}.*" in KNOWN and "." not in rest:
        return True
    return name in KNOWN or any(known.startswith(f"{name}.") for known in KNOWN)


def checked(source: str) -> ast.Module:
    """Return an answer's code, in which attributes of unknown names are looked at as it runs."""
    return ast.fix_missing_locations(_Checks().visit(ast.parse(source)))


def guard(space: dict[str, Any]) -> Callable[[Any, str], Any]:
    """Return the check for a namespace of answers.

    It returns an object whose attribute of a name is the answer's own, as one of the answer's
    classes or an object of one has it, and a module that may be asked for it. It raises
    AttributeError for others.
    """
    modules = {id(space[name]): name for name in MODULES.values() if name in space}

    def own(thing: Any, name: str) -> Any:
        module = modules.get(id(thing))
        if module and not name.startswith("_") and KNOWN & {f"{module}.{name}", f"{module}.*"}:
            return thing
        if type(thing) is property and name == "setter":
            return thing
        if type(thing) is super:
            classes = thing.__self_class__.__mro__
        else:
            classes = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
        mine = [vars(one) for one in classes if one.__module__ == MODULE]
        there = [*mine, getattr(thing, "__dict__", {})] if mine else []
        if any(name in names for names in there) or (mine and not _is_there(thing, name)):
            return thing
        if name.startswith("__") and any(key.endswith(name) for names in there for key in names):
            return thing
        raise AttributeError(sentence("error: not its own", name=name, kind=type(thing).__name__))

    return own


def _is_there(thing: Any, name: str) -> bool:
    """Has it an attribute of this name? One that is set first may be new."""
    return any(name in vars(one) for one in (*type(thing).__mro__, *getattr(thing, "__mro__", ())))
