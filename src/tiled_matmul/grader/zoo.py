"""Answers that were made on purpose, right ones and wrong ones, and what each is to be told.

A file of `tests/grader_zoo/NN_M/` is an answer behind two lines: the status, and words that the
message holds, with semicolons between them.
"""

from __future__ import annotations

import ast
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.grader.spec import Exercise

FOLDER = Path("tests") / "grader_zoo"
STATUS, WORDS = "# status: ", "# words:"
LEAST_WRONG, LEAST_RIGHT = 5, 3


@dataclass(frozen=True)
class Answer:
    """An answer to an exercise "05.1", the status meant for it and words of its message."""

    exercise: str
    name: str
    status: str
    words: tuple[str, ...]
    source: str

    @property
    def seed(self) -> int:
        """One for each: among many, small numbers let one mistake look like another at times."""
        return zlib.crc32(f"{self.exercise} {self.name}".encode())

    @property
    def text(self) -> str:
        """What its file holds."""
        return f"{STATUS}{self.status}\n{WORDS} {'; '.join(self.words)}".rstrip() + (
            f"\n{self.source.rstrip()}\n"
        )


def parse(text: str, exercise: str, name: str) -> Answer:
    """Return the answer that a file's text is. Raises ValueError for one without its two lines."""
    lines = text.split("\n", 2)
    if len(lines) < 3 or not lines[0].startswith(STATUS) or not lines[1].startswith(WORDS):
        said = "\n".join(lines[:2])
        raise ValueError(
            f"{exercise} {name}: begins with {said!r}, wanted {STATUS!r} and {WORDS!r}, a line each"
        )
    words = [part.strip() for part in lines[1].removeprefix(WORDS).split(";")]
    status = lines[0].removeprefix(STATUS)
    return Answer(exercise, name, status, tuple(filter(None, words)), lines[2])


def answers(exercise: str, root: Path = ROOT) -> list[Answer]:
    """Return the answers to an exercise "05.1" that lie in the zoo."""
    paths = sorted(folder(exercise, root).glob("*.py"))
    return [parse(path.read_text(encoding="utf-8"), exercise, path.stem) for path in paths]


def folder(exercise: str, root: Path = ROOT) -> Path:
    """Return the folder of an exercise's answers."""
    return root / FOLDER / exercise.replace(".", "_")


def lacks(solution: str, mine: Sequence[Answer]) -> list[str]:
    """Return what an exercise's answers lack: enough wrong ones that are told for what they are,
    and right ones that differ.
    """
    right = [solution, *(one.source for one in mine if one.status == "PASS")]
    wrong = [one for one in mine if one.status != "PASS"]
    found = [
        f"{one.name}: which words does its message hold, besides the hint's number?"
        for one in wrong
        if all(word.startswith("hint ") for word in one.words)
    ]
    if len(wrong) < LEAST_WRONG:
        found.append(f"{len(wrong)} wrong answers, wanted {LEAST_WRONG}")
    different = len({_tree(source) for source in right})
    if different < LEAST_RIGHT:
        found.append(
            f"{different} right answers that differ, with the solution, wanted {LEAST_RIGHT}"
        )
    return found


def _tree(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return source


def missed(answer: Answer, found: Any) -> list[str]:
    """Return in what a verdict is not the one that is meant for an answer."""
    from tiled_matmul.grader.judge import HINTS
    from tiled_matmul.grader.practice import explained

    said = explained(found)
    if found.status != answer.status:
        return [f"{found.status}, meant is {answer.status}: {said}"]
    about = f"which is for {found.diagnosis!r}: {said}"
    out = [f"no {word!r} in the message, {about}" for word in answer.words if word not in said]
    if answer.status == "PASS":
        if found.points != found.max_points or found.hint:
            out.append(f"{found.points:g} of {found.max_points} points: {said}")
        return out
    if found.points > found.max_points / 2:
        out.append(f"{found.points:g} of {found.max_points} points for a wrong answer")
    if not (1 <= found.hint <= HINTS and f"hint {found.hint} of" in said):
        out.append(f"it calls for hint {found.hint}, {about}")
    return out


def without_hidden(exercise: Exercise) -> Exercise:
    """Return an exercise as the copy for learners has it."""
    return replace(exercise, cases=tuple(case for case in exercise.cases if not case.hidden))


def must_show(answer: Answer) -> bool:
    """Is it a mistake that has to show in the cases that learners see?

    Nobody who passed with the copy for learners should lose points in class, but for who wrote the
    values of those cases down.
    """
    return answer.status in ("WRONG", "RACE") and answer.name != "hard_coded"
