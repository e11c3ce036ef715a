"""Time the interpreter for Numba kernels against Numba's own simulator, on one kernel.

    python tools/bench_interpreter.py [--n 128] [--json FILE]

A tiled float32 product of n × n matrices with 16 × 16 blocks. Numba's simulator runs once,
because a run takes a minute. The interpreter runs three times without recording and three times
with it (a trace and all findings), before and after. The order is fixed, the inputs are random, and
each product is checked.
"""

import argparse
import json
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

# Numba's simulator has to be asked for before Numba is imported, and its jit taken before ours.
os.environ["TILED_MATMUL_BACKEND"] = "simulator"
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda, float32

from tiled_matmul.files import replace_text
from tiled_matmul.machine.device import cpu_name
from tiled_matmul.measure.provenance import versions
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.kernel import run

TILE = 16
TURNS = 3
WANTED = {"launch": 15, "trace": 6}  # times as fast as Numba's simulator, at least


def product(a, b, c):
    a_tile = cuda.shared.array((TILE, TILE), float32)
    b_tile = cuda.shared.array((TILE, TILE), float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for start in range(0, a.shape[1], TILE):
        a_tile[y, x] = a[row, start + x]
        b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    c[row, col] = acc


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--n", type=int, default=128, help=f"edge of the matrices, a multiple of {TILE} (128)"
    )
    parser.add_argument("--json", type=Path, help="the JSON file to write the times to")
    args = parser.parse_args()
    if args.n < TILE or args.n % TILE:
        parser.error(f"--n must be a positive multiple of {TILE}, got {args.n}")
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((args.n, args.n)).astype(np.float32) for _ in range(2))
    grid, block = (args.n // TILE,) * 2, (TILE, TILE)
    simulated = cuda.jit(product)

    def seconds(work) -> float:
        c = np.full_like(a, np.nan)
        start = time.process_time()  # of this process, whatever else the machine does
        work(c)
        taken = time.process_time() - start
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
        return taken

    works = {
        "launch": lambda c: run(product, grid, block, a, b, c),
        "trace": lambda c: trace(product, grid, block, a, b, c).findings,
        "numba": lambda c: simulated[grid, block](a, b, c),
    }
    print(f"{args.n}×{args.n}×{args.n} float32, tiles of {TILE}, {cpu_name()}", flush=True)
    times: dict[str, list[float]] = {name: [] for name in works}
    turns = ["launch", "trace"] * (TURNS // 2 + 1)
    for name in (*turns, "numba", *reversed(turns)):
        times[name].append(seconds(works[name]))
    median = {name: statistics.median(taken) for name, taken in times.items()}
    for name, taken in times.items():
        spread = (max(taken) - min(taken)) / median[name]
        against = f"{median['numba'] / median[name]:.1f} times as fast" if name in WANTED else ""
        print(f"{name:8} {median[name]:8.3f} s  spread {spread:4.0%}  {against}".rstrip())
    slow = [name for name, least in WANTED.items() if median["numba"] < least * median[name]]
    for name in slow:
        print(f"{name} should be {WANTED[name]} times as fast as Numba's simulator")
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "n": args.n,
            "tile": TILE,
            "seconds": times,
            "cpu": cpu_name(),
            "versions": versions("cpu"),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        replace_text(args.json, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
