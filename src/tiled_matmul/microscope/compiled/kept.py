"""Keep what compilers return in a folder, for other processes and later runs.

The environment variable TILED_MATMUL_COMPILED names the folder; without it, nothing is kept. The
tests and the validation of notebooks set it. An entry's key holds all that the result depends on:
the question, the sources of the kernels and of the code that compiles them, the versions of all
packages, NVIDIA's programs and the environment variables that compilers read. If one of them
changes, the entry is not used again. An entry that nobody has used for a week is deleted.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import functools
import gzip
import hashlib
import importlib.metadata
import os
import pickle
import pickletools
import platform
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT

FOLDER = "TILED_MATMUL_COMPILED"
HOME = ROOT / "src" / "tiled_matmul"
SOURCES = ("ladder", "kit", "machine", "microscope/compiled", "microscope/written.py")
VARIABLES = ("CUDA", "NUMBA", "TRITON")
WHICH_GPU = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")  # changes no code
UNUSED_S = 7 * 24 * 3600


def kept(
    asked: bytes, tools: Iterable[str], make: Callable[[], Any], folder: Path | None = None
) -> Any:
    """Return `make()`, or what an earlier call with the same question returned.

    `asked` describes the question; of the modules to which a pickle refers, the sources count too.
    `tools` are the paths of the programs that compile. Another process with the same question waits
    for the first. Exceptions, raised or returned, are not kept. A `folder` is used instead of the
    one that the variable names; where it cannot be made, nothing is kept.
    """
    own = folder is not None
    if not own and not os.environ.get(FOLDER):
        return make()
    folder = folder or Path(os.environ[FOLDER])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        if own:  # in a home that is not there or cannot be written
            return make()
        raise
    digest = hashlib.sha256(repr(circumstances(asked, tools)).encode()).hexdigest()
    entry = folder / f"{digest}.gz"
    with open(entry.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if entry.exists():
            os.utime(entry)
            return pickle.loads(gzip.decompress(entry.read_bytes()))
        made = make()
        if isinstance(made, BaseException):  # something is missing here, perhaps not for long
            return made
        part = entry.with_suffix(".part")
        part.write_bytes(gzip.compress(pickle.dumps(made), compresslevel=1))
        part.replace(entry)
    _forget_unused(folder)
    return made


def circumstances(asked: bytes, tools: Iterable[str]) -> dict[str, Any]:
    """Return all that a compiled kernel depends on."""
    files = {HOME / part for part in SOURCES if part.endswith(".py")}
    files |= {file for part in SOURCES for file in (HOME / part).rglob("*.py")}
    files |= _own_files(_strings(asked))
    states = [(tool, os.stat(tool)) for tool in tools]
    return {
        "asked": asked,
        "sources": {str(file): file.read_bytes() for file in sorted(files)},
        "packages": packages(),
        "tools": [(tool, state.st_size, state.st_mtime_ns) for tool, state in states],
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(VARIABLES) and name not in WHICH_GPU
        },
        "python": (sys.version, sys.executable, platform.machine()),
    }


def _strings(pickled: bytes) -> Iterator[str]:
    """Yield the strings in a pickle, and in those within it: some are names of modules."""
    try:
        for _, argument, _ in pickletools.genops(pickled):
            if isinstance(argument, str):
                yield argument
            elif isinstance(argument, bytes):
                yield from _strings(argument)
    except ValueError:  # not a pickle
        return


def _own_files(names: Iterable[str]) -> set[Path]:
    """Return the files of modules, and of what they import, that no installed package holds."""
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    todo, files = list(names), set()
    while todo:
        file = Path(getattr(sys.modules.get(todo.pop()), "__file__", None) or sys.executable)
        if file.suffix != ".py" or file in files or any(map(file.is_relative_to, installed)):
            continue
        files.add(file)
        if file.is_relative_to(HOME):  # what its kernels need is in SOURCES
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                todo += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return files


@functools.cache
def packages() -> list[tuple[str, str]]:
    """Return the name and version of every installed package."""
    return sorted((d.name, d.version) for d in importlib.metadata.distributions())


def _forget_unused(folder: Path) -> None:
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process deletes, too
            if file.stat().st_mtime < time.time() - UNUSED_S:
                file.unlink()
