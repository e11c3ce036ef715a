"""Time the tiles of `dispatch.costs` at drawn shapes, and fit their costs to the times.

    python tools/survey.py take --out FILE [--seed 2] [--count 480] [--seconds 500]
    python tools/survey.py fit FILE [--seconds 120]

`take` needs a GPU: worker processes compile first. `fit` changes the costs in TILES so that the
tile which promises the least time is more often the fastest, and prints a row for each tile.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from any_shape import WORKERS, compile_for, operands

COSTS = ("start", "latency", "share", "pairs", "odd", "across", "both")
STEPS = (0.7, 0.87, 0.95, 0.98, 1.02, 1.05, 1.15, 1.4)  # by which the fit changes a cost
MISSED = 0.15  # what a wrong time counts for in the fit, where a wrong choice counts 1


def product_of(drawn: Any, multiprocessors: int) -> Any:
    """Return a drawn product as the rule sees it."""
    from tiled_matmul.dispatch.costs import Product
    from tiled_matmul.kit.layouts import GRAIN

    m, n, k = drawn.m, drawn.n, drawn.k
    # The lengths of the rows, as they lie in memory; a, b and out are dense.
    rows = m if drawn.layout[0] == "t" else k, k if drawn.layout[1] == "t" else n, n
    grains = tuple(math.gcd(GRAIN, length) for length in rows)
    lie_across = drawn.layout[0] == "t", drawn.layout[1] == "n"
    across = sum(g == 1 and lies for g, lies in zip(grains, lie_across, strict=False))
    return Product(m, n, k, multiprocessors, grains, across)


def tried(drawn: Any, multiprocessors: int) -> Iterator[tuple[str, Any]]:
    """Yield the name of each tile and splits that is timed at a product, with its Choice."""
    from tiled_matmul.dispatch.rule import best_modelled, tried

    product = product_of(drawn, multiprocessors)
    for tile, choice in tried(product):
        yield name_of(tile, choice), choice
    for choice in best_modelled(product):
        yield str(choice), choice


def name_of(tile: Any, choice: Any) -> str:
    splits = choice.options.get("splits")
    block = "×".join(map(str, tile.block))
    return f"{tile.module} {block}" + (f" /{splits}" if splits else "") + " turned" * choice.turned


def times_of(drawn: Any, multiprocessors: int) -> Any:
    """Return a product's Taken: torch, `triton_best`, and each tile that is tried."""
    import torch

    from tiled_matmul.dispatch.tuned import milliseconds
    from tiled_matmul.ladder import rung, triton_best
    from tiled_matmul.measure.drawn import BASELINE, Taken

    a, b = operands(drawn)
    out = torch.empty((drawn.m, drawn.n), dtype=a.dtype, device="cuda")
    calls = {BASELINE: torch.matmul, "triton_best": rung("triton_best").matmul}
    for name, choice in tried(drawn, multiprocessors):
        calls[name] = partial(triton_best.run, choice)
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
        pool.map(compile_for, products, chunksize=4)
    print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    for product in products:
        if time.monotonic() - began > seconds:
            break
        taken.append(times_of(product, many))
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(out, drawn.as_text(seed, origin, taken))
    print(f"{len(taken)} of {count} products in {time.monotonic() - began:.0f} s")


@dataclass
class Seen:
    """Times of a tile: the products, as it sees them, and what it took."""

    index: list[int]  # of the product in the file
    products: list[Any]
    splits: list[int]
    us: list[float]

    def predicted(self, tile: Any) -> list[float]:
        return [tile.microseconds(*each) for each in zip(self.products, self.splits, strict=True)]


def seen(tile: Any, taken: Sequence[Any], multiprocessors: int) -> Seen:
    """Return the times of a tile."""
    found = Seen([], [], [], [])
    for index, each in enumerate(taken):
        product = product_of(each.product, multiprocessors)
        for choice, _ in tile.choices(product):
            if (ms := each.ms.get(name_of(tile, choice))) is not None:
                found.index.append(index)
                found.products.append(product.turned() if choice.turned else product)
                found.splits.append(choice.options.get("splits", 1))
                found.us.append(ms * 1e3)
    return found


