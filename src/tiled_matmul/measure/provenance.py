"""Where a number comes from: the machine, the versions, the date and the code's commit."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.languages import Language
from tiled_matmul.languages.language import package_versions
from tiled_matmul.machine import backend, device


def provenance(where: str, threads: int | None = None) -> dict[str, Any]:
    """Return the provenance of a measured number: machine, versions, date, commit.

    `where` is "gpu", or "cpu" with `threads` threads. The keys are those of a Record.
    """
    name, driver = machine(where, threads)
    return {
        "gpu": name,
        "driver": driver,
        "versions": versions(where),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def machine(where: str, threads: int | None) -> tuple[str, str]:
    """Return a record's `gpu` and `driver` for "gpu", or for "cpu" with `threads` threads."""
    if where == "gpu":
        import torch

        return torch.cuda.get_device_name(), device.driver_version()
    return f"CPU: {device.cpu_name()}, {threads} thread{'s' if threads != 1 else ''}", ""


def versions(where: str) -> dict[str, str]:
    """Return the versions that affect a time: Python, packages, and BLAS or CUDA.

    The packages are those that the course needs; `of_language` adds those of other languages.
    """
    packages = ["numpy", "numba"] + (["numba-cuda", "torch", "triton"] if where == "gpu" else [])
    if where == "gpu":
        import torch

        return installed(packages) | {"cuda": str(torch.version.cuda)}
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return installed(packages) | {pool["internal_api"]: str(pool["version"]) for pool in blas}


def of_language(origin: dict[str, Any], language: Language | None) -> dict[str, Any]:
    """Return a provenance with the versions of the measured rung's language; None has none."""
    more = language.versions() if language else {}
    return origin | {"versions": origin["versions"] | more}


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of the installed ones among `packages`."""
    return {"python": platform.python_version()} | package_versions(packages)


def this_process(packages: Iterable[str]) -> dict[str, Any]:
    """Return the gpu, driver, cpu and versions of the calling process, for a notebook's stamp.

    gpu and driver are "" if this process uses the simulators.
    """
    chosen = backend.select()
    return {
        "gpu": chosen.gpu.name if chosen.on_gpu else "",
        "driver": device.driver_version() if chosen.on_gpu else "",
        "cpu": f"{device.cpu_name()}, {device.cpu_threads()} threads",
        "versions": installed(packages),
    }


def of_counters(ncu: str) -> dict[str, Any]:
    """Return the provenance of counters; `ncu` is the path of Nsight Compute's executable."""
    output = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Version (\S+)", output)
    origin = provenance("gpu")
    return origin | {
        "compute_capability": "{}.{}".format(*backend.select().gpu.capability),
        "versions": origin["versions"] | {"ncu": version.group(1) if version else output},
    }


@functools.cache
def commit() -> str:
    """Return the code's commit: TILED_MATMUL_COMMIT if set, else git's, else "unknown".

    "-dirty" is appended if `src/` has uncommitted changes.
    """
    if os.environ.get("TILED_MATMUL_COMMIT"):
        return os.environ["TILED_MATMUL_COMMIT"]
    try:
        head = _git("rev-parse", "--short", "HEAD")
        return head + "-dirty" if _git("status", "--porcelain", "--", "src") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
