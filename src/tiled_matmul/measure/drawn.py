"""Products of drawn shapes: what rungs reach where nobody chose the shape.

`measure drawn` and `measure drawn-float32` take them on a GPU into `results/shapes/`. The sizes are
log-uniform from SMALLEST to LARGEST. Every second product has sizes that are multiples of
EIGHT, so that descriptors fit its rows; the others have any sizes. Products of 16-bit floats have
any layout. Those of float32 are row-major, as Numba's rungs need them, and have at least
LEAST_FLOPS: smaller ones take no longer than their launch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import records
from tiled_matmul.measure.records import Entry, rounded
from tiled_matmul.measure.spent import COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite, in_workers
from tiled_matmul.problem import LAYOUTS

SHAPES = ROOT / "results" / "shapes"
SMALLEST, LARGEST, EIGHT = 16, 16384, 8
LEAST_FLOPS, MOST_FLOPS = 2 * 256**3, 4e12
DTYPES, FLOAT32 = ("float16", "bfloat16"), "float32"
BASELINE = "torch"
SUITE = "drawn"


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

    `spreads` are interquartile ranges over medians. `after_ms` are the times after another kernel,
    see `clock.time_replays`; empty where they were not taken.
    """

    product: Drawn
    ms: Mapping[str, float]
    spreads: Mapping[str, float]
    after_ms: Mapping[str, float] = field(default_factory=dict)

    def ratio(self, rung: str, after: bool = False) -> float:
        """Return the rate of a rung over the baseline's, in a row or after another kernel.

        Raises ValueError if it was not timed so.
        """
        ms = self.after_ms if after else self.ms
        if not {rung, BASELINE} <= set(ms):
            raise ValueError(f"{self.product} has no time of {rung} in {dict(ms)}")
        return ms[BASELINE] / ms[rung]


