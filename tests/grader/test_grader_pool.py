"""grader/pool.py and forks.py: links on the way to Python, several graders on one host, forks."""

import ast
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tiled_matmul.grader import forks, pool, wire
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


SEEN = """import os, resource
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
seen = {name: status[name].split() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
seen |= {name: status[name].split() for name in ("NoNewPrivs", "Groups", "Umask", "Seccomp")}
seen["mounts"] = hash(tuple(sorted(line.split(" ", 1)[1] for line in open("/proc/self/mounts"))))
kinds = (name for name in dir(resource) if name.startswith("RLIMIT_"))
seen["limits"] = {name: resource.getrlimit(getattr(resource, name)) for name in kinds}
seen["limits"].pop("RLIMIT_CPU")
seen["files"] = sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in (0, 1, 2))
seen["open"] = len(os.listdir("/proc/self/fd"))
seen["place"] = os.getcwd(), os.listdir("/tmp"), os.environ.get("HOME"), os.environ.get("TMPDIR")
seen["session"] = os.getsid(0) in (0, os.getpid(), 1, 2)
seen["apart"] = {
    name: os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "ipc", "net", "uts")
}
seen["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))
seen["user"] = os.getuid() > 0 or "root is itself in a user namespace"
raise OSError(repr(seen))
"""


def seen(confined):
    with pool.Worker("loops", Limits(), confined) as worker:
        forked = isinstance(worker.process, forks.Forked)
        reply, _ = worker.ask({"source": SEEN, "given": {}, "entry": "f"}, [], 5, 0)
    return forked, ast.literal_eval(reply["error"]["message"])


@in_sandbox
def test_a_forked_worker_sees_what_one_that_starts_by_itself_does(monkeypatch):
    forked, mine = seen(True)
    assert forked
    monkeypatch.setattr(pool, "_NURSERIES", {"loops": forks.NotForked("for a test")})
    with pytest.warns(UserWarning, match="starts by itself"):
        forked, theirs = seen(True)
    assert not forked
    for one in (mine, theirs):
        here = {name: os.readlink(f"/proc/self/ns/{name}") for name in one["apart"]}
        assert not set(one.pop("apart").values()) & set(here.values())
        # A sandbox's first process, and the worker; Python itself, if it was started there.
        assert one.pop("processes") <= 4
    # The forked one has given up even what it could not use any more.
    rights = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
    assert [mine.pop(name) for name in rights] == [["0" * 16]] * len(rights)
    assert {theirs.pop(name)[0] for name in rights if name in ("CapPrm", "CapEff")} == {"0" * 16}
    assert mine == {name: value for name, value in theirs.items() if name not in rights}
    assert mine["NoNewPrivs"] == ["1"]


def test_workers_are_forked_and_end_with_all_that_they_began():
    sleeper = "import subprocess\nsubprocess.Popen(['sleep', '600'])\nraise OSError"
    with pool.Worker("loops", Limits(), False) as worker:
        assert isinstance(worker.process, forks.Forked)
        worker.ask({"source": sleeper, "given": {}, "entry": "f"}, [], 5, 0)
        group = worker.process.pid
        assert len(in_group(group)) == 3  # the worker, its parent and what it began
    deadline = time.monotonic() + 5
    while in_group(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not in_group(group)


def in_group(group):
    """Return the processes of a group that have not ended."""
    there = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, number = path.read_text().rpartition(") ")[2].split()[:3]
            there += [path.parent.name] if int(number) == group and state != "Z" else []
    return there


@pytest.mark.parametrize(
    ("source", "how"),
    [("import os\nos._exit(7)", "status 7"), ("import os\nos.kill(os.getpid(), 11)", "SIGSEGV")],
)
def test_how_a_forked_worker_ended_is_told(source, how):
    with pool.Worker("loops", Limits(), False) as worker, pytest.raises(pool.Died, match=how):
        worker.ask({"source": source, "given": {}, "entry": "f"}, [], 5, 0)


def test_a_nursery_that_has_ended_is_told_once_and_workers_start_by_themselves(monkeypatch):
    nursery = forks.Nursery("loops", pool._environment("loops"))
    nursery.process.kill()
    monkeypatch.setattr(pool, "_NURSERIES", {"loops": nursery})
    for _ in range(2):
        with pytest.warns(UserWarning, match="starts by itself"):
            with pool.Worker("loops", Limits(), False) as worker:
                assert not isinstance(worker.process, forks.Forked)
    assert isinstance(pool._NURSERIES["loops"], forks.NotForked)
    nursery.close()


@in_sandbox
def test_where_no_process_may_enter_a_sandbox_workers_start_in_it(monkeypatch):
    monkeypatch.setattr(pool, "_NURSERIES", {})
    own = forks.Space._keep

    def keep(self, fd, name):
        # A descriptor of something else: setns refuses it, as it does where it is forbidden.
        own(self, os.open("/dev/null", os.O_RDONLY) if name == "mnt" else fd, name)

    monkeypatch.setattr(forks.Space, "_keep", keep)
    with pytest.warns(UserWarning, match="setns"):
        forked, there = seen(True)
    assert not forked and there["NoNewPrivs"] == ["1"]


def test_what_a_process_printed_before_its_end_is_not_lost(monkeypatch):
    encode = wire.encode

    def late(*message):
        time.sleep(0.5)  # the process has ended before anything is read from it
        return encode(*message)

    monkeypatch.setattr(wire, "encode", late)
    program = ["sh", "-c", "echo the reason; exit 3"]
    with pytest.raises(pool.NoWorker, match="the reason"):
        pool.Worker("loops", Limits(), False, command=program).__enter__()


def test_a_worker_that_is_closed_twice_ends_no_other_process():
    with pool.Worker("loops", Limits(), False) as worker:
        worker.close()
        reused = os.open("/dev/null", os.O_RDONLY)  # may have the number of a pipe of the worker's
        worker.close()
    os.close(reused)
    with pytest.raises(pool.Died):
        with pool.Worker("loops", Limits(), False) as worker:
            worker.close()
            raise pool.Died("for a test")
