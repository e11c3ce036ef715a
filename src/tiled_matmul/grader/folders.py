"""The exercises as they are stored: one folder each, read when an exercise is asked for.

`exercises/source/NN_topic/M_name/` is exercise NN.M; `teaching.md` says what each file holds. A
learner's copy has neither `answer.py` nor `hidden.py` nor `mistakes.txt`, and for an exercise on
numbers no `judge.py` (see `sealed.py`).
"""

from __future__ import annotations

import importlib
import re
import shutil
import sys
import types
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import replace_text
from tiled_matmul.grader.spec import Exercise

SOURCE = ROOT / "exercises" / "source"
CHAPTER = re.compile(r"(\d\d)_[a-z0-9_]+")
NUMBERED = re.compile(r"([1-9]\d?)_[a-z0-9_]+")
NEEDED = ("task.md", "starter.py", "hints.md")
SEALED = "judge.json"
"""What a learner's copy has in place of `judge.py` for an exercise on numbers."""
OF_LIBRARY = re.compile(r"\{of_library:(\w+)\}")
MEASURED = 4096  # edge of the product whose records are quoted
TEACHERS = ("answer.py", "hidden.py", "mistakes.txt", "_reference.py")
"""What is left out of a copy for learners. `hidden.py` may be missing elsewhere too, and
`_reference.py` holds what computes the results of several exercises on numbers."""


class FolderError(ValueError):
    """A folder that is no exercise; the message is one line that names the file and the fault."""


@dataclass(frozen=True)
class Folder:
    """One exercise's folder."""

    path: Path

    @property
    def name(self) -> str:
        """The exercise's name, "05.3", by the numbers of the two folders."""
        return f"{self.path.parent.name[:2]}.{self.path.name.partition('_')[0]}"

    def has(self, file: str) -> bool:
        """Return whether the folder has a file."""
        return (self.path / file).is_file()

    def text(self, file: str) -> str:
        """Return a file's text without empty lines at its end. Raises FolderError."""
        try:
            return (self.path / file).read_text(encoding="utf-8").rstrip()
        except OSError as error:
            raise FolderError(f"{self.path / file}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise FolderError(f"{self.path / file}: not UTF-8 at byte {error.start}") from None

    def code(self, file: str) -> str:
        """Return `answer.py` or `starter.py` as a cell holds it, behind the exercise's marker."""
        return f"{self.exercise.marker}\n{self.text(file)}"

    @property
    def exercise(self) -> Exercise:
        """The exercise with its hidden cases behind the others. Raises FolderError."""
        return _exercise(self)

    def after(self) -> str:
        """Return what is said once the exercise is passed, "" if nothing is.

        `{of_library:cuda_shared}` there becomes that rung's share of the library's speed on the
        reference GPU, at 4096 × 4096 × 4096 in the rung's own dtype, from the records. Raises
        FolderError where there is no such record.
        """
        if not self.has("after.md"):
            return ""
        text = " ".join(self.text("after.md").split())
        return OF_LIBRARY.sub(lambda match: self._of_library(match[1]), text)

    def _of_library(self, name: str) -> str:
        from tiled_matmul.ladder import LADDER
        from tiled_matmul.measure.results import find, reference

        try:
            dtypes = {step.name: step.dtype for step in LADDER}
            record = find(reference(), name, *[MEASURED] * 3, dtypes[name])
        except (KeyError, ValueError) as error:
            raise FolderError(f"{self.path}/after.md: {error}") from None
        return f"{record.ratio:.{1 if record.ratio < 0.1 else 0}%}"

    def module(self, stem: str) -> types.ModuleType:
        """Return `judge.py` or `hidden.py` as a module. Raises FolderError.

        They are part of the course and no learner's code. They import what exercises share from
        the folders above: `from .._shared import …`.
        """
        source = self.path.parents[1]
        package = f"tiled_matmul_exercises_{zlib.crc32(str(source.resolve()).encode()):08x}"
        if package not in sys.modules:
            root = types.ModuleType(package)
            root.__path__ = [str(source)]
            sys.modules[package] = root
        importlib.invalidate_caches()
        try:
            return importlib.import_module(
                f"{package}.{self.path.parent.name}.{self.path.name}.{stem}"
            )
        except (Exception, SystemExit) as error:
            fault = " ".join(f"{type(error).__name__}: {error}".split())
            raise FolderError(f"{self.path / stem}.py: {fault}") from error


@cache
def _exercise(folder: Folder) -> Exercise:
    judge, hidden = folder.path / "judge.py", folder.path / "hidden.py"
    if folder.has(SEALED) and not judge.is_file():
        return _opened(folder)
    exercise = _value(folder, "judge", "EXERCISE")
    if not isinstance(exercise, Exercise):
        raise FolderError(f"{judge}: EXERCISE should be an Exercise, got {exercise!r}")
    if exercise.name != folder.name:
        raise FolderError(f"{judge}: name should be {folder.name!r}, got {exercise.name!r}")
    if open_hidden := [str(case) for case in exercise.cases if case.hidden]:
        raise FolderError(f"{judge}: a hidden case belongs into hidden.py: {open_hidden[0]}")
    if not hidden.is_file():
        return exercise
    cases = _value(folder, "hidden", "HIDDEN")
    wanted = type(exercise.cases[0])
    if not isinstance(cases, tuple) or not cases or {type(case) for case in cases} != {wanted}:
        raise FolderError(f"{hidden}: HIDDEN should be a tuple of {wanted.__name__}s")
    return replace(
        exercise, cases=exercise.cases + tuple(replace(case, hidden=True) for case in cases)
    )


def _opened(folder: Folder) -> Exercise:
    from tiled_matmul.grader.sealed import opened

    try:
        exercise = opened(folder.text(SEALED))
    except ValueError as error:
        raise FolderError(f"{folder.path / SEALED}: {error}") from None
    if exercise.name != folder.name:
        raise FolderError(f"{folder.path / SEALED}: name is {exercise.name!r}")
    return exercise


def _value(folder: Folder, stem: str, name: str) -> Any:
    module = folder.module(stem)
    if not hasattr(module, name):
        raise FolderError(f"{folder.path / stem}.py: it defines no {name}")
    return getattr(module, name)


def chapter_folders(source: Path = SOURCE) -> list[Path]:
    """Return the chapters' folders. Raises FolderError for two of one number."""
    return _numbered(source, CHAPTER)


def folders(chapter: str | None = None, source: Path = SOURCE) -> list[Folder]:
    """Return the folders of a chapter "05", or all of them, in order.

    Raises ValueError if the chapter has none, FolderError for two folders with one number.
    """
    paths = chapter_folders(source)
    if chapter is not None and chapter not in (known := [path.name[:2] for path in paths]):
        raise ValueError(f"chapter {chapter} has no exercises; these have: {', '.join(known)}")
    wanted = [path for path in paths if chapter in (None, path.name[:2])]
    return [Folder(path) for parent in wanted for path in _numbered(parent, NUMBERED)]


def _numbered(parent: Path, form: re.Pattern) -> list[Path]:
    matches = [(form.fullmatch(path.name), path) for path in parent.iterdir() if _kept(path)]
    paths: dict[int, Path] = {}
    for match, path in sorted(((m, p) for m, p in matches if m), key=lambda pair: pair[1]):
        if (other := paths.setdefault(int(match[1]), path)) is not path:
            raise FolderError(f"{path}: {other.name} has this number too")
    return [paths[number] for number in sorted(paths)]


def _kept(path: Path) -> bool:
    """Return whether a folder has files; git leaves one behind that has only Python's caches."""
    return any(one.is_file() and one.parent.name != "__pycache__" for one in path.rglob("*"))


@cache
def exercises(chapter: str | None = None) -> tuple[Exercise, ...]:
    """Return the exercises of a chapter ("05"), or all of them.

    Raises ValueError if a chapter has none, or if a folder is no exercise.
    """
    return tuple(one.exercise for one in folders(chapter))


def folder(name: str, source: Path = SOURCE) -> Folder:
    """Return the folder of exercise "05.3". Raises ValueError, which lists those that there are."""
    there = folders(source=source)
    for one in there:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in there)
    raise ValueError(f"there is no exercise {name!r}; there are {known}")


