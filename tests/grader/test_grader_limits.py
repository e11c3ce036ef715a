"""What an answer may take: by far more than the course's own, and no more than that."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tiled_matmul.grader import folders, pool
from tiled_matmul.grader.folders import exercises
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import COST, SLACK, Limits

ROOM = 5  # an answer may take so many times as long as ours
NAMES = [one.name for one in exercises()]


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
    """Return the seconds of a processor that a running process has taken."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", NAMES)
def test_our_own_answer_takes_a_fifth_at_most(name, worker):
    folder = folders.folder(name)
    one, running = folder.exercise, worker(folder.exercise.kind)
    before = taken(running.process)
    assert judge(one, folder.code("answer.py"), worker=running).status == "PASS"
    assert taken(running.process) - before <= one.in_all / ROOM, "name limits=Limits(cost=…)"
    assert one.limits.seconds <= 8


def test_a_notebook_ends_within_a_minute_and_a_half_of_a_processor():
    chapters = {one.chapter for one in exercises()}
    most = {chapter: sum(one.in_all for one in exercises(chapter)) for chapter in chapters}
    assert max(most.values()) <= 90 and SLACK == 3
    page = (folders.ROOT / "teaching.md").read_text(encoding="utf-8")
    assert all(f"{5 + 10 * cost:g} s" in page for cost in COST.values())
    assert f"{max(most.values()):g} s" in page


def test_a_clock_gives_more_time_where_processes_wait_for_a_processor(monkeypatch):
    monkeypatch.setattr(pool.os, "cpu_count", lambda: 2)
    for load, times in ((0.0, 1), (2.0, 1), (8.0, 4), (900.0, pool.MOST_WAITING)):
        monkeypatch.setattr(pool.os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert pool.slack() == SLACK * times
