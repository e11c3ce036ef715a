"""The frame in which every suite measures: what is left to do, a budget, a store, and a report.

A suite is a list of jobs. A job takes what belongs into one run, such as all rungs at one product,
and gives a record for each case. What a job made is stored before the next begins, so that a run
that was interrupted, or had no time left, goes on where it stopped.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import fingerprint, records
from tiled_matmul.measure.fingerprint import BY_HOST
from tiled_matmul.measure.records import Entry
from tiled_matmul.measure.spent import COMPILER, forget, shares, spending

OWN = ("rung", "rungs", "code")
SAME = ("gpu", "driver", "versions")  # of the provenance of records that belong together
Taken = tuple[Mapping[str, Any], Mapping[str, Any]]  # a case and its values


@dataclass(frozen=True)
class Job:
    """One measurement. `take` yields (case, values); `kernels` names the code that it runs.

    Where a case has a key of OWN, its record is of that code alone.
    """

    name: str
    kernels: tuple[str, ...]
    take: Callable[[], Iterable[Taken]]

    @property
    def asked(self) -> str:
        """A digest of `kernels`, by which a record knows what its job was to run."""
        return fingerprint.digest(sorted(self.kernels))


@dataclass(frozen=True)
class Suite:
    """What `python -m tiled_matmul measure NAME` measures.

    `machine` is "gpu", "gpus" or "cpu"; `jobs` makes the list of jobs on such a machine; `prepare`
    compiles what jobs need, in several processes; `file` is the path below `results/`, in which
    {machine} stands for its short name, and `kind` what files call the suite if several share a
    form. `more` adds to the provenance of a run.
    """

    name: str
    help: str
    jobs: Callable[[], Sequence[Job]]
    file: str
    machine: str = "gpu"
    kind: str = ""
    prepare: Callable[[Sequence[Job]], None] | None = None
    more: Callable[[], Mapping[str, Any]] = dict

    @property
    def stored_as(self) -> str:
        """The suite that files name."""
        return self.kind or self.name

    def versions(self) -> dict[str, str]:
        """Return the versions of what the rungs of the jobs are written in, by package."""
        from tiled_matmul.ladder import rung_or_twin

        names = {name.removesuffix(BY_HOST) for job in self.jobs() for name in job.kernels}
        found: dict[str, str] = {}
        for name in sorted(each for each in names if "::" not in each):
            found |= rung_or_twin(name).language.versions()
        return found

    def fits(self) -> bool:
        """Is this machine one that the suite is for?"""
        from tiled_matmul.kit import backend

        if self.machine == "cpu":
            return True
        if not backend.select().on_gpu:
            return False
        import torch

        return self.machine == "gpu" or torch.cuda.device_count() > 1

    def path(self, machine: str, root: Path = ROOT, **more: Any) -> Path:
        """Return where the records of a machine lie, by its short name, such as "h200".

        `more` is what the suite adds to the provenance, as `file` may name it.
        """
        return root / "results" / self.file.format(machine=machine, **more)


def measure(
    suite: Suite,
    run: Mapping[str, Any],
    out: Path,
    *,
    seconds: float,
    resume: bool = False,
    only: str = "",
    say: Callable[[str], None] = print,
) -> int:
    """Measure a suite's jobs into the file `out`, and return how many are left, or failed.

    A job that fails is told by `say`, and the others are measured. `run` is the provenance. After
    `seconds` no job is begun. With `resume`, jobs are left out whose records are of this GPU,
    driver, versions and code. `only` is a job's name, or a text in the names of jobs. Raises
    ValueError for a file of another kind, before anything is measured, and for a text in no name.
    """
    began = time.monotonic()
    forget()
    records.check_file(out, suite.stored_as)
    known = records.load(out, suite.stored_as) if out.exists() else []
    jobs = [job for job in suite.jobs() if only in job.name]
    jobs = [job for job in jobs if job.name == only] or jobs
    if not jobs:
        names = ", ".join(job.name for job in suite.jobs())
        raise ValueError(f"no job of {suite.name} has {only!r} in its name; there are {names}")
    waiting = [job for job in jobs if not (resume and is_done(job, known, run))]
    if len(waiting) < len(jobs):
        say(f"{len(jobs) - len(waiting)} of {len(jobs)} jobs are done")
    with spending(COMPILER):
        if suite.prepare is not None and waiting:
            suite.prepare(waiting)
    left = len(waiting)
    for job in waiting:
        if time.monotonic() - began > seconds:
            break
        prints = {name: fingerprint.of(name) for name in job.kernels}
        try:
            taken = [
                Entry(job.name, case, values, _own(case, prints), run, job.asked)
                for case, values in job.take()
            ]
        except Exception as error:  # of any kind: the others can still be measured
            say(f"{job.name} failed: {type(error).__name__}: {error}")
            continue
        records.update(out, suite.stored_as, taken)
        left -= 1
        say(f"{job.name}: {summary(taken)}")
    spent = time.monotonic() - began
    say(f"{len(waiting) - left} of {len(waiting)} jobs in {out}, {spent:.0f} s: {shares(spent)}")
    if left:
        say(f"{left} jobs are left: --resume goes on with them")
    return left


def in_workers(work: Callable, arguments: Sequence[Any], most: int | None = None) -> None:
    """Call `work` with each argument, tuples spread, in several processes. Raises what they do."""
    workers = max(1, min(len(arguments), most or (os.cpu_count() or 2) - 1))
    spread = [each if isinstance(each, tuple) else (each,) for each in arguments]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.starmap(work, spread, chunksize=1)


def is_done(job: Job, known: Iterable[Entry], run: Mapping[str, Any]) -> bool:
    """Are there records of this job, all that it runs today, from this machine and code?"""
    own = [each for each in known if each.job == job.name and each.run["gpu"] == run["gpu"]]
    alike = all(each.run.get(key) == run[key] for each in own for key in SAME)
    alike = alike and all(each.asked == job.asked for each in own)
    return bool(own) and alike and not any(each.changed(fingerprint.of) for each in own)


def summary(taken: Sequence[Entry]) -> str:
    """Return a line on what a job made: ratios to the library where there are some."""
    texts = []
    for each in taken:
        name = each.case.get("rung", "")
        ratio = each.values.get("ratio")
        if ratio is None and isinstance(each.values.get("ms"), Mapping):
            (_, first), *others = each.values["ms"].items()
            texts += [f"{name or other} {first / ms:.3f}" for other, ms in others]
        elif ratio is not None:
            texts.append(f"{name} {ratio:.3f}")
    return ", ".join(texts) or f"{len(taken)} records"


def _own(case: Mapping[str, Any], prints: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprints of a record: of what its case names as OWN, or all of its job's."""
    named = [case[key] for key in OWN if key in case]
    if not named:
        return dict(prints)
    own = named[0] if isinstance(named[0], list) else named
    return {name: each for name, each in prints.items() if name.removesuffix(BY_HOST) in own}


def short_name(gpu: str) -> str:
    """Return a GPU's name as a file's name: "NVIDIA GeForce RTX 4090" gives "rtx-4090"."""
    words = re.findall(r"[a-z0-9]+", gpu.lower())
    return "-".join(word for word in words if word not in ("nvidia", "geforce", "tesla"))
