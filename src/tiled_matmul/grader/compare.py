"""What a worker sent, against what is right. This process never runs a learner's code."""

from __future__ import annotations

import contextlib
import json
import math
import re
from functools import partial
from typing import Any

import numpy as np

from tiled_matmul.check import diagnose
from tiled_matmul.grader import pool, wire
from tiled_matmul.grader.kinds import MOST_DEPTH, MOST_NAME
from tiled_matmul.grader.spec import Call, Case, Exercise, Slip

NEAR_SUMS = 1e-5  # of the sum of the sizes: rounding is less, a mistake is more
NEAR = 1e-9  # of a number that is no whole one: how it was rounded on the way does not matter
UNDEFINED = (
    "What a mask or a boundary_check leaves out of a load is undefined, here NaN, unless other=0.0 "
    'or padding_option="zero" says what it is.'
)
GARBAGE = (
    "An array of cuda.local or cuda.shared begins with garbage, here NaN: write every element of "
    "it before any is read. What threads stage for each other lies in cuda.shared.array: a local "
    "array is each thread's own."
)
FLOATS = (
    "Every element is near its value, and not it: somewhere on the way the numbers are float32, "
    "which holds whole numbers up to 2**24 = 16,777,216 and of those beyond only every second, "
    "fourth, eighth. Which of the tiles, the products and the sum is no integer?"
)
DIGITS = (
    "Numbers this large lose their last digits in a float, which holds 24 binary ones of them, or "
    "53 as a float64, and no cast afterwards brings them back. Which of the tiles, the products "
    "and the sum is no integer?"
)
RESTARTED = "Is the sum set to zero again, or overwritten, within the loop?"
FROM_ONE = "Does its loop begin at 1, and the sum at zero?"
TYPES = (
    "The tiles and the sum have to fit each other: tl.dot returns `out_dtype`, which is float32 "
    "unless it says otherwise, and the sum that it takes is of that type."
)
UNBOUND = "Where does it get its first value, before the loop?"
WRITTEN_DOWN = (
    "Blocks have {} × {} threads in this launch: is another number written down, where the kernel "
    "could ask cuda.blockDim?"
)
STORES_NOTHING = "The kernel loads from A and B, and stores nothing at all."
READS_NO_TILE = "What is staged, nobody reads: the products have to come from the tiles."
BEGINNINGS = {"triton": UNDEFINED, "cuda": GARBAGE}  # where NaN comes from
NEAR_FLOATS = 2.0**-20  # of the sum of the sizes: what rounding to float32 leaves, with room
# What a diagnosis is called where an exercise has no hint for it in particular.
BROADER = {
    "same element": "race",
    "race on the next turn": "race",
    "swapped indices": "out of bounds",
    "on top": "stale",
    "never copied": "uninitialised read",
    "copied twice": "race",
    "rounded": "value",
    "digits": "value",
    "along K": "out of bounds",
    "restarted": "part of k",
    "library": "forbidden",
    "clamped": "same element",
    "beyond a tile": "out of bounds",
    "types": "error",
    "unbound": "error",
    "unread": "value",
    "staged twice": "race",
    "no store": "stale",
    "guard": "stale",
}
RACES = ("divergent barrier", "clamped", "same element", "copied twice", "staged twice", "race")
RACES += ("race on the next turn",)
PLACE = re.compile(r"\b(thread|block) \((\d+), (\d+), (\d+)\)")
LINE = re.compile(r"\b[Ll]ine ([0-9]{1,6})\b(?: of (\w+))?")
MOST_OF_A_LINE, MOST_OF_COMPILER, MOST_TOLD = 60, 600, 8000
NONSENSE = "The answer's process sent nonsense."


