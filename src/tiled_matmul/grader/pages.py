"""The book's pages on exercises: a table of what there is, and the wrong answers that are graded.

This is an extension of Sphinx, beside `book.sphinx`. Its directives `tiled-exercises`,
`tiled-kills` and `tiled-soak` take neither arguments nor content.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from tiled_matmul.book.generated import markdown_table
from tiled_matmul.book.sphinx import GeneratedTable
from tiled_matmul.files import load_as
from tiled_matmul.grader import mistakes
from tiled_matmul.grader.folders import FolderError, folders

SOURCE = Path("exercises") / "source"


def notebook_of(root: Path, chapter: str) -> Path:
    """Return the exercise notebook of a chapter "05". Raises ValueError where there is not one."""
    there = sorted((root / "exercises").glob(f"{chapter}_*.ipynb"))
    if len(there) != 1:
        raise ValueError(f"wanted one exercises/{chapter}_*.ipynb, there are {len(there)}")
    return there[0]


def exercises_markdown(root: Path) -> tuple[str, list[str]]:
    """Return a table of all exercises with their points, and what is missing.

    It links to the solutions, unless it is made in a learner's copy.
    """
    rows: list[tuple[str, ...]] = []
    faults = []
    solved = (root / "exercises" / "solutions").is_dir()
    try:
        there = [folder.exercise for folder in folders(source=root / SOURCE)]
    except FolderError as error:
        return "", [str(error)]
    for chapter, group in groupby(there, key=attrgetter("chapter")):
        group = list(group)
        try:
            path = notebook_of(root, chapter)
        except ValueError as error:
            faults.append(str(error))
            continue
        if solved and not (path.parent / "solutions" / path.name).exists():
            faults.append(f"exercises/solutions/{path.name} is missing")
            continue
        titles = "; ".join(one.title for one in group)
        points = sum(one.points for one in group)
        title = path.stem[3:].replace("_", " ")
        row = (f"[{title}](exercises/{path.name})", titles, str(points))
        rows.append((*row, f"[worked](exercises/solutions/{path.name})") if solved else row)
    columns = ("notebook", "exercises", "points", *(("solution",) if solved else ()))
    table = markdown_table(columns, rows, "  r")
    if solved:
        table += "\n\nLook at a solution when you have yours: the two need not be alike."
    return table, faults


def kills_markdown(root: Path) -> tuple[str, list[str]]:
    """Return tables of the wrong answers with the status and words that tests demand."""
    parts = []
    faults = []
    try:
        graded = [(folder, mistakes.answers(folder)) for folder in folders(source=root / SOURCE)]
    except FolderError as error:
        return "", [str(error)]
    if not any(answers for _, answers in graded):
        return "The wrong answers are not in this copy of the course: they give answers away.", []
    for folder, answers in graded:
        wrong = [answer for answer in answers if answer.status != "PASS"]
        rows = [
            (a.name.replace("_", " "), a.status, "; ".join(f"“{word}”" for word in a.words))
            for a in wrong
        ]
        table = markdown_table(("wrong answer", "status", "the message says"), rows)
        parts.append(f"## {folder.name} {folder.exercise.title}\n\n{table}\n")
        if len(wrong) < mistakes.LEAST_WRONG:
            faults.append(
                f"exercise {folder.name} has {len(wrong)} wrong answers in {mistakes.FILE}, "
                f"wanted {mistakes.LEAST_WRONG}"
            )
    return "\n".join(parts), faults


def soak_markdown(path: Path) -> tuple[str, list[str]]:
    """Return tables of what grading a large class took, as `tools/soak_cluster.py` stored it."""
    try:
        return load_as(path, _soak, "a soak"), []
    except ValueError as error:
        return "", [str(error)]


def _soak(stored: Mapping[str, Any]) -> str:
    memory, cpu = stored["memory_mb"], stored["cpu_ms_per_submission"]
    hours = stored["seconds"] / 3600 * stored["workers"]
    notebooks = stored["notebooks_mb"]
    rows = [
        ("submissions", f"{stored['submissions']:,}, {notebooks['all']:,.0f} MB"),
        ("largest notebook", f"{notebooks['largest']:.0f} MB"),
        ("workers", f"{stored['workers']} on a machine of {stored['provenance']['cores']} cores"),
        ("time", f"{stored['seconds'] / 60:.0f} minutes, {stored['per_second']:.1f} a second"),
        ("worker hours for 10,000", f"{hours * 10_000 / stored['submissions']:.1f}"),
        ("reports that were lost, doubled or wrong",
         str(stored["reports_that_are_not_as_they_should_be"])),
    ]  # fmt: skip
    for name in ("client", "scheduler"):
        first, last, most = (memory[name][key] for key in ("first_tenth", "last_tenth", "most"))
        text = f"{first:.0f} MB at the beginning, {last:.0f} at the end, at most {most:.0f}"
        rows.append((f"memory of the {name}", text))
        rows.append((f"processor time of the {name}", f"{cpu[name]:.1f} ms a submission"))
    for one in stored["estimate"]:
        minutes = 10_000 / one["per_second"] / 60
        name = f"estimate for {one['nodes']} nodes of {one['cores'] // one['nodes']} cores"
        rows.append((name, f"10,000 in {minutes:.1f} minutes, limited by the {one['limit']}"))
    return markdown_table(("", "result"), rows)


class Soak(GeneratedTable):
    def sources(self, root: Path) -> list[Path]:
        return [root / "results" / "cluster" / "soak.json"]

    def make(self, root: Path) -> tuple[str, list[str]]:
        return soak_markdown(self.sources(root)[0])


class Exercises(GeneratedTable):
    def sources(self, root: Path) -> list[Path]:
        return sorted((root / "exercises").glob("**/*.ipynb"))

    def make(self, root: Path) -> tuple[str, list[str]]:
        return exercises_markdown(root)


class Kills(GeneratedTable):
    """A table for each exercise, under a heading of its own."""

    def sources(self, root: Path) -> list[Path]:
        paths = [folder.path / mistakes.FILE for folder in folders(source=root / SOURCE)]
        return [path for path in paths if path.is_file()]

    def make(self, root: Path) -> tuple[str, list[str]]:
        return kills_markdown(root)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("tiled-exercises", Exercises)
    app.add_directive("tiled-kills", Kills)
    app.add_directive("tiled-soak", Soak)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
