"""A new exercise from one file: tried first, and written to its places only if nothing is amiss.

The file is a notebook as text, in jupytext's percent format. Its cells have titles: `spec` is the
specification; `task`, `exercise` and `hints`, with `given` and `run` where they are wanted, go into
the chapter's solution notebook, and a check before the hints; each `answer NAME` is a file of the
zoo.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.book.files import notebook_text, parse_notebook, read_text
from tiled_matmul.files import replace_text
from tiled_matmul.grader import starters, zoo
from tiled_matmul.grader.judge import ON_GPU, Verdict, judge
from tiled_matmul.grader.release import SPECS, without_hidden
from tiled_matmul.grader.spec import Exercise, exercises

KINDS = {
    **{"spec": "code", "task": "markdown", "given": "code", "exercise": "code", "run": "code"},
    "hints": "markdown",
}
"""The cells by their titles, in the order in which they stand in a notebook."""
OPTIONAL = {"given", "run"}
ANSWER = re.compile(r"answer ([a-z][a-z0-9_]{0,49})")
EXPECTED = "*Expected: roughly "
LARGE = 200  # what a GPU is tried on has more rows, columns and steps than that


@dataclass(frozen=True)
class Draft:
    """An exercise that is not in the course yet. `cells` are the sources by their titles."""

    exercise: Exercise
    spec: str
    cells: dict[str, str]
    answers: tuple[zoo.Answer, ...]

    @property
    def solution(self) -> str:
        """The worked answer. Raises ValueError, as `starter` does, for marks that do not fit."""
        return starters.starter_source(self.cells["exercise"], solved=True)

    @property
    def starter(self) -> str:
        """What the learner finds."""
        return starters.starter_source(self.cells["exercise"])


def read(path: Path) -> Draft:
    """Return what a file holds. Raises ValueError, naming the cell, for what is missing or wrong.

    Its spec is run: it is a part of the course, and no learner's code.
    """
    import jupytext

    cells: dict[str, str] = {}
    named = {}
    for cell in jupytext.reads(read_text(path), fmt="py:percent").cells:
        title = cell.metadata.get("title", "")
        answer = ANSWER.fullmatch(title)
        if title not in KINDS and not answer:
            known = ", ".join([*KINDS, "answer name_in_small_letters"])
            raise ValueError(f"{path}: a cell is called {title!r}; there are {known}")
        kind = "code" if answer else KINDS[title]
        if cell.cell_type != kind:
            raise ValueError(f"{path}: the cell {title!r} is {cell.cell_type}, wanted {kind}")
        if title in cells or answer and answer[1] in named:
            raise ValueError(f"{path}: there are two cells called {title!r}")
        if answer:
            named[answer[1]] = cell.source
        else:
            cells[title] = cell.source
    if missing := [title for title in KINDS if title not in OPTIONAL and title not in cells]:
        raise ValueError(f"{path}: no cell called {', '.join(missing)}")
    if list(cells) != [title for title in KINDS if title in cells]:
        raise ValueError(f"{path}: the order is {', '.join(KINDS)}, got {', '.join(cells)}")
    spec = cells.pop("spec").rstrip() + "\n"
    exercise = _exercise(spec, path)
    answers = (zoo.parse(source, exercise.name, name) for name, source in named.items())
    return Draft(exercise, spec, cells, tuple(answers))


def _exercise(spec: str, path: Path) -> Exercise:
    """Return the one exercise that a specification describes. Raises ValueError."""
    module = types.ModuleType("tiled_matmul.grader.specs.draft")
    sys.modules[module.__name__] = module
    try:
        exec(compile(spec, f"{path}, spec", "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}: the spec: {type(error).__name__}: {error}") from error
    found = getattr(module, "EXERCISES", None)
    if not isinstance(found, tuple) or [type(one) for one in found] != [Exercise]:
        raise ValueError(f"{path}: the spec should end with EXERCISES = (one Exercise,): {found!r}")
    return found[0]


def faults(draft: Draft, say: Callable[[str], None] = print) -> Iterator[str]:
    """Yield what is wrong with a draft, or judged otherwise than is meant; `say` hears progress.

    Raises ValueError where the spec's own functions fail.
    """
    yield from (form := list(_faults_of_form(draft)))
    if form:
        return
    one = draft.exercise
    as_answer = zoo.Answer(one.name, "the solution", "PASS", (), draft.solution)
    if wrong := zoo.missed(as_answer, _judged(one, as_answer)):
        yield from (f"the solution: {fault}" for fault in wrong)
        return
    say("the solution: PASS")
    yield from zoo.lacks(draft.solution, draft.answers)
    starter = _judged(one, zoo.Answer(one.name, "the starter", "", (), draft.starter))
    if starter.status not in ("WRONG", "RACE") or starter.points:
        yield f"the starter: {starter.status}, {starter.points:g} points: {starter.message}"
    for answer in draft.answers:
        found = zoo.missed(answer, _judged(one, answer))
        if not found and zoo.must_show(answer):
            seen = _judged(zoo.without_hidden(one), answer)
            if seen.points == seen.max_points:
                found = ["seen in a hidden case only: give one case more that learners have"]
        say(f"{answer.name}: {'not as meant' if found else f'{answer.status}, as meant'}")
        yield from (f"{answer.name}: {fault}" for fault in found)


def _judged(exercise: Exercise, answer: zoo.Answer) -> Verdict:
    try:
        return judge(exercise, answer.source, seed=answer.seed)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"{answer.name} cannot be graded, by the spec's fault: {said}") from error


def _faults_of_form(draft: Draft) -> Iterator[str]:
    one = draft.exercise
    try:
        solved = notebook_of(draft)
    except ValueError as error:
        yield str(error)
        return
    others = exercises(one.chapter)
    if one.name != (after := f"{one.chapter}.{len(others) + 1}"):
        yield f"the next exercise of chapter {one.chapter} is {after}, got {one.name}"
    if one.entry in {other.entry for other in others}:
        yield f"the chapter has an exercise that asks for {one.entry}() already"
    about = str(solved), str(starters.FOLDER / solved.name)
    yield from (fault for fault in starters.faults() if fault.startswith(about))
    yield from _constants(draft, solved)
    if not draft.cells["task"].startswith(f"## {one.name} ") or EXPECTED not in draft.cells["task"]:
        yield f"the task should begin with '## {one.name} ' and say '{EXPECTED}N lines.*'"
    first_lines = {"the cell exercise": draft.cells["exercise"]}
    first_lines |= {f"answer {answer.name}": answer.source for answer in draft.answers}
    for name, source in first_lines.items():
        if source.partition("\n")[0] != one.marker:
            yield f"{name} should begin with {one.marker!r}"
    try:
        compile(draft.starter, "starter", "exec")
        compile(draft.solution, "solution", "exec")
    except (ValueError, SyntaxError) as error:
        yield f"the cell exercise: {error}"
    if (hints := starters.HINT.findall(draft.cells["hints"])) != ["1", "2", "3"]:
        yield f"the cell hints has the hints {hints}, wanted 1, 2, 3"
    try:
        without_hidden(draft.spec)
    except ValueError as error:
        yield f"the spec: {error}"
    if all(case.hidden for case in one.cases):
        yield "the spec: all cases are hidden; learners need some"
    large = [min(case.m, case.n, case.k) > LARGE for case in one.large]
    if (one.kind in ON_GPU) != bool(large) or not all(large):
        yield f"the spec: `large` holds cases beyond {LARGE} for kernels, and nothing for others"


def _constants(draft: Draft, solved: Path) -> Iterator[str]:
    """Yield which constants are not what a spec says, once all cells have run that define some."""
    cells = parse_notebook(read_text(solved), solved).cells
    sources = [cell.source for cell in cells if cell.id.startswith(("imports", "given"))]
    space: dict[str, Any] = {}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for source in (*sources, draft.cells.get("given", "")):
                exec(source, space)
    except Exception as error:
        yield f"the cell given: {type(error).__name__}: {error}"
        return
    for one in (*exercises(draft.exercise.chapter), draft.exercise):
        for name, value in one.given.items():
            if name not in space or space[name] != value:
                now = repr(space[name]) if name in space else "nothing"
                yield f"{name} is {value!r} for {one.name}, and {now} in the notebook"


def notebook_of(draft: Draft) -> Path:
    """Return the solution notebook that the exercise goes into. Raises ValueError for none."""
    for path in starters.solutions():
        if starters.chapter_of(path) == draft.exercise.chapter:
            return path
    chapters = ", ".join(map(starters.chapter_of, starters.solutions()))
    raise ValueError(f"no notebook for {draft.exercise.name}; there are chapters {chapters}")


def add(draft: Draft) -> list[Path]:
    """Write an exercise without faults to its places, and return the files.

    Its notebook runs in a copy of the course: until that has gone well nothing is written here.
    Raises ValueError where it does not.
    """
    solved = notebook_of(draft)
    before = {path: read_text(path) for path in (solved, starters.FOLDER / solved.name)}
    with TemporaryDirectory() as folder:
        files = _built(draft, Path(folder), solved)
    new = [path for path in files if path not in before]
    if there := [str(path) for path in new if path.exists()]:
        raise ValueError(f"there already: {', '.join(there)}")
    for path, text in before.items():
        if read_text(path) != text:
            raise ValueError(f"{path}: was changed by somebody while the copy ran")
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        replace_text(path, text)
    return list(files)


def _built(draft: Draft, course: Path, solved: Path) -> dict[Path, str]:
    """Return the texts of all files of an exercise, made in a copy of the course."""
    spec = f"{SPECS}ch{draft.exercise.name.replace('.', '_')}.py"
    solution, starter = (f"exercises/{name}" for name in (f"solutions/{solved.name}", solved.name))
    shutil.copytree(ROOT / "src", course / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "_config.yml"):
        shutil.copy(ROOT / name, course)
    (course / solution).parent.mkdir(parents=True)
    (course / spec).write_text(draft.spec, encoding="utf-8")
    (course / solution).write_text(_with_cells(draft, solved), encoding="utf-8")
    _run(course, "ruff", "format", "--quiet", spec, solution)
    _run(course, "tiled_matmul", "exercises", "run")
    _run(course, "ruff", "check", "--quiet", "--output-format=concise", spec, solution, starter)
    files = {ROOT / name: read_text(course / name) for name in (solution, starter, spec)}
    folder = zoo.folder(draft.exercise.name)
    return files | {folder / f"{answer.name}.py": answer.text for answer in draft.answers}


def _run(course: Path, *arguments: str) -> None:
    """Run a program in the copy of the course. Raises ValueError with what it says if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=course,
        env={**os.environ, "PYTHONPATH": str(course / "src")},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).replace(f"{course}/", "").strip()
        raise ValueError(f"{' '.join(arguments[:2])}: {said}")


def _with_cells(draft: Draft, path: Path) -> str:
    """Return a solution notebook's text with the exercise behind the others."""
    from nbformat.v4 import new_code_cell, new_markdown_cell

    notebook = parse_notebook(read_text(path), path)
    ending = draft.exercise.cell.removeprefix("exercise")
    cells = {title: source for title, source in draft.cells.items() if title != "hints"}
    cells["check"] = f'# NBVAL_CHECK_OUTPUT\ncheck("{draft.exercise.name}")'
    cells["hints"] = draft.cells["hints"]
    for title, source in cells.items():
        new = new_markdown_cell if KINDS.get(title) == "markdown" else new_code_cell
        notebook.cells.append(new(source, id=f"{title}{ending}"))
    notebook.metadata["tiled_matmul"]["version"] += 1
    return notebook_text(notebook)
