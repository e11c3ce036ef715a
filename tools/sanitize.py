"""NVIDIA's compute-sanitizer over every GPU rung of the ladder, on small ragged products.

    python tools/sanitize.py --out FILE    on a GPU machine that has `compute-sanitizer`
    python tools/sanitize.py launch TOOL    run under TOOL: every rung, products checked
    python tools/sanitize.py plant TOOL    run under TOOL: a kernel with a fault that TOOL must find

memcheck looks for accesses outside of allocations, racecheck for shared memory that threads use
without a barrier between them, in Numba's rungs only: Triton's barriers are its compiler's, of
kinds that racecheck does not know. It fails if either finds anything in a rung, or misses the
planted fault. FILE receives a JSON of what was run and found.
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
from collections.abc import Sequence
from pathlib import Path

TOOLS = ("memcheck", "racecheck")
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


def launch(tool: str, names: Sequence[str] | None) -> None:
    """Run every rung at the shapes for `tool`, checking each product."""
    import torch

    from tiled_matmul.check import assert_matmul, run_checked
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.problem import Problem, as_layout

    for rung in LADDER:
        if not looked_at(rung, tool) or (names is not None and rung.name not in names):
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


def run(tool: str, mode: str, rungs: str | None = None) -> dict:
    """Run this file's `mode` under `tool`; return what is stored of it. Raises SanitizeError."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND)]
    if tool == "memcheck":  # Numba asks the driver for functions that it may not have: no error
        command += ["--report-api-errors", "no"]
    command += [sys.executable, str(Path(__file__).resolve()), mode, tool]
    command += ["--rungs", rungs] if rungs else []
    # An allocation for each tensor: in torch's own pool a store past a tensor's end hits the next.
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    start = time.monotonic()
    try:
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
    seconds = time.monotonic() - start
    found = count(ended.stdout)
    ran = re.findall(r"^ran (\w+)", ended.stdout, re.MULTILINE)
    print(f"{tool} {mode}: {found} found, {len(ran)} ran, {seconds:.0f} s", flush=True)
    if mode == "launch" and (found or ended.returncode):
        raise SanitizeError(
            f"{tool} found {found} in the ladder (exit status {ended.returncode}; the last rung "
            f"without a fault: {ran[-1] if ran else 'none'}):\n{ends(ended.stdout)}"
        )
    if mode == "plant" and not found:
        raise SanitizeError(f"{tool} missed the planted fault:\n{ends(ended.stdout)}")
    return {"found": found, "ran": ran, "seconds": round(seconds, 1)}


def sanitize(out: Path, rungs: str | None) -> None:
    """Run both tools and write `out`. Raises SanitizeError after both have run."""
    from tiled_matmul.files import replace_text
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.measure.provenance import provenance

    if shutil.which("compute-sanitizer") is None:
        raise SanitizeError("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    asked = None if rungs is None else rungs.split(",")
    rungs_of = [r for r in LADDER if asked is None or r.name in asked]
    wanted = {tool: [r.name for r in rungs_of if looked_at(r, tool)] for tool in TOOLS}
    failed, reports = [], {}
    for tool in TOOLS:
        try:
            planted = run(tool, "plant")
            clean = run(tool, "launch", rungs)
        except SanitizeError as error:
            failed.append(str(error))
            continue
        if clean["ran"] != wanted[tool]:
            failed.append(f"{tool}: ran {clean['ran']} and not {wanted[tool]}")
        reports[tool] = {"shapes": SHAPES[tool], "ladder": clean, "planted": planted}
        if tool == "memcheck":
            reports[tool]["views"] = {"shape": VIEWED, "of": list(VIEWS)}
    if failed:
        raise SanitizeError("\n".join(failed))
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True)
    found = re.search(r"(\d+\.\d+\.\d+[.\d]*)", version.stdout)
    report = provenance("gpu") | {"tools": reports}
    report["versions"]["compute-sanitizer"] = found[1] if found else version.stdout.strip()
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(out, json.dumps(report, indent=1) + "\n")
    print(f"nothing found in {len(wanted['memcheck'])} rungs, both planted faults found: {out}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mode", nargs="?", choices=("all", "launch", "plant"), default="all")
    parser.add_argument(
        "tool", nargs="?", choices=TOOLS, help="launch, plant: the tool whose kernels are run"
    )
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--rungs", metavar="A,B", help="names of the rungs (all)")
    chosen = parser.parse_args(arguments)
    if (chosen.mode == "all") != (chosen.tool is None):
        parser.error("a tool is for launch and plant, which need one")
    if chosen.mode == "all" and chosen.out is None:
        parser.error("--out FILE says where the report goes")
    os.environ["TILED_MATMUL_BACKEND"] = "gpu"
    from tiled_matmul.machine import backend

    try:
        backend.select()
        if chosen.mode == "launch":
            launch(chosen.tool, chosen.rungs.split(",") if chosen.rungs else None)
        elif chosen.mode == "plant":
            plant(chosen.tool)
        else:
            sanitize(chosen.out, chosen.rungs)
    except (backend.BackendError, SanitizeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
