"""Read a notebook of unknown contents, and keep of it only what is graded.

As objects, 10 MB of JSON can take 300 MB. So a process of its own reads large files, with a limit
on its memory: `python -I -S reading.py < NOTEBOOK`. It imports nothing of the course.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

MAX_BYTES = 10 << 20
MAX_CELLS = 2000
MAX_TEXT = 1 << 20  # bytes of all cells together, without outputs
SMALL = 256 << 10  # bytes of a file that this process reads itself
MAX_MEMORY = 1 << 30
MAX_SECONDS = 20
UNREADABLE = 3  # the exit status for a file that is no notebook


class Unreadable(ValueError):
    """The file is not an exercise notebook. The message, one line, says what it is instead."""


def taken(path: Path, below: Path) -> bytes:
    """Return the bytes of a notebook in the folder `below`, at most MAX_BYTES.

    The folder is its learner's, who may change it at any moment: no link is followed, and what the
    file has become since counts for nothing. Raises Unreadable as `opened`.
    """
    *folders, name = path.relative_to(below).parts
    held = [os.open(below, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        for folder in folders:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            held.append(os.open(folder, flags, dir_fd=held[-1]))
        inside = functools.partial(_no_wait, dir_fd=held[-1])
        with opened(name, lambda path, flags: inside(path, flags | os.O_NOFOLLOW)) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or type(error).__name__}") from None
    finally:
        for one in held:
            os.close(one)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"more than {MAX_BYTES >> 20} MB; at most {MAX_BYTES >> 20} MB are read")
    return data


def opened(path: str | os.PathLike, opener: Callable | None = None) -> BinaryIO:
    """Open a notebook. Raises Unreadable for a special file or one that is too large."""
    try:
        file = open(path, "rb", opener=opener or _no_wait)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or type(error).__name__}") from None
    state = os.fstat(file.fileno())
    if stat.S_ISREG(state.st_mode) and state.st_size <= MAX_BYTES:
        return file
    file.close()
    if not stat.S_ISREG(state.st_mode):
        raise Unreadable("not a notebook: it is not a regular file")
    size = f"{state.st_size / (1 << 20):,.0f} MB"
    raise Unreadable(f"{size}; at most {MAX_BYTES >> 20} MB are read")


def _no_wait(path: str, flags: int, dir_fd: int | None = None) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), dir_fd=dir_fd)


def notebook(path: str | os.PathLike) -> dict[str, Any]:
    """Return a notebook with what is graded: kinds, ids and sources of cells, and our metadata.

    What is in the wrong place has the wrong type here too. Raises Unreadable.
    """
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size <= SMALL:
            return reduced(file.read(SMALL))
        command = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
        done = subprocess.run(command, stdin=file, capture_output=True, start_new_session=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if done.returncode == UNREADABLE:
        raise Unreadable(done.stdout.decode())
    if done.returncode == -signal.SIGXCPU:
        raise Unreadable(f"not read within {MAX_SECONDS} s")
    raise RuntimeError(f"the reader ended with {done.returncode}: {done.stderr[-200:]!r}")


def reduced(raw: bytes) -> dict[str, Any]:
    """Return what of a notebook's bytes is graded. Raises Unreadable."""
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError):
        raise Unreadable("not a notebook: it is not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise Unreadable("not a notebook: it has no list of cells")
    if len(data["cells"]) > MAX_CELLS:
        raise Unreadable(f"{len(data['cells']):,} cells; at most {MAX_CELLS:,} are read")
    kept = {"cells": [_cell(cell) for cell in data["cells"]], "metadata": {}}
    metadata = data.get("metadata")
    mine = metadata.get("tiled_matmul") if isinstance(metadata, dict) else None
    if isinstance(mine, dict):
        plain = {name: x for name, x in mine.items() if isinstance(x, str | int | float)}
        kept["metadata"]["tiled_matmul"] = plain
    if len(json.dumps(kept, ensure_ascii=False).encode("utf-8", "replace")) > MAX_TEXT:
        raise Unreadable(f"more than {MAX_TEXT >> 20} MB of text in its cells")
    return kept


def _cell(cell: Any) -> Any:
    if not isinstance(cell, dict):
        return _empty(cell)
    source = cell.get("source", "")
    if isinstance(source, list):
        texts = all(isinstance(line, str) for line in source)
        source = "".join(source) if texts else None
    plain = {name: cell[name] for name in ("cell_type", "id") if isinstance(cell.get(name), str)}
    return plain | {"source": source if isinstance(source, str) else None}


def _empty(value: Any) -> Any:
    """Return an empty value of the same type of JSON."""
    return None if value is None else type(value)()


def main() -> int:
    """Write the notebook on standard input as it is reduced, or why it is unreadable."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 1))
    try:
        print(json.dumps(reduced(sys.stdin.buffer.read(MAX_BYTES))), end="")
    except Unreadable as error:
        print(error, end="")
        return UNREADABLE
    except MemoryError:
        print(f"reading it takes more than {MAX_MEMORY >> 20} MB of memory", end="")
        return UNREADABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
