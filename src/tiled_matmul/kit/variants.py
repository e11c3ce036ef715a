"""Kernels with edited lines, such as a deliberate mistake.

With these, a chapter that removes a barrier, or a test that plants a fault, needs no second copy of
the kernel. Variants are compiled and interpreted like any other kernel, with the original's
options and unrolling. Their line numbers are those of the original, counted from its first
decorator.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Mapping
from typing import Any

from tiled_matmul.kit import plans
from tiled_matmul.kit.constants import compiled_as
from tiled_matmul.microscope.written import function_of

_numbers = itertools.count(1)
_lines: dict[str, list[str]] = {}  # of each variant's file, which holds nothing else


def without(kernel: Any, text: str, nth: int | None = None) -> Any:
    """Return `kernel` with `pass` in place of the lines that contain `text`.

    `kernel` is any `@cuda.jit`, `@triton.jit` or `@gluon.jit` kernel. If several lines match, `nth`
    selects one, counted from 0; None removes all. Raises ValueError if there is no such line.
    """
    return _rewritten(kernel, text, nth, lambda line: f"pass  # {line}")


def edited(kernel: Any, old: str, new: str, nth: int | None = None) -> Any:
    """Return `kernel` with `new` in place of `old`; `nth` and errors as in `without`.

    Raises SyntaxError if the result is not valid Python.
    """
    return _rewritten(kernel, old, nth, lambda line: line.replace(old, new))


def matmul_with(module: Any, variant: Any) -> Any:
    """Return the `matmul` of a rung's module, launching `variant` instead of the original kernel.

    It runs in full each time, as a plan would launch the kernel that was there when it was made.
    Raises ValueError if the module has no kernel of that name.
    """
    name = function_of(variant).__name__
    if not callable(getattr(getattr(module, name, None), "__getitem__", None)):
        raise ValueError(f"{module.__name__} has no kernel {name}")

    @functools.wraps(module.matmul)
    def matmul(*arguments: Any, **options: Any) -> Any:
        kernel = getattr(module, name)
        setattr(module, name, variant)
        try:
            with plans.paused():
                return module.matmul(*arguments, **options)
        finally:
            setattr(module, name, kernel)

    return matmul


def _rewritten(kernel: Any, text: str, nth: int | None, change: Any) -> Any:
    function = function_of(kernel)
    name, lines = function.__name__, _source(function)
    matches = [number for number, line in enumerate(lines) if text and text in line]
    if not matches:
        raise ValueError(f"{name} has no line with {text!r}")
    if nth is not None and not 0 <= nth < len(matches):
        raise ValueError(f"{name} has {len(matches)} lines with {text!r}: there is no number {nth}")
    for number in matches if nth is None else [matches[nth]]:
        line = lines[number].strip()
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        lines[number] = f"{indent}{change(line)}\n"
    return _made(kernel, lines)


def with_functions(kernel: Any, **functions: Any) -> Any:
    """Return a kernel in Triton or Gluon that calls other functions by these names.

    With `edited`, a role of a kernel can so be exchanged. Raises ValueError, which lists the names
    that the kernel has, for another.
    """
    function = function_of(kernel)
    for name in functions:
        if name not in function.__globals__ or name not in function.__code__.co_names:
            known = ", ".join(n for n in function.__code__.co_names if n in function.__globals__)
            raise ValueError(f"{function.__name__} calls no {name}; it has {known}")
    return _made(kernel, _source(function), functions)


def _made(kernel: Any, lines: list[str], functions: Mapping[str, Any] | None = None) -> Any:
    function = function_of(kernel)
    name = function.__name__
    in_gluon = callable(getattr(kernel, "is_gluon", None)) and kernel.is_gluon()
    first = getattr(kernel, "starting_line_number", 1) if in_gluon else 1
    written = ["\n"] * (first - 1) + lines  # roles of one kernel keep apart
    source = "".join(written)
    # inspect and tracebacks look up the source in linecache, as for a notebook's cell.
    file = f"<{name}, variant {next(_numbers)}>"
    code = compile(source, file, "exec")
    linecache.cache[file] = (len(source), None, written, file)
    _lines[file] = lines
    scope = function.__globals__ | dict(functions or {})
    exec(code, scope)
    made = scope[name]
    made.__module__ = function.__module__
    if hasattr(kernel, "py_func"):
        return compiled_as(kernel, made)
    import triton
    from triton.experimental import gluon

    if in_gluon:
        made = gluon.jit(made, do_not_specialize=kernel.do_not_specialize)
    else:
        made = triton.jit(made)
    scope[name] = made  # for a function that calls itself
    return made


def _source(function: Any) -> list[str]:
    """Return a function's dedented lines, with an empty line in place of each of its decorators."""
    if lines := _lines.get(function.__code__.co_filename):
        return list(lines)
    source = textwrap.dedent(inspect.getsource(function))
    before = ast.parse(source).body[0].lineno - 1
    return ["\n"] * before + source.splitlines(keepends=True)[before:]
