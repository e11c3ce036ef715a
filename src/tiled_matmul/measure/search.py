"""Tuning by search: settings of `cuda_best`, each compiled and measured; `results/search/*.json`.

`measure search` runs the search on a GPU. This module holds the settings,
variants of the kernel that each drop one optimisation, and the evaluation of a trial. Chapter 9
shows the file, and `cuda_best` holds the winners.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.variants import edited, matmul_with, without
from tiled_matmul.ladder import cuda_best
from tiled_matmul.ladder.cuda_best import Setting
from tiled_matmul.measure import fingerprint, records
from tiled_matmul.measure.records import Entry
from tiled_matmul.measure.results import Record
from tiled_matmul.measure.spent import CLOCK, spending
from tiled_matmul.measure.suite import Job, Suite
from tiled_matmul.microscope.compiled.cuda import Compiled, compiled
from tiled_matmul.models.occupancy import Occupancy, occupancy
from tiled_matmul.problem import Problem

SUITE = "search"
SEARCH = ROOT / "results" / "search"
EDGES = (4096, 1024)
BUDGET_S = 0.7
# Tiles of a block (M, N, K), a warp and a thread; limit on registers per thread.
SETTINGS = tuple(
    Setting(*sizes)
    for sizes in (
        (128, 256, 8, 32, 128, 8, 16, 255),
        (128, 256, 8, 64, 64, 8, 16, 255),
        (128, 256, 16, 32, 128, 8, 16, 255),
        (256, 128, 8, 64, 64, 8, 16, 255),
        (256, 256, 8, 64, 64, 8, 16, 128),  # 512 threads: too few registers
        (128, 128, 8, 32, 128, 8, 16, 255),
        (128, 128, 8, 32, 64, 8, 8, 128),
        (128, 128, 16, 32, 64, 8, 8, 128),
        (64, 128, 8, 32, 64, 8, 8, 168),
        (64, 128, 16, 32, 64, 8, 8, 168),
        (64, 128, 16, 64, 32, 8, 8, 168),
        (64, 128, 16, 32, 64, 8, 8, 128),
        (64, 64, 16, 32, 32, 8, 4, 128),
        (32, 64, 16, 16, 32, 4, 4, 128),
    )
)
AS_IT_IS = "as it is"


def _fragments_in_turn(kernel: Any) -> Any:
    """Return the kernel with one set of fragments, loaded in the step that multiplies them."""
    for old, new in (
        ("now, then = k % 2, (k + 1) % 2", "now, then = 0, 0"),
        ("k_then = (k + 1) % TILE_K", "k_then = k"),
        ("if k == TILE_K - 1:", "if k == 0:"),
        ("b_from += at * B_ROW", "b_from += at * B_ROW; use, fill = fill, use"),
    ):
        kernel = edited(kernel, old, new)
    return kernel


VARIANTS = {
    AS_IT_IS: lambda kernel: kernel,
    "without alpha": lambda kernel: without(kernel, "*= alpha"),
    "every column downwards": lambda kernel: edited(
        kernel, "ROWS - 1 - step if j % 2 else step", "step"
    ),
    "fragments in turn": _fragments_in_turn,
    "C in singles": lambda kernel: edited(kernel, "if C_FOURS:", "if not C_FOURS:"),
    "lanes in columns": lambda kernel: edited(
        edited(kernel, "lane // LANES_N", "lane % LANES_M"),
        "lane % LANES_N",
        "lane // LANES_M",
    ),
}
"""Correct kernels that each drop one optimisation, measured with the first of SETTINGS."""
JOBS = tuple((setting, AS_IT_IS) for setting in SETTINGS) + tuple(
    (SETTINGS[0], name) for name in VARIANTS if name != AS_IT_IS
)
PROVENANCE = (
    "gpu",
    "compute_capability",
    "multiprocessors",
    "driver",
    "versions",
    "date",
    "commit",
)
MEASURED = ("m", "n", "k", "launches", "time_ms", "spread", "ratio")
COMPILED = ("registers", "spilled_bytes", "shared_bytes")
COUNTED = ("instructions", "multiply_adds", "same_bank")


@dataclass(frozen=True)
class Candidate:
    """A setting with a variant of the kernel, in the form of a rung for `bench`."""

    setting: Setting
    variant: str = AS_IT_IS
    device: str = "gpu"
    layout: str = "nn"

    @property
    def name(self) -> str:
        return f"{title(self.setting)}, {self.variant}"

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the code that it changes."""
        return fingerprint.of("cuda_best")

    @property
    def kernel(self) -> Any:
        """The kernel for B and C of aligned fours. Raises ValueError for tiles that do not fit."""
        constants = self.setting.constants(True)
        most = self.setting.max_registers
        return with_constants(_changed(self.variant), max_registers=most, **constants)

    @property
    def matmul(self) -> Callable:
        return partial(
            matmul_with(cuda_best, _changed(self.variant)),
            setting=self.setting,
        )