@cache
def exercise(name: str) -> Exercise:
    """Return an exercise by its name. Raises ValueError, which lists the names that there are."""
    return folder(name).exercise


def copied(name: str, slug: str, like: str | None = None, source: Path = SOURCE) -> Path:
    """Copy an exercise's folder as the model of a new exercise, and return the new folder.

    `name` is "05.5", the next one of its chapter; `like` is the model, else the chapter's last.
    The new folder has the new number in it, and is otherwise the model's: an author fills it in.
    Raises ValueError.
    """
    chapter, _, number = name.partition(".")
    there = folders(chapter, source)
    wanted = f"{chapter}.{len(there) + 1}"
    if name != wanted:
        raise ValueError(f"the next exercise of chapter {chapter} is {wanted}, got {name}")
    model = folder(like, source) if like else there[-1]
    if fault := lacking([model], copy=False):
        raise ValueError(f"{fault[0]}: a learner's copy has no models")
    target = there[0].path.parent / f"{number}_{slug}"
    if not NUMBERED.fullmatch(target.name):
        raise ValueError(f"a folder is called like 5_register_tile, got {target.name!r}")
    shutil.copytree(model.path, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (target / "judge.py", target / "hidden.py", target / "task.md"):
        if path.exists():
            text = path.read_text(encoding="utf-8")
            replace_text(path, text.replace(model.name, name))
    return target


def for_learners(source: Path = SOURCE) -> bool:
    """Return whether this is a learner's copy: no exercise has an answer."""
    return not any(one.has("answer.py") for one in folders(source=source))


def without_hidden(exercise: Exercise) -> Exercise:
    """Return an exercise as the copy for learners has it."""
    return replace(exercise, cases=tuple(case for case in exercise.cases if not case.hidden))


def lacking(there: Sequence[Folder], copy: bool) -> list[str]:
    """Return which files the folders lack; in a `copy` for learners answers may be missing."""
    needed = NEEDED if copy else (*NEEDED, "answer.py", "mistakes.txt")
    out = [
        f"{one.path}: there is no {file}" for one in there for file in needed if not one.has(file)
    ]
    for one in there:
        if not one.has("judge.py") and not (copy and one.has(SEALED)):
            out.append(f"{one.path}: there is no judge.py")
    return out
