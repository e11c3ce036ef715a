"""Measure settings of the best rung against cuBLAS, as JSON: tuning by search.

    python tools/search.py --out FILE    on a GPU machine
    python tools/search.py trial N --lock FILE    one job; the first form starts each of them

Each setting, and each variant of the kernel, is a process of its own: they compile side by side, on
all cores, and measure in turn, one at a time. What does not fit together or does not fit on the GPU
is kept in FILE with the reason. FILE is written whole or not at all.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

LONGEST_S = 300
ANSWER = "answer: "


@contextlib.contextmanager
def in_turn(path: str) -> Iterator[None]:
    """Wait until no other process holds the lock on this file, and hold it meanwhile."""
    import fcntl

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def trial(number: int, lock: str) -> dict:
    """Run one job and return what is stored of it: numbers, or the text of the error."""
    from tiled_matmul.check import MatmulError
    from tiled_matmul.measure import search

    setting, variant = search.JOBS[number]
    try:
        return search.run(setting, variant, alone=in_turn(lock))
    except (ValueError, MatmulError) as error:
        return {"setting": asdict(setting), "variant": variant, "error": str(error)}


def start(number: int, lock: str) -> dict:
    """Run one job in a process of its own. If that dies, the error is the last line it printed."""
    from tiled_matmul.measure import search

    command = [sys.executable, str(Path(__file__).resolve()), "trial", str(number), "--lock", lock]
    begun = time.monotonic()
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
    setting, variant = search.JOBS[number]
    outcome = {"setting": asdict(setting), "variant": variant, "error": error}
    if answers:
        outcome = json.loads(answers[-1].removeprefix(ANSWER))
    ratios = ", ".join(f"{r['ratio']:.3f} at {r['n']}" for r in outcome.get("records", []))
    spent = f"{time.monotonic() - begun:.0f} s"
    print(f"{search.title(setting)}, {variant}: {ratios or outcome['error']} ({spent})", flush=True)
    return outcome


def take(out: Path) -> None:
    """Run all jobs and write their outcomes. Raises ValueError if none was measured."""
    from tiled_matmul.files import replace_text
    from tiled_matmul.measure import search

    origin = search.provenance()
    out.parent.mkdir(parents=True, exist_ok=True)
    numbers = range(len(search.JOBS))
    with tempfile.TemporaryDirectory() as folder:
        lock = str(Path(folder) / "lock")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = list(pool.map(lambda number: start(number, lock), numbers))
    stored = {"provenance": origin, "trials": outcomes}
    trials = search.parse(stored)
    replace_text(out, search.as_text(origin, outcomes))
    measured = [each for each in trials if each.records and each.variant == search.AS_IT_IS]
    for edge in search.EDGES:
        best = max(measured, key=lambda each: each.record(edge).ratio)
        print(f"best at {edge}: {search.title(best.setting)}, {best.record(edge).ratio:.3f}")
    failed = sum(not each.records for each in trials)
    print(f"{len(trials) - failed} of {len(trials)} measured: {out}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mode", nargs="?", choices=("take", "trial"), default="take")
    parser.add_argument("number", nargs="?", type=int, help="trial: the number of the job")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument(
        "--lock",
        help="trial: the file that a process locks while it measures, so that they take turns",
    )
    chosen = parser.parse_args(arguments)
    if chosen.mode == "take" and chosen.out is None:
        parser.error("--out FILE says where the results go")
    if chosen.mode == "trial" and (chosen.number is None or chosen.lock is None):
        parser.error("trial wants a number and --lock FILE")
    os.environ["TILED_MATMUL_BACKEND"] = "gpu"
    from tiled_matmul.machine import backend

    try:
        backend.select()
        if chosen.mode == "take":
            take(chosen.out)
        else:
            print(ANSWER + json.dumps(trial(chosen.number, chosen.lock)), flush=True)
    except (backend.BackendError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