@cache
def _changed(variant: str) -> Any:
    return VARIANTS[variant](cuda_best.cuda_best_kernel)


@dataclass(frozen=True)
class Trial:
    """The result for one setting: the compiler's figures and a record for each problem.

    The inner loop has `instructions` in all, `multiply_adds` among them, of which `same_bank` wait
    for a register bank (see `Compiled`). If the setting failed, `error` is the reason, there are no
    records and the numbers are 0.
    """

    setting: Setting
    variant: str
    cc: tuple[int, int]
    multiprocessors: int
    registers: int = 0
    spilled_bytes: int = 0
    shared_bytes: int = 0
    instructions: int = 0
    multiply_adds: int = 0
    same_bank: int = 0
    records: tuple[Record, ...] = ()
    error: str = ""

    def record(self, edge: int) -> Record:
        """Return the record of a square problem. Raises ValueError, listing what exists."""
        for each in self.records:
            if (each.m, each.n, each.k) == (edge,) * 3:
                return each
        reason = ", ".join(each.shape_text for each in self.records) or self.error
        raise ValueError(f"{title(self.setting)} was not measured at {edge}: {reason}")

    @property
    def failure(self) -> str:
        """Why there are no records, in words for a figure; "" if there are some."""
        return "does not compile" if "COMPILE" in self.error else self.error

    @property
    def occupancy(self) -> Occupancy:
        """The occupancy of a multiprocessor. Raises ValueError if no block fits."""
        made = Compiled(
            title(self.setting),
            self.cc,
            self.registers,
            self.spilled_bytes,
            self.shared_bytes,
        )
        return occupancy(made, self.setting.threads)

    def busy(self, m: int, n: int) -> int:
        """Return how many multiprocessors get at least one block of C."""
        blocks = math.ceil(m / self.setting.tile_m) * math.ceil(n / self.setting.tile_n)
        return min(blocks, self.multiprocessors)

    def waves(self, m: int, n: int) -> float:
        """Return the number of waves of blocks that cover C; the last one may be partial."""
        blocks = math.ceil(m / self.setting.tile_m) * math.ceil(n / self.setting.tile_n)
        return blocks / (self.occupancy.blocks * self.multiprocessors)

    def row(self, edges: Sequence[int] = EDGES) -> dict[str, Any]:
        """Return the trial as a row of a table."""
        tiles = self.setting
        row: dict[str, Any] = {
            "block": f"{tiles.tile_m}×{tiles.tile_n}×{tiles.tile_k}",
            "warp": f"{tiles.warp_m}×{tiles.warp_n}",
            "thread": f"{tiles.rows}×{tiles.columns}",
            "threads": tiles.threads,
            "registers": self.registers if self.records else "–",
            "spilled": self.spilled_bytes if self.records else "–",
            "blocks there": self.occupancy.blocks if self.records else "–",
        }
        for edge in edges:
            # At the smallest edge some multiprocessors may be idle; at others waves matter.
            word, count = ("busy", self.busy) if edge == min(edges) else ("waves", self.waves)
            row[f"{word}, {edge}³"] = count(edge, edge) if self.records else "–"
            row[f"of cuBLAS, {edge}³"] = self.record(edge).ratio if self.records else "–"
        return row


def title(setting: Setting) -> str:
    """Return a setting's name: "128×256×8, warp 32×128, thread 8×16" and any register limit."""
    most = f", at most {setting.max_registers} registers" if setting.max_registers < 255 else ""
    return (
        f"{setting.tile_m}×{setting.tile_n}×{setting.tile_k}, warp "
        f"{setting.warp_m}×{setting.warp_n}, thread {setting.rows}×{setting.columns}{most}"
    )


def run(
    setting: Setting,
    variant: str = AS_IT_IS,
    edges: Sequence[int] = EDGES,
    alone: AbstractContextManager | None = None,
    budget_s: float = BUDGET_S,
) -> tuple[dict, dict]:
    """Compile and measure one setting on this GPU; return its case and its values.

    The context `alone` is entered for the measurement, so that several processes can compile at
    once but measure one at a time. Each product is checked. Raises ValueError for tiles that do not
    fit together or without a GPU, MatmulError for a wrong product, NoCompiler without `cuobjdump`.
    """
    from numba import types

    from tiled_matmul.measure.bench import bench
    from tiled_matmul.measure.clock import need_gpu

    need_gpu()
    candidate = Candidate(setting, variant)
    a, b = Problem.square(64).inputs(device="cuda")
    out = candidate.matmul(a, b)  # compiles
    made = compiled(candidate.kernel, a.view(-1), b.view(-1), out, types.float32)
    taken = []
    with alone or nullcontext():
        for edge in edges:
            problem = Problem.square(edge)
            _, record = bench([candidate], problem, budget_s=budget_s, max_run_s=math.inf)
            taken.append({key: getattr(record, key) for key in MEASURED})
    counts = (made.inner.total(), made.count("multiply-adds"), made.same_bank)
    case = {"setting": asdict(setting), "variant": variant}
    return case, {
        **{key: getattr(made, key) for key in COMPILED},
        **dict(zip(COUNTED, counts, strict=True)),
        "records": taken,
    }


