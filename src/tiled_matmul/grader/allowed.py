"""What an answer may say: every statement, name and attribute of it is looked at before it runs.

Three kinds of answers do not run. What would defeat the exercise is refused (FORBIDDEN): a
library's product, the grader, the outside world. What cannot work is told for what it is (WRONG):
a misspelt name, a barrier that is not called. What is harmless and yet unknown here is no mark
(NOT_YET). In a sandbox safety does not depend on this list.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import re
import string
import symtable
import threading
import types
from collections.abc import Iterator, Sequence

import numpy as np

from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import (
    COURSE,
    CUDA,
    ERRORS,
    MODULES,
    PLACES,
    PYTHON_KINDS,
    Exercise,
)

UNKNOWN = {  # statements and expressions that no exercise's answer needs
    ast.AsyncFunctionDef: "async def",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Await: "await",
    ast.With: "with",
}
NOT_IN_KERNELS = {  # what neither Numba nor Triton compiles in a kernel
    ast.ClassDef: "class",
    ast.Lambda: "lambda",
    ast.Try: "try",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Delete: "del",
    ast.Match: "match",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.GeneratorExp: "generator expression",
    ast.DictComp: "dictionary comprehension",
    ast.SetComp: "set comprehension",
    ast.Dict: "dictionary",
    ast.Set: "set",
}
LIBRARIES = ("torch", "np", "numpy", "scipy", "cupy", "cublas", "operator", "numba", "tiled_matmul")
PRODUCTS = (
    *("matmul", "dot", "mm", "bmm", "addmm", "einsum", "tensordot", "inner", "gemm", "vdot"),
    *("linalg", "multi_dot", "dot_scaled", "vecdot", "matvec", "vecmat", "sumprod"),
)
LOOP = "library: sum"
ARRAY = "forbidden: array"
MEANT = {  # a name that is near the one that was meant, and the message that says which
    **dict.fromkeys(
        ("cuda.syncthread", "cuda.syncthreads_", "cuda.sync_threads", "cuda.barrier"),
        "forbidden: barrier",
    ),
    "cuda.synchronize": "forbidden: synchronize",
    "cuda.shared_array": "forbidden: shared array",
    "cuda.local_array": "forbidden: local array",
    **dict.fromkeys(
        (f"{m}.{t}" for m in ("cuda", "np") for t in ("int", "int_", "float", "float_")),
        "forbidden: type",
    ),
    **dict.fromkeys(
        (f"cuda.{t}" for t in ("int32", "int64", "float32", "float64")), "forbidden: type"
    ),
    "cuda.syncwarp": "forbidden: warp barrier",
    **dict.fromkeys(("cuda.threadfence", "cuda.threadfence_block"), "forbidden: fence"),
    "cuda.atomic.*": "forbidden: atomic",
    **dict.fromkeys(("sum", "np.sum", "map"), LOOP),
    **dict.fromkeys((f"np.{make}" for make in ("zeros", "empty", "ones", "array")), ARRAY),
}
INSTEAD = ("forbidden: warp barrier", "forbidden: fence", "forbidden: atomic")
NO_CALLS = {  # members that are not functions
    "shape": "forbidden: shape is a pair",
    "dtype": "forbidden: dtype",
    "size": "forbidden: size",
    "ndim": "forbidden: ndim",
}
MAKES = ("cuda.shared.array", "cuda.local.array")
LAUNCH = {  # the launch cell's names for its sizes, and how a kernel reads them
    "BLOCK": "cuda.blockDim.x` and `cuda.blockDim.y",
    "GRID": "cuda.gridDim.x` and `cuda.gridDim.y",
}
REACH = (
    *("getattr", "setattr", "delattr", "hasattr", "eval", "exec", "compile", "open", "globals"),
    *("locals", "vars", "dir", "input", "type", "object", "super", "breakpoint", "memoryview"),
    *("get_ipython", "exit", "quit", "help", "license", "credits", "copyright"),
    *("BaseException", "SystemExit", "KeyboardInterrupt"),
)
CONSTANTS = (  # of what a kernel's module may be made: nothing that has a state
    *(ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.Subscript, ast.Slice, ast.BinOp),
    *(ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword, ast.Lambda),
    *(ast.arguments, ast.arg, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
STORED = (ast.Name, ast.Tuple, ast.Store)
STATEFUL = ("zip", "enumerate", "print")
SPECIAL = frozenset(  # methods that Python itself calls; others reach further than their class
    f"__{name}__"
    for name in (
        *("init", "post_init", "repr", "str", "len", "iter", "next", "getitem", "setitem", "call"),
        *("contains", "bool", "int", "float", "hash", "eq", "ne", "lt", "le", "gt", "ge", "neg"),
        *("add", "radd", "iadd", "sub", "rsub", "mul", "rmul", "truediv", "floordiv", "mod", "pow"),
        *("abs", "and", "or", "xor", "missing"),
    )
)
NUMBER = re.compile(r"void|bool_|boolean|u?int(?:8|16|32|64|p)|float(?:16|32|64)|[fiu][1248]|none")
SCALARS = ("int", "float", "str", "bool", "tuple", "list")  # of which a pattern takes the whole
SIGNATURE = (ast.Call, ast.Subscript, ast.Slice, ast.Tuple, ast.Constant, ast.Load, ast.Expression)
OPTIONS = frozenset(
    ("device", "fastmath", "inline", "opt", "lineinfo", "debug", "cache", "max_registers")
    + ("launch_bounds", "forceinline", "maxsize", "typed", "noinline", "do_not_specialize")
    + ("frozen", "order", "eq", "slots", "kw_only", "repr", "init", "unsafe_hash")
)
NO_FUNCTIONS = ("tl.tensor",)  # names of types, for annotations
CALLED = ("syncthreads", "commit_copies")


OUTSIDE = frozenset(  # modules that reach out of an answer
    ("os", "sys", "subprocess", "socket", "ctypes", "importlib", "inspect", "gc", "builtins", "io")
    + ("pathlib", "shutil", "pickle", "marshal", "threading", "multiprocessing", "signal", "code")
    + ("tempfile", "urllib", "http", "requests", "IPython", "runpy", "types", "weakref", "mmap")
    + ("tiled_matmul", "resource", "traceback", "linecache", "ast", "dis", "asyncio", "pdb", "site")
)


# Attributes that lead from a generator to its frame, from a module or an array to memory, and from
# there to everything.
INNARDS = (
    frozenset(
        ("ctypes", "cffi", "from_address", "bit_generator", "_bit_generator", "builtins", "modules")
        + ("func_code", "func_globals", "func_closure", "func_dict", "func_defaults")  # of Cython's
    )
    | frozenset(
        name
        for kind in (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
        + (types.FrameType, types.CodeType, types.TracebackType)
        for name in dir(kind)
        if "_" in name[1:] and not name.startswith("_")
    )
)
PUBLIC = (  # whatever their first letter
    *("_replace", "_asdict", "_fields", "_make", "_field_defaults"),  # of named tuples
    "__name__",
)
BASES = ("object", "std_typing.NamedTuple", "std_enum.Enum", "std_enum.IntEnum")


_PARSING = threading.Lock()


def parse(source: str, mode: str = "exec") -> ast.AST:
    """Do what `ast.parse` does. In Python 3.11 that fails at times in several threads at once."""
    with _PARSING:
        return ast.parse(source, mode=mode)


class Refused(Exception):
    """An answer uses what it may not; the message names it, its line, and what to write instead."""

    status, diagnosis = "FORBIDDEN", "forbidden"


class Product(Refused):
    """An answer calls a library's product instead of computing it."""

    diagnosis = "library"


