"""Run a learner's answers under nbval: which cells of the course show different outputs?

The learner's answers are put into the course's own notebook, which nbval runs. This only explains;
no mark depends on it. A wrong answer may pass under nbval, and a right one may differ.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from tiled_matmul.book.files import notebook_text, parse_notebook, read_text
from tiled_matmul.grader import cells, gate
from tiled_matmul.grader.messages import sentence

# The statuses of answers that run here: none that was refused, or that ended or held up a process.
HARMLESS = ("PASS", "WRONG", "RACE")
SECONDS = 90
CELL_SECONDS = 20
MOST_TEXT = 3000
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def notebook(submission: cells.Submission, statuses: dict[str, str]):
    """Return the course's notebook with the answers in it, and without its check cells.

    The results of the checks are already known.
    """
    path, *_ = cells.pristine(submission.chapter)
    made = parse_notebook(read_text(path), path)
    answers = {answer.exercise.cell: answer for answer in submission.answers}
    for cell in made.cells:
        answer = answers.get(cell.id)
        if answer is not None and statuses.get(answer.exercise.name) in HARMLESS:
            with suppress(gate.NotPython, gate.Refused):
                cell.source = gate.without_commands(answer.source)
    made.cells = [cell for cell in made.cells if not cell.id.startswith("check-")]
    return made


def differences(submission: cells.Submission, graded: Sequence[dict]) -> list[str]:
    """Return nbval's message for each cell whose output differs."""
    statuses = {one["exercise"]: one["status"] for one in graded}
    made = notebook(submission, statuses)
    ids = [cell.id for cell in made.cells if cell.cell_type == "code"]
    with tempfile.TemporaryDirectory(prefix="tiled-matmul-nbval-") as folder:
        path, report = Path(folder, "answers.ipynb"), Path(folder, "report.xml")
        path.write_text(notebook_text(made), encoding="utf-8")
        Path(folder, "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
        command += ["-c", str(Path(folder, "pytest.ini")), f"--rootdir={folder}"]
        command += ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={CELL_SECONDS}"]
        try:
            subprocess.run(
                [*command, f"--junitxml={report}", str(path)],
                cwd=folder,
                capture_output=True,
                timeout=SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return [sentence("nbval: unfinished", reason=type(error).__name__)]
        try:
            tree = ElementTree.parse(report)
        except (OSError, ElementTree.ParseError):
            return [sentence("nbval: not installed")]
    return list(_failures(tree, ids))


def _failures(tree: ElementTree.ElementTree, ids: list[str]):
    for case in tree.iter("testcase"):
        failure = case.find("failure")
        number = re.search(r"(\d+)$", case.get("name", ""))
        if failure is None or number is None or int(number[1]) >= len(ids):
            continue
        # pytest's XML writes escape characters as #x1B.
        text = COLOURS.sub("", (failure.text or "").replace("#x1B", "\x1b")).strip()
        yield sentence("nbval: cell", cell=ids[int(number[1])], output=text[:MOST_TEXT])
