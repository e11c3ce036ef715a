"""grader/pool.py: links on the way to Python, users and folders of several graders on one host."""

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from tiled_matmul.grader import pool
from tiled_matmul.grader.spec import Limits

in_sandbox = pytest.mark.skipif(not pool.sandbox_works(), reason="bubblewrap makes no sandbox here")


def test_links_that_lead_to_python_are_made_in_the_sandbox(tmp_path, monkeypatch):
    program, link, other = (tmp_path / name for name in ("program", "python3", "python"))
    program.touch()
    link.symlink_to(program)
    other.symlink_to("python3")
    monkeypatch.setattr(sys, "executable", str(other))
    assert pool._links_to_python() == [other, link]
    arguments = pool._confined()
    for place, target in ((other, "python3"), (link, str(program))):
        at = arguments.index(str(place))
        assert arguments[at - 2 : at] == ["--symlink", target]


def test_links_within_a_folder_of_the_sandbox_are_there_already(tmp_path, monkeypatch):
    link = tmp_path / "bin" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(link))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert str(link) not in pool._confined()


def test_links_in_a_circle_end(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    monkeypatch.setattr(sys, "executable", str(one))
    assert pool._links_to_python() == [one, two]


START = """import os, sys, time
from tiled_matmul.grader import pool
from tiled_matmul.grader.spec import Limits
with pool.Worker("loops", Limits(), confined=sys.argv[1] == "confined") as worker:
    source = "import os\\nraise OSError(os.getuid())"
    reply, _ = worker.ask({"source": source, "given": {}, "entry": "f"}, [], 5, 0)
    print(reply["error"]["message"], flush=True)
    time.sleep(60 * (sys.argv[2] == "stay"))
"""


def grader(folder, how, then="leave"):
    """Start a process that grades, with its temporary folder; it prints its worker's user."""
    return subprocess.Popen(
        [sys.executable, "-c", START, how, then],
        env=pool.own_environment() | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )


@in_sandbox
def test_two_graders_on_one_host_share_no_user(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root's sandboxes have users of their own")
    both = [grader(tmp_path, "confined") for _ in range(2)]
    users = [int(one.communicate(timeout=60)[0]) for one in both]
    assert users[0] != users[1] and all(user in pool.USERS for user in users)


def killed(folder, how):
    """Kill a process that grades, and return the folders that it leaves."""
    one = grader(folder, how, "stay")
    one.stdout.readline()
    during = os.listdir(folder)
    one.send_signal(signal.SIGKILL)
    one.communicate(timeout=20)
    return during, sorted(os.listdir(folder))


@in_sandbox
def test_a_grader_with_a_sandbox_leaves_nothing_when_it_is_killed(tmp_path):
    assert killed(tmp_path, "confined") == ([], [])


def test_what_a_killed_grader_leaves_the_next_one_removes(tmp_path):
    (here,), left = killed(tmp_path, "free")
    assert left == [here]
    live = grader(tmp_path, "free", "stay")
    try:
        live.stdout.readline()
        (at_work,) = os.listdir(tmp_path)
        assert at_work != here
        other = tmp_path / f"{pool.SCRATCH}link"
        other.symlink_to(tmp_path / at_work)
        assert grader(tmp_path, "free").wait(60) == 0
        assert sorted(os.listdir(tmp_path)) == sorted([at_work, other.name])
    finally:
        live.kill()
        live.communicate()


def test_a_folder_that_vanishes_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    made = [str(tmp_path / "one"), str(tmp_path / "two")]
    flock = pool.fcntl.flock

    def lock(file, how):
        flock(file, how)
        if os.path.isdir(made[0]):
            os.rmdir(made[0])

    def mkdtemp(prefix):
        folder = next(name for name in made if not os.path.exists(name) and name not in seen)
        seen.append(folder)
        os.mkdir(folder)
        return folder

    seen = []
    monkeypatch.setattr(pool.fcntl, "flock", lock)
    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    with pool.scratch() as folder:
        assert folder == made[1] and os.path.isdir(folder)
    assert os.listdir(tmp_path) == []


def test_a_worker_that_does_not_start_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for command in (["/nowhere/python"], ["/bin/false"]):
        with pytest.raises(pool.NoWorker):
            pool.Worker("loops", Limits(), False, command).__enter__()
    assert os.listdir(tmp_path) == []
