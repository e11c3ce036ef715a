"""The interpreter for Numba kernels beside Numba's own simulator, on one kernel.

A tiled float32 product of n × n matrices with blocks of 16 × 16. Numba's simulator runs once,
because a run takes a minute, in a process of its own. The interpreter runs four times without
recording and four times with it (a trace and all findings), in turn. The inputs are random, and
each product is checked.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiled_matmul.measure.spent import CLOCK, spending
from tiled_matmul.measure.suite import Job, Suite

TILE, EDGE = 16, 128
TURNS = 2
# Numba's simulator is timed in a process that does not import the course: with it, kernels run in
# the course's interpreter, also those that were decorated before.
NUMBA = """
import json, sys, time
from typing import Any
import numpy as np
from numba import cuda, float32
TILE = {tile}
{functions}
edge = int(sys.argv[1])
launch = cuda.jit(product)[(edge // TILE,) * 2, (TILE, TILE)]
print(json.dumps({{"numba": [seconds_of(launch, *operands(edge))]}}))
"""
COURSE = """
import json, sys
from tiled_matmul.measure import interpreter
print(json.dumps(interpreter.turns_of(int(sys.argv[1]))))
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


def operands(edge: int) -> tuple:
    """Return A, B and a C without numbers, of edge × edge elements."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((edge, edge)).astype(np.float32) for _ in range(2))
    return a, b, np.full_like(a, np.nan)


def seconds_of(work: Any, a: Any, b: Any, c: Any) -> float:
    """Return the seconds of `work(a, b, c)` in this process, whatever else the machine does."""
    start = time.process_time()
    work(a, b, c)
    seconds = time.process_time() - start
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
    return seconds


def turns_of(edge: int) -> dict[str, list[float]]:
    """Return the seconds of the course's launches and traces, in turn."""
    from numba import cuda, float32

    from tiled_matmul.microscope.cuda import trace
    from tiled_matmul.microscope.cuda.kernel import run

    launch = product_on(cuda, float32), (edge // TILE,) * 2, (TILE, TILE)
    works = {
        "launch": lambda *arrays: run(*launch, *arrays),
        "trace": lambda *arrays: trace(*launch, *arrays).findings,
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for name in (*works, *reversed(works)) * TURNS:
        times[name].append(seconds_of(works[name], *operands(edge)))
    return times


def times(edge: int = EDGE) -> Iterator[tuple[dict, dict]]:
    """Yield the seconds of each way. Raises RuntimeError with what the process printed."""
    environment = {"TILED_MATMUL_BACKEND": "simulator", "NUMBA_ENABLE_CUDASIM": "1"}
    inner = inspect.getsource(product_on).partition("    def ")
    kernel = textwrap.dedent("".join(inner[1:]).replace("return product", ""))  # of globals
    functions = "\n".join([kernel, *map(inspect.getsource, (operands, seconds_of))])
    taken: dict[str, list[float]] = {}
    for program in (COURSE, NUMBA.format(tile=TILE, functions=functions)):
        with spending(CLOCK):
            done = subprocess.run(
                [sys.executable, "-c", program, str(edge)],
                env=os.environ | environment,
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise RuntimeError(f"the interpreter was not timed: {done.stdout}{done.stderr}")
        taken |= json.loads(done.stdout.splitlines()[-1])
    for way in WAYS:
        yield {"way": way, "n": edge, "tile": TILE}, {"seconds": taken[way]}


def jobs() -> list[Job]:
    """Return the one job."""
    return [Job("interpreter", ("measure.interpreter::product_on",), times)]


SUITES = (
    Suite("interpreter", "the microscope beside Numba's simulator", jobs,
          "interpreter/{machine}.json", machine="cpu"),
)  # fmt: skip
