"""`python -m tiled_matmul notebooks check|sync|run`: check, refresh or run the chapters."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tiled_matmul import ROOT
from tiled_matmul.book.run import CELL_TIMEOUT


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command `notebooks`; `args.run(args)` runs it and returns the exit status."""
    parser = subparsers.add_parser(
        "notebooks", help="check, refresh or run the chapters", description=__doc__
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="check|sync|run")
    check = actions.add_parser("check", help="report every fault; exit with status 1 if any exists")
    sync = actions.add_parser("sync", help="refresh set-up cells, kernel cells and README.md")
    run = actions.add_parser("run", help="run notebooks on this machine, store outputs and stamps")
    for action, function in ((check, check_command), (sync, sync_command), (run, run_command)):
        action.add_argument(
            "paths",
            nargs="*",
            type=Path,
            metavar="NOTEBOOK",
            help="a notebook to run" if action is run else "a notebook (default: every chapter)",
        )
        action.set_defaults(run=function)
    check.add_argument(
        "--pages",
        action="store_true",
        help="instead, report how much each chapter asks of its reader, and what is too much",
    )
    run.add_argument("--all", action="store_true", help="run every chapter, in the book's order")
    run.add_argument(
        "--checked",
        action="store_true",
        help="store only outputs that strict nbval compares, such as tables of records, and no "
        "stamp; needs no GPU",
    )
    run.add_argument(
        "--timeout",
        type=_seconds,
        default=CELL_TIMEOUT,
        metavar="S",
        help=f"seconds that one cell may take ({CELL_TIMEOUT})",
    )


def _seconds(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number of seconds above 0, got {text!r}")
    return int(text)


def check_command(args: argparse.Namespace) -> int:
    from tiled_matmul.book import hygiene

    missing = [str(path) for path in args.paths if not path.is_file()]
    if missing:
        return _usage_error(f"no such file: {', '.join(missing)}")
    if args.pages:
        return _check_pages(args.paths)
    problems = hygiene.check(args.paths or None)
    for problem in problems:
        print(problem)
    for note in hygiene.notes():
        print(note, file=sys.stderr)
    count = f"{len(problems)} fault{'s' * (len(problems) != 1)}"
    print(f"notebooks check: {count}" if problems else "notebooks check: in order")
    return 1 if problems else 0


def _check_pages(paths: list[Path]) -> int:
    from tiled_matmul.book.files import NotebookError, chapters, is_appendix
    from tiled_matmul.book.length import length

    print(f"{'':24} words  prose   code  teach  share  verdicts  longest")
    faults = []
    for path in paths or chapters():
        try:
            page = length(path)
        except NotebookError as error:
            return _usage_error(error)
        print(
            f"{path.stem:24} {page.words:5}  {page.prose:5}  {page.lines:5}  {page.teaching:5}"
            f"  {page.share:5.0%}  {page.verdicts:8}  {page.longest:7}"
        )
        faults += [f"{path.stem}: {fault}" for fault in page.faults(is_appendix(path))]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


def sync_command(args: argparse.Namespace) -> int:
    from tiled_matmul.book.files import chapters
    from tiled_matmul.book.hygiene import refreshed_readme
    from tiled_matmul.book.run import sync
    from tiled_matmul.files import replace_text

    try:
        for path in args.paths or [path for path in chapters() if path.exists()]:
            print(f"{path}: {'refreshed' if sync(path) else 'was current'}")
        if not args.paths:
            readme = ROOT / "README.md"
            before, after = readme.read_text(encoding="utf-8"), refreshed_readme()
            if before != after:
                replace_text(readme, after)
            print(f"{readme}: {'refreshed' if before != after else 'was current'}")
    except (ValueError, OSError) as error:
        return _usage_error(error)
    return 0


def run_command(args: argparse.Namespace) -> int:
    from tiled_matmul.book.files import chapters
    from tiled_matmul.book.run import RunError, refresh, run

    if bool(args.paths) == args.all:
        return _usage_error("give either notebooks or --all")
    failed = False
    try:
        for path in chapters() if args.all else args.paths:

            def progress(cell: int, cells: int, path: Path = path) -> None:
                end = "\r" if sys.stderr.isatty() else "\n"
                print(f"{path.name}: cell {cell} of {cells} ", end=end, file=sys.stderr, flush=True)

            try:
                if args.checked:
                    stored, left = refresh(path, timeout=args.timeout, on_progress=progress)
                    named = ", ".join(map(str, stored))
                    print(f"{path}: {f'cells {named} refreshed' if stored else 'was current'}")
                    for cell in left:
                        print(
                            f"note: cell {cell} differs, with warnings or without times: left",
                            file=sys.stderr,
                        )
                    continue
                notes = run(path, timeout=args.timeout, on_progress=progress)
            except RunError as error:
                failed = True
                print(f"{error}\n    {path.name} is as it was", file=sys.stderr)
                continue
            for note in notes:
                print(f"note: {note}", file=sys.stderr)
            print(f"{path}: run and stamped")
    except (ValueError, OSError, ImportError) as error:
        return _usage_error(error)
    return 1 if failed else 0


def _usage_error(error: object) -> int:
    print(f"tiled_matmul notebooks: {' '.join(str(error).split())}", file=sys.stderr)
    return 2
