"""Decide from an answer's syntax tree whether the answer may run, before any of it runs.

This is an allow-list: a statement, a name or an attribute that is not on the list is refused, and
the message quotes it with its line. So `a @ b` is refused, and so is every other spelling of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import CUDA, PLACES, Exercise, Rules

MAX_SOURCE = 20_000  # characters
MAX_DEPTH = 60

STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass),
    *(ast.Break, ast.Continue, ast.Return),
)
EXPRESSIONS = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.Constant, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.keyword),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
LISTS = (
    *(ast.List, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.comprehension),
    *(ast.Lambda, ast.arguments, ast.arg),
)
CONSTRUCTS = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.ClassDef: "class",
    ast.Lambda: "lambda",
    ast.Try: "try",
    ast.With: "with",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.JoinedStr: "f-string",
    ast.NamedExpr: ":=",
    ast.Starred: "*",
    ast.Delete: "del",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.AsyncFunctionDef: "async def",
    ast.Yield: "yield",
    ast.ListComp: "list comprehension",
    ast.List: "list",
    ast.Dict: "dictionary",
    ast.DictComp: "dictionary comprehension",
    ast.SetComp: "set comprehension",
    ast.Set: "set",
}
LIBRARIES = ("torch", "np", "numpy", "scipy", "cupy", "cublas", "operator", "numba", "tiled_matmul")
PRODUCTS = ("matmul", "dot", "mm", "bmm", "einsum", "tensordot", "inner", "gemm", "vdot", "linalg")
ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
LOOP = "library: sum"
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
    **dict.fromkeys(("sum", "np.sum", "enumerate", "zip", "map"), LOOP),
    **dict.fromkeys(
        (f"np.{make}" for make in ("zeros", "empty", "ones", "array")), "forbidden: array"
    ),
}
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
REACH = ("getattr", "eval", "exec", "compile", "open", "globals", "locals", "vars", "input", "type")


# The course's own intrinsics: a notebook may have imported them for another exercise.
COURSE = ("copy_async", "commit_copies", "wait_copies", "tile", "copy_tile_async")


class Refused(Exception):
    """An answer uses what it may not; the message names it, its line, and what to write instead."""

    diagnosis = "forbidden"


class Product(Refused):
    """An answer calls a library's product instead of computing it."""

    diagnosis = "library"


class NotPython(Exception):
    """The cell cannot be read as Python."""