class Mistake(Refused):
    """An answer that cannot work as it is written."""

    status = "WRONG"


class NotYet(Refused):
    """A harmless answer that uses what the grader does not know."""

    status, diagnosis = "NOT_YET", "unknown"


def quoted(source: str, node: ast.AST) -> str:
    """Return the text of a node on one line, at most 60 characters of it."""
    text = ast.get_source_segment(source, node) or unparsed(node)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"


def unparsed(node: ast.AST) -> str:
    """Return a node as Python writes it; an int of thousands of digits it does not write."""
    try:
        return ast.unparse(node)
    except ValueError:
        return "…"


def describe(source: str, node: ast.AST) -> str:
    """Return a node's text and line, for messages."""
    return f"`{quoted(source, node)}` in line {node.lineno}"


def named(tree: ast.AST) -> set[str]:
    """Return all names that are bound in a tree: assigned, imported, defined or parameters."""
    return {name for node in ast.walk(tree) if (name := _bound_by(node))}


def _bound_by(node: ast.AST) -> str | None:
    """Return the name that a node itself binds."""
    if isinstance(node, ast.Name):
        return None if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.MatchMapping):
        return node.rest
    binding = ast.FunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
    return node.name if isinstance(node, binding) else None


def scopes(source: str) -> symtable.SymbolTable:
    """Return Python's table of names. Raises SyntaxError for faults that `ast.parse` lets through,
    such as two parameters of one name.
    """
    return symtable.symtable(source, "<answer>", "exec")


