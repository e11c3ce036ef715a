"""Layers with a fused epilogue against torch's: which are measured, and what a file of them holds.

`tools/bench_fused.py` takes them on a GPU into `results/fused/*.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as
from tiled_matmul.models.epilogue import Layer

FUSED = ROOT / "results" / "fused"
OURS, TORCH = "triton_fused", "torch"
STEPS = ("bias", "activation", "residual")  # of a layer, in their order
SHAPES = {
    "square": tuple((n, n, n) for n in (1024, 2048, 4096, 8192)),
    "layer": (
        (8192, 8192, 2048),
        (8192, 2048, 8192),
        (4096, 14336, 4096),
        (64, 4096, 11008),
        (64, 11008, 4096),
        (1, 4096, 4096),
        (300, 5000, 3000),
    ),
    "short K": tuple((16384, 4096, k) for k in (64, 128, 256)),
}
# Steps that are measured everywhere, by what they are called: an activation's name or None, and
# whether there is a residual. The bias is always there.
MEASURED = {"bias": (None, False), "GELU": ("gelu", False), "GELU + residual": ("gelu", True)}
MORE = {"residual": (None, True), "SiLU": ("silu", False), "tanh GELU": ("gelu_tanh", False)}
AT_MORE = ((8192, 8192, 2048), (64, 4096, 11008), (16384, 4096, 64))


@dataclass(frozen=True)
class Case:
    """A layer that is measured: sizes, dtype, "n" or "t" for a weight (K, N) or (N, K), steps."""

    m: int
    n: int
    k: int
    steps: str
    dtype: str = "float16"
    weight: str = "t"

    @property
    def activation(self) -> str | None:
        """The activation's name."""
        return (MEASURED | MORE)[self.steps][0]

    @property
    def residual(self) -> bool:
        """Is a residual added?"""
        return (MEASURED | MORE)[self.steps][1]

    @property
    def layer(self) -> Layer:
        """What the model knows of it."""
        return Layer(self.m, self.n, self.k, self.activation is not None, self.residual)

    def __str__(self) -> str:
        return f"{self.m}×{self.n}×{self.k} {self.dtype} {self.weight} {self.steps}"


def cases() -> Iterator[Case]:
    """Yield the layers that are measured."""
    for shapes in SHAPES.values():
        for shape in shapes:
            yield from (Case(*shape, steps) for steps in MEASURED)
    for shape in AT_MORE:
        yield from (Case(*shape, steps) for steps in MORE)
    for shape in ((4096, 4096, 4096), (300, 5000, 3000), (16384, 4096, 64)):
        yield from (Case(*shape, steps, "bfloat16", "n") for steps in MEASURED)


@dataclass(frozen=True)
class Taken:
    """One layer with the median milliseconds of each way to compute it, and their spreads."""

    case: Case
    ms: Mapping[str, float]
    spreads: Mapping[str, float]

    def ratio(self, baseline: str = TORCH) -> float:
        """Return how many times as fast as a baseline the fused kernel is."""
        return self.ms[baseline] / self.ms[OURS]


def as_text(provenance: Mapping[str, Any], taken: Sequence[Taken], more: Mapping[str, Any]) -> str:
    """Return the text of a file: a line for each layer, and `more` by its names."""
    rows = [
        asdict(each.case) | {"ms": _rounded(each.ms), "spreads": _rounded(each.spreads)}
        for each in taken
    ]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    head = json.dumps({"provenance": dict(provenance)} | dict(more), indent=1)[:-2]
    return head + ',\n "layers": [\n  ' + lines + "\n ]\n}\n"


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def load(path: Path = FUSED / "h200.json") -> tuple[dict[str, Any], list[Taken]]:
    """Return (everything else, the layers) of a file. Raises ValueError that names the file."""
    return load_as(path, parse, "fused layers")


def parse(stored: Any) -> tuple[dict[str, Any], list[Taken]]:
    """Return (everything else, the layers) of JSON. Raises ValueError for a wrong value."""
    names = [field.name for field in fields(Case)]
    taken = [
        Taken(Case(**{name: row[name] for name in names}), row["ms"], row["spreads"])
        for row in stored["layers"]
    ]
    for each in taken:
        if each.case.steps not in MEASURED | MORE:
            raise ValueError(f"unknown steps {each.case.steps!r}")
        if not {OURS, TORCH} <= set(each.ms) or not all(ms > 0 for ms in each.ms.values()):
            raise ValueError(f"{each.case} has no times: {dict(each.ms)}")
    return {name: value for name, value in stored.items() if name != "layers"}, taken
