"""The two notebooks of each chapter's exercises, made from the exercises' folders.

`exercises/NN_topic.ipynb` has the starters in its blank cells, `exercises/solutions/NN_topic.ipynb`
the answers. Sources come from the folders; what the cells printed is kept in the notebooks.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tiled_matmul.book.cells import is_setup, synchronise
from tiled_matmul.book.files import (
    NotebookError,
    load_nbformat,
    notebook_text,
    parse_notebook,
    read_text,
)
from tiled_matmul.files import replace_text
from tiled_matmul.grader.cells import FOLDER, read_cells
from tiled_matmul.grader.folders import (
    Folder,
    FolderError,
    chapter_folders,
    exercises,
    folders,
    for_learners,
    lacking,
)

CELLS = ("task.md", "picture.py", "given.py", "numbers.md")
CELLS += ("exercise", "about.md", "run.py", "check", "hints.md")
"""An exercise's cells in their order; but for four of them they may be missing."""
FOLDED = ("picture",)  # cells whose code is folded: it draws, and teaches nothing
HINT = re.compile(r"<details><summary>(?:<b>)?Hint (\d)")
EXPECTED = "*Expected: roughly "


def chapters(folder: Path = FOLDER) -> list[Path]:
    """Return the chapters' folders in `exercises/source`."""
    return chapter_folders(folder / "source")


def solutions(folder: Path = FOLDER) -> list[Path]:
    """Return the solution notebooks."""
    return sorted((folder / "solutions").glob("[0-9][0-9]_*.ipynb"))


def chapter_of(path: Path) -> str:
    """Return "05" for a path like exercises/05_shared_memory.ipynb."""
    return Path(path).name[:2]


def answers(path: Path) -> dict[str, tuple[str, str]]:
    """Return {exercise: (starter, answer)} of a notebook, as a learner's cells would hold them."""
    there = folders(chapter_of(path))
    return {one.name: (one.code("starter.py"), one.code("answer.py")) for one in there}


def made(chapter: Path, solved: bool) -> Any:
    """Return a chapter's notebook, with the answers or with the starters, without outputs.

    Raises FolderError for what the folders lack.
    """
    v4 = load_nbformat().v4
    notebook = v4.new_notebook()
    top = Folder(chapter)
    sources = [("title", "md", top.text("intro.md")), ("imports", "py", top.text("imports.py"))]
    for one in folders(chapter.name[:2], chapter.parent):
        for file in CELLS:
            kind, _, ending = file.partition(".")
            if kind == "check":
                source = f'# NBVAL_CHECK_OUTPUT\ncheck("{one.name}")'
            elif kind == "exercise":
                source = one.code("answer.py" if solved else "starter.py")
            elif one.has(file) or file in ("task.md", "hints.md"):
                source = one.text(file)
            else:
                continue
            sources.append((f"{kind}-{one.name.replace('.', '-')}", ending, source))
    for name, ending, source in sources:
        if ending == "md":
            if solved:  # one folder deeper than the starter
                source = source.replace("](../", "](../../")
                source = source.replace("# Exercises: ", "# Solutions: ")
            notebook.cells.append(v4.new_markdown_cell(source, id=name))
        else:
            notebook.cells.append(v4.new_code_cell(source, id=name))
            if name.partition("-")[0] in FOLDED:
                notebook.cells[-1].metadata["tags"] = ["hide-input"]
    synchronise(notebook, chapter)
    notebook.metadata["tiled_matmul"] = {"exercises": chapter_of(chapter), "version": 1}
    return notebook


def notebook(chapter: Path, solved: bool, folder: Path = FOLDER) -> Any:
    """Return a chapter's notebook with what its cells printed when they last ran.

    That is in the solution; in a learner's copy, which has none, it is in the starter.
    """
    now = made(chapter, solved)
    name = f"{chapter.name}.ipynb"
    path = next(
        (path for path in (folder / "solutions" / name, folder / name) if path.exists()), None
    )
    if path is None:
        return now
    before = parse_notebook(read_text(path), path)
    now.metadata["tiled_matmul"] |= before.metadata.get("tiled_matmul", {})
    ran = {cell.id: cell for cell in before.cells if cell.cell_type == "code"}
    for cell in now.cells:
        old = ran.get(cell.id)
        if cell.cell_type != "code" or old is None:
            continue
        cell.execution_count = old.execution_count
        if old.source == cell.source and (solved or not cell.id.startswith("exercise-")):
            cell.outputs = old.outputs
            cell.metadata |= old.metadata
    return now


def sync(folder: Path = FOLDER) -> dict[Path, bool]:
    """Write all notebooks; return which changed. Raises FolderError or NotebookError."""
    changed = {}
    for target, text in _texts(folder):
        changed[target] = not target.exists() or read_text(target) != text
        if changed[target]:
            target.parent.mkdir(exist_ok=True)
            replace_text(target, text)
    return changed


