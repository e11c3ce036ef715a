"""`python -m tiled_matmul measure`: the suites of measurements, into `results/`."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

OUTDATED = "results/outdated.txt"


def add_parser(commands: Any) -> None:
    """Add the command `measure` to the command line."""
    parser = commands.add_parser("measure", help="measure a suite of records, into results/")
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help="what to measure (without one: list the suites)"
    )
    parser.add_argument("--all", action="store_true", help="all suites of a machine like this one")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, metavar="N", help="begin no job after N seconds"
    )
    parser.add_argument(
        "--resume", action="store_true", help="leave out jobs whose records are of this code"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="jobs with TEXT in the name")
    parser.add_argument("--out", type=Path, metavar="FILE", help="another file than in results/")
    parser.add_argument(
        "--stale", action="store_true", help="list the records whose code has changed, and end"
    )
    parser.add_argument("--places", action="store_true", help=f"--stale as lines for {OUTDATED}")
    parser.set_defaults(run=_measure)


def _measure(args: argparse.Namespace) -> int:
    from tiled_matmul.measure import suites

    if args.stale:
        found = list(suites.stale())
        for each in found:
            print(each.line if args.places else each)
        if not found:
            print("all records are of the code as it is", file=sys.stderr)
        return 1 if found else 0
    if args.all:
        args.suites = [each.name for each in suites.suites().values() if each.fits()]
    if not args.suites:
        for suite in suites.suites().values():
            print(f"{suite.name:14} {suite.help}")
        return 0
    chosen = [suites.suite(name) for name in args.suites]
    if not args.seconds > 0:
        raise ValueError(f"--seconds must be positive, got {args.seconds:g}")
    if args.out is not None and len(chosen) > 1:
        raise ValueError(f"--out is one file, for one suite, and there are {len(chosen)}")
    left = [_take(suite, args) for suite in chosen]
    return 1 if any(left) else 0


def _take(suite: Any, args: argparse.Namespace) -> int:
    """Measure one suite; return how many jobs are left."""
    from tiled_matmul.kit import backend
    from tiled_matmul.measure import clock, suites
    from tiled_matmul.measure.provenance import provenance
    from tiled_matmul.measure.suite import measure, short_name

    where = "cpu" if suite.machine == "cpu" else "gpu"
    if where == "gpu":
        clock.need_gpu()
        run = provenance("gpu")
    else:
        with clock.equal_threads() as threads:
            run = provenance("cpu", threads)
    more = dict(suite.more())
    versions = run["versions"] | suite.versions() | more.pop("versions", {})
    run = run | {"versions": versions} | more
    gpu = backend.select().gpu
    out = args.out or suite.path(short_name(gpu.name) if gpu else "cpu", **more)
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{suite.name}: {suite.help}", flush=True)
    say = lambda text: print(text, flush=True)  # noqa: E731
    if gone := suites.take_away(out, suite.stored_as):
        say(f"{gone} records of jobs that there are no more go from {out}")
    return measure(
        suite, run, out, seconds=args.seconds, resume=args.resume, only=args.only, say=say
    )
