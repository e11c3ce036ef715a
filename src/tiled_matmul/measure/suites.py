"""The list of suites, in the order in which a machine takes them, and what is out of date."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import fingerprint, records
from tiled_matmul.measure.records import Entry
from tiled_matmul.measure.suite import Suite

# Modules of this room, each with its SUITES. What counters need of other suites stands before them.
MODULES = (
    *("rungs", "interpreter", "drawn", "host", "fused", "fp8", "groups"),
    *("counting", "patterns", "search", "sanitizer", "abroad", "distributed"),
)
OUTDATED = "results/outdated.txt"
CLUSTER = "cluster"  # its file is of grading, which runs no kernel


def suites() -> dict[str, Suite]:
    """Return all suites by name, in order."""
    homes = (import_module(f"tiled_matmul.measure.{name}") for name in MODULES)
    return {suite.name: suite for home in homes for suite in home.SUITES}


def suite(name: str) -> Suite:
    """Return the suite of that name. Raises ValueError, which lists them, for any other."""
    known = suites()
    if name not in known:
        raise ValueError(f"unknown suite {name!r}; there are {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class Stale:
    """Records of a job whose code is another now: `names` of it, and what helps."""

    path: Path
    job: str
    names: tuple[str, ...]
    count: int
    helps: str

    @property
    def line(self) -> str:
        """The file and the job, as OUTDATED lists them."""
        return f"{self.path.as_posix()}: {self.job}"

    def __str__(self) -> str:
        these = "record is" if self.count == 1 else "records are"
        return (
            f"{self.path}: {self.count} {these} of an earlier {', '.join(self.names)} "
            f"({self.job}); {self.helps}"
        )


def of_file(path: Path) -> list[Suite]:
    """Return the suites that write to a path below `results/`. Raises ValueError for none."""
    fitting = []
    for each in suites().values():
        before, _, after = re.sub(r"\{ranks\}", "2", each.file).partition("{machine}")
        text = re.sub(r"-x\d+\.json$", "-x2.json", path.as_posix())
        if text.startswith(before) and text.endswith(after):
            fitting.append(each)
    if not fitting:
        raise ValueError(f"no suite writes to {path}")
    longest = max(len(each.file) for each in fitting)
    return [each for each in fitting if len(each.file) == longest]


def files(root: Path = ROOT) -> Iterator[tuple[Path, str, list[Entry]]]:
    """Yield each file of results with the suite that it names and its entries.

    Raises ValueError for any other.
    """
    for path in sorted((root / "results").rglob("*.json")):
        if path.name == "schema.json" or path.parent.name == CLUSTER:
            continue
        stored = records.read(path)
        name = stored.get("suite") if isinstance(stored, dict) else None
        if not isinstance(name, str):
            raise ValueError(f"{path} names no suite: it is of another form; measure it anew")
        yield path, name, records.entries_of(path, stored, name)


def stale(root: Path = ROOT, now: Any = fingerprint.of) -> Iterator[Stale]:
    """Yield what is out of date in the files of results, a Stale for each job.

    `now` returns the fingerprint of a name in the tree. Raises ValueError for a file that is wrong.
    """
    for path, name, entries in files(root):
        by_job: dict[str, list[list[str]]] = {}
        for entry in entries:
            if changed := entry.changed(now):
                by_job.setdefault(entry.job, []).append(changed)
        for job, found in by_job.items():
            names = tuple(dict.fromkeys(each for names in found for each in names))
            shown = path.relative_to(root)
            yield Stale(shown, job, names, len(found), help_for(name, job))


def outdated(root: Path = ROOT) -> set[str]:
    """Return the lines of OUTDATED: jobs whose records wait for a GPU machine."""
    path = root / OUTDATED
    return set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()


def help_for(stored_as: str, job: str) -> str:
    """Return what to do about a job of a file's suite: the command that measures it anew."""
    for each in suites().values():
        if job in _jobs(each, stored_as):
            return f"measure it anew: python -m tiled_matmul measure {each.name} --only '{job}'"
    return "no suite has this job any more: take its records away"


def take_away(path: Path, stored_as: str) -> int:
    """Take the records of jobs that no suite has any more out of a file; return how many there are.

    Raises ValueError for a file of another kind.
    """
    entries = records.load(path, stored_as) if path.exists() else []
    jobs = frozenset[str]().union(*(_jobs(each, stored_as) for each in suites().values()))
    kept = [each for each in entries if each.job in jobs]
    if len(kept) < len(entries):
        records.save(path, stored_as, kept)
    return len(entries) - len(kept)


@cache
def _jobs(suite: Suite, stored_as: str) -> frozenset[str]:
    """Return the names of a suite's jobs, or nothing if a file names another suite."""
    return frozenset(j.name for j in suite.jobs()) if suite.stored_as == stored_as else frozenset()
