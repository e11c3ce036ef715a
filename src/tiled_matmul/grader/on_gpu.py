"""The part of a verdict that needs a GPU: launch an answer's kernel, check its result, and time it.

A worker without a GPU compiles the answer (`builds`). A process that runs no learner's Python
launches the machine code (`launcher`). This process compares the bytes. A fault ends the launcher
and costs only the answer that caused it: the next answer gets a fresh launcher, which first has to
show that the GPU still works.
"""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tiled_matmul.grader import pool, wire
from tiled_matmul.grader.compare import (
    Stop,
    ask,
    called,
    compare,
    define,
    header,
    invalid_reply,
    product,
    refused,
    request,
)
from tiled_matmul.grader.kinds import CORNER
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import Call, Case, Exercise, Limits
from tiled_matmul.grader.worker import ANSWER
from tiled_matmul.machine.device import Peak
from tiled_matmul.models.roofline import floors_ms
from tiled_matmul.problem import Problem

MOST_CODE = 4 << 20
MOST_TIMED = 240 << 20  # bytes of outputs
UNEXPLAINED = "PassManager::run failed"  # all that Triton says where a pass gives up
HIDDEN = pool.WITHOUT_GPU
TAKEN = 0.95  # of the shortest time at peak rates: no kernel can be faster than that
SANITIZER = "compute-sanitizer"
SANITIZER_SECONDS = 120.0
SANITIZER_OPTIONS = "--report-api-errors no --show-backtrace no --print-limit 10".split()
# In a pool of torch's, memcheck would not see where an array ends.
NO_POOL = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
REPORTED = re.compile(r"(?:Error: |Warning: )?((?:Invalid|Misaligned|Race|Potential) .*)")
MORE = ("at ", "by thread ", "and Read access ", "and Write access ")  # a report goes on
PLACE = re.compile(r" at \S.*?\+0x[0-9a-f]+(?: in (\S+):(\d+))?")  # a symbol, a file, a line
MOST_LOG, MOST_TEXT, MOST_OF_REPORT = 1 << 20, 4000, 500
SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+)", re.MULTILINE)
USUAL = (9, 0)  # the compute capability to compile for where there is no GPU
LOCK = threading.Lock()
NOT_LAUNCHED = (
    *("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    *("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_INVALID_SOURCE", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
)


class NoGpu(Exception):
    """The GPU is missing or does not answer. This is a fault of the machine, not of an answer."""


@dataclass(frozen=True)
class Built:
    """A kernel's machine code and the values that its launch needs, as a worker reported them."""

    code: bytes
    passed: tuple[int, ...]
    warps: int
    shared: int
    scratch: int


class Gpu:
    """This machine's GPU, for the answers of one notebook. A context; leaving it ends its process.

    Several threads may each have one; only one answer at a time runs on the GPU. `cc` is the GPU's
    compute capability. Raises ValueError where there is no GPU.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        cc: tuple[int, int] | None = None,
    ) -> None:
        self.command, self.environment = command or _command(), environment or {}
        self.cc = cc or need()
        self.launcher: pool.Worker | None = None
        self.starts = 0
        self.lost: NoGpu | None = None

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End the process that holds the GPU; the next answer starts another."""
        if self.launcher is not None:
            self.launcher.close()
            self.launcher = None

    def start(self) -> pool.Worker:
        """Return the process that launches kernels, and start it if needed. Raises NoGpu."""
        if self.lost is not None:
            raise self.lost
        if self.launcher is None:
            try:
                self.launcher = _started(self.command, self.environment)
            except NoGpu as error:
                self.lost = error
                raise
            self.starts += 1
        return self.launcher


def need() -> tuple[int, int]:
    """Return the GPU's compute capability. Raises ValueError with the reason if there is no GPU."""
    from tiled_matmul.machine.backend import probe_gpu

    gpu, reason = probe_gpu()
    if gpu is None:
        raise ValueError(sentence("infra: no gpu", reason=reason))
    return gpu.capability


def _command() -> list[str]:
    return [sys.executable, "-m", "tiled_matmul.grader.launcher"]


def _started(command: Sequence[str], environment: Mapping[str, str]) -> pool.Worker:
    """Return a launcher that has shown that the GPU answers."""
    whole = pool.own_environment() | dict(environment)
    worker = pool.Worker("gpu", Limits(), False, command, whole)
    try:
        worker.__enter__()
        reply, _ = worker.ask({"do": "hello"}, [], Limits().start_seconds, 0)
        if "gpu" not in reply:
            raise NoGpu(sentence("infra: no gpu", reason=reply["error"]["message"]))
    except pool.NoWorker as error:
        raise NoGpu(str(error)) from None
    except (pool.Died, pool.TooSlow, wire.BadMessage, NoGpu) as error:
        message = sentence("infra: no answer", reason=error, printed=worker.printed)
        worker.close()
        raise NoGpu(message.strip()) from None
    return worker


def judge_there(
    exercise: Exercise, source: str, seed: int, gpu: Gpu, confined: bool, sanitize: bool
) -> dict[str, Any]:
    """Judge an answer, which passed in the interpreter, on the GPU; return its measured speed.

    Raises Stop if it is wrong or slow there, NoGpu or pool.NoWorker if the machine fails.
    """
    if exercise.kind == "values":
        return _tuned(exercise, source, seed, gpu, confined)
    seconds = exercise.limits.build_seconds
    # The worker waits while the launcher works.
    limits = dataclasses.replace(exercise.limits, seconds=seconds, in_all=math.inf)
    slow = dataclasses.replace(exercise, limits=limits)
    with LOCK, pool.Worker(exercise.kind, limits, confined, None, HIDDEN) as worker:
        _can_build(exercise, worker, gpu.cc)
        define(slow, source, worker)
        for number, case in enumerate((exercise.cases[0], *exercise.large)):
            built = _built(slow, case, worker, gpu.cc)
            _run(exercise, case, built, seed + number, gpu)
            # The interpreter has already checked the accesses of the first case.
            if sanitize and number and shutil.which(SANITIZER):
                _sanitize(exercise, case, built, seed + number)
        speed = exercise.speed_on(gpu.cc)
        if speed is None:
            return {}
        built = _built(slow, speed.case, worker, gpu.cc)
        if sanitize and shutil.which(SANITIZER):
            _sanitize(exercise, speed.case, built, seed)
        return _time(exercise, _launch(exercise, speed.case, built), built, seed, gpu)


def _tuned(exercise: Exercise, source: str, seed: int, gpu: Gpu, confined: bool) -> dict[str, Any]:
    """Time the course's own kernel with the settings that an answer gives."""
    speed = exercise.speed
    with pool.Worker(exercise.kind, exercise.limits, confined) as worker:
        define(exercise, source, worker)
        call = Call((speed.case.m, speed.case.n))
        result = called(exercise, call, worker)
    if (reason := refused(exercise, call, result)) != "":
        name, value = f"{exercise.entry}{call}", f"{result!r:.300}"
        message = sentence("value: setting", call=name, result=value, message=reason)
        raise Stop("WRONG", "value", message)
    tuned = {"of": speed.of, "settings": speed.keywords(result)}
    with LOCK:
        return _time(exercise, header(exercise, speed.case) | tuned, None, seed, gpu)


def compiles(exercise: Exercise, worker: pool.Worker) -> None:
    """Raise Stop unless the answer compiles: the interpreter accepts more than the compiler does.

    Raises pool.NoWorker if no kernel at all compiles on this machine.
    """
    try:
        _built(exercise, exercise.cases[0], worker, USUAL)
    except Stop as stop:
        with pool.Worker(exercise.kind, exercise.limits, worker.confined) as fresh:
            try:
                _can_build(exercise, fresh, USUAL)
            except NoGpu as error:
                raise pool.NoWorker(str(error)) from None
        if stop.status != "WRONG":
            raise
        why = [sentence("compile: no reason")] if UNEXPLAINED in str(stop) else []
        raise Stop("COMPILE", stop.diagnosis, "\n".join([str(stop), *why])) from None


def _can_build(exercise: Exercise, worker: pool.Worker, cc: tuple[int, int]) -> None:
    """Raise NoGpu unless a worker that has run no answer yet compiles a kernel of the course's."""
    header = {"kind": exercise.kind, "cc": cc}
    try:
        reply, _ = worker.ask(header, [], exercise.limits.build_seconds, MOST_CODE)
    except (pool.Died, pool.TooSlow, wire.BadMessage) as error:
        raise NoGpu(sentence("infra: no compiler", reason=error)) from None
    if "built" not in reply:
        reason = reply["error"]["message"][:300]
        raise NoGpu(sentence("infra: no compiler", reason=reason))


def _numbers(exercise: Exercise, case: Case) -> tuple[int, ...]:
    """Return the sizes and strides that a Triton kernel is launched with."""
    strides: list[int] = []
    for name, shape in zip(exercise.arrays, exercise.shapes(case), strict=True):
        if len(shape) == 1:
            strides.append(1)
            continue
        *parts, rows, columns = shape
        if case.corner and name != "c":
            rows, columns = rows + CORNER, columns + CORNER
        if parts:
            strides.append(rows * columns)
        strides += (1, rows) if name in case.by_columns else (columns, 1)
    return (*exercise.sizes(case), *strides)


def _built(exercise: Exercise, case: Case, worker: pool.Worker, cc: tuple[int, int]) -> Built:
    """Have a worker compile the answer for a case."""
    asked = header(exercise, case) | {"cc": cc, "numbers": _numbers(exercise, case)}
    with _on_the_gpu(exercise.described(case), "gpu: compiled"):
        reply, data = ask(exercise, worker, asked, [], MOST_CODE)
    built, most = reply.get("built"), {"warps": 32, "shared": 256 << 10, "scratch": 1 << 20}
    if not isinstance(built, dict) or set(built) != {"passed", *most} or len(data) != 1:
        raise invalid_reply()
    passed = built["passed"]
    if not isinstance(passed, list) or not all(type(i) is int and 0 <= i < 32 for i in passed):
        raise invalid_reply()
    most_passed = len(exercise.arrays) + len(_numbers(exercise, case))
    known = passed == sorted(set(passed)) and passed[-1:] <= [most_passed - 1]
    sizes = all(type(built[name]) is int and 0 <= built[name] <= most[name] for name in most)
    threads = (built["warps"] == 0) == (exercise.kind == "cuda")
    if not (known and sizes and threads):
        raise invalid_reply()
    return Built(data[0], tuple(passed), built["warps"], built["shared"], built["scratch"])


def _launch(exercise: Exercise, case: Case, built: Built) -> dict:
    """Return the header of a launch: everything but the bytes."""
    return header(exercise, case) | {
        "numbers": _numbers(exercise, case),
        "passed": built.passed,
        "warps": built.warps,
        "shared": built.shared,
        "scratch": built.scratch,
    }


def _run(exercise: Exercise, case: Case, built: Built, seed: int, gpu: Gpu) -> None:
    """Launch a kernel once and compare its C, and its inputs, with what they should be."""
    _, blobs = request(exercise, case, seed)
    launch = {"do": "run", **_launch(exercise, case, built)}
    with _blamed(exercise, case, gpu, built, seed):
        _, data = _asked(gpu.start(), launch, [built.code, *blobs], exercise.limits.gpu_seconds)
    with _on_the_gpu(exercise.described(case)):
        compare(exercise, case, blobs, data)


@contextmanager
def _on_the_gpu(case: str, key: str = "gpu: launched") -> Iterator[None]:
    """Add to a Stop that is raised within this context where it happened, by the message `key`."""
    try:
        yield
    except Stop as stop:
        message = _placed(case, str(stop), key)
        raise Stop(stop.status, stop.diagnosis, message, stop.share) from None


def _placed(case: str, message: str, key: str = "gpu: launched") -> str:
    """Return a message with the place where it arose in front of it."""
    return sentence(key, case=case, message=message)


def _asked(
    launcher: pool.Worker, header: dict, blobs: list[bytes], seconds: float
) -> tuple[dict, list[bytes]]:
    """Return the launcher's reply to a request. Raises _Refused for an error that it reports."""
    most = sum(map(len, blobs)) if header["do"] == "run" else MOST_TIMED
    reply, data = launcher.ask(header, blobs, seconds, most)
    if "error" in reply:
        raise _Refused(reply["error"])
    return reply, data


class _Refused(Exception):
    """The launcher replied with an error; `name` is the driver's name for it, "" for others."""

    def __init__(self, error: dict) -> None:
        super().__init__(f"{error['type']}: {error['message']}")
        self.type, self.name = error["type"], error.get("name", "")


@contextmanager
def _blamed(
    exercise: Exercise, case: Case, gpu: Gpu, built: Built | None, seed: int
) -> Iterator[None]:
    """Blame the answer for what happens to the launcher; the next answer gets a fresh one."""
    try:
        yield
        return
    except pool.TooSlow:
        message = sentence("timeout: gpu", seconds=exercise.limits.gpu_seconds)
        stop = Stop("TIMEOUT", "timeout", _placed(exercise.described(case), message))
    except pool.Died as died:
        stop = Stop(
            "GPU_FAULT",
            "fault",
            _placed(exercise.described(case), sentence("fault: process", reason=died)),
        )
    except _Refused as refused:
        if refused.name in NOT_LAUNCHED or refused.type == "BadCode":
            message = sentence("error: not launched", reason=refused)
            raise Stop("WRONG", "error", _placed(exercise.described(case), message)) from None
        elif refused.name:
            gpu.end()
            finding = _where(exercise, case, built, seed)
            message = sentence("fault: driver", name=refused.name, finding=finding).strip()
            stop = Stop("GPU_FAULT", "fault", _placed(exercise.described(case), message))
        else:
            gpu.end()
            raise NoGpu(str(refused)) from None
    except wire.BadMessage as error:
        gpu.end()
        raise NoGpu(sentence("infra: launcher", reason=error)) from None
    gpu.end()
    raise stop


def _where(exercise: Exercise, case: Case, built: Built | None, seed: int) -> str:
    """Return compute-sanitizer's report of a fault, "" where it is not installed."""
    if built is None or not shutil.which(SANITIZER):
        return ""
    with suppress(NoGpu, pool.NoWorker):
        return "; ".join(_findings(exercise, case, built, seed, "memcheck")[:1])
    return ""


def _sanitize(exercise: Exercise, case: Case, built: Built, seed: int) -> None:
    """Raise Stop if compute-sanitizer reports an error. Racecheck only runs on Numba kernels."""
    tools = [("memcheck", "GPU_FAULT", "fault"), ("racecheck", "RACE", "race")]
    for tool, status, diagnosis in tools[: 1 + (exercise.kind == "cuda")]:
        if reports := _findings(exercise, case, built, seed, tool):
            message = sentence("fault: sanitizer", finding=reports[0])
            raise Stop(status, diagnosis, _placed(exercise.described(case), message))


def _findings(exercise: Exercise, case: Case, built: Built, seed: int, tool: str) -> list[str]:
    """Return what one of compute-sanitizer's tools reports of one launch."""
    _, blobs = request(exercise, case, seed)
    launch = {"do": "run", **_launch(exercise, case, built)}
    # The sanitizer writes to a file, because a kernel may print to standard output.
    with pool.scratch() as folder:
        log = Path(folder) / "log"
        command = [shutil.which(SANITIZER), "--tool", tool, "--log-file", str(log)]
        return _sanitized([*command, *SANITIZER_OPTIONS, *_command()], launch, built, blobs, log)


def _sanitized(
    command: list[str], launch: dict, built: Built, blobs: list[bytes], log: Path
) -> list[str]:
    """Launch a kernel in a process under compute-sanitizer; return the reports in its log."""
    with Gpu(command, NO_POOL) as own:
        launcher = own.start()
        with suppress(pool.Died, pool.TooSlow, wire.BadMessage, _Refused):
            _asked(launcher, launch, [built.code, *blobs], SANITIZER_SECONDS)
        # The sanitizer writes its last reports when the process ends.
        launcher.finish(SANITIZER_SECONDS)
    if not log.exists():
        raise NoGpu(sentence("infra: sanitizer wrote nothing", printed=launcher.printed[-300:]))
    with log.open(encoding="utf-8", errors="replace") as file:
        return findings(file.read(MOST_LOG))


def findings(log: str) -> list[str]:
    """Return the reports in compute-sanitizer's log. Raises NoGpu for a log that is cut short."""
    counts = SUMMARY.findall(log)
    if not counts:
        raise NoGpu(sentence("infra: sanitizer did not finish", log=log[-300:]))
    if not any(map(int, counts)):
        return []
    reports: list[str] = []
    for line in log.splitlines():
        text = line.lstrip("=").strip()
        if start := REPORTED.fullmatch(text):
            reports.append(start[1])
        elif reports and text.startswith(MORE):
            reports[-1] = f"{reports[-1]} {text}"
    short = [PLACE.sub(_line, text[:MOST_TEXT])[:MOST_OF_REPORT] for text in reports]
    return short or [f"{max(map(int, counts))} errors"]


def _line(place: re.Match) -> str:
    """Return the source line of a compiled instruction, as " in line 3"."""
    file, line = place.groups()
    if file is None:
        return ""
    return f" in line {line}" if file.endswith(ANSWER) else f" in {file}:{line}"


def _time(
    exercise: Exercise, launch: dict, built: Built | None, seed: int, gpu: Gpu
) -> dict[str, Any]:
    """Time an answer and compare every output that it produced; return its speed."""
    speed = exercise.speed
    case = speed.case
    launch |= {"do": "time", "against": speed.against, "seed": seed}
    launch["case"] = dataclasses.asdict(case)
    with _blamed(exercise, case, gpu, built, seed):
        code = [built.code] if built is not None else []
        reply, data = _asked(gpu.start(), launch, code, exercise.limits.gpu_seconds)
    with _on_the_gpu(exercise.described(case)):
        for number, c in enumerate(data):
            product(exercise, case, request(exercise, case, seed + number)[1], c)
    answer, other = (median(reply[name]) for name in ("answer", "baseline"))
    floor = least_ms(case, Peak(**reply["peak"]))
    if answer < TAKEN * floor:
        raise NoGpu(sentence("infra: clock", time_ms=answer, case=case, least_ms=floor))
    ratio = other / answer
    if ratio < speed.least:
        measured = {"ratio": ratio, "against": speed.against, "least": speed.least}
        message = sentence("slow: ratio", message=speed.message, **measured)
        message = _placed(exercise.described(case), message)
        raise Stop("WRONG", "slow", message, exercise.points / exercise.points_on(gpu.cc))
    return {"against": speed.against, "ratio": round(ratio, 3), "timed": len(data)}


def least_ms(case: Case, peak: Peak) -> float:
    """Return the shortest time in ms that a GPU with these peak rates can take for a case."""
    return max(floors_ms(Problem(case.m, case.n, case.k, case.dtype), peak))
