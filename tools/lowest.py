"""The cases of stored benchmarks where a rung is slowest, relative to torch.

`take_counters.py lowest` counts both sides of each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import any_shape
import bench_fp8
import bench_fused
import bench_groups

from tiled_matmul import ROOT
from tiled_matmul.measure import drawn, fp8, fused, groups

FP8_SHAPE = (4096, 4096, 4096)
Both = dict[str, Callable[[], Any]]


def cases(gpu: str) -> Iterator[tuple[str, Callable[[], Both]]]:
    """Yield a label and what makes both sides, of each benchmark's lowest ratio on this GPU.

    `gpu` is the name that files of results have, such as "h200". Products of 8-bit floats are
    counted at one shape, in each mode whose mean is below 1. Raises ValueError where a benchmark
    was not taken, or at a file that is not one.
    """
    results = ROOT / "results"
    for of in (_drawn, _drawn_float32, _fused, _batches, _groups):
        yield of(results, gpu)
    times, _ = fp8.load(results / "fp8" / f"{gpu}.json")
    for mode in bench_fp8.MODES:
        if fp8.mean_ratio([each for each in times if each.mode == mode]) < 1:
            yield f"8 bits, {mode}: {'×'.join(map(str, FP8_SHAPE))}", partial(_fp8, mode)


def _drawn(results: Path, gpu: str) -> tuple[str, Callable[[], Both]]:
    _, _, taken = drawn.load(results / "shapes" / f"{gpu}.json")
    name = any_shape.TUNED
    lowest = min((each for each in taken if each.product.even), key=lambda each: each.ratio(name))
    return f"drawn: {lowest.product}", partial(_product, lowest.product, name)


def _drawn_float32(results: Path, gpu: str) -> tuple[str, Callable[[], Both]]:
    _, _, taken = drawn.load(results / "shapes" / f"{gpu}-float32.json")

    def best(each: drawn.Taken) -> str:
        return max(any_shape.RUNGS_FLOAT32, key=each.ratio)

    lowest = min(taken, key=lambda each: each.ratio(best(each)))
    return f"drawn: {lowest.product}", partial(_product, lowest.product, best(lowest))


def _fused(results: Path, gpu: str) -> tuple[str, Callable[[], Both]]:
    _, taken = fused.load(results / "fused" / f"{gpu}.json")
    case = min(taken, key=lambda each: each.ratio()).case

    def both() -> Both:
        ways, check = bench_fused.calls(case, ())
        check()
        return {"torch": ways[fused.TORCH], "ours": ways[fused.OURS]}

    return f"fused: {case}", both


def _batches(results: Path, gpu: str) -> tuple[str, Callable[[], Both]]:
    taken, _ = groups.load(results / "groups" / f"{gpu}.json")
    lowest = min((each for each in taken if each.rows is None), key=lambda each: each.ratio)
    return _in_groups("batch", lowest, bench_groups.BATCHES, bench_groups.of_batches)


def _groups(results: Path, gpu: str) -> tuple[str, Callable[[], Both]]:
    taken, _ = groups.load(results / "groups" / f"{gpu}.json")
    lowest = min((each for each in taken if each.rows is not None), key=lambda each: each.ratio)
    return _in_groups("groups", lowest, bench_groups.GROUPS, bench_groups.of_groups)


def _in_groups(
    what: str, lowest: groups.Taken, listed: tuple, of: Callable
) -> tuple[str, Callable[[], Both]]:
    fields = ("what", "count", "n", "k", "by_columns", "flops")
    case = next(one for one in listed if all(_same(one, lowest, field) for field in fields))

    def both() -> Both:
        calls, check = of(case)
        calls["rung"]()
        check()
        return {"torch": calls["torch"], "ours": calls["rung"]}

    return f"{what}: {case}", both


def _same(case: Any, taken: groups.Taken, field: str) -> bool:
    return getattr(case, field) == getattr(taken, field)


def _product(product: drawn.Drawn, name: str) -> Both:
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import rung

    a, b = any_shape.operands(product)
    out = poison(torch.empty((product.m, product.n), dtype=a.dtype, device="cuda"))
    is_tuned = name == any_shape.TUNED
    matmul = any_shape.tuned(a, b, out) if is_tuned else rung(name).matmul
    matmul(a, b, out=out)
    assert_matmul(out[: any_shape.ROWS], a[: any_shape.ROWS], b)
    return {
        "torch": partial(any_shape.into, torch.matmul, out, a, b),
        "ours": partial(any_shape.into, matmul, out, a, b),
    }


def _fp8(mode: str) -> Both:
    from tiled_matmul.ladder import rung

    a, b, options = bench_fp8.scaled(mode, *bench_fp8.matrices(*FP8_SHAPE))
    theirs = bench_fp8.by_torch(mode, a, b, options)
    ours = partial(rung(bench_fp8.RUNG).matmul, a, b, **options)
    for c in (ours(), theirs()):
        bench_fp8.check(c, a, b, options)
    return {"torch": theirs, "ours": ours}
