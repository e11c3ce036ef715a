"""Time layers with a fused epilogue against torch, and count their bytes, into results/fused/.

    python tools/bench_fused.py --out FILE [--seconds 100] [--workers 8] [--tuned 2] [--anew]

A layer is activation(x · wᵀ + bias) + residual. The baseline is torch's functions one after
another. First, --workers processes compile what will be timed. Then come a transformer block, the
bytes that `ncu` counts if it is there, and the layers; last, at AT_COMPILED, `torch.compile` of
them, by default and for the first --tuned of them with max-autotune. After --seconds nothing more
is begun, and another call goes on where FILE ends, if GPU, versions and commit are the same.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROUNDS = 11
ROWS = 256  # of C that are checked, from the first to the last
MOST_LAUNCHES = 20  # of a graph
SAME = ("gpu", "versions", "commit")
COMPILED, TUNED = "torch.compile", "max-autotune"
AT_COMPILED = ((8192, 8192, 2048), (16384, 4096, 64), (64, 4096, 11008), (1024, 1024, 1024))
AT_STEPS = ("GELU + residual", "GELU")
COUNTED = ((8192, 8192, 2048), (16384, 4096, 64))
METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
BLOCKS = {"8192 tokens, width 2048": (8, 1024, 2048), "256 tokens, width 512": (1, 256, 512)}


def operands(case: Any) -> tuple:
    """Return x (M, K), w (N, K), bias, residual or None, and memory for the result."""
    import torch

    numbers = torch.Generator("cuda").manual_seed(case.m + 3 * case.n + 7 * case.k)
    dtype = getattr(torch, case.dtype)

    def drawn(*shape: int, size: float = 1.0) -> Any:
        return (torch.randn(shape, device="cuda", generator=numbers) * size).to(dtype)

    x, w = drawn(case.m, case.k), drawn(case.n, case.k, size=case.k**-0.5)
    if case.weight == "n":
        w = w.T.contiguous().T
    out = torch.empty(case.m, case.n, dtype=dtype, device="cuda")
    return x, w, drawn(case.n), drawn(case.m, case.n) if case.residual else None, out


def layer_of(activation: str | None) -> Callable:
    """Return the layer of torch's functions, of x, w, bias and residual."""
    from torch.nn import functional

    from tiled_matmul.torch.fused import ACTIVATIONS

    def layer(x: Any, w: Any, bias: Any, residual: Any) -> Any:
        y = functional.linear(x, w, bias)
        if activation is not None:
            y = ACTIVATIONS[activation][0](y)
        return y if residual is None else y + residual

    return layer


def calls(case: Any, modes: Sequence[str]) -> tuple[dict[str, Callable], Callable]:
    """Return each way to compute a layer, by name, and a check of the fused one's result."""
    import torch

    from tiled_matmul.check import MatmulError, poison
    from tiled_matmul.ladder import triton_fused
    from tiled_matmul.measure.fused import OURS, TORCH

    x, w, bias, residual, out = operands(case)
    steps = {"bias": bias, "activation": case.activation, "residual": residual}
    layer = layer_of(case.activation)

    def fused() -> None:
        triton_fused.matmul(x, w.T, out=out, **steps)

    def check() -> None:
        poison(out)
        fused()
        rows = torch.linspace(0, case.m - 1, min(case.m, ROWS), device="cuda").long()
        some = None if residual is None else residual[rows].double()
        exact = layer(x[rows].double(), w.double(), bias.double(), some)
        unit = torch.finfo(out.dtype).eps
        wrong = ~((out[rows].double() - exact).abs() <= unit * (exact.abs() + 0.05))
        if bool(wrong.any()):
            raise MatmulError(f"{case}: {int(wrong.sum())} elements of {len(rows)} rows are wrong")

    found = {TORCH: lambda: layer(x, w, bias, residual), OURS: fused}
    for name, mode in ((COMPILED, "default"), (TUNED, "max-autotune-no-cudagraphs")):
        if name in modes:
            compiled = torch.compile(layer, mode=mode, dynamic=False)
            found[name] = lambda f=compiled: f(x, w, bias, residual)
    return found, check


def take(case: Any, modes: Sequence[str]) -> Any:
    """Check the fused layer, and return its Taken."""
    import torch

    from tiled_matmul.measure.clock import time_replays
    from tiled_matmul.measure.fused import TORCH, Taken

    with torch.no_grad():
        ways, check = calls(case, modes)
        check()
        timings = time_replays(ways, TORCH, rounds=ROUNDS, most=MOST_LAUNCHES)
    return Taken(
        case,
        {name: timing.median_ms for name, timing in timings.items()},
        {name: timing.spread for name, timing in timings.items()},
    )


