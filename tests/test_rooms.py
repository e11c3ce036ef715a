"""Imports go down the list of rooms, lazy ones and computed ones too, and never in a circle."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "tiled_matmul"
# From top to ground.
ROOMS = (
    *("grader", "book", "explore", "plots", "measure", "distributed", "torch", "specimens"),
    *("ladder", "dispatch", "languages", "kit", "microscope", "models", "machine"),
)
ABOVE = ("__main__", "commands")  # the command line: imports every room
# What may import any room, and why.
DOORS = {
    "__init__": "the package's own names, `rung` and `trace_tiles`, imported when asked for",
    "page": "what notebooks import: names that outlive a move, found in a table of modules",
}
LOADERS = ("import_module", "__import__")
FRONT_DOOR = ("rung", "trace_tiles")  # names of the package itself: for readers, not for rooms
GROUND = ("problem", "check", "files")


def modules(package: Path) -> dict[str, Path]:
    """Return {"kit.launch": path} for every module of a package; a package is its `__init__`."""
    paths = {p: p.relative_to(package).with_suffix("").parts for p in package.rglob("*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in paths.items()}


def imports(module: str, known: dict[str, Path]) -> Iterator[str]:
    """Yield each module of the package that a module imports, at its top or inside a function.

    Calls count too, such as `import_module(f"tiled_matmul.kit.{name}")`, as far as their text is
    known: this one imports the package `kit`.
    """
    for node in ast.walk(ast.parse(known[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            if node.level:  # relative, which is not resolved here: counts as an import from above
                yield "__main__"
        elif isinstance(node, ast.Call) and called(node) in LOADERS:
            name, whole = loaded(node, module, known)
            if name.startswith(".") or (name == "tiled_matmul." and not whole):
                yield "__main__"  # relative, or any module of the package
            names = [name]
        else:
            continue
        for name in names:
            inner = name.removeprefix("tiled_matmul.")
            if inner == name:
                continue
            while inner and inner not in known:
                inner = inner.rpartition(".")[0]
            if inner or name.rpartition(".")[2] in FRONT_DOOR:
                yield inner or "__main__"


def called(call: ast.Call) -> str:
    """Return the last name of what is called: "import_module" of `importlib.import_module`."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def loaded(call: ast.Call, module: str, known: dict[str, Path]) -> tuple[str, bool]:
    """Return the name of what a call imports, as far as it is known, and whether that is all."""
    own = "tiled_matmul" if module == "__init__" else f"tiled_matmul.{module}"
    package = own if known[module].name == "__init__.py" else own.rpartition(".")[0]
    texts = {"__name__": own, "__package__": package}

    def text(node: ast.expr) -> tuple[str, bool]:
        if isinstance(node, ast.Constant):
            return str(node.value), True
        if isinstance(node, ast.Name) and node.id in texts:
            return texts[node.id], True
        if isinstance(node, ast.FormattedValue):
            return text(node.value)
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.JoinedStr):
            parts = node.values
        else:
            return "", False
        made, whole = "", True
        for part in parts:
            if whole:
                more, whole = text(part)
                made += more
        return made, whole

    arguments = [*call.args, *(each.value for each in call.keywords if each.arg == "name")]
    return text(arguments[0]) if arguments else ("", False)


def floor(module: str) -> int:
    """Return how high a module's room lies: 0 is the ground."""
    room = module.partition(".")[0]
    if room in ROOMS:
        return len(ROOMS) - ROOMS.index(room)
    if room in GROUND:
        return 0
    return len(ROOMS) + 1


def upward(package: Path) -> list[str]:
    """Return "kit.x imports measure.y" for each import that goes up."""
    known = modules(package)
    return [
        f"{module} imports {other}"
        for module in sorted(known)
        if module not in DOORS
        for other in imports(module, known)
        if floor(other) > floor(module)
    ]


