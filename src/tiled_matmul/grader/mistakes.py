"""Wrong answers that were made on purpose, right ones too, and what each of them is told.

`mistakes.txt` of an exercise holds them one after the other. Each begins with a line

    == name | STATUS | words of its message; more words

and goes on with an edit of `answer.py`, or, after a line `@ starter`, of `starter.py`: lines that
begin with `- ` become those that begin with `+ `, and lines that begin with two blanks stay and
say where. The old lines have to occur in the file once. A line `@@` divides two edits. After a
line `@ whole` follows the whole answer.
"""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tiled_matmul.grader.folders import Folder, FolderError, without_hidden

FILE = "mistakes.txt"
SOLUTION = "the solution"
HEAD = re.compile(r"== ([a-z][a-z0-9_]*) \| ([A-Z_]+)(?: \| (\S.*))?")
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


def answers(folder: Folder) -> list[Answer]:
    """Return the answers of an exercise's `mistakes.txt`. Raises FolderError for the first fault.

    A learner's copy has none.
    """
    if not folder.has(FILE):
        return []
    where = folder.path / FILE
    entries: dict[str, tuple[str, str, list[str]]] = {}
    body: list[str] | None = None
    for number, line in enumerate(folder.text(FILE).split("\n"), start=1):
        if line.startswith("=="):
            head = HEAD.fullmatch(line)
            if head is None:
                wanted = "== name_in_small_letters | STATUS | words; words"
                raise FolderError(f"{where}, line {number}: {line!r}, wanted {wanted!r}")
            if head[1] in entries:
                raise FolderError(f"{where}, line {number}: there are two answers {head[1]!r}")
            entries[head[1]] = head[2], head[3] or "", (body := [])
        elif body is None and line:
            raise FolderError(f"{where}, line {number}: {line!r} belongs to no answer")
        elif body is not None:
            body.append(line)
    return [
        Answer(
            folder.name,
            name,
            status,
            tuple(filter(None, map(str.strip, words.split(";")))),
            f"{folder.exercise.marker}\n{_source(folder, name, body)}\n",
        )
        for name, (status, words, body) in entries.items()
    ]


def _source(folder: Folder, name: str, body: list[str]) -> str:
    """Return an answer's source without its first line. Raises FolderError."""
    about = f"{folder.path / FILE}: exercise {folder.name}, {name}"
    lines = "\n".join(body).rstrip().split("\n")
    if lines[0] == "@ whole":
        return "\n".join(lines[1:])
    file = "answer.py"
    if lines[0] == "@ starter":
        file, lines = "starter.py", lines[1:]
    elif lines == [""]:
        raise FolderError(f"{about}: no edit follows; the answer itself is no mistake")
    text = folder.text(file).split("\n")
    edits = "\n".join(lines).split("\n@@\n") if lines else []
    places = [_place(text, edit.split("\n"), f"{about}: an edit of {file}") for edit in edits]
    for (_, end, _), (begin, _, _) in pairwise(sorted(places)):
        if begin < end:
            raise FolderError(f"{about}: two edits change line {begin + 1} of {file}")
    for begin, end, new in sorted(places, reverse=True):
        text[begin:end] = new
    return "\n".join(text)


def _place(text: list[str], edit: list[str], about: str) -> tuple[int, int, list[str]]:
    """Return (begin, end, new lines) of an edit. Raises FolderError unless it fits once."""
    old, new = [], []
    for line in edit:
        mark, rest = line[:2].ljust(2), line[2:]
        if mark not in ("- ", "+ ", "  "):
            raise FolderError(f"{about} begins a line with {mark!r}, wanted '- ', '+ ' or blanks")
        if mark != "+ ":
            old.append(rest)
        if mark != "- ":
            new.append(rest)
    if not old:
        raise FolderError(f"{about} has no line that stays or goes, to say where it is")
    size = len(old)
    places = [n for n in range(len(text) - size + 1) if text[n : n + size] == old]
    if len(places) != 1:
        raise FolderError(f"{about}: {len(places)} places for {' / '.join(old)!r}, wanted one")
    return places[0], places[0] + size, new


