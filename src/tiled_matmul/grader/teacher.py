"""Teacher's mode: grade a folder of untrusted notebooks.

Each entry of the folder is a submission: a notebook, or a learner's folder with notebooks in it.
An entry that cannot be graded gets a line in the report. Answers only run in a sandbox.
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import os
import queue
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tiled_matmul.files import replace_text
from tiled_matmul.grader import cells, practice, reading
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.journal import Journal
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.pool import STOP

COLUMNS = ("path", "exercise", "status", "points", "max_points", "hint", "message")
FORMULA = "=+-@\u2212"  # the last one is a minus sign
SEPARATOR = re.compile(r"([;|\n])")  # where a spreadsheet may begin a field; a comma is quoted
UNSEEN = ("C", "M", "Z")  # categories of characters: control, combining, blank
BLANKS = f'"{cells.EMPTY}'  # look empty as well; a quote may be read away
# A name shows letters, digits, marks and a few signs. Others, and some letters and marks, look like
# the / behind another learner's folder, or like nothing.
SIGNS = " ._-+,;'()[]{}&#@!=~$%^/\u2013\u2014\u2019"
LIKE_SLASHES = "\u0337\u0338\u2cc6\u2cc7\u3033\u3035\u30ce\u4e3f\uff89"
# Unicode's default-ignorable letters and marks: nothing of them is seen.
IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
OVERLAY = 1  # the combining class of what is drawn over a letter
MAX_ENTRIES = 20_000
WAIT_S = 0.5
MAX_DEPTH = 20  # of folders in a submission: deeper ones are not searched


def submissions(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Yield (path, None) for each notebook, and (path, reason) for any other entry.

    Links are not followed: they may lead to another learner's files. Raises ValueError for a folder
    that is empty or not there.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    entries = sorted(folder.iterdir())
    if not entries:
        raise ValueError(f"{folder} is empty")
    for entry in entries:
        if entry.is_symlink():
            yield entry, sentence("submission: link")
        elif entry.is_dir():
            yield from _in_folder(entry)
        elif entry.suffix.lower() != ".ipynb":
            yield entry, sentence("submission: not a notebook")
        else:
            yield entry, None


def _in_folder(folder: Path) -> Iterator[tuple[Path, str | None]]:
    count, deep = 0, False
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name != ".ipynb_checkpoints")
        if inner and len(Path(place).relative_to(folder).parts) >= MAX_DEPTH:
            inner.clear()  # os.walk calls itself for each level
            deep = True
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() != ".ipynb":
                continue
            count += 1
            if count > MAX_ENTRIES:
                yield folder, sentence("submission: too many", most=MAX_ENTRIES)
                return
            # os.path's answer is False where Path's is an error, in a folder that may not be read.
            yield path, sentence("submission: link") if os.path.islink(path) else None
    if deep:
        yield folder, sentence("submission: too deep", most=MAX_DEPTH)
    elif not count:
        yield folder, sentence("submission: no notebook")


def shown(path: Path, folder: Path) -> str:
    """Return a submission's path below the folder, as printable text that no other one has.

    What could be taken for something else, several blanks among it, is "?"; such a name ends with
    a digest of its bytes.
    """
    raw = os.fsencode(path.relative_to(folder))
    name = raw.decode("utf-8", "backslashreplace")
    text = cells.printable("".join(one if _is_plain(one) else "?" for one in name))
    text = re.sub(r"(?<= ) |^ | $", "?", text)
    return text if text == name else f"{text} [{hashlib.sha256(raw).hexdigest()[:8]}]"


def _is_plain(character: str) -> bool:
    """May it stand in a name, where nothing may look like a folder that it is not in?"""
    if character in SIGNS:
        return True
    category = unicodedata.category(character)
    if category[0] not in "LNM" or category == "Me" or character in LIKE_SLASHES:
        return False
    return unicodedata.combining(character) != OVERLAY and not IGNORED.match(character)


def grade(
    folder: Path,
    *,
    jobs: int,
    seed: int | None = None,
    gpu: bool = False,
    journal: Journal | None = None,
    on_progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> list[dict]:
    """Return a report for each submission of a folder, in the order of their names.

    Finished reports are kept in `journal`, so that a later call can go on where this one ended. At
    an exception, Ctrl-C too, what is in flight is dropped.
    """
    STOP.clear()
    entries = list(submissions(folder))
    # A few submissions: several answers of each at a time.
    options = {"seed": seed, "gpu": gpu, "jobs": max(1, jobs // len(entries))}
    alike = practice.Alike()
    reports: list[dict | None] = [None] * len(entries)
    with ThreadPoolExecutor(jobs) as pool:
        waiting: dict[Future, int] = {}
        done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        try:
            for number, (path, why) in enumerate(entries):
                names = path, folder, shown(path, folder)
                task = pool.submit(_one, *names, why, journal, alike, options)
                waiting[task] = number
                task.add_done_callback(done.put)
            while waiting:
                try:
                    # Not for ever: Ctrl-C in the moment before a wait begins does not end it.
                    future = done.get(timeout=WAIT_S)
                except queue.Empty:
                    continue
                report = reports[waiting.pop(future)] = future.result()
                on_progress(len(entries) - len(waiting), len(entries), report["path"])
        except BaseException:
            STOP.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [report for report in reports if report is not None]


def _one(
    path: Path,
    folder: Path,
    name: str,
    why: str | None,
    journal: Journal | None,
    alike: practice.Alike,
    options: dict[str, Any],
) -> dict:
    """Return the report on a submission; the journal keeps it unless the grader failed."""
    report: dict[str, Any] = {"path": name, "exercises": []}
    if why is not None:
        return report | {"error": why}
    try:
        gpu = options["gpu"]
        with os.fdopen(os.memfd_create("submission"), "wb") as mine:  # gone with this process
            reading.copied(path, folder, mine)
            here = f"/proc/self/fd/{mine.fileno()}"
            key = _key(Path(here), name, options["seed"], gpu)
            if journal is not None and key in journal.kept:
                return journal.kept[key]
            graded = practice.grade(here, True, sanitize=gpu, alike=alike, **options)
            graded |= {"path": name}
    except reading.Unreadable as error:
        return report | {"error": str(error)}
    except Exception as error:  # the grader's own fault is never a learner's zero
        kind, reason = type(error).__name__, str(error)[:200]
        failure = sentence("infra: grader", kind=kind, reason=reason)
        return report | {"error": failure, "infra": True}
    infra = any(one["status"] == "INFRA" for one in graded["exercises"])
    if journal is not None and key is not None and not infra:
        journal.keep(key, graded)
    return graded


def _key(path: Path, name: str, seed: int | None, gpu: bool) -> str:
    """Return a digest that identifies a submission and the way it is graded."""
    digest = hashlib.sha256(f"{name}\0{_edition()}\0{seed}\0{gpu}\0".encode())
    digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _edition() -> str:
    return ",".join(f"{one.name}:{one.version}:{one.points}" for one in exercises())


# The formats: each is made from the JSON report.


def as_json(reports: Sequence[dict]) -> str:
    """Return the JSON report, from which the other formats are made."""
    return json.dumps({"submissions": list(reports)}, indent=1, ensure_ascii=False) + "\n"


def _rows(reports: Sequence[dict]) -> Iterator[dict]:
    for report in reports:
        if "error" in report:
            status = "INFRA" if report.get("infra") else ""
            yield {"path": report["path"], "status": status, "message": report["error"]}
        for one in report["exercises"]:
            message = one["evidence"].get("message", "")
            yield {"path": report["path"], "message": message} | {
                name: one[name] for name in COLUMNS if name in one
            }


def _clean(text: Any) -> str:
    return cells.printable(str(text), lines=True)


def as_csv(reports: Sequence[dict]) -> str:
    """Return a line for each exercise. Text that a spreadsheet would run as a formula is quoted."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in _rows(reports):
        writer.writerow({name: _harmless(value) for name, value in row.items()})
    return out.getvalue()


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


