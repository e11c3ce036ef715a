"""`python -m tiled_matmul trace`: trace a rung, or a kernel in a file."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

VIEWS = ("line", "array", "block", "warp")


def add_parser(commands: Any) -> None:
    """Add the command `trace` to the command line; `args.run(args)` returns the exit status."""
    parser = commands.add_parser(
        "trace",
        help="run a kernel in the interpreter; report its memory accesses and its faults",
        description="The exit status is 1 if the kernel has a fault.",
        epilog="An argument of a kernel in a file: float32[64,64] is an array of random numbers, "
        "float32[64,64]=0 an array of zeros, 64 an int, 0.5 a float.",
    )
    parser.add_argument("target", metavar="FILE.py:KERNEL | RUNG", help="the kernel to trace")
    in_file = "for a kernel in a file"
    parser.add_argument("--grid", metavar="X,Y,Z", help=f"{in_file}: blocks along each axis")
    parser.add_argument("--block", metavar="X,Y,Z", help=f"{in_file}: threads along each axis")
    parser.add_argument(
        "--args", nargs="+", default=[], metavar="A", help=f"{in_file}: its arguments, see below"
    )
    parser.add_argument(
        "--sharedmem",
        type=int,
        default=0,
        metavar="BYTES",
        help=f"{in_file}: dynamic shared memory (0)",
    )
    parser.add_argument(
        "--shape", default="32x32x32", metavar="MxNxK", help="for a rung: problem size (32x32x32)"
    )
    parser.add_argument(
        "--dtype", default="float32", help="for a rung: element type of A, B and C (float32)"
    )
    parser.add_argument(
        "--by", choices=VIEWS, help="also list the counts of each line, array, block or warp"
    )
    parser.add_argument(
        "--order",
        default="forward",
        help="order in which blocks and threads run: forward, reverse or shuffle (forward)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the shuffled order and of random inputs (0)"
    )
    parser.set_defaults(run=_trace)


def _trace(args: argparse.Namespace) -> int:
    from tiled_matmul.kit import backend

    backend.select()
    faulty = False
    for t in _rung_traces(args) if ":" not in args.target else [_file_trace(args)]:
        print(t)
        if args.by is not None:
            print()
            print(getattr(t, f"by_{args.by}")())
        faulty |= bool(t.findings)
    return int(faulty)


def _rung_traces(args: argparse.Namespace) -> list:
    from tiled_matmul.kit import backend
    from tiled_matmul.ladder import rung
    from tiled_matmul.problem import Problem

    chosen = rung(args.target)
    if why := chosen.language.untraced():
        raise ValueError(f"{chosen.name} {why}")
    if args.args or args.grid or args.block or args.sharedmem:
        raise ValueError(
            f"{chosen.name} is a rung and launches itself; it takes --shape and --dtype"
        )
    device = "cuda" if backend.select().on_gpu else "cpu"
    a, b = Problem.parse(args.shape, args.dtype).inputs(args.seed, device=device)
    return chosen.language.trace(chosen.matmul, a, b, order=args.order, seed=args.seed)


def _file_trace(args: argparse.Namespace) -> Any:
    from tiled_matmul.microscope.cuda import trace

    kernel = _kernel(args.target)
    if args.grid is None or args.block is None:
        raise ValueError("a kernel in a file needs --grid and --block")
    arguments = [_argument(text, args.seed + place) for place, text in enumerate(args.args)]
    return trace(
        kernel,
        _sizes("--grid", args.grid),
        _sizes("--block", args.block),
        *arguments,
        sharedmem=args.sharedmem,
        order=args.order,
        seed=args.seed,
    )


def _kernel(target: str) -> Any:
    path, _, name = target.rpartition(":")
    if not Path(path).is_file():
        raise ValueError(
            f"there is no file {path!r}; the target is FILE.py:KERNEL or a rung's name"
        )
    spec = importlib.util.spec_from_file_location("traced_file", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        kernels = ", ".join(n for n, v in vars(module).items() if hasattr(v, "py_func"))
        raise ValueError(f"{path} has no {name!r}; its kernels: {kernels or 'none'}")
    return getattr(module, name)


def _sizes(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{option} must be numbers with commas between, got {text!r}") from None


def _argument(text: str, seed: int) -> Any:
    """Return the number or array that one of --args describes."""
    import numpy as np

    array = re.fullmatch(r"(\w+)\[([\d,]+)\](?:=(\S+))?", text)
    if array is None:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        raise ValueError(f"argument {text!r} is neither a number nor like float32[64,64] or …=0")
    try:
        dtype = np.dtype(array[1])
    except TypeError:
        raise ValueError(f"argument {text!r} has no dtype that numpy knows") from None
    shape = tuple(int(n) for n in array[2].split(",") if n)
    if array[3] is not None:
        return np.full(shape, float(array[3])).astype(dtype)
    random = np.random.default_rng(seed)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