def circle(package: Path) -> list[str]:
    """Return modules that import each other in a circle, or nothing."""
    known = modules(package)
    graph = {module: set(imports(module, known)) - {module} for module in known}
    # A package's __init__ may name its own modules, and they are reached through it.
    graph = {m: {o for o in others if not m.startswith(f"{o}.")} for m, others in graph.items()}
    while leaves := [m for m, others in graph.items() if not others & graph.keys()]:
        for module in leaves:
            del graph[module]
    walk = sorted(graph)
    if not walk:
        return []
    seen = [walk[0]]
    while (after := min(graph[seen[-1]] & graph.keys())) not in seen:
        seen.append(after)
    return [*seen[seen.index(after) :], after]


def test_every_import_goes_down():
    assert upward(PACKAGE) == []


def test_no_imports_run_in_a_circle():
    assert circle(PACKAGE) == []


def test_every_room_says_what_it_is_for():
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
        assert "May import:" in text and "Front door" in text, f"{room}/__init__.py"


def test_loose_modules_are_few():
    loose = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert loose == {*GROUND, "page"}
    assert len(loose) <= 4


def test_nothing_in_src_reads_tests():
    for path in PACKAGE.rglob("*.py"):
        constants = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not {c for c in constants if c in ("tests", "tests/") or "tests/data" in c}, path


BELOW = {"measure/__init__.py": "", "kit/b.py": ""}


@pytest.mark.parametrize(
    ("files", "wrong"),
    [
        ({"kit/a.py": "from tiled_matmul.measure import b", "measure/b.py": ""}, True),
        ({"kit/a.py": "def f():\n    import tiled_matmul.measure.b", "measure/b.py": ""}, True),
        ({"problem.py": "from tiled_matmul.kit.a import x", "kit/a.py": ""}, True),
        ({"kit/a.py": "from tiled_matmul.commands import c", "commands/c.py": ""}, True),
        ({"kit/a.py": "from ..measure import b", "measure/b.py": ""}, True),
        ({"kit/a.py": "from tiled_matmul import rung"}, True),
        ({"kit/a.py": "from tiled_matmul import ROOT"}, False),
        ({"measure/b.py": "from tiled_matmul.kit.a import x", "kit/a.py": ""}, False),
        ({"kit/a.py": "import_module('tiled_matmul.measure.b')", "measure/b.py": ""}, True),
        ({"kit/a.py": "importlib.import_module('tiled_matmul.measure')", **BELOW}, True),
        ({"kit/a.py": "def f(x):\n    import_module(f'tiled_matmul.measure.{x}')", **BELOW}, True),
        ({"kit/a.py": "import_module('tiled_matmul.measure.' + x)", **BELOW}, True),
        ({"kit/a.py": "import_module(name=f'tiled_matmul.measure.{x}')", **BELOW}, True),
        ({"kit/a.py": "__import__('tiled_matmul.measure.b')", "measure/b.py": ""}, True),
        ({"kit/a.py": "import_module(f'tiled_matmul.{x}')"}, True),
        ({"kit/a.py": "import_module('.measure', __package__)"}, True),
        ({"a.py": "", "problem.py": "import_module(f'{__package__}.a')"}, True),
        ({"kit/a.py": "import_module(f'{__package__}.{x}')", **BELOW}, False),
        ({"kit/__init__.py": "import_module(f'{__name__}.{x}')", **BELOW}, False),
        ({"measure/b.py": "import_module(f'tiled_matmul.kit.{x}')", **BELOW}, False),
        ({"kit/a.py": "import_module('numba.cuda')\nimport_module(x)"}, False),
        ({"page.py": "import_module(f'tiled_matmul.{x}')"}, False),
    ],
)
def test_an_import_that_goes_up_is_seen(tmp_path, files, wrong):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert bool(upward(tmp_path)) is wrong


def test_a_circle_is_seen(tmp_path):
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "a.py").write_text("from tiled_matmul.kit import b")
    lazy = "def f():\n    from tiled_matmul.kit.a import x"
    for text in (lazy, "def f():\n    import_module(f'{__package__}.a')"):
        (tmp_path / "kit" / "b.py").write_text(text)
        assert circle(tmp_path) == ["kit.a", "kit.b", "kit.a"]
