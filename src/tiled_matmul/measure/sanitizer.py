"""NVIDIA's compute-sanitizer over every GPU rung of the ladder, on small ragged products.

memcheck looks for accesses outside of allocations, racecheck for shared memory that threads use
without a barrier between them, in Numba's rungs only: Triton's barriers are its compiler's, of
kinds that racecheck does not know. A job fails if either finds anything in a rung, or misses the
fault that is planted for it. Each runs this module under the tool.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tiled_matmul.measure.provenance import versions as versions_of
from tiled_matmul.measure.spent import CLOCK, spending
from tiled_matmul.measure.suite import Job, Suite, Taken

PLANTED = {"memcheck": "planted_store_past_the_end", "racecheck": "planted_missing_barrier"}
TOOLS = tuple(PLANTED)
# Ragged in everything; then one that is odd, so that no wide access fits; and, for tiles of up to
# 128, several blocks and tiles along K, with and without rows that begin on 16 bytes.
SHAPES = {
    "memcheck": ("70x50x90", "33x35x37", "130x140x52", "131x139x41"),
    "racecheck": ("70x50x40", "33x35x37", "130x140x52"),
}
# How a matrix may lie: each has memory of its own, in which nothing follows its last element.
VIEWED = "64x64x64"
VIEWS = {
    "one column for all": lambda x: x[:, :1].clone().cuda().expand(x.shape),
    "one row for all": lambda x: x[:1].clone().cuda().expand(x.shape),
    "one element for all": lambda x: x[:1, :1].clone().cuda().expand(x.shape),
    "by columns": lambda x: x.T.contiguous().cuda().T,
    "every second column": lambda x: x.repeat_interleave(2, 1).cuda()[:, ::2],
    "61 columns of 64": lambda x: x.cuda()[:61, :61],
    "beginning beside 16 bytes": lambda x: x.flatten()[:3601].cuda()[1:].view(60, 60),
}
FOUND = 86  # compute-sanitizer's exit status when it found something
LONGEST_S = 400
SUMMARY = re.compile(r"^=+ (?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", re.M)


class SanitizeError(RuntimeError):
    """A tool found a fault, or could not run; the message names it and shows the log."""


def launch(tool: str) -> None:
    """Run every rung at the shapes for `tool`, checking each product."""
    import torch

    from tiled_matmul.check import assert_matmul, run_checked
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.problem import Problem, as_layout

    for rung in LADDER:
        if not looked_at(rung, tool):
            continue
        start = time.monotonic()
        for shape in SHAPES[tool]:
            a, b = Problem.parse(shape, rung.dtype).inputs(1, "integers", "cpu")
            run_checked(on_cpu(rung), *as_layout(a, b, rung.layout))
        if rung.language.strided:
            a, b = Problem.parse(VIEWED, rung.dtype).inputs(1, "integers", "cpu")
            for view in VIEWS.values():
                x, y = view(a), view(b)
                assert_matmul(rung.matmul(x, y).cpu(), x.cpu(), y.cpu())
        torch.cuda.synchronize()
        print(f"ran {rung.name}, {time.monotonic() - start:.1f} s", flush=True)


def looked_at(rung, tool: str) -> bool:
    """Does `tool` look at this rung, if its language is installed?"""
    return rung.available and tool in rung.language.sanitizers


def on_cpu(rung):
    """Return the rung's matmul for CPU tensors, so that the checker runs no kernel of its own."""

    def matmul(a, b, out=None):
        c = rung.matmul(a.cuda(), b.cuda())
        return out.copy_(c)

    return matmul


def plant(tool: str) -> None:
    """Launch a kernel with the fault that `tool` is for."""
    import torch
    from numba import cuda, float32

    from tiled_matmul.kit.launch import launch as launch_kernel

    @cuda.jit
    def planted_missing_barrier(x, y):
        shared = cuda.shared.array(64, float32)
        i = cuda.threadIdx.x
        shared[i] = x[i]
        y[i] = shared[63 - i]

    @cuda.jit
    def planted_store_past_the_end(x, y):
        i = cuda.threadIdx.x
        y[i + 1] = x[i]

    kernel = planted_missing_barrier if tool == "racecheck" else planted_store_past_the_end
    x, y = torch.ones(64).cuda(), torch.zeros(64).cuda()
    launch_kernel(kernel, (1,), (64,), x, y)
    torch.cuda.synchronize()
    print(f"ran {kernel.py_func.__name__}", flush=True)


