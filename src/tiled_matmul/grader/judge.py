"""From a learner's cell to a verdict. This process never runs a learner's code.

It draws the inputs, has a worker run the answer on them, and compares the bytes that come back
with a product of its own in float64, under the bound of `check`.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiled_matmul.check import diagnose
from tiled_matmul.grader import gate, pool, wire
from tiled_matmul.grader.spec import Call, Case, Exercise, Slip

STATUSES = (
    *("PASS", "WRONG", "TIMEOUT", "CRASH", "GPU_FAULT", "RACE", "FORBIDDEN", "MISSING"),
    *("DUPLICATE", "TAMPERED", "INFRA"),
)
HINTS = 3
NEAR_SUMS = 1e-5  # of the sum of the sizes: rounding is less, a mistake is more
RACES = ("race", "uninitialised read", "divergent barrier")
UNDEFINED = (
    "What a mask or a boundary_check leaves out of a load is undefined, here NaN, unless other=0.0 "
    'or padding_option="zero" says what it is.'
)
INFRA_TRIES = 2
NEAR = 1e-9  # of a number that is no whole one: how it was rounded on the way does not matter


@dataclass(frozen=True)
class Verdict:
    """What became of one exercise. `hint` is the number of the hint to read next, 0 for none."""

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


class _Stop(Exception):
    """The answer is judged: status, diagnosis, message."""

    def __init__(self, status: str, diagnosis: str, message: str, share: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.diagnosis, self.share = status, diagnosis, share


def verdict(exercise: Exercise, status: str, message: str, diagnosis: str = "") -> Verdict:
    """Return a verdict without points."""
    hint = exercise.hint(diagnosis) if status in ("WRONG", "RACE", "TIMEOUT", "FORBIDDEN") else 0
    return Verdict(exercise.name, status, 0, exercise.points, message, diagnosis, hint)


def judge(
    exercise: Exercise,
    source: str,
    *,
    confined: bool = False,
    seed: int | None = None,
    gated: bool = True,
    worker: pool.Worker | None = None,
) -> Verdict:
    """Judge the source of a solution cell.

    `confined` runs it in a sandbox; `seed` repeats a grading's inputs, which else are new; `gated`
    False leaves out the look at the source, for tests of what stands behind it. A `worker` that
    runs already is for tests too: one answer could lay hands on what the next one finds there.
    """
    if gated:
        try:
            gate.admit(exercise, source)
        except gate.NotPython as error:
            return verdict(exercise, "WRONG", str(error), "error")
        except gate.Refused as error:
            return verdict(exercise, "FORBIDDEN", str(error), "forbidden")
    seed = secrets.randbits(32) if seed is None else seed
    if worker is not None:
        return _judged(exercise, source, worker, seed)
    for attempt in range(INFRA_TRIES):
        try:
            with pool.Worker(exercise.kind, exercise.limits, confined) as fresh:
                return _judged(exercise, source, fresh, seed)
        except pool.NoWorker as error:
            if attempt + 1 == INFRA_TRIES:
                return verdict(exercise, "INFRA", str(error)[:500])
    raise AssertionError("not reached")


def _judged(exercise: Exercise, source: str, worker: pool.Worker, seed: int) -> Verdict:
    evidence: dict[str, Any] = {"seed": seed}
    shown, long_way = None, None
    try:
        _define(exercise, source, worker)
        for number, case in enumerate(exercise.cases):
            shown = case = case.drawn(seed + number) if isinstance(case, Call) else case
            try:
                _case(exercise, case, worker, seed + number)
            except _Stop as stop:
                if not stop.share:
                    raise
                # Part of the points is for what is right in the other cases as well.
                long_way = long_way or (stop, case)
        if long_way:
            stop, shown = long_way
            raise stop
    except _Stop as stop:
        if shown is not None:
            evidence["case"] = str(shown)
        if worker.output:
            evidence["printed"] = worker.said
        message = str(stop)
        if isinstance(shown, Case) and stop.status in ("WRONG", "RACE"):
            message = f"{shown}: {message}"
        points = round(exercise.points * stop.share, 2)
        hint = exercise.hint(stop.diagnosis)
        return Verdict(
            *(exercise.name, stop.status, points, exercise.points),
            *(message, stop.diagnosis, hint, evidence),
        )
    return Verdict(exercise.name, "PASS", exercise.points, exercise.points, evidence=evidence)


def _ask(
    exercise: Exercise, worker: pool.Worker, header: dict, blobs: list[bytes], most: int
) -> tuple[dict, list[bytes]]:
    """Ask the worker, and let its failures be the answer's."""
    try:
        reply, data = worker.ask(header, blobs, exercise.limits.seconds, most)
    except pool.TooSlow:
        raise _Stop(
            "TIMEOUT",
            "timeout",
            f"No end within {exercise.limits.seconds:g} s. Which loop never ends, or runs far too "
            "often?",
        ) from None
    except pool.Died as died:
        raise _Stop("CRASH", "crash", f"The answer ended its process: {died}.") from None
    except wire.BadMessage as error:
        raise _Stop("CRASH", "crash", f"The answer's process sent nonsense: {error}.") from None
    error = reply.get("error")
    if error is None:
        return reply, data
    raise _failed(error)


