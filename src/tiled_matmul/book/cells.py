"""The generated cells: the set-up cell, and the cells that show a kernel of the ladder."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

from tiled_matmul import ROOT
from tiled_matmul.book.citations import as_links
from tiled_matmul.book.files import NotebookError, read_text, repository
from tiled_matmul.files import rung_files

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}

SETUP_MARK = "# Set-up, the same in every notebook"
# A cell with one of these tags has its code folded, or left out.
FOLDED = frozenset({"hide-input", "hide-cell", "remove-input", "remove-cell"})
SETUP_TAGS = ["remove-input", "nbval-ignore-output"]
# --no-deps leaves Colab's packages unchanged. nbval needs coverage, and Colab has neither.
SETUP = (
    SETUP_MARK
    + """. On Colab it fetches the course first.
import os
import sys
from importlib.util import find_spec
from subprocess import check_call
from tempfile import mkdtemp

{address}
if not find_spec("tiled_matmul"):
    if "COLAB_RELEASE_TAG" not in os.environ:
        raise ModuleNotFoundError("no tiled_matmul: run `make lab`, or `pip install -e .`")
    if not os.path.exists("tiled-matmul"):
        url = os.environ.get("TILED_MATMUL_REPOSITORY", REPOSITORY)
        if not url:
            fix = "write it into REPOSITORY above, as https://github.com/OWNER/NAME"
            raise ValueError(f"this notebook does not hold the course's address: {fix}")
        check_call(["git", "clone", "-q", "--depth=1", url, part := mkdtemp(dir=".")])
        os.rename(part, "tiled-matmul")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
    check_call([*pip, "-e", "tiled-matmul", "nbval", "coverage"])
    sys.path.insert(0, os.path.abspath("tiled-matmul/src"))
from tiled_matmul.page import setup

machine = setup()"""
)

KERNEL_PREFIX = "# kernel:"
STRAY_KERNEL = re.compile(r"^\s*#\s*kernel\s*:\s*\S+::", re.IGNORECASE | re.MULTILINE)
KERNEL_MARK = re.compile(r"# kernel: (\w+)::(\w+(?:, *\w+)*)")
SHOWN = re.compile(r"^(?:notebook\.)?show_source\((\w+)\.(\w+)\)$", re.MULTILINE)

FIGURE = re.compile(r'explore\("([a-z-]+)"\)')


def setup_source(root: Path = ROOT) -> str:
    """Return the text of the set-up cell, which holds the course's address from _config.yml."""
    return SETUP.replace("{address}", address_line(repository(root)))


def address_line(address: str) -> str:
    """Return the line of the set-up cell that holds the course's address, which may be ""."""
    return f'REPOSITORY = "{address}"'


def is_setup(cell) -> bool:
    return cell.cell_type == "code" and cell.source.startswith(SETUP_MARK)


def is_kernel(cell) -> bool:
    return cell.cell_type == "code" and cell.source.startswith(KERNEL_PREFIX)


def is_stray_kernel(cell) -> bool:
    """Return whether a cell has a kernel's marker in a place or form in which it has no effect."""
    return bool(STRAY_KERNEL.search(cell.source)) and not is_kernel(cell)


def kernel_source(marker: str, root: Path = ROOT) -> str:
    """Return the text that a kernel cell must have: its marker, then each definition verbatim.

    `marker` is "# kernel: MODULE::NAME, NAME": a module of the ladder without its chapter, and
    functions, classes or constants at its top level. The file is read, not imported. Raises
    ValueError if there is none.
    """
    match = KERNEL_MARK.fullmatch(marker.strip())
    if not match:
        raise ValueError(f"{marker!r} is not of the form '# kernel: MODULE::NAME, NAME'")
    path = rung_file(match[1], root)
    text = read_text(path)
    sources = [_definition(text, name.strip(), path.name) for name in match[2].split(",")]
    return "\n\n\n".join([f"{marker.strip()}\n{sources[0]}", *sources[1:]])


