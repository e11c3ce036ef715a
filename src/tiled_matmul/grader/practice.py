"""For a learner: `check("05.1")` in the notebook, and a notebook's grades at the command line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiled_matmul.files import replace_text
from tiled_matmul.grader import cells, on_gpu
from tiled_matmul.grader.folders import exercise as find
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.judge import HINTS, Verdict, judge
from tiled_matmul.grader.judge import verdict as plain_verdict

ASTRAY = ("unmasked tail", "out of bounds", "no tile")


class NotYet(Exception):
    """The answer does not pass yet; the message says where and why, and which hint is next."""

    def _render_traceback_(self) -> list[str]:
        # Where in the grader this was raised helps nobody: the message alone is shown.
        return [f"Not yet.\n\n{self}"]


def check(name: str, source: str | None = None, gpu: bool = False) -> None:
    """Judge the answer to an exercise as it stands in this notebook; print that it passed.

    `source` is that of the answer's cell, for use outside of notebooks. With `gpu` a kernel that
    passes is launched on this machine's GPU too, and timed where the exercise asks for speed.
    Raises NotYet with what is wrong, where, and which hint to read next; ValueError without a GPU.
    """
    exercise = find(name)
    if source is None:
        source = _written(exercise)
    if gpu:
        on_gpu.need()
        with on_gpu.Gpu() as there:
            verdict = judge(exercise, source, gpu=there)
    else:
        verdict = judge(exercise, source)
    if verdict.status == "PASS":
        print(f"{name} passed{on_the_gpu(verdict.evidence) if gpu else ''}")
        return
    if verdict.diagnosis.startswith(("race", "uninitialised read")):
        _draw(exercise, source)
    if exercise.kind == "triton" and verdict.diagnosis in ASTRAY:
        _draw_walk(exercise, source)
    raise NotYet(explained(verdict))


def on_the_gpu(evidence: dict[str, Any]) -> str:
    """Return what is to be told of an answer that passed on a GPU, behind "passed"."""
    speed = evidence.get("speed")
    if speed is None:
        return ", on the GPU too"
    return f", on the GPU at {speed['ratio']:.2f} of the speed of {speed['against']}"


def explained(verdict: Verdict) -> str:
    """Return a verdict as a learner reads it."""
    parts = [f"{verdict.exercise} {verdict.status}: {verdict.message}"]
    if verdict.points:
        parts.append(f"{verdict.points:g} of {verdict.max_points} points so far.")
    if verdict.hint:
        parts.append(f"Read hint {verdict.hint} of {HINTS}, below the exercise.")
    return "\n".join(parts)


def _written(exercise: Any) -> str:
    """Return the text of the cell that defined the answer, as it was last run."""
    import linecache

    try:
        from IPython import get_ipython

        shell = get_ipython()
    except ImportError:
        shell = None
    if shell is None:
        raise ValueError("check() reads a notebook's cells; at the command line: grade NOTEBOOK")
    kernel = shell.user_ns.get(exercise.entry)
    function = getattr(kernel, "py_func", getattr(kernel, "fn", kernel))
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    text = "".join(linecache.getlines(file))
    if not text:
        raise NotYet(
            f"There is no {exercise.entry} yet: run the cell that begins with "
            f"`{exercise.marker}` first, and mend what it says."
        )
    return text


def _defined(exercise: Any, source: str) -> Any:
    """Return the kernel of an answer, defined anew."""
    import linecache

    from tiled_matmul.grader import kinds

    file = f"<answer {exercise.name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = {**kinds.prepare(exercise.kind), **exercise.given, "__name__": "answer"}
    exec(compile(source, file, "exec"), space)
    return space[exercise.entry]


def _draw_walk(exercise: Any, source: str) -> None:
    """Show the tiles that a program of the learner's touches, those beyond an edge as faults."""
    with contextlib.suppress(Exception):
        import torch
        from IPython.display import display

        from tiled_matmul.microscope.triton import trace_tiles
        from tiled_matmul.plots import programs

        case = exercise.cases[0]
        a, b = (torch.from_numpy(x) for x in case.inputs(0))
        c = a.new_zeros(case.shapes[2])
        grid, block = exercise.launch(case)
        sizes = (case.m, case.n, case.k, *a.stride(), *b.stride(), *c.stride())
        t = trace_tiles(_defined(exercise, source), grid, a, b, c, *sizes, **block)
        display(programs.tile_walk(t, t.findings[0].program))


