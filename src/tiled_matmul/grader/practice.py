"""Practice mode: `check("05.1")` in a notebook, and a notebook's grades at the command line."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import textwrap
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from tiled_matmul.files import replace_text
from tiled_matmul.grader import cells, gate, on_gpu
from tiled_matmul.grader.folders import exercise as find
from tiled_matmul.grader.folders import exercises, folder
from tiled_matmul.grader.judge import HINTS, Verdict, judge
from tiled_matmul.grader.judge import verdict as plain_verdict
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import PYTHON_KINDS, Exercise

WIDTH = 90  # columns of what is printed below a notebook's cell
SETTLED = ("PASS", "WRONG", "RACE", "BARRIER", "COMPILE", "FORBIDDEN", "NOT_YET")
ASTRAY = ("unmasked tail", "out of bounds", "no tile")


class NotYet(Exception):
    """The answer does not pass yet; the message says where and why, and which hint is next."""

    def _render_traceback_(self) -> list[str]:
        # Only the message: a traceback through the grader does not help a learner.
        return [sentence("notebook: not yet", message=self)]


def check(name: str, source: str | None = None, gpu: bool = False) -> None:
    """Judge the answer to an exercise in this notebook, and print a line if it passes.

    Outside a notebook, `source` is the text of the answer's cell. With `gpu` a kernel that passes
    is also launched on this machine's GPU, and timed if the exercise asks for speed. Raises NotYet
    if the answer does not pass, with the fault, its place and the hint to read next, and ValueError
    for an unknown exercise or where `gpu` is asked for and there is none.
    """
    exercise = find(name)
    above, note = 0, ""
    if source is None:
        source, above, note = _written(exercise)
    if gpu:
        on_gpu.need()
        with on_gpu.Gpu() as device:
            verdict = judge(exercise, source, gpu=device, above=above)
    else:
        verdict = judge(exercise, source, above=above)
    if verdict.status == "PASS":
        there = on_the_gpu(verdict.evidence) if gpu else ""
        print(sentence("notebook: passed", exercise=name, gpu=there))
        if note:
            print(textwrap.fill(note, WIDTH))
        for line in counts(verdict, loops=exercise.kind in PYTHON_KINDS):
            print(line)
        if after := folder(name).after():
            print(textwrap.fill(after, WIDTH))
        return
    if verdict.diagnosis.startswith(("race", "uninitialised read")):
        _draw(exercise, source)
    if exercise.kind == "triton" and verdict.diagnosis in ASTRAY:
        _draw_walk(exercise, source)
    raise NotYet("\n".join([explained(verdict), note]).rstrip())


def counts(verdict: Verdict, loops: bool = False) -> list[str]:
    """Return lines with a passed answer's counts, those that have a best known one."""
    lines = []
    for one in verdict.evidence.get("counts", ()):
        if one["best"] is None:
            continue
        if one["most"] is not None:
            target = sentence("notebook: at most", number=one["most"])
        else:
            target = sentence("notebook: at least", number=one["least"])
        goal = one["least"] if one["most"] is None else one["most"]
        best = "" if one["best"] == goal else sentence("notebook: best", best=one["best"])
        numbers = {"count": one["count"], "actual": one["actual"], "best": best}
        lines.append(sentence("notebook: count", target=target, **numbers))
    case = verdict.evidence.get("counted")
    whole = sentence("notebook: counted", case=case)
    head = sentence("notebook: counted in loops", case=case) if loops else whole
    return [head, *lines] if lines else []


def on_the_gpu(evidence: dict[str, Any]) -> str:
    """Return the words after "passed" for an answer that passed on a GPU."""
    speed = evidence.get("speed")
    if speed is None:
        return sentence("gpu: passed")
    return sentence("gpu: passed with speed", ratio=speed["ratio"], against=speed["against"])


def explained(verdict: Verdict) -> str:
    """Return a verdict as a learner reads it."""
    exercise, status, message = verdict.exercise, verdict.status, verdict.message
    parts = [sentence("notebook: verdict", exercise=exercise, status=status, message=message)]
    if verdict.points:
        points, max_points = verdict.points, verdict.max_points
        parts.append(sentence("notebook: points", points=points, max_points=max_points))
    if verdict.hint:
        parts.append(sentence("notebook: hint", hint=verdict.hint, hints=HINTS))
    return "\n".join(parts)


@lru_cache(maxsize=4096)
def _input(text: str) -> cells.Cell:
    return cells.Cell("code", "", text, cells.is_readable(text))