class Survey:
    """The times of a file, and how well given costs of TILES decide between them."""

    def __init__(self, path: Path) -> None:
        from tiled_matmul.dispatch.costs import TILES, clocks
        from tiled_matmul.dispatch.costs import modelled as microseconds
        from tiled_matmul.dispatch.rule import SHORT, SURE, pick
        from tiled_matmul.machine.device import lookup
        from tiled_matmul.measure import drawn

        _, origin, taken = drawn.load(path)
        many = lookup(origin["gpu"]).sms
        self.taken, self.tiles = taken, list(TILES)
        self.seen = [seen(tile, taken, many) for tile in self.tiles]
        # What the model of clocks picks: its microseconds as promised, and as measured.
        self.picked: dict[int, tuple[float, float]] = {}
        for index, each in enumerate(taken):
            product = product_of(each.product, many)
            sizes = product.m, product.n, product.k, many
            if min(sizes[:2]) > SHORT:
                choice = pick(*sizes)
                promised = microseconds(choice, clocks(choice, *sizes), product)
                promised *= SURE if product.even else 1
                self.picked[index] = promised, each.ms[str(choice)] * 1e3
        self.least = [math.inf] * len(taken)
        for each in self.seen:
            for index, us in zip(each.index, each.us, strict=True):
                self.least[index] = min(self.least[index], us)
        for index, (_, us) in self.picked.items():
            self.least[index] = min(self.least[index], us)

    def taken_us(self, predicted: Sequence[Sequence[float]]) -> list[float]:
        """Return what each product takes if the choice that promises the least is taken."""
        promised = [(math.inf, math.inf)] * len(self.taken)
        for index, pair in self.picked.items():
            promised[index] = pair
        for each, guesses in zip(self.seen, predicted, strict=True):
            for index, guess, us in zip(each.index, guesses, each.us, strict=True):
                if guess < promised[index][0]:
                    promised[index] = guess, us
        return [us for _, us in promised]

    def lost(self, predicted: Sequence[Sequence[float]]) -> list[float]:
        """Return for each product how many times as long as the best the choice takes."""
        took = self.taken_us(predicted)
        pairs = zip(took, self.least, strict=True)
        return [us / least for us, least in pairs if least < math.inf]

    def wrong(self, predicted: Sequence[Sequence[float]]) -> float:
        """Return how wrong the costs are: mostly what is lost, and a little how far they miss."""
        lost = [math.log(each) for each in self.lost(predicted)]
        far = [
            abs(math.log(guess / us))
            for each, guesses in zip(self.seen, predicted, strict=True)
            for guess, us in zip(guesses, each.us, strict=True)
        ]
        return sum(lost) / len(lost) + MISSED * sum(far) / len(far)


def better(survey: Survey, seconds: float) -> None:
    """Change the costs of the survey's tiles, one at a time, as long as they get less wrong."""
    numbers = random.Random(0)
    predicted = [each.predicted(tile) for each, tile in zip(survey.seen, survey.tiles, strict=True)]
    least, began = survey.wrong(predicted), time.monotonic()
    while time.monotonic() - began < seconds:
        place = numbers.randrange(len(survey.tiles))
        name = numbers.choice(COSTS)
        now = getattr(survey.tiles[place], name)
        other = replace(survey.tiles[place], **{name: round(now * numbers.choice(STEPS), 2)})
        guesses = survey.seen[place].predicted(other)
        tried = [*predicted[:place], guesses, *predicted[place + 1 :]]
        if (wrong := survey.wrong(tried)) < least:
            survey.tiles[place], predicted, least = other, tried, wrong


def fit(path: Path, seconds: float) -> None:
    """Print costs that decide better on a file's times, beginning with those that there are."""
    survey = Survey(path)
    from tiled_matmul.dispatch.costs import POINTERS

    better(survey, seconds)
    for tile in survey.tiles:
        names = [*COSTS[:3], "resident", *(COSTS[3:] if tile.module == POINTERS else ())]
        costs = ", ".join(str(getattr(tile, name)) for name in names)
        print(f'Costs("{tile.module}", {tile.block}, {tile.warps}, {tile.stages}, {costs}),')
    guesses = [each.predicted(tile) for each, tile in zip(survey.seen, survey.tiles, strict=True)]
    lost = survey.lost(guesses)
    best = sum(each == 1 for each in lost) / len(lost)
    mean = math.exp(sum(map(math.log, lost)) / len(lost))
    print(f"the best is chosen for {best:.0%}; choices take {mean:.3f} times as long as the best")


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
    fitting.add_argument("--seconds", type=float, default=120, help="how long (120)")
    chosen = vars(parser.parse_args(arguments))
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    command = chosen.pop("command")
    take(**chosen) if command == "take" else fit(chosen["file"], chosen["seconds"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
