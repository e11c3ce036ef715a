"""The part of a verdict that takes a GPU: an answer's kernel launched there, checked, and timed.

A worker without a GPU compiles the answer (`builds`); a process without a learner's Python launches
what came out (`launcher`); this one compares the bytes. A fault ends the launcher and costs only
the answer that made it: the next one gets a fresh process, which has to show first that the GPU
still answers.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tiled_matmul.grader import pool, wire
from tiled_matmul.grader.compare import (
    NONSENSE,
    Stop,
    ask,
    called,
    compare,
    define,
    header,
    product,
    request,
)
from tiled_matmul.grader.kinds import CORNER
from tiled_matmul.grader.spec import Call, Case, Exercise, Limits
from tiled_matmul.grader.worker import ANSWER
from tiled_matmul.machine.device import Peak
from tiled_matmul.models.roofline import floors_ms
from tiled_matmul.problem import Problem

MOST_CODE = 16 << 20
MOST_TIMED = 240 << 20  # bytes of outputs
HIDDEN = pool.WITHOUT_GPU
NO_GPU = "a GPU was asked for, and {}"
TAKEN = 0.95  # of the hardware's own rates: a kernel cannot be faster than that
SANITIZER = "compute-sanitizer"
SANITIZER_SECONDS = 120.0
SANITIZER_OPTIONS = "--report-api-errors no --show-backtrace no --print-limit 10".split()
# In torch's pool memcheck would miss the ends of the arrays.
NO_POOL = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
FOUND = re.compile(r"(?:Error: |Warning: )?((?:Invalid|Misaligned|Race|Potential) .*)")
MORE = ("at ", "by thread ", "and Read access ", "and Write access ")  # lines of what was found
PLACE = re.compile(r" at \S.*?\+0x[0-9a-f]+(?: in (\S+):(\d+))?")  # a symbol, a file, a line
MOST_LOG, MOST_TEXT, MOST_TOLD = 1 << 20, 4000, 500
SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+)", re.MULTILINE)
USUAL = (9, 0)  # the GPU that is compiled for where there is none
LOCK = threading.Lock()
NOT_LAUNCHED = (
    *("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    *("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_INVALID_SOURCE", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
)


class NoGpu(Exception):
    """The GPU does not answer, or is not there: nobody's fault but the machine's."""


@dataclass(frozen=True)
class Built:
    """A kernel's machine code and what its launch needs, as a worker told it."""

    code: bytes
    passed: tuple[int, ...]
    warps: int
    shared: int
    scratch: int


class Gpu:
    """This machine's GPU, for the answers of one notebook. A context; leaving it ends its process.

    Several may be there at a time, in threads; one answer at a time is on the GPU. `cc` is its
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
        """Return the process that launches, a fresh one if there is none. Raises NoGpu."""
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
    """Return the GPU's compute capability; raise ValueError, which says why, without one."""
    from tiled_matmul.machine.backend import probe_gpu

    gpu, found = probe_gpu()
    if gpu is None:
        raise ValueError(NO_GPU.format(found))
    return gpu.capability


def _command() -> list[str]:
    return [sys.executable, "-m", "tiled_matmul.grader.launcher"]


def _started(command: Sequence[str], environment: Mapping[str, str]) -> pool.Worker:
    """Return a launcher that has shown that the GPU answers."""
    told = pool.own_environment() | dict(environment)
    worker = pool.Worker("gpu", Limits(), False, command, told)
    try:
        worker.__enter__()
        reply, _ = worker.ask({"do": "hello"}, [], Limits().start_seconds, 0)
        if "gpu" not in reply:
            raise NoGpu(NO_GPU.format(reply["error"]["message"]))
    except pool.NoWorker as error:
        raise NoGpu(str(error)) from None
    except (pool.Died, pool.TooSlow, wire.BadMessage, NoGpu) as error:
        said = worker.said
        worker.close()
        raise NoGpu(f"the GPU does not answer: {error} {said}".strip()) from None
    return worker


