"""What each rank runs: `torchrun … -m tiled_matmul.distributed.worker JOB`.

JOB is a JSON file that `launch.run` wrote. Each rank checks that all agree, does the tasks one by
one, and writes its report, or its error, beside JOB.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tiled_matmul.distributed import tasks
from tiled_matmul.distributed.pending import SOURCE
from tiled_matmul.distributed.start import TORCHRUN, end_with
from tiled_matmul.files import replace_text


def main(path: Path) -> int:
    """Do a job's tasks on this rank. Returns the exit status."""
    end_with(TORCHRUN, signal.SIGKILL)
    job = json.loads(path.read_text(encoding="utf-8"))
    rank = int(os.environ["RANK"])
    try:
        report = reported(job)
    except BaseException as error:
        words = traceback.format_exception_only(error)[-1].strip() + line_of(error)
        replace_text(path.with_name(f"error{rank}.txt"), words)
        print(f"rank {rank}: {words}", file=sys.stderr, flush=True)
        # The others may wait for this rank: leave at once, without waiting for them.
        os._exit(1)
    replace_text(path.with_name(f"report{rank}.json"), json.dumps(report))
    return 0


def line_of(error: BaseException) -> str:
    """Return the line of a cut that came as text in which an error was raised, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if frame.filename == SOURCE]
    return f", in `{lines[-1]}`" if lines else ""


def reported(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the reports of the tasks. Raises ValueError where ranks do not agree."""
    device = device_of(job["device"])
    backend = "nccl" if device.type == "cuda" else "gloo"
    options = {"device_id": device} if device.type == "cuda" else {}
    timeout = timedelta(seconds=job["timeout_s"])
    dist.init_process_group(backend, timeout=timeout, **options)
    try:
        agree({"versions": versions(), "tasks": job["tasks"]})
        return [done(task, device) for task in job["tasks"]]
    finally:
        if device.type == "cpu":
            dist.destroy_process_group()


def done(task: dict[str, Any], device: torch.device) -> Any:
    """Do a task, and return its report."""
    if task["do"] == "check":
        return tasks.do_check(task, device)
    from tiled_matmul.distributed import clock

    return getattr(clock, f"do_{task['do']}")(task, device)


def device_of(kind: str) -> torch.device:
    """Return this rank's device, and make it the current one."""
    if kind == "cpu":
        torch.set_num_threads(1)
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device


def versions() -> dict[str, str]:
    """Return what must be the same on all ranks: Python, torch and this course's code."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(path.read_bytes())
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "code": code.hexdigest()[:12],
    }


def agree(mine: dict[str, Any]) -> None:
    """Raise ValueError, which quotes both, on every rank if one has other facts than rank 0."""
    found: list = [None] * dist.get_world_size()
    dist.all_gather_object(found, mine)
    for rank, theirs in enumerate(found):
        for name, value in found[0].items():
            if theirs[name] != value:
                raise ValueError(
                    f"rank {rank} has {name} {theirs[name]}, and rank 0 has {value}: all ranks "
                    "must have the same"
                )


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
