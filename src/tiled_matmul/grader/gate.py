"""Decide which part of a cell is the answer, and whether that part may run.

Only what the exercise's function needs is run, so a trial call, an old attempt or a plot in the
same cell does no harm. What is needed may be anything that Python, Numba or Triton accept, except
for what would defeat the exercise: see `allowed`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tiled_matmul.grader import transform
from tiled_matmul.grader.allowed import (
    LIBRARIES,
    OUTSIDE,
    Mistake,
    NotYet,
    Product,
    Refused,
    check,
    describe,
    named,
    parse,
    scopes,
    unparsed,
)
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import MODULES, PYTHON_KINDS, Exercise

MAX_SOURCE = 20_000  # characters
MAX_DEPTH = 60
ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
FUNCTIONS = (*DEFINITIONS, ast.Lambda)


class NotPython(Exception):
    """The cell cannot be read as Python."""


def admit(exercise: Exercise, source: str) -> str:
    """Return what is run of the answer `source`, at the same line numbers.

    Raises NotPython, or Refused with a status and a message.
    """
    tree, source = parsed(source)
    kept = needed(exercise, tree)
    _look_for_commands(kept)
    _look_at_entry(exercise, kept, source)
    aliases = dict(_aliases(exercise, kept, source))
    text = _rewritten(exercise, tree, kept, aliases, source)
    try:
        there = parse(text)
        scopes(text)
    except SyntaxError as error:
        check(exercise, kept, aliases, source, "")
        raise NotYet(sentence("unknown: cut", line=error.lineno)) from None
    check(exercise, kept, aliases, source, text)
    if exercise.kind not in PYTHON_KINDS:
        _one_reading(there, text)
    return text


def meant(source: str) -> str:
    """Return a text that is the same for answers that differ only in comments and spaces, or in
    commands of the notebook between their statements.

    It holds the source itself if that is refused, or no Python, or has a number too long to write.
    """
    try:
        tree = parsed(source)[0]
        tree.body = [one for one in tree.body if not transform.command(getattr(one, "value", one))]
        return f"code: {ast.dump(tree)}"
    except (Refused, NotPython, ValueError):
        return f"text: {source}"


def parsed(source: str) -> tuple[ast.Module, str]:
    """Return (the tree of a cell, the cell as Python)."""
    if len(source) > MAX_SOURCE:
        raise Refused(sentence("forbidden: length", characters=len(source), most=MAX_SOURCE))
    source = transform.plain(source)
    odd = ODD.search(source)
    if odd:
        line = source.count("\n", 0, odd.start()) + 1
        raise Refused(sentence("forbidden: character", line=line, character=ascii(odd[0])))
    try:
        text, magic = transform.python(source)
    except transform.TooMany as error:
        raise NotPython(str(error)) from None
    if magic:
        raise Mistake(sentence("forbidden: cell magic", magic=magic[:40]))
    try:
        tree = parse(text)
        scopes(text)
    except SyntaxError as error:
        raise _syntax(error, source) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error)[:80] or sentence("error: nested")
        raise NotPython(sentence("error: not python", reason=reason)) from None
    if _depth(tree) > MAX_DEPTH:
        raise Refused(sentence("forbidden: depth"))
    return tree, text


def _syntax(error: SyntaxError, source: str) -> NotPython:
    lines, number = source.split("\n"), error.lineno or 0
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    quote = f": `{text[:60]}`" if text else ""
    return NotPython(sentence("error: syntax", line=error.lineno, quote=quote, reason=error.msg))


def without_commands(source: str) -> str:
    """Return a cell as Python, without the statements that run commands. Raises as `admit`."""
    tree, text = parsed(source)
    run = [node for node in tree.body if any(map(transform.command, ast.walk(node)))]
    return _replaced(text, [(node, "pass") for node in run])


def without(text: str, nodes: Iterable[ast.stmt]) -> str:
    """Return a cell without some of its statements; all lines keep their numbers."""
    return _replaced(text, [(_at(node), "") for node in nodes])


def _depth(tree: ast.AST) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


# What the exercise's function needs.


def needed(exercise: Exercise, tree: ast.Module) -> list[ast.stmt]:
    """Return the top-level statements that the entry needs, in their order.

    Names that the exercise gives are set anew for each case, so a statement that sets one is not.
    """
    given = set(exercise.given)
    bound = {node: binds(node) - given for node in tree.body}
    modules = {*MODULES.values()}.union(*(bound[n] for n in tree.body if isinstance(n, IMPORTS)))
    overridden = _overridden(tree)
    left = [node for node in tree.body if node not in overridden]
    setting: dict[str, list[ast.stmt]] = {}
    for node in left:
        for name in sets(node, bound[node], modules):
            setting.setdefault(name, []).append(node)
    wanted, kept, seen = [exercise.entry], set(), {exercise.entry}
    while wanted:
        for node in setting.get(wanted.pop(), ()):
            if node not in kept:
                kept.add(node)
                more = reads(node) - seen
                seen |= more
                wanted += more
    return [node for node in tree.body if node in kept]


def _overridden(tree: ast.Module) -> set[ast.stmt]:
    """Return the functions that a later function of the same name takes the place of."""
    last = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {n for n in tree.body if isinstance(n, ast.FunctionDef) and last[n.name] is not n}


def sets(node: ast.stmt, bound: set[str], modules: set[str]) -> set[str]:
    """Return the names that a statement binds, and the one whose value a method's call changes."""
    changed = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if not changed or not isinstance(node.value.func, ast.Attribute):
        return bound
    root = node.value.func
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return bound | ({root.id} - modules if isinstance(root, ast.Name) else set())


