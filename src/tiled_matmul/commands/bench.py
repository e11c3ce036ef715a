"""`python -m tiled_matmul bench`: rungs of the ladder timed against BLAS or cuBLAS."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiled_matmul.problem import Problem  # imports numpy, which the doctor may find broken

LANGUAGE = "of CUDA C++"  # only where twins are timed: their times over those of their rungs
COLUMNS = (
    *("shape", "dtype", "rung", "time (ms)", "spread", "TFLOP/s", LANGUAGE),
    "against the baseline",
)
WIDTHS = (17, 8, 23, 10, 7, 9, 11, 0)


def add_parser(commands: Any) -> None:
    """Add the command `bench` to the command line."""
    parser = commands.add_parser("bench", help="time rungs of the ladder against BLAS or cuBLAS")
    parser.add_argument(
        "--rungs",
        metavar="A,B",
        help="names of the rungs to time (default: all that this machine can time)",
    )
    parser.add_argument(
        "--shapes",
        metavar="MxNxK,…",
        help="sizes of the products, such as 512x512x512,4096x64x1024 (default: squares, and some "
        "uneven shapes)",
    )
    parser.add_argument(
        "--dtype",
        help="element type of A, B and C, such as float16 (default: the one that the ladder "
        "measures each rung in)",
    )
    parser.add_argument(
        "--json", metavar="FILE", help="merge the records into this file of results"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=2.0,
        metavar="S",
        help="how many seconds to time each product for, all its rungs together (default: 2)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="T",
        help="how many threads the CPU rungs and BLAS may use (default: all there are)",
    )
    parser.add_argument(
        "--force", action="store_true", help="time rungs of which one run takes over 2 s, too"
    )
    parser.add_argument(
        "--twins",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="time rungs in Numba CUDA beside the same kernel in CUDA C++, in the same run",
    )
    parser.set_defaults(run=_bench)


def _bench(args: argparse.Namespace) -> int:
    from tiled_matmul.kit import backend
    from tiled_matmul.ladder import LADDER, TWINS, twin_of
    from tiled_matmul.languages import CUDA_CPP
    from tiled_matmul.measure import bench, results
    from tiled_matmul.measure.rungs import shares

    # Whatever can be wrong with the request is reported before anything is timed.
    plan = _plan(args)
    if not args.budget > 0:
        raise ValueError(f"--budget must be positive seconds, got {args.budget:g}")
    if any(r.device == "cpu" for rungs, _ in plan for r in rungs):
        with bench.equal_threads(args.threads):
            pass
    if args.json is not None:
        results.check_file(args.json)
    if not backend.select().on_gpu and args.rungs is None:
        print(f"GPU rungs are left out: {backend.select().reason}.", file=sys.stderr)
    elif args.rungs is None:
        for language in dict.fromkeys(r.language for r in LADDER if not r.available):
            print(f"Rungs in {language.title} are left out: {language.missing()}.", file=sys.stderr)
    twinned = args.twins and any(twin_of(rung) for rungs, _ in plan for rung in rungs)
    if twinned and CUDA_CPP.missing():
        print(f"Twins in {CUDA_CPP.title} are left out: {CUDA_CPP.missing()}.", file=sys.stderr)

    timed, twins = 0, {each.name for each in TWINS}
    with (
        _table(any(each in TWINS for rungs, _ in plan for each in rungs)) as table,
        _ctrl_c() as look,
    ):

        def progress(step: str, share: float) -> None:
            look()
            table.progress(step, share)

        for rungs, problem in plan:
            records = _timed(rungs, problem, args, table, progress)
            look()
            timed += len(records)
            language = shares(records)
            for record in records:
                if record.rung not in twins:  # they show as a column of their rungs
                    table.row(*_cells(record, language.get(record.rung)))
            if args.json is not None:
                # After each problem, so that an interrupted run keeps what it has measured.
                results.update(args.json, records)
    if not timed:
        raise ValueError(
            "nothing was timed: every rung takes too long, which --force overrides, or too much "
            "memory, or refuses"
        )
    return 0


def _plan(args: argparse.Namespace) -> list[tuple[list, Problem]]:
    """Return the rungs to time at each problem. Raises ValueError for a request that cannot be."""
    from tiled_matmul.kit import backend
    from tiled_matmul.ladder import LADDER, rung
    from tiled_matmul.measure.bench import contestants
    from tiled_matmul.measure.rungs import plan, with_twins

    if args.rungs is None:
        here = [r for r in LADDER if r.available]
        rungs = [r for r in here if backend.select().on_gpu or r.device == "cpu"]
    else:
        rungs = [rung(name.strip()) for name in args.rungs.split(",")]
    planned = plan(with_twins(rungs) if args.twins else rungs, args.dtype, args.shapes)
    for group, _ in planned:
        contestants(group)
    return planned


@contextlib.contextmanager
def _ctrl_c() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if Ctrl-C was pressed and something lost it.

    Ctrl-C raises at once, as usual. But where Python calls back from compiled code, as it does
    while Numba compiles, an exception only prints a warning, and the program would go on.
    """
    pressed = threading.Event()

    def handle(number: int, frame: Any) -> None:
        pressed.set()
        raise KeyboardInterrupt

    def look() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    before, main = signal.getsignal(signal.SIGINT), threading.main_thread()
    if before is not signal.default_int_handler or threading.current_thread() is not main:
        yield look  # it is somebody else's, or ignored; and only the main thread may change that
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)


def _timed(
    rungs: list, problem: Problem, args: argparse.Namespace, table: Any, progress: Callable
) -> list:
    """Return the records of `rungs` at a problem; `table` gets a row for each that is left out."""
    from tiled_matmul.ladder import Twin
    from tiled_matmul.measure.rungs import timed

    left: set[str] = set()
    rung_of = {each.name: each.rung.name for each in rungs if isinstance(each, Twin)}

    def leave_out(name: str, reason: str) -> None:
        left.add(name)
        if rung_of.get(name) in left:  # whose row says why
            return
        table.row(problem.shape_text, problem.dtype, name, "", "", "", "", f"not timed: {reason}")

    return timed(
        rungs,
        problem,
        leave_out,
        force=args.force,
        budget_s=args.budget,
        threads=args.threads if rungs[0].device == "cpu" else None,
        on_progress=lambda step, share: progress(f"{problem.shape_text}: {step}", share),
    )


def _cells(record, share: float | None) -> tuple[str, ...]:
    """Return the cells of a record's row; `share` is its twin's time over its own."""
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
        "" if share is None else f"{share:.1%}",
        against,
    )


class _PlainTable:
    """Lines of text, printed at once: for files, pipes, and machines without rich."""

    def __init__(self, language: bool) -> None:
        self.shown = [language or column != LANGUAGE for column in COLUMNS]

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
        padded = [cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)]
        print("  ".join(compress(padded, self.shown)).rstrip(), flush=True)


class _LiveTable:
    """A table that fills while it runs, with a line below that shows the current step."""

    def __init__(self, language: bool) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Table

        self.shown = [language or column != LANGUAGE for column in COLUMNS]
        self.table = Table(*compress(COLUMNS, self.shown))
        for column in self.table.columns[3:-1]:
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
        self.table.add_row(*compress(cells, self.shown))


def _table(language: bool) -> _PlainTable | _LiveTable:
    if not sys.stdout.isatty():
        return _PlainTable(language)
    try:
        return _LiveTable(language)
    except ImportError:
        return _PlainTable(language)