def _shell() -> Any:
    """Return the IPython that this runs in, or None."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


_unkept: list[str] = []  # texts of cells that ran without a place in IPython's history


def _keep(info: Any) -> None:
    if not info.store_history:
        _unkept.append(info.raw_cell)


if (_here := _shell()) is not None:  # nbval runs cells so
    _here.events.register("pre_run_cell", _keep)


def _written(exercise: Exercise) -> tuple[str, int, str]:
    """Return (the answer with its helpers above it, the lines above it, a note or "").

    The answer is the latest version of its cell that this notebook ran, even if that raised an
    error: it is what `grade` will find in the file.
    """
    shell = _shell()
    if shell is None:
        raise ValueError(sentence("notebook: elsewhere"))
    texts = list(shell.history_manager.input_hist_raw)
    inputs = [_input(text) for text in (*texts, *_unkept)]
    chosen = cells.latest(exercise, inputs)
    if chosen is None:
        names = {"entry": exercise.entry, "marker": exercise.marker}
        raise NotYet(sentence("notebook: no answer", **names))
    # Earlier versions of the same cell are gone from the notebook.
    version = chosen.marked or ""
    others = [one for one in inputs if one is not chosen and one.marked != version]
    source, above = cells.with_helpers(exercise, chosen, others)
    return source, above, _stale(exercise, shell, chosen, texts)


def _stale(exercise: Exercise, shell: Any, chosen: cells.Cell, texts: Sequence[str]) -> str:
    """Return a note if running the answer's cell did not define the function that is there."""
    kernel = shell.user_ns.get(exercise.entry)
    if kernel is None:
        return sentence("notebook: undefined", entry=exercise.entry)
    function = getattr(kernel, "py_func", getattr(kernel, "fn", kernel))
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    named = getattr(shell.compile, "format_code_name", None)  # IPython 7 has none
    _, place = (named and named(file)) or ("", "")
    number = place.removeprefix("In[").removesuffix("]")
    if number.isdecimal() and int(number) < len(texts) and texts[int(number)] != chosen.source:
        return sentence("notebook: stale", entry=exercise.entry)
    return ""


def _defined(exercise: Any, source: str) -> Any:
    """Define an answer's kernel again, and return it."""
    import linecache

    from tiled_matmul.grader import kinds

    source = gate.admit(exercise, source)
    file = f"<answer {exercise.name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = {**kinds.prepare(exercise.kind), **exercise.given, "__name__": "answer"}
    exec(compile(source, file, "exec"), space)
    return space[exercise.entry]


def _draw_walk(exercise: Any, source: str) -> None:
    """Draw the tiles that a faulty program accesses; the parts beyond an edge are marked."""
    with contextlib.suppress(Exception):
        import torch
        from IPython.display import display

        from tiled_matmul.microscope.triton import trace_tiles
        from tiled_matmul.plots import programs

        case = exercise.cases[0]
        inputs = [torch.from_numpy(x) for x in exercise.inputs(case, 0)]
        arrays = [*inputs, inputs[0].new_zeros(exercise.shapes(case)[-1])]
        grid, block = exercise.launch(case)
        sizes = exercise.sizes(case), *(x.stride() for x in arrays)
        numbers = [number for several in sizes for number in several]
        t = trace_tiles(_defined(exercise, source), grid, *arrays, *numbers, **block)
        display(programs.tile_walk(t, t.findings[0].program))


def _draw(exercise: Any, source: str) -> None:
    """Draw what the kernel did from barrier to barrier. If drawing fails, nothing is shown."""
    with contextlib.suppress(Exception):
        import numpy as np
        from IPython.display import display

        from tiled_matmul.microscope.cuda import trace
        from tiled_matmul.plots import microscope

        case = exercise.cases[0]
        arrays = [*exercise.inputs(case, 0), np.zeros(exercise.shapes(case)[-1], case.dtype)]
        grid, block = exercise.launch(case)
        kernel = _defined(exercise, source)
        display(microscope.timeline(trace(kernel, grid, block, *arrays)))


# The command line.