def free(source: str) -> set[str]:
    """Return the names that some scope takes from the module, or from Python's own.

    A comprehension or an inner function binds its names for itself alone. A class and a module may
    read one of Python's names before they bind it.
    """
    names: set[str] = set()
    left = [scopes(source)]
    while left:
        table = left.pop()
        left += table.get_children()
        for symbol in table.get_symbols():
            name = symbol.get_name()
            outside = hasattr(builtins, name) or name in MODULES.values()
            early = table.get_type() != "function" and outside
            if symbol.is_referenced() and (symbol.is_global() or early):
                names.add(name)
    return names


def check(
    exercise: Exercise,
    statements: Sequence[ast.stmt],
    aliases: dict[str, str],
    source: str,
    text: str,
) -> None:
    """Return if these statements of an answer may run; else raise Refused.

    `aliases` holds what imported names stand for: {"ceil": "math.ceil"}; `text` is what will run.
    """
    _Reader(exercise, statements, aliases, source, free(text)).read()


@functools.cache
def _of_arrays() -> frozenset[str]:
    """Return the attributes of NumPy's objects: some lead to memory, others to files."""
    kinds = (np.ndarray, np.float64, np.int64, np.dtype, np.random.Generator, np.ufunc, np.ndindex)
    return frozenset(name for kind in kinds for name in dir(kind))


