"""Read submitted notebooks as data, and take only the solution cells from them.

A solution cell is found by its id, or else by the marker in its first line. A cell that is missing,
doubled or altered is reported; the grader never guesses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.grader import reading
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.reading import Unreadable
from tiled_matmul.grader.spec import Exercise

KINDS = ("code", "markdown", "raw")
MARKER = re.compile(r"\s*#\s*exercise\s+(\d\d\.\d{1,2})\b", re.IGNORECASE)
FOLDER = ROOT / "exercises"


# Control characters, lone surrogates, invisible characters, and those that reverse the text.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufffe\uffff\U000e0000-\U000e007f]"
)


def printable(text: str, lines: bool = False) -> str:
    """Replace characters that a format cannot hold or a terminal would act on.

    Line breaks and tabs stay only if `lines` is true.
    """
    text = UNPRINTABLE.sub("?", text)
    return text if lines else re.sub("[\t\n]", "?", text)


@dataclass(frozen=True)
class Cell:
    """A cell of a file. `id` is "" if it has none."""

    kind: str
    id: str
    source: str

    @property
    def marked(self) -> str | None:
        """The name of the exercise in the marker on its first line, or None."""
        marker = MARKER.match(self.source)
        return marker[1] if marker and self.kind == "code" else None


@dataclass(frozen=True)
class Found:
    """One exercise in a notebook. `source` is None unless `status` is "FOUND"."""

    exercise: Exercise
    status: str
    source: str | None
    message: str = ""


@dataclass(frozen=True)
class Submission:
    """A notebook's answers, and notices of other cells that differ from the course's own."""

    chapter: str
    answers: tuple[Found, ...]
    notices: tuple[str, ...]


def read_cells(path: str | os.PathLike) -> tuple[list[Cell], dict]:
    """Return (cells, metadata) of a notebook. Raises Unreadable if the file is not a notebook."""
    data = reading.notebook(path)
    cells = [_cell(number, cell) for number, cell in enumerate(data["cells"], start=1)]
    return cells, data["metadata"]


def _cell(number: int, cell: Any) -> Cell:
    if not isinstance(cell, dict):
        raise Unreadable(f"not a notebook: cell {number} is a {type(cell).__name__}")
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise Unreadable(f"not a notebook: cell {number} has no text")
    kind, name = cell.get("cell_type"), cell.get("id")
    source = source.replace("\r\n", "\n")
    # A lone surrogate cannot be encoded.
    source = source.encode("utf-8", "replace").decode("utf-8")
    return Cell(kind if kind in KINDS else "", name if isinstance(name, str) else "", source)


def collect(path: str | os.PathLike) -> Submission:
    """Return the answers in a notebook. Raises Unreadable if it has no exercise of the course."""
    cells, metadata = read_cells(path)
    chapter = _chapter(cells, metadata)
    answers = tuple(_answer(exercise, cells) for exercise in exercises(chapter))
    return Submission(chapter, answers, tuple(_notices(chapter, cells, metadata)))


def _chapter(cells: Sequence[Cell], metadata: dict) -> str:
    """Return the chapter whose exercises a notebook holds, which its cells tell."""
    ids = {exercise.cell: exercise.name for exercise in exercises()}
    known = {exercise.name: exercise.chapter for exercise in exercises()}
    named = [ids.get(cell.id) or cell.marked for cell in cells]
    chapters = {known[name] for name in named if name in known}
    mine = metadata.get("tiled_matmul")
    stored = mine.get("exercises") if isinstance(mine, dict) else None
    if not chapters and isinstance(stored, str) and stored in known.values():
        return stored  # all solution cells are gone
    if not chapters:
        raise Unreadable("it holds no exercise of this course")
    if len(chapters) > 1:
        raise Unreadable(f"it mixes exercises of several chapters: {', '.join(sorted(chapters))}")
    return chapters.pop()


def _answer(exercise: Exercise, cells: Sequence[Cell]) -> Found:
    mine = [cell for cell in cells if cell.id == exercise.cell or cell.marked == exercise.name]
    written = [cell for cell in mine if cell.kind == "code"]
    if len(written) > 1:
        message = f"{len(written)} cells are marked as exercise {exercise.name}; which one counts?"
        return Found(exercise, "DUPLICATE", None, message)
    if written:
        return Found(exercise, "FOUND", written[0].source)
    if mine:
        kind = mine[0].kind or "unknown"
        message = f"The cell of exercise {exercise.name} is of the type {kind}, not code."
    else:
        message = f"There is no cell with the first line `{exercise.marker}`."
    return Found(exercise, "MISSING", None, message)


@cache
def pristine(chapter: str) -> tuple[Path, tuple[Cell, ...], str]:
    """Return (path, cells, version) of the course's own exercise notebook of a chapter."""
    paths = sorted(FOLDER.glob(f"{chapter}_*.ipynb"))
    if len(paths) != 1:
        raise ValueError(f"{FOLDER} should hold one notebook {chapter}_….ipynb, it has {paths}")
    cells, metadata = read_cells(paths[0])
    return paths[0], tuple(cells), str(metadata.get("tiled_matmul", {}).get("version", ""))


def _notices(chapter: str, cells: Sequence[Cell], metadata: dict):
    """Yield a line for each of the course's own cells that differs. No mark depends on them."""
    try:
        _, own, version = pristine(chapter)
    except ValueError:
        return
    solutions = {exercise.cell for exercise in exercises(chapter)}
    by_id = {cell.id: cell for cell in cells if cell.id}
    sources = {cell.source.strip() for cell in cells if cell.kind == "code"}
    for cell in own:
        if cell.kind != "code" or cell.id in solutions or cell.source.strip() in sources:
            continue
        there = by_id.get(cell.id)
        if there is None:
            yield f"TAMPERED: the course's cell {cell.id!r} is gone"
        elif there.kind != "code":
            yield f"TAMPERED: the course's cell {cell.id!r} is now of the type {there.kind!r}"
        else:
            yield f"TAMPERED: the course's cell {cell.id!r} has been changed"
    mine = metadata.get("tiled_matmul")
    theirs = str(mine.get("version", "")) if isinstance(mine, dict) else ""
    if theirs and theirs != version:
        theirs = printable(theirs[:20])
        yield f"made from version {theirs} of the exercises; this is version {version}"
