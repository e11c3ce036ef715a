"""Compare a worker's reply with the right result. This process never runs a learner's code."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tiled_matmul.check import diagnose, diagnose_result, diagnose_vector
from tiled_matmul.grader import pool, wire
from tiled_matmul.grader.kinds import MOST_DEPTH, MOST_NAME
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import PYTHON_KINDS, Call, Case, Exercise, Slip

NEAR_SUMS = 1e-5  # of the sum of the sizes: rounding is less, a mistake is more
NEAR = 1e-9  # relative, for numbers that are not whole: rounding on the way does not matter
NEAR_WHOLE = 1e-13  # relative, for a whole number that comes as a float: its last digits
NEAR_FLOATS = 2.0**-20  # of the sum of the sizes: what rounding to float32 leaves, with room
MOST_SHARES = 9  # of all programs' loads, for one of them
# The broader diagnosis, for exercises that have no hint for the narrower one.
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
UNOWNED = ("not stored", "stored twice", "no tile", "stale")
PLACE = re.compile(r"\b(thread|block) \((\d+), (\d+), (\d+)\)")
LINE = re.compile(r"\b[Ll]ine ([0-9]{1,6})\b(?: of (\w+))?")
MOST_OF_A_LINE, MOST_OF_COMPILER, MOST_OF_MESSAGE = 60, 600, 8000


class Stop(Exception):
    """Ends the judging of an answer, with its status, diagnosis, message and share of points."""

    def __init__(self, status: str, diagnosis: str, message: str, share: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.diagnosis, self.share = status, diagnosis, share


def invalid_reply() -> Stop:
    """Return the verdict on a reply that does not have the form that a worker sends."""
    return Stop("CRASH", "crash", sentence("crash: reply"))


def readable(message: str, source: str) -> str:
    """Return a message with its axes named, "thread (x 3, y 0)", and the lines it names quoted.

    Without the quotation a learner would have to count the lines of the cell.
    """
    lines, seen = source.splitlines(), set()

    def axes(match: re.Match) -> str:
        noun, x, y, z = match.groups()
        return f"{noun} (x {x}, y {y}{f', z {z}' if z != '0' else ''})"

    def quote(match: re.Match) -> str:
        number, function = int(match[1]), match[2]
        if function and not re.search(rf"\bdef {function}\b", source):
            return function  # a function of the course: its lines are not the learner's
        if not 0 < number <= len(lines) or (number, function) in seen:
            return match[0]
        seen.add((number, function))
        text = lines[number - 1].strip()
        text = text if len(text) <= MOST_OF_A_LINE else text[: MOST_OF_A_LINE - 1] + "…"
        if not text or text in message:
            return match[0]
        inside = message[match.start() - 1 : match.start()] == "("
        return f"{match[0]}: `{text}`" if inside else f"{match[0]} (`{text}`)"

    message = PLACE.sub(axes, message[:MOST_OF_MESSAGE])
    return LINE.sub(quote, message)


def numbered(message: str, above: int) -> str:
    """Return a message whose lines are counted from the one behind the first `above`."""

    def count(match: re.Match) -> str:
        number = int(match[1])
        if number > above:
            return match[0].replace(match[1], str(number - above), 1)
        other = sentence("notebook: other cell")
        return other.capitalize() if match[0][0] == "L" else other

    return LINE.sub(count, message)


def ask(
    exercise: Exercise, worker: pool.Worker, header: dict, blobs: list[bytes], most: int
) -> tuple[dict, list[bytes]]:
    """Return a worker's reply to a request; raise Stop if the answer fails there."""
    seconds = min(exercise.limits.seconds, exercise.in_all)
    try:
        reply, data = worker.ask(header, blobs, seconds, most)
    except pool.TooSlow as slow:
        message = sentence("timeout: case", seconds=slow.seconds)
        if slow.in_all:
            message = sentence("timeout: all cases", seconds=slow.seconds)
        raise Stop("TIMEOUT", "timeout", message) from None
    except pool.Died as died:
        raise Stop("CRASH", "crash", sentence("crash: ended", reason=died)) from None
    except wire.BadMessage as error:
        raise Stop("CRASH", "crash", sentence("crash: message", reason=error)) from None
    error = reply.get("error")
    if error is None:
        return reply, data
    stop = failed(error, exercise.kind)
    raise Stop(stop.status, known(exercise, stop.diagnosis), str(stop))


