"""Measured numbers with their provenance: a results file is a JSON list of records.

Reading checks every key, so that an invalid number cannot get in. Writing is atomic.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import read_json, replace_text
from tiled_matmul.problem import DTYPES, MAX_SIZE

RESULTS = ROOT / "results"
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
    the code's commit. Raises ValueError naming the first invalid value.
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


KEYS = tuple(field.name for field in fields(Record))


def load(path: str | os.PathLike) -> list[Record]:
    """Read a results file. Raises ValueError naming the file, the record, the key and the value."""
    path = Path(path)
    entries = read_json(path, object_pairs_hook=_without_duplicates)
    if not isinstance(entries, list):
        raise ValueError(f"{path} must hold a list of records, it holds {_kind(entries)}")
    records: list[Record] = []
    places: dict[tuple, int] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            record = _record(entry)
        except ValueError as error:
            raise ValueError(f"{path}, record {number}: {error}") from error
        first = places.setdefault(record.place, number)
        if first != number:
            raise ValueError(f"{path}, record {number}: measures the same as record {first}")
        records.append(record)
    return records


def save(path: str | os.PathLike, records: Iterable[Record]) -> None:
    """Write `records` to `path` atomically. Raises OSError if that fails."""
    text = json.dumps(
        [asdict(record) for record in records], indent=1, ensure_ascii=False, allow_nan=False
    )
    replace_text(path, text + "\n")


def check_file(path: str | os.PathLike) -> None:
    """Raise ValueError if `update(path, …)` would fail: the file is invalid or not writable."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a results file")
    if path.exists():
        load(path)
    try:
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error


def update(path: str | os.PathLike, new: Iterable[Record]) -> list[Record]:
    """Merge `new` into the file at `path`, which need not exist, and return all its records."""
    records = merge(load(path) if Path(path).exists() else [], new)
    save(path, records)
    return records


def merge(old: Iterable[Record], new: Iterable[Record]) -> list[Record]:
    """Return `old` updated with `new`, which replaces records of the same `place`.

    A record's ratio comes from its own run, so no ratio is ever formed across runs.
    """
    places = {record.place: record for record in old}
    places.update({record.place: record for record in new})
    return list(places.values())


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
    """Return the microseconds of the host for a call, by rung, as `tools/host_time.py` wrote them.

    The library is "torch.matmul". Without the file there are none. Raises ValueError if it holds
    anything else.
    """
    if not path.exists():
        return {}
    try:
        times = {name: one["us"] for name, one in read_json(path)["host"].items()}
    except (AttributeError, KeyError, TypeError) as error:
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


def _record(entry: Any) -> Record:
    if not isinstance(entry, dict):
        raise ValueError(f"must be an object, it is {_kind(entry)}")
    for key in KEYS:
        if key not in entry:
            raise ValueError(f"key {key!r} is missing")
    for key in entry:
        if key not in KEYS:
            raise ValueError(f"key {key!r} is not known; the keys are {', '.join(KEYS)}")
    return Record(**entry)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict:
    seen = dict(pairs)
    if len(seen) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return seen


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


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(
        type(value), f"a {type(value).__name__}"
    )
