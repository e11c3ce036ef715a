"""The command line: `python -m tiled_matmul doctor | bench | trace | notebooks | grade | …`.

A usage error prints one line to standard error and exits with status 2; Ctrl-C exits with 130.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from tiled_matmul.book import add_parser as add_notebooks
from tiled_matmul.commands.trace import add_parser as add_trace
from tiled_matmul.grader.cli import add_parsers as add_grader

DEFAULT_SHAPES = {
    "cpu": "128x128x128,512x512x512,2048x2048x2048",
    # Squares; then no multiple of 128; odd in every dimension, so that rows are not aligned to 16
    # bytes; small and ragged; and two with few blocks and a large K.
    "gpu": "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,"
    "4000x4000x4000,4095x4097x4099,2000x3000x1500,256x256x16384,512x512x8192",
    # Squares; few rows, as when a language model generates one token; a large K; no multiple of
    # 128; and the shapes of a language model's layers.
    "tensor cores": "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,"
    "16384x16384x16384,16x4096x4096,128x4096x4096,512x512x16384,4000x4000x4000,3072x768x4096,"
    "8192x1024x1024,4096x11008x4096,2048x2048x8192",
}
COLUMNS = ("shape", "dtype", "rung", "time (ms)", "spread", "TFLOP/s", "against the baseline")
WIDTHS = (17, 8, 23, 10, 7, 9, 0)


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except KeyboardInterrupt:
        print(f"{parser.prog} {args.command}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if os.environ.get("TILED_MATMUL_TRACEBACK") == "1":
            traceback.print_exc()
        if not _is_expected(error):
            raise
        message = " ".join(str(error).split())
        print(f"{parser.prog} {args.command}: {message}", file=sys.stderr)
        return 2


def _is_expected(error: Exception) -> bool:
    """Return whether a user can cause this error, so that its message needs no traceback."""
    from tiled_matmul.check import MatmulError
    from tiled_matmul.machine.backend import BackendError
    from tiled_matmul.microscope.cuda.errors import KernelError

    kinds = (ValueError, TypeError, OSError, ImportError)
    kinds += (BackendError, KernelError, MatmulError)
    return isinstance(error, kinds) or _is_out_of_memory(error)


def _is_out_of_memory(error: Exception) -> bool:
    # torch's own class derives from RuntimeError, and torch may not be imported.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tiled_matmul", description="Tiled Matmul, an executable course.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    doctor = commands.add_parser(
        "doctor", help="check whether the course can run on this machine, and what is missing"
    )
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.set_defaults(run=_doctor)

    bench = commands.add_parser("bench", help="time rungs of the ladder against BLAS or cuBLAS")
    bench.add_argument(
        "--rungs", metavar="A,B", help="rungs to time (default: all that this machine can run)"
    )
    bench.add_argument(
        "--shapes",
        metavar="MxNxK,…",
        help="problem sizes (default: squares and uneven shapes that suit the device)",
    )
    bench.add_argument("--dtype", help="element type of A, B and C (default: each rung's own)")
    bench.add_argument("--json", metavar="FILE", help="merge the records into this results file")
    bench.add_argument(
        "--budget", type=float, default=2.0, metavar="S", help="seconds for each problem (2)"
    )
    bench.add_argument("--threads", type=int, metavar="T", help="threads of CPU rungs (all)")
    bench.add_argument(
        "--force",
        action="store_true",
        help="also time rungs whose estimated time is over the limit",
    )
    bench.set_defaults(run=_bench)

    add_trace(commands)
    add_notebooks(commands)
    add_grader(commands)
    return parser


def _doctor(args: argparse.Namespace) -> int:
    from tiled_matmul.machine import doctor

    report = doctor.examine()
    print(report.as_json() if args.json else report.as_text())
    return 0 if report.ok else 1


def _bench(args: argparse.Namespace) -> int:
    from tiled_matmul.kit import backend
    from tiled_matmul.ladder import LADDER, rung
    from tiled_matmul.measure import bench, results
    from tiled_matmul.problem import Problem

    # Every mistake in the request is reported before anything is timed.
    on_gpu = backend.select().on_gpu
    if args.rungs is None:
        rungs = [r for r in LADDER if on_gpu or r.device == "cpu"]
    else:
        rungs = [rung(name.strip()) for name in args.rungs.split(",")]
    plan = []
    places = [(r.device, args.dtype or r.dtype) for r in rungs]
    for device, dtype in sorted(dict.fromkeys(places), key=lambda place: place[0]):
        group = [r for r, place in zip(rungs, places, strict=True) if place == (device, dtype)]
        bench.contestants(group)
        on_tensor_cores = device == "gpu" and dtype in ("float16", "bfloat16")
        usual = DEFAULT_SHAPES["tensor cores" if on_tensor_cores else device]
        texts = usual if args.shapes is None else args.shapes
        plan += [(group, Problem.parse(text, dtype)) for text in texts.split(",")]
    if not args.budget > 0:
        raise ValueError(f"--budget must be positive seconds, got {args.budget:g}")
    if any(r.device == "cpu" for r in rungs):
        with bench.equal_threads(args.threads):
            pass
    if args.json is not None:
        results.check_file(args.json)
    if not on_gpu and args.rungs is None:
        print(f"GPU rungs are left out: {backend.select().reason}.", file=sys.stderr)

    timed = 0
    with _table() as table:
        for group, problem in plan:

            def leave_out(name: str, reason: str, problem: Problem = problem) -> None:
                row = problem.shape_text, problem.dtype, name
                table.row(*row, "", "", "", f"not timed: {reason}")

            timeable = []
            for r in group:
                table.progress(f"{problem.shape_text}: trying {r.name}", 0)
                try:
                    if problem.dtype not in r.dtypes:
                        raise TypeError(f"its dtypes are {', '.join(r.dtypes)}")
                    seconds = 0.0 if args.force else bench.estimate_s(r, problem)
                except (ValueError, TypeError) as error:
                    leave_out(r.name, _refusal(error))
                    continue
                if seconds <= bench.MAX_RUN_S:
                    timeable.append(r)
                else:
                    leave_out(r.name, f"a run takes about {_duration(seconds)} (--force)")
            if not timeable:
                continue
            try:
                records = bench.bench(
                    timeable,
                    problem,
                    budget_s=args.budget,
                    threads=args.threads if timeable[0].device == "cpu" else None,
                    max_run_s=float("inf"),
                    on_progress=lambda step, share, p=problem: table.progress(
                        f"{p.shape_text}: {step}", share
                    ),
                    on_refusal=lambda name, error, skip=leave_out: skip(name, _refusal(error)),
                )
            except Exception as error:
                if not _is_out_of_memory(error):
                    raise
                for r in timeable:
                    leave_out(r.name, "there is too little memory")
                continue
            timed += len(records)
            for record in records:
                table.row(*_cells(record))
            if args.json is not None:
                # After each problem, so that an interrupted run keeps its records.
                results.update(args.json, records)
    if not timed:
        raise ValueError(
            "nothing was timed: every rung refused the problem, needed too much memory, or would "
            "have taken too long (--force overrides that)"
        )
    return 0


def _refusal(error: Exception) -> str:
    return "it refuses: " + " ".join(str(error).split())


def _cells(record) -> tuple[str, ...]:
    if record.rung == record.baseline:
        calls = f"{record.launches} call{'s' * (record.launches > 1)}"
        note = f", a sample is {calls}{' in a CUDA graph' if record.graph else ''}"
        against = f"1, the baseline{note if record.graph or record.launches > 1 else ''}"
    else:
        against = f"{record.ratio:.3g} × {record.baseline}"
    return (
        record.shape_text,
        record.dtype,
        record.rung,
        f"{record.time_ms:.4g}",
        f"{record.spread:.1%}",
        f"{record.tflops:.3g}",
        against,
    )


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


class _PlainTable:
    """Prints each row at once: for files, pipes, and machines without rich."""

    def __enter__(self) -> _PlainTable:
        self._print(COLUMNS)
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def progress(self, step: str, share: float) -> None:
        """Print nothing: progress is for terminals."""

    def row(self, *cells: str) -> None:
        self._print(cells)

    def _print(self, cells: Sequence[str]) -> None:
        pairs = zip(cells, WIDTHS, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in pairs).rstrip(), flush=True)


class _LiveTable:
    """A table that grows as rungs are timed, with a progress bar below it."""

    def __init__(self) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Table

        self.table = Table(*COLUMNS)
        for column in self.table.columns[3:6]:
            column.justify = "right"
        self.bar = Progress(TextColumn("{task.description}"), BarColumn(), transient=True)
        self.task = self.bar.add_task("", total=1)
        self.live = Live(self._shown(), refresh_per_second=4)

    def _shown(self, running: bool = True):
        from rich.console import Group

        return Group(self.table, self.bar) if running else self.table

    def __enter__(self) -> _LiveTable:
        self.live.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self.live.update(self._shown(running=False))
        self.live.__exit__(*exception)

    def progress(self, step: str, share: float) -> None:
        self.bar.update(self.task, description=step, completed=share)

    def row(self, *cells: str) -> None:
        self.table.add_row(*cells)


def _table() -> _PlainTable | _LiveTable:
    if not sys.stdout.isatty():
        return _PlainTable()
    try:
        return _LiveTable()
    except ImportError:
        return _PlainTable()


if __name__ == "__main__":
    sys.exit(main())
