"""NVIDIA's Nsight Compute, `ncu`: run a module under it, and read the counters that it prints."""

from __future__ import annotations

import contextlib
import csv
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tiled_matmul.measure.provenance import of_counters
from tiled_matmul.measure.spent import CLOCK, spending

MARK = "end_of_rung"
LONGEST_S = 1200
STARTED_BY_US = ("--profile-from-start", "off")  # `ncu` looks where cudaProfilerStart was called


@dataclass(frozen=True)
class Wanted:
    """Nsight Compute's counters: those that there must be, and optional ones."""

    needed: tuple[str, ...]
    welcome: tuple[str, ...]


@dataclass(frozen=True)
class Counted:
    """What `ncu` counted: counters taken and unknown, rows of its table, and what was printed."""

    metrics: Sequence[str]
    unknown: Sequence[str]
    rows: Sequence[Mapping[str, str]]
    printed: str


class CountersError(RuntimeError):
    """The counters could not be taken; the message says what failed and shows what was printed."""


def known_metrics(ncu: str) -> set[str]:
    """Return the names, without a suffix such as `.sum`, that this `ncu` lists for its GPU."""
    names = set()
    for collection in ("profiling", "source", "launch"):
        command = [ncu, "--query-metrics", "--query-metrics-collection", collection]
        answer = subprocess.run(command, capture_output=True, text=True)
        listed = set(re.findall(r"^\s*([a-z]\w*__\w+)", answer.stdout, re.MULTILINE))
        if not listed:
            print(
                f"ncu lists no {collection} metrics: {answer.stdout[-300:]}{answer.stderr[-300:]}"
            )
        names |= listed
    return names


def choose(known: set[str], wanted: Wanted) -> tuple[list[str], list[str]]:
    """Return the counters to take, and those that this `ncu` does not know."""
    unknown = [name for name in wanted.welcome if name.split(".")[0] not in known]
    return [n for n in (*wanted.needed, *wanted.welcome) if n not in unknown], unknown


def refused(text: str, metrics: Sequence[str], wanted: Wanted) -> list[str]:
    """Return the counters that `ncu`'s errors name, other than those that are needed."""
    errors = "\n".join(line for line in text.splitlines() if line.startswith("==ERROR=="))
    named = set(re.findall(r"\w+__\w+", errors))
    return [n for n in metrics if n.split(".")[0] in named and n not in wanted.needed]


def count(
    module: str, arguments: Sequence[str], wanted: Wanted, options: Sequence[str] = STARTED_BY_US
) -> Counted:
    """Run `python -m module arguments` under `ncu`, with more `options` of `ncu`'s.

    Tried once more without the counters that ncu refuses, if none of them is needed. Raises
    CountersError with ncu's words if it fails, or is not there.
    """
    ncu = ncu_here()
    known = known_metrics(ncu)
    command = [sys.executable, "-m", module, *arguments]
    metrics, unknown = choose(known, wanted)
    with spending(CLOCK), tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        status, table, printed = profile(command, metrics, log, options)
        dropped = refused(table + printed, metrics, wanted)
        if status and dropped:
            print(f"once more, without {', '.join(dropped)}", flush=True)
            metrics = [metric for metric in metrics if metric not in dropped]
            unknown += dropped
            status, table, printed = profile(command, metrics, log, options)
    if status:
        raise CountersError(f"ncu ended with {status}:\n{printed[-1500:]}{table[-3000:]}")
    for name in unknown:
        print(f"left out, ncu does not know it: {name}")
    return Counted(metrics, unknown, read_rows(table), printed)


def profile(
    command: Sequence[str], metrics: Sequence[str], log: Path, options: Sequence[str]
) -> tuple[int, str, str]:
    """Run `command` under ncu and return (exit status, its table, what was printed)."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    ncu += ["--log-file", str(log), *options, "--metrics", ",".join(metrics), *command]
    log.unlink(missing_ok=True)
    ended = subprocess.run(
        ncu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST_S
    )
    table = log.read_text(encoding="utf-8") if log.exists() else ""
    print(ended.stdout, flush=True)
    return ended.returncode, table, ended.stdout


def read_rows(text: str) -> list[dict[str, str]]:
    """Return the launches, a row each, of what `ncu --csv --page raw` printed into its log.

    Raises CountersError where there is no table; the message shows the log's end.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith('"ID"')]
    if len(starts) != 1:
        raise CountersError(f"ncu printed {len(starts)} tables and not one:\n{text[-3000:]}")
    table = [line for line in lines[starts[0] :] if line.startswith('"')]
    return list(csv.DictReader(table))[1:]  # the first holds the units


def numbers_of(
    place: str, row: Mapping[str, str], metrics: Sequence[str], needed: Sequence[str]
) -> dict[str, float]:
    """Return a row's counters; those without a number are left out, with a line that says so.

    Raises CountersError, naming `place`, if one that is needed has none.
    """
    numbers = {}
    for metric in metrics:
        text = row.get(metric, "").replace(",", "")
        try:
            value = float(text)
        except ValueError:
            if metric in needed:
                raise CountersError(f"{place}: no number for {metric}: {text!r}") from None
            print(f"{place}: no number for {metric}: {text!r}")
            continue
        numbers[metric] = int(value) if value.is_integer() else value
    return numbers


def sizes_of(row: Mapping[str, str]) -> dict[str, list[int]]:
    """Return a row's grid and block, each as [x, y, z]."""
    columns = (("grid", "Grid Size"), ("block", "Block Size"))
    return {key: [int(size) for size in re.findall(r"\d+", row[name])] for key, name in columns}


def stored(place: str, row: Mapping[str, str], metrics: Sequence[str], wanted: Wanted) -> dict:
    """Return one kernel as FILE holds it. Raises CountersError if a needed counter is missing."""
    numbers = numbers_of(place, row, metrics, wanted.needed)
    return {"name": row["Kernel Name"], **sizes_of(row), "counters": numbers}


def ncu_here() -> str:
    """Return where `ncu` is. Raises CountersError if it is not installed."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersError("ncu (NVIDIA Nsight Compute) is not on PATH")
    return ncu


def provenance() -> dict:
    """Return what counters add to a run's provenance. Raises CountersError without `ncu`."""
    origin = of_counters(ncu_here())
    return {name: origin[name] for name in ("versions", "compute_capability")}


@contextlib.contextmanager
def looked_at() -> Iterator[None]:
    """Have `ncu` count what is launched in here."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    yield
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def mark() -> Callable[[], None]:
    """Return a function that launches an empty kernel, by which `split` tells launches apart."""
    import torch
    from numba import cuda

    from tiled_matmul.kit.launch import launch

    @cuda.jit
    def end_of_rung(x):
        pass

    launched = partial(launch, end_of_rung, (1,), (1,), torch.zeros(1, device="cuda"))
    launched()
    return launched


def split(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> Iterator[tuple[str, list]]:
    """Yield each name with the rows of its kernels. Raises CountersError if they do not fit."""
    parts: list[list] = [[]]
    for row in rows:
        if MARK in row["Kernel Name"]:
            parts.append([])
        else:
            parts[-1].append(row)
    if parts.pop() or len(parts) != len(names) or not all(parts):
        seen = "\n".join(row["Kernel Name"][:90] for row in rows)
        raise CountersError(f"{len(names)} functions were launched, ncu counted:\n{seen}")
    yield from zip(names, parts, strict=True)
