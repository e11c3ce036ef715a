"""Time the FP8 rung against torch's scaled products, and measure errors, into results/fp8/.

    python tools/bench_fp8.py --out FILE [--shapes 1024x1024x1024,…] [--seconds 120]

Kernels are compiled beforehand, in several processes. After --seconds no further shape is begun; a
second call goes on where FILE ends, if its GPU, versions and commit are the same.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

SQUARES = [(size, size, size) for size in (1024, 2048, 4096, 8192, 16384)]
UNEVEN = [
    *[(16, 7168, 4096), (64, 2112, 7168), (128, 24576, 1536), (4096, 7168, 2048)],
    *[(3000, 4000, 5008), (8192, 1024, 8192), (512, 512, 16384), (5120, 13824, 5120)],
]
# Kinds of scales, of a and of b's transpose, and whether sums stay in the tensor cores.
MODES = {
    "tensor, fast": ("tensor", "tensor", True),
    "tensor": ("tensor", "tensor", False),
    "row, fast": ("row", "row", True),
    "row": ("row", "row", False),
    "1x128 and 128x128": ("1x128", "128x128", False),
    "1x128 and 1x128": ("1x128", "1x128", False),
}
BASELINE, RUNG = "torch", "triton_fp8"
ROUNDS = 11
ROWS = 64  # of C that are checked
SAME = ("gpu", "versions", "commit")  # of the provenance of one file
DEEP = (1024, 4096, 16384, 65536)  # K of the errors
SIDE = 256  # M and N of the errors
WHOLE = {"block": (64, 128, 128)}  # with K in one part: sums of parts are shorter, and lose less
OUTLIERS = (1000, 100_000)


def scaled(mode: str, x: Any, w: Any) -> tuple[Any, Any, dict]:
    """Return (a, b, options of the rung) for x (M, K) and w (N, K): a is x, b is w's transpose."""
    from tiled_matmul.kit.float8 import quantised

    kind_a, kind_b, fast = MODES[mode]
    a, scale_a = quantised(x, kind_a)
    b, scale_b = quantised(w, kind_b)
    return a, b.T, {"scale_a": scale_a, "scale_b": scale_b.T, "fast": fast}


def by_torch(mode: str, a: Any, b: Any, options: dict) -> Callable:
    """Return a function without arguments that makes the same product with torch, in bfloat16."""
    import torch
    from torch.nn import functional

    scale_a, scale_b = options["scale_a"], options["scale_b"]
    if mode != "1x128 and 128x128":
        numbers = {"out_dtype": torch.bfloat16, "use_fast_accum": options["fast"]}
        if mode.startswith("tensor"):
            scale_a, scale_b = scale_a[0, 0], scale_b[0, 0]
        if mode == "1x128 and 1x128":  # here b's scales lie by rows
            scale_b = scale_b.contiguous()
        return partial(torch._scaled_mm, a, b, scale_a, scale_b, **numbers)
    # The scales of b need rows, in its transpose, that are padded to a multiple of 4.
    padded = functional.pad(scale_b.T, (0, -scale_b.shape[0] % 4)).contiguous()
    kinds = functional.ScalingType
    a_kind, b_kind = kinds.BlockWise1x128, kinds.BlockWise128x128
    return partial(functional.scaled_mm, a, b, scale_a, a_kind, padded.T, b_kind)


def matrices(m: int, n: int, k: int) -> tuple[Any, Any]:
    """Return x (M, K) and w (N, K) of normal numbers, on the GPU."""
    import torch

    numbers = torch.Generator("cuda").manual_seed(m + n + k)
    made = {"device": "cuda", "dtype": torch.bfloat16, "generator": numbers}
    return torch.randn(m, k, **made), torch.randn(n, k, **made)


