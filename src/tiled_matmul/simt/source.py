"""The source of a kernel, as a syntax tree with the lines that a traceback would show."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tiled_matmul.simt.errors import KernelError, Unsupported


@dataclass(frozen=True)
class Source:
    """A function's tree, and where it stands."""

    name: str
    file: str
    tree: ast.FunctionDef

    def line(self, number: int) -> str:
        """Return the text of a line of the file, stripped."""
        return linecache.getline(self.file, number).strip()

    def place(self, node: ast.AST) -> str:
        """Return "line N of NAME: text", for messages."""
        return f"line {node.lineno} of {self.name}: {self.line(node.lineno)}"


def python_function(kernel: Any) -> Callable:
    """Return the Python function behind a kernel: compiled by Numba, of this package, or plain.

    Raises KernelError for anything else.
    """
    function = getattr(kernel, "py_func", kernel)
    if not inspect.isfunction(function):
        raise KernelError(f"a kernel is a Python function or @cuda.jit of one, got {kernel!r}")
    return function


def parameters(function: Callable) -> list[str]:
    """Return the names of a function's parameters. Raises Unsupported for *, ** and / ones."""
    code = function.__code__
    several = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if several or code.co_kwonlyargcount or code.co_posonlyargcount:
        raise Unsupported(f"{function.__name__} takes *, ** or / arguments")
    return list(code.co_varnames[: code.co_argcount])


def read(function: Callable) -> Source:
    """Return the source of a function. Raises KernelError where there is none."""
    name = function.__name__
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise KernelError(
            f"{name} has no Python source to run: define it in a file or a notebook cell ({error})"
        ) from None
    try:
        module = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError as error:
        raise KernelError(f"the source of {name} cannot be read by itself: {error}") from None
    tree = module.body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise KernelError(f"{name} must be written with def, not as a lambda or a coroutine")
    ast.increment_lineno(module, first - 1)
    return Source(name, function.__code__.co_filename, tree)
