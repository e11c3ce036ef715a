"""The reports of a class, and the formats that they are written in.

A class may be large: no more than one report is in memory at a time.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tiled_matmul.files import replaced
from tiled_matmul.grader import cells
from tiled_matmul.grader.journal import Journal

COLUMNS = ("path", "exercise", "status", "points", "max_points", "hint", "message")
FORMULA = "=+-@\u2212"  # the last one is a minus sign
SEPARATOR = re.compile(r"([;|\n])")  # where a spreadsheet may begin a field; a comma is quoted
UNSEEN = ("C", "M", "Z")  # categories of characters: control, combining, blank
BLANKS = f'"{cells.EMPTY}'  # look empty as well; a quote may be read away


class Reports(Sequence):
    """Reports in their order. Those that a journal keeps are read from it when they are asked for.

    `found` holds a report, or its key in the journal.
    """

    def __init__(self, found: Sequence[dict | str], journal: Journal) -> None:
        self.found, self.journal = found, journal

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Reports(self.found[index], self.journal)
        found = self.found[index]
        return self.journal.kept[found] if isinstance(found, str) else found


def _indented(text: str) -> str:
    # Not textwrap.indent, which also takes U+2028 and its like, inside a string, for ends of lines.
    return "  " + text.replace("\n", "\n  ")


def as_json(reports: Iterable[dict]) -> Iterator[str]:
    """Yield the text of the JSON report, which holds all that the other formats show."""
    before = '{\n "submissions": [\n'
    for report in reports:
        text = json.dumps(report, indent=1, ensure_ascii=False)
        yield before + _indented(text)
        before = ",\n"
    yield "\n ]\n}\n"


def _rows(reports: Iterable[dict]) -> Iterator[dict]:
    for report in reports:
        if "error" in report:
            status = "INFRA" if report.get("infra") else report.get("status", "")
            yield {"path": report["path"], "status": status, "message": report["error"]}
        for one in report["exercises"]:
            message = one["evidence"].get("message", "")
            yield {"path": report["path"], "message": message} | {
                name: one[name] for name in COLUMNS if name in one
            }


def _clean(text: Any) -> str:
    return cells.printable(str(text), lines=True)


def as_csv(reports: Iterable[dict]) -> Iterator[str]:
    """Yield a line for each exercise. Text that a spreadsheet would run as a formula is quoted."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in _rows(reports):
        writer.writerow({name: _harmless(value) for name, value in row.items()})
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _harmless(value: Any) -> Any:
    """Return text with an apostrophe before what could be a formula, whatever separates fields."""
    if not isinstance(value, str):
        return value
    parts = SEPARATOR.split(" / ".join(_clean(value).replace("\t", " ").splitlines()))
    return "".join(f"'{part}" if _is_formula(part) else part for part in parts)


def _is_formula(text: str) -> bool:
    """Does the first character that one sees begin a formula, or look like one that does?"""
    for char in text:
        if unicodedata.category(char)[0] not in UNSEEN and char not in BLANKS:
            return unicodedata.normalize("NFKC", char)[0] in FORMULA
    return False


def as_junit(reports: Iterable[dict]) -> Iterator[str]:
    """Yield JUnit XML: a suite for each submission, a case for each exercise."""
    yield "<?xml version='1.0' encoding='utf-8'?>\n<testsuites>\n"
    for report in reports:
        rows = list(_rows([report]))
        name = _clean(report["path"])
        suite = ElementTree.Element("testsuite", name=name, tests=str(len(rows)))
        failures = errors = 0
        for row in rows:
            exercise = _clean(row.get("exercise", "the notebook"))
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=exercise)
            if row["status"] == "PASS":
                continue
            infra = row["status"] in ("", "INFRA")
            errors, failures = errors + infra, failures + (not infra)
            failure = ElementTree.SubElement(case, "error" if infra else "failure")
            failure.set("type", row["status"] or "UNREADABLE")
            failure.set("message", _clean(row["message"]))
        suite.set("failures", str(failures))
        suite.set("errors", str(errors))
        ElementTree.indent(suite)
        yield _indented(ElementTree.tostring(suite, encoding="unicode")) + "\n"
    yield "</testsuites>\n"


def as_html(reports: Iterable[dict]) -> Iterator[str]:
    """Yield an HTML page with a table. Text from a submission is escaped, never markup."""
    heads = "".join(f"<th>{name}</th>" for name in COLUMNS)
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Grades</title>\n'
        "<style>body{font-family:sans-serif}td,th{padding:.2em .6em;text-align:left;"
        "vertical-align:top;border-bottom:1px solid #ccc}</style></head>\n"
        f"<body><h1>Grades</h1><table><thead><tr>{heads}</tr></thead>\n<tbody>"
    )
    for row in _rows(reports):
        texts = [html.escape(_clean(row.get(name, ""))) for name in COLUMNS]
        yield "<tr>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>\n"
    yield "</tbody></table></body></html>\n"


Format = Callable[[Iterable[dict]], Iterator[str]]
FORMATS: dict[str, Format] = {
    "json": as_json,
    "csv": as_csv,
    "junit": as_junit,
    "html": as_html,
}


def write(reports: Iterable[dict], files: dict[str, Path]) -> None:
    """Write a file for each format in `files`."""
    for name, path in files.items():
        with replaced(path) as file:
            file.writelines(FORMATS[name](reports))
