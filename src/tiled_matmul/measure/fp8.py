"""The records of products with 8-bit floats, which `tools/bench_fp8.py` takes on a GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as

FP8 = ROOT / "results" / "fp8"
OURS, TORCH = "triton_fp8", "torch"


@dataclass(frozen=True)
class Taken:
    """A product (M, N, K) with the milliseconds of both sides; `mode` names its scales."""

    shape: tuple[int, int, int]
    mode: str
    ms: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast as torch's kernel the course's is."""
        return self.ms[TORCH] / self.ms[OURS]

    def tflops(self, name: str = OURS) -> float:
        """Return the rate of one side."""
        return 2e-9 * math.prod(self.shape) / self.ms[name]


@dataclass(frozen=True)
class Lost:
    """The mean relative error of sums of `k` products, on a GPU and by the model.

    `equal` is the share of sums that the model predicts to the last bit; with `fast`, sums stay in
    the tensor cores.
    """

    k: int
    inputs: str
    fast: bool
    measured: float
    predicted: float
    equal: float


def load(path: Path = FP8 / "h200.json") -> tuple[list[Taken], list[Lost]]:
    """Return (times, errors of sums) of a file. Raises ValueError that names the file."""
    return load_as(path, parse, "products of 8-bit floats")


def parse(stored: Any) -> tuple[list[Taken], list[Lost]]:
    """Return (times, errors of sums) of JSON. Raises ValueError for a time that is none."""
    times = [Taken(tuple(row["shape"]), row["mode"], row["ms"]) for row in stored["times"]]
    for each in times:
        if not {OURS, TORCH} <= set(each.ms) or not all(ms > 0 for ms in each.ms.values()):
            raise ValueError(f"{each.shape}, {each.mode} has no times: {dict(each.ms)}")
    return times, [Lost(**row) for row in stored["model"]]


def mean_ratio(taken: Sequence[Taken]) -> float:
    """Return the geometric mean of the ratios to torch. Raises ValueError if there are none."""
    if not taken:
        raise ValueError("there is no product to take the mean of")
    return math.exp(sum(math.log(each.ratio) for each in taken) / len(taken))
