"""Which code a record measured: a hash of a kernel, its launcher and all that they use.

A rung's `matmul` and kernel are followed by name through the ladder, the kit and what chooses
between rungs, and each definition that is reached is hashed by its syntax tree. So a fingerprint
changes neither with comments, docstrings and line breaks, nor when a definition moves to another
file, nor with what an error says: no error was raised when a number was taken. A text that is the
name of a rung's file, as rules that choose between rungs hold it, counts as that rung's launcher.

The modules of HOST_ONLY are left out: they choose the back end, check operands, remember plans, and
time candidates inside `tuning`, which changes neither the kernel that runs elsewhere nor its time
on a GPU. They count where the host's time is what was measured, and where they are named. How the
clock measures is not a part of it either; that is the commit's.

A text that names a file beside the module that holds it, such as a kernel in another language,
counts as that file's content.
"""

from __future__ import annotations

import ast
import hashlib
import re
import symtable
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tiled_matmul.files import rung_files

PACKAGE = Path(__file__).parents[1]
# Rooms whose code runs when a rung does, a specimen, or a product over several GPUs.
FOLLOWED = (
    *("ladder", "kit", "dispatch", "models", "machine", "specimens"),
    *("distributed", "torch"),
)
HOST_ONLY = ("kit.arguments", "kit.backend", "kit.plans", "dispatch.tuned")
BY_HOST = ", host"  # behind a rung's name: with HOST_ONLY
DIGITS = 16
LAUNCHER = "matmul"
CPP = ".cu"
CUBIN = ".cubin"  # no text; the JSON beside it says how it is launched
CPP_PARTS = re.compile(  # comments, and literals, in which none begins
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])+'", re.DOTALL
)
COMPILER = ("kit.cuda_cpp", "CppKernel")  # of twins: its options
Place = tuple[str, str]  # a module, such as "kit.layouts", and a name in it


class Sources:
    """The definitions of a package's modules, read from its files and not imported."""

    def __init__(self, package: Path = PACKAGE) -> None:
        self.rungs = rung_files(package / "ladder")
        parts = {p.relative_to(package).with_suffix("").parts: p for p in package.rglob("*.py")}
        self.paths = {".".join(x).removesuffix(".__init__"): path for x, path in parts.items()}
        self.paths |= {f"ladder.{name}": path for name, path in self.rungs.items()}
        self._modules: dict[str, Module] = {}

    def module(self, name: str) -> Module:
        """Return a module, such as "kit.layouts". Raises ValueError for one that is not there."""
        if name not in self._modules:
            if name not in self.paths:
                raise ValueError(f"the package has no module {name!r}")
            tree = ast.parse(self.paths[name].read_text(encoding="utf-8"))
            self._modules[name] = Module(name, tree, self)
        return self._modules[name]

    def reached(self, starts: Iterable[Place], leave: Iterable[str] = ()) -> list[str]:
        """Return the definitions that are used from `starts`, each as a text of its tree.

        What modules in `leave` define is left out.
        """
        waiting, seen, texts = list(starts), set(leave), set()
        while waiting:
            place = waiting.pop()
            if place in seen or place[0] in seen:
                continue
            seen.add(place)
            found, used = self.module(place[0]).definition(place[1])
            texts |= set(found)
            waiting += used
        return sorted(texts)


class Module:
    """A file's definitions by name, and where its other names come from."""

    def __init__(self, name: str, tree: ast.Module, sources: Sources) -> None:
        self.name, self.sources = name, sources
        self.statements: dict[str, list[ast.stmt]] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            for bound in _bound(statement):
                self.statements.setdefault(bound, []).append(statement)
        self.imported = dict(self._imports(tree.body))
        self._definitions: dict[str, tuple[list[str], list[Place]]] = {}

    def definition(self, name: str) -> tuple[list[str], list[Place]]:
        """Return (texts, places used) of what a name is bound to; "*" is the whole module."""
        if name not in self._definitions:
            texts, used = [], []
            if name == "*":
                used = [(self.name, each) for each in self.statements]
            for statement in self.statements.get(name, ()):
                texts.append(f"{name} {_text(statement)}")
                texts += self._files(statement)
                used += self._used(statement)
            if name in self.imported:  # handed on
                used.append(self.imported[name])
            self._definitions[name] = texts, used
        return self._definitions[name]

    def has(self, name: str) -> bool:
        """Is a name defined here, or imported?"""
        return name in self.statements or name in self.imported

    def _used(self, statement: ast.stmt) -> Iterator[Place]:
        nodes = list(_walk(statement))
        own = dict(self._imports(nodes))  # in a function
        known = _global(statement) | set(own)
        inside = self.imported | own
        attributes = {
            node.value: node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for node in nodes:
            if isinstance(node, ast.Name):
                if node.id in known and node.id in inside:
                    module, name = inside[node.id]
                    yield module, attributes.get(node, "*") if name == "*" else name
                elif node.id in known and node.id in self.statements:
                    yield self.name, node.id
            elif isinstance(node, ast.Constant) and node.value in self.sources.rungs:
                yield f"ladder.{node.value}", LAUNCHER

    def _files(self, statement: ast.stmt) -> Iterator[str]:
        """Yield the content of each file beside this one that a text names."""
        for node in _walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
                path = self.sources.paths[self.name].parent / node.value
                if path.suffix != ".py" and "\0" not in node.value and path.is_file():
                    if path.suffix == CUBIN:
                        both = path.read_bytes() + path.with_suffix(".json").read_bytes()
                        yield f"{node.value} {hashlib.sha256(both).hexdigest()}"
                        continue
                    text = path.read_text(encoding="utf-8")
                    yield f"{node.value} {without_comments(text) if path.suffix == CPP else text}"

    def _imports(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, Place]]:
        """Yield (name, place) of each import from a room that is followed."""
        for node in nodes:
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            home = node.module.removeprefix("tiled_matmul").removeprefix(".")
            # The list of rungs is no code of theirs, and what it looks up stands in texts.
            known = {} if home == "ladder" else self.sources.paths
            if home.partition(".")[0] not in (*FOLLOWED, ""):
                continue
            for alias in node.names:
                name, inner = alias.asname or alias.name, f"{home}.{alias.name}".lstrip(".")
                if inner in self.sources.paths and inner.partition(".")[0] in FOLLOWED:
                    yield name, (inner, "*")
                elif home in known:
                    yield name, (home, alias.name)


