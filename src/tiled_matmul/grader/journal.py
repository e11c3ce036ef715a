"""The teacher's journal: finished reports, so that a grading goes on where it ended.

Each line is an HMAC and the text that it vouches for, a key with its report. The secret lies in
the user's state folder, so a line that anyone else wrote does not count.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import grp
import hmac
import json
import os
import pwd
import secrets
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from tiled_matmul.grader.practice import state_file

SECRET_BYTES = 32
FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """The reports kept in a file: `kept` has them by key. A context, which removes an empty file.

    `ignored` counts the lines without this user's HMAC. Only the places of reports are in memory.
    Raises ValueError where somebody else could write the file, its folder or the secret: learners'
    files lie in `submissions`.
    """

    def __init__(self, path: Path, submissions: Path) -> None:
        must_lie_outside(path, submissions)
        _must_be_own(path.parent, os.lstat(path.parent))
        secret = _secret(submissions)
        file = os.fdopen(_opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise ValueError(
                f"{path}: another grading writes it right now. Wait for its end, or name another "
                "file"
            ) from None
        except OSError:  # a file system without locks
            pass
        self._begin(path, file, secret)

    @classmethod
    def temporary(cls) -> Journal:
        """Return a journal whose file has no name, and ends with this object."""
        journal = cls.__new__(cls)
        journal._begin(None, tempfile.TemporaryFile("a+b"), secrets.token_bytes(SECRET_BYTES))
        return journal

    def _begin(self, path: Path | None, file: BinaryIO, secret: bytes) -> None:
        self.path, self.file, self.secret = path, file, secret
        self.lock, self.ignored = threading.Lock(), 0
        self.kept = Kept(self)
        end = 0
        for line in file:
            start, end = end, end + len(line)
            code, _, text = line.strip().partition(b" ")
            if hmac.compare_digest(code, self.code(text)):
                self.kept.places[json.loads(text)["key"]] = start, len(line)
            elif code:
                self.ignored += 1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()
        if self.path is not None and not self.kept and not self.ignored:
            self.path.unlink(missing_ok=True)

    def code(self, text: bytes) -> bytes:
        """Return the HMAC of a line's text, in hexadecimal."""
        return hmac.new(self.secret, text, "sha256").hexdigest().encode()

    def keep(self, key: str, report: dict) -> None:
        """Add a report, unless it is kept already."""
        with self.lock:
            if key in self.kept:
                return
            text = json.dumps({"key": key, "report": report}).encode()
            # The line before may have been cut short.
            line = b"\n" + self.code(text) + b" " + text
            start = os.fstat(self.file.fileno()).st_size
            self.file.write(line)
            self.file.flush()
            self.kept.places[key] = start, len(line)


class Kept(Mapping):
    """A journal's reports by their keys, each read from the file when it is asked for."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.places = journal, {}

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __contains__(self, key: object) -> bool:
        return key in self.places

    def __getitem__(self, key: str) -> dict:
        """Return a report. Raises ValueError where the file has been changed since."""
        start, length = self.places[key]
        line = os.pread(self.journal.file.fileno(), length, start)
        code, _, text = line.strip().partition(b" ")
        if not hmac.compare_digest(code, self.journal.code(text)):
            raise ValueError(f"{self.journal.path} was changed while it was in use")
        return json.loads(text)["report"]


def must_lie_outside(path: Path, submissions: Path) -> None:
    """Raise ValueError for a file in the folder of submissions, or behind a link into it."""
    folders = os.path.realpath(submissions), os.path.abspath(submissions)
    parent = Path(os.path.realpath(path.parent))
    places = Path(os.path.realpath(path)), parent / path.name, Path(os.path.abspath(path))
    if any(place.is_relative_to(folder) for place in places for folder in folders):
        raise ValueError(f"{path} lies in {submissions}, among learners' files: name another place")


def _must_be_own(path: Path, state: os.stat_result) -> None:
    if why := _fault(state):
        raise ValueError(f"{path} {why}: the journal has to lie in a folder of your own")


def _fault(state: os.stat_result) -> str:
    """Return in words why a file or folder is not this user's alone, "" if it is."""
    if stat.S_ISLNK(state.st_mode):
        return "is a link"
    if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
        return "is not a regular file"
    if state.st_uid != os.geteuid():
        return f"belongs to user {state.st_uid}, not to you"
    if state.st_mode & stat.S_IWOTH:
        return "can be written by everyone"
    if state.st_mode & stat.S_IWGRP and not _is_private(state.st_gid):
        return "can be written by its group"
    return ""


def _is_private(group: int) -> bool:
    """Is this the group that many systems make for each user, with nobody else in it?"""
    try:
        entry, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return entry.gr_name == user and not set(entry.gr_mem) - {user}


def _opened(path: Path, flags: int) -> int:
    """Open a file of this user's own; raise ValueError for any other."""
    try:
        fd = os.open(path, flags | FLAGS, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path} is a link: the journal has to be a file") from None
        raise
    try:
        _must_be_own(path, os.fstat(fd))
    except ValueError:
        os.close(fd)
        raise
    return fd


def _secret(submissions: Path) -> bytes:
    """Return the secret of this user's journals; the first call makes it."""
    path = state_file().with_name("journal.key")
    must_lie_outside(path, submissions)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        _must_be_own(path.parent, path.parent.stat())
        with os.fdopen(_opened(path, os.O_RDONLY), "rb") as file:
            mode, secret = os.fstat(file.fileno()).st_mode, file.read(SECRET_BYTES + 1)
    except OSError as error:
        raise ValueError(
            f"the journal's secret cannot be kept: {error}. Set XDG_STATE_HOME to a folder of yours"
        ) from None
    if mode & 0o077 or len(secret) != SECRET_BYTES:
        why = "others may read it" if mode & 0o077 else "it is damaged"
        raise ValueError(
            f"{path} is the secret of your journals, and {why}. Remove it for a new one; what "
            "older journals hold is then graded again"
        )
    return secret


def _make(path: Path) -> None:
    """Write a new secret, completely or not at all; one that another process made stays."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(fd)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