def _failed(error: Any) -> _Stop:
    """Return what an exception in the answer means."""
    if not isinstance(error, dict):
        return _Stop("CRASH", "crash", "The answer's process sent nonsense.")
    kind, message = (str(error.get(name, ""))[:2000] for name in ("type", "message"))
    line = error.get("line")
    where = f" (line {line})" if type(line) is int and line else ""
    if kind == "StepLimit":
        return _Stop("TIMEOUT", "timeout", message.partition(" (Threads")[0])
    if kind == "MemoryError":
        return _Stop("CRASH", "memory", f"The answer takes more memory than there is{where}.")
    if kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit"):
        return _Stop("CRASH", "crash", f"The answer stops its process with {kind}{where}.")
    return _Stop("WRONG", "error", f"{kind}{where}: {message}")


def _define(exercise: Exercise, source: str, worker: pool.Worker) -> None:
    header = {"source": source, "given": dict(exercise.given), "entry": exercise.entry}
    reply, _ = _ask(exercise, worker, header, [], 0)
    if reply != {"defined": True}:
        raise _Stop("CRASH", "crash", "The answer's process sent nonsense.")


def _case(exercise: Exercise, case: Any, worker: pool.Worker, seed: int) -> None:
    """Run and judge one case; raise _Stop unless it is right."""
    header = {
        "kind": exercise.kind,
        "entry": exercise.entry,
        "given": {**exercise.given, **case.given},
    }
    if isinstance(case, Call):
        _call(exercise, case, worker, header)
        return
    a, b = case.inputs(seed)
    c_shape = case.shapes[2]
    c_bytes = math.prod(c_shape) * a.dtype.itemsize
    header |= {"shapes": case.shapes, "dtype": case.dtype, "order": case.order}
    header |= {"by_columns": case.by_columns, "corner": case.corner}
    if exercise.launch is not None:
        header["launch"] = exercise.launch(case)
    # Large whole numbers: an element that nobody writes shows, and so does a sum on top of it.
    stale = np.random.default_rng(seed).integers(10_000, 20_000, c_shape)
    stale = stale.astype(case.dtype)
    blobs = [a.tobytes(), b.tobytes(), stale.tobytes()]
    reply, data = _ask(exercise, worker, header, blobs, c_bytes + a.nbytes + b.nbytes)
    if [len(blob) for blob in data] != [c_bytes, a.nbytes, b.nbytes]:
        raise _Stop("CRASH", "crash", "The answer's process sent arrays of other sizes.")
    findings, counts = _facts(reply)
    _look_at_findings(exercise, findings)
    for name, now, then in zip("ab", data[1:], blobs[:2], strict=True):
        if now != then:
            raise _Stop(
                "WRONG", "inputs", f"The answer changes its input {name}; it may only read it."
            )
    c = np.frombuffer(data[0], case.dtype).reshape(c_shape)
    if case.parts:
        c, stale = (x.sum(axis=0, dtype=np.float64).astype(case.dtype) for x in (c, stale))
    report = diagnose(c, a, b, tile=exercise.tile, previous=stale)
    if not report.ok:
        _slips(exercise, case, c, a, b, report)
        lost = report.pattern == "not finite" and exercise.kind == "triton"
        told = f"{report.message} {UNDEFINED}" if lost else report.message
        told = f"Of the sum of the parts: {told}" if case.parts else told
        raise _Stop("WRONG", report.pattern or "value", told)
    for count in exercise.counts:
        found, most = counts.get(count.what), count.most(case)
        if found is None:
            raise _Stop("CRASH", "crash", f"The answer's process did not say its {count.what}.")
        if found > most:
            told = f"{count.message} ({count.what}: {found:,}, at most {most:,}.)"
            raise _Stop("WRONG", count.diagnosis, told, count.share)


