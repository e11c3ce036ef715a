"""What a call costs the host: the microseconds until a launcher returns, and its first call.

The GPU is never waited for: products of EDGE³ take it less time than the host needs to ask.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tiled_matmul.measure.spent import CLOCK, COMPILER, spending
from tiled_matmul.measure.suite import Job, Suite

RUNGS = (
    *("cuda_naive", "cuda_best", "triton_block_pointers", "triton_swizzled", "triton_descriptors"),
    *("triton_persistent", "triton_split_k", "triton_two_widths", "gluon_shapes", "triton_best"),
)
BASELINE = "torch.matmul"
EDGE = 64  # M, N and K
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


def host_us(call: Callable) -> float:
    """Return the median of a call's microseconds on the host, which does not wait for the GPU."""
    for _ in range(WARM):
        call()
    with spending(CLOCK):
        return statistics.median(microseconds(call) for _ in range(ROUNDS))


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


def times() -> Iterator[tuple[dict, dict]]:
    """Yield each rung with the microseconds of a call, and the seconds of a first one."""
    with spending(CLOCK):
        taken = take(RUNGS, EDGE)
    for name, values in taken.items():
        if name in RUNGS:
            with spending(COMPILER), tempfile.TemporaryDirectory() as cache:
                first, again = (first_call(name, EDGE, cache) for _ in range(2))
            values |= {"first_s": first, "next_process_s": again}
        yield {"rung": name, "size": EDGE}, values


def jobs() -> list[Job]:
    """Return the one job: all rungs in turn."""
    return [Job("host", tuple(f"{name}, host" for name in RUNGS), times)]


SUITES = (
    Suite("host", "what a call costs the host, and a first call", jobs, "host/{machine}.json"),
)