def failed(error: Any, kind_of_answer: str = "") -> Stop:
    """Return the verdict on an answer that raised an exception.

    Where an answer may have classes, an exception of the interpreter's name is not the
    interpreter's.
    """
    if not isinstance(error, dict):
        return invalid_reply()
    kind, message = (str(error.get(name, ""))[:2000] for name in ("type", "message"))
    line = error.get("line")
    where = f" (line {line})" if type(line) is int and 0 < line < 10**6 else ""
    if kind == "CompilationError":
        message = _compilers(message)
    if kind == "Unsupported" and kind_of_answer not in PYTHON_KINDS:
        return Stop("NOT_YET", "unknown", sentence("unknown: interpreter", message=message))
    if kind == "StepLimit":
        return Stop("TIMEOUT", "timeout", message.partition(" (Threads")[0])
    if kind == "MemoryError":
        return Stop("CRASH", "memory", sentence("memory: too much", where=where))
    if kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit"):
        return Stop("CRASH", "crash", sentence("crash: stopped", kind=kind, where=where))
    exception = sentence("error: exception", kind=kind, where=where, message=message)
    if kind == "UnboundLocalError":
        return Stop("WRONG", "unbound", f"{exception}. {sentence('unbound: no first value')}")
    if "AssertionError: assert " in message or "Loop-carried variable" in message:
        return Stop("WRONG", "types", f"{exception}. {sentence('types: do not match')}")
    return Stop("WRONG", "error", exception)


def _compilers(message: str) -> str:
    """Return only the line that Triton's compiler points at, and the compiler's message."""
    lines = message.splitlines()
    marks = [number for number, line in enumerate(lines) if line.strip() == "^"]
    if not marks or not marks[-1]:
        return message
    reason = " ".join(line.strip() for line in lines[marks[-1] + 1 :])
    return f"`{lines[marks[-1] - 1].strip()}`: {reason}"[:MOST_OF_COMPILER]


def define(exercise: Exercise, source: str, worker: pool.Worker, guarded: bool = False) -> None:
    """Have a worker define the answer; raise Stop if that fails.

    If it is `guarded`, the names of its classes open its own objects alone.
    """
    header = {"source": source, "given": dict(exercise.given), "entry": exercise.entry}
    header["guarded"] = guarded
    header["in_all"] = exercise.in_all
    reply, _ = ask(exercise, worker, header, [], 0)
    if reply != {"defined": True}:
        raise invalid_reply()


