"""Files of measured numbers: one form for all suites, checked when it is read, replaced as a whole.

A file holds what one suite measured on one kind of machine. `runs` says where and when, once for
all records of a run. A record has the job that made it, its case, its values, and `kernels`, the
fingerprints (`fingerprint.py`) of the code that ran. `results/schema.json` describes the form.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tiled_matmul.files import read_json, replace_text

FORMAT = 1
KEYS = ("format", "suite", "runs", "records")
RUN = {"gpu": str, "driver": str, "versions": dict, "date": str, "commit": str}
RECORD = {
    "run": int, "job": str, "asked": str, "kernels": dict, "case": dict, "values": dict
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """What was measured of one case.

    `job` is the measurement that it is a part of, `kernels` maps the names of what ran to
    fingerprints, `run` is the provenance: gpu, driver, versions, date, commit, and more. `asked` is
    a digest of all names that the job was to run, of which some may have refused; "" if no suite
    measured it.
    """

    job: str
    case: Mapping[str, Any]
    values: Mapping[str, Any]
    kernels: Mapping[str, str]
    run: Mapping[str, Any] = field(repr=False)
    asked: str = ""

    @property
    def place(self) -> str:
        """The text that two measurements of one thing on one kind of machine share."""
        return _text([dict(self.case), self.run["gpu"]])

    def changed(self, now: Callable[[str], str]) -> list[str]:
        """Return the names in `kernels` whose code is another than when this was measured.

        `now` returns the fingerprint of a name, and raises ValueError for one that is gone.
        """
        return [name for name, known in self.kernels.items() if _or_none(now, name) != known]


def load(path: str | os.PathLike, suite: str) -> list[Entry]:
    """Return the entries of a suite's file. Raises ValueError naming the file and what is wrong."""
    return entries_of(path, read(path), suite)


def read(path: str | os.PathLike) -> Any:
    """Return a file's content. Raises ValueError if it is not JSON, or has a key twice."""
    return read_json(path, object_pairs_hook=_without_duplicates)


def entries_of(path: str | os.PathLike, stored: Any, suite: str) -> list[Entry]:
    """Return the entries of a suite's file with this content. Raises as `load` does."""
    try:
        return parse(stored, suite)
    except ValueError as error:
        raise ValueError(f"{path}{error}") from error


