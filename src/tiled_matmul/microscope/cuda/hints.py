"""What to write instead of a construct that a kernel in the interpreter cannot have."""

from __future__ import annotations

import ast
import math

CONSTRUCTS = {
    "Try": "an if that checks beforehand",
    "TryStar": "an if that checks beforehand",
    "With": "its statements without with",
    "ClassDef": "tuples and arrays",
    "Lambda": "a name for it in a line of its own, f = lambda x: x + 1",
    "ListComp": "a loop that fills a cuda.local.array",
    "SetComp": "a loop that fills a cuda.local.array",
    "DictComp": "a loop that fills a cuda.local.array",
    "GeneratorExp": "a loop that adds to a variable",
    "List": "a tuple, or a cuda.local.array if elements change",
    "Dict": "a tuple, or a cuda.local.array if elements change",
    "Set": "a tuple",
    "JoinedStr": "several values in print, print('x', x)",
    "Global": "the name alone: a kernel reads it and cannot change it",
    "Nonlocal": "a return value, which the kernel assigns",
    "Delete": "nothing: a name needs no deletion",
    "Import": "the import above the kernel",
    "ImportFrom": "the import above the kernel",
    "Yield": "a store to an array",
    "Starred": "the elements one by one",
    "NamedExpr": "the assignment in a line of its own",
    "Match": "if and elif",
    "Compare": "== or !=",
}
CALLS = {
    "reversed": "range(n - 1, -1, -1), or a tuple in that order",
    "sorted": "comparisons and swaps",
    "any": "or between the conditions",
    "all": "and between the conditions",
    "enumerate": "enumerate in the head of a for loop",
    "zip": "zip in the head of a for loop",
    "slice": "the slice in brackets, a[0:2]",
    "list": "a tuple, or a cuda.local.array",
    "dict": "a tuple, or a cuda.local.array",
    "set": "a tuple",
    "tuple": "the elements in parentheses",
    "np.zeros": "cuda.local.array and a loop that fills it",
    "np.empty": "cuda.local.array",
    "np.ones": "cuda.local.array and a loop that fills it",
    "np.absolute": "abs(x)",
    "np.abs": "abs(x)",
    "np.sum": "a loop that adds the elements",
    "np.dot": "a loop that adds the products",
}
METHODS = {
    "reshape": "an index computed from the other indices",
    "transpose": ".T",
    "format": "several values in print, print('x', x)",
}
OTHERWISE = "arithmetic, if, for and while on numbers and elements of arrays"


def instead(node: ast.AST) -> str:
    """Return what to write instead of this node."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            return METHODS[node.func.attr]
        if node.keywords:
            return "the arguments by position, without names"
        base, _, last = name.rpartition(".")
        if base in ("np", "numpy") and name not in CALLS:
            return f"math.{last}" if hasattr(math, last) else "operators, or a function of math"
        return CALLS.get(name, "a loop over the elements" if base else OTHERWISE)
    return CONSTRUCTS.get(type(node).__name__, OTHERWISE)
