"""Starters from solutions: what the learner gets is generated, so there is one source.

In a solution cell the lines between `# >>> solution, roughly N lines` and `# --- starter` are the
answer; those between that and `# <<<` are what the learner finds there, each behind a `# `.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tiled_matmul.book.cells import is_setup, synchronise
from tiled_matmul.book.files import NotebookError, notebook_text, parse_notebook, read_text
from tiled_matmul.files import replace_text
from tiled_matmul.grader.cells import FOLDER
from tiled_matmul.grader.spec import Exercise, exercises

BEGIN = re.compile(r"( *)# >>> solution, roughly (\d+) lines?")
MIDDLE, END = "# --- starter", "# <<<"
HINT = re.compile(r"<details><summary>(?:<b>)?Hint (\d)")


def solutions(folder: Path = FOLDER) -> list[Path]:
    """Return the solution notebooks."""
    return sorted((folder / "solutions").glob("[0-9][0-9]_*.ipynb"))


def starter_source(source: str, solved: bool = False) -> str:
    """Return the starter of a solution cell; with `solved`, the answer without the marks.

    Raises ValueError for marks that do not fit together.
    """
    out: list[str] = []
    state, indent, seen = "outside", "", False
    for number, line in enumerate(source.splitlines(), start=1):
        begin = BEGIN.fullmatch(line)
        bare = line.strip()
        if begin:
            if state != "outside":
                raise ValueError(f"line {number}: a solution within a solution")
            state, indent, seen = "answer", begin[1], True
            plural = "s" * (begin[2] != "1")
            if not solved:
                out.append(f"{indent}# your code: roughly {begin[2]} line{plural}")
        elif bare == MIDDLE and state == "answer":
            state = "starter"
        elif bare == END and state == "starter":
            state = "outside"
        elif bare in (MIDDLE, END):
            raise ValueError(f"line {number}: {bare} has no beginning")
        elif state == "starter":
            if not line.startswith(indent + "#"):
                raise ValueError(f"line {number}: a starter's line begins with {indent}# ")
            if not solved:
                rest = line[len(indent) + 1 :].removeprefix(" ")
                out.append((indent + rest).rstrip())
        elif state == "outside" or solved:
            out.append(line)
    if state != "outside" or not seen:
        raise ValueError("no solution with # >>>, # --- starter and # <<< in it")
    return "\n".join(out)


def starter(path: Path) -> Any:
    """Return the starter notebook of a solution notebook. Raises NotebookError."""
    notebook = parse_notebook(read_text(path), path)
    mine = {exercise.cell: exercise for exercise in exercises(chapter_of(path))}
    found = set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":  # a starter lies one folder higher
            cell.source = cell.source.replace("](../../", "](../")
        exercise = mine.get(cell.id)
        if exercise is None:
            continue
        found.add(cell.id)
        if cell.source.splitlines()[0] != exercise.marker:
            raise NotebookError(f"{path}: {cell.id} should begin with {exercise.marker!r}")
        try:
            cell.source = starter_source(cell.source)
        except ValueError as error:
            raise NotebookError(f"{path}: {cell.id}: {error}") from None
        cell.outputs = []
    if missing := set(mine) - found:
        raise NotebookError(f"{path}: no cell {', '.join(sorted(missing))}")
    return notebook


def chapter_of(path: Path) -> str:
    """Return "05" for a path like exercises/05_shared_memory.ipynb."""
    return Path(path).name[:2]


def answers(path: Path) -> dict[str, tuple[str, str]]:
    """Return {exercise: (starter, answer)} of a solution notebook, as a learner would hold them."""
    notebook = parse_notebook(read_text(path), path)
    ids = {exercise.cell: exercise.name for exercise in exercises(chapter_of(path))}
    return {
        ids[cell.id]: (starter_source(cell.source), starter_source(cell.source, solved=True))
        for cell in notebook.cells
        if cell.id in ids
    }


def sync(folder: Path = FOLDER) -> dict[Path, bool]:
    """Write all starters; return which changed. Raises NotebookError."""
    changed = {}
    for path in solutions(folder):
        text = _refreshed(path)
        if text != read_text(path):
            replace_text(path, text)
        target, text = folder / path.name, notebook_text(starter(path))
        changed[target] = not target.exists() or read_text(target) != text
        if changed[target]:
            replace_text(target, text)
    return changed


def _refreshed(path: Path) -> str:
    """Return a solution's text with the set-up of the sources, and plain metadata."""
    notebook = parse_notebook(read_text(path), path)
    synchronise(notebook, path)
    return _text(notebook)


def _text(notebook: Any) -> str:
    """Return a notebook's text without what its set-up said: that was about another machine."""
    for cell in notebook.cells:
        if is_setup(cell):
            cell.outputs = []
    return notebook_text(notebook)


def faults(folder: Path = FOLDER) -> list[str]:
    """Return what is wrong with the exercises: drift, hints, specs without a cell."""
    found = []
    paths = solutions(folder)
    for path in paths:
        try:
            text, refreshed = notebook_text(starter(path)), _refreshed(path)
        except (NotebookError, ValueError) as error:
            found.append(str(error))
            continue
        if refreshed != read_text(path):
            found.append(f"{path}: not as `exercises sync` leaves it")
        target = folder / path.name
        if not target.exists() or read_text(target) != text:
            found.append(f"{target}: differs from its solution: `exercises sync` writes it anew")
        found += _hint_faults(path)
    extra = {path.name for path in folder.glob("*.ipynb")} - {path.name for path in paths}
    found += [f"{folder / name}: has no solution" for name in sorted(extra)]
    chapters = {chapter_of(path) for path in paths}
    for exercise in exercises():
        if exercise.chapter not in chapters:
            found.append(f"exercise {exercise.name} has no notebook")
    return found


def _hint_faults(path: Path):
    """Three hints in rising order stand after each solution cell."""
    notebook = parse_notebook(read_text(path), path)
    ids: dict[str, Exercise] = {e.cell: e for e in exercises(chapter_of(path))}
    numbers: dict[str, list[str]] = {name: [] for name in ids}
    current = None
    for cell in notebook.cells:
        current = cell.id if cell.id in ids else current
        if cell.cell_type == "markdown" and current:
            numbers[current] += HINT.findall(cell.source)
    for cell, hints in numbers.items():
        if hints != ["1", "2", "3"]:
            yield f"{path}: {cell} has the hints {hints}, wanted 1, 2, 3"


def run(path: Path, timeout: int = 120) -> None:
    """Execute a solution notebook here and store its outputs. Raises NotebookError."""
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    from tiled_matmul.book.run import brief, client_of

    notebook = parse_notebook(read_text(path), path, upgrade=True)
    synchronise(notebook, path)
    notebook.metadata.setdefault("tiled_matmul", {})["exercises"] = chapter_of(path)
    try:
        client_of(notebook, path, timeout).execute()
    except (CellControlSignal, DeadKernelError) as error:
        raise NotebookError(f"{path}: {brief(error)}") from None
    replace_text(path, _text(notebook))
