"""What each rank runs: `torchrun … -m tiled_matmul.many.worker JOB`.

JOB is a JSON file that `launch.run` wrote. Each rank checks that all agree, does the tasks one by
one, and writes its report, or its error, beside JOB.
"""

from __future__ import annotations

import ctypes
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
from torch import Tensor

from tiled_matmul.files import replace_text
from tiled_matmul.many.cuts import CUTS, Cut
from tiled_matmul.many.traffic import Traffic

DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl
ROWS = 64  # of a part of C that are checked


def main(path: Path) -> int:
    """Do a job's tasks on this rank. Returns the exit status."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    job = json.loads(path.read_text(encoding="utf-8"))
    rank = int(os.environ["RANK"])
    try:
        report = reported(job)
    except BaseException as error:
        words = traceback.format_exception_only(error)[-1].strip()
        replace_text(path.with_name(f"error{rank}.txt"), words)
        print(f"rank {rank}: {words}", file=sys.stderr, flush=True)
        # The others may wait for this rank: leave at once, without waiting for them.
        os._exit(1)
    replace_text(path.with_name(f"report{rank}.json"), json.dumps(report))
    return 0


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
        return do_check(task, device)
    from tiled_matmul.many import clock

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


def matrices(task: dict[str, Any], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return all of A and B: the same on every rank.

    With `whole`, their elements are -1, 0 and 1, so that sums of few of them are exact.
    """
    numbers = torch.Generator(device).manual_seed(task.get("seed", 0))
    dtype = getattr(torch, task["dtype"])
    shapes = (task["m"], task["k"]), (task["k"], task["n"])
    if task.get("whole"):
        made = (torch.randint(-1, 2, s, generator=numbers, device=device) for s in shapes)
    else:
        made = (torch.randn(s, generator=numbers, device=device) for s in shapes)
    a, b = (x.to(dtype) for x in made)
    return a, b


def own(cut: Cut, a: Tensor, b: Tensor) -> list[Tensor]:
    """Return this rank's parts of A and B, as memory of their own."""
    parts = cut.parts(a, b, rank=dist.get_rank(), count=dist.get_world_size())
    return [x.contiguous().clone() for x in parts]


def check(cut: Cut, c: Tensor, a: Tensor, b: Tensor, exact: bool) -> float:
    """Return how far this rank's part of C is from float64, over its largest element.

    Raises ValueError if a row is wrong: by more than roundings of the sums of all ranks.
    """
    rank, p = dist.get_rank(), dist.get_world_size()
    rows, columns = (torch.arange(size, device=a.device) for size in (a.shape[0], b.shape[1]))
    at = cut.parts(a, b, rows[:, None].expand(-1, b.shape[1]), rank=rank, count=p)[2]
    left = cut.parts(a, b, columns.expand(a.shape[0], -1), rank=rank, count=p)[2][0]
    if c.shape != at.shape:
        raise ValueError(f"rank {rank} has {tuple(c.shape)} of C, wanted {tuple(at.shape)}")
    some = torch.linspace(0, len(c) - 1, min(len(c), ROWS), device=a.device).long()
    wanted = a[at[some, 0]].double() @ b.double()[:, left]
    largest = wanted.abs().max().item()
    far = (c[some].double() - wanted).abs().max().item()
    most = 0 if exact else 2 * (p + 1) * torch.finfo(c.dtype).eps * largest
    if not far <= most:
        raise ValueError(f"rank {rank}'s part of C is wrong by {far:.3g} of {largest:.3g}")
    return far / largest if largest else 0.0


def do_check(task: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Run one cut, check the rank's part of C, and count what it received."""
    cut = CUTS[task["cut"]]
    a, b = matrices(task, device)
    parts = own(cut, a, b)
    with Traffic() as traffic:
        c = cut.run(*parts)
    if device.type == "cuda":
        torch.cuda.synchronize()
    far = check(cut, c, a, b, exact=bool(task.get("whole")))
    held = sum(x.numel() * x.element_size() for x in parts)
    return {"received": traffic.received, "calls": traffic.calls, "held": held, "far": far}


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
