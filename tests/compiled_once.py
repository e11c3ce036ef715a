"""What compilers make for tests is kept in `.pytest_cache`, for other workers and later runs.

An entry's key holds all that it depends on: what is asked for, the sources of the kernels, of the
code that compiles them and of the tests, the versions of all packages, NVIDIA's programs and the
environment variables that compilers read. If one of them changes, the entry is not used again.
"""

import fcntl
import functools
import gzip
import hashlib
import importlib.metadata
import os
import pickle
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.microscope.compiled import cuda

ROOMS = ("ladder", "kit", "machine", "microscope/compiled")
VARIABLES = ("CUDA", "NUMBA", "TRITON", "TILED_MATMUL")
UNUSED_S = 7 * 24 * 3600


def kept(folder: Path, asked: bytes, make: Callable[[], Any]) -> Any:
    """Return what `make()` returns, from `folder` where an equal call of this function left it.

    `asked` are the inputs of `make` that the key does not hold by itself. Another worker that wants
    the same meanwhile waits. An exception passes through and is not kept.
    """
    digest = hashlib.sha256(repr(circumstances()).encode())
    digest.update(asked)
    entry = folder / f"{digest.hexdigest()}.gz"
    with open(entry.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if entry.exists():
            os.utime(entry)
            return pickle.loads(gzip.decompress(entry.read_bytes()))
        made = make()
        part = entry.with_suffix(".part")
        part.write_bytes(gzip.compress(pickle.dumps(made), compresslevel=1))
        part.replace(entry)
    return made


def circumstances() -> dict[str, Any]:
    """Return all that a compiled kernel depends on, except for what it is compiled of and for."""
    home = ROOT / "src" / "tiled_matmul"
    files = [home / "microscope" / "written.py", *(ROOT / "tests").glob("*.py")]
    files += [file for room in ROOMS for file in (home / room).rglob("*.py")]
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[0]
    if test:
        files.append(ROOT / test)
    return {
        "sources": {str(file): file.read_bytes() for file in sorted(files)},
        "packages": packages(),
        "tools": {tool: tool_stamps(tool) for tool in ("cuobjdump", "nvdisasm", "ptxas")},
        "variables": {k: v for k, v in sorted(os.environ.items()) if k.startswith(VARIABLES)},
        "python": (sys.version, sys.executable, platform.machine()),
    }


@functools.cache
def packages() -> list[tuple[str, str]]:
    return sorted((d.name, d.version) for d in importlib.metadata.distributions())


def tool_stamps(name: str) -> list[tuple]:
    try:
        places = cuda._tools(name)
    except cuda.NoCompiler:
        return []
    states = [(place, os.stat(place)) for place in places]
    return [(place, state.st_size, state.st_mtime_ns) for place, state in states]


def forget_unused(folder: Path) -> None:
    """Delete entries that no run has used for a week."""
    for file in folder.iterdir():
        if file.stat().st_mtime < time.time() - UNUSED_S:
            file.unlink(missing_ok=True)
