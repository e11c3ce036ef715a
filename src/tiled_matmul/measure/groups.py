"""The records of batches and of rows in groups, which `tools/bench_groups.py` takes on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as

GROUPS = ROOT / "results" / "groups"
OURS, TORCH = "rung", "torch"


@dataclass(frozen=True)
class Taken:
    """A case with the milliseconds of both sides.

    `rows` is None for a batch of equal products; otherwise that many rows lie in `count` groups of
    a `kind`, along the sum if `along`.
    """

    what: str
    count: int
    rows: int | None
    kind: str
    n: int
    k: int
    along: bool
    by_columns: bool
    flops: int
    ms: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast as torch's kernel the course's is."""
        return self.ms[TORCH] / self.ms[OURS]

    def tflops(self, name: str = OURS) -> float:
        """Return the rate of one side."""
        return 1e-9 * self.flops / self.ms[name]


def load(path: Path = GROUPS / "h200.json") -> tuple[list[Taken], dict[str, float]]:
    """Return (cases, the host's µs for a call by name). Raises ValueError that names the file."""
    return load_as(path, parse, "batches and groups")


def parse(stored: Any) -> tuple[list[Taken], dict[str, float]]:
    """Return (cases, the host's µs) of JSON. Raises ValueError for a time that is none."""
    taken = []
    for row in stored["cases"]:
        grouped = {"rows": row.get("rows"), "kind": row.get("kind", "")}
        grouped |= {"along": row.get("along", False), "by_columns": row["by_columns"]}
        both = {name: row[name] for name in ("what", "count", "n", "k", "flops", "ms")}
        taken.append(Taken(**both, **grouped))
        if not {OURS, TORCH} <= set(row["ms"]) or not all(ms > 0 for ms in row["ms"].values()):
            raise ValueError(f"{row['case']} has no times: {row['ms']}")
    return taken, dict(stored["host_us"])
