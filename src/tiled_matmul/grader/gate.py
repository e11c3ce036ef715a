"""What an answer may use, read off its syntax tree before anything of it runs.

An allow-list: a statement, a name or an attribute that is not on it is refused, with the line and
what stands there. So `a @ b` is refused, and so is every other way to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

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
WORDS = {
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.ClassDef: "a class",
    ast.Lambda: "a lambda",
    ast.Try: "try",
    ast.With: "with",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: ":=",
    ast.Starred: "*",
    ast.Delete: "del",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.AsyncFunctionDef: "async def",
    ast.Yield: "yield",
    ast.ListComp: "a list in a line",
    ast.List: "a list",
    ast.Dict: "a dictionary",
    ast.DictComp: "a dictionary in a line",
    ast.SetComp: "a set in a line",
    ast.Set: "a set",
}
LIBRARIES = ("torch", "np", "numpy", "scipy", "cupy", "cublas", "operator", "numba", "tiled_matmul")
PRODUCTS = ("matmul", "dot", "mm", "bmm", "einsum", "tensordot", "inner", "gemm", "vdot", "linalg")
ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
TYPE = "a type is called np.int32 or np.float32, or asked of an array, as in a.dtype"
LOOP = "write the loop over k"
MEANT = {  # a name that is near, and what is meant
    **dict.fromkeys(
        ("cuda.syncthread", "cuda.syncthreads_", "cuda.sync_threads", "cuda.barrier"),
        "the barrier is called cuda.syncthreads()",
    ),
    "cuda.synchronize": "that is for the host; a block's barrier is cuda.syncthreads()",
    "cuda.shared_array": "it is called cuda.shared.array",
    "cuda.local_array": "it is called cuda.local.array",
    **dict.fromkeys(
        (f"{m}.{t}" for m in ("cuda", "np") for t in ("int", "int_", "float", "float_")), TYPE
    ),
    **dict.fromkeys((f"cuda.{t}" for t in ("int32", "int64", "float32", "float64")), TYPE),
    "cuda.syncwarp": "it waits for one warp; the barrier of a block is cuda.syncthreads()",
    "cuda.threadfence": "a fence makes nobody wait; the barrier of a block is cuda.syncthreads()",
    "cuda.threadfence_block": "a fence makes nobody wait; the barrier is cuda.syncthreads()",
    "cuda.atomic.*": "nothing has to be atomic where each element of C is one thread's",
    **{f"cuda.{place}": f"it has an x and a y: cuda.{place}.x, cuda.{place}.y" for place in PLACES},
    **dict.fromkeys(("sum", "np.sum", "enumerate", "zip", "map"), LOOP),
    **dict.fromkeys(
        (f"np.{make}" for make in ("zeros", "empty", "ones", "array")),
        "an array of a block is cuda.shared.array, one of a thread cuda.local.array",
    ),
}
NO_CALLS = {  # members that are no functions
    "shape": "a shape is a pair of numbers: shape[0] is how many rows there are",
    "dtype": "a zero of an array's type is c.dtype.type(0)",
    "size": "size is a number",
    "ndim": "ndim is a number",
}
MAKES = ("cuda.shared.array", "cuda.local.array")
LAUNCH = {  # what the cell of a launch calls its sizes, and how a kernel asks for them
    "BLOCK": "cuda.blockDim.x` and `cuda.blockDim.y",
    "GRID": "cuda.gridDim.x` and `cuda.gridDim.y",
}
REACH = ("getattr", "eval", "exec", "compile", "open", "globals", "locals", "vars", "input", "type")


# The course's own words for a kernel: a notebook may have imported them for another exercise.
COURSE = ("copy_async", "commit_copies", "wait_copies", "tile", "copy_tile_async")


class Refused(Exception):
    """An answer uses what it may not; the message says what, where, and what to write instead."""

    diagnosis = "forbidden"


class Product(Refused):
    """An answer calls a library's product in place of writing it."""

    diagnosis = "library"


class NotPython(Exception):
    """The cell cannot be read as Python."""


@dataclass(frozen=True)
class _Scope:
    names: frozenset[str]  # what may be read here
    module: frozenset[str]  # names of modules among them