def judge_there(
    exercise: Exercise, source: str, seed: int, gpu: Gpu, confined: bool, sanitize: bool
) -> dict[str, Any]:
    """Judge an answer, right so far, on the GPU; return what is to be told of its speed.

    Raises Stop where it is wrong or slow there, NoGpu and pool.NoWorker where the machine fails.
    """
    if exercise.kind == "values":
        return _tuned(exercise, source, seed, gpu, confined)
    limits = dataclasses.replace(exercise.limits, seconds=exercise.limits.build_seconds)
    slow = dataclasses.replace(exercise, limits=limits)
    with LOCK, pool.Worker(exercise.kind, limits, confined, None, HIDDEN) as worker:
        _can_build(exercise, worker, gpu.cc)
        define(slow, source, worker)
        for number, case in enumerate((exercise.cases[0], *exercise.large)):
            built = _built(slow, case, worker, gpu.cc)
            _run(exercise, case, built, seed + number, gpu)
            # The first case is one that the interpreter has looked at.
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
    if (told := exercise.accepts(call.arguments, result)) != "":
        raise Stop("WRONG", "value", f"{exercise.entry}{call} is {result!r:.300} now. {told}")
    tuned = {"of": speed.of, "settings": speed.settings(result)}
    with LOCK:
        return _time(exercise, header(exercise, speed.case) | tuned, None, seed, gpu)


def compiles(exercise: Exercise, worker: pool.Worker) -> None:
    """Raise Stop unless the answer compiles: the interpreter takes more than the compiler does.

    Raises pool.NoWorker where nothing does.
    """
    try:
        _built(exercise, exercise.cases[0], worker, USUAL)
    except Stop:
        with pool.Worker(exercise.kind, exercise.limits, worker.confined) as fresh:
            try:
                _can_build(exercise, fresh, USUAL)
            except NoGpu as error:
                raise pool.NoWorker(str(error)) from None
        raise


def _can_build(exercise: Exercise, worker: pool.Worker, cc: tuple[int, int]) -> None:
    """Raise NoGpu unless the worker, which has met no answer yet, compiles a kernel of its own."""
    said = {"kind": exercise.kind, "cc": cc}
    try:
        reply, _ = worker.ask(said, [], exercise.limits.build_seconds, MOST_CODE)
    except (pool.Died, pool.TooSlow, wire.BadMessage) as error:
        raise NoGpu(f"no kernel can be compiled here: {error}") from None
    if "built" not in reply:
        raise NoGpu(f"no kernel can be compiled here: {reply['error']['message'][:300]}")


def _numbers(case: Case) -> tuple[int, ...]:
    """Return the sizes and strides that a program of Triton's is launched with."""
    strides: list[int] = []
    for name, shape in zip("abc", case.shapes, strict=True):
        *parts, rows, columns = shape
        if case.corner and name in "ab":
            rows, columns = rows + CORNER, columns + CORNER
        if parts:
            strides.append(rows * columns)
        strides += (1, rows) if name in case.by_columns else (columns, 1)
    return (case.m, case.n, case.k, *strides)


def _built(exercise: Exercise, case: Case, worker: pool.Worker, cc: tuple[int, int]) -> Built:
    """Have a worker compile the answer for a case."""
    said = header(exercise, case) | {"cc": cc, "numbers": _numbers(case)}
    with _on_the_gpu(case, "Compiled for a GPU"):
        reply, data = ask(exercise, worker, said, [], MOST_CODE)
    said = reply.get("built")
    nonsense = Stop("CRASH", "crash", NONSENSE)
    if not isinstance(said, dict) or len(data) != 1:
        raise nonsense
    if set(said) != {"passed", "warps", "shared", "scratch"}:
        raise nonsense
    passed = said["passed"]
    if not isinstance(passed, list) or not all(type(i) is int and 0 <= i < 32 for i in passed):
        raise nonsense
    if passed != sorted(set(passed)) or passed[-1:] > [2 + len(_numbers(case))]:
        raise nonsense
    ranges = {"warps": 32, "shared": 256 << 10, "scratch": 1 << 20}
    if not all(
        type(said[name]) is int and 0 <= said[name] <= most for name, most in ranges.items()
    ):
        raise nonsense
    if (said["warps"] == 0) != (exercise.kind == "cuda"):
        raise nonsense
    return Built(data[0], tuple(passed), said["warps"], said["shared"], said["scratch"])


