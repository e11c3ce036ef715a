"""Find conditions on a GPU's name, where a notebook should ask for a property of the GPU.

A verdict that depends on the name "H200" differs on an H100, although both cards compute alike.
Compute capability, multiprocessors, memory and peak rates are properties that can be asked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tiled_matmul.machine.device import PEAKS

# A100-SXM4-80GB also goes by A100. "GH200" is another card; no letter or digit may come before.
_MODELS = sorted({re.split(r"[- ](?!\d)|-", name)[0] for name in PEAKS} | {*PEAKS}, key=len)
_CARD = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, reversed(_MODELS)))})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
# Methods and functions that compare one text with another.
_COMPARING = {"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch"}
_COMPARING |= {"fnmatch", "fnmatchcase", "findall", "finditer", "__contains__", "__eq__"}
_PROPERTIES = "ask for a property (capability, multiprocessors, memory, peak rates)"


def names_asked_for(source: str) -> Iterator[str]:
    """Yield a message for each condition of `source` on a GPU's name.

    Conditions are comparisons, patterns of `match`, calls such as `startswith`, and look-ups in a
    dict of the machine's own name. Names that are only printed, compiled for, or looked up in the
    data sheets are not conditions. A source that is no Python has none.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    cards = _assigned(tree)
    for node in ast.walk(tree):
        if any(_is_card(part, cards) or _is_own_name(part) for part in _asked(node)):
            text = " ".join((ast.get_source_segment(source, node) or "").split())
            yield f"asks for a GPU by name: {text!r}; {_PROPERTIES}"


def _assigned(tree: ast.AST) -> set[str]:
    """Return the variables that are given a text with a card's name, or several of them."""
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) or node.value is None:
            continue
        values = node.value.elts if isinstance(node.value, _SEVERAL) else [node.value]
        if any(_is_card(value, set()) for value in values):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


_SEVERAL = (ast.Tuple, ast.List, ast.Set)


def _asked(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a condition that must not be a GPU's name."""
    if isinstance(node, ast.Compare):
        for side in (node.left, *node.comparators):
            yield side
            if isinstance(side, _SEVERAL):
                yield from side.elts
            if isinstance(side, ast.Call):  # machine.name.lower()
                yield side.func.value if isinstance(side.func, ast.Attribute) else side.func
    elif isinstance(node, ast.MatchValue):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        if name in _COMPARING:
            yield from node.args
            for argument in node.args:
                yield from argument.elts if isinstance(argument, _SEVERAL) else ()
            if isinstance(node.func, ast.Attribute):
                yield node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        if _is_own_name(node.slice):
            yield node.slice


def _is_card(node: ast.AST, cards: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in cards
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _CARD.search(node.value) is not None
    return False


def _is_own_name(node: ast.AST) -> bool:
    """Whether `node` is `machine.name`, `gpu.name`, or a call of `get_device_name`."""
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = called or (node.func.id if isinstance(node.func, ast.Name) else "")
        return called == "get_device_name"
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    if isinstance(owner, ast.Call):  # torch.cuda.get_device_properties(0).name
        name = getattr(owner.func, "attr", "")
    return name in ("machine", "gpu", "get_device_properties")