def summary(ratios: Iterable[float]) -> dict[str, float]:
    """Return the geometric mean, the 5th percentile and the lowest of ratios, and their number.

    The 5th percentile is the largest ratio that at least 95% reach. Raises ValueError for none.
    """
    found = sorted(ratios)
    if not found:
        raise ValueError("there is no ratio to summarise")
    mean = math.exp(sum(map(math.log, found)) / len(found))
    return {"mean": mean, "p5": found[len(found) // 20], "lowest": found[0], "count": len(found)}


def table(taken: Sequence[Taken], after: bool = False) -> list[dict[str, Any]]:
    """Return rows with the summary of each rung, for multiples of EIGHT and for other sizes.

    With `after`, of the times after another kernel.
    """
    rows = []
    for rung in dict.fromkeys(name for each in taken for name in each.ms if name != BASELINE):
        for sizes, even in ((f"multiples of {EIGHT}", True), ("any", False)):
            own = [t.ratio(rung, after) for t in taken if t.product.even == even and rung in t.ms]
            if own:
                rows.append({"rung": rung, "sizes": sizes} | summary(own))
    return rows


def case_of(seed: int, product: Drawn) -> dict[str, Any]:
    """Return the case of a record."""
    return {"seed": seed, **asdict(product)}


def load(path: Path) -> tuple[int, dict[str, Any], list[Taken]]:
    """Return (seed, provenance of the last run, products) of a file.

    Raises ValueError that names the file.
    """
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> tuple[int, dict[str, Any], list[Taken]]:
    """Return what `load` does, of a file's entries. Raises ValueError for a wrong value."""
    if not entries:
        raise ValueError("there is no product")
    names = [field.name for field in fields(Drawn)]
    seeds = {each.case["seed"] for each in entries}
    if len(seeds) > 1:
        raise ValueError(f"products of several seeds: {sorted(seeds)}")
    seed = seeds.pop()
    taken = [
        Taken(
            Drawn(**{name: each.case[name] for name in names}),
            each.values["ms"],
            each.values["spreads"],
            each.values.get("after_ms", {}),
        )
        for each in entries
    ]
    taken.sort(key=lambda each: each.product.index)
    float32 = any(t.product.dtype == FLOAT32 for t in taken)
    for product in drawn(seed, taken[-1].product.index + 1, float32):
        for each in taken:
            if each.product.index == product.index and each.product != product:
                raise ValueError(f"number {product.index} of seed {seed} is {product}")
    for each in taken:
        if BASELINE not in each.ms or not all(time > 0 for time in each.ms.values()):
            raise ValueError(f"{each.product} has no times: {dict(each.ms)}")
    return seed, dict(max((each.run for each in entries), key=lambda run: run["date"])), taken


# --- the suites -----------------------------------------------------------------------------------

RULED, TUNED = "triton_best", "triton_best, tuned"
RUNGS, RUNGS_FLOAT32 = (RULED,), ("cuda_best", "cuda_split_k")
TIMED = "dispatch.tuned::choice"  # the code by which a clock decides
COUNT, COUNT_FLOAT32 = 200, 60
SEED, SEED_FLOAT32 = 6, 2  # no costs were fitted to these products
WORKERS, ROUNDS = 15, 11
ROWS = 64  # of C that are checked, from the first to the last


def operands(product: Drawn) -> tuple[Any, Any]:
    """Return a (M, K) and b (K, N) on the GPU, normal numbers that belong to the product."""
    import torch

    from tiled_matmul.problem import as_layout

    numbers = torch.Generator("cuda").manual_seed(product.index)
    options = {"device": "cuda", "dtype": getattr(torch, product.dtype), "generator": numbers}
    a = torch.randn((product.m, product.k), **options)
    return as_layout(a, torch.randn((product.k, product.n), **options), product.layout)


def compile_for(product: Drawn) -> None:
    """Launch everything once that may be tried for a product, so that the disk has its code."""
    import torch

    from tiled_matmul.dispatch.rule import contenders, kind_of
    from tiled_matmul.ladder import triton_best

    a, b = operands(product)
    out = torch.empty((product.m, product.n), dtype=a.dtype, device="cuda")
    for choice in contenders(*kind_of(a, b, out)):
        triton_best.run(choice, a, b, out)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def tuned(a: Any, b: Any, out: Any) -> Callable:
    """Return the launcher of what a clock decides for."""
    from tiled_matmul.dispatch.tuned import forget, tuning
    from tiled_matmul.ladder import triton_best

    with tuning():
        choice = triton_best.choice_for(a, b, out)
    forget()
    return partial(triton_best.run, choice)


def calls_of(product: Drawn, rungs: Sequence[str]) -> dict[str, Callable[[], Any]]:
    """Return a call for torch and for each rung, checked. Raises MatmulError for a wrong C."""
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import rung

    a, b = operands(product)
    out = torch.empty((product.m, product.n), dtype=a.dtype, device="cuda")
    matmuls = {BASELINE: torch.matmul}
    rows = torch.linspace(0, product.m - 1, min(product.m, ROWS), device="cuda").long()
    for name in rungs:
        matmuls[name] = tuned(a, b, out) if name == TUNED else rung(name).matmul
        poison(out)
        matmuls[name](a, b, out=out)
        assert_matmul(out[rows], a[rows], b)
    return {name: partial(_into, matmul, out, a, b) for name, matmul in matmuls.items()}


def _into(matmul: Callable, out: Any, a: Any, b: Any) -> None:
    matmul(a, b, out=out)


def _take(seed: int, product: Drawn, rungs: Sequence[str]) -> Iterator[tuple[dict, dict]]:
    from tiled_matmul.measure.clock import another_kernel, time_replays

    with spending(COMPILER):
        calls = calls_of(product, rungs)
    timings = time_replays(calls, BASELINE, rounds=ROUNDS)
    after = time_replays(calls, BASELINE, rounds=ROUNDS, after=another_kernel())
    values = {
        "ms": {name: timing.median_ms for name, timing in timings.items()},
        "spreads": {name: timing.spread for name, timing in timings.items()},
        "after_ms": {name: timing.median_ms for name, timing in after.items()},
    }
    yield case_of(seed, product), {name: rounded(each) for name, each in values.items()}


def jobs(float32: bool = False) -> list[Job]:
    """Return a job for each product of SEED, or of SEED_FLOAT32."""
    rungs = RUNGS_FLOAT32 if float32 else (*RUNGS, TUNED)
    ran = RUNGS_FLOAT32 if float32 else (*RUNGS, TIMED)
    seed, count = (SEED_FLOAT32, COUNT_FLOAT32) if float32 else (SEED, COUNT)
    return [
        Job(f"{product.index}: {product}", ran, partial(_take, seed, product, rungs))
        for product in drawn(seed, count, float32)
    ]


def _prepare(jobs: Sequence[Job]) -> None:
    in_workers(compile_for, [job.take.args[1] for job in jobs], WORKERS)


SUITES = (
    Suite("drawn", "the best rungs in Triton at 200 drawn shapes", jobs, "shapes/{machine}.json",
          prepare=_prepare),
    Suite("drawn-float32", "the best rungs in Numba at 60 drawn shapes", partial(jobs, True),
          "shapes/{machine}-float32.json", kind=SUITE),
)  # fmt: skip
