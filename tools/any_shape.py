"""Time rungs at drawn shapes against torch.matmul, into results/shapes/, some shapes at a time.

    python tools/any_shape.py --out FILE [--seed 1] [--first 0] [--count 200] [--seconds 480]
                              [--float32] [--anew]

A GPU machine's time may not be enough for all: after --seconds no further shape is begun, and a
second call goes on where FILE ends, if its seed, GPU, versions and commit are the same.
`triton_best` is timed by its rule, and as "triton_best, tuned", where a clock decided before: what
may decide is compiled first, in several processes. With --float32, products are of float32, and the
rungs those in Numba.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

RUNGS, RUNGS_FLOAT32 = ("triton_gluon", "triton_best"), ("cuda_best", "cuda_split_k")
RULED, TUNED = "triton_best", "triton_best, tuned"
WORKERS = 15
ROUNDS = 11
ROWS = 64  # of C that are checked, from the first to the last
SAME = ("gpu", "versions", "commit")  # of the provenance of one file


def operands(product: Any) -> tuple[Any, Any]:
    """Return a (M, K) and b (K, N) on the GPU, normal numbers that belong to the product."""
    import torch

    from tiled_matmul.problem import as_layout

    numbers = torch.Generator("cuda").manual_seed(product.index)
    options = {"device": "cuda", "dtype": getattr(torch, product.dtype), "generator": numbers}
    a = torch.randn((product.m, product.k), **options)
    return as_layout(a, torch.randn((product.k, product.n), **options), product.layout)


def compile_for(product: Any) -> None:
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


def into(matmul: Callable, out: Any, a: Any, b: Any) -> None:
    matmul(a, b, out=out)


def take(product: Any, rungs: Sequence[str]) -> Any:
    """Check the rungs at one product, and return its Taken. Raises MatmulError for a wrong C."""
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import rung
    from tiled_matmul.measure.clock import time_replays
    from tiled_matmul.measure.drawn import BASELINE, Taken

    a, b = operands(product)
    out = torch.empty((product.m, product.n), dtype=a.dtype, device="cuda")
    matmuls = {BASELINE: torch.matmul}
    rows = torch.linspace(0, product.m - 1, min(product.m, ROWS), device="cuda").long()
    for name in rungs:
        matmuls[name] = tuned(a, b, out) if name == TUNED else rung(name).matmul
        poison(out)
        matmuls[name](a, b, out=out)
        assert_matmul(out[rows], a[rows], b)
    calls = {name: partial(into, matmul, out, a, b) for name, matmul in matmuls.items()}
    timings = time_replays(calls, BASELINE, rounds=ROUNDS)
    return Taken(
        product,
        {name: timing.median_ms for name, timing in timings.items()},
        {name: timing.spread for name, timing in timings.items()},
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--seed", type=int, default=1, help="of the shapes (1)")
    parser.add_argument("--first", type=int, default=0, help="the first shape's number (0)")
    parser.add_argument("--count", type=int, default=200, help="how many shapes (200)")
    parser.add_argument(
        "--seconds", type=float, default=480, help="begin no shape after this (480)"
    )
    parser.add_argument("--float32", action="store_true", help="draw products of float32")
    parser.add_argument("--rungs", help="names, with commas between")
    parser.add_argument("--anew", action="store_true", help="replace FILE instead of going on")
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    from tiled_matmul import ladder
    from tiled_matmul.files import replace_text
    from tiled_matmul.measure import drawn
    from tiled_matmul.measure.provenance import provenance

    began = time.monotonic()
    try:
        usual = RUNGS_FLOAT32 if chosen.float32 else RUNGS
        names = chosen.rungs.split(",") if chosen.rungs else usual
        rungs = [ladder.rung(name).name for name in names]
        rungs += [TUNED] * (RULED in rungs)
        origin, taken = provenance("gpu"), []
        if chosen.out.exists() and not chosen.anew:
            seed, before, taken = drawn.load(chosen.out)
            differ = [key for key in SAME if before.get(key) != origin[key]]
            if seed != chosen.seed or differ:
                what = ", ".join([f"seed {seed}"] * (seed != chosen.seed) + differ)
                raise ValueError(
                    f"{chosen.out} is from another run ({what}); name another, or --anew"
                )
    except (ValueError, RuntimeError) as error:
        parser.error(str(error))
    known = {each.product.index for each in taken}
    left = 0
    products = drawn.drawn(chosen.seed, chosen.first + chosen.count, chosen.float32)
    products = [each for each in products[chosen.first :] if each.index not in known]
    if TUNED in rungs:
        with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
            pool.map(compile_for, products, chunksize=4)
        print(f"compiled in {time.monotonic() - began:.0f} s", flush=True)
    for product in products:
        if time.monotonic() - began > chosen.seconds:
            left += 1
            continue
        taken.append(take(product, rungs))
        ratios = ", ".join(f"{name} {taken[-1].ratio(name):.3f}" for name in rungs)
        print(f"{product.index}: {product}: {ratios}", flush=True)
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        replace_text(chosen.out, drawn.as_text(chosen.seed, origin, taken))
    for row in drawn.table(taken):
        print(", ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}"
                        for key, value in row.items()))  # fmt: skip
    print(f"{len(taken)} shapes in {chosen.out}" + (f"; {left} are left" if left else ""))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
