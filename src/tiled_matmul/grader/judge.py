"""Judge the source of an answer. This process never runs a learner's code.

It draws the inputs, has a worker run the answer on them, and compares the bytes that come back
with its own product in float64, within the error bound of `check`.
"""

from __future__ import annotations

import itertools
import secrets
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from tiled_matmul.grader import allowed, gate, on_gpu, pool
from tiled_matmul.grader.compare import Stop, define, known, numbered, readable, run_case
from tiled_matmul.grader.spec import Call, Case, Exercise
from tiled_matmul.languages import TRITON

STATUSES = (
    *("PASS", "WRONG", "RACE", "BARRIER", "COMPILE", "TIMEOUT", "CRASH", "GPU_FAULT"),
    *("FORBIDDEN", "NOT_YET", "MISSING", "TAMPERED", "INFRA"),
)
HINTS = 3
INFRA_TRIES = 2
OTHERS = 16  # calls that may clear an answer of a mistake which another call hints at
HINTED = ("WRONG", "RACE", "BARRIER", "COMPILE", "TIMEOUT", "FORBIDDEN")
ON_GPU = ("cuda", "triton")  # the kinds whose answers are kernels


@dataclass(frozen=True)
class Verdict:
    """The result of one exercise. `hint` is the number of the hint to read next, 0 for none."""

    exercise: str
    status: str
    points: float
    max_points: int
    message: str = ""
    diagnosis: str = ""
    hint: int = 0
    evidence: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as the JSON report has it."""
        return {
            "exercise": self.exercise,
            "status": self.status,
            "points": self.points,
            "max_points": self.max_points,
            "hint": self.hint,
            "evidence": {"message": self.message, "diagnosis": self.diagnosis, **self.evidence},
        }


def verdict(
    exercise: Exercise,
    status: str,
    message: str,
    diagnosis: str = "",
    cc: tuple[int, int] | None = None,
) -> Verdict:
    """Return a verdict without points."""
    diagnosis = known(exercise, diagnosis)
    hint = exercise.hint(diagnosis) if status in HINTED else 0
    most = exercise.points_on(cc)
    return Verdict(exercise.name, status, 0, most, message, diagnosis, hint)


def judge(
    exercise: Exercise,
    source: str,
    *,
    confined: bool = False,
    seed: int | None = None,
    gated: bool = True,
    worker: pool.Worker | None = None,
    gpu: on_gpu.Gpu | None = None,
    sanitize: bool = False,
    above: int = 0,
) -> Verdict:
    """Judge the source of a solution cell, whose first lines, `above` of them, are other cells'.

    `confined` runs it in a sandbox, and `seed` repeats the inputs of an earlier grading; without a
    seed they are new. With a `gpu`, an answer that is right in the interpreter is launched and
    timed there as well; `sanitize` adds compute-sanitizer where that is installed.

    Two arguments are for tests. `gated` False skips the check of the source, to test what protects
    the grader behind it. `worker` is one that runs already: in grading, each answer has its own,
    because an answer could tamper with what the next one finds there.
    """
    found = _judge(exercise, source, confined, seed, gated, worker, gpu, sanitize)
    return replace(found, message=numbered(found.message, above)) if above else found


def _judge(
    exercise: Exercise,
    source: str,
    confined: bool,
    seed: int | None,
    gated: bool,
    worker: pool.Worker | None,
    gpu: on_gpu.Gpu | None,
    sanitize: bool,
) -> Verdict:
    text = source
    if gated:
        try:
            text = gate.admit(exercise, source)
        except gate.NotPython as error:
            return verdict(exercise, "WRONG", str(error), "error", gpu and gpu.cc)
        except gate.Refused as error:
            message = readable(str(error), source)
            return verdict(exercise, error.status, message, error.diagnosis, gpu and gpu.cc)
    interpreted = _here(exercise, text, confined, seed, worker, gated)
    if gated and interpreted.status in ("WRONG", "RACE"):
        doubts = itertools.islice(allowed.doubts(text), 1)
        message = readable("\n".join([interpreted.message, *doubts]), source)
        interpreted = replace(interpreted, message=message)
    if gpu is None:
        return interpreted
    most = exercise.points_on(gpu.cc)
    launched = exercise.kind in ON_GPU or exercise.speed_on(gpu.cc) is not None
    if interpreted.status != "PASS" or not launched or gpu.cc < exercise.since:
        return replace(interpreted, max_points=most)
    return _there(exercise, text, interpreted, gpu, confined, sanitize)


def _there(
    exercise: Exercise,
    source: str,
    interpreted: Verdict,
    gpu: on_gpu.Gpu,
    confined: bool,
    sanitize: bool,
) -> Verdict:
    """Return the verdict on the GPU for an answer that passed in the interpreter."""
    most = exercise.points_on(gpu.cc)
    try:
        seed = interpreted.evidence["seed"]
        speed = on_gpu.judge_there(exercise, source, seed, gpu, confined, sanitize)
    except Stop as stop:
        points, hint = round(most * stop.share, 2), exercise.hint(stop.diagnosis)
        rest = readable(str(stop), source), stop.diagnosis, hint, interpreted.evidence
        return Verdict(exercise.name, stop.status, points, most, *rest)
    except (on_gpu.NoGpu, pool.NoWorker) as error:
        return verdict(exercise, "INFRA", str(error)[:500], cc=gpu.cc)
    evidence = {**interpreted.evidence, **({"speed": speed} if speed else {})}
    return replace(interpreted, points=most, max_points=most, evidence=evidence)


def _here(
    exercise: Exercise,
    source: str,
    confined: bool,
    seed: int | None,
    worker: pool.Worker | None,
    gated: bool,
) -> Verdict:
    """Return the verdict without a GPU, from the interpreters."""
    seed = secrets.randbits(32) if seed is None else seed
    if exercise.kind == "triton" and TRITON.missing():
        return verdict(exercise, "INFRA", TRITON.missing())
    if worker is not None:
        return _judged(exercise, source, worker, seed, gated)
    for attempt in range(INFRA_TRIES):
        try:
            with pool.Worker(exercise.kind, exercise.limits, confined) as fresh:
                return _judged(exercise, source, fresh, seed, gated)
        except pool.NoWorker as error:
            if attempt + 1 == INFRA_TRIES:
                return verdict(exercise, "INFRA", str(error)[:500])
    raise AssertionError("not reached")


def _judged(
    exercise: Exercise, source: str, worker: pool.Worker, seed: int, gated: bool
) -> Verdict:
    """Return the verdict on an answer, from all its cases in one worker."""
    evidence: dict[str, Any] = {"seed": seed}
    shown, long_way = None, None
    try:
        define(exercise, source, worker, guarded=gated and exercise.kind == "values")
        calls = exercise.cases[:OTHERS] if exercise.kind == "values" else ()
        others = [case.drawn(seed + number) for number, case in enumerate(calls)]
        for number, case in enumerate(exercise.cases):
            shown = case = case.drawn(seed + number) if isinstance(case, Call) else case
            try:
                counted = run_case(exercise, case, worker, seed + number, others)
                if number == 0 and counted:
                    evidence |= {"counts": counted, "counted": exercise.described(case)}
            except Stop as stop:
                if not stop.share:
                    raise
                # The answer keeps part of its points only if the other cases are right as well.
                long_way = long_way or (stop, case)
        if _is_compiled(exercise, worker):
            shown = None
            on_gpu.compiles(exercise, worker)
        if long_way:
            stop, shown = long_way
            raise stop
    except Stop as found:
        stop = _refused(exercise, worker, found)
        shown = shown if stop is found else None
        if shown is not None:
            evidence["case"] = exercise.described(shown)
        if worker.output:
            evidence["printed"] = worker.printed
        message = readable(str(stop), source)
        if isinstance(shown, Case) and stop.status in ("WRONG", "RACE", "BARRIER"):
            message = f"{exercise.described(shown)}: {message}"
        points = round(exercise.points * stop.share, 2)
        hint = exercise.hint(stop.diagnosis) if stop.status in (*HINTED, "CRASH") else 0
        return Verdict(
            *(exercise.name, stop.status, points, exercise.points),
            *(message, stop.diagnosis, hint, evidence),
        )
    return Verdict(exercise.name, "PASS", exercise.points, exercise.points, evidence=evidence)


def _is_compiled(exercise: Exercise, worker: pool.Worker) -> bool:
    """Is an answer compiled, besides being interpreted? A learner may have no compiler, on macOS.

    Others' answers are compiled always.
    """
    has_compiler = exercise.kind == "triton" or find_spec("numba_cuda") is not None
    return exercise.kind in ON_GPU and (worker.confined or has_compiler)


def _refused(exercise: Exercise, worker: pool.Worker, stop: Stop) -> Stop:
    """Return the compiler's word on a kernel that the interpreter does not know, if it refuses."""
    if stop.status == "NOT_YET" and _is_compiled(exercise, worker):
        try:
            on_gpu.compiles(exercise, worker)
        except Stop as refused:
            return refused
    return stop


__all__ = ["STATUSES", "Case", "Verdict", "judge", "verdict"]