def _launch(exercise: Exercise, case: Case, built: Built) -> dict:
    """Return what a launch needs beside the bytes."""
    return header(exercise, case) | {
        "numbers": _numbers(case),
        "passed": built.passed,
        "warps": built.warps,
        "shared": built.shared,
        "scratch": built.scratch,
    }


def _run(exercise: Exercise, case: Case, built: Built, seed: int, gpu: Gpu) -> None:
    """Launch a kernel once and compare what it leaves."""
    _, blobs = request(exercise, case, seed)
    launch = {"do": "run", **_launch(exercise, case, built)}
    with _blamed(exercise, case, gpu, built, seed):
        _, data = _asked(gpu.start(), launch, [built.code, *blobs], exercise.limits.gpu_seconds)
    with _on_the_gpu(case):
        compare(exercise, case, blobs, data)


@contextmanager
def _on_the_gpu(case: Case, where: str = "On the GPU") -> Iterator[None]:
    """Say of what is found within this where it was found."""
    try:
        yield
    except Stop as stop:
        told = f"{where}, {case}: {stop}"
        raise Stop(stop.status, stop.diagnosis, told, stop.share) from None


def _asked(
    launcher: pool.Worker, said: dict, blobs: list[bytes], seconds: float
) -> tuple[dict, list[bytes]]:
    most = sum(map(len, blobs)) if said["do"] == "run" else MOST_TIMED
    reply, data = launcher.ask(said, blobs, seconds, most)
    if "error" in reply:
        raise _Refused(reply["error"])
    return reply, data


class _Refused(Exception):
    """The launcher replied an error; `name` is the driver's, if it came from there."""

    def __init__(self, said: dict) -> None:
        super().__init__(f"{said['type']}: {said['message']}")
        self.type, self.name = said["type"], said.get("name", "")


@contextmanager
def _blamed(
    exercise: Exercise, case: Case, gpu: Gpu, built: Built | None, seed: int
) -> Iterator[None]:
    """Let what happens to the launcher be the answer's; the next one has a fresh process."""
    try:
        yield
        return
    except pool.TooSlow:
        stop = Stop(
            "TIMEOUT",
            "timeout",
            f"On the GPU, {case}: no end within {exercise.limits.gpu_seconds:g} s. Which loop "
            "never ends there, or waits for what nobody does?",
        )
    except pool.Died as died:
        stop = Stop("GPU_FAULT", "fault", f"On the GPU, {case}: {died}.")
    except _Refused as refused:
        if refused.name in NOT_LAUNCHED or refused.type == "BadCode":
            told = f"On the GPU, {case}: the kernel cannot be launched: {refused}."
            raise Stop("WRONG", "error", told) from None
        elif refused.name:
            told = f"On the GPU, {case}: {refused.name}, a fault that ends the process."
            gpu.end()
            stop = Stop(
                "GPU_FAULT", "fault", f"{told} {_where(exercise, case, built, seed)}".strip()
            )
        else:
            gpu.end()
            raise NoGpu(str(refused)) from None
    except wire.BadMessage as error:
        gpu.end()
        raise NoGpu(f"the launcher sent nonsense: {error}") from None
    gpu.end()
    raise stop


def _where(exercise: Exercise, case: Case, built: Built | None, seed: int) -> str:
    """Return what compute-sanitizer says of a fault, "" where it is not there."""
    if built is None or not shutil.which(SANITIZER):
        return ""
    with suppress(NoGpu, pool.NoWorker):
        return "; ".join(_findings(exercise, case, built, seed, "memcheck")[:1])
    return ""


def _sanitize(exercise: Exercise, case: Case, built: Built, seed: int) -> None:
    """Raise Stop for what compute-sanitizer finds. Triton's barriers are not for racecheck."""
    said = _findings(exercise, case, built, seed, "memcheck")
    if said:
        told = f"On the GPU, {case}: compute-sanitizer: {said[0]}"
        raise Stop("GPU_FAULT", "fault", told)
    if exercise.kind != "cuda":
        return
    said = _findings(exercise, case, built, seed, "racecheck")
    if said:
        told = f"On the GPU, {case}: compute-sanitizer: {said[0]}"
        raise Stop("RACE", "race", told)