def run_case(
    exercise: Exercise, case: Any, worker: pool.Worker, seed: int, others: Sequence[Call] = ()
) -> list[dict[str, Any]]:
    """Run and judge one case; raise Stop unless it is right. Returns what was counted.

    `others` are further calls, which may say which of the usual mistakes it is not.

    Each count has its name, the answer's number, and the target and the best known number, if there
    are such.
    """
    if isinstance(case, Call):
        _call(exercise, case, worker, others)
        return []
    described, blobs = request(exercise, case, seed)
    findings, counts, data = _answer(exercise, case, worker, described, blobs)
    ignored = exercise.operation.ignored if exercise.operation else ()
    out_of_order = _out_of_order(exercise, case, counts)
    try:
        _look_at_findings(exercise, [one for one in findings if one["kind"] not in ignored])
        compare(exercise, case, blobs, data)
    except Stop as stop:
        if (
            out_of_order
            and stop.diagnosis in UNOWNED
            and out_of_order.diagnosis in (other[1] for other in exercise.walk.others)
        ):
            raise Stop("WRONG", out_of_order.diagnosis, str(out_of_order)) from None
        if not counts.get("global loads"):
            raise
        if stop.diagnosis == "stale" and not counts.get("global stores"):
            message = f"{stop} {sentence('no store: nothing')}"
            raise Stop(stop.status, known(exercise, "no store"), message) from None
        if counts.get("shared bytes") and not counts.get("shared loads"):
            message = "\n".join([*str(stop).split("\n")[:2], sentence("unread: tiles")])
            raise Stop(stop.status, known(exercise, "unread"), message) from None
        raise
    if out_of_order:
        raise out_of_order
    counted = []
    for count in exercise.counts:
        actual = counts.get(count.what)
        if actual is None:
            raise Stop("CRASH", "crash", sentence("crash: no count", count=count.what))
        most = math.inf if count.most is None else count.most(case)
        least = 0 if count.least is None else count.least(case)
        name = _called(count.what)
        numbers = {"message": count.message, "count": name, "actual": actual}
        if actual > most:
            message = sentence("counts: too many", most=most, **numbers)
            raise Stop("WRONG", count.diagnosis, message, count.share)
        if actual < least:
            message = sentence("counts: too few", least=least, **numbers)
            raise Stop("WRONG", count.diagnosis, message, count.share)
        limits = {"most": most if count.most else None, "least": least or None}
        best = count.best(case) if count.best else None
        counted.append({"count": count.what, "actual": actual, **limits, "best": best})
    if exercise.kind == "triton":
        _look_at_shares(exercise, case, counts)
    return counted


def _answer(
    exercise: Exercise, case: Case, worker: pool.Worker, described: dict, blobs: list[bytes]
) -> tuple[list, dict, list[bytes]]:
    """Return the findings, the counts and the data of a worker's reply to a case.

    C has to be made of the products that are counted: the worker scales each of them by a power of
    two and C back, which changes no bit. If such a C is wrong, the answer is asked once more,
    without a scale; none of its products count then.
    """
    most = sum(map(len, blobs))
    reply, data = ask(exercise, worker, described, blobs, most)
    findings, counts = _facts(reply)
    if described["scale"] != 1:
        try:
            compare(exercise, case, blobs, data)
        except Stop:
            plain = described | {"scale": 1, "moved": False}
            reply, data = ask(exercise, worker, plain, blobs, most)
            findings, counts = _facts(reply)
            counts["products"] = 0
    return findings, counts, data