def more() -> dict[str, Any]:
    """Return what a search adds to a run's provenance."""
    from tiled_matmul.kit import backend
    from tiled_matmul.kit.launch import multiprocessors

    return {
        "compute_capability": list(backend.select().gpu.capability),
        "multiprocessors": multiprocessors(),
    }


def load(path: str | os.PathLike) -> list[Trial]:
    """Read a file. Raises ValueError naming the file and the fault."""
    return records.load_as(path, SUITE, parse)


def parse(entries: Sequence[Entry]) -> list[Trial]:
    """Return the trials of entries. Raises ValueError for an impossible number."""
    trials = []
    for entry in entries:
        missing = [key for key in PROVENANCE if not entry.run.get(key)]
        if missing:
            raise ValueError(f"the provenance lacks {', '.join(missing)}")
        place = tuple(entry.run["compute_capability"]), entry.run["multiprocessors"]
        trials.append(_trial(dict(entry.case) | dict(entry.values), entry, place))
    if not any(trial.records for trial in trials):
        raise ValueError("no setting was measured")
    return trials


def _trial(stored: Mapping[str, Any], entry: Entry, place: tuple) -> Trial:
    setting, variant = Setting(**stored["setting"]), stored["variant"]
    if stored.get("error"):
        return Trial(setting, variant, *place, error=stored["error"])
    for key in COMPILED + COUNTED:
        if type(stored[key]) is not int or stored[key] < (key == "registers"):
            raise ValueError(f"{title(setting)}: {key} cannot be {stored[key]!r}")
    here = {f.name for f in fields(Record)} & set(PROVENANCE)
    records = tuple(
        Record(
            rung="cuda_best",
            dtype="float32",
            graph=False,
            baseline="cublas",
            tflops=2 * each["m"] * each["n"] * each["k"] / each["time_ms"] / 1e9,
            **{key: each[key] for key in MEASURED},
            **{key: entry.run[key] for key in here},
            kernel=entry.kernels["cuda_best"],
        )
        for each in stored["records"]
    )
    counts = (stored[key] for key in COMPILED + COUNTED)
    return Trial(setting, variant, *place, *counts, records=records)


def reference() -> list[Trial]:
    """Return the search on the reference GPU, which the book's prose quotes."""
    return load(SEARCH / "h200.json")


# --- the suite ------------------------------------------------------------------------------------

LONGEST_S = 300
ANSWER = "answer: "


@contextlib.contextmanager
def in_turn(path: str) -> Iterator[None]:
    """Wait until no other process holds the lock on this file, and hold it meanwhile."""
    import fcntl

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def trial(number: int, lock: str) -> tuple[dict, dict]:
    """Run one of JOBS and return its case and values: numbers, or the text of the error."""
    from tiled_matmul.check import MatmulError

    setting, variant = JOBS[number]
    try:
        return run(setting, variant, alone=in_turn(lock))
    except (ValueError, MatmulError) as error:
        return {"setting": asdict(setting), "variant": variant}, {"error": str(error)}


def start(number: int, lock: str) -> tuple[dict, dict]:
    """Run one job in a process of its own. If that dies, the error is the last line it printed."""
    command = [sys.executable, "-m", __name__, str(number), lock]
    environment = os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST_S, env=environment
        )
        words = (ended.stderr or ended.stdout).strip().splitlines()
        error = words[-1] if words else f"ended with {ended.returncode}"
        answers = [line for line in ended.stdout.splitlines() if line.startswith(ANSWER)]
    except subprocess.TimeoutExpired:
        answers, error = [], f"took over {LONGEST_S} s"
    if answers:
        case, values = json.loads(answers[0].removeprefix(ANSWER))
        return case, values
    setting, variant = JOBS[number]
    return {"setting": asdict(setting), "variant": variant}, {"error": error}


def take() -> Iterator[tuple[dict, dict]]:
    """Yield all of JOBS: processes compile side by side, and measure one at a time.

    Raises ValueError if none could be measured.
    """
    with tempfile.TemporaryDirectory() as folder, spending(CLOCK):
        lock = str(Path(folder) / "lock")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = list(pool.map(lambda number: start(number, lock), range(len(JOBS))))
    if all("error" in values for _, values in outcomes):
        raise ValueError(f"no setting was measured: {outcomes[0][1]['error']}")
    yield from outcomes


def suite_jobs() -> list[Job]:
    """Return the one job."""
    return [Job("search", ("cuda_best",), take)]


SUITES = (
    Suite("search", "settings of the best rung in Numba beside cuBLAS", suite_jobs,
          "search/{machine}.json", more=more),
)  # fmt: skip

if __name__ == "__main__":
    print(ANSWER + json.dumps(trial(int(sys.argv[1]), sys.argv[2])), flush=True)
