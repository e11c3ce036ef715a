"""`python -m tiled_matmul grade NOTEBOOK…` and `exercises sync|check|run|new|release`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

GRADE = (
    "Grade the answers in exercise notebooks. Each exercise gets a line with its status, its "
    "points and, if it is not passed, the reason. Your best points are kept."
)
GRADE_STATUS = (
    "Exit status: 0 if every exercise is passed, 1 if one is not, 2 for a usage or system error, "
    "such as a file that is not an exercise notebook or a worker that does not start. With "
    "--teacher: 0 if every notebook could be graded, whatever the marks, 1 if the grader failed on "
    "one, 2 for a usage or system error."
)
MOST_SKIPPED = 20  # names of what is no submission that are printed
EXERCISES = (
    "Write, check and release the exercises. These commands are for authors and teachers. "
    "Exercise NN.M is the folder exercises/source/NN_topic/M_name; both notebooks of a chapter are "
    "made from its folders."
)


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands `grade` and `exercises`."""
    grade = subparsers.add_parser(
        "grade", help="grade exercise notebooks", description=GRADE, epilog=GRADE_STATUS
    )
    grade.add_argument(
        "paths", nargs="*", type=Path, metavar="NOTEBOOK", help="an exercise notebook to grade"
    )
    grade.add_argument(
        "--progress",
        action="store_true",
        help="print your best points so far in each exercise (default: do not)",
    )
    grade.add_argument(
        "--nbval",
        action="store_true",
        help="also run each notebook under nbval, and print the cells whose outputs differ; takes "
        "up to 90 seconds each (default: do not)",
    )
    grade.add_argument(
        "--gpu",
        action="store_true",
        help="also launch and time kernels on this machine's GPU (default: judge without a GPU)",
    )
    grade.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="draw the inputs from the seed N, which reports name (default: new inputs each time)",
    )
    grade.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the verdicts to FILE as JSON; with --teacher an interrupted grading goes on "
        "from FILE.part (default: write no file)",
    )
    grade.add_argument(
        "--teacher",
        type=Path,
        metavar="DIR",
        help="grade all notebooks in the folder DIR, in a sandbox (default: grade the named ones)",
    )
    for name, form in (
        ("csv", "a CSV table"),
        ("junit", "JUnit XML"),
        ("html", "an HTML page"),
    ):
        grade.add_argument(
            f"--{name}",
            type=Path,
            metavar="FILE",
            help=f"with --teacher: write the marks to FILE as {form} (default: write no file)",
        )
    grade.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="with --teacher: grade N notebooks at a time (default: the number of processors)",
    )
    grade.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="with --teacher: let the workers of a Dask scheduler grade, such as "
        "tls://10.0.0.1:8786 (default: grade on this machine)",
    )
    grade.add_argument(
        "--cluster",
        type=int,
        metavar="N",
        help="with --teacher: start a Dask cluster of N workers on this machine (default: none)",
    )
    grade.set_defaults(run=grade_command)

    tools = subparsers.add_parser(
        "exercises",
        help="write, check or release the exercises",
        description=EXERCISES,
    )
    actions = tools.add_subparsers(
        dest="action", required=True, metavar="sync|check|run|new|release"
    )
    for name, summary, function in (
        ("sync", "write both notebooks of each chapter from the exercises' folders", sync_command),
        (
            "check",
            "print every fault of the folders and notebooks; grade the answers of the exercises "
            "that are named; exit status 1 if there is a fault",
            check_command,
        ),
        (
            "run",
            "execute the solutions here, store their outputs, and write both notebooks",
            run_command,
        ),
        ("new", "copy an exercise's folder as the model of a new exercise", new_command),
        (
            "release",
            "copy the course to a folder for learners, without solutions, hidden cases and tests",
            release_command,
        ),
    ):
        parser = actions.add_parser(name, help=summary, description=_capitalised(summary))
        parser.set_defaults(run=function)
        if name == "check":
            names = "the exercise to grade; `all` is every one (default: grade none)"
            parser.add_argument("names", nargs="*", metavar="NN.M", help=names)
        elif name == "run":
            parser.add_argument(
                "chapters", nargs="*", metavar="NN", help="a chapter to run (default: all)"
            )
        elif name == "new":
            parser.add_argument("name", metavar="NN.M", help="the new exercise, such as 05.5")
            parser.add_argument("slug", metavar="NAME", help="its folder's name: register_tile")
            model = "the exercise to copy (default: the last one of the chapter)"
            parser.add_argument("--like", metavar="NN.M", help=model)
        elif name == "release":
            parser.add_argument(
                "folder", type=Path, metavar="DIR", help="the folder to write the copy to"
            )


