"""distributed/launch.py: whatever happens to a rank, an error says it, and nothing is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.distributed import RanksError, run, start  # noqa: E402

TASK = {"do": "check", "cut": "inner", "m": 8, "n": 8, "k": 8, "dtype": "float16", "whole": True}
# What ranks run instead of the worker: a fault, and then the worker.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from tiled_matmul.distributed import cuts, worker
rank = int(os.environ["RANK"])
{fault}
raise SystemExit(worker.main(Path(sys.argv[1])))
"""
DIES = """
if rank == 1:
    worker.agree = lambda mine: os.kill(os.getpid(), signal.SIGKILL)
"""
HANGS = """
if rank == 1:
    worker.agree = lambda mine: time.sleep(1000)
"""
DIFFERS = """
if rank == 1:
    there = worker.versions()
    worker.versions = lambda: there | {"torch": "0.1"}
"""


def faulty(tmp_path, fault):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(fault=fault))
    return [str(path)]


def ranks_of(folder):
    """Return the processes whose command line names a folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()):
            found.append(process)
    return found


def no_rank_is_left(folder):
    until = time.monotonic() + 10
    while ranks_of(folder) and time.monotonic() < until:
        time.sleep(0.1)
    assert ranks_of(folder) == []


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        (DIES, "torchrun ended with 1, and no rank said why|rank 0: RuntimeError"),
        pytest.param(
            HANGS, r"rank 0: .*(timed out|Timed out|timeout)", marks=pytest.mark.long
        ),
        pytest.param(
            DIFFERS, r"(?s)rank 0: .*rank 1 has versions .*'torch': '0.1'.* and rank 0 has .*"
            r"\nrank 1: ValueError", marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_a_faulty_rank_is_an_error_soon_and_nothing_is_left(tmp_path, fault, match):
    began = time.monotonic()
    with pytest.raises(RanksError, match=match):
        run([TASK], 2, timeout_s=3, program=faulty(tmp_path, fault))
    assert time.monotonic() - began < 60  # importing torch in three processes is most of it
    no_rank_is_left(tmp_path)


def test_settings_reach_the_ranks_and_never_turn_multicast_on(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os\nraise SystemExit(' '.join(os.environ[x] for x in "
        "('NCCL_MIN_P2P_NCHANNELS', 'NCCL_NVLS_ENABLE')))"
    )
    settings = {"NCCL_MIN_P2P_NCHANNELS": "64", "NCCL_NVLS_ENABLE": "1"}
    with pytest.raises(RanksError, match="(?m)^64 0$"):
        run([TASK], 2, program=[str(program)], settings=settings)


@pytest.mark.long
def test_sizes_that_do_not_divide_are_an_error_on_every_rank():
    with pytest.raises(RanksError) as error:
        run([TASK | {"k": 9}], 2)
    words = "ValueError: 9 does not divide into 2 parts"
    assert str(error.value).splitlines() == [f"rank 0: {words}", f"rank 1: {words}"]


def test_two_runs_at_once_find_ports_even_where_the_one_of_the_environment_is_in_use(monkeypatch):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(one.getsockname()[1]))
        with ThreadPoolExecutor() as pool:
            both = list(pool.map(lambda ranks: run([TASK], ranks), (2, 2)))
    assert [[report["far"] for [report] in reports] for reports in both] == [[0, 0], [0, 0]]


def test_too_few_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="2 ranks need 2 GPUs, and there are 1"):
        run([TASK], 2, device="cuda")


WAITING = """
import signal
import sys
# A shell lets what it starts in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from tiled_matmul.distributed import run
run([{task}], 2, timeout_s=300, program=[sys.argv[1]])
"""


@pytest.mark.parametrize(
    "number", (signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long))
)
def test_ranks_end_with_the_process_that_started_them(tmp_path, number):
    mark = tmp_path / "begun"
    begun = f"Path({str(mark)!r}).touch()\ntime.sleep(1000)"
    [program] = faulty(tmp_path, begun)
    command = [sys.executable, "-c", WAITING.format(task=TASK), program]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as started:
        try:
            until = time.monotonic() + 120
            while not mark.exists() and time.monotonic() < until:
                time.sleep(0.1)
            assert mark.exists() and len(ranks_of(tmp_path)) >= 3
            os.kill(started.pid, number)
            started.wait(30)
        finally:
            started.kill()
    no_rank_is_left(tmp_path)


def test_torchrun_whose_launcher_has_ended_does_not_start():
    command = [sys.executable, "-P", start.__file__, "--help"]
    environment = os.environ | {"TILED_MATMUL_LAUNCHER": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == "the process that started this one, 1, has ended"


ENDLESS = """
from pathlib import Path
print("begun", flush=True)
Path({mark!r}).touch()
while True:
    pass
"""


@pytest.mark.long
def test_a_cut_that_never_ends_is_ended_and_shows_what_it_printed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ENDLESS.format(mark=str(tmp_path / "begun")))
    with pytest.raises(RanksError, match="(?s)they did not end in time, and .*begun"):
        run([TASK], 2, most_s=20, program=[str(program)])
    no_rank_is_left(tmp_path)


NOWHERE = ["unshare", "--uts", "--user", "--map-root-user", "sh", "-c"]


@pytest.mark.long
def test_the_host_s_name_need_not_lead_anywhere():
    try:
        subprocess.run([*NOWHERE, "hostname nowhere.invalid"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine lets nobody take another name: {error}")
    program = f"from tiled_matmul.distributed import run; print(run([{TASK}], 2)[0][0]['far'])"
    command = f'hostname nowhere.invalid && exec "{sys.executable}" -c "$0"'
    done = subprocess.run([*NOWHERE, command, program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "0.0\n", done.stderr
