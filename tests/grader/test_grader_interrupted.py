"""`grade --teacher` ended from outside: what is finished is kept, and the same command goes on."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tiled_matmul.__main__ import main
from tiled_matmul.grader import forks, pool, starters, submission, teacher

pytestmark = pytest.mark.skipif(not pool.sandbox_works(), reason="bubblewrap makes no sandbox here")
(SOLVED,) = [path for path in starters.solutions() if path.name.startswith("01")]
ENDLESS = "def loops(a, b, c):\n    while True:\n        pass\n"


@pytest.fixture
def place(tmp_path):
    """A folder with two submissions: a is graded at once, and b takes seconds."""
    for name in ("in", "out", "tmp"):
        (tmp_path / name).mkdir()
    data = json.loads(SOLVED.read_text(encoding="utf-8"))
    (tmp_path / "in/a.ipynb").write_text(json.dumps(data))
    for cell in data["cells"]:
        if cell["id"] == "exercise-01-1":
            cell["source"] = f"# exercise 01.1: endless\n{ENDLESS}"
    (tmp_path / "in/b.ipynb").write_text(json.dumps(data))
    return tmp_path


def started(place, *options):
    command = [sys.executable, "-m", "tiled_matmul", "grade", "--jobs", "1", *options]
    environment = {"XDG_STATE_HOME": str(place / "state"), "TMPDIR": str(place / "tmp")}
    return subprocess.Popen(
        [*command, "--teacher", str(place / "in")],
        env=pool.own_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reports(path):
    return json.loads(path.read_text())["submissions"]


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.sample(3)
def test_what_is_finished_is_kept_and_the_same_command_goes_on(how, place):
    marks, part = place / "out/marks.json", place / "out/marks.json.part"
    one = started(place, "--json", str(marks))
    wait_for(lambda: part.exists() and part.stat().st_size)
    (kept,) = (json.loads(line.partition(" ")[2]) for line in part.read_text().split("\n")[1:])
    assert kept["report"]["path"] == "a.ipynb"
    began = time.monotonic()
    os.killpg(one.pid, getattr(signal, how))  # as a terminal does it
    _, said = one.communicate(timeout=30)
    assert time.monotonic() - began < 2.5
    assert not marks.exists() and part.exists() and not os.listdir(place / "tmp")
    if how == "SIGINT":
        assert one.returncode == 130
        (line,) = said.splitlines()
        assert line.startswith("grade: interrupted: 1 report is kept in") and str(part) in line
        assert line.endswith("the same command goes on from there")
    (place / "in/b.ipynb").write_bytes((place / "in/a.ipynb").read_bytes())
    again = started(place, "--json", str(marks))
    _, said = again.communicate(timeout=60)
    assert again.returncode == 0 and not part.exists(), said
    first, second = reports(marks)
    assert first == kept["report"]  # with its seed: it was not graded again
    assert {x["status"] for x in first["exercises"] + second["exercises"]} == {"PASS"}


def test_without_json_nothing_is_kept_and_that_is_said(place, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(teacher, "grade", interrupted)
    assert main(["grade", "--teacher", str(place / "in")]) == 130
    said = capsys.readouterr().err
    assert said == "grade: interrupted: nothing is kept, because there is no --json FILE\n"


def test_what_begins_out_of_reach_is_not_ended_by_ctrl_c():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with forks.out_of_reach():
        spared = subprocess.Popen(["sleep", "60"])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    ended = subprocess.Popen(["sleep", "60"])
    try:
        for one in (spared, ended):
            one.send_signal(signal.SIGINT)
        assert ended.wait(10) == -signal.SIGINT
        assert spared.poll() is None
    finally:
        spared.kill()
        spared.wait()


@pytest.fixture
def stop():
    """What Ctrl-C sets for the rest of a process: the next test of this one is not to end."""
    yield pool.STOP
    pool.STOP.clear()


def test_ctrl_c_ends_a_wait_that_it_does_not_wake(place, monkeypatch, stop):
    begun = []

    def one(*arguments, **options):
        begun.append(arguments)
        if len(begun) > 1:  # begun before it was cancelled: a second signal would end another test
            return {"path": "", "exercises": []}
        time.sleep(0.2)  # until the main thread waits
        # A signal that another thread gets does not end the main thread's wait either.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        ended.append(stop.wait(20))
        return {"path": "", "exercises": []}

    ended = []
    monkeypatch.setattr(submission, "graded", one)
    with pytest.raises(KeyboardInterrupt):
        teacher.grade(place / "in", jobs=1)
    assert ended == [True]
