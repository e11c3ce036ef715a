"""One submission of a class: its bytes, the key of its report, and the report itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from tiled_matmul.grader import practice
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.messages import sentence


def key(data: bytes, name: str, seed: int | None, gpu: bool) -> str:
    """Return a digest that identifies a submission and the way it is graded."""
    digest = hashlib.sha256(f"{name}\0{_edition()}\0{seed}\0{gpu}\0".encode())
    digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()


def _edition() -> str:
    return ",".join(f"{one.name}:{one.version}:{one.points}" for one in exercises())


def graded(
    data: bytes,
    name: str,
    alike: practice.Alike,
    *,
    seed: int | None = None,
    gpu: bool = False,
    jobs: int = 1,
) -> dict[str, Any]:
    """Return the report on a submission called `name`. Its answers run in a sandbox.

    It never raises an Exception: a failure of the grader is a report with "infra".
    """
    try:
        with os.fdopen(os.memfd_create("submission"), "wb") as mine:  # gone with this process
            mine.write(data)
            mine.flush()
            here = f"/proc/self/fd/{mine.fileno()}"
            report = practice.grade(here, True, seed, gpu, sanitize=gpu, jobs=jobs, alike=alike)
    except Exception as error:  # the grader's own fault is never a learner's zero
        return failed(name, error)
    return report | {"path": name}


def failed(name: str, error: BaseException) -> dict[str, Any]:
    """Return the report on a submission that the grader failed on."""
    kind, reason = type(error).__name__, str(error)[:200]
    failure = sentence("infra: grader", kind=kind, reason=reason)
    return refused(name, failure) | {"infra": True}


def refused(name: str, why: str) -> dict[str, Any]:
    """Return the report on a submission that cannot be graded, with the reason."""
    return {"path": name, "exercises": [], "error": why}


def is_infra(report: Mapping[str, Any]) -> bool:
    """Did the grader fail on a submission, or on one of its exercises?"""
    return bool(report.get("infra")) or any(one["status"] == "INFRA" for one in report["exercises"])
