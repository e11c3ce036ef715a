"""Time what a call costs the host: the microseconds until a launcher returns, and its first call.

    python tools/host_time.py [--size 64] [--out FILE] [RUNG ...]

The GPU is never waited for: products of 64³ take it less time than the host needs to ask for them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

RUNGS = (
    *("cuda_naive", "cuda_best", "triton_block_pointers", "triton_swizzled", "triton_descriptors"),
    *("triton_persistent", "triton_split_k", "triton_two_widths", "triton_gluon", "triton_best"),
)
BASELINE = "torch.matmul"
ROUNDS, CALLS, WARM = 15, 100, 20  # rounds of calls, calls of a round, calls before


def operands(matmul: Any, size: int, dtypes: Sequence[str]) -> tuple:
    """Return a, b and out (size, size), of float16 where the rung takes it."""
    import torch

    dtype = getattr(torch, "float16" if "float16" in dtypes else "float32")
    a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    return a, b, torch.empty_like(a)


def microseconds(call: Callable) -> float:
    """Return the mean time until a call returns, over CALLS calls that the GPU keeps up with."""
    import torch

    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    took = time.perf_counter() - began
    torch.cuda.synchronize()
    return took / CALLS * 1e6


def take(names: Sequence[str], size: int) -> dict[str, dict]:
    """Return for each rung, and for torch, the median and the spread of a call's microseconds."""
    import torch

    from tiled_matmul.ladder import rung

    calls: dict[str, Callable] = {}
    for name in names:
        made = rung(name)
        a, b, out = operands(made, size, made.dtypes)
        calls[name] = lambda f=made.matmul, a=a, b=b, out=out: f(a, b, out=out)
    a, b, out = operands(None, size, ("float16",))
    calls[BASELINE] = lambda: torch.matmul(a, b, out=out)
    for call in calls.values():
        for _ in range(WARM):
            call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            taken[name].append(microseconds(call))
    return {
        name: {"us": statistics.median(times), "spread": max(times) / min(times) - 1}
        for name, times in taken.items()
    }


FIRST = """
import sys, time, torch
from tiled_matmul.ladder import rung
made = rung(sys.argv[1])
size = int(sys.argv[2])
dtype = torch.float16 if "float16" in made.dtypes else torch.float32
a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
torch.matmul(a, b)
torch.cuda.synchronize()
began = time.perf_counter()
made.matmul(a, b)
torch.cuda.synchronize()
print(time.perf_counter() - began)
"""


def first_call(name: str, size: int, cache: str) -> float:
    """Return the seconds of a rung's first call in a new process, with caches in a folder."""
    environment = os.environ | {"TRITON_CACHE_DIR": cache, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST, name, str(size)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rungs", nargs="*", default=RUNGS, help="names of rungs")
    parser.add_argument("--size", type=int, default=64, help="M, N and K (64)")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    given = parser.parse_args(arguments)
    taken = take(given.rungs, given.size)
    for name in given.rungs:
        with tempfile.TemporaryDirectory() as cache:
            first, again = (first_call(name, given.size, cache) for _ in range(2))
        taken[name] |= {"first_s": first, "next_process_s": again}
    print("rung                      a call, us   spread   first call, s   in the next process, s")
    for name, one in taken.items():
        seconds = "".join(
            f"{one[key]:16.2f}" for key in ("first_s", "next_process_s") if key in one
        )
        print(f"{name:24} {one['us']:11.1f} {one['spread']:8.0%} {seconds}")
    if given.out is not None:
        from tiled_matmul.files import replace_text
        from tiled_matmul.measure.provenance import provenance

        record = {"provenance": provenance("gpu"), "size": given.size, "host": taken}
        given.out.parent.mkdir(parents=True, exist_ok=True)
        replace_text(given.out, json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