def load_as(path: str | os.PathLike, suite: str, parse: Callable[[list[Entry]], Any]) -> Any:
    """Return `parse(the entries of a suite's file)`.

    Raises ValueError, which names the file, if it cannot be read, or if `parse` finds a value
    missing, of another type or wrong.
    """
    entries = load(path, suite)
    try:
        return parse(entries)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise ValueError(f"{path} is not a file of the suite {suite!r}: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse(stored: Any, suite: str) -> list[Entry]:
    """Return the entries of a file's content. Raises ValueError, to be put behind its name."""
    if not isinstance(stored, dict):
        raise ValueError(f" must hold an object with {', '.join(KEYS)}; it holds {_kind(stored)}")
    _keys(stored, KEYS, "")
    if stored["format"] != FORMAT:
        raise ValueError(f" has format {stored['format']!r}; this version reads format {FORMAT}")
    if stored["suite"] != suite:
        raise ValueError(f" is of the suite {stored['suite']!r} and not {suite!r}")
    for key in ("runs", "records"):
        if not isinstance(stored[key], list):
            raise ValueError(f": {key} must be a list, it is {_kind(stored[key])}")
    for number, run in enumerate(stored["runs"]):
        _check(run, RUN, f", run {number}")
        if not _is_time(run["date"]):
            raise ValueError(
                f", run {number}: date must be an ISO 8601 time with its offset, "
                f"got {run['date']!r}"
            )
    entries: list[Entry] = []
    places: dict[str, int] = {}
    for number, row in enumerate(stored["records"], start=1):
        where = f", record {number}"
        _check(row, RECORD, where)
        _keys(row, RECORD, where)
        if not 0 <= row["run"] < len(stored["runs"]):
            raise ValueError(f"{where}: run {row['run']} is not among {len(stored['runs'])} runs")
        wrong = {x: y for x, y in row["kernels"].items() if not (isinstance(y, str) and y)}
        if wrong:
            raise ValueError(f"{where}: kernels must map names to fingerprints, got {wrong}")
        run = stored["runs"][row["run"]]
        parts = (row[key] for key in ("job", "case", "values", "kernels"))
        entry = Entry(*parts, run, row["asked"])
        first = places.setdefault(entry.place, number)
        if first != number:
            raise ValueError(f"{where}: measures the same as record {first}")
        entries.append(entry)
    return entries


def save(path: str | os.PathLike, suite: str, entries: Iterable[Entry]) -> None:
    """Write a suite's file, a line for each record. Raises OSError if that fails."""
    entries = list(entries)
    runs: list[dict] = []
    for entry in entries:
        if entry.run not in runs:
            runs.append(dict(entry.run))
    head = json.dumps({"format": FORMAT, "suite": suite, "runs": runs}, indent=1)
    lines = [
        _text(
            {
                "run": runs.index(entry.run),
                "job": entry.job,
                "asked": entry.asked,
                "kernels": dict(entry.kernels),
                "case": dict(entry.case),
                "values": dict(entry.values),
            }
        )
        for entry in entries
    ]
    text = ",\n".join(f"  {line}" for line in lines)
    body = f"\n{text}\n ]" if lines else "]"
    replace_text(path, f'{head[:-2]},\n "records": [{body}\n}}\n')


def update(path: str | os.PathLike, suite: str, new: Iterable[Entry]) -> list[Entry]:
    """Merge `new` into a suite's file, which need not exist, and return all its entries.

    What the file has of the same jobs on the same machine goes: it was measured anew.
    """
    new = list(new)
    anew = {(entry.job, entry.run["gpu"]) for entry in new}
    old = load(path, suite) if Path(path).exists() else []
    entries = merge((e for e in old if (e.job, e.run["gpu"]) not in anew), new)
    save(path, suite, entries)
    return entries


def merge(old: Iterable[Any], new: Iterable[Any]) -> list[Any]:
    """Return `old` updated with `new`, which replaces what has the same `place`."""
    places = {entry.place: entry for entry in old}
    places.update({entry.place: entry for entry in new})
    return list(places.values())


def check_file(path: str | os.PathLike, suite: str) -> None:
    """Raise ValueError if `update(path, …)` would fail: the file is invalid or not writable."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file of results")
    if path.exists():
        load(path, suite)
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error


def when(runs: Iterable[Mapping[str, Any]]) -> str:
    """Return when runs were, for a table: "2026-11-23 (d80819b)", or all days and commits.

    Raises ValueError for no run.
    """
    found = sorted({(run["date"], run["commit"]) for run in runs})
    if not found:
        raise ValueError("there is no run to date")
    days = sorted({date[:10] for date, _ in found})
    commits = list(dict.fromkeys(commit for _, commit in found))
    text = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{text} ({', '.join(commits)})"


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Return times or spreads to four digits, as records hold them."""
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def _check(row: Any, types: Mapping[str, type], where: str) -> None:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: must be an object, it is {_kind(row)}")
    for key, kind in types.items():
        if key not in row:
            raise ValueError(f"{where}: key {key!r} is missing")
        if type(row[key]) is not kind:
            raise ValueError(f"{where}: {key} must be {_NAMES[kind]}, got {row[key]!r}")


def _keys(row: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    known = list(keys)
    for key in known:
        if key not in row:
            raise ValueError(f"{where}: key {key!r} is missing")
    for key in row:
        if key not in known:
            raise ValueError(f"{where}: key {key!r} is not known; the keys are {', '.join(known)}")


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return seen


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _or_none(now: Callable[[str], str], name: str) -> str | None:
    try:
        return now(name)
    except ValueError:
        return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


_NAMES = {str: "a text", dict: "an object", int: "an integer"}


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(
        type(value), f"a {type(value).__name__}"
    )
