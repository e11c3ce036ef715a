"""Time one product over all GPUs of this machine, into results/many/.

    python tools/bench_many.py --out FILE [--sizes 2048,4096,8192,16384]

Cuts are checked first, and the bytes that they move counted twice: from their calls, and by the
links. Then transfers alone are timed, then cuts beside torch's own ways. Times are of the slowest
rank, but for a trace of rank 0.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DTYPES = ("float16", "bfloat16")
SIZES = "2048,4096,8192,16384"
CHECKED, COUNTED, CALLS = (384, 512, 640), 4096, 20
TRACED = {"names": ("ring", "pulled"), "m": 8192, "n": 8192, "k": 8192, "dtype": "float16"}
# How many channels NCCL has for sends and receives; ranks share them.
SETTINGS = (
    {}, {"NCCL_MIN_P2P_NCHANNELS": "64"},
    {"NCCL_MAX_P2P_NCHANNELS": "16"}, {"NCCL_MAX_P2P_NCHANNELS": "8"},
)  # fmt: skip
TRANSFERS = [2**power for power in range(12, 31, 2)]
ALONE = ("one GPU", "one GPU, torch", "product", "product, torch", "product, in parts")
BARE = ("transfer, gathered", "transfer, pulled")
BY_TORCH = ("torch, gathered", "torch, fused", "torch, DTensor")


def slowest(reports: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return for each name the time of the slowest rank, and the largest spread."""
    return {
        name: {key: max(each[name][key] for each in reports) for key in ("ms", "spread")}
        for name in reports[0]
    }


def tasks(sizes: Sequence[int], ranks: int) -> list[dict[str, Any]]:
    """Return what the ranks do, in this order."""
    from tiled_matmul.many.cuts import CUTS

    m, n, k = (size * ranks for size in CHECKED)
    checked = {"do": "check", "m": m, "n": n, "k": k, "dtype": "float16", "whole": True}
    square = dict.fromkeys("mnk", COUNTED) | {"dtype": "float16"}
    found = [checked | {"cut": cut} for cut in CUTS]
    found.append({"do": "moved", "names": list(CUTS), "calls": CALLS} | square)
    found.append({"do": "link", "bytes": TRANSFERS})
    found.append({"do": "trace"} | TRACED)
    names = [*ALONE, *BARE, *BY_TORCH, *CUTS, "pulled, from shared"]
    for dtype in DTYPES:
        for size in sizes:
            same = {"do": "time", "dtype": dtype, "seed": size, "m": size, "k": size}
            found.append(same | {"n": size, "names": names})
            # As much work for each GPU as one has above.
            wide = ["product", "columns", "gathered", "pulled", "pulled, from shared"]
            found.append(same | {"n": size * ranks, "names": wide})
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--sizes", default=SIZES, help=f"M, N and K ({SIZES})")
    given = parser.parse_args(arguments)
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    import torch

    from tiled_matmul.files import replace_text
    from tiled_matmul.many import run
    from tiled_matmul.many.cuts import GPUS_ONLY
    from tiled_matmul.measure.provenance import provenance

    if (ranks := torch.cuda.device_count()) < 2:
        parser.error(f"this takes two GPUs or more, and there is {ranks}")
    todo = tasks([int(size) for size in given.sizes.split(",")], ranks)
    reports = run(todo, ranks, device="cuda", timeout_s=50)
    taken: dict[str, Any] = {"provenance": provenance("gpu"), "ranks": ranks}
    taken |= {"checked": [], "moved": {}, "link": {}, "times": [], "sends": []}
    for task, each in zip(todo, zip(*reports, strict=True), strict=True):
        if task["do"] == "check":
            counted = None  # of what copy engines pull, calls say nothing
            if task["cut"] not in GPUS_ONLY:
                counted = max(report["received"] for report in each)
            taken["checked"].append({key: task[key] for key in ("cut", *"mnk")})
            taken["checked"][-1] |= {"received": counted, "held": each[0]["held"]}
        elif task["do"] == "moved":
            for name in task["names"]:
                found = [report[name] for report in each]
                taken["moved"][name] = None if None in found else max(found)
            taken["moved_at"] = task["m"]
        elif task["do"] == "link":
            for way in each[0]:
                taken["link"][way] = slowest([report[way] for report in each])
        elif task["do"] == "trace":
            taken["traced"] = each[0] | {"at": task["m"]}
        else:
            times = slowest([report["times"] for report in each])
            product = {key: task[key] for key in ("m", "n", "k", "dtype")}
            taken["times"].append(product | {"times": times})
            alone = times["product"]["ms"]
            print(product, ", ".join(f"{x} {y['ms'] / alone:.2f}" for x, y in times.items()))
    for settings in SETTINGS:
        todo = [{"do": "sends", "bytes": TRANSFERS}]
        reports = run(todo, ranks, device="cuda", timeout_s=50, settings=settings)
        sent = slowest([report[0] for report in reports])
        for size, one in sent.items():
            one["blocks"] = reports[0][0][size]["blocks"]
        taken["sends"].append({"settings": settings, "sent": sent})
    given.out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(given.out, json.dumps(taken, indent=1) + "\n")
    print(f"{len(taken['times'])} products on {ranks} GPUs in {given.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
