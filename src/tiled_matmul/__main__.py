"""The command line: `python -m tiled_matmul doctor | bench | trace | notebooks | grade | …`.

A mistake of the caller's is one line on standard error and exit status 2, Ctrl-C is 130.
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
    # Squares; three uneven ones: no multiple of 128; odd in everything, so that no row begins on 16
    # bytes; ragged and small; and two with few blocks, each with a long way along K.
    "gpu": "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,"
    "4000x4000x4000,4095x4097x4099,2000x3000x1500,256x256x16384,512x512x8192",
    # Squares; few rows, as when a language model writes a word; a long way along K; no multiple of
    # 128; and shapes of its layers.
    "tensor cores": "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,"
    "16384x16384x16384,16x4096x4096,128x4096x4096,512x512x16384,4000x4000x4000,3072x768x4096,"
    "8192x1024x1024,4096x11008x4096,2048x2048x8192",
}
COLUMNS = ("shape", "dtype", "rung", "time (ms)", "spread", "TFLOP/s", "against the baseline")
WIDTHS = (17, 8, 23, 10, 7, 9, 0)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

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
    """Is this an error that a user can cause and whose message says what to do?"""
    from tiled_matmul.check import MatmulError
    from tiled_matmul.machine.backend import BackendError
    from tiled_matmul.microscope.cuda.errors import KernelError

    kinds = (ValueError, TypeError, OSError, ImportError)
    kinds += (BackendError, KernelError, MatmulError)
    return isinstance(error, kinds) or _is_out_of_memory(error)


def _is_out_of_memory(error: Exception) -> bool:
    # torch's own is a RuntimeError, and torch may not be loaded.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tiled_matmul", description="Tiled Matmul, an executable course.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    doctor = commands.add_parser("doctor", help="say whether the course can run here, and what not")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.set_defaults(run=_doctor)

    bench = commands.add_parser("bench", help="time rungs of the ladder against BLAS or cuBLAS")
    bench.add_argument("--rungs", metavar="A,B", help="which rungs; all that this machine can time")
    bench.add_argument(
        "--shapes", metavar="MxNxK,…", help="which problems; squares, and uneven ones"
    )
    bench.add_argument("--dtype", help="of A, B and C; for each rung the ladder's")
    bench.add_argument("--json", metavar="FILE", help="merge the records into this results file")
    bench.add_argument("--budget", type=float, default=2.0, metavar="S", help="seconds a problem")
    bench.add_argument("--threads", type=int, metavar="T", help="of the CPU rungs; all there are")
    bench.add_argument("--force", action="store_true", help="time what takes long, too")
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

    # Whatever can be wrong with the request is found before anything is timed.
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

            def leave_out(name: str, why: str, problem: Problem = problem) -> None:
                what = problem.shape_text, problem.dtype
                table.row(*what, name, "", "", "", f"not timed: {why}")

            taken = []
            for r in group:
                table.tell(f"{problem.shape_text}: trying {r.name}", 0)
                try:
                    if problem.dtype not in r.dtypes:
                        raise TypeError(f"it takes {', '.join(r.dtypes)}")
                    seconds = 0.0 if args.force else bench.estimate_s(r, problem)
                except (ValueError, TypeError) as error:
                    leave_out(r.name, _refusal(error))
                    continue
                if seconds <= bench.MAX_RUN_S:
                    taken.append(r)
                else:
                    leave_out(r.name, f"a run takes about {_duration(seconds)} (--force)")
            if not taken:
                continue
            try:
                records = bench.bench(
                    taken,
                    problem,
                    budget_s=args.budget,
                    threads=args.threads if taken[0].device == "cpu" else None,
                    max_run_s=float("inf"),
                    on_progress=lambda what, share, p=problem: table.tell(
                        f"{p.shape_text}: {what}", share
                    ),
                    on_refusal=lambda name, error, tell=leave_out: tell(name, _refusal(error)),
                )
            except Exception as error:
                if not _is_out_of_memory(error):
                    raise
                for r in taken:
                    leave_out(r.name, "there is too little memory")
                continue
            timed += len(records)
            for record in records:
                table.row(*_cells(record))
            if args.json is not None:
                # After each problem, so that an interrupted run keeps what it has measured.
                results.update(args.json, records)
    if not timed:
        raise ValueError(
            "nothing was timed: every rung takes too long, which --force overrides, or too much "
            "memory, or refuses"
        )
    return 0


def _refusal(error: Exception) -> str:
    return "it refuses: " + " ".join(str(error).split())


def _cells(record) -> tuple[str, ...]:
    if record.rung == record.baseline:
        calls = f"{record.launches} call{'s' * (record.launches > 1)}"
        how = f", a sample is {calls} in a CUDA graph" if record.graph else f", a sample is {calls}"
        against = f"1, the baseline{how if record.graph or record.launches > 1 else ''}"
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
    """Lines of text as they come: for files, pipes, and machines without rich."""

    def __enter__(self) -> _PlainTable:
        self._print(COLUMNS)
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def tell(self, what: str, share: float) -> None:
        """Progress is for terminals."""

    def row(self, *cells: str) -> None:
        self._print(cells)

    def _print(self, cells: Sequence[str]) -> None:
        pairs = zip(cells, WIDTHS, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in pairs).rstrip(), flush=True)


class _LiveTable:
    """A table that fills while it runs, with a line below that says what is going on."""

    def __init__(self) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Table

        self.table = Table(*COLUMNS)
        for column in self.table.columns[3:6]:
            column.justify = "right"
        self.progress = Progress(TextColumn("{task.description}"), BarColumn(), transient=True)
        self.task = self.progress.add_task("", total=1)
        self.live = Live(self._shown(), refresh_per_second=4)

    def _shown(self, running: bool = True):
        from rich.console import Group

        return Group(self.table, self.progress) if running else self.table

    def __enter__(self) -> _LiveTable:
        self.live.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self.live.update(self._shown(running=False))
        self.live.__exit__(*exception)

    def tell(self, what: str, share: float) -> None:
        self.progress.update(self.task, description=what, completed=share)

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