class Alike:
    """The verdicts on the answers of many submissions. The same text is not judged again.

    Nor is an answer that differs only in comments and spaces from one that passes.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.verdicts: dict[tuple[str, bytes], Future[Verdict]] = {}
        self.twice: set[tuple[str, bytes]] = set()  # TIMEOUT at two tries
        self.passed: dict[tuple[str, bytes], Verdict] = {}  # by the code

    def judge(self, exercise: Exercise, source: str, **options: Any) -> Verdict:
        """Return the verdict on an answer, as `judge.judge` does, all with the same options.

        Verdicts that another try could change, such as TIMEOUT, are used from the second one on.
        """
        code = self._key(exercise, gate.meant(source))
        if (verdict := self.passed.get(code)) is not None:
            return verdict
        verdict = self._judge(exercise, source, **options)
        if verdict.status == "PASS":
            self.passed[code] = verdict
        return verdict

    def _key(self, exercise: Exercise, text: str) -> tuple[str, bytes]:
        return exercise.name, hashlib.sha256(text.encode("utf-8", "replace")).digest()

    def _judge(self, exercise: Exercise, source: str, **options: Any) -> Verdict:
        key = self._key(exercise, f"{options.get('above', 0)} {source}")
        with self.lock:
            first = key not in self.verdicts
            known = self.verdicts.setdefault(key, Future())
        if not first:
            earlier = None
            with contextlib.suppress(Exception, CancelledError):
                earlier = known.result()
            if earlier is not None and (earlier.status in SETTLED or key in self.twice):
                return earlier
            verdict = judge(exercise, source, **options)
            if earlier is not None and earlier.status == verdict.status == "TIMEOUT":
                self.twice.add(key)
            return verdict
        try:
            known.set_result(verdict := judge(exercise, source, **options))
        except BaseException as error:
            known.set_exception(error)
            raise
        return verdict


def grade(
    path: str | os.PathLike,
    confined: bool,
    seed: int | None = None,
    gpu: bool = False,
    sanitize: bool = False,
    jobs: int = 1,
    alike: Alike | None = None,
) -> dict[str, Any]:
    """Return a submission as the JSON report holds it; an unreadable file has an "error" there.

    With `gpu`, kernels are launched and timed on this machine's GPU as well, and with `sanitize`
    also run under compute-sanitizer where that is installed. Without, `jobs` exercises are graded
    at a time, and of answers that are `alike` only the first one is judged.
    """
    several = (1, None) if gpu else (jobs, alike)
    return _printable(_graded(path, confined, seed, gpu, sanitize, *several))


def _printable(value: Any) -> Any:
    """Return a report with all its strings made printable, so that every format can hold them."""
    if isinstance(value, dict):
        return {name: _printable(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_printable(part) for part in value]
    return cells.printable(value, lines=True) if isinstance(value, str) else value


def _graded(
    path: str | os.PathLike,
    confined: bool,
    seed: int | None,
    gpu: bool,
    sanitize: bool,
    jobs: int,
    alike: Alike | None,
) -> dict[str, Any]:
    report: dict[str, Any] = {"path": cells.printable(str(path)), "exercises": []}
    try:
        submission = cells.collect(path)
    except cells.Unreadable as error:
        return report | {"error": str(error)}
    if submission.notices:
        report["notices"] = list(submission.notices)
    with on_gpu.Gpu() if gpu else contextlib.nullcontext() as device:

        def verdict(answer: cells.Found) -> Verdict:
            if answer.source is None:
                cc = device.cc if device is not None else None
                return plain_verdict(answer.exercise, answer.status, answer.message, cc=cc)
            options = {"confined": confined, "seed": seed, "gpu": device, "sanitize": sanitize}
            options["above"] = answer.above
            try:
                if alike is not None:
                    return alike.judge(answer.exercise, answer.source, **options)
                return judge(answer.exercise, answer.source, **options)
            except Exception as error:  # the grader's own fault, and the other answers' marks stay
                kind, reason = type(error).__name__, str(error)[:200]
                failure = sentence("infra: grader", kind=kind, reason=reason)
                return plain_verdict(answer.exercise, "INFRA", failure)

        # The longest begin first, so that none of them is still at work when the others are done.
        order = sorted(submission.answers, key=lambda one: -one.exercise.in_all)
        with ThreadPoolExecutor(jobs) as pool:
            verdicts = {one.exercise: one.as_json() for one in pool.map(verdict, order)}
        report["exercises"] = [verdicts[answer.exercise.name] for answer in submission.answers]
    return report


def lines(report: dict[str, Any]) -> list[str]:
    """Return a report as lines of text: one for each exercise."""
    out = [report["path"]]
    if "error" in report:
        return [f"{report['path']}: {report['error']}"]
    for one in report["exercises"]:
        points = f"{one['points']:g} of {one['max_points']}"
        text = f"  {one['exercise']}  {one['status']:9}  {points:>9}"
        message = [" ".join(each.split()) for each in one["evidence"]["message"].splitlines()]
        if message and one["status"] != "PASS":
            text += f"  {' '.join([*message[:1], *message[1:][-1:]])}"
        if "speed" in one["evidence"]:
            text += f"  passed{on_the_gpu(one['evidence'])}"
        if one["hint"]:
            text += f" [hint {one['hint']}]"
        out.append(text)
    out += [f"  note: {notice}" for notice in report.get("notices", [])]
    return out


def exit_status(reports: Sequence[dict]) -> int:
    """Return the exit status of a grading: 0 if all is passed, 1 if not, 2 for a fault elsewhere.

    A fault elsewhere is a file that could not be graded, or a grader that failed (INFRA).
    """
    statuses = {one["status"] for report in reports for one in report["exercises"]}
    if "INFRA" in statuses or any("error" in report for report in reports):
        return 2
    return 1 if statuses - {"PASS"} else 0


def state_file() -> Path:
    """Return the path of the file that keeps this user's progress."""
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
    """Return the best points so far; {} if there is no readable file."""
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
    """Return a line with the progress in each exercise, and a line with the sum."""
    best, out, total = progress(), [], 0.0
    for exercise in exercises():
        points = best.get(exercise.name, {}).get("points", 0)
        total += points
        out.append(f"  {exercise.name}  {points:g} of {exercise.points}  {exercise.title}")
    return [*out, f"  in all {total:g} of {sum(e.points for e in exercises())}"]
