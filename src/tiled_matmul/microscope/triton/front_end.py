"""Ask the first step of Triton's compiler, which needs no GPU, whether it accepts a kernel.

The interpreter runs a kernel as Python, and so accepts much that the compiler refuses: `try`, a
global that is no constant, a variable that changes its type in a loop. The compiler's first step
translates the kernel's source into Triton's intermediate language, in some 10 ms. In the
interpreter's process, jit functions are made for the interpreter; here they are made anew.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, code_generator, make_backend
from triton.compiler.errors import CompilationError
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, create_function_from_signature

MOST_KNOWN = 256  # launches
TARGET = GPUTarget("cuda", 90, 32)
SPECIALIZING = ("do_not_specialize", "do_not_specialize_on_alignment")
EXCEPTION = re.compile(r"\w+\((['\"])(.*)\1\)", re.DOTALL)  # as `repr` writes it

_accepted: dict[tuple, None] = {}


def refusal(jit: Any, arguments: dict[str, Any]) -> str:
    """Return why the compiler refuses a launch of a kernel, with the line in its file, or "".

    `jit` is what `@triton.jit` made, `arguments` are all arguments by name. A launch that was
    accepted is accepted at once the next time, if the types of its arguments, its constants and
    the globals that it uses are the same.
    """
    kernel, backend = compiled(jit), make_backend(TARGET)
    bind = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, rest = bind(**arguments)
    chosen, signature, constants, attributes = kernel._pack_args(
        backend, {}, bound, specialization, rest
    )
    constants = {path: _for_compiler(value) for path, value in constants.items()}
    used: dict[Callable, tuple] = {}
    _globals_of(kernel.fn, used)
    known = (kernel, *map(str, (signature, constants, attributes)), *used.items())
    if known in _accepted:
        return ""
    context, readers = ir.context(), []
    ir.load_dialects(context)
    backend.load_dialects(context)
    generation = backend.get_codegen_implementation(chosen), backend.get_module_map()
    source = ASTSource(kernel, signature, constants, attributes)
    with patch.object(code_generator, "CodeGenerator", functools.partial(Reader, readers)):
        try:
            source.make_ir(TARGET, chosen, *generation, context)
        except CompilationError as error:
            return _in_words(error, readers)
    if len(_accepted) == MOST_KNOWN:
        _accepted.clear()
    _accepted[known] = None
    return ""


class Compiled(JITFunction):
    """A jit function for the compiler. Triton's hash reads all that it calls; this one does not."""

    def __hash__(self) -> int:
        return hash(self.fn)

    def __eq__(self, other: object) -> bool:
        return self is other


def compiled(jit: Any) -> Compiled:
    """Return a jit function for the compiler, with the options of its decorator."""
    given = vars(jit).get("kwargs", vars(jit))
    return _compiled(jit.fn, *(tuple(given.get(name) or ()) for name in SPECIALIZING))


@functools.lru_cache(MOST_KNOWN)
def _compiled(fn: Callable, *names: tuple) -> Compiled:
    return Compiled(fn, **dict(zip(SPECIALIZING, names, strict=True)))


def _for_compiler(value: Any) -> Any:
    made = isinstance(value, InterpretedFunction | JITFunction) and not isinstance(value, Compiled)
    return compiled(value) if made and not getattr(value, "is_gluon", bool)() else value


class Reader(code_generator.CodeGenerator):
    """Translates a function whose globals hold jit functions that are for the interpreter."""

    def __init__(
        self, readers: list, context: Any, prototype: Any, gscope: dict, *rest: Any, **named: Any
    ) -> None:
        readers.append(self)
        scope = {name: _for_compiler(value) for name, value in gscope.items()}
        super().__init__(context, prototype, scope, *rest, **named)

    def visit_Attribute(self, node: Any) -> Any:  # noqa: N802
        made = super().visit_Attribute(node)
        function = getattr(tl, node.attr, None)
        # A method of a tile, such as `sum`, is bound in the interpreter's way.
        tile = getattr(made, "__self__", None) or next(iter(getattr(made, "args", ())), None)
        if isinstance(tile, tl.tensor) and isinstance(function, InterpretedFunction | JITFunction):
            return code_generator.BoundJITMethod(tile, compiled(function))
        return _for_compiler(made)


def _globals_of(fn: Callable, used: dict[Callable, tuple]) -> None:
    """Collect what a function and those that it calls find in their globals."""
    if fn in used or fn.__module__.startswith("triton."):
        return
    held = {name: fn.__globals__.get(name) for name in fn.__code__.co_names}
    closed = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    held |= {name: cell.cell_contents for name, cell in closed}
    kinds = (str(one) if isinstance(one, tl.constexpr) else type(one) for one in held.values())
    used[fn] = tuple(zip(held, kinds, strict=True))
    for one in held.values():
        if isinstance(one, InterpretedFunction | JITFunction):
            _globals_of(one.fn, used)


def _in_words(error: CompilationError, readers: list[Reader]) -> str:
    """Return the compiler's reason, and the deepest line that is not in Triton's own library."""
    what, place = "", ""
    while isinstance(error, CompilationError):
        what = error.error_message or what
        for reader in readers:
            function = reader.jit_fn
            own = function.fn.__module__.startswith("triton.")
            if function.src == error.src and error.node is not None and not own:
                line = reader.begin_line + error.node.lineno
                place = f"at line {line} of {function.fn.__name__}"
        error = error.__cause__
    match = EXCEPTION.fullmatch(what)
    what = match[2] if match else what
    return f"Triton's compiler refuses the kernel {place}, though the interpreter runs it: {what}"
