"""A new exercise from one file: tried first, and written to its places only if nothing is amiss.

The file is a notebook as text, in jupytext's percent format. Its cells have titles: `spec` is the
specification; `task`, `exercise` and `hints`, with `given` and `run` where they are wanted, go into
the chapter's solution notebook in their order, and a check behind them; each `answer NAME` is a
file of the zoo.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.book.files import notebook_text, parse_notebook, read_text
from tiled_matmul.files import replace_text
from tiled_matmul.grader import starters, zoo
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.release import SPECS, without_hidden
from tiled_matmul.grader.spec import Exercise, exercises

WANTED = {"spec": "code", "task": "markdown", "exercise": "code", "hints": "markdown"}
TITLES = {**WANTED, "given": "code", "run": "code"}
ANSWER = re.compile(r"answer ([a-z0-9_]+)")


@dataclass(frozen=True)
class Draft:
    """An exercise that is not in the course yet. `cells` are (title, source) in their order."""

    exercise: Exercise
    spec: str
    cells: tuple[tuple[str, str], ...]
    answers: tuple[zoo.Answer, ...]

    def source(self, title: str) -> str:
        """Return the source of a cell."""
        return dict(self.cells)[title]

    @property
    def chapter(self) -> str:
        return self.exercise.name.partition(".")[0]


def read(path: Path) -> Draft:
    """Return what a file holds. Raises ValueError, naming the cell, for what is missing or wrong.

    Its spec is run: it is a part of the course, and no learner's code.
    """
    import jupytext

    text = read_text(path)
    cells: dict[str, str] = {}
    answers = {}
    for cell in jupytext.reads(text, fmt="py:percent").cells:
        title = cell.metadata.get("title", "")
        answer = ANSWER.fullmatch(title)
        if title not in TITLES and not answer:
            known = ", ".join([*TITLES, "answer NAME"])
            raise ValueError(f"{path}: a cell is called {title!r}; there are {known}")
        kind = "code" if answer else TITLES[title]
        if cell.cell_type != kind:
            raise ValueError(f"{path}: the cell {title!r} is {cell.cell_type}, wanted {kind}")
        if title in cells or title in answers:
            raise ValueError(f"{path}: there are two cells called {title!r}")
        (answers if answer else cells)[title] = cell.source
    if missing := [title for title in WANTED if title not in cells]:
        raise ValueError(f"{path}: no cell called {', '.join(missing)}")
    spec = cells.pop("spec").rstrip() + "\n"
    exercise = _exercise(spec, path)
    named = {ANSWER.fullmatch(title)[1]: source for title, source in answers.items()}
    parsed = (zoo.parse(source, exercise.name, name) for name, source in named.items())
    return Draft(exercise, spec, tuple(cells.items()), tuple(parsed))


def _exercise(spec: str, path: Path) -> Exercise:
    """Return the one exercise that a specification describes. Raises ValueError."""
    space: dict[str, Any] = {"__name__": "spec"}
    try:
        exec(compile(spec, f"{path}, spec", "exec"), space)
    except Exception as error:
        raise ValueError(f"{path}: the spec: {type(error).__name__}: {error}") from error
    found = space.get("EXERCISES")
    if not isinstance(found, tuple) or [type(one) for one in found] != [Exercise]:
        raise ValueError(f"{path}: the spec should end with EXERCISES = (one Exercise,): {found!r}")
    return found[0]


def faults(draft: Draft, say: Callable[[str], None] = print) -> Iterator[str]:
    """Yield what is wrong with a draft, or judged otherwise than is meant; `say` hears progress."""
    yield from (form := list(_faults_of_form(draft)))
    if form:
        return
    one = draft.exercise
    source = draft.source("exercise")
    solution = starters.starter_source(source, solved=True)
    yield from zoo.lacks(solution, draft.answers)
    starter = judge(one, starters.starter_source(source))
    if starter.points or not starter.hint:
        yield f"the starter: {starter.status}, {starter.points:g} points, hint {starter.hint}"
    as_answer = zoo.Answer(one.name, "the solution", "PASS", (), solution)
    for answer in (as_answer, *draft.answers):
        found = zoo.missed(answer, judge(one, answer.source, seed=answer.seed))
        if not found and zoo.must_show(answer):
            seen = judge(zoo.without_hidden(one), answer.source, seed=answer.seed)
            if seen.points == seen.max_points:
                found = ["seen in a hidden case only: give one case more that learners have"]
        say(f"{answer.name}: {'; '.join(found) or f'{answer.status}, as meant'}")
        yield from (f"{answer.name}: {fault}" for fault in found)


def _faults_of_form(draft: Draft) -> Iterator[str]:
    one = draft.exercise
    if one.name in {other.name for other in exercises()}:
        yield f"there is an exercise {one.name} already"
    try:
        notebook_of(draft)
    except ValueError as error:
        yield str(error)
    if draft.source("exercise").partition("\n")[0] != one.marker:
        yield f"the cell exercise should begin with {one.marker!r}"
    try:
        starters.starter_source(draft.source("exercise"))
    except ValueError as error:
        yield f"the cell exercise: {error}"
    if (hints := starters.HINT.findall(draft.source("hints"))) != ["1", "2", "3"]:
        yield f"the cell hints has the hints {hints}, wanted 1, 2, 3"
    try:
        without_hidden(draft.spec)
    except ValueError as error:
        yield f"the spec: {error}"
    if all(case.hidden for case in one.cases):
        yield "the spec: all cases are hidden; learners need some"


def notebook_of(draft: Draft) -> Path:
    """Return the solution notebook that the exercise goes into. Raises ValueError for none."""
    for path in starters.solutions():
        if starters.chapter_of(path) == draft.chapter:
            return path
    chapters = ", ".join(map(starters.chapter_of, starters.solutions()))
    raise ValueError(f"no notebook for {draft.exercise.name}; there are chapters {chapters}")


def add(draft: Draft) -> list[Path]:
    """Write an exercise without faults to its places, run its notebook, and return the files.

    Raises NotebookError where the notebook fails; all is then as it was.
    """
    one = draft.exercise
    solved = notebook_of(draft)
    number = one.name.partition(".")[2]
    spec = ROOT / SPECS / f"ch{draft.chapter}_{number}.py"
    folder = zoo.folder(one.name)
    kept = {path: read_text(path) for path in (solved, starters.FOLDER / solved.name)}
    made = {spec: draft.spec} | {folder / f"{a.name}.py": a.text for a in draft.answers}
    if there := [str(path) for path in (*made, folder) if path.exists()]:
        raise ValueError(f"there already: {', '.join(there)}")
    try:
        folder.mkdir()
        for path, text in made.items():
            replace_text(path, text)
        exercises.cache_clear()
        importlib.invalidate_caches()
        replace_text(solved, _with_cells(draft, kept[solved], solved))
        starters.run(solved)
        starters.sync()
    except BaseException:
        for path, text in kept.items():
            replace_text(path, text)
        for path in made:
            path.unlink(missing_ok=True)
        folder.rmdir()
        exercises.cache_clear()
        raise
    return [*kept, *made]


def _with_cells(draft: Draft, text: str, path: Path) -> str:
    """Return a solution notebook's text with the exercise behind the others."""
    from nbformat.v4 import new_code_cell, new_markdown_cell

    notebook = parse_notebook(text, path)
    ending = draft.exercise.name.replace(".", "-")
    check = f'# NBVAL_CHECK_OUTPUT\ncheck("{draft.exercise.name}")'
    at = [title for title, _ in draft.cells].index("hints")
    for title, source in (*draft.cells[:at], ("check", check), *draft.cells[at:]):
        new = new_markdown_cell if TITLES.get(title) == "markdown" else new_code_cell
        notebook.cells.append(new(source, id=f"{title}-{ending}"))
    mine = notebook.metadata["tiled_matmul"]
    mine["version"] = mine["version"] + 1
    return notebook_text(notebook)
