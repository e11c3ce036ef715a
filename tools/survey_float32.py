"""Time the settings of `dispatch.splits` at drawn shapes, and fit their costs to the times.

    python tools/survey_float32.py take --out FILE [--seed 2] [--count 240] [--seconds 80]
    python tools/survey_float32.py fit FILE

`take` needs a GPU: worker processes compile first. `fit` prints the two paces of each setting, with
the mean error, as a factor.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from any_shape import operands

WORKERS = 14
LEAST = 20  # times that a pace is fitted to
STEPS = (1.5, 1.15, 1.04)  # factors by which the fit changes a number
WASTE = 4  # a setting is not tried where its tile is so many times as long as C
PRODUCTS_A_US = 128 * 1600  # of a multiprocessor, to begin the fit with
# A time counts as much as it is near the least of its product: (less than so many times it, weight)
WEIGHTS = (1.25, 1.0), (1.6, 0.5), (math.inf, 0.12)
SPLITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)


def job_of(drawn: Any, multiprocessors: int) -> Any:
    """Return a drawn product as the rule sees it."""
    from tiled_matmul.dispatch.splits import Job

    return Job(drawn.m, drawn.n, drawn.k, multiprocessors, drawn.n % 4 == 0)


def name_of(costs: Any, splits: int) -> str:
    made = costs.setting
    return f"{made.tile_m}×{made.tile_n}×{made.tile_k} /{splits}"


def tried(job: Any) -> Iterator[tuple[Any, int]]:
    """Yield each setting, as its costs, and number of parts that are timed."""
    from tiled_matmul.dispatch.splits import COSTS

    for costs in COSTS:
        tile = costs.setting
        if tile.tile_m < WASTE * max(job.m, 4) and tile.tile_n < WASTE * max(job.n, 4):
            yield from ((costs, splits) for splits in costs.splits(job) if splits in SPLITS)


def compile_one(case: tuple[int, int]) -> None:
    """Compile one setting's kernel for columns of C, so that the disk has its code."""
    import torch

    from tiled_matmul.dispatch.splits import COSTS
    from tiled_matmul.ladder import cuda_split_k

    number, columns = case
    a, b = torch.ones(64, 64, device="cuda"), torch.ones(64, columns, device="cuda")
    cuda_split_k.matmul(a, b, setting=COSTS[number].setting)
    torch.cuda.synchronize()


def times_of(drawn: Any, multiprocessors: int) -> Any:
    """Return a product's Taken: torch, the rule, and each setting and number of parts."""
    import torch

    from tiled_matmul.dispatch.tuned import milliseconds
    from tiled_matmul.ladder import cuda_split_k
    from tiled_matmul.measure.drawn import BASELINE, Taken

    a, b = operands(drawn)
    out = torch.empty((drawn.m, drawn.n), dtype=a.dtype, device="cuda")
    calls = {BASELINE: torch.matmul, "cuda_split_k": cuda_split_k.matmul}
    for costs, splits in tried(job_of(drawn, multiprocessors)):
        options = {"setting": costs.setting, "splits": splits}
        calls[name_of(costs, splits)] = partial(cuda_split_k.matmul, **options)
    ms = {name: milliseconds(partial(call, a, b, out=out)) for name, call in calls.items()}
    return Taken(drawn, ms, {})


def take(out: Path, seed: int, count: int, seconds: float) -> None:
    """Time the products of a seed, as many as the seconds allow, into a file."""
    import torch

    from tiled_matmul.dispatch.splits import COSTS
    from tiled_matmul.files import replace_text
    from tiled_matmul.measure import drawn
    from tiled_matmul.measure.precision import exact_sums
    from tiled_matmul.measure.provenance import provenance

    began = time.monotonic()
    origin = provenance("gpu")
    many = torch.cuda.get_device_properties(0).multi_processor_count
    products, taken = drawn.drawn(seed, count, float32=True), []
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        cases = [(number, columns) for number in range(len(COSTS)) for columns in (64, 63)]
        pool.map(compile_one, cases, chunksize=1)
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    with exact_sums():
        for product in products:
            if time.monotonic() - began > seconds:
                break
            taken.append(times_of(product, many))
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(out, drawn.as_text(seed, origin, taken))
    print(f"{len(taken)} of {count} products in {time.monotonic() - began:.0f} s")


def fitted(costs: Any, rows: Sequence[tuple]) -> tuple[Any, float]:
    """Return the pace that fits best, and its error: the weighted mean of |log(model / time)|."""
    from tiled_matmul.dispatch.splits import Pace

    def error(pace: Any) -> float:
        model = replace(costs, fours=pace, singles=pace)
        gaps = [w * abs(math.log(model.microseconds(job, n) / us)) for job, n, us, w in rows]
        return sum(gaps) / sum(weight for *_, weight in rows)

    made = costs.setting
    rate = made.tile_m * made.tile_n * made.tile_k / PRODUCTS_A_US
    best = Pace(2.5, 1.5 * rate, 1.1 * rate)
    least = error(best)
    for step in STEPS:
        better = True
        while better:
            better = False
            for name, value in vars(best).items():
                for factor in (step, 1 / step):
                    other = replace(best, **{name: value * factor})
                    if (mistake := error(other)) < least - 1e-5:
                        best, least, better = other, mistake, True
    return best, least


def fit(path: Path) -> None:
    """Print the costs that fit a file's times."""
    from tiled_matmul.dispatch.splits import COSTS
    from tiled_matmul.machine.device import lookup
    from tiled_matmul.measure import drawn

    _, origin, taken = drawn.load(path)
    multiprocessors = lookup(origin["gpu"]).sms
    for costs in COSTS:
        print(costs.setting, costs.resident)
        for even in (True, False):
            rows = []
            for each in taken:
                job = job_of(each.product, multiprocessors)
                for splits in SPLITS if job.even == even else ():
                    ms = each.ms.get(name_of(costs, splits))
                    if ms is not None:
                        slower = ms / min(each.ms.values())
                        weight = next(weight for most, weight in WEIGHTS if slower < most)
                        rows.append((job, splits, ms * 1e3, weight))
            if len(rows) < LEAST:
                raise ValueError(f"{path} has {len(rows)} times of {costs.setting}, even: {even}")
            pace, mistake = fitted(costs, rows)
            numbers = ", ".join(f"{number:.3f}" for number in vars(pace).values())
            print(f"    Pace({numbers}),  # of {len(rows)}: {math.exp(mistake) - 1:.0%}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take", help="time the settings on a GPU")
    taking.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    taking.add_argument("--seed", type=int, default=2, help="of the shapes (2)")
    taking.add_argument("--count", type=int, default=240, help="how many shapes (240)")
    taking.add_argument("--seconds", type=float, default=80, help="begin no shape after this (80)")
    fitting = commands.add_parser("fit", help="print the costs that fit the times")
    fitting.add_argument("file", type=Path)
    chosen = vars(parser.parse_args(arguments))
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    command = chosen.pop("command")
    take(**chosen) if command == "take" else fit(chosen["file"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
