"""Put what an answer needs from other cells of its notebook above it.

A helper in a cell of its own then counts as one in the answer's cell: the gate reads both, and
both run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence

from tiled_matmul.grader import gate
from tiled_matmul.grader.spec import MODULES, Exercise

MOST = 300  # statements of other cells; more than that, and the answer does without them
WHOLE = (*gate.DEFINITIONS, *gate.IMPORTS)


def names(cell: str) -> frozenset[str]:
    """Return the names that a cell sets for others, none for a cell that is no Python."""
    return frozenset(name for node in _read(cell)[0].body for name in _sets(node))


def defined(cell: str) -> set[str]:
    """Return the names that a cell defines or assigns to; what it imports is defined elsewhere."""
    nodes = [n for n in _read(cell)[0].body if not isinstance(n, gate.IMPORTS) and not _adds(n)]
    return set().union(*map(gate.binds, nodes))


def joined(
    exercise: Exercise, answer: str, others: Sequence[tuple[str, frozenset[str]]]
) -> tuple[str, int]:
    """Return (an answer with its helpers above it, how many lines stand above it).

    `others` are other cells of the notebook, each with the `names` that it sets. Of several cells
    that set a name the last one counts. An answer that needs none of them, or that is no Python,
    is returned as it is.
    """
    try:
        own_tree, text = gate.parsed(answer)
    except (gate.Refused, gate.NotPython):
        return answer, 0
    own = {exercise.entry, *exercise.given, *MODULES.values()}.union(
        *map(gate.binds, own_tree.body)
    )
    left = set().union(*map(gate.reads, gate.needed(exercise, own_tree))) - own
    seen, kept = own | left, {}
    while left:
        batch, left = left, set()
        for number, node in _setting(exercise, batch, others):
            kept.setdefault(number, set()).add(node.lineno)
            left |= gate.reads(node) - seen
            seen |= left
        if sum(map(len, kept.values())) > MOST:
            return answer, 0
    parts = []
    for number in sorted(kept):
        tree, cell = _read(others[number][0])
        others_there = [node for node in tree.body if node.lineno not in kept[number]]
        parts.append(gate.without(cell, others_there).strip("\n"))
    if not kept:
        return answer, 0
    above = "\n".join(parts)
    future = [node for node in own_tree.body if getattr(node, "module", "") == "__future__"]
    return f"{above}\n{gate.without(text, future)}", above.count("\n") + 1


def _setting(
    exercise: Exercise, wanted: set[str], others: Sequence[tuple[str, frozenset[str]]]
) -> Iterator[tuple[int, ast.stmt]]:
    """Yield (number of the cell, statement) of what sets these names, from the last cell up.

    Above the cell that gives a name a new value, nothing counts for that name.
    """
    wanted = set(wanted)
    for number in reversed(range(len(others))):
        cell, there = others[number]
        if not wanted & there:
            continue
        done = set()
        for node in _read(cell)[0].body:
            here = _sets(node) & wanted
            if not isinstance(node, WHOLE):
                # A variable of a trial, such as `sum = 0`, hides no function that is called.
                here -= {*dir(builtins), *exercise.rules.names}
            if here:
                yield number, node
                done |= set() if _adds(node) else here & gate.binds(node)
        wanted -= done


def _sets(node: ast.stmt) -> set[str]:
    return gate.sets(node, gate.binds(node), {*MODULES.values()})


def _adds(node: ast.stmt) -> bool:
    """Does a statement change what a name stands for, and give it no new value?"""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.AugAssign)


def _read(cell: str) -> tuple[ast.Module, str]:
    try:
        return gate.parsed(cell)
    except (gate.Refused, gate.NotPython):
        return ast.Module([], []), ""