def _findings(exercise: Exercise, case: Case, built: Built, seed: int, tool: str) -> list[str]:
    """Return what a tool of compute-sanitizer's prints of one launch."""
    _, blobs = request(exercise, case, seed)
    launch = {"do": "run", **_launch(exercise, case, built)}
    # What a kernel prints comes out where the sanitizer would write.
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [shutil.which(SANITIZER), "--tool", tool, "--log-file", str(log)]
        return _looked_at([*command, *SANITIZER_OPTIONS, *_command()], launch, built, blobs, log)


def _looked_at(
    command: list[str], launch: dict, built: Built, blobs: list[bytes], log: Path
) -> list[str]:
    with Gpu(command, NO_POOL) as own:
        launcher = own.start()
        with suppress(pool.Died, pool.TooSlow, wire.BadMessage, _Refused):
            _asked(launcher, launch, [built.code, *blobs], SANITIZER_SECONDS)
        # It tells the last of what it found when the process ends.
        launcher.finish(SANITIZER_SECONDS)
    if not log.exists():
        raise NoGpu(f"compute-sanitizer wrote nothing: {launcher.said[-300:]}")
    with log.open(encoding="utf-8", errors="replace") as file:
        return findings(file.read(MOST_LOG))


def findings(log: str) -> list[str]:
    """Return what a log of compute-sanitizer's reports. Raises NoGpu for one that is cut short."""
    counts = SUMMARY.findall(log)
    if not counts:
        raise NoGpu(f"compute-sanitizer came to no end: {log[-300:]}")
    if not any(map(int, counts)):
        return []
    found: list[str] = []
    for line in log.splitlines():
        text = line.lstrip("=").strip()
        if start := FOUND.fullmatch(text):
            found.append(start[1])
        elif found and text.startswith(MORE):
            found[-1] = f"{found[-1]} {text}"
    told = [PLACE.sub(_line, text[:MOST_TEXT])[:MOST_TOLD] for text in found]
    return told or [f"{max(map(int, counts))} errors"]


def _line(place: re.Match) -> str:
    """Return where a compiled instruction stands, for who wrote the source."""
    file, line = place.groups()
    if file is None:
        return ""
    return f" in line {line}" if file.endswith(ANSWER) else f" in {file}:{line}"


def _time(
    exercise: Exercise, launch: dict, built: Built | None, seed: int, gpu: Gpu
) -> dict[str, Any]:
    """Time an answer; every output that was made on the way is compared."""
    speed = exercise.speed
    case = speed.case
    launch |= {"do": "time", "against": speed.against, "seed": seed}
    launch["case"] = dataclasses.asdict(case)
    with _blamed(exercise, case, gpu, built, seed):
        code = [built.code] if built is not None else []
        reply, data = _asked(gpu.start(), launch, code, exercise.limits.gpu_seconds)
    with _on_the_gpu(case):
        for number, c in enumerate(data):
            product(exercise, case, request(exercise, case, seed + number)[1], c)
    answer, other = (median(reply[name]) for name in ("answer", "baseline"))
    floor = least_ms(case, Peak(**reply["peak"]))
    if answer < TAKEN * floor:
        raise NoGpu(
            f"a time of {answer:.3g} ms for {case} cannot be: this GPU takes {floor:.3g} ms at its "
            "peak rates. The clock is wrong, and no mark is made of it"
        )
    ratio = other / answer
    told = {"against": speed.against, "ratio": round(ratio, 3), "timed": len(data)}
    if ratio < speed.least:
        message = f"On the GPU, {case}: right, and at {ratio:.2f} of the speed of {speed.against}, "
        message += f"of which {speed.least:g} was asked. {speed.message}"
        raise Stop("WRONG", "slow", message, exercise.points / exercise.points_on(gpu.cc))
    return told


def least_ms(case: Case, peak: Peak) -> float:
    """Return the shortest time that a GPU of these peak rates can take for a case, in ms."""
    return max(floors_ms(Problem(case.m, case.n, case.k, case.dtype), peak))
