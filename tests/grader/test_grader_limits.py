"""What an answer may take: by far more than the course's own, and no more than that."""

import os
import random
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tiled_matmul.grader import folders, pool
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import COST, SLACK, Limits

ROOM = 3  # an answer may take so many times as long as ours
NAMES = [one.name for one in exercises()]
SAMPLE = 3
SEED = zlib.crc32("".join(one.text("answer.py") for one in folders.folders()).encode())
CHOSEN = (
    NAMES if os.environ.get("TILED_MATMUL_SEEDS") else random.Random(SEED).sample(NAMES, SAMPLE)
)
"""`make test-answers` looks at all, `make test` at some, which change with the exercises."""


@pytest.fixture(scope="module")
def worker():
    """A function that returns a running worker of a kind."""
    with ExitStack() as stack:
        started = {}

        def worker(kind):
            if kind not in started:
                started[kind] = stack.enter_context(pool.Worker(kind, Limits(), False))
            return started[kind]

        yield worker


def taken(process):
    """Return the seconds of a processor that a process and its children, which run, have taken."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(") ")[2].split()
            if process.pid in (int(path.parent.name), int(fields[1])):
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", CHOSEN)
def test_our_own_answer_takes_a_share_of_the_limit(name, worker):
    """An answer may take ROOM times as long as ours, on a processor that others share."""
    folder = folders.folder(name)
    one, running = folder.exercise, worker(folder.exercise.kind)
    before = taken(running.process)
    assert judge(one, folder.code("answer.py"), worker=running).status == "PASS"
    assert taken(running.process) - before <= one.in_all * pool.slowness() / ROOM, (
        "name limits=Limits(cost=…)"
    )
    assert one.limits.seconds <= 8


def test_what_a_worker_takes_is_seen():
    with pool.Worker("loops", Limits(), False) as worker:
        source = "for _ in range(5_000_000):\n    pass\nraise OSError"
        worker.ask({"source": source, "given": {}, "entry": "f"}, [], 5, 0)
        assert taken(worker.process) > 0.05


def test_a_notebook_ends_within_two_minutes_of_a_processor():
    chapters = {one.chapter for one in exercises()}
    most = {chapter: sum(one.in_all for one in exercises(chapter)) for chapter in chapters}
    assert max(most.values()) <= 120 and SLACK == 3
    page = (folders.ROOT / "teaching.md").read_text(encoding="utf-8")
    assert all(f"{5 + 10 * cost:g} s" in page for cost in COST.values())
    assert f"{max(most.values()):g} s" in page
