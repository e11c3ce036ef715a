"""Time the tiles of `kit.measured` at drawn shapes, and fit their costs to the times.

    python tools/survey.py take --out FILE [--seed 2] [--count 480] [--seconds 500]
    python tools/survey.py fit FILE

`take` needs a GPU: worker processes compile first. `fit` prints a row of TILES for each tile, with
the mean error, as a factor.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from any_shape import operands

WORKERS = 15
REPLAYS, SAMPLE_MS, MOST_LAUNCHES = 5, 0.3, 40  # of a graph; its launches take SAMPLE_MS
LEAST = 20  # times that a tile's costs are fitted to
RESIDENT = (1, 2, 3, 4, 6)
STEPS = (1.5, 1.15, 1.04)  # factors by which the fit changes a cost
START = {"start": 2.5, "latency": 0.6, "share": 0.3, "pairs": 1.2, "odd": 1.6}
MOST, MODELLED = 14, 4  # choices that are timed at a product


def product_of(drawn: Any, multiprocessors: int) -> Any:
    """Return a drawn product as the rule sees it."""
    from tiled_matmul.kit.measured import GRAIN, Product

    m, n, k = drawn.m, drawn.n, drawn.k
    # The lengths of the rows, as they lie in memory; a, b and out are dense.
    rows = m if drawn.layout[0] == "t" else k, k if drawn.layout[1] == "t" else n, n
    return Product(m, n, k, multiprocessors, tuple(math.gcd(GRAIN, length) for length in rows))


def tried(drawn: Any, multiprocessors: int) -> Iterator[tuple[str, Any]]:
    """Yield the name of each tile and splits that is timed at a product, with its Choice.

    Of those that the costs so far hold for the fastest there are MOST, each tile with two splits.
    """
    from tiled_matmul.kit.measured import THIN, TILES

    product = product_of(drawn, multiprocessors)
    found = []
    for tile in (*TILES, THIN):
        each = sorted(tile.choices(product), key=lambda pair: pair[1])
        single = [pair for pair in each if pair[0].options.get("splits", 1) == 1]
        split = [pair for pair in each if pair[0].options.get("splits", 1) > 1]
        found += [
            (took, name_of(tile, choice), choice) for choice, took in (*single[:1], *split[:2])
        ]
    for _, name, choice in sorted(found, key=lambda each: each[:2])[:MOST]:
        yield name, choice
    yield from modelled(product)


def modelled(product: Any) -> Iterator[tuple[str, Any]]:
    """Yield the choices that the model of clocks holds for the fastest, as `tried` does."""
    from tiled_matmul.kit.candidates import candidates
    from tiled_matmul.ladder.triton_best import SHORT, clocks

    sizes = product.m, product.n, product.k, product.multiprocessors
    if min(sizes[:2]) > SHORT:
        for choice in sorted(candidates(*sizes), key=lambda each: clocks(each, *sizes))[:MODELLED]:
            yield str(choice), choice


def name_of(tile: Any, choice: Any) -> str:
    splits = choice.options.get("splits")
    block = "×".join(map(str, tile.block))
    return f"{tile.module} {block}" + (f" /{splits}" if splits else "") + " turned" * choice.turned


def made(choice: Any, a: Any, b: Any, out: Any = None) -> None:
    """Multiply as the choice says."""
    from tiled_matmul.ladder import rung

    if choice.turned:
        a, b, out = b.T, a.T, None if out is None else out.T
    rung(choice.module).matmul(a, b, out=out, **choice.options)


def compile_for(drawn: Any, multiprocessors: int) -> None:
    """Launch everything once, so that the disk has its code."""
    import torch

    a, b = operands(drawn)
    for _, choice in tried(drawn, multiprocessors):
        made(choice, a, b, torch.empty((drawn.m, drawn.n), dtype=a.dtype, device="cuda"))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def milliseconds(call: Callable) -> float:
    """Return the median time of a call in a CUDA graph of several."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    launches = max(1, min(MOST_LAUNCHES, math.ceil(SAMPLE_MS / begin.elapsed_time(end))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            call()
    times = []
    for _ in range(REPLAYS + 1):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / launches)
    return statistics.median(times[1:])