def _texts(folder: Path, only: Path | None = None) -> Iterator[tuple[Path, str]]:
    """Yield (path, text) of the notebooks as they should be; without solutions in a copy."""
    copy = for_learners(folder / "source")
    for chapter in [only] if only else chapters(folder):
        name = f"{chapter.name}.ipynb"
        if not copy:
            yield folder / "solutions" / name, _text(notebook(chapter, True, folder))
        yield folder / name, _text(notebook(chapter, False, folder))


def _text(notebook: Any) -> str:
    """Return a notebook's text without what its set-up printed: that was about another machine."""
    for cell in notebook.cells:
        if is_setup(cell):
            cell.outputs = []
    return notebook_text(notebook)


def faults(folder: Path = FOLDER) -> list[str]:
    """Return what is wrong with the folders' form, and which notebooks are not made from them."""
    source = folder / "source"
    try:
        there = folders(source=source)
        if out := lacking(there, for_learners(source)):
            return out
        out = [fault for one in there for fault in _faults_of_form(one)] or [*_doubled(there)]
    except FolderError as error:
        return [str(error)]
    if out:
        return out
    names = {path.name for path in chapters(folder)}
    for chapter in chapters(folder):
        try:
            for path, text in _texts(folder, chapter):
                if not path.exists() or read_text(path) != text:
                    out.append(f"{path}: is not what `exercises sync` makes from {chapter}")
                out += _doubtful(path)
        except (NotebookError, FolderError) as error:
            out.append(str(error))
    for path in [*folder.glob("*.ipynb"), *solutions(folder)]:
        if f"{path.stem}" not in names:
            out.append(f"{path}: there is no folder {source / path.stem}")
    return out


def _doubtful(path: Path) -> Iterator[str]:
    """Yield a fault for each cell of the course that defines the function of an exercise."""
    if not path.exists():
        return
    cells, _ = read_cells(path)
    for exercise in exercises(chapter_of(path)):
        for cell in cells:
            if cell.defines(exercise.entry) and cell.id.startswith(("run-", "given-", "picture-")):
                yield f"{path}: cell {cell.id} defines {exercise.entry}, as {exercise.name} does"


def _faults_of_form(one: Folder) -> Iterator[str]:
    from tiled_matmul.grader.judge import ON_GPU

    large = 200  # what a GPU is tried on has more rows, columns and steps than that
    try:
        exercise = one.exercise
        text = one.text("task.md")
        if not text.startswith(f"## {one.name} ") or EXPECTED not in text:
            yield f"{one.path}/task.md: should begin with '## {one.name} ' and say '{EXPECTED}N…*'"
        if (hints := HINT.findall(one.text("hints.md"))) != ["1", "2", "3"]:
            yield f"{one.path}/hints.md: it has the hints {hints}, wanted 1, 2, 3"
        for file in ("starter.py", "answer.py"):
            if one.has(file):
                try:
                    compile(one.code(file), file, "exec")
                except (SyntaxError, ValueError) as error:
                    yield f"{one.path / file}: {error}"
        beyond = [min(case.m, case.n, case.k) > large for case in exercise.large]
        if (exercise.kind in ON_GPU) != bool(beyond) or not all(beyond):
            yield (
                f"{one.path}/judge.py: `large` holds cases beyond {large} for kernels, "
                "and nothing for others"
            )
        yield from _constants(one)
    except FolderError as error:
        yield str(error)


def _constants(one: Folder) -> Iterator[str]:
    """Yield which constants have other values in the chapter's cells than in `judge.py`."""
    space: dict[str, Any] = {}
    before = folders(one.name[:2], one.path.parents[1])
    sources = [Folder(one.path.parent).text("imports.py")]
    sources += [other.text("given.py") for other in before if other.has("given.py")]
    try:
        with contextlib.redirect_stdout(io.StringIO()), np.printoptions():
            for source in sources:
                exec(source, space)
    except Exception as error:
        yield f"{one.path}: the cells before it: {type(error).__name__}: {error}"
        return
    for name, value in one.exercise.given.items():
        if name not in space or space[name] != value:
            now = repr(space[name]) if name in space else "nothing"
            yield f"{one.path}: {name} is {value!r} in judge.py, and {now} in the notebook"


def _doubled(there: list[Folder]) -> Iterator[str]:
    """Yield exercises of one chapter that ask for one function."""
    seen: dict[tuple[str, str], Folder] = {}
    for one in there:
        key = one.exercise.chapter, one.exercise.entry
        if (other := seen.setdefault(key, one)) is not one:
            yield f"{one.path}: asks for {key[1]}(), as {other.path.name} does"


def run(chapter: Path, timeout: int = 120, folder: Path = FOLDER) -> None:
    """Execute a chapter's solutions here and store their outputs. Raises NotebookError."""
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    from tiled_matmul.book.run import brief, client_of

    path = folder / "solutions" / f"{chapter.name}.ipynb"
    now = notebook(chapter, True, folder)
    try:
        client_of(now, path, timeout).execute()
    except (CellControlSignal, DeadKernelError) as error:
        raise NotebookError(f"{path}: {brief(error)}") from None
    path.parent.mkdir(exist_ok=True)
    replace_text(path, _text(now))
