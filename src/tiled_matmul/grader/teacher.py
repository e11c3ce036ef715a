"""Teacher's mode: grade a folder of untrusted notebooks.

Each entry of the folder is a submission: a notebook, or a learner's folder with notebooks in it.
An entry that cannot be graded gets a line in the report. Answers only run in a sandbox.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import re
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul.grader import cells, practice, reading, submission
from tiled_matmul.grader.journal import Journal
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.pool import STOP
from tiled_matmul.grader.reports import Reports

# A name shows letters, digits, marks and a few signs. Others, and some letters and marks, look like
# the / behind another learner's folder, or like nothing.
SIGNS = " ._-+,;'()[]{}&#@!=~$%^/\u2013\u2014\u2019"
LIKE_SLASHES = "\u0337\u0338\u2cc6\u2cc7\u3033\u3035\u30ce\u4e3f\uff89"
# Unicode's default-ignorable letters and marks: nothing of them is seen.
IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
OVERLAY = 1  # the combining class of what is drawn over a letter
MAX_ENTRIES = 20_000
WAIT_S = 0.5
MAX_DEPTH = 20  # of folders in a submission: deeper ones are not searched

# What Jupyter, editors and systems keep beside a learner's files, besides hidden ones.
KEPT_FOLDERS = ("__MACOSX", "__pycache__", "@eaDir", "$RECYCLE.BIN", "lost+found")
KEPT_FILES = re.compile(
    r"~\$.*|.*~|#.*#|Thumbs\.db|desktop\.ini|.*\.ipynb\.(?:bak|orig|old|tmp|sw[nop]|part)",
    re.IGNORECASE | re.DOTALL,
)
MAX_SKIPPED = 100  # of one learner's folder that are named


def is_kept(name: str, folder: bool = False) -> bool:
    """Is it a file or folder that a program keeps for itself, such as `.ipynb_checkpoints`?"""
    if name.startswith("."):
        return True
    return name in KEPT_FOLDERS if folder else KEPT_FILES.fullmatch(name) is not None


def submissions(
    folder: Path, on_skip: Callable[[Path], None] = lambda path: None
) -> Iterator[tuple[Path, str | None]]:
    """Yield (path, None) for each notebook, and (path, reason) for any other entry.

    Links are not followed: they may lead to another learner's files. What a program has left there
    for itself is no submission, at any depth; `on_skip` is called with its path. Raises ValueError
    for a folder that is empty or not there.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    entries = sorted(folder.iterdir())
    if not entries:
        raise ValueError(f"{folder} is empty")
    for entry in entries:
        if is_kept(entry.name, entry.is_dir()):
            on_skip(entry)
        elif entry.is_symlink():
            yield entry, sentence("submission: link")
        elif entry.is_dir():
            yield from _in_folder(entry, on_skip)
        elif entry.suffix.lower() != ".ipynb":
            yield entry, sentence("submission: not a notebook")
        else:
            yield entry, None


def _in_folder(folder: Path, on_skip: Callable[[Path], None]) -> Iterator[tuple[Path, str | None]]:
    count, skipped, deep = 0, 0, False
    for place, inner, names in os.walk(folder):
        kept = [name for name in inner if is_kept(name, folder=True)]
        kept += [name for name in names if is_kept(name)]
        for name in sorted(kept)[: MAX_SKIPPED - skipped]:
            on_skip(Path(place, name))
            skipped += 1
        inner[:] = sorted({*inner}.difference(kept))
        if inner and len(Path(place).relative_to(folder).parts) >= MAX_DEPTH:
            inner.clear()  # os.walk calls itself for each level
            deep = True
        for name in sorted({*names}.difference(kept)):
            path = Path(place, name)
            if path.suffix.lower() != ".ipynb":
                continue
            count += 1
            if count > MAX_ENTRIES:
                yield folder, sentence("submission: too many", most=MAX_ENTRIES)
                return
            # os.path's answer is False where Path's is an error, in a folder that may not be read.
            yield path, sentence("submission: link") if os.path.islink(path) else None
    if deep:
        yield folder, sentence("submission: too deep", most=MAX_DEPTH)
    elif not count:
        yield folder, sentence("submission: no notebook")


