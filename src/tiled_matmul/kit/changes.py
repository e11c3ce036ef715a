"""Line-by-line differences between two kernels."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Sequence

from tiled_matmul.microscope.written import function_of

GAP = "    ..."  # replaces unchanged lines


def changed_lines(
    before: Sequence[str], after: Sequence[str], key: Callable[[str], str] = str
) -> list[str]:
    """Return the lines that differ, removed lines prefixed with "-" and added ones with "+".

    Lines with the same `key` are taken for the same.
    """
    keys = ([key(line) for line in lines] for lines in (before, after))
    shown = []
    for what, first, last, other, end in difflib.SequenceMatcher(None, *keys).get_opcodes():
        if what != "equal":
            shown += [GAP, *(f"-{x}" for x in before[first:last])]
            shown += [f"+{x}" for x in after[other:end]]
    return shown


def source_of(function: Callable) -> str:
    """Return the original source of a function or kernel, decorators included."""
    return textwrap.dedent(inspect.getsource(function_of(function)))


def body(function: Callable) -> list[str]:
    """Return the lines of a function after its `def`."""
    lines = source_of(function).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return lines[first + 1 :]


def to_compare(function: Callable) -> list[str]:
    """Return a function's lines without its docstring, with its name replaced by `kernel`."""
    text = source_of(function)
    tree = ast.parse(text).body[0]
    lines = text.splitlines()
    if ast.get_docstring(tree) is not None:
        docstring = tree.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return [line.replace(f"def {tree.name}(", "def kernel(", 1) for line in lines]