class Stop(Exception):
    """The answer is judged: status, diagnosis, message."""

    def __init__(self, status: str, diagnosis: str, message: str, share: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.diagnosis, self.share = status, diagnosis, share


def readable(message: str, source: str) -> str:
    """Return a message that names axes, "thread (x 3, y 0)", and quotes the lines it names.

    A learner does not count the lines of a cell, and not from its first comment.
    """
    lines, seen = source.splitlines(), set()

    def axes(found: re.Match) -> str:
        what, x, y, z = found.groups()
        return f"{what} (x {x}, y {y}{f', z {z}' if z != '0' else ''})"

    def quote(found: re.Match) -> str:
        number, function = int(found[1]), found[2]
        if function and not re.search(rf"\bdef {function}\b", source):
            return function  # the course's own: no line of the learner's
        if not 0 < number <= len(lines) or (number, function) in seen:
            return found[0]
        seen.add((number, function))
        text = lines[number - 1].strip()
        if not text or text[:MOST_OF_A_LINE] in message:
            return found[0]
        text = text if len(text) <= MOST_OF_A_LINE else text[: MOST_OF_A_LINE - 1] + "…"
        inside = message[found.start() - 1 : found.start()] == "("
        return f"{found[0]}: `{text}`" if inside else f"{found[0]} (`{text}`)"

    message = PLACE.sub(axes, message[:MOST_TOLD])
    return LINE.sub(quote, message)


def ask(
    exercise: Exercise, worker: pool.Worker, header: dict, blobs: list[bytes], most: int
) -> tuple[dict, list[bytes]]:
    """Ask the worker, and let its failures be the answer's."""
    try:
        reply, data = worker.ask(header, blobs, exercise.limits.seconds, most)
    except pool.TooSlow:
        raise Stop(
            "TIMEOUT",
            "timeout",
            f"No end within {exercise.limits.seconds:g} s. Which loop never ends, or runs far too "
            "often?",
        ) from None
    except pool.Died as died:
        raise Stop("CRASH", "crash", f"The answer ended its process: {died}.") from None
    except wire.BadMessage as error:
        raise Stop("CRASH", "crash", f"The answer's process sent nonsense: {error}.") from None
    error = reply.get("error")
    if error is None:
        return reply, data
    stop = failed(error)
    raise Stop(stop.status, known(exercise, stop.diagnosis), str(stop))


def failed(error: Any) -> Stop:
    """Return what an exception in the answer means."""
    if not isinstance(error, dict):
        return Stop("CRASH", "crash", NONSENSE)
    kind, message = (str(error.get(name, ""))[:2000] for name in ("type", "message"))
    line = error.get("line")
    where = f" (line {line})" if type(line) is int and 0 < line < 10**6 else ""
    if kind == "CompilationError":
        message = _compilers(message)
    if kind == "StepLimit":
        return Stop("TIMEOUT", "timeout", message.partition(" (Threads")[0])
    if kind == "MemoryError":
        return Stop("CRASH", "memory", f"The answer takes more memory than there is{where}.")
    if kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit"):
        return Stop("CRASH", "crash", f"The answer stops its process with {kind}{where}.")
    told = f"{kind}{where}: {message}"
    if kind == "UnboundLocalError":
        return Stop("WRONG", "unbound", f"{told}. {UNBOUND}")
    if message.endswith("AssertionError") or "Loop-carried variable" in message:
        return Stop("WRONG", "types", f"{told}. {TYPES}")
    return Stop("WRONG", "error", told)


def _compilers(message: str) -> str:
    """Return the line that Triton's compiler points at, and what it says, without the rest."""
    lines = message.splitlines()
    marks = [number for number, line in enumerate(lines) if line.strip() == "^"]
    if not marks or not marks[-1]:
        return message
    said = " ".join(line.strip() for line in lines[marks[-1] + 1 :])
    return f"`{lines[marks[-1] - 1].strip()}`: {said}"[:MOST_OF_COMPILER]


def define(exercise: Exercise, source: str, worker: pool.Worker) -> None:
    header = {"source": source, "given": dict(exercise.given), "entry": exercise.entry}
    reply, _ = ask(exercise, worker, header, [], 0)
    if reply != {"defined": True}:
        raise Stop("CRASH", "crash", NONSENSE)


def run_case(exercise: Exercise, case: Any, worker: pool.Worker, seed: int) -> None:
    """Run and judge one case; raise Stop unless it is right."""
    if isinstance(case, Call):
        _call(exercise, case, worker)
        return
    said, blobs = request(exercise, case, seed)
    reply, data = ask(exercise, worker, said, blobs, sum(map(len, blobs)))
    findings, counts = _facts(reply)
    _look_at_findings(exercise, findings)
    try:
        compare(exercise, case, blobs, data)
    except Stop as stop:
        if not counts.get("global loads"):
            raise
        if stop.diagnosis == "stale" and not counts.get("global stores"):
            told = f"{stop} {STORES_NOTHING}"
            raise Stop(stop.status, known(exercise, "no store"), told) from None
        if counts.get("shared bytes") and not counts.get("shared loads"):
            told = "\n".join([*str(stop).split("\n")[:2], READS_NO_TILE])
            raise Stop(stop.status, known(exercise, "unread"), told) from None
        raise
    for count in exercise.counts:
        found, most = counts.get(count.what), count.most(case)
        if found is None:
            raise Stop("CRASH", "crash", f"The answer's process did not say its {count.what}.")
        if found > most:
            told = f"{count.message} ({count.what}: {found:,} in all, at most {most:,}.)"
            raise Stop("WRONG", count.diagnosis, told, count.share)


def request(exercise: Exercise, case: Case, seed: int) -> tuple[dict, list[bytes]]:
    """Return what a worker is sent for a case: a header, and the bytes of A, B and an old C.

    The old C holds large whole numbers: an element that nobody writes shows, so does a sum on top.
    """
    stale = np.random.default_rng(seed).integers(10_000, 20_000, case.shapes[2])
    arrays = *case.inputs(seed), stale.astype(case.dtype)
    return header(exercise, case), [x.tobytes() for x in arrays]


def header(exercise: Exercise, case: Case) -> dict:
    """Return what is sent for a case beside its data."""
    said = {
        "kind": exercise.kind,
        "entry": exercise.entry,
        "given": {**exercise.given, **case.given},
        "shapes": case.shapes,
        "dtype": case.dtype,
        "order": case.order,
        "by_columns": case.by_columns,
        "corner": case.corner,
    }
    if exercise.launch is not None:
        said["launch"] = exercise.launch(case)
    return said


def compare(exercise: Exercise, case: Case, blobs: list[bytes], data: list[bytes]) -> None:
    """Raise Stop unless C is the product, and A and B are as they were sent.

    `blobs` are the bytes of A, B and the old C as sent, `data` those of C, A and B as they came.
    """
    if [len(blob) for blob in data] != [len(blobs[2]), len(blobs[0]), len(blobs[1])]:
        raise Stop("CRASH", "crash", "The answer's process sent arrays of other sizes.")
    for name, now, then in zip("ab", data[1:], blobs[:2], strict=True):
        if now != then:
            raise Stop(
                "WRONG", "inputs", f"The answer changes its input {name}; it may only read it."
            )
    product(exercise, case, blobs, data[0])


def product(exercise: Exercise, case: Case, blobs: list[bytes], data: bytes) -> None:
    """Raise Stop unless the bytes of C are the product of A and B, as `request` drew them."""
    a, b, stale = map(partial(_array, case.dtype), blobs, case.shapes)
    c = _array(case.dtype, data, case.shapes[2])
    if case.parts:
        c, stale = (x.sum(axis=0, dtype=np.float64).astype(case.dtype) for x in (c, stale))
    report = diagnose(c, a, b, tile=exercise.tile, previous=stale)
    if not report.ok:
        _slips(exercise, case, c, a, b, report)
        told, diagnosis = report.message, report.pattern or "value"
        if diagnosis == "not finite" and exercise.kind in BEGINNINGS:
            told = f"{told} {BEGINNINGS[exercise.kind]}"
        elif diagnosis == "stale" and exercise.kind == "cuda":
            left_out, diagnosis = _left_out(case, c, stale)
            told = f"{told} {left_out}".strip()
        elif diagnosis == "part of k" and "starts at" in told:
            told = f"{told} {FROM_ONE if 'starts at 1 ' in told else RESTARTED}"
            diagnosis = "restarted"
        elif report.pattern is None and _near_floats(case, c, a, b):
            told, diagnosis = f"{told}\n{FLOATS}", "rounded"
        elif report.pattern is None and _beyond_floats(case, a, b):
            told, diagnosis = f"{told}\n{DIGITS}", "digits"
        told = f"Of the sum of the parts: {told}" if case.parts else told
        raise Stop("WRONG", known(exercise, diagnosis), told)


def _array(dtype: str, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape)


def known(exercise: Exercise, diagnosis: str, array: str = "") -> str:
    """Return the first name that the exercise has a hint for, from a diagnosis to broader ones.

    A hint may be for one array alone: "race of c".
    """
    names = [diagnosis]
    while names[-1] in BROADER:
        names.append(BROADER[names[-1]])
    for name in (*(f"{name} of {array}" for name in names), *names):
        if name in exercise.hints:
            return name
    return names[-1]


def _left_out(case: Case, c: np.ndarray, stale: np.ndarray) -> tuple[str, str]:
    """Return what it means that all from a row or a column on is unwritten, and its diagnosis."""
    same = c == stale
    row, column = np.indices(c.shape)
    ends = [int(np.argmax(x)) if x.any() else len(x) for x in (same.all(axis=1), same.all(axis=0))]
    if not any(ends) or (same != ((row >= ends[0]) | (column >= ends[1]))).any():
        block = case.given.get("BLOCK")
        return WRITTEN_DOWN.format(*block) if block else "", "stale"
    sizes = {"M": case.m, "N": case.n, "K": case.k}
    for first, extent, name in zip(ends, "MN", ("row", "column"), strict=True):
        for other in "MNK":
            if first == sizes[other] < sizes[extent]:
                return (
                    f"They begin at {name} {first}, and {other} is {first}: which size does the "
                    f"guard ask for? C has {extent} {name}s."
                ), "guard"
    if all(sizes[extent] - first <= 1 for first, extent in zip(ends, "MN", strict=True)):
        return (
            "Only the last row or column is left out: by a guard, or by the formula of the row or "
            "the column?"
        ), "guard"
    beyond = [
        f"{name}s from {first} on"
        for first, extent, name in zip(ends, "MN", ("row", "column"), strict=True)
        if first < sizes[extent]
    ]
    return f"No thread owns the {' and the '.join(beyond)}: x is the column, y the row.", "stale"


def _near_floats(case: Case, c: Any, a: Any, b: Any) -> bool:
    """Is a C of whole numbers what is left of A·B where float32 was used on the way?"""
    if not case.dtype.startswith("int"):
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    sizes = _sizes(a, b)
    most = np.iinfo(case.dtype).max
    near = np.abs(c - a @ b) <= NEAR_FLOATS * sizes
    return bool(near.all() and 2**24 < sizes.max() <= most)


def _beyond_floats(case: Case, a: Any, b: Any) -> bool:
    """Are these whole numbers whose sums no float holds?"""
    if not case.dtype.startswith("int"):
        return False
    return bool(_sizes(a, b).max() > 2**53)


def _sizes(a: Any, b: Any) -> np.ndarray:
    """Return the sums of the sizes of the products of each element of A·B."""
    return np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))