def _look_at_shares(exercise: Exercise, case: Case, counts: dict[str, int]) -> None:
    """Raise Stop if one program of a launch does far more than its share of loads.

    Where three axes are hardly longer than a tile, an eighth of the programs has nearly all.
    """
    programs = math.prod(exercise.launch(case)[0])
    most = MOST_SHARES * -(-counts["elements loaded"] // programs)
    actual = counts["elements loaded by a program"]
    if actual > most:
        numbers = {"count": "elements loaded by a program", "actual": actual, "most": most}
        message = sentence("counts: one program", programs=programs)
        message = sentence("counts: too many", message=message, **numbers)
        raise Stop("WRONG", known(exercise, "share"), message)


def _called(count: str) -> str:
    """Return what a count is called in a message."""
    if count == "needless barriers of a block":
        return sentence("counts: needless")
    return sentence("counts: barriers") if count == "barriers" else count


def _out_of_order(exercise: Exercise, case: Case, counts: dict[str, int]) -> Stop | None:
    """Return the verdict on programs that store other tiles than the exercise's walk gives them."""
    walk = exercise.walk
    if walk is None:
        return None
    high, wide = walk.block(case)
    programs = range(math.prod(exercise.launch(case)[0]))
    corners = [
        tuple(counts.get(f"{axis} of program {one}") for axis in ("row", "column"))
        for one in programs
    ]

    def walked(tile: Any) -> list[tuple[int | None, int | None]]:
        """Return the corners of the tiles in an order, without those that lie outside C."""
        tops = [(row * high, column * wide) for row, column in (tile(case, p) for p in programs)]
        inside = [0 <= top < case.m and 0 <= left < case.n for top, left in tops]
        return [top if there else (None, None) for top, there in zip(tops, inside, strict=True)]

    right = walked(walk.tile)
    if corners == right:
        return None
    first = next(one for one in programs if corners[one] != right[one])
    (top, left), (right_top, right_left) = corners[first], right[first]
    numbers = {"program": first, "row": right_top // high, "column": right_left // wide}
    if top is None:
        said = sentence("order: nothing", **numbers)
    else:
        said = sentence("order: another", top=top, left=left, high=high, wide=wide, **numbers)
    for tile, diagnosis, message in walk.others:
        if corners == walked(tile):
            return Stop("WRONG", diagnosis, f"{said} {message}", walk.share)
    return Stop("WRONG", walk.diagnosis, f"{said} {walk.message}", walk.share)


def request(exercise: Exercise, case: Case, seed: int) -> tuple[dict, list[bytes]]:
    """Return the request that a worker gets for a case: a header, bytes of the inputs and an old C.

    The old C holds large whole numbers. They show in an element that no thread writes, and in a
    sum that was added to the old value.
    """
    stale = np.random.default_rng(seed).integers(10_000, 20_000, exercise.shapes(case)[-1])
    arrays = *exercise.inputs(case, seed), stale.astype(case.dtype)
    described = header(exercise, case)
    if "products" in described["counts"]:
        # In float16 large whole numbers might overflow, and small numbers lose digits.
        up = 2 ** (1 + seed % 3)
        scale = up if case.draw in ("normal", "positive") else 1 / up
        described |= {"scale": scale, "moved": seed % 2 == 0}
    return described, [x.tobytes() for x in arrays]


def header(exercise: Exercise, case: Case) -> dict:
    """Return the part of a request that describes a case, without its data."""
    operation = exercise.operation
    header = {
        "kind": exercise.kind,
        "entry": exercise.entry,
        "given": {**exercise.given, **case.given},
        "arrays": exercise.arrays,
        "shapes": exercise.shapes(case),
        "extents": exercise.sizes(case),
        "product": operation is None,
        "counts": [count.what for count in exercise.counts],
        "dtype": case.dtype,
        "order": case.order,
        "by_columns": case.by_columns,
        "corner": case.corner,
        "apart": case.apart,
        "walk": exercise.walk is not None,
        "scale": 1,
        "moved": False,
    }
    if exercise.launch is not None:
        header["launch"] = exercise.launch(case)
        if exercise.kind == "loops" and (operation is None or operation.product is not None):
            header["factors"] = _factors(exercise, case)
    return header


def _factors(exercise: Exercise, case: Case) -> list[list[list[int]]]:
    """Return which elements X and Y hold, whose product is C. A's have numbers, then B's."""
    places, first = [], 0
    for shape in exercise.shapes(case)[:-1]:
        places.append(np.arange(first, first + math.prod(shape)).reshape(shape))
        first += places[-1].size
    if exercise.operation is not None:
        places = exercise.operation.product(case, *places)
    return [factor.tolist() for factor in places]


def compare(exercise: Exercise, case: Case, blobs: list[bytes], data: list[bytes]) -> None:
    """Raise Stop unless C is right, and the inputs are unchanged.

    `blobs` are the bytes of the inputs and the old C that were sent, `data` the bytes of C and the
    inputs that came back.
    """
    if [len(blob) for blob in data] != [len(blobs[-1]), *map(len, blobs[:-1])]:
        raise Stop("CRASH", "crash", sentence("crash: sizes"))
    for name, now, then in zip(exercise.arrays[:-1], data[1:], blobs[:-1], strict=True):
        if now != then:
            raise Stop("WRONG", "inputs", sentence("inputs: changed", name=name))
    if exercise.operation is None:
        product(exercise, case, blobs, data[0])
    else:
        _operated(exercise, case, blobs, data[0])


def _operated(exercise: Exercise, case: Case, blobs: list[bytes], data: bytes) -> None:
    """Raise Stop unless the bytes of C are what the exercise's operation makes of its inputs."""
    operation, shapes = exercise.operation, exercise.shapes(case)
    *inputs, stale = map(partial(_array, case.dtype), blobs, shapes)
    c = _array(case.dtype, data, shapes[-1])
    wide = [x.astype(np.float64) for x in inputs]
    if operation.product is None:
        right, sizes = (np.asarray(x, np.float64) for x in operation.result(case, *wide))
        reports = [diagnose_result(c, right, sizes, operation.terms(case), stale)]
    else:
        x, y = operation.product(case, *inputs)
        right, sizes = wide_product(x, y), wide_product(abs(x), abs(y))
        if c.ndim == 1:
            reports = [diagnose_vector(c, x, y, stale)]
        elif c.ndim == 2:
            reports = [diagnose(c, x, y, tile=exercise.tile, previous=stale)]
        else:
            layers = zip(c, x, y, stale, strict=True)
            reports = [diagnose(c, x, y, tile=exercise.tile, previous=s) for c, x, y, s in layers]
    wrong = [number for number, report in enumerate(reports) if not report.ok]
    if not wrong:
        return
    report = reports[wrong[0]]
    message, diagnosis = report.message, report.pattern or "value"
    first = message.partition("The wrong ones")[0]
    if len(reports) > 1:
        layer = sentence("value: layer", number=wrong[0], wrong=len(wrong), layers=len(reports))
        message, first = f"{layer} {message}", f"{layer} {first}"
    for slip in exercise.slips:
        made = slip.answer(case, *wide)
        shows = made is not None and (np.isnan(made).any() or not _near(right, made, sizes))
        if shows and _near(c, made, sizes):
            raise Stop("WRONG", slip.diagnosis, f"{first}{slip.message}")
    if diagnosis == "not finite" and exercise.kind in ("cuda", "triton"):
        cuda, triton = sentence("not finite: cuda"), sentence("not finite: triton")
        usual = triton if exercise.kind == "triton" else cuda
        message = f"{message} {exercise.remedies.get(diagnosis, usual)}"
    raise Stop("WRONG", known(exercise, diagnosis), message)


def wide_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the product of two matrices, of stacks of them, or with a vector, in float64."""
    return x.astype(np.float64) @ y.astype(np.float64)


def _near(x: Any, y: Any, sizes: Any) -> bool:
    """Are two results the same up to rounding, where y is not NaN?"""
    return bool(((np.abs(x - y) <= NEAR_SUMS * (sizes + np.abs(y))) | np.isnan(y)).all())


def product(exercise: Exercise, case: Case, blobs: list[bytes], data: bytes) -> None:
    """Raise Stop unless the bytes of C are the product of A and B, as `request` drew them."""
    a, b, stale = map(partial(_array, case.dtype), blobs, case.shapes)
    c = _array(case.dtype, data, case.shapes[2])
    if case.parts:
        c, stale = (x.sum(axis=0, dtype=np.float64).astype(case.dtype) for x in (c, stale))
    if case.k == 0:  # an empty sum is zero, as a sum of one zero is
        a, b = np.zeros((case.m, 1), case.dtype), np.zeros((1, case.n), case.dtype)
    report = diagnose(c, a, b, tile=exercise.tile, previous=stale)
    if not report.ok:
        _slips(exercise, case, c, a, b, report)
        message, diagnosis = report.message, report.pattern or "value"
        if diagnosis == "not finite" and exercise.kind == "triton":
            message = f"{message} {sentence('not finite: triton')}"
        elif diagnosis == "not finite" and exercise.kind == "cuda":
            message = f"{message} {sentence('not finite: cuda')}"
        elif diagnosis == "stale" and exercise.kind == "cuda":
            left_out, diagnosis = _left_out(case, c, stale)
            message = f"{message} {left_out}".strip()
        elif diagnosis == "part of k" and "starts at" in message:
            from_one = "starts at 1 " in message
            cause = sentence("restarted: from one" if from_one else "restarted: set to zero")
            message, diagnosis = f"{message} {cause}", "restarted"
        elif report.pattern is None and _near_floats(case, c, a, b):
            message, diagnosis = f"{message}\n{sentence('rounded: float32')}", "rounded"
        elif report.pattern is None and _beyond_floats(case, a, b):
            message, diagnosis = f"{message}\n{sentence('digits: float')}", "digits"
        message = sentence("value: parts", message=message) if case.parts else message
        raise Stop("WRONG", known(exercise, diagnosis), message)


def _array(dtype: str, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape)


def known(exercise: Exercise, diagnosis: str, array: str = "") -> str:
    """Return the first name that the exercise has a hint for: the diagnosis or a broader one.

    A hint may be for one array only: "race of c".
    """
    names = [diagnosis]
    while names[-1] in BROADER:
        names.append(BROADER[names[-1]])
    for name in (*(f"{name} of {array}" for name in names), *names):
        if name in exercise.hints:
            return name
    return names[-1]


def _left_out(case: Case, c: np.ndarray, stale: np.ndarray) -> tuple[str, str]:
    """Return the cause and the diagnosis of a C that is unwritten from a row or a column on."""
    same = c == stale
    row, column = np.indices(c.shape)
    ends = [int(np.argmax(x)) if x.any() else len(x) for x in (same.all(axis=1), same.all(axis=0))]
    if not any(ends) or (same != ((row >= ends[0]) | (column >= ends[1]))).any():
        block = case.given.get("BLOCK")
        if not block:
            return "", "stale"
        return sentence("stale: block size", x=block[0], y=block[1]), "stale"
    sizes = {"M": case.m, "N": case.n, "K": case.k}
    lines = [*zip(ends, "MN", ("row", "column"), strict=True)]
    for first, extent, axis in lines:
        for size in "MNK":
            if first == sizes[size] < sizes[extent]:
                place = {"axis": axis, "first": first, "size": size, "extent": sizes[extent]}
                return sentence("guard: wrong size", **place), "guard"
    if all(sizes[extent] - first <= 1 for first, extent, _ in lines):
        return sentence("guard: last line"), "guard"
    beyond = [
        sentence("stale: from on", axis=axis, first=first)
        for first, extent, axis in lines
        if first < sizes[extent]
    ]
    return sentence("stale: no owner", lines=" and the ".join(beyond)), "stale"


def _near_floats(case: Case, c: Any, a: Any, b: Any) -> bool:
    """Does a C of whole numbers differ from A·B as it would if float32 was used on the way?"""
    if not case.dtype.startswith("int"):
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    sizes = _sizes(a, b)
    most = np.iinfo(case.dtype).max
    near = np.abs(c - a @ b) <= NEAR_FLOATS * sizes
    return bool(near.all() and 2**24 < sizes.max() <= most)


def _beyond_floats(case: Case, a: Any, b: Any) -> bool:
    """Are these whole numbers whose sums no float can hold?"""
    if not case.dtype.startswith("int"):
        return False
    return bool(_sizes(a, b).max() > 2**53)


def _sizes(a: Any, b: Any) -> np.ndarray:
    """Return the sums of the sizes of the products of each element of A·B."""
    return np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))


def _slips(exercise: Exercise, case: Case, c: Any, a: Any, b: Any, report: Any) -> None:
    """Raise Stop for the first of the exercise's common mistakes that gives this wrong C."""
    if case.k == 0:
        return  # no product to make a mistake with
    sizes = _sizes(a, b)
    for slip in exercise.slips:
        made = slip.answer(case, a.astype(np.float64), b.astype(np.float64))
        if made is None or not _near(c, made, sizes):
            continue
        if not _near(a.astype(np.float64) @ b, made, sizes):
            first = report.message.partition("The wrong ones")[0]
            raise Stop("WRONG", slip.diagnosis, f"{first}{slip.message}")


def _call(exercise: Exercise, case: Call, worker: pool.Worker, others: Sequence[Call] = ()) -> None:
    """Judge one call; `others` are calls that may say which mistake it is not."""
    result = called(exercise, case, worker)
    if exercise.sealed is not None:
        _sealed(exercise, case, result)
        return
    wanted = json.loads(json.dumps(exercise.answer(*case.arguments)))
    accepts = exercise.accepts
    why = "" if accepts is None else accepts(case.arguments, result)
    if not why and (accepts is not None or _alike(result, wanted)):
        return
    actual, right = _shown(result, wanted)
    call = f"{exercise.entry}{case}"
    if case.hidden:
        message = sentence("value: result", call=call, result=f"{actual:.300}")
    else:
        message = sentence("value: wrong result", call=call, result=f"{actual:.300}", wanted=right)
    diagnosis = "value"
    if isinstance(wanted, list) and isinstance(result, list) and len(result) != len(wanted):
        message = f"{message} {sentence('value: how many', count=len(wanted))}"
    if why:
        message = f"{message} {why}"
    if result is None:
        message, diagnosis = f"{message} {sentence('nothing: return')}", "nothing"
    alone = ""
    for slip in exercise.slips:
        if not slipped(slip, case.arguments, result, wanted):
            continue
        other = next((one for one in others if _clears(slip, exercise, one, worker)), None)
        if other is None:
            diagnosis, alone = slip.diagnosis, slip.message
            break
        if not alone:
            call = sentence("value: others") if other.hidden else f"{exercise.entry}{other}"
            about = sentence("value: here alone", call=call)
            diagnosis, alone = slip.diagnosis, f"{slip.message} {about}"
    raise Stop("WRONG", diagnosis, f"{message} {alone}".rstrip())


def _clears(slip: Slip, exercise: Exercise, case: Call, worker: pool.Worker) -> bool:
    """Is the answer right in a case in which this mistake would show? Then it is another one."""

    def right(result: Any) -> bool:
        if exercise.accepts is not None:
            return not exercise.accepts(case.arguments, result)
        if slip.part is None:
            return _alike(result, wanted)
        return isinstance(result, list) and _alike(result[slip.part : slip.part + 1], part)

    with contextlib.suppress(ArithmeticError, Stop):
        made = slip.answer(*case.arguments)
        if made is None:
            return False
        made = json.loads(json.dumps(made))
        wanted = json.loads(json.dumps(exercise.answer(*case.arguments)))
        part = [] if slip.part is None else [wanted[slip.part]]
        shows = not right(made) if slip.part is None else not _alike([made], part)
        return shows and right(called(exercise, case, worker))
    return False


def refused(exercise: Exercise, call: Call, result: Any) -> str:
    """Return "" for one of several right results, else in a sentence what is wrong with it."""
    if exercise.sealed is None:
        return exercise.accepts(call.arguments, result)
    right, _, why, _ = exercise.sealed.verdict(call, result)
    return "" if right else why


def _sealed(exercise: Exercise, case: Call, result: Any) -> None:
    """Raise Stop unless a result has the digest of the right one."""
    right, diagnosis, why, shown = exercise.sealed.verdict(case, result)
    if right:
        return
    call, text = f"{exercise.entry}{case}", f"{_short(result)!r:.300}"
    message = sentence("value: result", call=call, result=text)
    if shown:
        message = sentence("value: wrong result", call=call, result=text, wanted=shown)
    if result is None:
        raise Stop("WRONG", "nothing", f"{message} {sentence('nothing: return')}")
    raise Stop("WRONG", diagnosis or "value", f"{message} {why}".strip())


def _shown(result: Any, wanted: Any) -> tuple[str, str]:
    """Return both as text: floats have six digits, unless the two would then look the same."""
    short = repr(_short(result)), repr(_short(wanted))
    return short if short[0] != short[1] else (repr(result), repr(wanted))


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def called(exercise: Exercise, case: Call, worker: pool.Worker) -> Any:
    """Have a worker call the answer; return the result as it came through JSON."""
    header = {
        "kind": exercise.kind,
        "entry": exercise.entry,
        "given": {**exercise.given, **case.given},
        "arguments": wire.marked(case.arguments),
    }
    _, data = ask(exercise, worker, header, [], 64 << 10)
    try:
        (text,) = data
        result = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise invalid_reply() from None
    if _deep(result):
        raise invalid_reply()
    return result


def _deep(value: Any) -> bool:
    """Are lists nested more deeply than a worker allows?"""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        parts = [list(x.values()) if isinstance(x, dict) else x for x in level]
        level = [part for x in parts if isinstance(x, list) for part in x]
    return bool(level)


def slipped(slip: Slip, arguments: tuple, result: Any, wanted: Any) -> bool:
    """Is a wrong result the one that this mistake produces?"""
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
    """Is a JSON value what was wanted, floats up to their last digits? True does not equal 1."""
    if isinstance(x, bool) or isinstance(y, bool):
        return x is y
    if isinstance(x, int | float) and isinstance(y, int | float):
        with contextlib.suppress(OverflowError):
            close = isinstance(x, float) or isinstance(y, float)
            near = NEAR_WHOLE if isinstance(y, int) else NEAR
            return x == y or (close and math.isclose(x, y, rel_tol=near, abs_tol=NEAR))
        return False
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(_alike, x, y))
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[key], y[key]) for key in x)
    return type(x) is type(y) and x == y