def check(c: Any, a: Any, b: Any, options: dict) -> None:
    """Raise ValueError unless some rows of C are right, within what `fast` may lose."""
    import torch

    from tiled_matmul.kit.float8 import dequantised

    rows = torch.linspace(0, c.shape[0] - 1, min(c.shape[0], ROWS), device=c.device).long()
    wanted = dequantised(a, options["scale_a"])[rows] @ dequantised(b, options["scale_b"])
    error = ((c[rows].double() - wanted).norm() / wanted.norm()).item()
    if not error < (0.02 if options["fast"] else 0.004):
        raise ValueError(f"C {tuple(c.shape)} is wrong: a relative error of {error:.2g}")


def take(shape: tuple[int, int, int], mode: str) -> dict[str, Any]:
    """Check the rung at a shape, time it against torch, and return a record of both."""
    import torch

    from tiled_matmul.ladder import rung
    from tiled_matmul.measure.clock import time_replays

    a, b, options = scaled(mode, *matrices(*shape))
    theirs = by_torch(mode, a, b, options)
    out = torch.full(shape[:2], math.nan, dtype=torch.bfloat16, device="cuda")
    ours = partial(rung(RUNG).matmul, a, b, out, **options)
    for c in (ours(), theirs()):
        check(c, a, b, options)
    both = {BASELINE: theirs, RUNG: ours}
    timings = time_replays(both, BASELINE, rounds=ROUNDS)
    return {
        "shape": list(shape),
        "mode": mode,
        "ms": {name: round(timing.median_ms, 6) for name, timing in timings.items()},
        "spreads": {name: round(timing.spread, 4) for name, timing in timings.items()},
    }


def compile_first(job: tuple) -> None:
    """Run the rung once, so that its kernel is in Triton's cache."""
    from tiled_matmul.ladder import rung

    shape, mode = job
    a, b, options = scaled(mode, *matrices(*shape))
    rung(RUNG).matmul(a, b, **options)


# --- errors ---------------------------------------------------------------------------------------


