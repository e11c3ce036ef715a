"""Tables of the exercises, and of the wrong answers that the tests grade."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from pathlib import Path

from tiled_matmul.book.generated import markdown_table
from tiled_matmul.grader import zoo
from tiled_matmul.grader.spec import exercises


def notebook_of(root: Path, chapter: str) -> Path:
    """Return the exercise notebook of a chapter "05". Raises ValueError unless one file fits."""
    paths = sorted((root / "exercises").glob(f"{chapter}_*.ipynb"))
    if len(paths) != 1:
        raise ValueError(f"wanted one exercises/{chapter}_*.ipynb, found {len(paths)}")
    return paths[0]


def exercises_markdown(root: Path) -> tuple[str, list[str]]:
    """Return (a table of all exercises with their points and solutions, faults)."""
    rows: list[tuple[str, ...]] = []
    faults = []
    for chapter, group in groupby(exercises(), key=attrgetter("chapter")):
        group = list(group)
        try:
            path = notebook_of(root, chapter)
        except ValueError as error:
            faults.append(str(error))
            continue
        if not (path.parent / "solutions" / path.name).exists():
            faults.append(f"exercises/solutions/{path.name} is missing")
            continue
        titles = "; ".join(one.title for one in group)
        points = sum(one.points for one in group)
        title = path.stem[3:].replace("_", " ")
        solution = f"[worked](exercises/solutions/{path.name})"
        rows.append((f"[{title}](exercises/{path.name})", titles, str(points), solution))
    return markdown_table(("notebook", "exercises", "points", "solution"), rows, "  r"), faults


def kills_markdown(root: Path) -> tuple[str, list[str]]:
    """Return (tables of the wrong answers with the status and words that tests demand, faults)."""
    parts = []
    faults = []
    for one in exercises():
        wrong = [a for a in zoo.answers(one.name, root) if a.status != "PASS"]
        rows = [
            (a.name.replace("_", " "), a.status, "; ".join(f"“{word}”" for word in a.words))
            for a in wrong
        ]
        table = markdown_table(("wrong answer", "status", "the message says"), rows)
        parts.append(f"## {one.name} {one.title}\n\n{table}\n")
        if len(wrong) < zoo.LEAST_WRONG:
            faults.append(
                f"exercise {one.name} has {len(wrong)} wrong answers in {zoo.FOLDER}, "
                f"wanted {zoo.LEAST_WRONG}"
            )
    return "\n".join(parts), faults