def shown_source(source: str, root: Path = ROOT) -> str | None:
    """Return the source that a cell's call `show_source(module.name)` must show, or None.

    `module` is one of the ladder's, or `cuts`. The file is read, not imported; a name that it
    imports from another module of the package is read there. Raises ValueError or OSError if it is
    not there or defines no such name.
    """
    match = SHOWN.search(source)
    if not match:
        return None
    many = root / "src" / "tiled_matmul" / "distributed"
    path = many / "cuts.py" if match[1] == "cuts" else rung_file(match[1], root)
    path = _home(path, match[2], root)
    return _definition(read_text(path), match[2], path.name)


def rung_file(module: str, root: Path = ROOT) -> Path:
    """Return the file of a module of the ladder, which has the chapter in front of its name.

    Raises ValueError if there is none.
    """
    known = rung_files(root / "src" / "tiled_matmul" / "ladder")
    if module not in known:
        raise ValueError(f"the ladder has no module {module!r}")
    return known[module]


def _home(path: Path, name: str, root: Path) -> Path:
    """Return the file that defines a name: this one, or the one that it imports the name from."""
    for node in ast.parse(read_text(path)).body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return (root / "src").joinpath(*node.module.split(".")).with_suffix(".py")
    return path


def _definition(text: str, name: str, file: str) -> str:
    for node in ast.parse(text).body:
        names = {getattr(node, "name", None)}
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if name in names:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise ValueError(f"{file} defines no {name} at its top level")


def figure_name(source: str) -> str | None:
    """Return the name of the figure to change that a cell is nothing but a call for, or None."""
    match = FIGURE.fullmatch(source.strip())
    return match and match[1]


def figure_outputs(name: str) -> dict[str, str]:
    """Return what a notebook stores of a figure to change, or raise ValueError if it is none."""
    from tiled_matmul.explore import explore

    figure = explore(name)
    return {"text/html": figure._repr_html_(), "text/plain": repr(figure)}


def code_hash(notebook) -> str:
    """Return the hash of a notebook's code, for its stamp.

    It is SHA-256 over the sources of the code cells in order. The set-up cell is left out, because
    it changes with the course's address, which does not change the outputs.
    """
    digest = hashlib.sha256()
    for cell in notebook.cells:
        if cell.cell_type == "code" and not is_setup(cell):
            digest.update(cell.source.encode() + b"\0")
    return digest.hexdigest()


def wants_fold(cell) -> bool:
    """Return whether JupyterLab is to fold a code cell's source, as the book does."""
    return is_setup(cell) or not FOLDED.isdisjoint(cell.metadata.get("tags", []))


def is_folded(cell) -> bool:
    """Return whether JupyterLab folds it."""
    return bool(cell.metadata.get("jupyter", {}).get("source_hidden"))


def synchronise(notebook, name: Path | str, root: Path = ROOT) -> None:
    """Refresh a notebook in place: metadata, folds, set-up and kernel cells, stills of figures.

    Raises NotebookError, which names the notebook by `name`, for a kernel cell whose source is
    missing, and for a figure that there is not.
    """
    from nbformat.v4 import new_code_cell

    notebook.metadata["kernelspec"] = dict(KERNELSPEC)
    notebook.metadata["language_info"] = dict(LANGUAGE)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not code or not is_setup(code[0]):
        opening = bool(notebook.cells) and notebook.cells[0].cell_type == "markdown"
        notebook.cells.insert(int(opening), new_code_cell(id="setup"))
        code.insert(0, notebook.cells[int(opening)])
    code[0].source = setup_source(root)
    code[0].metadata["tags"] = list(SETUP_TAGS)
    for cell in notebook.cells:
        if cell.cell_type == "code" and wants_fold(cell) != is_folded(cell):
            shown = {**cell.metadata.get("jupyter", {}), "source_hidden": True}
            if is_folded(cell):
                del shown["source_hidden"]
            cell.metadata["jupyter"] = shown
            if not shown:
                del cell.metadata["jupyter"]
    for index, cell in enumerate(notebook.cells):
        figure = figure_name(cell.source) if cell.cell_type == "code" else None
        try:
            if cell.cell_type == "markdown":
                cell.source = as_links(cell.source, root)
            if is_kernel(cell):
                cell.source = kernel_source(cell.source.split("\n")[0], root)
            if figure and cell.outputs:
                cell.outputs[0].data = figure_outputs(figure)
        except ValueError as error:
            raise NotebookError(f"{name}: cell {index + 1}: {error}") from None