def inputs(k: int, place: str, side: int = SIDE) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, x, w) of float32 matrices (side, K): plain ones, and ones with outliers."""
    import torch

    numbers = torch.Generator(place).manual_seed(k)
    x, w = (torch.randn(side, k, generator=numbers, device=place) for _ in range(2))
    yield "normal", x, w
    yield "positive", x.abs(), w.abs()
    for times in OUTLIERS:
        row, element = x.clone(), x.clone()
        row[side // 2] *= times
        element[side // 2, k // 2] = times * x.abs().max()
        yield f"a row {times:,} times as large", row, w
        yield f"an element {times:,} times as large", element, w


def errors(k: int, place: str = "cuda", side: int = SIDE, **tiles: Any) -> Iterator[dict[str, Any]]:
    """Yield the errors of every mode at a K, in float32.

    "sums" compares with the product of what the 8-bit numbers mean, "all" with that of the numbers
    before. Both are relative: norms of rows of C, "worst" and "median" of the rows.
    """
    import torch

    from tiled_matmul.kit.float8 import dequantised
    from tiled_matmul.ladder import rung

    for name, x, w in inputs(k, place, side):
        exact = x.double() @ w.double().T
        for mode in MODES:
            a, b, options = scaled(mode, x, w)
            c = rung(RUNG).matmul(a, b, **options, out_dtype=torch.float32, **tiles).double()
            meant = dequantised(a, options["scale_a"]) @ dequantised(b, options["scale_b"])
            found = {}
            for what, right in (("sums", meant), ("all", exact)):
                rows = (c - right).norm(dim=1) / right.norm(dim=1)
                found[what] = {"worst": rows.max().item(), "median": rows.median().item()}
            yield {"k": k, "inputs": name, "mode": mode} | found


def against_model(k: int, place: str = "cuda", side: int = 8, **tiles: Any) -> Iterator[dict]:
    """Yield what a GPU's sums lose beside what `models.narrow_sums` says: mean relative errors.

    `equal` is the share of C's elements that the model predicts to the last bit.
    """
    import torch

    from tiled_matmul.ladder import rung
    from tiled_matmul.models.narrow_sums import narrow_sums

    one = torch.ones(1, 1, device=place)
    for name, x, w in list(inputs(k, place, side))[:2]:
        a, b = (each.to(torch.float8_e4m3fn) for each in (x, w))
        exact = (a.double() @ b.double().T).cpu().numpy()
        for fast in (True, False):
            options = {"scale_a": one, "scale_b": one, "fast": fast, "out_dtype": torch.float32}
            c = rung(RUNG).matmul(a, b.T, **options, **tiles).cpu().numpy()
            values = a.float().cpu().numpy(), b.float().cpu().numpy().T
            model = narrow_sums(*values, None if fast else 128)
            size = abs(exact).mean()
            yield {
                "k": k,
                "inputs": name,
                "fast": fast,
                "measured": abs(c - exact).mean() / size,
                "predicted": abs(model - exact).mean() / size,
                "equal": float((c == model.astype("float32")).mean()),
            }


# --- the command ----------------------------------------------------------------------------------


def mean_ratio(taken: Sequence[dict], mode: str) -> float:
    """Return the geometric mean of torch's time over the rung's."""
    ratios = [each["ms"][BASELINE] / each["ms"][RUNG] for each in taken if each["mode"] == mode]
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--shapes", help="MxNxK, with commas between")
    parser.add_argument("--seconds", type=float, default=120, help="begin no more after this (120)")
    parser.add_argument("--anew", action="store_true", help="replace FILE instead of going on")
    given = parser.parse_args(arguments)
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    from tiled_matmul.files import replace_text
    from tiled_matmul.measure.provenance import provenance

    began = time.monotonic()
    shapes = SQUARES + UNEVEN
    if given.shapes:
        shapes = [tuple(map(int, each.split("x"))) for each in given.shapes.split(",")]
    stored = {"provenance": provenance("gpu"), "times": [], "errors": [], "model": []}
    if given.out.exists() and not given.anew:
        before = json.loads(given.out.read_text())
        differ = [x for x in SAME if before["provenance"].get(x) != stored["provenance"][x]]
        if differ:
            parser.error(f"{given.out} is from another run ({', '.join(differ)}); use --anew")
        stored = before
    known = {(tuple(each["shape"]), each["mode"]) for each in stored["times"]}
    jobs = [(shape, mode) for shape in shapes for mode in MODES if (shape, mode) not in known]
    workers = max(1, min(len(jobs), (os.cpu_count() or 2) - 1))
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(compile_first, jobs, chunksize=1)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    left = 0
    for job in jobs:
        if time.monotonic() - began > given.seconds:
            left += 1
            continue
        one = take(*job)
        stored["times"].append(one)
        ratio = one["ms"][BASELINE] / one["ms"][RUNG]
        took = one["ms"][BASELINE] * 1e3
        print(f"{'×'.join(map(str, job[0]))} {job[1]}: {ratio:.3f} of {took:.1f} µs", flush=True)
    if not stored["errors"]:
        stored["errors"] = [each for k in DEEP for each in errors(k, **WHOLE)]
        stored["model"] = [each for k in DEEP for each in against_model(k, **WHOLE)]
    replace_text(given.out, json.dumps(stored, indent=1) + "\n")
    for mode in dict.fromkeys(each["mode"] for each in stored["times"]):
        print(f"{mode:20} {mean_ratio(stored['times'], mode):.3f} of torch")
    for each in stored["errors"]:
        print(
            f"K {each['k']:6} {each['inputs']:30} {each['mode']:18} "
            f"sums {each['sums']['worst']:.1e}, all {each['all']['worst']:.1e} "
            f"(median {each['all']['median']:.1e})"
        )
    for each in stored["model"]:
        print(
            f"K {each['k']:6} {each['inputs']:10} {'fast' if each['fast'] else 'promoted':9} "
            f"measured {each['measured']:.2e}, model {each['predicted']:.2e}, "
            f"equal {each['equal']:.0%}"
        )
    print(f"{len(stored['times'])} times in {given.out}" + (f"; {left} are left" if left else ""))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
