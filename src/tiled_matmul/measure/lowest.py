"""The cases of stored benchmarks where a rung is slowest, relative to torch.

The suite "counters" counts both sides of each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.measure import drawn, fp8, fused, groups

FP8_SHAPE = (4096, 4096, 4096)
Both = dict[str, Callable[[], Any]]
Lowest = tuple[str, tuple[str, ...], Callable[[], Both]]  # a label, rungs that run, both sides


def cases(gpu: str) -> Iterator[Lowest]:
    """Yield a label, rungs and what makes both sides, of each benchmark's lowest ratio here.

    `gpu` is the name that files of results have, such as "h200". Products of 8-bit floats are
    counted at one shape, in each mode whose mean is below 1. Raises ValueError where a benchmark
    was not taken, or at a file that is not one.
    """
    results = ROOT / "results"
    for of in (_drawn, _drawn_float32, _fused, _batches, _groups):
        yield of(results, gpu)
    times, _ = fp8.load(results / "fp8" / f"{gpu}.json")
    for mode in fp8.MODES:
        if fp8.mean_ratio([each for each in times if each.mode == mode]) < 1:
            label = f"8 bits, {mode}: {'×'.join(map(str, FP8_SHAPE))}"
            yield label, (fp8.OURS,), partial(_fp8, mode)


def _drawn(results: Path, gpu: str) -> Lowest:
    _, _, taken = drawn.load(results / "shapes" / f"{gpu}.json")
    name = drawn.TUNED
    lowest = min((each for each in taken if each.product.even), key=lambda each: each.ratio(name))
    return f"drawn: {lowest.product}", (drawn.RULED,), partial(_product, lowest.product, name)


def _drawn_float32(results: Path, gpu: str) -> Lowest:
    _, _, taken = drawn.load(results / "shapes" / f"{gpu}-float32.json")

    def best(each: drawn.Taken) -> str:
        return max(drawn.RUNGS_FLOAT32, key=each.ratio)

    lowest = min(taken, key=lambda each: each.ratio(best(each)))
    name = best(lowest)
    return f"drawn: {lowest.product}", (name,), partial(_product, lowest.product, name)


def _fused(results: Path, gpu: str) -> Lowest:
    _, taken = fused.load(results / "fused" / f"{gpu}.json")
    case = min(taken, key=lambda each: each.ratio()).case

    def both() -> Both:
        ways, check = fused.calls(case, ())
        check()
        return {"torch": ways[fused.TORCH], "ours": ways[fused.OURS]}

    return f"fused: {case}", (fused.OURS,), both


def _batches(results: Path, gpu: str) -> Lowest:
    taken, _ = groups.load(results / "groups" / f"{gpu}.json")
    lowest = min((each for each in taken if each.rows is None), key=lambda each: each.ratio)
    return _in_groups("batch", lowest, groups.BATCHES, groups.of_batches)


def _groups(results: Path, gpu: str) -> Lowest:
    taken, _ = groups.load(results / "groups" / f"{gpu}.json")
    lowest = min((each for each in taken if each.rows is not None), key=lambda each: each.ratio)
    return _in_groups("groups", lowest, groups.GROUPS_TIMED, groups.of_groups)


def _in_groups(what: str, lowest: groups.Taken, listed: tuple, of: Callable) -> Lowest:
    fields = ("what", "count", "n", "k", "by_columns", "flops")
    case = next(one for one in listed if all(_same(one, lowest, field) for field in fields))

    def both() -> Both:
        calls, check = of(case)
        calls[groups.OURS]()
        check()
        return {"torch": calls[groups.TORCH], "ours": calls[groups.OURS]}

    rung = "triton_batched" if what == "batch" else "triton_grouped"
    return f"{what}: {case}", (rung,), both


def _same(case: Any, taken: groups.Taken, field: str) -> bool:
    return getattr(case, field) == getattr(taken, field)


def _product(product: drawn.Drawn, name: str) -> Both:
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import rung

    a, b = drawn.operands(product)
    out = poison(torch.empty((product.m, product.n), dtype=a.dtype, device="cuda"))
    is_tuned = name == drawn.TUNED
    matmul = drawn.tuned(a, b, out) if is_tuned else rung(name).matmul
    matmul(a, b, out=out)
    assert_matmul(out[: drawn.ROWS], a[: drawn.ROWS], b)
    return {
        "torch": partial(drawn._into, torch.matmul, out, a, b),
        "ours": partial(drawn._into, matmul, out, a, b),
    }


def _fp8(mode: str) -> Both:
    from tiled_matmul.ladder import rung

    a, b, options = fp8.scaled(mode, *fp8.matrices(*FP8_SHAPE))
    theirs = fp8.by_torch(mode, a, b, options)
    ours = partial(rung(fp8.OURS).matmul, a, b, **options)
    for c in (ours(), theirs()):
        fp8.check(c, a, b, options)
    return {"torch": theirs, "ours": ours}