def binds(node: ast.stmt) -> set[str]:
    """Return the top-level names that a statement binds or stores into."""
    if isinstance(node, DEFINITIONS):
        return {node.name}
    if isinstance(node, IMPORTS):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    bound = set()
    for part in _outside_functions(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            bound.add(part.id)
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            while isinstance(part, ast.Subscript | ast.Attribute):
                part = part.value
            bound |= {part.id} if isinstance(part, ast.Name) else set()
        elif isinstance(part, DEFINITIONS):
            bound.add(part.name)
        elif isinstance(part, IMPORTS):
            bound |= binds(part)
    return bound


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, FUNCTIONS):
        for child in ast.iter_child_nodes(node):
            yield from _outside_functions(child)


def reads(node: ast.stmt) -> set[str]:
    """Return the names that a statement takes from outside of it."""
    inside = named(node) if isinstance(node, DEFINITIONS) else set()
    loads = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    shared = {
        name for n in ast.walk(node) if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names
    }
    return loads - inside | shared


def _look_for_commands(needed: list[ast.stmt]) -> None:
    """Raise NotYet if what the entry needs runs a command of the notebook."""
    for top in needed:
        for node in ast.walk(top):
            if text := transform.command(node):
                raise NotYet(sentence("unknown: command", line=node.lineno, text=text[:60]))


def _look_at_entry(exercise: Exercise, needed: list[ast.stmt], source: str) -> None:
    """Raise Mistake unless the entry is there, with its parameters and as a kernel."""
    wanted = f"{exercise.entry}({', '.join(exercise.parameters)})"
    entry = next((n for n in reversed(needed) if exercise.entry in binds(n)), None)
    if entry is None:
        raise Mistake(sentence("forbidden: no entry", wanted=wanted))
    if not isinstance(entry, ast.FunctionDef):
        if exercise.kind in PYTHON_KINDS:
            return  # a lambda, another function by a second name, one that stands under an `if`
        raise NotYet(sentence("forbidden: no entry", wanted=wanted))
    given = entry.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    least = len(names) - len(given.defaults)
    most = 10**6 if given.vararg else len(names)
    without = [d for d in given.kw_defaults if d is None]
    if without or not least <= len(exercise.parameters) <= most:
        actual = f"{exercise.entry}({unparsed(given)})"
        raise Mistake(sentence("forbidden: parameters", wanted=wanted, actual=actual))
    if exercise.kind not in PYTHON_KINDS and not entry.decorator_list:
        decorator = min(exercise.rules.decorators)
        raise Mistake(
            sentence("forbidden: no decorator", entry=exercise.entry, decorator=decorator)
        )


# What is run: imports become names that are there already, and texts that do nothing go.


