"""What cuobjdump says of a cubin: registers, stack, and how many instructions of each kind.

Imported by `making.py` beside it, which a language's own Python runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

# Whole names of what multiplies in tensor cores, the others up to the first dot.
WHOLE = ("HGMMA", "HMMA")
COUNTED = (
    *WHOLE,
    "FFMA",
    "FMUL",
    "FADD",
    "UTMALDG",
    "UTMASTG",
    "LDGSTS",
    "LDG",
    "STG",
    "LDL",
    "STL",
)
LINE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.M)
PLACES = ("nvidia/cu13/bin", "nvidia/cuda_cuobjdump/bin", "triton/backends/nvidia/bin")


def usage(cubin: str | os.PathLike) -> dict:
    """Return "registers", "stack" (bytes) and "instructions" (counts by name) of a cubin.

    The cubin has one kernel. Raises RuntimeError if there is no cuobjdump, or if it fails.
    """
    resources = _dump("-res-usage", cubin)
    found = dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", resources))
    if "REG" not in found:
        raise RuntimeError(f"cuobjdump names no registers: {resources[-300:]}")
    return {
        "registers": int(found["REG"]),
        "stack": int(found.get("STACK", 0)) + int(found.get("LOCAL", 0)),
        "instructions": counted(_dump("-sass", cubin)),
    }


def counted(sass: str) -> dict[str, int]:
    """Return how often each instruction of COUNTED is in a listing, by name in order."""
    counts = Counter()
    for name in LINE.findall(sass):
        first = name.partition(".")[0]
        if first in COUNTED:
            counts[name if first in WHOLE else first] += 1
    return dict(sorted(counts.items()))


def _dump(option: str, cubin: str | os.PathLike) -> str:
    tool = cuobjdump()
    path = os.pathsep.join([str(tool.parent), os.environ.get("PATH", "")])
    command = [str(tool), option, str(cubin)]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": path})
    if ran.returncode:
        raise RuntimeError(f"cuobjdump failed: {(ran.stderr or ran.stdout)[-300:]}")
    return ran.stdout


def cuobjdump() -> Path:
    """Return the environment's cuobjdump, or else that on PATH. Raises RuntimeError for none."""
    packages = Path(sysconfig.get_path("purelib"))
    for place in PLACES:
        if (tool := packages / place / "cuobjdump").is_file():
            return tool
    if found := shutil.which("cuobjdump"):
        return Path(found)
    raise RuntimeError("there is no cuobjdump: the lock should name the package that brings it")
