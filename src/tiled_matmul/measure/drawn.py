"""Products of drawn shapes: what rungs reach where nobody chose the shape.

`tools/any_shape.py` measures them on a GPU, some at a time, into `results/shapes/*.json`. The sizes
are log-uniform from SMALLEST to LARGEST. Every second product has sizes that are multiples of
EIGHT, so that descriptors fit its rows; the others have any sizes. Products of 16-bit floats have
any layout. Those of float32 are row-major, as Numba's rungs need them, and have at least
LEAST_FLOPS: smaller ones take no longer than their launch.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.files import load_as
from tiled_matmul.problem import LAYOUTS

SHAPES = ROOT / "results" / "shapes"
SMALLEST, LARGEST, EIGHT = 16, 16384, 8
LEAST_FLOPS, MOST_FLOPS = 2 * 256**3, 4e12
DTYPES, FLOAT32 = ("float16", "bfloat16"), "float32"
BASELINE = "torch"


@dataclass(frozen=True)
class Drawn:
    """The product number `index` of a seed: M, N, K, a dtype and a layout as in BLAS."""

    index: int
    m: int
    n: int
    k: int
    dtype: str
    layout: str

    @property
    def even(self) -> bool:
        """Are all sizes multiples of EIGHT?"""
        return not any(size % EIGHT for size in (self.m, self.n, self.k))

    @property
    def flops(self) -> int:
        """Its multiplications and additions."""
        return 2 * self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m}×{self.n}×{self.k} {self.layout} {self.dtype}"


def drawn(seed: int, count: int, float32: bool = False) -> list[Drawn]:
    """Return the first `count` products of a seed: of 16-bit floats, or of float32."""
    draw, found = random.Random(seed), []
    low, high = math.log2(SMALLEST), math.log2(LARGEST)
    dtypes, layouts, least = ((FLOAT32,), ("nn",), LEAST_FLOPS) if float32 else (DTYPES, LAYOUTS, 0)
    while len(found) < count:
        grain = EIGHT if len(found) % 2 == 0 else 1
        m, n, k = (round(2 ** draw.uniform(low, high) / grain) * grain for _ in range(3))
        if least <= 2 * m * n * k <= MOST_FLOPS:
            found.append(Drawn(len(found), m, n, k, draw.choice(dtypes), draw.choice(layouts)))
    return found


@dataclass(frozen=True)
class Taken:
    """One product with the median times, in milliseconds, of the baseline and of rungs.

    `spreads` are interquartile ranges over medians.
    """

    product: Drawn
    ms: Mapping[str, float]
    spreads: Mapping[str, float]

    def ratio(self, rung: str) -> float:
        """Return the rate of a rung over the baseline's."""
        return self.ms[BASELINE] / self.ms[rung]


def summary(ratios: Iterable[float]) -> dict[str, float]:
    """Return the geometric mean, the 5th percentile and the lowest of ratios, and their number.

    The 5th percentile is the largest ratio that at least 95% reach. Raises ValueError for none.
    """
    found = sorted(ratios)
    if not found:
        raise ValueError("there is no ratio to summarise")
    mean = math.exp(sum(map(math.log, found)) / len(found))
    return {"mean": mean, "p5": found[len(found) // 20], "lowest": found[0], "count": len(found)}


def table(taken: Sequence[Taken]) -> list[dict[str, Any]]:
    """Return rows with the summary of each rung, for multiples of EIGHT and for other sizes."""
    rows = []
    for rung in dict.fromkeys(name for each in taken for name in each.ms if name != BASELINE):
        for sizes, even in ((f"multiples of {EIGHT}", True), ("any", False)):
            own = [t.ratio(rung) for t in taken if t.product.even == even and rung in t.ms]
            if own:
                rows.append({"rung": rung, "sizes": sizes} | summary(own))
    return rows


def as_text(seed: int, provenance: Mapping[str, Any], taken: Sequence[Taken]) -> str:
    """Return the text of a file: one line for each product."""
    rows = [
        asdict(t.product) | {"ms": _rounded(t.ms), "spreads": _rounded(t.spreads)}
        for t in sorted(taken, key=lambda t: t.product.index)
    ]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    head = json.dumps({"seed": seed, "provenance": dict(provenance)}, indent=1)[:-2]
    return head + ',\n "products": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def load(path: Path) -> tuple[int, dict[str, Any], list[Taken]]:
    """Return (seed, provenance, products) of a file. Raises ValueError that names the file."""
    return load_as(path, parse, "drawn shapes")


def parse(stored: Any) -> tuple[int, dict[str, Any], list[Taken]]:
    """Return (seed, provenance, products) of a file's JSON. Raises ValueError for a wrong value."""
    names = [field.name for field in fields(Drawn)]
    taken = [
        Taken(Drawn(**{name: row[name] for name in names}), row["ms"], row["spreads"])
        for row in stored["products"]
    ]
    seed, last = stored["seed"], max((t.product.index for t in taken), default=-1)
    float32 = any(t.product.dtype == FLOAT32 for t in taken)
    for product in drawn(seed, last + 1, float32):
        for each in taken:
            if each.product.index == product.index and each.product != product:
                raise ValueError(f"number {product.index} of seed {seed} is {product}")
    for each in taken:
        if BASELINE not in each.ms or not all(time > 0 for time in each.ms.values()):
            raise ValueError(f"{each.product} has no times: {dict(each.ms)}")
    return seed, dict(stored["provenance"]), taken
