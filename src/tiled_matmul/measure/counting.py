"""The suite "counters": Nsight Compute's counters of rungs, of program orders, of slowest cases.

Each job runs this module under `ncu`: it checks each output and then launches it where `ncu` looks.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tiled_matmul.measure import counters, ncu
from tiled_matmul.measure.counters import EDGE, LADDER, ORDER
from tiled_matmul.measure.ncu import CountersError, looked_at, mark, split, stored
from tiled_matmul.measure.suite import Job, Suite, Taken, short_name
from tiled_matmul.models.program_order import BLOCK
from tiled_matmul.problem import Problem, as_layout

FIT = ("triton_split_k", "triton_best")  # at sizes where they fit
SIZES = (
    *("3072x768x4096", "8192x1024x1024", "2048x2048x2048", "2048x2048x8192", "512x512x16384"),
    *("4000x4000x4000", "3000x3000x3000", "3008x3008x3008", "3024x3024x3024"),
)
EDGES = (4096, 8192, 16384)
GROUPS = (1, 2, 4, 8, 16, 32, 128)
ORDER_DTYPE, ORDER_KERNEL = "float16", "triton_swizzled"


# --- rungs ----------------------------------------------------------------------------------------


def launch_ladder(shape: str, dtype: str, names: str = "") -> None:
    """Check each function, then launch it once where the profiler looks. Raises MatmulError."""
    from tiled_matmul import ladder
    from tiled_matmul.check import run_checked
    from tiled_matmul.measure.bench import contestants
    from tiled_matmul.measure.precision import exact_sums

    rungs = [ladder.rung(name) for name in names.split(",")] if names else of_dtype(dtype)
    layouts = {rung.name: rung.layout for rung in rungs}
    a, b = Problem.parse(shape, dtype).inputs(0, device="cuda")
    launch_mark = mark()
    with exact_sums():
        for name, matmul in contestants(rungs)[1].items():
            start = time.monotonic()
            operands = as_layout(a, b, layouts.get(name, "nn"))
            try:
                out = run_checked(matmul, *operands)
            except ValueError as error:
                print(f"refused {name}: {error}", flush=True)
                continue
            with looked_at():
                matmul(*operands, out=out)
                launch_mark()
            print(f"launched {name}, {time.monotonic() - start:.1f} s", flush=True)


def of_dtype(dtype: str) -> list[Any]:
    """Return the rungs for a GPU that the ladder measures in a dtype."""
    from tiled_matmul.ladder import LADDER

    return [r for r in LADDER if r.available and (r.device, r.dtype) == ("gpu", dtype)]


def take_ladder(shape: str, dtype: str, names: str = "") -> Iterator[Taken]:
    """Yield the counters of each rung. Raises CountersError."""
    counted = ncu.count(__name__, ["ladder", shape, dtype, names], LADDER)
    launched = re.findall(r"^launched (\w+),", counted.printed, re.MULTILINE)
    sizes = Problem.parse(shape, dtype)
    case = {"of": "ladder", "m": sizes.m, "n": sizes.n, "k": sizes.k, "dtype": dtype}
    for name, part in split(counted.rows, launched):
        kernels = [stored(name, row, counted.metrics, LADDER) for row in part]
        yield case | {"rung": name}, {"kernels": kernels, "unknown": list(counted.unknown)}


# --- programs in other orders ---------------------------------------------------------------------


def launch_order() -> None:
    """Run each launch, check it, then run it once where the profiler looks. Raises MatmulError.

    It is `ladder/triton_swizzled.py` on square float16 matrices. GROUP_M of 1 is row by row, one of
    as many tiles as there are is column by column.
    """
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import triton_swizzled
    from tiled_matmul.problem import Problem

    for edge in EDGES:
        a, b = Problem(edge, edge, edge, ORDER_DTYPE).inputs(0, device="cuda")
        out = poison(a.new_empty((edge, edge)))
        for group_m in GROUPS:
            start = time.monotonic()
            triton_swizzled.matmul(a, b, out, block=BLOCK, group_m=group_m)
            rows = torch.arange(0, edge, BLOCK[0], device="cuda")  # one of each tile
            assert_matmul(out[rows], a[rows], b)
            with looked_at():
                triton_swizzled.matmul(a, b, out, block=BLOCK, group_m=group_m)
            poison(out)
            print(f"launched {edge} {group_m}, {time.monotonic() - start:.1f} s", flush=True)


def order_launch(
    edge: int, group_m: int, row: Mapping[str, str], metrics: Sequence[str]
) -> tuple[str, list[dict]]:
    """Return a launch's label and its kernel as FILE holds it.

    Raises CountersError if the row is of another kernel or grid, or if a needed counter has no
    number.
    """
    label = counters.order_label(edge, group_m)
    tiles = -(-edge // BLOCK[0]) * -(-edge // BLOCK[1])
    kernel = stored(label, row, metrics, ORDER)
    if ORDER_KERNEL not in kernel["name"] or kernel["grid"] != [tiles, 1, 1]:
        raise CountersError(f"{label}: ncu counted {kernel['name']} on a grid of {kernel['grid']}")
    return label, [kernel]


def take_order() -> Iterator[Taken]:
    """Yield the counters of each order. Raises CountersError."""
    options = [*ncu.STARTED_BY_US, "--kernel-name", f"regex:{ORDER_KERNEL}"]
    counted = ncu.count(__name__, ["order"], ORDER, options)
    launched = re.findall(r"^launched (\d+) (\d+),", counted.printed, re.MULTILINE)
    if len(counted.rows) != len(launched):
        raise CountersError(f"{len(launched)} launches, but ncu counted {len(counted.rows)}")
    case = {"of": "order", "dtype": ORDER_DTYPE, "block": list(BLOCK)}
    for (edge, group), row in zip(launched, counted.rows, strict=True):
        label, kernels = order_launch(int(edge), int(group), row, counted.metrics)
        yield case | {"label": label}, {"kernels": kernels, "unknown": list(counted.unknown)}


# --- where rungs are slowest ----------------------------------------------------------------------


def launch_lowest() -> None:
    """Check and warm up both sides of each case, then launch them where the profiler looks."""
    import torch

    from tiled_matmul.measure.lowest import cases

    launch_mark = mark()
    for label, _, made in cases(_machine()):
        with torch.no_grad():
            for side, call in made().items():
                call()
                with looked_at():
                    call()
                    launch_mark()
                print(f"launched {label}; {side}", flush=True)
        torch.cuda.empty_cache()


def take_lowest() -> Iterator[Taken]:
    """Yield the counters of both sides of each case."""
    from tiled_matmul.measure.lowest import cases

    ran = {label: rungs for label, rungs, _ in cases(_machine())}
    counted = ncu.count(__name__, ["lowest"], LADDER)
    labels = re.findall(r"^launched (.+; \w+)$", counted.printed, re.MULTILINE)
    for label, part in split(counted.rows, labels):
        kernels = [stored(label, row, counted.metrics, LADDER) for row in part]
        case, _, side = label.rpartition("; ")
        rungs = list(ran[case]) if side == "ours" else []
        values = {"kernels": kernels, "unknown": list(counted.unknown)}
        yield {"of": "lowest", "label": label, "rungs": rungs}, values


def _machine() -> str:
    import torch

    return short_name(torch.cuda.get_device_name())


# --- the suite ------------------------------------------------------------------------------------


def jobs() -> list[Job]:
    """Return the jobs; the last needs the records of other suites."""
    found = []
    for dtype in ("float32", "float16"):
        names = tuple(rung.name for rung in of_dtype(dtype))
        shape = "x".join([str(EDGE)] * 3)
        found.append(Job(f"{shape} {dtype}", names, partial(take_ladder, shape, dtype)))
    for shape in SIZES:
        take = partial(take_ladder, shape, "float16", ",".join(FIT))
        found.append(Job(f"{shape} float16", FIT, take))
    found.append(Job("order", (ORDER_KERNEL,), take_order))
    ran = ("triton_best", "cuda_best", "cuda_split_k", "triton_fused", "triton_batched")
    found.append(Job("lowest", (*ran, "triton_grouped", "triton_fp8"), take_lowest))
    return found


SUITES = (
    Suite("counters", "Nsight Compute's counters of rungs, orders and slowest cases", jobs,
          "counters/{machine}.json", more=ncu.provenance),
)  # fmt: skip
LAUNCH = {"ladder": launch_ladder, "order": launch_order, "lowest": launch_lowest}

if __name__ == "__main__":
    LAUNCH[sys.argv[1]](*sys.argv[2:])