def _slips(exercise: Exercise, case: Case, c: Any, a: Any, b: Any, report: Any) -> None:
    """Raise for the first of the exercise's own mistakes that gives this wrong C."""
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b)

    def near(x: Any, y: Any) -> bool:
        return bool(((np.abs(x - y) <= NEAR_SUMS * (sizes + np.abs(y))) | np.isnan(y)).all())

    for slip in exercise.slips:
        made = slip.answer(case, a.astype(np.float64), b.astype(np.float64))
        if made is not None and near(c, made) and not near(a.astype(np.float64) @ b, made):
            first = report.message.partition("The wrong ones")[0]
            raise _Stop("WRONG", slip.diagnosis, f"{first}{slip.message}")


def _call(exercise: Exercise, case: Call, worker: pool.Worker, header: dict) -> None:
    header["arguments"] = case.arguments
    _, data = _ask(exercise, worker, header, [], 64 << 10)
    try:
        (text,) = data
        result = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise _Stop("CRASH", "crash", "The answer's process sent nonsense.") from None
    wanted = json.loads(json.dumps(exercise.answer(*case.arguments)))
    if _alike(result, wanted):
        return
    asked = "" if case.hidden else f", should be {wanted!r}"
    told, diagnosis = f"{exercise.entry}{case} is {result!r:.300}{asked}.", "value"
    if result is None:
        told, diagnosis = f"{told} Does it end at a `return`?", "nothing"
    for slip in exercise.slips:
        if _slipped(slip, case.arguments, result, wanted):
            told, diagnosis = f"{told} {slip.message}", slip.diagnosis
            break
    raise _Stop("WRONG", diagnosis, told)


def _slipped(slip: Slip, arguments: tuple, result: Any, wanted: Any) -> bool:
    """Is a wrong result what comes of this mistake?"""
    if slip.part is not None:
        if not isinstance(result, list) or len(result) != len(wanted):
            return False
        result, wanted = result[slip.part], wanted[slip.part]
        if _alike(result, wanted):
            return False
    with contextlib.suppress(ArithmeticError):
        return _alike(result, json.loads(json.dumps(slip.answer(*arguments))))
    return False


def _alike(x: Any, y: Any) -> bool:
    """Are two values of JSON equal, floats but for their last digits? True is no 1."""
    if isinstance(x, bool) or isinstance(y, bool):
        return x is y
    if isinstance(x, int | float) and isinstance(y, int | float):
        with contextlib.suppress(OverflowError):
            close = isinstance(x, float) or isinstance(y, float)
            return x == y or (close and math.isclose(x, y, rel_tol=NEAR, abs_tol=NEAR))
        return False
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(_alike, x, y))
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[key], y[key]) for key in x)
    return type(x) is type(y) and x == y


def _facts(reply: dict) -> tuple[list[dict], dict[str, int]]:
    """Return (findings, counts) of a reply of exactly the form that a worker sends."""
    nonsense = _Stop("CRASH", "crash", "The answer's process sent nonsense.")
    if set(reply) != {"findings", "counts"}:
        raise nonsense
    findings, counts = reply["findings"], reply["counts"]
    if not isinstance(findings, list) or not isinstance(counts, dict) or len(findings) > 64:
        raise nonsense
    for found in findings:
        words = ("kind", "array", "message", "remedy")
        if not isinstance(found, dict) or set(found) != {*words, "count"}:
            raise nonsense
        if not all(isinstance(found[word], str) for word in words):
            raise nonsense
    if not all(type(number) is int and number >= 0 for number in counts.values()):
        raise nonsense
    return findings, counts


def _look_at_findings(exercise: Exercise, findings: list[dict]) -> None:
    """Raise for the first thing that the microscope saw: what comes first explains the rest.

    A hint may be for one array alone: "race of c".
    """
    order = ("divergent barrier", "race", "out of bounds", "negative index", "uninitialised read")
    order += ("no tile", "unmasked tail", "stored twice", "not stored", "not read")
    for kind in order:
        for found in findings:
            if found["kind"] == kind:
                status = "RACE" if kind in ("race", "divergent barrier") else "WRONG"
                told = f"{kind} of {found['array']}"
                diagnosis = told if told in exercise.hints else kind
                raise _Stop(status, diagnosis, f"{found['message']} {found['remedy']}")
    for found in findings:  # of Triton's programs
        raise _Stop("WRONG", found["kind"], f"{found['message']} {found['remedy']}")


__all__ = ["STATUSES", "Case", "Verdict", "judge", "verdict"]