def dotted(node: ast.AST) -> str | None:
    """Return "cuda.shared.array" for an expression of such dotted names, None for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class _Reader:
    """Reads the statements of one answer."""

    def __init__(
        self,
        exercise: Exercise,
        statements: Sequence[ast.stmt],
        aliases: dict[str, str],
        source: str,
        free: set[str],
    ) -> None:
        self.exercise, self.rules, self.source = exercise, exercise.rules, source
        self.free = free
        self.statements, self.aliases = statements, aliases
        self.kernel = exercise.kind not in PYTHON_KINDS
        self.outer = {name for top in statements for name in _outer(top)}
        self.members = set(self.rules.members)
        self.special, self.own = self.of_classes()
        self.set_of_self: set[str] = set()
        nodes = [node for top in statements for node in ast.walk(top)]
        self.classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        others = [node for node in nodes if not isinstance(node, ast.ClassDef | ast.alias)]
        self.variables = {_bound_by(node) for node in others}
        attributes = [node.value for node in nodes if isinstance(node, ast.Attribute)]
        self.roots = {node.id for node in attributes if isinstance(node, ast.Name)}
        self.functions: set[str] = set()  # of the answer, by all their names
        self.known: set[int] = set()  # what may stand where it stands
        self.seen: set[int] = set()  # what was looked at together with what it is part of
        own: set[str] = set()
        for one in nodes:  # what the methods of a class set, and those methods
            if isinstance(one, ast.ClassDef):
                own |= named(one)
                self.set_of_self |= {n for part in one.body for n in _outer(part)}
            elif isinstance(one, ast.Call) and self.meaning(dotted(one.func) or "") == (
                "collections.namedtuple"
            ):
                texts = [str(n.value) for n in ast.walk(one) if isinstance(n, ast.Constant)]
                own |= set(" ".join(texts).replace(",", " ").split())
            elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                self.set_of_self |= {one.attr} if self.of_self(one) else set()
        # Other kinds have no classes; there such a name would open the grader's own objects.
        if exercise.kind == "values":
            self.set_of_self = {name for name in self.set_of_self if not _is_special(name)}
            own = {name for name in own | self.set_of_self if not _is_special(name)}
            opened = INNARDS
            if any(isinstance(n, ast.Name) and self.of_numpy(n.id) for n in nodes):
                opened |= _of_arrays()
            self.members |= own - opened
            self.set_of_self -= opened

    def of_classes(self) -> tuple[set[int], set[int]]:
        """Return the ids of the methods of classes, and of the attributes that they set of self."""
        methods, own = set(), set()
        for top in self.statements:
            for one in ast.walk(top):
                for f in one.body if isinstance(one, ast.ClassDef) else ():
                    if not isinstance(f, ast.FunctionDef):
                        continue
                    methods.add(id(f))
                    first = f.args.args[0].arg if f.args.args else None
                    own |= {id(n) for n in ast.walk(f) if _is_of(n, first)}
        return methods, own

    def read(self) -> None:
        for top in self.statements:
            if self.kernel:
                self.look_at_constants(top)
            self.parameters = [a.arg for a in top.args.args] if _is_function(top) else []
            self.in_kernel, self.top = self.kernel and _is_function(top), top
            self.bound = named(top) | self.outer
            self.inner: set[int] = set()  # the beginnings of longer dotted names
            skipped = {id(part) for part in self.annotations(top)}
            for node in ast.walk(top):
                if id(node) not in skipped:
                    self.look_at(node)

    def look_at_constants(self, top: ast.stmt) -> None:
        """Raise NotYet for what could differ between the interpreter's run and the compiler's.

        A kernel's module holds functions and numbers; a number is not computed from functions, as
        those are other objects for the compiler.
        """
        if isinstance(top, ast.FunctionDef):
            there = [d for d in (*top.args.defaults, *top.args.kw_defaults) if d is not None]
            self.functions.add(top.name)
        elif isinstance(top, ast.Assign | ast.AnnAssign):
            targets = top.targets if isinstance(top, ast.Assign) else [top.target]
            there = [top.value] if top.value is not None else []
            if not all(isinstance(n, STORED) for target in targets for n in ast.walk(target)):
                raise NotYet(sentence("unknown: outside", at=self.at(top)))
            if any(map(self.mentions, there)):
                self.functions |= {name for target in targets for name in named(target)}
        elif isinstance(top, ast.Import | ast.ImportFrom | ast.Pass) or _is_text(top):
            return
        else:
            raise NotYet(sentence("unknown: outside", at=self.at(top)))
        for part in there:
            known = all(isinstance(node, CONSTANTS) for node in ast.walk(part))
            calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)]
            if not known or any(self.callee(c) in (None, *STATEFUL) for c in calls):
                raise NotYet(sentence("unknown: outside", at=self.at(top)))
            if self.mentions(part) and not self.is_function(part):
                raise NotYet(sentence("unknown: outside", at=self.at(top)))

    def mentions(self, value: ast.expr) -> bool:
        """Does a value have to do with functions of the answer?"""
        there = ast.walk(value)
        return any(
            isinstance(n, ast.Lambda) or (isinstance(n, ast.Name) and n.id in self.functions)
            for n in there
        )

    def is_function(self, value: ast.expr) -> bool:
        """Is it a function of the answer, a decorated one too, or a tuple of them?"""
        if isinstance(value, ast.Tuple):
            return all(map(self.is_function, value.elts))
        if isinstance(value, ast.Call):
            return self.meaning(self.callee(value) or "") in self.rules.decorators
        return isinstance(value, ast.Name | ast.Lambda)

    def callee(self, node: ast.Call) -> str | None:
        """Return the dotted name of what is called; of `cuda.jit(…)(f)` that of the decorator."""
        inner = node.func.func if isinstance(node.func, ast.Call) else node.func
        name = dotted(inner)
        if isinstance(node.func, ast.Call) and self.meaning(name or "") not in (
            self.rules.decorators
        ):
            return None
        return name

    def annotations(self, top: ast.AST) -> Iterator[ast.AST]:
        """Yield all parts of the annotations that are taken out before the answer runs."""
        for node in ast.walk(top):
            for field in ("annotation", "returns"):
                there = getattr(node, field, None)
                if there is not None and (field == "returns" or self.exercise.kind != "triton"):
                    yield from ast.walk(there)

    def at(self, node: ast.AST) -> str:
        return describe(self.source, node)

    def look_at(self, node: ast.AST) -> None:
        construct = UNKNOWN.get(type(node))
        if construct is None and self.in_kernel:
            inner = isinstance(node, ast.FunctionDef) and node is not self.top
            construct = "def" if inner else NOT_IN_KERNELS.get(type(node))
        if construct is not None:
            raise NotYet(sentence("unknown: construct", construct=construct, at=self.at(node)))
        if isinstance(getattr(node, "op", None), ast.MatMult):
            if self.kernel:
                raise Product(sentence("library: kernel", at=self.at(node), instead=self.instead()))
            raise Product(sentence("library: operator", at=self.at(node)))
        method = getattr(self, f"see_{type(node).__name__}", None)
        if method is not None:
            method(node)

    def instead(self) -> str:
        triton = self.exercise.kind == "triton"
        return sentence("library: dot") if triton else sentence("library: loop")

    # Names that are bound.

    def bind(self, name: str, node: ast.AST) -> None:
        own = name.startswith("_simt") or name == "interpreter_semantic"
        if own or (name.startswith("__") and name.strip("_")):
            raise Refused(sentence("forbidden: underscore", name=name))
        line = getattr(node, "lineno", "?")
        taken = {*MODULES.values(), *COURSE, "torch"}
        if name in taken and (name in self.rules.modules or name in self.rules.names):
            if name not in self.free | self.roots and (not self.kernel or name in COURSE):
                return  # a variable of that name, in an answer that does not use what has it
            raise Refused(sentence("forbidden: meaning", name=name, line=line))
        if name in self.aliases:  # everywhere it is looked up as what was imported
            raise NotYet(sentence("forbidden: meaning", name=name, line=line))

    def see_Import(self, node: ast.Import | ast.ImportFrom) -> None:  # noqa: N802
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            hides = hasattr(builtins, name) and name not in self.rules.names
            if name.startswith(("__", "_simt")) or name in REACH or hides:
                raise Refused(sentence("forbidden: reach", at=self.at(node)))
            modules = {*MODULES.values(), *COURSE, "torch"}
            if name in modules and self.aliases.get(name) != name:
                raise Refused(sentence("forbidden: meaning", name=name, line=node.lineno))

    see_ImportFrom = see_Import  # noqa: N815

    def see_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        if id(node) not in self.special or node.name not in SPECIAL:
            self.bind(node.name, node)
        for decorator in node.decorator_list:
            if id(node) in self.special and dotted(decorator) == f"{node.name}.setter":
                self.known.add(id(decorator))
            else:
                self.decorator(decorator)

    def see_ClassDef(self, node: ast.ClassDef) -> None:  # noqa: N802
        self.bind(node.name, node)
        if self.exercise.kind != "values":
            raise NotYet(sentence("unknown: construct", construct="class", at=self.at(node)))
        for base in node.bases:
            name = dotted(base) or ""
            known = {*BASES, *ERRORS} - self.classes | self.classes - {*ERRORS}
            if self.meaning(name) not in known or name.partition(".")[0] in self.variables:
                raise NotYet(sentence("unknown: class", at=self.at(node)))
            self.known.add(id(base))
        if node.keywords:
            raise NotYet(sentence("unknown: class", at=self.at(node)))
        for decorator in node.decorator_list:
            self.decorator(decorator)

    def see_arg(self, node: ast.arg) -> None:
        self.bind(node.arg, node)

    def see_ExceptHandler(self, node: ast.ExceptHandler) -> None:  # noqa: N802
        if node.name:
            self.bind(node.name, node)

    def see_MatchAs(self, node: ast.MatchAs) -> None:  # noqa: N802
        if node.name:
            self.bind(node.name, node)

    see_MatchStar = see_MatchAs  # noqa: N815

    def see_MatchMapping(self, node: ast.MatchMapping) -> None:  # noqa: N802
        if node.rest:
            self.bind(node.rest, node)

    def see_MatchClass(self, node: ast.MatchClass) -> None:  # noqa: N802
        """Refuse patterns that read attributes: of what object, nobody could check as it runs."""
        plain = dotted(node.cls) in SCALARS and len(node.patterns) < 2
        if node.kwd_attrs or (node.patterns and not plain):
            raise NotYet(sentence("unknown: pattern", at=self.at(node)))

    def see_Global(self, node: ast.Global) -> None:  # noqa: N802
        for name in node.names:
            self.bind(name, node)

    see_Nonlocal = see_Global  # noqa: N815

    def decorator(self, node: ast.expr) -> None:
        call = isinstance(node, ast.Call)
        self.seen |= {id(node), id(node.func) if call else id(node)}
        name = self.meaning(dotted(node.func if call else node) or "")
        if name not in self.rules.decorators:
            raise NotYet(sentence("unknown: decorator", at=self.at(node)))
        if call:
            self.look_at_options(node)
        if not call or not self.kernel:
            return
        if not all(_is_signature(a) or self.is_type_signature(a) for a in node.args):
            raise NotYet(sentence("forbidden: decorator option", at=self.at(node)))

    def is_type_signature(self, node: ast.expr) -> bool:
        """Is it a signature of Numba's types, as `void(float32[:, :])`, or a list of signatures?"""
        if isinstance(node, ast.List):
            return all(_is_signature(a) or self.is_type_signature(a) for a in node.elts)
        roots = [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)]
        names = [self.meaning(dotted(n) or "") for n in roots]
        types = {id(n) for n, name in zip(roots, names, strict=True) if _is_type(name)}
        types |= {id(n.value) for n in roots if isinstance(n, ast.Attribute) and id(n) in types}
        rest = [n for n in ast.walk(node) if id(n) not in types]
        return all(isinstance(n, SIGNATURE) for n in rest) and bool(types)

    def look_at_options(self, node: ast.Call) -> None:
        """Raise Refused for options of a decorator that are not plain, or that do more."""
        functions = ast.Name | ast.Lambda  # in `cuda.jit(f)`
        values = [a for a in node.args if not (self.kernel and isinstance(a, functions))]
        if self.kernel:
            values = [a for a in values if not self.is_type_signature(a)]
        for value in (*values, *(k.value for k in node.keywords)):
            if not all(isinstance(n, ast.Constant | ast.Tuple | ast.Load) for n in ast.walk(value)):
                raise NotYet(sentence("forbidden: decorator option", at=self.at(node)))
        plain = all(map(_is_signature, values)) or not self.kernel
        if not plain or not {k.arg for k in node.keywords} <= OPTIONS:
            raise NotYet(sentence("forbidden: decorator option", at=self.at(node)))

    def meaning(self, name: str) -> str:
        """Return a dotted name with its root written out, if that was imported."""
        root, dot, rest = name.partition(".")
        whole = f"{self.aliases.get(root, root)}{dot}{rest}"
        return whole.removeprefix("numba.") if whole.startswith("numba.cuda.") else whole

    # Expressions.

    def see_Constant(self, node: ast.Constant) -> None:  # noqa: N802
        large = type(node.value) is int and node.value.bit_length() > 64
        if large and self.kernel:
            raise Mistake(sentence("forbidden: large number", at=self.at(node)))

    def see_Name(self, node: ast.Name) -> None:  # noqa: N802
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id, node)
            return
        name = self.aliases.get(node.id, node.id)
        if id(node) in self.known:
            return
        if (
            name in self.rules.modules
            and id(node) not in self.inner
            and (self.kernel or name in self.free | self.roots)
        ):
            # As a value it would be an object like others, whose attributes are members.
            raise Refused(sentence("forbidden: reach", at=self.at(node)))
        self.look_at_decorator(name, node)
        if "." in name:
            self.module_attribute(name, node)
        elif not self.readable(name):
            self.refuse_name(name, node)

    def readable(self, name: str) -> bool:
        bound = name in self.bound and name not in self.free
        if name.startswith("__") and name.strip("_"):
            return False
        if name in REACH:
            return bound  # a variable of that name
        known = self.rules.names | self.rules.modules | self.rules.decorators
        return name in known or bound or name in self.outer or name in self.exercise.given

    def see_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802
        inner = id(node) in self.inner
        self.inner.add(id(node.value))
        name = dotted(node)
        root = name.partition(".")[0] if name else ""
        whole = self.meaning(name) if name else ""
        if id(node) in self.known or (inner and whole == "numba.cuda"):
            return
        if not isinstance(node.ctx, ast.Load):
            if not self.of_self(node) and not self.of_an_object(node):
                raise NotYet(sentence("unknown: attribute assigned", at=self.at(node)))
        elif name and whole.partition(".")[0] in self.rules.modules:
            self.look_at_decorator(whole, node)
            if not (inner and self.prefix(whole)):
                self.module_attribute(whole, node)
        elif self.of_super(node):
            return
        elif node.attr == "__name__":
            self.type_of(node.value)
        elif node.attr.startswith("_") and node.attr not in {*self.members, *PUBLIC}:
            raise Refused(sentence("forbidden: reach", at=self.at(node)))
        elif node.attr in ("format", "format_map") and not _is_plain_format(node.value):
            raise Refused(sentence("forbidden: reach", at=self.at(node)))
        elif self.is_product(node.attr) or (
            name and not self.readable(self.aliases.get(root, root))
        ):
            self.refuse_name(whole or node.attr, node)
        elif node.attr not in self.members and node.attr not in PUBLIC:
            raise NotYet(sentence("unknown: attribute", name=node.attr, at=self.at(node)))

    def is_product(self, name: str) -> bool:
        """Is it a library's product, and no name of the answer's own? An array has `dot` itself."""
        return name in PRODUCTS and (name == "dot" or name not in self.members)

    def of_numpy(self, name: str) -> bool:
        return self.meaning(name).partition(".")[0] == "np"

    def of_self(self, node: ast.Attribute) -> bool:
        """Does a method of a class set an attribute of its own object?"""
        return id(node) in self.own and not _is_special(node.attr)

    def type_of(self, node: ast.expr) -> None:
        """Let `type(x)` stand where its value goes nowhere: it makes classes of any kind."""
        call = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
        call = call and self.exercise.kind == "values"
        if call and dotted(node.func) == "type" and not isinstance(node.args[0], ast.Starred):
            self.known.add(id(node.func))

    def of_super(self, node: ast.Attribute) -> bool:
        """Is it a method of the base class, which is the answer's own, that Python calls?"""
        call = node.value
        if not isinstance(call, ast.Call) or dotted(call.func) != "super":
            return False
        if call.args or call.keywords or self.exercise.kind != "values":
            return False
        self.known.add(id(call.func))
        return node.attr in SPECIAL

    def of_an_object(self, node: ast.Attribute) -> bool:
        """Is it an attribute that a class of the answer sets of self, and a variable's?"""
        variable = isinstance(node.value, ast.Name) and node.value.id in self.bound
        return variable and node.attr in self.set_of_self

    def look_at_decorator(self, name: str, node: ast.expr) -> None:
        """Raise NotYet for a kernel's decorator that is neither used as one nor called."""
        if self.kernel and name in self.rules.decorators and id(node) not in self.seen:
            raise NotYet(sentence("unknown: decorator", at=self.at(node)))

    def prefix(self, name: str) -> bool:
        """Is it the beginning of a longer name that is looked at by itself, as "cuda.shared"?"""
        return any(known.startswith(f"{name}.") for known in self.rules.attributes)

    def module_attribute(self, name: str, node: ast.AST) -> None:
        """Return if "math.ceil" may be used; what comes behind it (`….type`) is a member."""
        if name in self.rules.attributes | self.rules.decorators:
            return
        head, _, last = name.rpartition(".")
        if last in PRODUCTS:
            self.refuse_name(name, node)
        if f"{head}.*" in self.rules.attributes and not last.startswith("_"):
            return
        behind = head in self.rules.attributes or f"{head.rpartition('.')[0]}.*" in (
            self.rules.attributes
        )
        if behind and last in self.members:
            return
        self.refuse_name(name, node)

    def refuse_name(self, name: str, node: ast.AST) -> None:
        """Raise Refused for a name that is not known, with what was meant if that is plain."""
        root, _, rest = name.partition(".")
        at = self.at(node)
        last = name.rpartition(".")[2]
        if meant := dict(self.rules.withheld).get(name):
            raise Mistake(sentence("forbidden: meant", at=at, meant=meant))
        if last in PRODUCTS:
            key = "library: kernel" if self.kernel else "library: function"
            raise Product(sentence(key, at=at, instead=self.instead()))
        if root in REACH or "__" in name:
            raise Refused(sentence("forbidden: reach", at=at))
        if root in LIBRARIES and root not in self.rules.modules:
            key = "library: module in a kernel" if self.kernel else "library: module"
            message = sentence(key, at=at, name=root)
            if f"tl.{last}" in self.rules.attributes:
                message = f"{message} {sentence('library: same name', name=last)}"
            raise Product(message)
        if self.exercise.kind == "cuda" and f"cuda.{name}" in self.rules.attributes:
            raise Mistake(sentence("forbidden: called", at=at, name=name))
        if self.exercise.kind == "cuda" and root in LAUNCH:
            raise Mistake(sentence("forbidden: launch", at=at, name=root, instead=LAUNCH[root]))
        if name in [f"cuda.{place}" for place in PLACES]:
            raise Mistake(sentence("forbidden: axes", at=at, name=name))
        for near in (name, f"{name.rpartition('.')[0]}.*"):
            meant = MEANT.get(near)
            if meant == ARRAY and self.exercise.kind != "cuda" or meant == LOOP and not self.kernel:
                meant = None
            if meant is not None:
                message = sentence("forbidden: meant", at=at, meant=sentence(meant))
                if meant == LOOP:
                    raise Product(message)
                raise (Refused if meant in INSTEAD else Mistake)(message)
        if self.exercise.kind == "cuda" and root == "np" and hasattr(math, last):
            raise Mistake(sentence("forbidden: spelled", at=at, name=f"math.{last}"))
        alike = [known for known in self.rules.attributes if known.lower() == name.lower()]
        if alike:
            raise Mistake(sentence("forbidden: spelled", at=at, name=alike[0]))
        if rest:
            raise NotYet(sentence("unknown: name", at=at, name=name.removeprefix("std_")))
        if hasattr(builtins, name) and not self.kernel:
            raise NotYet(sentence("unknown: name", at=at, name=name))
        own = self.rules.names - CUDA.names if self.exercise.kind == "cuda" else frozenset()
        given = ", ".join(sorted({*self.exercise.given, *self.parameters, *own}))
        if name in COURSE:
            raise Refused(sentence("forbidden: other exercise", at=at, name=name, given=given))
        raise Mistake(sentence("forbidden: unknown", at=at, name=name, given=given))

    # Mistakes that can be told before anything runs.

    def see_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        """Let `t = cuda.threadIdx` be, where t.x is asked for later."""
        pairs = [(target, node.value) for target in node.targets]
        for target, value in list(pairs):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts, strict=False)
        for target, value in pairs:
            place = self.meaning(dotted(value) or "") in [f"cuda.{place}" for place in PLACES]
            if place and isinstance(target, ast.Name) and target.id in self.roots:
                self.known.add(id(value))

    def see_Compare(self, node: ast.Compare) -> None:  # noqa: N802
        if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            for side in (node.left, *node.comparators):
                self.type_of(side)
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Attribute) and side.attr == "shape" and not _same(node):
                raise Mistake(sentence("forbidden: shape compared", at=self.at(node)))

    def see_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        name = dotted(node.value)
        if name and self.kernel and name.rpartition(".")[2] in CALLED:
            raise Mistake(sentence("forbidden: not called", at=self.at(node), name=name))

    def see_Call(self, node: ast.Call) -> None:  # noqa: N802
        name = dotted(node.func) or ""
        member = isinstance(node.func, ast.Attribute) and node.func.attr
        if any((keyword.arg or "").startswith("_") for keyword in node.keywords):
            raise Refused(sentence("forbidden: reach", at=self.at(node)))
        if name == "isinstance" and name not in {*self.variables, *self.aliases, *self.classes}:
            kinds = [p for a in node.args for p in (a.elts if isinstance(a, ast.Tuple) else [a])]
            # Elsewhere it would take bytes for objects.
            self.known |= {id(n) for n in kinds if self.meaning(dotted(n) or "") == "np.ndarray"}
        if not self.kernel:
            return
        if self.meaning(name) in self.rules.decorators:
            if id(node) not in self.seen:
                self.look_at_options(node)
            self.seen.add(id(node.func))
        if self.meaning(name) in NO_FUNCTIONS:
            raise NotYet(sentence("unknown: name", at=self.at(node), name=name))
        if name in self.rules.attributes and name.rpartition(".")[2] in ("x", "y", "z"):
            raise Mistake(sentence("forbidden: number called", at=self.at(node)))
        if member in NO_CALLS:
            meant = sentence(NO_CALLS[member])
            raise Mistake(sentence("forbidden: member called", at=self.at(node), meant=meant))
        if name in MAKES and len(node.args) > 2 and self.exercise.kind == "cuda":
            raise Mistake(sentence("forbidden: two numbers", at=self.at(node), name=name))
        types = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        plain = [x.id for x in types if isinstance(x, ast.Name) and x.id in ("float", "int")]
        if name in MAKES and plain:
            raise Mistake(sentence("forbidden: python type", at=self.at(node), name=plain[0]))
        if name in self.parameters:
            raise Mistake(sentence("forbidden: not a function", at=self.at(node), name=name))