def _draw(exercise: Any, source: str) -> None:
    """Show what the learner's kernel did, from barrier to barrier; no picture is no fault."""
    with contextlib.suppress(Exception):
        import numpy as np
        from IPython.display import display

        from tiled_matmul.microscope.cuda import trace
        from tiled_matmul.plots import microscope

        case = exercise.cases[0]
        a, b = case.inputs(0)
        c = np.zeros((case.m, case.n), case.dtype)
        grid, block = exercise.launch(case)
        kernel = _defined(exercise, source)
        display(microscope.timeline(trace(kernel, grid, block, a, b, c)))


# The command line.


def grade(
    path: str | os.PathLike,
    confined: bool,
    seed: int | None = None,
    gpu: bool = False,
    sanitize: bool = False,
) -> dict[str, Any]:
    """Return a submission as the JSON report has it; what cannot be read is a line in it.

    With `gpu`, kernels are launched and timed on this machine's GPU as well, with `sanitize` under
    compute-sanitizer too, where that is present.
    """
    return _printable(_graded(path, confined, seed, gpu, sanitize))


def _printable(value: Any) -> Any:
    """Return a report whose texts every format can hold."""
    if isinstance(value, dict):
        return {name: _printable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_printable(part) for part in value]
    return cells.printable(value, lines=True) if isinstance(value, str) else value


def _graded(
    path: str | os.PathLike, confined: bool, seed: int | None, gpu: bool, sanitize: bool
) -> dict[str, Any]:
    report: dict[str, Any] = {"path": cells.printable(str(path)), "exercises": []}
    try:
        submission = cells.collect(path)
    except cells.Unreadable as error:
        return report | {"error": str(error)}
    if submission.notices:
        report["notices"] = list(submission.notices)
    with on_gpu.Gpu() if gpu else contextlib.nullcontext() as there:
        for found in submission.answers:
            if found.source is None:
                cc = there.cc if there is not None else None
                verdict = plain_verdict(found.exercise, found.status, found.message, cc=cc)
            else:
                options = {"confined": confined, "seed": seed, "gpu": there, "sanitize": sanitize}
                verdict = judge(found.exercise, found.source, **options)
            report["exercises"].append(verdict.as_json())
    return report


def lines(report: dict[str, Any]) -> list[str]:
    """Return a report as lines of text: one for each exercise."""
    out = [report["path"]]
    if "error" in report:
        return [f"{report['path']}: {report['error']}"]
    for one in report["exercises"]:
        points = f"{one['points']:g} of {one['max_points']}"
        text = f"  {one['exercise']}  {one['status']:9}  {points:>9}"
        said = one["evidence"]["message"].splitlines()
        told = " ".join([*said[:1], *said[1:][-1:]]) if one["status"] != "PASS" else ""
        if told:
            text += f"  {told}"
        if "speed" in one["evidence"]:
            text += f"  passed{on_the_gpu(one['evidence'])}"
        if one["hint"]:
            text += f" [hint {one['hint']}]"
        out.append(text)
    out += [f"  note: {notice}" for notice in report.get("notices", [])]
    return out


def state_file() -> Path:
    """Return where this user's progress is kept."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "tiled_matmul" / "progress.json"


def remember(reports: Sequence[dict]) -> None:
    """Keep the best points of each exercise, in the user's own folder."""
    best = progress()
    for report in reports:
        for one in report["exercises"]:
            known = best.get(one["exercise"], {"points": 0})
            best[one["exercise"]] = {
                "points": max(one["points"], known["points"]),
                "max_points": one["max_points"],
                "status": one["status"],
            }
    path = state_file()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps(best, indent=1, sort_keys=True) + "\n")


def progress() -> dict[str, dict]:
    """Return the best points so far; {} where nothing, or nothing readable, is kept."""
    try:
        kept = json.loads(state_file().read_text(encoding="utf-8"))
        return {
            name: {"points": float(one["points"]), **one}
            for name, one in kept.items()
            if isinstance(one, dict)
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}


def progress_lines() -> list[str]:
    """Return the progress, a line for each exercise, and the sum."""
    best, out, total = progress(), [], 0.0
    for exercise in exercises():
        points = best.get(exercise.name, {}).get("points", 0)
        total += points
        said = f"  {exercise.name}  {points:g} of {exercise.points}  {exercise.title}"
        out.append(said)
    return [*out, f"  in all {total:g} of {sum(e.points for e in exercises())}"]
