"""Read submitted notebooks as data, and take only the solution cells from them.

The answer to an exercise is the cell that defines its function. Where several cells do, its id, its
marker and its place decide, and a notice says which one was graded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.grader import gate, helpers, reading, transform
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.reading import Unreadable
from tiled_matmul.grader.spec import Exercise

KINDS = ("code", "markdown", "raw")
MARKER = re.compile(r"^[ \t]*#\s*exercise\s+(\d\d\.\d{1,2})\b", re.IGNORECASE | re.MULTILINE)
FOLDER = ROOT / "exercises"
MAX_CODE = 200_000  # characters of the code cells of a notebook that are read


# Control characters, lone surrogates, invisible characters, and those that reverse the text.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufffe\uffff\U000e0000-\U000e007f]"
)
EMPTY = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs that look like blanks


def printable(text: str, lines: bool = False) -> str:
    """Replace characters that a format cannot hold or a terminal would act on.

    Line breaks and tabs stay only if `lines` is true.
    """
    text = re.sub(f"[{EMPTY}]", "?", UNPRINTABLE.sub("?", text))
    return text if lines else re.sub("[\t\n]", "?", text)


@dataclass(frozen=True)
class Cell:
    """A cell of a file, or an input of a notebook's kernel. `id` is "" if it has none.

    One that is not `read` is taken as it is, and holds no helpers.
    """

    kind: str
    id: str
    source: str
    read: bool = True

    @cached_property
    def python(self) -> str:
        """The cell as Python."""
        with suppress(transform.TooMany):
            return transform.python(self.source).text if self.read else self.source
        return self.source

    @cached_property
    def sets(self) -> frozenset[str]:
        """The names that it sets for other cells."""
        return helpers.names(self.python) if self.kind == "code" and self.read else frozenset()

    @cached_property
    def marked(self) -> str | None:
        """The name of the exercise in the first marker among its lines, or None."""
        if self.kind != "code" or "exercise" not in self.source.lower():
            return None
        marker = MARKER.search(self.python) or MARKER.search(self.source)
        return marker[1] if marker else None

    @property
    def has_code(self) -> bool:
        """Has it a line that is not a comment?"""
        lines = map(str.strip, self.source.splitlines())
        return any(line and not line.startswith("#") for line in lines)

    def defines(self, name: str) -> bool:
        """Does the cell define this function, or assign to its name?

        A cell that is no Python does if one of its lines looks so.
        """
        if self.kind != "code" or name not in self.source:
            return False
        if self.sets:
            return name in helpers.defined(self.python)
        pattern = rf"^(?:def\s+{name}\b|{name}\s*=[^=])"
        return bool(re.search(pattern, self.python, re.MULTILINE))


@dataclass(frozen=True)
class Found:
    """One exercise in a notebook. `source` is None unless `status` is "FOUND".

    The first lines of `source`, `above` of them, are helpers from other cells. `notice` says which
    cell was taken, where that is not plain.
    """

    exercise: Exercise
    status: str
    source: str | None
    message: str = ""
    notice: str = ""
    above: int = 0


@dataclass(frozen=True)
class Submission:
    """A notebook's answers, and notices of other cells that differ from the course's own."""

    chapter: str
    answers: tuple[Found, ...]
    notices: tuple[str, ...]


def read_cells(path: str | os.PathLike) -> tuple[list[Cell], dict]:
    """Return (cells, metadata) of a notebook. Raises Unreadable if the file is not a notebook."""
    data = reading.notebook(path)
    cells, code = [], 0
    for number, one in enumerate(data["cells"], start=1):
        cell = _cell(number, one)
        if cell.kind == "code" and len(cell.source) <= gate.MAX_SOURCE:
            code += len(cell.source)
        read = code <= MAX_CODE and is_readable(cell.source)
        cells.append(replace(cell, read=read))
    return cells, data["metadata"]


def is_readable(source: str) -> bool:
    """May a cell of this text hold an answer or a helper?"""
    return len(source) <= gate.MAX_SOURCE and not gate.ODD.search(transform.plain(source))


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
    started = _started(chapter)
    theirs = _ids(chapter)
    # What the course runs below an answer is none, whatever it defines.
    written = [
        cell
        for cell in cells
        if cell.id in theirs or cell.id not in started or cell.source.strip() != started[cell.id]
    ]
    answers = tuple(_answer(exercise, cells, written, started) for exercise in exercises(chapter))
    chosen = tuple(answer.notice for answer in answers if answer.notice)
    return Submission(chapter, answers, (*chosen, *_notices(chapter, cells, metadata)))


def _ids(chapter: str) -> set[str]:
    """Return the ids of the cells for answers."""
    return {exercise.cell for exercise in exercises(chapter)}


def _started(chapter: str) -> dict[str, str]:
    """Return the source of each cell as the notebook is handed out."""
    try:
        return {cell.id: cell.source.strip() for cell in pristine(chapter)[1] if cell.id}
    except ValueError:
        return dict.fromkeys(_ids(chapter), "")


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
    if len(chapters) > 1 and isinstance(stored, str) and stored in chapters:
        return stored  # a cell of another chapter was pasted
    if len(chapters) > 1:
        raise Unreadable(f"it mixes exercises of several chapters: {', '.join(sorted(chapters))}")
    return chapters.pop()


def _answer(
    exercise: Exercise, cells: Sequence[Cell], written: Sequence[Cell], started: dict[str, str]
) -> Found:
    """Return the answer to an exercise, which one of the cells that were `written` defines.

    `started` holds the sources of the cells as handed out.
    """
    own = [cell for cell in cells if cell.id == exercise.cell]
    theirs = _ids(exercise.chapter)
    marked = [c for c in cells if c.marked == exercise.name and c.id not in theirs]
    defining = [c for c in written if c.defines(exercise.entry)]
    for several in (defining, [c for c in (*own, *marked) if c.kind == "code"]):
        new = [c for c in several if c.source.strip() != started.get(exercise.cell)] or several
        if not new:
            continue
        # A notebook runs from the top to the bottom, so the last definition is the one that counts.
        chosen = new[-1]
        notice = ""
        if len(new) > 1:
            number = 1 + cells.index(chosen)
            notice = (
                f"{exercise.name}: {len(new)} cells define {exercise.entry}; the last of them, "
                f"cell {number} of the notebook, was graded"
            )
        elif chosen not in own and chosen.marked != exercise.name:
            number = 1 + cells.index(chosen)
            notice = (
                f"{exercise.name}: cell {number} of the notebook was graded, which defines "
                f"{exercise.entry}"
            )
        place = next(n for n, cell in enumerate(cells) if cell is chosen)
        # A check runs when the cells above it have run. What is below comes second.
        learners = set(map(id, written))
        others = [c for c in (*cells[place + 1 :], *cells[:place]) if id(c) in learners]
        source, above = with_helpers(exercise, chosen, others)
        return Found(exercise, "FOUND", source, "", notice, above)
    if own:
        kind = own[0].kind or "unknown"
        message = f"The cell of exercise {exercise.name} is of the type {kind}, not code."
    else:
        message = (
            f"No cell defines `{exercise.entry}` or has the line `{exercise.marker}`: the answer "
            "is missing."
        )
    return Found(exercise, "MISSING", None, message)


def with_helpers(exercise: Exercise, chosen: Cell, others: Sequence[Cell]) -> tuple[str, int]:
    """Return (an answer with its helpers above it, how many lines stand above it).

    Of several cells that set a name the last of the `others` counts, and none of the course's own.
    """
    own = _own(exercise.chapter)
    mine = [cell for cell in others if cell.sets and cell.source.strip() not in own]
    return helpers.joined(exercise, chosen.source, [(cell.python, cell.sets) for cell in mine])


def latest(exercise: Exercise, inputs: Sequence[Cell]) -> Cell | None:
    """Return the last input of a kernel that is an answer to an exercise, or None.

    It need not have run: an input that raised an error is the latest version of its cell as well.
    """
    own = _own(exercise.chapter)
    for cell in reversed(inputs):
        if cell.source.strip() in own:
            continue
        if cell.defines(exercise.entry) or (cell.marked == exercise.name and cell.has_code):
            return cell
    return None


def _own(chapter: str) -> set[str]:
    """Return the sources of the course's own cells, without those for answers."""
    theirs = _ids(chapter)
    return {source for cell, source in _started(chapter).items() if cell not in theirs}


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