def times_of(drawn: Any, multiprocessors: int) -> Any:
    """Return a product's Taken: torch, `triton_best`, and each tile that is tried."""
    import torch

    from tiled_matmul.ladder import rung
    from tiled_matmul.measure.drawn import BASELINE, Taken

    a, b = operands(drawn)
    out = torch.empty((drawn.m, drawn.n), dtype=a.dtype, device="cuda")
    calls = {BASELINE: torch.matmul, "triton_best": rung("triton_best").matmul}
    for name, choice in tried(drawn, multiprocessors):
        calls[name] = partial(made, choice)
    ms = {name: milliseconds(partial(call, a, b, out=out)) for name, call in calls.items()}
    return Taken(drawn, ms, {})


def take(out: Path, seed: int, count: int, seconds: float) -> None:
    """Time the products of a seed, as many as the seconds allow, into a file."""
    import torch

    from tiled_matmul.files import replace_text
    from tiled_matmul.measure import drawn
    from tiled_matmul.measure.provenance import provenance

    began = time.monotonic()
    origin = provenance("gpu")
    many = torch.cuda.get_device_properties(0).multi_processor_count
    products, taken = drawn.drawn(seed, count), []
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        pool.map(partial(compile_for, multiprocessors=many), products, chunksize=4)
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    for product in products:
        if time.monotonic() - began > seconds:
            break
        taken.append(times_of(product, many))
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(out, drawn.as_text(seed, origin, taken))
    print(f"{len(taken)} of {count} products in {time.monotonic() - began:.0f} s")


def error(tile: Any, rows: Sequence[tuple]) -> float:
    """Return the mean distance of the logarithms of the tile's times and those measured."""
    gaps = [abs(math.log(tile.microseconds(p, splits) / us)) for p, splits, us in rows]
    return sum(gaps) / len(gaps)


def fitted(tile: Any, rows: Sequence[tuple]) -> tuple[Any, float]:
    """Return the tile with the costs that fit best, and their error."""
    found = []
    for resident in RESIDENT:
        best = replace(tile, resident=resident, **START)
        least = error(best, rows)
        for step in STEPS:
            better = True
            while better:
                better = False
                for name in START:
                    for factor in (step, 1 / step):
                        other = replace(best, **{name: getattr(best, name) * factor})
                        if (mistake := error(other, rows)) < least - 1e-5:
                            best, least, better = other, mistake, True
        found.append((least, resident, best))
    least, _, best = min(found)
    return best, least


def measured(tile: Any, taken: Iterable[Any], multiprocessors: int) -> list[tuple]:
    """Return (product, splits, microseconds) of a tile's times."""
    rows = []
    for each in taken:
        product = product_of(each.product, multiprocessors)
        for choice, _ in tile.choices(product):
            if (ms := each.ms.get(name_of(tile, choice))) is not None:
                seen = product.turned() if choice.turned else product
                rows.append((seen, choice.options.get("splits", 1), ms * 1e3))
    return rows


def fit(path: Path) -> None:
    """Print the costs that fit a file's times."""
    from tiled_matmul.kit.measured import POINTERS, THIN, TILES
    from tiled_matmul.machine.device import lookup
    from tiled_matmul.measure import drawn

    _, origin, taken = drawn.load(path)
    multiprocessors = lookup(origin["gpu"]).sms
    for tile in (*TILES, THIN):
        rows = measured(tile, taken, multiprocessors)
        if len(rows) < LEAST:
            raise ValueError(f"{path} has {len(rows)} times of {tile.module} {tile.block}")
        best, mistake = fitted(tile, rows)
        names = ("start", "latency", "share")
        costs = ", ".join(f"{getattr(best, name):.2f}" for name in names)
        grains = f", {best.pairs:.2f}, {best.odd:.2f}" if tile.module == POINTERS else ""
        print(
            f'Costs("{tile.module}", {tile.block}, {tile.warps}, {tile.stages}, {costs}, '
            f"{best.resident}{grains}),  # of {len(rows)}: {math.exp(mistake) - 1:.0%}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take", help="time the tiles on a GPU")
    taking.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    taking.add_argument("--seed", type=int, default=2, help="of the shapes (2)")
    taking.add_argument("--count", type=int, default=480, help="how many shapes (480)")
    taking.add_argument("--seconds", type=float, default=500, help="begin no shape after this")
    fitting = commands.add_parser("fit", help="print the costs that fit the times")
    fitting.add_argument("file", type=Path)
    chosen = vars(parser.parse_args(arguments))
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    command = chosen.pop("command")
    take(**chosen) if command == "take" else fit(chosen["file"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