def count(log: str) -> int:
    """Return how many errors or hazards a log's summary counts. Raises SanitizeError without it."""
    found = SUMMARY.findall(log)
    if not found:
        raise SanitizeError(f"compute-sanitizer printed no summary:\n{log[-3000:]}")
    return max(int(errors or hazards) for errors, hazards in found)


def ends(log: str, characters: int = 3000) -> str:
    """Return a long log without its middle."""
    if len(log) <= 2 * characters:
        return log
    return f"{log[:characters]}\n…\n{log[-characters:]}"


def run(tool: str, mode: str) -> dict[str, Any]:
    """Run this module's `mode` under `tool`; return how much it found, and what ran.

    Raises SanitizeError.
    """
    if shutil.which("compute-sanitizer") is None:
        raise SanitizeError("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND)]
    if tool == "memcheck":  # Numba asks the driver for functions that it may not have: no error
        command += ["--report-api-errors", "no"]
    command += [sys.executable, "-m", __name__, mode, tool]
    # An allocation for each tensor: in torch's own pool a store past a tensor's end hits the next.
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    try:
        with spending(CLOCK):
            ended = subprocess.run(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LONGEST_S,
            )
    except subprocess.TimeoutExpired as late:
        raise SanitizeError(f"{tool} {mode} took over {LONGEST_S} s:\n{late.stdout}") from None
    found = count(ended.stdout)
    ran = re.findall(r"^ran (\w+)", ended.stdout, re.MULTILINE)
    if mode == "launch" and (found or ended.returncode):
        raise SanitizeError(
            f"{tool} found {found} in the ladder (exit status {ended.returncode}; the last rung "
            f"without a fault: {ran[-1] if ran else 'none'}):\n{ends(ended.stdout)}"
        )
    if mode == "plant" and not found:
        raise SanitizeError(f"{tool} missed the planted fault:\n{ends(ended.stdout)}")
    return {"found": found, "ran": ran}


def take(tool: str) -> Iterator[Taken]:
    """Yield what `tool` found of the planted fault and of each rung. Raises SanitizeError."""
    from tiled_matmul.ladder import rung

    planted = run(tool, "plant")
    clean = run(tool, "launch")
    if clean["ran"] != names(tool):
        raise SanitizeError(f"{tool}: ran {clean['ran']} and not {names(tool)}")
    yield {"tool": tool, "planted": PLANTED[tool], "rungs": []}, {"found": planted["found"]}
    looked = {"found": 0, "shapes": list(SHAPES[tool])}
    for name in clean["ran"]:
        views = {"views": list(VIEWS)} if rung(name).language.strided else {}
        yield {"tool": tool, "rung": name}, looked | views


def names(tool: str) -> list[str]:
    """Return the names of the rungs that a tool looks at."""
    from tiled_matmul.ladder import LADDER

    return [rung.name for rung in LADDER if looked_at(rung, tool)]


def more() -> dict[str, Any]:
    """Return what the tools add to a run's provenance."""
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True)
    found = re.search(r"(\d+\.\d+\.\d+[.\d]*)", version.stdout)
    versions = versions_of("gpu")
    return {"versions": versions | {"compute-sanitizer": found[1] if found else version.stdout}}


def jobs() -> list[Job]:
    """Return a job for each tool."""
    return [Job(tool, tuple(names(tool)), partial(take, tool)) for tool in TOOLS]


SUITES = (
    Suite("sanitizer", "compute-sanitizer over the ladder", jobs, "sanitizer/{machine}.json",
          more=more),
)  # fmt: skip
MODES: dict[str, Callable] = {"launch": launch, "plant": plant}

if __name__ == "__main__":
    MODES[sys.argv[1]](sys.argv[2])
