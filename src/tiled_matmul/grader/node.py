"""What a worker of a Dask cluster runs: it grades one submission at a time, in this machine's
sandbox, and returns JSON.

A worker has to have the same course, exercises and versions as the client, and a sandbox.
"""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from functools import cache
from importlib import metadata
from typing import Any

from distributed import WorkerPlugin

from tiled_matmul import ROOT, __version__
from tiled_matmul.grader import pool, practice, submission

PACKAGES = ("numpy", "numba", "numba-cuda", "torch", "triton", "ipython", "distributed")
CODE = ("src/tiled_matmul/**/*.py", "exercises/source/**/*")
MOST_ALIKE = 3000  # verdicts that are remembered: answers that are the same are judged once


@cache
def identity() -> dict[str, str]:
    """Return what has to be equal on all machines: versions, and a digest of code and exercises."""
    digest = hashlib.sha256()
    for pattern in CODE:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    found = {"course": __version__, "code and exercises": digest.hexdigest()[:16]}
    found["Python"] = platform.python_version()
    for name in PACKAGES:
        try:
            # What follows a + says for which GPU it was built.
            found[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def faults(wanted: dict[str, str]) -> str:
    """Return in words why this machine may not grade what the client sends, "" if it may."""
    mine = identity()
    differ = [f"{x} {mine.get(x)}, not {wanted[x]}" for x in wanted if mine.get(x) != wanted[x]]
    if not _sandbox_works():
        differ.append("no sandbox can be made (apt install bubblewrap)")
    return "; ".join(differ)


@cache
def _sandbox_works() -> bool:
    return pool.sandbox_works()


def examined(wanted: bytes) -> bytes:
    """Return what `faults` says, as JSON, of what the client wants, as JSON."""
    return json.dumps(faults(json.loads(wanted))).encode()


class Guard(WorkerPlugin):
    """Keeps a worker that joins later from starting where it may not grade."""

    name = "tiled-matmul-guard"

    def __init__(self, wanted: bytes) -> None:
        self.wanted = wanted

    def setup(self, worker: Any) -> None:
        """End the worker and its nanny, and raise RuntimeError, if this machine may not grade."""
        if why := faults(json.loads(self.wanted)):
            reason = f"this worker may not grade: {why}"
            worker.loop.add_callback(worker.close, reason=reason, nanny=True)
            raise RuntimeError(reason)


_lock = threading.Lock()
_alike: tuple[str, practice.Alike] = "", practice.Alike()


def _of_grading(grading: str) -> practice.Alike:
    """Return the verdicts of this grading, which no other one may use: its seeds are its own."""
    global _alike
    with _lock:
        if _alike[0] != grading or len(_alike[1].verdicts) > MOST_ALIKE:
            _alike = grading, practice.Alike()
        return _alike[1]


def graded(
    name: str, data: bytes, seed: int | None, gpu: bool, wanted: bytes, grading: str
) -> bytes:
    """Return (this machine's name, the report on a submission) as JSON.

    `wanted` is what `faults` takes, as JSON; `grading` names the client's call of `grade`. The
    answers ran in a sandbox, and nowhere else. The report is null where this machine may not
    grade. Nothing is raised, as an exception would travel as a pickle.
    """
    report = None
    try:
        if not faults(json.loads(wanted)):
            pool.STOP.clear()
            report = submission.graded(data, name, _of_grading(grading), seed=seed, gpu=gpu)
    except BaseException as error:
        report = submission.failed(name, error)
    return json.dumps([platform.node(), report]).encode()
