"""A GPU's counters of one Triton kernel whose programs run in other orders, as JSON.

    python tools/take_order_counters.py --out FILE    on a GPU machine that has NVIDIA's `ncu`
    python tools/take_order_counters.py launch    what `ncu` runs

`launch` runs `triton_swizzled` on square float16 matrices of each edge with each GROUP_M,
spot-checks the product, and then lets `ncu` see one more launch of the same. GROUP_M of 1 is row by
row, one of as many tiles as there are is column by column. FILE is written whole or not at all; if
something fails after `ncu` ran, what it printed stays beside FILE, ending on .csv.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from take_counters import CountersError, known_metrics, provenance, read_rows
from take_ladder_counters import LONGEST_S, count, numbers_of

from tiled_matmul.files import replace_text
from tiled_matmul.measure import order_counters
from tiled_matmul.models.program_order import BLOCK

EDGES = (4096, 8192, 16384)
GROUPS = (1, 2, 4, 8, 16, 32, 128)
DTYPE = "float16"
KERNEL = "triton_swizzled"


def launch(edges: Sequence[int], groups: Sequence[int]) -> None:
    """Run each launch, check it, then run it once where the profiler looks. Raises MatmulError."""
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import triton_swizzled
    from tiled_matmul.problem import Problem

    profiler = torch.cuda.cudart()
    for edge in edges:
        a, b = Problem(edge, edge, edge, DTYPE).inputs(0, device="cuda")
        out = poison(a.new_empty((edge, edge)))
        for group_m in groups:
            start = time.monotonic()
            triton_swizzled.matmul(a, b, out, block=BLOCK, group_m=group_m)
            rows = torch.arange(0, edge, BLOCK[0], device="cuda")  # one of each tile
            assert_matmul(out[rows], a[rows], b)
            torch.cuda.synchronize()
            profiler.cudaProfilerStart()
            triton_swizzled.matmul(a, b, out, block=BLOCK, group_m=group_m)
            torch.cuda.synchronize()
            profiler.cudaProfilerStop()
            poison(out)
            print(f"launched {edge} {group_m}, {time.monotonic() - start:.1f} s", flush=True)


def stored(edge: int, group_m: int, row: Mapping[str, str], metrics: Sequence[str]) -> dict:
    """Return one launch as FILE holds it; a counter without a number is left out.

    Raises CountersError if the row is of another kernel or grid, or if a counter that the chapter
    needs has no number.
    """
    place = f"N={edge} GROUP_M={group_m}"
    tiles = -(-edge // BLOCK[0]) * -(-edge // BLOCK[1])
    grid = [int(size) for size in re.findall(r"\d+", row["Grid Size"])]
    if KERNEL not in row["Kernel Name"] or grid != [tiles, 1, 1]:
        raise CountersError(f"{place}: ncu counted {row['Kernel Name']} on a grid of {grid}")
    return {
        "edge": edge,
        "group_m": group_m,
        "kernel": row["Kernel Name"],
        "programs": tiles,
        "counters": numbers_of(place, row, metrics, order_counters),
    }


def take(out: Path, edges: Sequence[int], groups: Sequence[int]) -> None:
    """Take the counters and write them to `out`. Raises CountersError."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersError("ncu (NVIDIA Nsight Compute) is not on PATH")
    log = out.with_suffix(".csv")
    again = [sys.executable, str(Path(__file__).resolve()), "launch"]
    again += ["--edges", ",".join(map(str, edges)), "--groups", ",".join(map(str, groups))]
    metrics, unknown, table, printed = count(
        again, known_metrics(ncu), log, order_counters, ["--kernel-name", f"regex:{KERNEL}"]
    )
    launched = re.findall(r"^launched (\d+) (\d+),", printed, re.MULTILINE)
    rows = read_rows(table)
    if len(rows) != len(launched):
        raise CountersError(f"{len(launched)} launches, but ncu counted {len(rows)}")
    found = [
        stored(int(edge), int(group), row, metrics)
        for (edge, group), row in zip(launched, rows, strict=True)
    ]
    text = order_counters.as_text(provenance(ncu), DTYPE, BLOCK, unknown, found)
    order_counters.parse(json.loads(text))
    replace_text(out, text)
    log.unlink()
    for name in unknown:
        print(f"left out, ncu does not know it: {name}")
    print(f"{len(found)} launches, {len(metrics)} counters each: {out}")


def numbers(text: str) -> list[int]:
    """Read "4096,8192". Raises ValueError for anything but positive numbers."""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError(f"numbers must be positive, got {text}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mode", nargs="?", choices=("take", "launch"), default="take")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--edges", type=numbers, default=EDGES, help="edges of the matrices, A,B")
    parser.add_argument("--groups", type=numbers, default=GROUPS, help="GROUP_M to launch, A,B")
    chosen = parser.parse_args(arguments)
    if chosen.mode == "take" and chosen.out is None:
        parser.error("--out FILE says where the counters go")
    os.environ["TILED_MATMUL_BACKEND"] = "gpu"
    from tiled_matmul.check import MatmulError
    from tiled_matmul.machine import backend

    try:
        backend.select()
        if chosen.mode == "take":
            take(chosen.out, chosen.edges, chosen.groups)
        else:
            launch(chosen.edges, chosen.groups)
    except (backend.BackendError, CountersError, MatmulError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired:
        print(f"ncu took over {LONGEST_S} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