def lacks(solution: str, mine: Sequence[Answer]) -> list[str]:
    """Return what an exercise's answers lack: enough wrong ones that are told for what they are,
    and right ones that differ.
    """
    right = [solution, *(one.source for one in mine if one.status == "PASS")]
    wrong = [one for one in mine if one.status != "PASS"]
    out = [
        f"{one.name}: which words does its message hold, besides the hint's number?"
        for one in wrong
        if all(word.startswith("hint ") for word in one.words)
    ]
    if len(wrong) < LEAST_WRONG:
        out.append(f"{len(wrong)} wrong answers, wanted {LEAST_WRONG}")
    different = len({_tree(source) for source in right})
    if different < LEAST_RIGHT:
        out.append(
            f"{different} right answers that differ, with the solution, wanted {LEAST_RIGHT}"
        )
    return out


def _tree(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return source


def missed(answer: Answer, verdict: Any) -> list[str]:
    """Return in what a verdict is not the one that is meant for an answer."""
    from tiled_matmul.grader.judge import HINTS
    from tiled_matmul.grader.practice import explained

    message = explained(verdict)
    if verdict.status != answer.status:
        return [f"{verdict.status}, meant is {answer.status}: {message}"]
    about = f"which is for {verdict.diagnosis!r}: {message}"
    out = [f"no {word!r} in the message, {about}" for word in answer.words if word not in message]
    if answer.status == "PASS":
        if verdict.points != verdict.max_points or verdict.hint:
            out.append(f"{verdict.points:g} of {verdict.max_points} points: {message}")
        return out
    if verdict.points > verdict.max_points / 2:
        out.append(f"{verdict.points:g} of {verdict.max_points} points for a wrong answer")
    if answer.status == "NOT_YET":
        return out  # no mark, so no hint either
    if not (1 <= verdict.hint <= HINTS and f"hint {verdict.hint} of" in message):
        out.append(f"it calls for hint {verdict.hint}, {about}")
    return out


def must_show(answer: Answer) -> bool:
    """Is it a mistake that has to show in the cases that learners see?

    Nobody who passed with the copy for learners should lose points in class, but for who wrote the
    values of those cases down.
    """
    return answer.status in ("WRONG", "RACE", "BARRIER") and answer.name != "hard_coded"


def graded(
    folder: Folder, only: Collection[str] | None = None, **how: Any
) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, faults) for the solution, the starter and each answer of an exercise.

    `only` names the answers that are graded, if not all are; SOLUTION is the course's own. `how`
    goes to `judge`; a `worker` there serves all but those that never come to an end, which have a
    process of their own and two seconds. In a learner's copy the starter is all there is. Raises
    ValueError where the exercise's own functions fail.
    """
    one = folder.exercise
    if folder.has("answer.py") and (only is None or SOLUTION in only):
        solution = Answer(one.name, SOLUTION, "PASS", (), folder.code("answer.py"))
        yield solution.name, _faults(folder, solution, how)
    blank = Answer(one.name, "the starter", "", (), folder.code("starter.py"))
    verdict = _judged(one, blank, how)
    fits = verdict.status in ("WRONG", "RACE") and verdict.points == 0
    fault = f"{verdict.status}, {verdict.points:g} points: {verdict.message}"
    yield blank.name, [] if fits else [fault]
    for answer in answers(folder):
        if only is None or answer.name in only:
            yield answer.name, _faults(folder, answer, how)


def _faults(folder: Folder, answer: Answer, how: dict[str, Any]) -> list[str]:
    """Return in what the grader does not say what is meant, with and without hidden cases.

    Hidden cases are the last ones. So a verdict without points on the others is the verdict on all.
    """
    one = folder.exercise
    if answer.status == "TIMEOUT":
        one = replace(one, limits=replace(one.limits, seconds=min(2, one.limits.seconds)))
        how = {name: value for name, value in how.items() if name != "worker"}
    if not must_show(answer):
        return missed(answer, _judged(one, answer, how))
    verdict = _judged(without_hidden(one), answer, how)
    if verdict.points:
        if verdict.points == verdict.max_points:
            fault = "seen in a hidden case only: give one case more that learners have"
            return [fault, *missed(answer, _judged(one, answer, how))]
        verdict = _judged(one, answer, how)
    return missed(answer, verdict)


def _judged(exercise: Any, answer: Answer, how: dict[str, Any]) -> Any:
    from tiled_matmul.grader.judge import judge

    try:
        return judge(exercise, answer.source, seed=answer.seed, **how)
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise ValueError(f"{exercise.name}: {answer.name} cannot be graded: {fault}") from error
