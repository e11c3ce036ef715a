"""Markers in cells for nbval, the judge of notebooks: it has to read each as its author meant it.

For nbval a marker is a line that holds nothing but a comment with the marker's name, in a code
cell. What only looks like one has no effect, so the cell's output is never compared. Markers and
tags that excuse a cell are refused, except one tag that is the book's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

CHECK = "NBVAL_CHECK_OUTPUT"
IGNORE = "nbval-ignore-output"
EXCUSES = (
    *("NBVAL_IGNORE_OUTPUT", "NBVAL_RAISES_EXCEPTION", "NBVAL_SKIP"),
    "PYTEST_VALIDATE_IGNORE_OUTPUT",
)
LIKE_MARKER = re.compile(r"#.*(?:\bnb[ _-]?val|pytest[ _-]validate)", re.IGNORECASE)
HEADING = re.compile(r"#+\s*(?:nb[ _-]?val|pytest[ _-]validate)[ _-]", re.IGNORECASE)
LIKE_TAG = re.compile(r"nb[ _-]?val|pytest[ _-]validate|raises[ _-]?exception", re.IGNORECASE)
UPDATES = re.compile(
    r"^(?!\s*#).*?\b(clear_output|update_display|display_id|DisplayHandle)\b", re.M
)


def is_checked(source: str) -> bool:
    """Does nbval compare the output of a code cell, even where it compares no others?"""
    return any(_marker(line) == CHECK for line in source.splitlines())


def _marker(line: str) -> str | None:
    """Return the marker that nbval reads in a line, or None."""
    line = line.strip()
    name = line.lstrip("#").strip() if line.startswith("#") else ""
    return name if name in (CHECK, *EXCUSES) else None


def faults(cell: Any) -> Iterator[str]:
    """Yield what is wrong with the markers and tags for nbval of a cell, each as one line."""
    if cell.cell_type != "code":
        for number, line in enumerate(cell.source.splitlines(), start=1):
            if HEADING.match(line.strip()):
                text = line.strip()[:60]
                yield f"line {number}: {text!r}: nbval reads markers in code cells only"
        return
    for number, line in enumerate(cell.source.splitlines(), start=1):
        marker, text = _marker(line), line.strip()[:60]
        if marker in EXCUSES:
            yield f"# {marker}: a tag says which outputs are not compared, and no cell is excused"
        elif marker is None and LIKE_MARKER.search(line):
            yield (
                f"line {number}: {text!r} is no marker for nbval, so nothing is compared; the "
                f"whole line has to be '# {CHECK}'"
            )
    tags = cell.metadata.get("tags", [])
    for tag in sorted(like_tags(tags)):
        yield f"tag {tag!r}: the only tag for nbval is {IGNORE!r}; no cell may raise or be skipped"
    if is_checked(cell.source):
        if IGNORE in tags:
            yield f"{CHECK} and the tag {IGNORE} contradict each other"
        if update := UPDATES.search(cell.source):
            yield (
                f"{update[1]}: nbval compares outputs as they are sent, and knows no output that "
                "is cleared or updated"
            )


def like_tags(tags: list[str]) -> set[str]:
    """Return the tags for nbval, or that look so, without the one that is the book's own."""
    return {tag for tag in tags if LIKE_TAG.search(tag) and tag != IGNORE}


def unrun(cells: list[Any]) -> Iterator[tuple[int, str]]:
    """Yield (number, fault) of the checked cells of a notebook that never ran.

    nbval compares nothing there.
    """
    for number, cell in enumerate(cells, start=1):
        if cell.cell_type == "code" and is_checked(cell.source) and not cell.execution_count:
            yield number, f"{CHECK}, but the cell never ran, so nbval compares nothing"
