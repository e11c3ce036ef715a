"""The source of a kernel, as a syntax tree with the line numbers of its file or cell."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from tiled_matmul.microscope.cuda.errors import KernelError, Unsupported
from tiled_matmul.microscope.cuda.unsigned import is_marked, with_casts

_known: WeakKeyDictionary = WeakKeyDictionary()  # code that is known to fit its source
PY312 = sys.version_info >= (3, 12)


@dataclass(frozen=True)
class Source:
    """A function's name, file and syntax tree."""

    name: str
    file: str
    tree: ast.FunctionDef

    def place(self, node: ast.AST) -> str:
        """Return "line N of NAME: text", for messages."""
        return f"line {node.lineno} of {self.name}: {line_text(self.file, node.lineno)}"


def line_text(file: str, line: int) -> str:
    """Return the text of a line of a file or a notebook cell, stripped."""
    return linecache.getline(file, line).strip()


def python_function(kernel: Any) -> Callable:
    """Return the Python function of a kernel, as it was before its loops were unrolled.

    `kernel` is a kernel of Numba or of this package, or a plain function. Raises KernelError for
    anything else.
    """
    function = getattr(kernel, "py_func", kernel)
    function = getattr(function, "as_written", function)
    if not inspect.isfunction(function):
        raise KernelError(f"a kernel is a Python function or @cuda.jit of one, got {kernel!r}")
    return function


def _still_the_same(function: Callable, tree: ast.FunctionDef) -> bool:
    """Return whether the source compiles to the function's code.

    It is True for a source with assertions, because pytest rewrites them.
    """
    if _known.get(function.__code__) == ast.unparse(tree):
        return True
    if any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        return True
    bare = ast.FunctionDef(
        tree.name, tree.args, tree.body, [], None, **({"type_params": []} if PY312 else {})
    )
    # Names of an enclosing function must be bound there to compile the same way.
    free = function.__code__.co_freevars
    outer: ast.stmt = ast.copy_location(bare, tree)
    if free:
        outer = ast.parse("def outer():\n    " + " = ".join(free) + " = None\n").body[0]
        outer.body.append(bare)
    code = compile(ast.fix_missing_locations(ast.Module([outer], [])), "", "exec")
    while code.co_name != tree.name:
        code = next(c for c in code.co_consts if inspect.iscode(c))
    same = _essence(code) == _essence(function.__code__)
    if same:
        _known[function.__code__] = ast.unparse(tree)
    return same


def _essence(code: Any) -> tuple:
    """Return the parts of compiled code that do not depend on the text around its source."""
    # The calling instructions depend on whether a module was imported at the top of the file.
    calls = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "PUSH_NULL", "CALL", "PRECALL", "EXTENDED")
    steps = [
        (step.opname, step.argrepr if step.opname in ("BINARY_OP", "COMPARE_OP") else "")
        for step in dis.get_instructions(code)
        if not step.opname.startswith(calls)
    ]
    constants = [repr(c) for c in code.co_consts if not inspect.iscode(c)]
    return steps, sorted(code.co_names), code.co_varnames, constants


def parameters(function: Callable) -> list[str]:
    """Return the names of a function's parameters. Raises Unsupported for *, ** and / ones."""
    code = function.__code__
    several = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if several or code.co_kwonlyargcount or code.co_posonlyargcount:
        raise Unsupported(f"{function.__name__} takes *, ** or / arguments")
    return list(code.co_varnames[: code.co_argcount])


def read(function: Callable) -> Source:
    """Return the source of a function, with casts if it is marked as `unsigned`.

    Raises KernelError if the source is missing or has changed.
    """
    name = function.__name__
    nowhere = (
        f"{name} has no Python source to run: define it in a file, or in a notebook cell without "
        "%%time or the like"
    )
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise KernelError(f"{nowhere} ({error})") from None
    text = "".join(lines)
    indented = text[:1].isspace()
    try:
        # A surrounding block makes an indented source valid.
        module = ast.parse(f"if True:\n{text}" if indented else text)
    except SyntaxError as error:
        raise KernelError(f"the source of {name} cannot be read by itself: {error}") from None
    tree = module.body[0].body[0] if indented else module.body[0]
    if name == "<lambda>" or isinstance(tree, ast.AsyncFunctionDef):
        raise KernelError(f"{name} must be written with def, not as a lambda or a coroutine")
    if not isinstance(tree, ast.FunctionDef):
        raise KernelError(nowhere)  # these lines hold something else
    if tree.name != name or not _still_the_same(function, tree):
        raise KernelError(
            f"the source of {name} has changed since it was imported: import it again, or restart"
        )
    ast.increment_lineno(tree, first - 1 - indented)
    source = Source(name, function.__code__.co_filename, tree)
    if is_marked(function):
        with_casts(function, tree, source.place)
    return source