def admit(exercise: Exercise, source: str) -> None:
    """Return if `source` is an answer that may run; raise NotPython or Refused."""
    tree = _parsed(source)
    rules = exercise.rules
    own = _definitions(exercise, tree, source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            _Function(exercise, rules, own, source).admit(node)


def _parsed(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE:
        raise Refused(f"The cell has {len(source):,} characters; an answer has {MAX_SOURCE:,}.")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        text = (error.text or "").strip()
        if text.startswith(("%", "!", "?")):
            raise NotPython(
                f"Line {error.lineno} is for the notebook, not for Python: `{text[:60]}`. Put it "
                "in a cell of its own."
            ) from None
        said = f": `{text[:60]}`" if text else ""
        raise NotPython(f"Line {error.lineno} is not Python{said} ({error.msg}).") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NotPython(f"The cell is not Python: {str(error)[:80] or 'it is too deep'}.") from None
    _one_reading(tree, source)
    if _depth(tree) > MAX_DEPTH:
        raise Refused("The cell has brackets within brackets, too deep for an answer.")
    return tree


def _one_reading(tree: ast.Module, source: str) -> None:
    """Refuse what other readers of the source would take for something else than Python does.

    Some end a line at more characters, and Triton's interpreter takes the last line that begins
    with "def " for the kernel, be it within a string.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    heads = {line for f in functions for line in (f.lineno, *(d.lineno for d in f.decorator_list))}
    odd = ODD.search(source)
    if odd:
        line = source.count("\n", 0, odd.start()) + 1
        raise Refused(f"Line {line} has a character that is not for answers: {odd[0]!a}.")
    for number, line in enumerate(source.split("\n"), start=1):
        if line.strip().startswith("def ") and number not in heads:
            raise Refused(f"Line {number} begins like a function, and is none: leave that out.")


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
    """Return the names that the cell defines at its top level; refuse what is no definition."""
    own: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            name = node.name
        elif isinstance(node, ast.Assign) and _is_constant(node):
            name = node.targets[0].id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if ast.unparse(node) in exercise.rules.imports:
                continue
            raise Refused(
                f"An answer imports nothing: {_at(source, node)}. What it may use is there already."
            )
        elif isinstance(node, ast.Expr) and _is_text(node.value):
            continue
        elif isinstance(node, ast.Assign):
            raise Refused(
                f"Outside of `def {exercise.entry}` only plain numbers are named, and there is "
                f"{_at(source, node)}. Move that into the function."
            )
        else:
            raise Refused(
                f"This cell holds `def {exercise.entry}` and its helpers only, and there is "
                f"{_at(source, node)}. Try things out in a cell of their own."
            )
        if name in exercise.given or name in exercise.rules.names:
            raise Refused(f"{name} is given and may not be defined anew: {_at(source, node)}.")
        if name.startswith("_"):
            raise Refused(f"Names with an underscore in front are not for answers: {name}.")
        if name in own:
            raise Refused(f"{name} is defined twice, in lines {own[name].lineno} and {node.lineno}")
        own[name] = node
    entry = own.get(exercise.entry)
    wanted = f"{exercise.entry}({', '.join(exercise.parameters)})"
    if not isinstance(entry, ast.FunctionDef):
        raise Refused(f"The cell should define `def {wanted}`, and does not.")
    found = [argument.arg for argument in entry.args.args]
    if len(found) != len(exercise.parameters):
        raise Refused(f"`{exercise.entry}` takes {wanted}, here it takes ({', '.join(found)}).")
    if exercise.kind in ("cuda", "triton") and not entry.decorator_list:
        raise Refused(
            f"`{exercise.entry}` is a kernel: `@{min(exercise.rules.decorators)}` stands above it."
        )
    return frozenset(own)


def _is_constant(node: ast.Assign) -> bool:
    value = node.value
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
    number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return number and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)


class _Function:
    """Looks through one function of an answer."""

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
            raise Refused(f"`{function.name}` needs no types: `def {function.name}(…):` will do.")
        if odd or arguments.defaults:
            raise Refused(f"`{function.name}` takes plain arguments only, without *, / or =.")
        for argument in given:
            self.bindable(argument.arg, argument)
            if argument.annotation is not None:
                # It is run when the function is defined, as plain Python.
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
            raise Refused(f"Names with an underscore in front are not for answers: {name}.")
        if name in self.rules.names or name in self.own:
            raise Refused(
                f"{name} has a meaning already and may not be assigned to, in line {node.lineno}."
            )

    def decorator(self, node: ast.expr) -> None:
        name = node.func if isinstance(node, ast.Call) else node
        options = node.keywords if isinstance(node, ast.Call) else []
        plain = isinstance(node, ast.Call) and node.args
        if _dotted(name) not in self.rules.decorators or plain:
            raise Refused(f"An answer is not decorated so: {_at(self.source, node)}.")
        for option in options:
            flag = isinstance(option.value, ast.Constant) and isinstance(option.value.value, bool)
            if option.arg not in ("device", "fastmath", "inline") or not flag:
                raise Refused(f"An answer is not decorated so: {_at(self.source, node)}.")

    def expression(self, node: ast.AST, texts: bool = False) -> None:
        """Look at a statement or an expression and all in it."""
        if isinstance(node, ast.MatMult):
            return  # said by the BinOp around it, which has a line
        operator = getattr(node, "op", None)
        if isinstance(operator, ast.MatMult):
            raise Product(
                "A kernel may not call the library's product: "
                f"{_at(self.source, node)}. {self.instead()}"
                if self.exercise.kind in ("cuda", "triton")
                else f"The answer may not be the library's product: {_at(self.source, node)}. "
                "Write the loops."
            )
        if not isinstance(node, self.allowed):
            word = WORDS.get(type(node), f"a {type(node).__name__}")
            if isinstance(node, ast.FunctionDef):
                word = "a function within a function (write it above, in the same cell)"
            where = f"`{_quote(self.source, node)}`, line {getattr(node, 'lineno', '?')}"
            raise Refused(
                f"The answer needs no {word.removeprefix('a ').removeprefix('an ')}: {where}."
            )
        if isinstance(node, ast.Expr) and _dotted(node.value) in self.rules.attributes:
            raise Refused(
                f"{_at(self.source, node)} names a function and does not call it: "
                f"`{_dotted(node.value)}()`."
            )
        kept = isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load)
        keeps_nothing = self.exercise.kind == "loops" and not self.rules.lists
        if kept and keeps_nothing and id(node) not in self.pairs:
            raise Refused(
                f"The answer needs no tuple: {_at(self.source, node)}. Ask for each element where "
                "it is multiplied."
            )
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
        return "Two tiles are multiplied by tl.dot." if triton else "Write the loop over k."

    def constant(self, node: ast.Constant, texts: bool) -> None:
        value = node.value
        if isinstance(value, str) and (texts or self.rules.lists):
            return
        if value is not None and type(value) not in (bool, int, float):
            raise Refused(f"The answer needs numbers only: {_at(self.source, node)}.")
        if type(value) is int and value.bit_length() > 64:
            raise Refused(f"No number of a kernel has more than 64 bits: {_at(self.source, node)}.")

    def compare(self, node: ast.Compare) -> None:
        """Refuse comparisons that mean something else than what they look like."""
        sides = [node.left, *node.comparators]
        for side in sides:
            if isinstance(side, ast.Attribute) and side.attr == "shape":
                raise Refused(
                    f"{_at(self.source, node)}: a shape is a pair, shape[0] is how many rows there "
                    "are, shape[1] how many columns."
                )
        for middle in sides[1:-1]:
            if isinstance(middle, ast.BinOp) and isinstance(middle.op, ast.BitAnd | ast.BitOr):
                raise Refused(
                    f"{_at(self.source, node)}: & and | come before < and >. Between comparisons "
                    "stands `and` or `or`; of Triton's tiles each comparison needs parentheses."
                )

    def name(self, node: ast.Name) -> None:
        if node.id in self.readable:
            return
        self.refuse_name(node.id, node)

    def refuse_name(self, name: str, node: ast.AST) -> None:
        root, _, rest = name.partition(".")
        at = f"{_at(self.source, node)}"
        last = name.rpartition(".")[2]
        library = root in LIBRARIES and root not in self.rules.names
        if last in PRODUCTS or (library and self.exercise.kind != "values"):
            what = "A kernel" if self.exercise.kind in ("cuda", "triton") else "The answer"
            if last not in PRODUCTS:
                near = f" Here it is tl.{last}." if f"tl.{last}" in self.rules.attributes else ""
                raise Product(f"{what} uses nothing of {root}: {at}.{near}")
            raise Product(f"{what} may not call the library's product: {at}. {self.instead()}")
        if root in REACH or "__" in name:
            raise Refused(f"An answer does not reach out of its cell: {at}.")
        if self.exercise.kind == "cuda" and f"cuda.{name}" in self.rules.attributes:
            raise Refused(f"{at} is called cuda.{name}.")
        if self.exercise.kind == "cuda" and root in LAUNCH:
            raise Refused(
                f"{at}: {root} is for the launch, and may be another in the next one. A kernel "
                f"asks `{LAUNCH[root]}`."
            )
        for meant in (name, f"{name.rpartition('.')[0]}.*"):
            if meant in MEANT:
                raise (Product if MEANT[meant] == LOOP else Refused)(f"{at}: {MEANT[meant]}.")
        alike = [known for known in self.rules.attributes if known.lower() == name.lower()]
        if alike:
            raise Refused(f"{at} is spelled {alike[0]}.")
        if rest:
            raise Refused(f"{name} is not known here: {at}. This exercise needs no such thing.")
        own = self.rules.names - CUDA.names if self.exercise.kind == "cuda" else frozenset()
        given = ", ".join(sorted({*self.exercise.given, *self.arguments, *own}))
        known = "is not for this exercise" if name in COURSE else "is not known here"
        raise Refused(
            f"{name} {known}: {at}. The given names are {given}, and what this function assigns."
        )

    def attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            raise Refused(f"An attribute may not be assigned to: {_at(self.source, node)}.")
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
                raise Refused(f"An answer does not reach out of its cell: {_at(self.source, node)}")
            raise Refused(f"This exercise needs no .{node.attr}: {_at(self.source, node)}.")
        self.expression(node.value)

    def call(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Name | ast.Attribute):
            raise Refused(f"Only a function's name can be called: {_at(self.source, node)}.")
        bare = isinstance(node.func, ast.Name) and node.func.id
        dotted = _dotted(node.func) or ""
        number = dotted in self.rules.attributes and dotted.rpartition(".")[2] in ("x", "y", "z")
        if number or (isinstance(node.func, ast.Attribute) and node.func.attr in NO_CALLS):
            meant = "a number" if number else NO_CALLS[node.func.attr]
            raise Refused(f"{_at(self.source, node)} calls what is no function: {meant}.")
        if dotted in MAKES and len(node.args) > 2:
            raise Refused(
                f"{_at(self.source, node)}: the shape is a pair with parentheses of its own, as in "
                f"{dotted}((2, 3), a.dtype)."
            )
        kinds = [*node.args[1:], *(word.value for word in node.keywords)]
        plain = [x.id for x in kinds if isinstance(x, ast.Name) and x.id in ("float", "int")]
        if dotted in MAKES and plain:
            raise Refused(f"{_at(self.source, node)}: instead of {plain[0]}, {TYPE}.")
        own = self.rules.names | self.own
        if bare and bare in self.readable - own and not self.rules.lists:
            raise Refused(f"{bare} is no function: {_at(self.source, node)}.")
        if any(keyword.arg is None for keyword in node.keywords):
            raise Refused(f"** is not for answers: {_at(self.source, node)}.")


def _pairs(node: ast.AST) -> list[ast.AST]:
    """Return the tuples of a node that keep nothing: an index, and values that are unpacked."""
    if isinstance(node, ast.Subscript):
        return [node.slice]
    unpacked = isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Tuple) for target in node.targets
    )
    return [node.value] if unpacked else []


def _dotted(node: ast.AST) -> str | None:
    """Return "cuda.shared.array" for such an expression, None for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