def _slips(exercise: Exercise, case: Case, c: Any, a: Any, b: Any, report: Any) -> None:
    """Raise for the first of the exercise's own mistakes that gives this wrong C."""
    sizes = _sizes(a, b)

    def near(x: Any, y: Any) -> bool:
        return bool(((np.abs(x - y) <= NEAR_SUMS * (sizes + np.abs(y))) | np.isnan(y)).all())

    for slip in exercise.slips:
        made = slip.answer(case, a.astype(np.float64), b.astype(np.float64))
        if made is not None and near(c, made) and not near(a.astype(np.float64) @ b, made):
            first = report.message.partition("The wrong ones")[0]
            raise Stop("WRONG", slip.diagnosis, f"{first}{slip.message}")


def _call(exercise: Exercise, case: Call, worker: pool.Worker) -> None:
    result = called(exercise, case, worker)
    wanted = json.loads(json.dumps(exercise.answer(*case.arguments)))
    accepts = exercise.accepts
    why = "" if accepts is None else accepts(case.arguments, result)
    if not why and (accepts is not None or _alike(result, wanted)):
        return
    mine, right = _shown(result, wanted)
    asked = "" if case.hidden else f", should be {right}"
    told, diagnosis = f"{exercise.entry}{case} is {mine:.300}{asked}.", "value"
    if isinstance(wanted, list) and isinstance(result, list) and len(result) != len(wanted):
        told = f"{told} {len(wanted)} values are asked for."
    if why:
        told = f"{told} {why}"
    if result is None:
        told, diagnosis = f"{told} Does it end at a `return`?", "nothing"
    for slip in exercise.slips:
        if _slipped(slip, case.arguments, result, wanted):
            told, diagnosis = f"{told} {slip.message}", slip.diagnosis
            break
    raise Stop("WRONG", diagnosis, told)


