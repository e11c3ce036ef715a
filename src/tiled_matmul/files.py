"""Read files, with errors that name the file, and replace files atomically."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

RUNG = re.compile(r"ch\d\d_(?:\d+_)?(\w+)\.py")  # ch04_1_cuda_naive.py


def read_json(path: str | os.PathLike, **options: Any) -> Any:
    """Return the content of a JSON file; `options` are those of `json.loads`.

    Raises ValueError, which names the file, if it cannot be read or is not JSON.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    try:
        return json.loads(text, **options)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error


def replace_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Write `content` to `path`, as `replaced` does."""
    with replaced(path) as file:
        file.buffer.write(content)


def replace_text(path: str | os.PathLike, text: str) -> None:
    """Write `text` to `path`, as `replaced` does."""
    with replaced(path) as file:
        file.write(text)


@contextlib.contextmanager
def replaced(path: str | os.PathLike) -> Iterator[TextIO]:
    """Yield a file that becomes `path` at the end, in UTF-8: completely or not at all.

    An existing file keeps its mode. If `path` is a link, the file that it points to is replaced.
    Raises OSError if that fails, and for a `path` that is there and no regular file, such as a
    device.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a regular file, and is not replaced by one")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load_as(path: str | os.PathLike, parse: Callable[[Any], Any], content: str) -> Any:
    """Return `parse(content of a JSON file)`.

    `content` names in words what the file should hold. Raises ValueError, which names the file, if
    it cannot be read, or if `parse` finds a value missing, of another type or wrong.
    """
    path = Path(path)
    stored = read_json(path)
    try:
        return parse(stored)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise ValueError(f"{path} is not a file of {content}: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def rung_files(folder: Path) -> dict[str, Path]:
    """Return {"cuda_naive": path of ch04_1_cuda_naive.py} for a folder of rungs, in their order."""
    named = ((RUNG.fullmatch(path.name), path) for path in sorted(folder.glob("ch*.py")))
    return {match[1]: path for match, path in named if match}
