"""Notebooks that came from somebody: read as data, and nothing taken but the solution cells.

A solution cell is found by its id, else by the marker in its first line; what is missing, doubled
or altered is reported and never guessed at.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.spec import Exercise

MAX_BYTES = 10 << 20
MAX_CELLS = 2000
KINDS = ("code", "markdown", "raw")
MARKER = re.compile(r"\s*#\s*exercise\s+(\d\d\.\d{1,2})\b", re.IGNORECASE)
FOLDER = ROOT / "exercises"


# Control characters, halves of characters, what nobody sees, what turns the direction of writing.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufffe\uffff\U000e0000-\U000e007f]"
)


def printable(text: str, lines: bool = False) -> str:
    """Return text that every format can hold, and no terminal acts on; in one line, or in lines."""
    text = UNPRINTABLE.sub("?", text)
    return text if lines else re.sub("[\t\n]", "?", text)


class Unreadable(ValueError):
    """No exercise notebook; the message says in a line what was found instead."""


@dataclass(frozen=True)
class Cell:
    """A cell as it stands in a file. `id` is "" where there is none."""

    kind: str
    id: str
    source: str

    @property
    def marked(self) -> str | None:
        """The exercise that its first line names."""
        found = MARKER.match(self.source)
        return found[1] if found and self.kind == "code" else None


@dataclass(frozen=True)
class Found:
    """What a notebook has of an exercise. `source` is None where `status` is not "FOUND"."""

    exercise: Exercise
    status: str
    source: str | None
    message: str = ""


@dataclass(frozen=True)
class Submission:
    """A notebook's answers, and what of the rest differs from the course's own."""

    chapter: str
    answers: tuple[Found, ...]
    notices: tuple[str, ...]


def read_cells(path: str | os.PathLike) -> tuple[list[Cell], dict]:
    """Return (cells, metadata) of a notebook. Raises Unreadable."""
    text = text_of(Path(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("not a notebook: it is not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise Unreadable("not a notebook: there are no cells in it")
    if len(data["cells"]) > MAX_CELLS:
        raise Unreadable(f"{len(data['cells']):,} cells; at most {MAX_CELLS:,} are read")
    metadata = data.get("metadata")
    cells = [_cell(number, cell) for number, cell in enumerate(data["cells"], start=1)]
    return cells, metadata if isinstance(metadata, dict) else {}


def text_of(path: Path) -> str:
    """Return a notebook's text, of an ordinary file that is not too large. Raises Unreadable."""
    try:
        with open(path, "rb", opener=_no_wait) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Unreadable("not a notebook: it is no ordinary file")
            if found.st_size > MAX_BYTES:
                size = f"{found.st_size / (1 << 20):,.0f} MB"
                raise Unreadable(f"{size}; at most {MAX_BYTES >> 20} MB are read")
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or type(error).__name__}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None


def _no_wait(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


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
    # Lone surrogates are no text.
    source = source.encode("utf-8", "replace").decode("utf-8")
    return Cell(kind if kind in KINDS else "", name if isinstance(name, str) else "", source)


def collect(path: str | os.PathLike) -> Submission:
    """Return what a notebook answers. Raises Unreadable if it is none of the course's exercises."""
    cells, metadata = read_cells(path)
    chapter = _chapter(cells, metadata)
    answers = tuple(_answer(exercise, cells) for exercise in exercises(chapter))
    return Submission(chapter, answers, tuple(_notices(chapter, cells, metadata)))


def _chapter(cells: Sequence[Cell], metadata: dict) -> str:
    """Return the chapter whose exercises a notebook holds, told by its cells."""
    ids = {exercise.cell: exercise.name for exercise in exercises()}
    known = {exercise.name: exercise.chapter for exercise in exercises()}
    named = [ids.get(cell.id) or cell.marked for cell in cells]
    chapters = {known[name] for name in named if name in known}
    mine = metadata.get("tiled_matmul")
    said = mine.get("exercises") if isinstance(mine, dict) else None
    if not chapters and isinstance(said, str) and said in known.values():
        return said  # its solution cells are gone
    if not chapters:
        raise Unreadable("no exercise of this course is in it")
    if len(chapters) > 1:
        raise Unreadable(f"exercises of several chapters in one: {', '.join(sorted(chapters))}")
    return chapters.pop()


def _answer(exercise: Exercise, cells: Sequence[Cell]) -> Found:
    mine = [cell for cell in cells if cell.id == exercise.cell or cell.marked == exercise.name]
    written = [cell for cell in mine if cell.kind == "code"]
    if len(written) > 1:
        said = f"{len(written)} cells are marked as exercise {exercise.name}; which one counts?"
        return Found(exercise, "DUPLICATE", None, said)
    if written:
        return Found(exercise, "FOUND", written[0].source)
    if mine:
        said = f"The cell of exercise {exercise.name} is {mine[0].kind or 'nothing'}, not code."
        return Found(exercise, "MISSING", None, said)
    said = f"There is no cell with the first line `{exercise.marker}`."
    return Found(exercise, "MISSING", None, said)


@cache
def pristine(chapter: str) -> tuple[Path, tuple[Cell, ...], str]:
    """Return (path, cells, version) of the course's own starter of a chapter."""
    paths = sorted(FOLDER.glob(f"{chapter}_*.ipynb"))
    if len(paths) != 1:
        raise ValueError(f"{FOLDER} should hold one notebook {chapter}_….ipynb, it has {paths}")
    cells, metadata = read_cells(paths[0])
    return paths[0], tuple(cells), str(metadata.get("tiled_matmul", {}).get("version", ""))


def _notices(chapter: str, cells: Sequence[Cell], metadata: dict):
    """Say which of the course's own cells differ. No mark depends on them."""
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
            yield f"TAMPERED: the course's cell {cell.id!r} is {there.kind or 'nothing'} now"
        else:
            yield f"TAMPERED: the course's cell {cell.id!r} has been changed"
    mine = metadata.get("tiled_matmul")
    theirs = str(mine.get("version", "")) if isinstance(mine, dict) else ""
    if theirs and theirs != version:
        said = printable(theirs[:20])
        yield f"made from version {said} of the exercises; this is version {version}"