def _capitalised(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def grade_command(args: argparse.Namespace) -> int:
    """Grade notebooks. Status 0: all is passed; 1: an exercise is not; 2: a notebook or the system
    is at fault.
    """
    from tiled_matmul.files import replace_text
    from tiled_matmul.grader import on_gpu, pool, practice

    if args.teacher is not None:
        return teacher_command(args)
    for name in ("csv", "junit", "html", "jobs", "scheduler", "cluster"):
        if getattr(args, name) is not None:
            raise ValueError(f"--{name} goes with --teacher DIR")
    if not args.paths and not args.progress:
        raise ValueError("name a notebook, as in: grade exercises/05_shared_memory.ipynb")
    if args.gpu:
        on_gpu.need()
    confined = bool(args.paths) and pool.sandbox_works()
    if args.paths and not confined:
        print(
            "grade: without bubblewrap (apt install bubblewrap) answers run with your rights, and "
            "only their time is limited: do not grade anyone else's answers this way.",
            file=sys.stderr,
        )
    reports = []
    paths = [path for path in args.paths if not _is_kept(path)]
    _say_skipped([str(path) for path in args.paths if path not in paths])
    if args.paths and not paths:
        raise ValueError("name a learner's notebook: there is nothing else to grade")
    for path in paths:
        jobs = min(4, os.cpu_count() or 1)
        reports.append(practice.grade(path, confined, args.seed, args.gpu, jobs=jobs))
        print("\n".join(practice.lines(reports[-1])), flush=True)
        if args.nbval and "error" not in reports[-1]:
            print("\n".join(_explained(path, reports[-1])), flush=True)
    if args.json is not None:
        text = json.dumps({"submissions": reports}, indent=1, ensure_ascii=False)
        replace_text(args.json, text + "\n")
    if reports:
        practice.remember(reports)
    if args.progress:
        print("\n".join(practice.progress_lines()))
    return practice.exit_status(reports)


def _is_kept(path: Path) -> bool:
    """Is it a copy that Jupyter, an editor or a system keeps? A folder above may be hidden."""
    from tiled_matmul.grader.teacher import KEPT_FOLDERS, is_kept

    return is_kept(path.name) or bool({*path.parts[:-1]} & {".ipynb_checkpoints", *KEPT_FOLDERS})


def _say_skipped(names: list[str]) -> None:
    """Print what was skipped, on standard error."""
    from tiled_matmul.grader.cells import printable

    for name in names[:MOST_SKIPPED]:
        print(
            f"grade: {printable(name)}: skipped, as hidden files and copies that Jupyter or an "
            "editor keeps are no submissions",
            file=sys.stderr,
        )
    if len(names) > MOST_SKIPPED:
        print(f"grade: {len(names) - MOST_SKIPPED:,} more are skipped", file=sys.stderr)


def _explained(path: Path, report: dict) -> list[str]:
    from tiled_matmul.grader import cells, explain

    report["nbval"] = explain.differences(cells.collect(path), report["exercises"])
    return [f"  {line}" for one in report["nbval"] for line in one.splitlines()]


def teacher_command(args: argparse.Namespace) -> int:
    """Grade a folder. Status 0: all could be graded, whatever the marks; 1: the grader failed."""
    from tiled_matmul.grader import journal, on_gpu, pool, practice, reports, submission, teacher
    from tiled_matmul.machine import sandbox

    with contextlib.suppress(AttributeError):  # a terminal of few letters loses no marks
        sys.stdout.reconfigure(errors="backslashreplace")
    if args.paths or args.progress:
        raise ValueError("--teacher takes one folder, without further notebooks or --progress")
    jobs = os.cpu_count() or 1 if args.jobs is None else args.jobs
    if jobs < 1:
        raise ValueError(f"--jobs must be 1 or more, got {jobs}")
    far = args.scheduler is not None or args.cluster is not None
    if args.gpu and args.scheduler is None:
        on_gpu.need()
    if args.scheduler is None and not pool.sandbox_works():
        raise ValueError(
            "the teacher's mode runs answers in a sandbox, and none can be made here: "
            f"{sandbox.describe()}"
        )
    files = {name: getattr(args, name) for name in reports.FORMATS}
    files = {name: path for name, path in files.items() if path is not None}
    for path in files.values():
        if not path.resolve().parent.is_dir():
            raise ValueError(f"there is no folder for {path}")
        journal.must_lie_outside(path, args.teacher)
    with contextlib.ExitStack() as stack:
        kept = None
        if args.json is not None:
            part = args.json.with_name(f"{args.json.name}.part")
            kept = stack.enter_context(journal.Journal(part, args.teacher))
            if kept.ignored:
                lines = "line is" if kept.ignored == 1 else "lines are"
                print(
                    f"grade: {part}: {kept.ignored} {lines} ignored: cut short, or not written "
                    "by your own grader",
                    file=sys.stderr,
                )
        options = {"jobs": jobs, "seed": args.seed, "gpu": args.gpu, "journal": kept}
        try:
            if far:
                options["by"] = stack.enter_context(_cluster(args))
            skipped: list[str] = []
            options["on_skip"] = skipped.append
            with _bar() as progress:
                found = teacher.grade(args.teacher, **options, on_progress=progress)
            _say_skipped(skipped)
            if args.scheduler is None:
                print(f"grade: the sandbox was {sandbox.describe()}", file=sys.stderr)
            reports.write(found, files)
        except KeyboardInterrupt:
            print(f"grade: interrupted: {_what_is_kept(kept)}", file=sys.stderr)
            return 130
        except OSError as error:
            if not far:
                raise
            raise OSError(f"{error}. {_what_is_kept(kept)}") from error
        if not files:
            for report in found:
                print("\n".join(practice.lines(report)))
        failed = [report["path"] for report in found if submission.is_infra(report)]
        if kept is not None:
            kept.path.unlink(missing_ok=True)
    for path in failed:
        print(f"grade: {path}: the grader failed on this one. Grade it again", file=sys.stderr)
    return 1 if failed else 0


def _cluster(args: argparse.Namespace) -> Any:
    """Return the cluster that grades. Raises ValueError for options that do not go together."""
    if args.scheduler is not None and args.cluster is not None:
        raise ValueError("--scheduler and --cluster N are two ways: take one of them")
    if args.jobs is not None:
        raise ValueError("--jobs is for this machine; a cluster grades one for each worker")
    if args.cluster is not None and args.cluster < 1:
        raise ValueError(f"--cluster must be 1 or more, got {args.cluster}")
    if args.gpu and args.cluster not in (None, 1):
        raise ValueError(
            f"a GPU takes one answer at a time: --cluster 1, and not {args.cluster}, or --scheduler"
        )
    try:
        from tiled_matmul.grader.cluster import Cluster
    except ImportError as error:
        raise ImportError(
            f"{error}: a cluster needs Dask: pip install -r requirements-cluster.lock"
        ) from None
    return Cluster(args.scheduler, args.cluster, seed=args.seed, gpu=args.gpu)


def _what_is_kept(kept: Any) -> str:
    """Say in words what a journal, or none, holds for the next grading."""
    if kept is None:
        return "nothing is kept, because there is no --json FILE"
    count = len(kept.kept)
    reports = "1 report is" if count == 1 else f"{count:,} reports are"
    return f"{reports} kept in {kept.path}; the same command goes on from there"


@contextlib.contextmanager
def _bar():
    """Yield a function that shows progress: as a bar in a terminal, elsewhere not at all."""
    if not sys.stderr.isatty():
        yield lambda done, total, name: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda done, total, name: print(f"\r{done} of {total} ", end="", file=sys.stderr)
        return
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("grading", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total)


def release_command(args: argparse.Namespace) -> int:
    from tiled_matmul.grader.release import release

    names = release(args.folder)
    print(f"{len(names)} files in {args.folder}, without solutions, hidden cases and tests")
    return 0


def sync_command(args: argparse.Namespace) -> int:
    from tiled_matmul.grader import starters

    for path, changed in starters.sync().items():
        print(f"{path}: {'written' if changed else 'was current'}")
    return 0


def check_command(args: argparse.Namespace) -> int:
    """Look at the folders' form, and grade the answers of those that are named."""
    from tiled_matmul.grader import folders, mistakes, starters

    faults = starters.faults()
    print("\n".join(faults) if faults else "exercises check: in order")
    if faults or not args.names:
        return 1 if faults else 0
    everything = folders.folders()
    chosen = everything if "all" in args.names else [folders.folder(n) for n in args.names]
    for folder in chosen:
        for name, wrong in mistakes.graded(folder):
            print(f"{folder.name} {name}: {'not as meant' if wrong else 'as meant'}", flush=True)
            faults += wrong
            for fault in wrong:
                print("    " + fault.replace("\n", "\n    "))
        if folder.has("answer.py"):
            lacks = mistakes.lacks(folder.code("answer.py"), mistakes.answers(folder))
            faults += lacks
            print("".join(f"{folder.name} lacks: {fault}\n" for fault in lacks), end="")
    return 1 if faults else 0


def run_command(args: argparse.Namespace) -> int:
    from tiled_matmul.grader import starters

    chapters = starters.chapters()
    known = [path.name[:2] for path in chapters]
    if unknown := [name for name in args.chapters if name not in known]:
        raise ValueError(f"there is no chapter {unknown[0]!r}; there are {', '.join(known)}")
    for path in chapters:
        if not args.chapters or path.name[:2] in args.chapters:
            starters.run(path)
            print(f"{path.name}: run")
    return sync_command(args)


def new_command(args: argparse.Namespace) -> int:
    from tiled_matmul.grader import folders

    path = folders.copied(args.name, args.slug, args.like)
    print(f"{path}: fill it in, then: exercises check, exercises run, exercises check {args.name}")
    return 0
