"""Grade a made-up class of thousands on a Dask cluster, and write what it took, into results/.

    python tools/soak_cluster.py --out FILE [--count 10000] [--workers 2] [--seed 1] [--folder DIR]

A scheduler, workers of one thread and the client, `grade --teacher`, are processes of their own.
The class is drawn from the answers that the course keeps as data, right and wrong ones, each with a
comment of its own, and from hostile files. On the way one worker and the client are killed with
SIGKILL; the same command then goes on. At the end every submission must have exactly one report,
with the marks that its answer should get, and as many as `--alike` of them those of one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from tiled_matmul import ROOT
from tiled_matmul.files import replace_text
from tiled_matmul.grader import mistakes, pool, practice, reading, submission
from tiled_matmul.grader.folders import Folder, folders
from tiled_matmul.machine.device import cpu_name
from tiled_matmul.measure.provenance import commit, installed

CHAPTERS = ("01", "02", "03", "04", "06", "17")
SLOW = ("TIMEOUT", "CRASH")  # seconds each: some of them come with the hostile ones
HOSTILE_SHARE, UNANSWERED_SHARE = 0.12, 0.03
WORKER_DIES, CLIENT_DIES = 0.2, 0.5  # when so much of the class has been graded
SAMPLE_S = 1.0
LARGE = 9 << 20  # bytes of the largest notebooks, whose outputs are ballast
NODES = (16, 64)
CORES_OF_A_NODE = 16

# What an attacker hands in as the answer to 01.1. None of it may pass.
ATTACKS = {
    "a file": "def loops(a, b, c):\n    open('/etc/passwd')\n",
    "a process": "import os\ndef loops(a, b, c):\n    os.system('true')\n",
    "the end": "def loops(a, b, c):\n    raise SystemExit(0)\n",
    "classes": "def loops(a, b, c):\n    return ().__class__.__base__.__subclasses__()\n",
    "recursion": "def loops(a, b, c):\n    loops(a, b, c)\n",
    "memory": "def loops(a, b, c):\n    c[0][0] = len([0] * 10**10)\n",
    "words": "def loops(a, b, c):\n    for _ in range(10**5):\n        print('x' * 100)\n",
    "no syntax": "def loops(a, b, c)\n    pass\n",
    "nulls": "def loops(a, b, c):\n    '\\0'\n",
}
ENDLESS = "def loops(a, b, c):\n    while True:\n        pass\n"
MOST_ENDLESS = 2


def catalogue() -> tuple[list[tuple[Folder, str, str]], list[tuple[Folder, str, str]]]:
    """Return (right, wrong) answers as (exercise's folder, source, status)."""
    found = []
    for one in folders():
        if one.name[:2] in CHAPTERS:
            found.append((one, one.code("answer.py"), "PASS"))
            found += [(one, answer.source, answer.status) for answer in mistakes.answers(one)]
    right = [each for each in found if each[2] == "PASS"]
    return right, [each for each in found if each[2] not in ("PASS", *SLOW)]


def notebook(chapter: str, answers: dict[str, str], ballast: int = 0) -> bytes:
    """Return a chapter's notebook with these answers, and without the cells of other exercises."""
    (path,) = (ROOT / "exercises").glob(f"{chapter}_*.ipynb")
    data = json.loads(path.read_text(encoding="utf-8"))
    kept = []
    for cell in data["cells"]:
        if not cell["id"].startswith("exercise-"):
            kept.append(cell)
        elif cell["id"] in answers:
            kept.append(cell | {"source": answers[cell["id"]]})
    if ballast:
        output = {"output_type": "stream", "name": "stdout", "text": "x" * ballast}
        kept[-1] = kept[-1] | {"outputs": [output]}
    return json.dumps(data | {"cells": kept}).encode()


def hostile(draw: random.Random, number: int) -> tuple[str, bytes]:
    """Return (kind, bytes) of a file that is not meant to pass."""
    attacks = [*ATTACKS, "not JSON", "cut short", "deep", "too large", "many cells", "wrong types"]
    kind = draw.choice(attacks)
    if kind in ATTACKS:
        return kind, notebook("01", {"exercise-01-1": f"{ATTACKS[kind]}# {number}\n"})
    whole = notebook("01", {})
    files = {
        "not JSON": b"\x80\x04\x95" + whole,
        "cut short": whole[: draw.randrange(len(whole))],
        "deep": b'{"cells": ' + b"[" * 100_000,
        "too large": b" " * (reading.MAX_BYTES + 1) if number % 50 == 0 else b"{}",
        "many cells": json.dumps({"cells": [{"cell_type": "code", "source": ""}] * 3000}).encode(),
        "wrong types": json.dumps({"cells": [1, None, {"source": {}}]}).encode(),
    }
    return kind, files[kind]


def draw_class(folder: Path, count: int, seed: int) -> dict[str, str]:
    """Write the submissions, and return the status that each should get, "" for none."""
    draw = random.Random(seed)
    right, wrong = catalogue()
    wanted = {}
    for number in range(count):
        name, chance = f"{number:05d}.ipynb", draw.random()
        ballast = LARGE if number % 500 == 250 else 0
        if number < MOST_ENDLESS:
            name = f"{number * count // MOST_ENDLESS:05d}-endless.ipynb"
            data = notebook("01", {"exercise-01-1": f"{ENDLESS}# {number}\n"})
            status = "TIMEOUT"
        elif chance < HOSTILE_SHARE:
            kind, data = hostile(draw, number)
            status = "attack" if kind in ATTACKS else ""
        elif chance < HOSTILE_SHARE + UNANSWERED_SHARE:
            data, status = notebook(draw.choice(CHAPTERS), {}), "MISSING"
        else:
            one, source, status = draw.choice(right if draw.random() < 0.5 else wrong)
            own = f"{source}\n# handed in as {number}\n"
            cell = f"exercise-{one.name.replace('.', '-')}"
            data = notebook(one.name[:2], {cell: own}, ballast)
        (folder / name).write_bytes(data)
        wanted[name] = status
    return wanted


def got(report: dict[str, Any]) -> str:
    """Return the status of the one answer of a submission; "" if it could not be read."""
    if "error" in report:
        return report.get("status", "INFRA" if report.get("infra") else "")
    answered = [one["status"] for one in report["exercises"] if one["status"] != "MISSING"]
    return answered[0] if answered else "MISSING"


def faults(reports: Sequence[dict[str, Any]], wanted: dict[str, str]) -> list[str]:
    """Return in words what is not as it should be."""
    seen = Counter(report["path"] for report in reports)
    found = [f"{name}: {seen[name]} reports" for name in wanted if seen[name] != 1]
    found += [f"{name}: not handed in" for name in seen if name not in wanted]
    for report in reports:
        status, right = got(report), wanted.get(report["path"])
        if right == "attack":
            good = status not in ("PASS", "INFRA", "MISSING")
        else:
            good = status == right
        if not good:
            found.append(f"{report['path']}: {status or report.get('error')}, wanted {right}")
    return found


class Watch(threading.Thread):
    """Samples the memory and processor time of processes, by name, until `done` is set."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.watched: dict[str, list[psutil.Process]] = {}
        self.samples: dict[str, list[float]] = {}
        self.cpu_s: dict[str, dict[int, float]] = {}
        self.done = threading.Event()

    def add(self, name: str, pid: int) -> None:
        """Watch another process by this name."""
        self.watched.setdefault(name, []).append(psutil.Process(pid))

    def run(self) -> None:
        while not self.done.wait(SAMPLE_S):
            for name, processes in list(self.watched.items()):
                for process in list(processes):
                    try:
                        with process.oneshot():
                            mb, times = process.memory_info().rss / 1e6, process.cpu_times()
                    except psutil.Error:
                        continue
                    self.samples.setdefault(name, []).append(mb)
                    own = times.user + times.system
                    self.cpu_s.setdefault(name, {})[process.pid] = own

    def memory(self, name: str) -> dict[str, float]:
        """Return the MB after a tenth of the time, in the middle, at the end, and the most."""
        found = self.samples[name]
        tenth = max(1, len(found) // 10)
        parts = {"first_tenth": found[:tenth], "last_tenth": found[-tenth:]}
        middle = found[len(found) // 2 :][:tenth]
        medians = {key: statistics.median(part) for key, part in parts.items()}
        return medians | {"middle": statistics.median(middle), "most": max(found)}


def started(*command: Any, log: Path) -> subprocess.Popen:
    """Start a Python process of a group of its own, which writes into a file."""
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-P", *map(str, command)],
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2"},
        )


def ended(process: subprocess.Popen) -> None:
    """End a process and its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def kept(part: Path) -> int:
    """Return how many reports the journal holds."""
    return part.read_bytes().count(b'{"key": ') if part.exists() else 0


def workers_below(nanny: subprocess.Popen) -> Iterator[psutil.Process]:
    """Yield the workers that a nanny has started."""
    for child in psutil.Process(nanny.pid).children(recursive=True):
        try:
            if "spawn_main" in " ".join(child.cmdline()):
                yield child
        except psutil.Error:
            continue


def soak(place: Path, count: int, workers: int, seed: int) -> dict[str, Any]:
    """Grade the class in `place`/in, and return what it took. Raises RuntimeError if it fails."""
    log, part = place / "log", place / "out/marks.json.part"
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{one.getsockname()[1]}"
    ours = ("--host", "127.0.0.1", "--port", address.rpartition(":")[2])
    ours += ("--dashboard-address", "127.0.0.1:0")
    scheduler = started("-m", "distributed.cli.dask_scheduler", *ours, log=log)
    theirs = ("--nthreads", 1, "--nworkers", workers, "--no-dashboard")
    theirs += ("--local-directory", place / "dask")
    nanny = started("-m", "distributed.cli.dask_worker", address, *theirs, log=log)
    command = ["-m", "tiled_matmul", "grade", "--teacher", place / "in", "--scheduler", address]
    command += ["--seed", seed]
    for name in ("json", "csv", "junit", "html"):
        command += [f"--{name}", place / f"out/marks.{name}"]
    watch, killed = Watch(), []
    client = None
    try:
        time.sleep(5)
        watch.add("scheduler", scheduler.pid)
        for each in workers_below(nanny):
            watch.add("workers", each.pid)
        watch.start()
        began = time.monotonic()
        client = started(*command, log=log)
        watch.add("client", client.pid)
        lost = 0
        while client.poll() is None:
            time.sleep(1)
            done = kept(part)
            if not killed and done > WORKER_DIES * count:
                victim = next(workers_below(nanny))
                victim.kill()
                killed.append("worker")
                time.sleep(5)
                for each in workers_below(nanny):
                    watch.add("workers", each.pid)
            if len(killed) == 1 and done > CLIENT_DIES * count:
                client.kill()
                client.wait()
                killed.append("client")
                lost = kept(part)
                client = started(*command, log=log)
                watch.add("client", client.pid)
        seconds = time.monotonic() - began
        if client.returncode:
            raise RuntimeError(f"the client ended with {client.returncode}: {log}")
    finally:
        watch.done.set()
        for process in (client, nanny, scheduler):
            if process is not None:
                ended(process)
    if killed != ["worker", "client"]:
        raise RuntimeError(f"only {killed} were killed: take a larger class")
    cpu = {name: sum(by.values()) for name, by in watch.cpu_s.items()}
    return {
        "seconds": round(seconds, 1),
        "per_second": round(count / seconds, 2),
        "killed": killed,
        "kept_when_the_client_was_killed": lost,
        "memory_mb": {name: rounded(watch.memory(name)) for name in sorted(watch.samples)},
        "cpu_ms_per_submission": rounded({n: 1e3 * cpu[n] / count for n in sorted(cpu)}, 3),
    }


def rounded(numbers: dict[str, float], digits: int = 1) -> dict[str, float]:
    return {name: round(number, digits) for name, number in numbers.items()}


def estimate(taken: dict[str, Any], workers: int) -> list[dict[str, float]]:
    """Return what more nodes should do: each core as a worker here, the client's time the limit."""
    each = taken["per_second"] / workers
    cpu = taken["cpu_ms_per_submission"]
    most = 1e3 / max(cpu["client"], cpu["scheduler"])
    rows = []
    for nodes in NODES:
        rate = min(nodes * CORES_OF_A_NODE * each, most)
        rows.append(
            {"nodes": nodes, "cores": nodes * CORES_OF_A_NODE, "per_second": round(rate, 1)}
        )
        rows[-1]["limit"] = "workers" if rate < most else "client or scheduler"
    return rows


def alike(place: Path, reports: Sequence[dict], some: int, seed: int) -> int:
    """Return how many of some submissions have other marks on this machine alone."""
    draw, shared = random.Random(seed), practice.Alike()
    chosen = draw.sample(list(reports), min(some, len(reports)))

    def again(report: dict) -> bool:
        name = report["path"]
        data = (place / "in" / name).read_bytes()
        if len(data) > reading.MAX_BYTES:
            return "error" in report
        return submission.graded(data, name, shared, seed=seed) == report

    with ThreadPoolExecutor(os.cpu_count()) as several:
        return len(chosen) - sum(several.map(again, chosen))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--count", type=int, default=10_000, help="submissions (10000)")
    parser.add_argument("--workers", type=int, default=2, help="workers of one thread (2)")
    parser.add_argument("--seed", type=int, default=1, help="of the class and its inputs (1)")
    parser.add_argument("--alike", type=int, default=500, help="graded again on one machine (500)")
    parser.add_argument("--folder", type=Path, help="where the class is kept (a temporary one)")
    chosen = parser.parse_args(arguments)
    if not pool.sandbox_works():
        parser.error("no sandbox can be made here: apt install bubblewrap")
    with tempfile.TemporaryDirectory() as temporary:
        place = chosen.folder or Path(temporary)
        for name in ("in", "out"):
            (place / name).mkdir(parents=True)
        os.environ["XDG_STATE_HOME"] = str(place / "state")
        wanted = draw_class(place / "in", chosen.count, chosen.seed)
        sizes = [path.stat().st_size for path in (place / "in").iterdir()]
        taken = soak(place, chosen.count, chosen.workers, chosen.seed)
        reports = json.loads((place / "out/marks.json").read_text())["submissions"]
        wrong = faults(reports, wanted)
        taken["written_mb"] = rounded(
            {path.suffix[1:]: path.stat().st_size / 1e6 for path in (place / "out").iterdir()}
        )
        others = alike(place, reports, chosen.alike, chosen.seed)
    print("\n".join(wrong[:20]))
    record = {
        "provenance": {
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "versions": installed(("distributed", "dask", "numba", "numpy", "torch", "triton")),
            "commit": commit(),
            "date": time.strftime("%Y-%m-%d"),
        },
        "submissions": chosen.count,
        "workers": chosen.workers,
        "seed": chosen.seed,
        "statuses": dict(Counter(got(report) or "unreadable" for report in reports)),
        "notebooks_mb": {"all": round(sum(sizes) / 1e6, 1), "largest": round(max(sizes) / 1e6, 1)},
        **taken,
        "reports_that_are_not_as_they_should_be": len(wrong),
        "graded_again_on_one_machine": chosen.alike,
        "of_those_with_other_reports": others,
        "estimate": estimate(taken, chosen.workers),
    }
    print(json.dumps(record, indent=1))
    if wrong or others:
        print(f"{len(wrong)} reports are wrong, {others} are others than here", file=sys.stderr)
        return 1
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(chosen.out, json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
