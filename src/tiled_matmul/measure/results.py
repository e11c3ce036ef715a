"""The ladder's measured numbers with their provenance, in files of `records.py`.

Reading checks every value, so that an invalid number cannot get in. Writing is atomic.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import records as store
from tiled_matmul.measure.records import Entry
from tiled_matmul.problem import DTYPES, MAX_SIZE

RESULTS = ROOT / "results"
SUITE = "ladder"
SHOWN_AT = {"cpu": 512, "gpu": 4096}  # edges


@dataclass(frozen=True)
class Record:
    """One rung at one problem on one machine, timed in one run together with its baseline.

    A sample is the mean of `launches` consecutive calls; a single call on a GPU starts with none of
    its operands in the L2 cache. With `graph` the calls were replayed as a CUDA graph, else
    launched one by one. `time_ms` is the median, `spread` the interquartile range over the median,
    `tflops` 2·M·N·K over the median, `ratio` the baseline's median over this one: above 1 is faster
    than the baseline. `gpu` is the GPU's name, or for a CPU "CPU: model, T threads" with an empty
    `driver`. `versions` maps packages to versions, `date` is ISO 8601 with its offset, `commit` is
    the code's commit. `kernel` is the fingerprint of the rung's code; without one, only a baseline
    can be stored. Raises ValueError naming the first invalid value.
    """

    rung: str
    m: int
    n: int
    k: int
    dtype: str
    launches: int
    graph: bool
    time_ms: float
    spread: float
    tflops: float
    baseline: str
    ratio: float
    gpu: str
    driver: str
    versions: dict[str, str]
    date: str
    commit: str
    kernel: str = ""

    def __post_init__(self) -> None:
        for key in ("rung", "baseline", "gpu", "date", "commit"):
            _require(self, key, "a text that is not empty", _is_text(getattr(self, key)))
        _require(self, "driver", "a text", isinstance(self.driver, str))
        for key in ("m", "n", "k"):
            size = getattr(self, key)
            _require(self, key, "a positive integer", type(size) is int and 0 < size <= MAX_SIZE)
        calls = type(self.launches) is int and self.launches > 0
        _require(self, "launches", "a positive integer", calls)
        _require(self, "graph", "true or false", isinstance(self.graph, bool))
        _require(self, "dtype", f"one of {', '.join(DTYPES)}", self.dtype in DTYPES)
        for key in ("time_ms", "tflops", "ratio"):
            number = getattr(self, key)
            _require(self, key, "a positive, finite number", _is_number(number) and number > 0)
        valid = _is_number(self.spread) and self.spread >= 0
        _require(self, "spread", "a finite number of 0 or more", valid)
        named = isinstance(self.versions, dict) and all(
            _is_text(name) and _is_text(version) for name, version in self.versions.items()
        )
        _require(self, "versions", "an object of texts by package name", named)
        _require(self, "date", "an ISO 8601 time with its offset", _is_time(self.date))
        computed = 2 * self.m * self.n * self.k / self.time_ms / 1e9
        fits = math.isclose(self.tflops, computed, rel_tol=1e-6)
        _require(self, "tflops", f"2·M·N·K over time_ms, which is {computed:.9g}", fits)
        if self.rung == self.baseline:
            _require(self, "ratio", "1, this being the baseline itself", self.ratio == 1)

    @property
    def place(self) -> tuple:
        """The key that two measurements of the same thing share."""
        return (self.rung, self.m, self.n, self.k, self.dtype, self.gpu)

    @property
    def shape_text(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def job(self) -> str:
        """The name of the job of a suite that measures it."""
        return job_name(self.shape_text, self.dtype, self.gpu.startswith("CPU:"))

    @property
    def entry(self) -> Entry:
        """The record as a file of `records.py` holds it. Raises ValueError without `kernel`."""
        known = self.kernel == "" if self.rung == self.baseline else _is_text(self.kernel)
        _require(self, "kernel", 'a fingerprint, and "" for a baseline', known)
        parts = ({name: getattr(self, name) for name in names} for names in (CASE, VALUES, RUN))
        case, values, run = parts
        kernels = {self.rung: self.kernel} if self.kernel else {}
        return Entry(self.job, case, values, kernels, run)

    @classmethod
    def of(cls, entry: Entry) -> Record:
        """Return an entry's record. Raises ValueError for a value missing, unknown or wrong."""
        for names, found in ((CASE, entry.case), (VALUES, entry.values), (RUN, entry.run)):
            for key in names:
                if key not in found:
                    raise ValueError(f"key {key!r} is missing")
            for key in found:
                if key not in names:
                    raise ValueError(f"key {key!r} is not known; the keys are {', '.join(names)}")
        kernel = entry.kernels.get(entry.case["rung"], "")
        record = cls(**entry.case, **entry.values, **entry.run, kernel=kernel)
        record.entry  # noqa: B018  (raises without a fingerprint)
        return record