def _facts(reply: dict) -> tuple[list[dict], dict[str, int]]:
    """Return (findings, counts) of a reply; raise Stop unless it has the form that workers send."""
    if set(reply) != {"findings", "counts"}:
        raise invalid_reply()
    findings, counts = reply["findings"], reply["counts"]
    if not isinstance(findings, list) or not isinstance(counts, dict) or len(findings) > 64:
        raise invalid_reply()
    for finding in findings:
        texts = ("kind", "array", "message", "remedy")
        if not isinstance(finding, dict) or set(finding) != {*texts, "count"}:
            raise invalid_reply()
        if not all(isinstance(finding[name], str) for name in texts):
            raise invalid_reply()
        if max(len(finding["kind"]), len(finding["array"])) > MOST_NAME:
            raise invalid_reply()
    if not all(type(number) is int and number >= 0 for number in counts.values()):
        raise invalid_reply()
    return findings, counts


def _look_at_findings(exercise: Exercise, findings: list[dict]) -> None:
    """Raise Stop for the finding of the microscope that comes first: it explains the others."""
    order = ("negative index", *RACES, "swapped indices", "along K", "beyond a tile")
    order += ("out of bounds", "never copied", "uninitialised read")
    order += ("no tile", "unmasked tail", "stored twice", "not stored", "not read")
    for kind in order:
        for finding in findings:
            if finding["kind"] == kind:
                status = "BARRIER" if kind == "divergent barrier" else "WRONG"
                status = "RACE" if kind in RACES and status != "BARRIER" else status
                diagnosis = known(exercise, kind, finding["array"])
                remedy = exercise.remedies.get(kind, finding["remedy"])
                raise Stop(status, diagnosis, f"{finding['message']} {remedy}")
    for finding in findings:  # any other kind, from the microscope for Triton
        raise Stop("WRONG", finding["kind"], f"{finding['message']} {finding['remedy']}")