def _shown(result: Any, wanted: Any) -> tuple[str, str]:
    """Return both as text: floats with six digits, unless the two would look the same."""
    short = repr(_short(result)), repr(_short(wanted))
    return short if short[0] != short[1] else (repr(result), repr(wanted))


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def called(exercise: Exercise, case: Call, worker: pool.Worker) -> Any:
    """Have a worker call the answer; return its result, as JSON has it."""
    header = {
        "kind": exercise.kind,
        "entry": exercise.entry,
        "given": {**exercise.given, **case.given},
        "arguments": case.arguments,
    }
    _, data = ask(exercise, worker, header, [], 64 << 10)
    try:
        (text,) = data
        result = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise Stop("CRASH", "crash", NONSENSE) from None
    if _deep(result):
        raise Stop("CRASH", "crash", NONSENSE)
    return result


def _deep(value: Any) -> bool:
    """Are there more lists within lists than a worker lets pass?"""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        parts = [list(x.values()) if isinstance(x, dict) else x for x in level]
        level = [part for x in parts if isinstance(x, list) for part in x]
    return bool(level)


def _slipped(slip: Slip, arguments: tuple, result: Any, wanted: Any) -> bool:
    """Is a wrong result what comes of this mistake?"""
    if slip.part is not None:
        if not isinstance(result, list) or len(result) != len(wanted):
            return False
        result, wanted = result[slip.part], wanted[slip.part]
        if _alike(result, wanted):
            return False
    with contextlib.suppress(ArithmeticError):
        made = slip.answer(*arguments)
        return made is not None and _alike(result, json.loads(json.dumps(made)))
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
    nonsense = Stop("CRASH", "crash", NONSENSE)
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
        if max(len(found["kind"]), len(found["array"])) > MOST_NAME:
            raise nonsense
    if not all(type(number) is int and number >= 0 for number in counts.values()):
        raise nonsense
    return findings, counts


def _look_at_findings(exercise: Exercise, findings: list[dict]) -> None:
    """Raise for the first thing that the microscope saw: what comes first explains the rest."""
    order = ("negative index", *RACES, "swapped indices", "along K", "beyond a tile")
    order += ("out of bounds", "never copied", "uninitialised read")
    order += ("no tile", "unmasked tail", "stored twice", "not stored", "not read")
    for kind in order:
        for found in findings:
            if found["kind"] == kind:
                status = "RACE" if kind in RACES else "WRONG"
                diagnosis = known(exercise, kind, found["array"])
                remedy = exercise.remedies.get(kind, found["remedy"])
                raise Stop(status, diagnosis, f"{found['message']} {remedy}")
    for found in findings:  # of Triton's programs
        raise Stop("WRONG", found["kind"], f"{found['message']} {found['remedy']}")