def _is_special(name: str) -> bool:
    """Is it a name of Python's or of `enum`'s, such as `__call__` and `_create_`?"""
    return name.startswith("_") and name.endswith("_")


def _is_of(node: ast.AST, name: str | None) -> bool:
    """Is it an attribute of this variable?"""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id == name


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain_format(node: ast.AST) -> bool:
    """Is it a text of `str.format` that asks for no attribute of what it is given?"""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_modest(node.value)


def _is_modest(text: str, depth: int = 2) -> bool:
    """Do all fields of a text for `str.format` ask for numbers or names alone?"""
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:  # raised when it runs as well
        return False
    for _, name, spec, _ in fields:
        if set(name or "") & set("._[") or (spec and not (depth and _is_modest(spec, depth - 1))):
            return False
    return True


def _is_signature(node: ast.expr) -> bool:
    """Is it a signature of numbers and arrays? Numba evaluates its text as Python."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_signature, node.elts))
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    try:
        tree = parse(node.value.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(
        NUMBER.fullmatch(n.id) if isinstance(n, ast.Name) else isinstance(n, SIGNATURE)
        for n in ast.walk(tree)
    )


def _is_type(name: str) -> bool:
    """Is it the whole name of one of Numba's types, as "numba.float32"?"""
    module, _, kind = name.rpartition(".")
    return module in ("numba", "numba.types") and bool(NUMBER.fullmatch(kind))


def _same(node: ast.Compare) -> bool:
    """Does it ask whether two shapes are equal?"""
    return all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)


def _outer(top: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds for the others."""
    return {top.name} if isinstance(top, ast.FunctionDef | ast.ClassDef) else named(top)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef)


def doubts(source: str) -> Iterator[str]:
    """Yield what looks like a mistake and may be none; it is said if the answer is wrong."""
    for node in ast.walk(parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        for middle in node.comparators[:-1]:
            if isinstance(middle, ast.BinOp) and isinstance(middle.op, ast.BitAnd | ast.BitOr):
                yield sentence("forbidden: precedence", at=describe(source, node))