def admit(exercise: Exercise, source: str) -> None:
    """Return if the answer `source` may run; else raise NotPython or Refused."""
    tree = _parsed(source)
    rules = exercise.rules
    own = _definitions(exercise, tree, source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            _Function(exercise, rules, own, source).admit(node)


def _parsed(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE:
        raise Refused(sentence("forbidden: length", characters=len(source), most=MAX_SOURCE))
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        text = (error.text or "").strip()
        if text.startswith(("%", "!", "?")):
            command = sentence("error: notebook command", line=error.lineno, text=text[:60])
            raise NotPython(command) from None
        quote = f": `{text[:60]}`" if text else ""
        message = sentence("error: syntax", line=error.lineno, quote=quote, reason=error.msg)
        raise NotPython(message) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error)[:80] or sentence("error: nested")
        raise NotPython(sentence("error: not python", reason=reason)) from None
    _one_reading(tree, source)
    if _depth(tree) > MAX_DEPTH:
        raise Refused(sentence("forbidden: depth"))
    return tree


def _one_reading(tree: ast.Module, source: str) -> None:
    """Refuse source that another reader would understand differently than Python does.

    Some readers end a line at more characters than Python, and Triton's interpreter takes the last
    line that begins with "def " for the kernel, even inside a string.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    heads = {line for f in functions for line in (f.lineno, *(d.lineno for d in f.decorator_list))}
    odd = ODD.search(source)
    if odd:
        line = source.count("\n", 0, odd.start()) + 1
        raise Refused(sentence("forbidden: character", line=line, character=ascii(odd[0])))
    for number, line in enumerate(source.split("\n"), start=1):
        if line.strip().startswith("def ") and number not in heads:
            raise Refused(sentence("forbidden: def", line=number))


def _depth(tree: ast.AST) -> int:
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


def _quote(source: str, node: ast.AST) -> str:
    text = ast.get_source_segment(source, node) or ast.unparse(node)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"


def _at(source: str, node: ast.AST) -> str:
    return f"`{_quote(source, node)}` in line {node.lineno}"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _definitions(exercise: Exercise, tree: ast.Module, source: str) -> frozenset[str]:
    """Return the names that the cell defines at its top level; refuse any other statement there."""
    own: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            name = node.name
        elif isinstance(node, ast.Assign) and _is_constant(node):
            name = node.targets[0].id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if ast.unparse(node) in exercise.rules.imports:
                continue
            raise Refused(sentence("forbidden: import", at=_at(source, node)))
        elif isinstance(node, ast.Expr) and _is_text(node.value):
            continue
        elif isinstance(node, ast.Assign):
            at = _at(source, node)
            raise Refused(sentence("forbidden: outside", entry=exercise.entry, at=at))
        else:
            at = _at(source, node)
            raise Refused(sentence("forbidden: other statement", entry=exercise.entry, at=at))
        if name in exercise.given or name in exercise.rules.names:
            raise Refused(sentence("forbidden: redefined", name=name, at=_at(source, node)))
        if name.startswith("_"):
            raise Refused(sentence("forbidden: underscore", name=name))
        if name in own:
            lines = {"first": own[name].lineno, "second": node.lineno}
            raise Refused(sentence("forbidden: defined twice", name=name, **lines))
        own[name] = node
    entry = own.get(exercise.entry)
    wanted = f"{exercise.entry}({', '.join(exercise.parameters)})"
    if not isinstance(entry, ast.FunctionDef):
        raise Refused(sentence("forbidden: no entry", wanted=wanted))
    parameters = [argument.arg for argument in entry.args.args]
    if len(parameters) != len(exercise.parameters):
        actual = f"{exercise.entry}({', '.join(parameters)})"
        raise Refused(sentence("forbidden: parameters", wanted=wanted, actual=actual))
    if exercise.kind in ("cuda", "triton") and not entry.decorator_list:
        decorator = min(exercise.rules.decorators)
        raise Refused(
            sentence("forbidden: no decorator", entry=exercise.entry, decorator=decorator)
        )
    return frozenset(own)


def _is_constant(node: ast.Assign) -> bool:
    value = node.value
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
    number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return number and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)


class _Function:
    """Checks one function of an answer."""

    def __init__(self, exercise: Exercise, rules: Rules, own: frozenset, source: str) -> None:
        self.exercise, self.rules, self.own, self.source = exercise, rules, own, source
        self.allowed = STATEMENTS + EXPRESSIONS + (LISTS if rules.lists else ())
        self.readable = rules.names | own | frozenset(exercise.given)

    def admit(self, function: ast.FunctionDef) -> None:
        for decorator in function.decorator_list:
            self.decorator(decorator)
        arguments = function.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        odd = arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs
        if function.returns is not None or getattr(function, "type_params", None):
            raise Refused(sentence("forbidden: annotation", name=function.name))
        if odd or arguments.defaults:
            raise Refused(sentence("forbidden: odd parameters", name=function.name))
        for argument in given:
            self.bindable(argument.arg, argument)
            if argument.annotation is not None:
                # An annotation is evaluated as plain Python when the function is defined.
                self.expression(argument.annotation)
        body = function.body
        if isinstance(body[0], ast.Expr) and _is_text(body[0].value):
            body = body[1:]
        self.arguments = [argument.arg for argument in given]
        bound = set(self.arguments)
        for node in self.walk(body):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.bindable(node.id, node)
                bound.add(node.id)
            elif isinstance(node, ast.arg):  # of a lambda
                self.bindable(node.arg, node)
                bound.add(node.arg)
        self.readable |= bound
        self.pairs = {id(part) for node in self.walk(body) for part in _pairs(node)}
        for statement in body:
            self.expression(statement)

    def walk(self, body: list[ast.stmt]) -> Iterator[ast.AST]:
        for statement in body:
            yield from ast.walk(statement)

    def bindable(self, name: str, node: ast.AST) -> None:
        if name.startswith("_") and name != "_":
            raise Refused(sentence("forbidden: underscore", name=name))
        if name in self.rules.names or name in self.own:
            raise Refused(sentence("forbidden: meaning", name=name, line=node.lineno))

    def decorator(self, node: ast.expr) -> None:
        name = node.func if isinstance(node, ast.Call) else node
        options = node.keywords if isinstance(node, ast.Call) else []
        plain = isinstance(node, ast.Call) and node.args
        if _dotted(name) not in self.rules.decorators or plain:
            raise Refused(sentence("forbidden: decorator", at=_at(self.source, node)))
        for option in options:
            flag = isinstance(option.value, ast.Constant) and isinstance(option.value.value, bool)
            if option.arg not in ("device", "fastmath", "inline") or not flag:
                raise Refused(sentence("forbidden: decorator option", at=_at(self.source, node)))

    def expression(self, node: ast.AST, texts: bool = False) -> None:
        """Check a statement or an expression and everything in it."""
        if isinstance(node, ast.MatMult):
            return  # the BinOp around it, which has a line, is refused
        operator = getattr(node, "op", None)
        if isinstance(operator, ast.MatMult):
            at = _at(self.source, node)
            if self.exercise.kind in ("cuda", "triton"):
                raise Product(sentence("library: kernel", at=at, instead=self.instead()))
            raise Product(sentence("library: operator", at=at))
        if not isinstance(node, self.allowed):
            construct = CONSTRUCTS.get(type(node), type(node).__name__)
            if isinstance(node, ast.FunctionDef):
                construct = sentence("forbidden: nested function")
            place = {"quote": _quote(self.source, node), "line": getattr(node, "lineno", "?")}
            raise Refused(sentence("forbidden: construct", construct=construct, **place))
        if isinstance(node, ast.Expr) and _dotted(node.value) in self.rules.attributes:
            at = _at(self.source, node)
            raise Refused(sentence("forbidden: not called", at=at, name=_dotted(node.value)))
        kept = isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load)
        keeps_nothing = self.exercise.kind == "loops" and not self.rules.lists
        if kept and keeps_nothing and id(node) not in self.pairs:
            raise Refused(sentence("forbidden: tuple", at=_at(self.source, node)))
        if isinstance(node, ast.Compare):
            self.compare(node)
        if isinstance(node, ast.Constant):
            self.constant(node, texts)
        elif isinstance(node, ast.Name):
            self.name(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node)
            return
        elif isinstance(node, ast.Call):
            self.call(node)
        texts = isinstance(node, ast.Call) and _dotted(node.func) == "print"
        # input_precision="ieee"
        texts |= isinstance(node, ast.keyword) and self.exercise.kind == "triton"
        for child in ast.iter_child_nodes(node):
            self.expression(child, texts)

    def instead(self) -> str:
        triton = self.exercise.kind == "triton"
        return sentence("library: dot") if triton else sentence("library: loop")

    def constant(self, node: ast.Constant, texts: bool) -> None:
        value = node.value
        if isinstance(value, str) and (texts or self.rules.lists):
            return
        if value is not None and type(value) not in (bool, int, float):
            raise Refused(sentence("forbidden: constant", at=_at(self.source, node)))
        if type(value) is int and value.bit_length() > 64:
            raise Refused(sentence("forbidden: large number", at=_at(self.source, node)))

    def compare(self, node: ast.Compare) -> None:
        """Refuse comparisons that do not mean what they look like."""
        sides = [node.left, *node.comparators]
        for side in sides:
            if isinstance(side, ast.Attribute) and side.attr == "shape":
                raise Refused(sentence("forbidden: shape compared", at=_at(self.source, node)))
        for middle in sides[1:-1]:
            if isinstance(middle, ast.BinOp) and isinstance(middle.op, ast.BitAnd | ast.BitOr):
                raise Refused(sentence("forbidden: precedence", at=_at(self.source, node)))

    def name(self, node: ast.Name) -> None:
        if node.id in self.readable:
            return
        self.refuse_name(node.id, node)

    def refuse_name(self, name: str, node: ast.AST) -> None:
        root, _, rest = name.partition(".")
        at = _at(self.source, node)
        last = name.rpartition(".")[2]
        library = root in LIBRARIES and root not in self.rules.names
        in_kernel = self.exercise.kind in ("cuda", "triton")
        if last in PRODUCTS:
            key = "library: kernel" if in_kernel else "library: function"
            raise Product(sentence(key, at=at, instead=self.instead()))
        if library and self.exercise.kind != "values":
            key = "library: module in a kernel" if in_kernel else "library: module"
            message = sentence(key, at=at, name=root)
            if f"tl.{last}" in self.rules.attributes:
                message = f"{message} {sentence('library: same name', name=last)}"
            raise Product(message)
        if root in REACH or "__" in name:
            raise Refused(sentence("forbidden: reach", at=at))
        if self.exercise.kind == "cuda" and f"cuda.{name}" in self.rules.attributes:
            raise Refused(sentence("forbidden: called", at=at, name=name))
        if self.exercise.kind == "cuda" and root in LAUNCH:
            raise Refused(sentence("forbidden: launch", at=at, name=root, instead=LAUNCH[root]))
        if name in [f"cuda.{place}" for place in PLACES]:
            raise Refused(sentence("forbidden: axes", at=at, name=name))
        for near in (name, f"{name.rpartition('.')[0]}.*"):
            if near in MEANT:
                message = sentence("forbidden: meant", at=at, meant=sentence(MEANT[near]))
                raise (Product if MEANT[near] == LOOP else Refused)(message)
        alike = [known for known in self.rules.attributes if known.lower() == name.lower()]
        if alike:
            raise Refused(sentence("forbidden: spelled", at=at, name=alike[0]))
        if rest:
            raise Refused(sentence("forbidden: not needed", at=at, name=name))
        own = self.rules.names - CUDA.names if self.exercise.kind == "cuda" else frozenset()
        given = ", ".join(sorted({*self.exercise.given, *self.arguments, *own}))
        key = "forbidden: other exercise" if name in COURSE else "forbidden: unknown"
        raise Refused(sentence(key, at=at, name=name, given=given))

    def attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            raise Refused(sentence("forbidden: attribute assigned", at=_at(self.source, node)))
        dotted = _dotted(node)
        root = dotted.partition(".")[0] if dotted else None
        modules = {name.partition(".")[0] for name in self.rules.attributes}
        if root in modules:
            if dotted not in self.rules.attributes:
                self.refuse_name(dotted, node)
            return
        if node.attr not in self.rules.members:
            if dotted and root not in self.readable:
                self.refuse_name(dotted, node)
            if node.attr in PRODUCTS:
                self.refuse_name(dotted or node.attr, node)
            if node.attr.startswith("_"):
                raise Refused(sentence("forbidden: reach", at=_at(self.source, node)))
            at = _at(self.source, node)
            raise Refused(sentence("forbidden: attribute", name=node.attr, at=at))
        self.expression(node.value)

    def call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name | ast.Attribute):
            raise Refused(sentence("forbidden: call", at=_at(self.source, node)))
        bare = isinstance(node.func, ast.Name) and node.func.id
        dotted = _dotted(node.func) or ""
        if dotted in self.rules.attributes and dotted.rpartition(".")[2] in ("x", "y", "z"):
            raise Refused(sentence("forbidden: number called", at=_at(self.source, node)))
        if isinstance(node.func, ast.Attribute) and node.func.attr in NO_CALLS:
            meant = sentence(NO_CALLS[node.func.attr])
            raise Refused(
                sentence("forbidden: member called", at=_at(self.source, node), meant=meant)
            )
        if dotted in MAKES and len(node.args) > 2:
            raise Refused(
                sentence("forbidden: two numbers", at=_at(self.source, node), name=dotted)
            )
        types = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
        plain = [x.id for x in types if isinstance(x, ast.Name) and x.id in ("float", "int")]
        if dotted in MAKES and plain:
            raise Refused(
                sentence("forbidden: python type", at=_at(self.source, node), name=plain[0])
            )
        own = self.rules.names | self.own
        if bare and bare in self.readable - own and not self.rules.lists:
            raise Refused(
                sentence("forbidden: not a function", at=_at(self.source, node), name=bare)
            )
        if any(keyword.arg is None for keyword in node.keywords):
            raise Refused(sentence("forbidden: keywords", at=_at(self.source, node)))


def _pairs(node: ast.AST) -> list[ast.AST]:
    """Return the tuples in a node that store nothing: an index, and values that are unpacked."""
    if isinstance(node, ast.Subscript):
        return [node.slice]
    unpacked = isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Tuple) for target in node.targets
    )
    return [node.value] if unpacked else []


def _dotted(node: ast.AST) -> str | None:
    """Return "cuda.shared.array" for an expression of such dotted names, None for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