def as_junit(reports: Sequence[dict]) -> str:
    """Return JUnit XML: a suite for each submission, a case for each exercise."""
    suites = ElementTree.Element("testsuites")
    for report in reports:
        rows = list(_rows([report]))
        suite = ElementTree.SubElement(
            suites, "testsuite", name=_clean(report["path"]), tests=str(len(rows))
        )
        failures = errors = 0
        for row in rows:
            name = _clean(row.get("exercise", "the notebook"))
            case = ElementTree.SubElement(
                suite, "testcase", classname=_clean(report["path"]), name=name
            )
            if row["status"] == "PASS":
                continue
            infra = row["status"] in ("", "INFRA")
            errors, failures = errors + infra, failures + (not infra)
            failure = ElementTree.SubElement(case, "error" if infra else "failure")
            failure.set("type", row["status"] or "UNREADABLE")
            failure.set("message", _clean(row["message"]))
        suite.set("failures", str(failures))
        suite.set("errors", str(errors))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def as_html(reports: Sequence[dict]) -> str:
    """Return an HTML page with a table. Text from a submission is escaped, never markup."""
    rows = []
    for row in _rows(reports):
        texts = [html.escape(_clean(row.get(name, ""))) for name in COLUMNS]
        rows.append("<tr>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>")
    heads = "".join(f"<th>{name}</th>" for name in COLUMNS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Grades</title>\n'
        "<style>body{font-family:sans-serif}td,th{padding:.2em .6em;text-align:left;"
        "vertical-align:top;border-bottom:1px solid #ccc}</style></head>\n"
        f"<body><h1>Grades</h1><table><thead><tr>{heads}</tr></thead>\n<tbody>"
        + "\n".join(rows)
        + "</tbody></table></body></html>\n"
    )


FORMATS = {"json": as_json, "csv": as_csv, "junit": as_junit, "html": as_html}


def write(reports: Sequence[dict], files: dict[str, Path]) -> None:
    """Write a file for each format in `files`."""
    for name, path in files.items():
        replace_text(path, FORMATS[name](reports))
