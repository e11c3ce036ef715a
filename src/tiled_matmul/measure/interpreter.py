"""The interpreter for Numba kernels beside Numba's own simulator, on one kernel.

A tiled float32 product of n × n matrices with blocks of 16 × 16. Numba's simulator runs once,
because a run takes a minute. The interpreter runs three times without recording and three times
with it (a trace and all findings), before and after. The order is fixed, the inputs are random, and
each product is checked. Numba's simulator has to be asked for before Numba is imported, and its
`cuda` taken before this package is, so a process of its own does this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tiled_matmul.measure.spent import CLOCK, spending
from tiled_matmul.measure.suite import Job, Suite

TILE, EDGE = 16, 128
TURNS = 3
PROCESS = """
import json, sys
from numba import cuda, float32
from numba.cuda.simulator.kernel import FakeCUDAKernel
parts = {name: part for name, part in vars(FakeCUDAKernel).items() if name not in ("__dict__", "__weakref__")}
jit = type("Own", (), parts)  # Numba's own: the course makes kernels run in its interpreter
from tiled_matmul.measure import interpreter
print(json.dumps(interpreter.seconds_of(int(sys.argv[1]), cuda, float32, jit)))
"""
WAYS = ("launch", "trace", "numba")


def product_on(cuda: Any, float32: Any) -> Any:
    """Return the kernel, with the names of a `cuda` and a float32."""

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

    return product


def seconds_of(edge: int, cuda: Any, float32: Any, jit: Callable) -> dict[str, list[float]]:
    """Return the seconds of each run, by way, with `cuda` and `jit` of Numba's simulator."""
    from tiled_matmul.microscope.cuda import trace
    from tiled_matmul.microscope.cuda.kernel import run

    product = product_on(cuda, float32)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((edge, edge)).astype(np.float32) for _ in range(2))
    grid, block = (edge // TILE,) * 2, (TILE, TILE)
    simulated = jit(product, False)
    works = {
        "launch": lambda c: run(product, grid, block, a, b, c),
        "trace": lambda c: trace(product, grid, block, a, b, c).findings,
        "numba": lambda c: simulated[grid, block](a, b, c),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    turns = ["launch", "trace"] * (TURNS // 2 + 1)
    for name in (*turns, "numba", *reversed(turns)):
        c = np.full_like(a, np.nan)
        start = time.process_time()  # of this process, whatever else the machine does
        works[name](c)
        times[name].append(time.process_time() - start)
        np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
    return times


def times(edge: int = EDGE) -> Iterator[tuple[dict, dict]]:
    """Yield the seconds of each way. Raises RuntimeError with what the process printed."""
    environment = {"TILED_MATMUL_BACKEND": "simulator", "NUMBA_ENABLE_CUDASIM": "1"}
    with spending(CLOCK):
        done = subprocess.run(
            [sys.executable, "-c", PROCESS, str(edge)],
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"the interpreter was not timed: {done.stdout}{done.stderr}")
    taken = json.loads(done.stdout.splitlines()[-1])
    for way in WAYS:
        yield {"way": way, "n": edge, "tile": TILE}, {"seconds": taken[way]}


def jobs() -> list[Job]:
    """Return the one job."""
    return [Job("interpreter", ("measure.interpreter::product_on",), times)]


SUITES = (
    Suite("interpreter", "the microscope beside Numba's simulator", jobs,
          "interpreter/{machine}.json", machine="cpu"),
)  # fmt: skip
