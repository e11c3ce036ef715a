"""Start ranks with torchrun, wait for them, and return what they report; no process is left."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tiled_matmul.distributed import start
from tiled_matmul.distributed.cuts import CUTS, GPUS_ONLY
from tiled_matmul.kit.arguments import positive

WORKER = "tiled_matmul.distributed.worker"
# NVLink's multicast can put a host's GPUs out of service.
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
GRACE_S = 5  # from a request to end until it is enforced
TRIED_S = 120  # for a function of one's own
MOST_PRINTED = 3000  # bytes that an error shows
CUT_OFF = ("Connection closed by peer", "Connection reset by peer")


class RanksError(RuntimeError):
    """Ranks failed; the message has the words of each, or the end of what they printed."""


def run(
    tasks: Sequence[dict[str, Any]], ranks: int, *, device: str = "cpu", timeout_s: float = 60,
    most_s: float = 600, program: Sequence[str] = ("-m", WORKER),
    settings: Mapping[str, str] = {},
) -> list[list[dict[str, Any]]]:  # fmt: skip
    """Return each rank's reports of the tasks.

    `device` is "cpu" (gloo) or "cuda" (NCCL, a GPU for each rank). A collective that waits longer
    than `timeout_s` fails, and so does a run of more than `most_s`. `program` are Python's
    arguments for what the ranks run, `settings` variables of their environment. Raises ValueError
    for too few GPUs, and RanksError if a rank fails.
    """
    if device == "cuda":
        import torch

        if (there := torch.cuda.device_count()) < ranks:
            raise ValueError(f"{ranks} ranks need {ranks} GPUs, and there are {there}")
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.json")
        text = {"tasks": list(tasks), "device": device, "timeout_s": timeout_s}
        job.write_text(json.dumps(text), encoding="utf-8")
        printed, status = _torchrun([*program, str(job)], ranks, most_s, settings)
        reports = [job.with_name(f"report{rank}.json") for rank in range(ranks)]
        if status == 0 and all(report.exists() for report in reports):
            return [json.loads(report.read_text(encoding="utf-8")) for report in reports]
        raise RanksError(_words(job.parent, ranks, status, printed))


def tried(
    cut: str | Callable, m: int, n: int, k: int, ranks: int, *, like: str = "", dtype="float16"
) -> list[dict[str, Any]]:
    """Run a cut of C (M, N) with K products each on processes of this CPU; return their reports.

    `cut` is a name of `cuts.CUTS`, or a function like the one that `like` names, which may use
    `torch`, `dist` and `cuts`. Each rank's part of C is checked. Raises ValueError for an unknown
    name, and RanksError with the ranks' words if sizes do not divide or a part is wrong.
    """
    known = [name for name in CUTS if name not in GPUS_ONLY]
    name = like or (cut if isinstance(cut, str) else "")
    if name not in known:
        why = f"there is no cut {name!r}" if name else "`like` says which parts a function gets"
        raise ValueError(f"{why}; on a CPU there are {', '.join(known)}")
    for size, value in (("m", m), ("n", n), ("k", k), ("ranks", ranks)):
        positive(size, value)
    task = {"do": "check", "cut": name, "m": m, "n": n, "k": k, "dtype": dtype, "whole": True}
    if callable(cut):
        if not inspect.isfunction(cut) or cut.__name__ == "<lambda>":
            raise ValueError(f"a cut is a function that begins with def, got {cut!r}")
        source = textwrap.dedent(inspect.getsource(cut))
        task |= {"source": source, "function": cut.__name__}
    return [reports[0] for reports in run([task], ranks, most_s=TRIED_S)]


def _torchrun(
    arguments: Sequence[str], ranks: int, most_s: float, settings: Mapping[str, str]
) -> tuple[str, int | None]:
    """Return what was printed and the exit status, None if it had to be ended."""
    # As a file: a module of this package would first import torch.
    command = [sys.executable, "-P", start.__file__, "--standalone"]
    # This host's name need not lead anywhere.
    command += ["--local-addr", "127.0.0.1", "--nproc-per-node", str(ranks), *arguments]
    environment = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"} | os.environ
    environment |= {**settings, **NO_MULTICAST}
    environment[start.LAUNCHER] = str(os.getpid())
    with tempfile.TemporaryFile() as output:
        started = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            status = started.wait(most_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:  # also where this process is interrupted
            _end(started)
        output.seek(max(0, output.seek(0, os.SEEK_END) - MOST_PRINTED))
        return output.read().decode("utf-8", "replace"), status


def _end(started: subprocess.Popen) -> None:
    """End torchrun, which ends its ranks; if it does not, they end with it."""
    if started.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def _words(folder: Path, ranks: int, status: int | None, printed: str) -> str:
    """Return what went wrong, in the ranks' words."""
    errors = [folder / f"error{rank}.txt" for rank in range(ranks)]
    said = [
        f"rank {rank}: {error.read_text(encoding='utf-8')}"
        for rank, error in enumerate(errors)
        if error.exists()
    ]
    # A rank whose neighbour has ended says only that.
    causes = [words for words in said if not any(cut_off in words for cut_off in CUT_OFF)]
    if causes or said:
        return "\n".join(causes or said)
    ended = "they did not end in time" if status is None else f"torchrun ended with {status}"
    return f"{ended}, and no rank said why:\n{printed}"