def _aliases(exercise: Exercise, needed: list[ast.stmt], source: str) -> Iterator[tuple[str, str]]:
    """Yield (name, what it stands for) of each imported name, such as ("ceil", "math.ceil").

    Raises Refused for a module that an answer may not use.
    """
    for top in needed:
        for node in ast.walk(top):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    short = MODULES.get(alias.name)
                    if short not in exercise.rules.modules or (
                        not alias.asname and "." in alias.name
                    ):
                        raise _import(exercise, node, alias.name, source)
                    yield alias.asname or alias.name, short
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                for alias in node.names:
                    if alias.name == "*" and module in MODULES:
                        raise NotYet(sentence("unknown: import", at=describe(source, node)))
                    whole = f"{module}.{alias.name}"
                    known = MODULES.get(whole) or (
                        f"{MODULES[module]}.{alias.name}" if module in MODULES else None
                    )
                    course = module.startswith("tiled_matmul.kit") and (
                        alias.name in exercise.rules.names
                    )
                    if course:
                        known = alias.name
                    elif known is None or known.partition(".")[0] not in exercise.rules.modules:
                        raise _import(exercise, node, module, source)
                    yield alias.asname or alias.name, known


def _import(exercise: Exercise, node: ast.stmt, module: str, source: str) -> Refused:
    at = describe(source, node)
    root = module.partition(".")[0]
    if root in LIBRARIES:
        return Product(sentence("forbidden: import", at=at))
    if root in OUTSIDE or not root:
        return Refused(sentence("forbidden: import", at=at))
    return NotYet(sentence("unknown: import", at=at))


def _rewritten(
    exercise: Exercise,
    tree: ast.Module,
    needed: list[ast.stmt],
    aliases: dict[str, str],
    source: str,
) -> str:
    """Return the source of the needed statements, each at its own lines."""
    changes: list[tuple[ast.AST, str]] = []
    kept = set(needed)
    for node in tree.body:
        if node not in kept:
            changes.append((_at(node), ""))
            continue
        for part in ast.walk(node):
            if isinstance(part, IMPORTS):
                changes.append((part, _assigned(part, aliases)))
            elif isinstance(part, ast.Expr) and _is_text(part.value):
                changes.append((part, "pass"))
            elif isinstance(part, ast.arg | ast.AnnAssign) and exercise.kind != "triton":
                # An annotation is evaluated when the function is defined, and means nothing here.
                changes += [(part.annotation, "None")] if part.annotation is not None else []
            elif isinstance(part, ast.FunctionDef) and part.returns is not None:
                changes.append((part.returns, "None"))
    return _replaced(source, changes)


def _at(node: ast.AST) -> ast.AST:
    """Return the place of a statement with its decorators."""
    begin = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    if begin == node.lineno:
        return node
    place = ast.Pass()
    place.lineno, place.col_offset = begin, 0
    place.end_lineno, place.end_col_offset = node.end_lineno, node.end_col_offset
    return place


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _assigned(node: ast.stmt, aliases: dict[str, str]) -> str:
    """Return the assignments that an import stands for; the modules are there already."""
    names = [alias.asname or alias.name for alias in node.names]
    pairs = [f"{name} = {aliases[name]}" for name in names if aliases[name] != name]
    return "; ".join(pairs) or "pass"


def _replaced(source: str, changes: list[tuple[ast.AST, str]]) -> str:
    """Return a source in which each of these nodes is replaced; all lines keep their numbers."""
    lines = [line.encode() for line in source.split("\n")]  # columns of a tree count bytes
    places = [
        (n.lineno - 1, n.col_offset, n.end_lineno - 1, n.end_col_offset, text)
        for n, text in changes
    ]
    for first, begin, last, end, text in sorted(places, reverse=True):
        rest = lines[last][end:]
        if not text and rest.lstrip().startswith(b";"):
            text = "pass"
        for number in range(first + 1, last + 1):
            lines[number] = b""
        lines[first] = lines[first][:begin] + text.encode() + (rest if last == first else b"")
        if last != first:
            lines[first] += rest
    return b"\n".join(lines).decode()


def _one_reading(tree: ast.AST, source: str) -> None:
    """Refuse source that another reader would understand differently than Python does.

    Triton's interpreter takes the last line that begins with "def " for the kernel, even inside a
    string.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    heads = {line for f in functions for line in (f.lineno, *(d.lineno for d in f.decorator_list))}
    for number, line in enumerate(source.split("\n"), start=1):
        if line.strip().startswith("def ") and number not in heads:
            raise Refused(sentence("forbidden: def", line=number))


__all__ = ["Mistake", "NotPython", "NotYet", "Product", "Refused", "admit"]