def blocks() -> dict[str, dict[str, float]]:
    """Return the milliseconds of transformer blocks, forward and forward with backward."""
    import copy

    import torch
    from torch import nn

    from tiled_matmul.measure.clock import time_interleaved
    from tiled_matmul.torch import Linear, TransformerBlock

    def step(model: Any, x: Any, grad: Any) -> None:
        x = x.detach().requires_grad_()
        model.zero_grad(set_to_none=True)
        model(x).backward(grad)

    def forward(model: Any, x: Any, grad: Any) -> None:
        with torch.no_grad():
            model(x)

    found = {}
    for name, (batch, tokens, width) in BLOCKS.items():
        ours = TransformerBlock(width, width // 64, device="cuda", dtype=torch.bfloat16)
        theirs = copy.deepcopy(ours)
        for module in theirs.modules():
            if type(module) is Linear:
                module.__class__ = nn.Linear
        x, grad = (torch.randn(batch, tokens, width, device="cuda").bfloat16() for _ in range(2))
        for what, function in (("forward", forward), ("forward and backward", step)):
            ways = {
                key: lambda f=function, m=model, x=x, g=grad: f(m, x, g)
                for key, model in (("torch", theirs), ("ours", ours))
            }
            took = time_interleaved(ways, device="gpu", rounds=21)
            found[f"{name}, {what}"] = {key: t.median_ms for key, t in took.items()} | {
                f"{key} spread": t.spread for key, t in took.items()
            }
    return found


def launch(shape: tuple[int, ...], steps: str) -> None:
    """Run a layer of torch, then the fused one, where `ncu` looks."""
    import torch

    from tiled_matmul.measure.fused import Case

    with torch.no_grad():
        ways, _ = calls(Case(*shape, steps), ())
        flush = torch.empty(2**29, dtype=torch.uint8, device="cuda")
        for way in ways.values():
            way()
        for way in ways.values():
            flush.zero_()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStart()
            way()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStop()


def number(text: str) -> float:
    """Return a number of `ncu`'s, which has commas between its thousands."""
    return float(text.replace(",", ""))


def counted(shape: tuple[int, ...], steps: str) -> list[dict]:
    """Return each kernel of a layer of torch and of the fused one, with the bytes of memory."""
    command = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--profile-from-start", "off", "--cache-control", "none"]
    command += ["--metrics", ",".join(METRICS), sys.executable, __file__, "--launch", steps]
    done = subprocess.run(
        [*command, *map(str, shape)], capture_output=True, text=True, timeout=120, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode or not lines:
        raise RuntimeError(
            f"ncu ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
        )
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row["ID"]]
    return [
        {
            "kernel": row["Kernel Name"][:60],
            "read": number(row[METRICS[0]]),
            "written": number(row[METRICS[1]]),
        }
        for row in rows
    ]


def compile_ahead(workers: int, seconds: float) -> None:
    """Compile what will be timed in several processes, into Triton's cache."""
    command = [sys.executable, __file__, "--compile"]
    running = [subprocess.Popen([*command, str(i), str(workers)]) for i in range(workers)]
    ends = time.monotonic() + seconds
    for each in running:
        try:
            each.wait(max(0.1, ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.kill()


def compile_some(first: int, step: int) -> None:
    """Run every `step`-th layer once."""
    from tiled_matmul.measure.fused import cases

    for case in list(cases())[first::step]:
        calls(case, ())[1]()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument(
        "--seconds", type=float, default=100, help="begin no layer after this (100)"
    )
    parser.add_argument("--workers", type=int, default=8, help="processes that compile first (8)")
    parser.add_argument("--tuned", type=int, default=2, help="layers that torch tunes (2)")
    parser.add_argument("--anew", action="store_true", help="replace FILE instead of going on")
    parser.add_argument("--compile", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--launch", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("TILED_MATMUL_BACKEND", "gpu")
    from tiled_matmul import ladder  # noqa: F401  (chooses the back end)

    if chosen.compile:
        compile_some(*chosen.compile)
        return 0
    if chosen.launch:
        launch(tuple(map(int, chosen.launch[1:])), chosen.launch[0])
        return 0
    if chosen.out is None:
        parser.error("--out is needed")
    from tiled_matmul.files import replace_text
    from tiled_matmul.measure import fused
    from tiled_matmul.measure.provenance import provenance

    began = time.monotonic()
    origin, taken, more = provenance("gpu"), [], {}
    if chosen.out.exists() and not chosen.anew:
        more, taken = fused.load(chosen.out)
        before = more.pop("provenance")
        differ = [key for key in SAME if before.get(key) != origin[key]]
        if differ:
            parser.error(f"{chosen.out} is from another run ({', '.join(differ)}); use --anew")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)

    def left() -> float:
        return chosen.seconds - (time.monotonic() - began)

    def store() -> None:
        replace_text(chosen.out, fused.as_text(origin, taken, more))

    known = {each.case for each in taken}
    to_do = [case for case in fused.cases() if case not in known]
    if to_do and chosen.workers > 0:
        compile_ahead(chosen.workers, left() / 3)
    if "blocks" not in more and left() > 0:
        more["blocks"] = blocks()
        for name, ms in more["blocks"].items():
            print(f"{name}: {ms['torch']:.3f} ms, {ms['torch'] / ms['ours']:.3f} of torch")
    if "bytes" not in more and shutil.which("ncu") and left() > 0:
        more["bytes"] = {
            "×".join(map(str, shape)): counted(shape, "GELU + residual") for shape in COUNTED
        }
        for shape, rows in more["bytes"].items():
            for row in rows:
                megabytes = f"{row['read'] / 1e6:.0f} MB read, {row['written'] / 1e6:.0f} written"
                print(f"{shape}: {megabytes}: {row['kernel'][:40]}")
    for case in to_do:
        if left() <= 0:
            break
        taken.append(take(case, ()))
        ms = taken[-1].ms[fused.TORCH] * 1e3
        print(f"{case}: {ms:.1f} us, {taken[-1].ratio():.3f} of torch", flush=True)
        store()
    rows = more.setdefault("compiled", {})
    wanted = [fused.Case(*shape, steps) for steps in AT_STEPS for shape in AT_COMPILED]
    for i, (case, name) in enumerate(zip(wanted, map(str, wanted), strict=True)):
        if name in rows or left() <= 0:
            continue
        rows[name] = dict(take(case, (COMPILED, TUNED) if i < chosen.tuned else (COMPILED,)).ms)
        ratios = (f"{ms / rows[name][fused.OURS]:.3f} of {x}" for x, ms in rows[name].items())
        print(f"{name}: {', '.join(ratios)}", flush=True)
        store()
    store()
    print(f"{len(taken)} layers in {chosen.out}; {len(to_do) + len(known) - len(taken)} are left")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
