"""`python -m tiled_matmul grade NOTEBOOK…` and `exercises sync|check|run|new|release`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path


def add_parsers(subparsers: argparse._SubParsersAction) -> None:
    """Add the commands `grade` and `exercises`."""
    grade = subparsers.add_parser(
        "grade", help="grade exercise notebooks", description="Grade exercise notebooks."
    )
    grade.add_argument("paths", nargs="*", type=Path, metavar="NOTEBOOK")
    grade.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there")
    grade.add_argument("--progress", action="store_true", help="show the best points so far")
    grade.add_argument(
        "--nbval", action="store_true", help="run the notebook too, and show cells that differ"
    )
    grade.add_argument(
        "--gpu", action="store_true", help="launch and time kernels on this machine's GPU as well"
    )
    grade.add_argument("--seed", type=int, metavar="N", help="repeat a grading's inputs")
    grade.add_argument("--teacher", type=Path, metavar="DIR", help="grade a folder, in a sandbox")
    for name in ("csv", "junit", "html"):
        grade.add_argument(f"--{name}", type=Path, metavar="FILE", help="the same as that")
    grade.add_argument("--jobs", type=int, metavar="N", help="at a time; as many as processors")
    grade.set_defaults(run=grade_command)

    tools = subparsers.add_parser(
        "exercises",
        help="make, try or hand out the exercises",
        description="For teachers and authors. Exercise NN.M is the folder "
        "exercises/source/NN_topic/M_name; both notebooks of a chapter are made from its folders.",
    )
    actions = tools.add_subparsers(
        dest="action", required=True, metavar="sync|check|run|new|release"
    )
    sync = actions.add_parser("sync", help="write the notebooks anew from the folders")
    sync.set_defaults(run=sync_command)
    check = actions.add_parser(
        "check",
        help="report what the folders lack; grade the answers of the exercises that are named",
        description="Without names it looks at the form of all folders and notebooks, in seconds. "
        "With names it grades their answers too. The exit status is 1 if there is a fault.",
    )
    check.add_argument("names", nargs="*", metavar="NN.M", help="an exercise, or `all`")
    check.set_defaults(run=check_command)
    run = actions.add_parser("run", help="execute the solutions here, store outputs, then sync")
    run.add_argument("chapters", nargs="*", metavar="NN", help="these chapters only")
    run.set_defaults(run=run_command)
    new = actions.add_parser("new", help="copy an exercise's folder as the model of a new one")
    new.add_argument("name", metavar="NN.M", help="the new exercise, as in 05.5")
    new.add_argument("slug", metavar="NAME", help="its folder's name, as in register_tile")
    new.add_argument("--like", metavar="NN.M", help="the model (the chapter's last exercise)")
    new.set_defaults(run=new_command)
    copy = actions.add_parser("release", help="write a copy for learners: no solutions, no tests")
    copy.add_argument("folder", type=Path, metavar="DIR", help="a folder that is new or empty")
    copy.set_defaults(run=release_command)


def grade_command(args: argparse.Namespace) -> int:
    from tiled_matmul.files import replace_text
    from tiled_matmul.grader import on_gpu, pool, practice

    if args.teacher is not None:
        return teacher_command(args)
    for name in ("csv", "junit", "html", "jobs"):
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
    for path in args.paths:
        reports.append(practice.grade(path, confined, args.seed, args.gpu))
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
    return 2 if any("error" in report for report in reports) else 0


def _explained(path: Path, report: dict) -> list[str]:
    from tiled_matmul.grader import cells, explain

    report["nbval"] = explain.differences(cells.collect(path), report["exercises"])
    return [f"  {line}" for one in report["nbval"] for line in one.splitlines()]


def teacher_command(args: argparse.Namespace) -> int:
    """Grade a folder. Status 0: the grading went well, whatever the grades are."""
    import os

    from tiled_matmul.grader import on_gpu, pool, practice, teacher
    from tiled_matmul.machine import sandbox

    if args.paths or args.progress:
        raise ValueError("--teacher takes one folder, and neither notebooks nor --progress")
    jobs = os.cpu_count() or 1 if args.jobs is None else args.jobs
    if jobs < 1:
        raise ValueError(f"--jobs must be 1 or more, got {jobs}")
    if args.gpu:
        on_gpu.need()
    if not pool.sandbox_works():
        raise ValueError(
            "the teacher's mode runs answers in a sandbox, and none can be made here: "
            f"{sandbox.describe()}"
        )
    files = {name: getattr(args, name) for name in teacher.FORMATS}
    files = {name: path for name, path in files.items() if path is not None}
    for path in files.values():
        if not path.resolve().parent.is_dir():
            raise ValueError(f"there is no folder for {path}")
    journal = args.json.with_name(f"{args.json.name}.part") if args.json is not None else None
    print(f"grade: the sandbox is {sandbox.describe()}", file=sys.stderr)
    with _bar() as progress:
        options = {"jobs": jobs, "seed": args.seed, "gpu": args.gpu, "journal": journal}
        reports = teacher.grade(args.teacher, **options, on_progress=progress)
    teacher.write(reports, files)
    if journal is not None:
        journal.unlink(missing_ok=True)
    if not files:
        for report in reports:
            print("\n".join(practice.lines(report)))
    failed = [r for r in reports if r.get("infra")]
    failed += [r for r in reports if any(e["status"] == "INFRA" for e in r["exercises"])]
    for report in failed:
        print(f"grade: {report['path']}: the grader failed here: grade it again", file=sys.stderr)
    return 1 if failed else 0


@contextlib.contextmanager
def _bar():
    """Yield what shows progress: a bar in a terminal, else nothing."""
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