@cache
def of(name: str) -> str:
    """Return a fingerprint of this package's code, as `kernels` of a record have it by name.

    `name` is that of a rung or twin, also with BY_HOST, or "module::function", such as
    "distributed.cuts::ring". Raises ValueError for any other.
    """
    module, colons, function = name.partition("::")
    if colons:
        sources = _here()
        texts = sources.reached([(module, function)], set(HOST_ONLY) - {module})
        if not sources.module(module).has(function):
            raise ValueError(f"{module} has no {function!r}")
        return digest(texts)
    from tiled_matmul.ladder import rung_or_twin

    return of_rung(rung_or_twin(name.removesuffix(BY_HOST)), host=name.endswith(BY_HOST))


def of_rung(rung: Any, host: bool = False, sources: Sources | None = None) -> str:
    """Return the fingerprint of a Rung, with `host` also of what the host does before a launch.

    That of a Twin is of its rung, and of the texts in CUDA C++ that it may launch.
    """
    if hasattr(rung, "texts"):
        compiler = (sources or _here()).reached([COMPILER], HOST_ONLY)
        texts = map(without_comments, rung.texts())
        return digest([of_rung(rung.rung, host, sources), *texts, *compiler])
    home, _, kernel = (rung.kernel_name or f"{rung.module}_kernel").rpartition(".")
    starts = [(f"ladder.{rung.module}", LAUNCHER), (f"ladder.{home or rung.module}", kernel)]
    sources = sources or _here()
    sources.paths.setdefault(f"ladder.{rung.module}", rung.source)  # of a rung from elsewhere
    for module, name in starts if rung.kernel_name else starts[:1]:
        if not sources.module(module).has(name):
            raise ValueError(f"{module} has no {name!r}")
    texts = sources.reached(starts, () if host else HOST_ONLY)
    return digest([f"{rung.module} {sorted(rung.options.items())!r} {rung.layout}", *texts])


def without_comments(text: str) -> str:
    """Return a text in CUDA C++ without its comments, indentation and empty lines."""
    bare = CPP_PARTS.sub(lambda part: part[0] if part[0][0] in "\"'" else " ", text)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)


def digest(texts: Iterable[str]) -> str:
    """Return a hash of texts in their order: DIGITS hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:DIGITS]


@cache
def _here() -> Sources:
    return Sources()


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at a module's top binds, but for imports."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    symbols = _table(statement).get_symbols()
    return [x.get_name() for x in symbols if x.is_assigned() or x.is_namespace()]


def _global(statement: ast.stmt) -> set[str]:
    """Return the names of the module that a statement at its top uses, also in functions in it."""
    top = _table(statement)
    names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    inner = top.get_children()
    while inner:
        table = inner.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        inner += table.get_children()
    return names


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(statement), "", "exec")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that count: no docstring, and nothing of what is raised."""
    yield node
    for _, value in _fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _walk(each)


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.Raise):
        return
    for name, value in ast.iter_fields(node):
        documented = isinstance(node, ast.FunctionDef | ast.ClassDef) and name == "body"
        if documented and ast.get_docstring(node, clean=False) is not None:
            value = value[1:]
        yield name, value


def _text(node: Any) -> str:
    """Return a tree as a text that is the same in all versions of Python."""
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [
        f"{name}={_text(value)}"
        for name, value in _fields(node)
        if value not in (None, []) and name not in ("ctx", "kind", "type_comment")
    ]
    return f"{type(node).__name__}({' '.join(fields)})"
