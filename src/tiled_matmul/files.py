"""Writing files so that nobody ever finds half of one."""

from __future__ import annotations

import os
from pathlib import Path


def replace_text(path: str | os.PathLike, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all. Raises OSError where that fails.

    A file that is there keeps its mode, and a link stays a link: what it points to is replaced.
    """
    path = Path(path).resolve()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