def job_name(shape: str, dtype: str, on_cpu: bool) -> str:
    """Return what a job is called that measures rungs at one product."""
    return f"{shape} {dtype}" + ", CPU" * on_cpu


CASE = ("rung", "m", "n", "k", "dtype")
VALUES = ("launches", "graph", "time_ms", "spread", "tflops", "baseline", "ratio")
RUN = ("gpu", "driver", "versions", "date", "commit")


def load(path: str | os.PathLike) -> list[Record]:
    """Read a results file. Raises ValueError naming the file, the record, the key and the value."""
    found = []
    for number, entry in enumerate(store.load(path, SUITE), start=1):
        try:
            found.append(Record.of(entry))
        except ValueError as error:
            raise ValueError(f"{path}, record {number}: {error}") from error
    return found


def save(path: str | os.PathLike, records: Iterable[Record]) -> None:
    """Write `records` to `path` atomically. Raises OSError if that fails."""
    store.save(path, SUITE, (record.entry for record in records))


def check_file(path: str | os.PathLike) -> None:
    """Raise ValueError if `update(path, …)` would fail: the file is invalid or not writable."""
    store.check_file(path, SUITE)
    if Path(path).exists():
        load(path)


def update(path: str | os.PathLike, new: Iterable[Record]) -> list[Record]:
    """Merge `new` into the file at `path`, which need not exist, and return all its records.

    A record's ratio comes from its own run, so no ratio is ever formed across runs.
    """
    records = store.merge(load(path) if Path(path).exists() else [], new)
    save(path, records)
    return records


def find(
    records: Sequence[Record],
    rung: str,
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    gpu: str | None = None,
) -> Record:
    """Return the record of `rung` at this problem; `gpu` selects one of several machines.

    Raises ValueError, listing the alternatives, if there is none or more than one.
    """
    wanted = (rung, m, n, k, dtype)
    fitting = [r for r in records if r.place[:5] == wanted and gpu in (None, r.gpu)]
    if len(fitting) == 1:
        return fitting[0]
    request = f"{rung} at {m}x{n}x{k} {dtype}" + (f" on {gpu}" if gpu else "")
    if fitting:
        machines = ", ".join(repr(record.gpu) for record in fitting)
        raise ValueError(f"{request} was measured on several machines: choose gpu= from {machines}")
    same = [r for r in records if r.rung == rung]
    if same:
        places = ", ".join(f"{r.shape_text} {r.dtype} on {r.gpu}" for r in same)
        raise ValueError(f"no record of {request}; {rung} was measured at {places}")
    names = ", ".join(sorted({r.rung for r in records})) or "nothing"
    raise ValueError(f"no record of {request}; measured: {names}")


def reference() -> list[Record]:
    """Return the reference GPU's records, which the book's prose quotes."""
    return load(RESULTS / "h200.json")


def host_us(path: Path = RESULTS / "host" / "h200.json") -> dict[str, float]:
    """Return the microseconds of the host for a call, by rung; the library is "torch.matmul".

    Without the file there are none. Raises ValueError if it holds anything else.
    """
    if not path.exists():
        return {}
    try:
        times = {each.case["rung"]: each.values["us"] for each in store.load(path, "host")}
    except KeyError as error:
        raise ValueError(f"{path} holds no times of the host: {error!r}") from error
    wrong = {name: us for name, us in times.items() if not (_is_number(us) and us > 0)}
    if wrong:
        raise ValueError(f"{path}: times must be positive numbers, got {wrong}")
    return times


def ladder_record(records: Iterable[Any], rung: Any) -> Any:
    """Return the record that pages show of a rung, or None without one.

    It is in the rung's own dtype, at the common square if that was measured, else at the largest
    shape.
    """
    own = [r for r in records if (r.rung, r.dtype) == (rung.name, rung.dtype)]
    common = (SHOWN_AT[rung.device],) * 3
    at_common = [record for record in own if (record.m, record.n, record.k) == common]
    return next(iter(at_common), None) or max(own, key=lambda r: r.m * r.n * r.k, default=None)


def _require(record: Record, key: str, expected: str, valid: bool) -> None:
    if not valid:
        raise ValueError(f"{key} must be {expected}, got {getattr(record, key)!r}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int larger than any float
        return False


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except (TypeError, ValueError):
        return False