def shown(path: Path, folder: Path) -> str:
    """Return a submission's path below the folder, as printable text that no other one has.

    What could be taken for something else, several blanks among it, is "?"; such a name ends with
    a digest of its bytes.
    """
    raw = os.fsencode(path.relative_to(folder))
    name = raw.decode("utf-8", "backslashreplace")
    text = cells.printable("".join(one if _is_plain(one) else "?" for one in name))
    text = re.sub(r"(?<= ) |^ | $", "?", text)
    return text if text == name else f"{text} [{hashlib.sha256(raw).hexdigest()[:8]}]"


def _is_plain(character: str) -> bool:
    """May it stand in a name, where nothing may look like a folder that it is not in?"""
    if character in SIGNS:
        return True
    category = unicodedata.category(character)
    if category[0] not in "LNM" or category == "Me" or character in LIKE_SLASHES:
        return False
    return unicodedata.combining(character) != OVERLAY and not IGNORED.match(character)


@dataclass(frozen=True)
class Work:
    """A submission that has to be graded: its number in the folder, name, bytes and key."""

    number: int
    name: str
    data: bytes
    key: str


# Takes what has to be graded, one at a time as there is room, and yields (work, report).
Grader = Callable[[Iterator[Work]], Iterator[tuple[Work, dict]]]


def grade(
    folder: Path,
    *,
    jobs: int,
    seed: int | None = None,
    gpu: bool = False,
    journal: Journal | None = None,
    on_progress: Callable[[int, int, str], None] = lambda done, total, name: None,
    on_skip: Callable[[str], None] = lambda name: None,
    by: Grader | None = None,
) -> Reports:
    """Return a report for each submission of a folder, in the order of their names.

    `on_skip` is called with the name of each file or folder that is no submission, see `is_kept`.
    `jobs` are graded at a time on this machine, unless `by` says who grades. Finished reports are
    kept in `journal`, so that a later call can go on where this one ended. At an exception, Ctrl-C
    too, what is in flight is dropped.
    """
    entries = list(submissions(folder, lambda path: on_skip(shown(path, folder))))
    if not entries:
        raise ValueError(f"{folder}: {sentence('submission: none')}")
    kept = journal if journal is not None else Journal.temporary()
    found: list[dict | str] = [""] * len(entries)
    finished = 0

    def settle(number: int, name: str, report: dict | str) -> None:
        nonlocal finished
        found[number] = report
        finished += 1
        on_progress(finished, len(entries), name)

    def work() -> Iterator[Work]:
        """Yield what has to be graded, and settle everything else."""
        for number, (path, why) in enumerate(entries):
            name = shown(path, folder)
            try:
                if why is not None:
                    raise reading.Unreadable(why)
                data = reading.taken(path, folder)
                key = submission.key(data, name, seed, gpu)
            except reading.Unreadable as error:
                settle(number, name, submission.refused(name, str(error)))
            except Exception as error:
                settle(number, name, submission.failed(name, error))
            else:
                if key in kept.kept:
                    settle(number, name, key)
                else:
                    yield Work(number, name, data, key)

    if by is None:
        # A few submissions: several answers of each at a time.
        options = {"seed": seed, "gpu": gpu, "jobs": max(1, jobs // len(entries))}
        by = partial(_here, jobs, options)
    with contextlib.closing(by(work())) as outcomes:
        for one, report in outcomes:
            if submission.is_infra(report):
                settle(one.number, one.name, report)
            else:
                kept.keep(one.key, report)
                settle(one.number, one.name, one.key)
    return Reports(found, kept)


def _here(jobs: int, options: dict[str, Any], work: Iterator[Work]) -> Iterator[tuple[Work, dict]]:
    """Grade on this machine, `jobs` at a time."""
    STOP.clear()
    alike = practice.Alike()
    flying: dict[Future, Work] = {}
    done: queue.SimpleQueue[Future] = queue.SimpleQueue()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while True:
                while len(flying) < jobs and (one := next(work, None)) is not None:
                    task = pool.submit(submission.graded, one.data, one.name, alike, **options)
                    flying[task] = one
                    task.add_done_callback(done.put)
                if not flying:
                    return
                with contextlib.suppress(queue.Empty):
                    # Not for ever: Ctrl-C in the moment before a wait begins does not end it.
                    task = done.get(timeout=WAIT_S)
                    yield flying.pop(task), task.result()
        except BaseException:
            STOP.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
