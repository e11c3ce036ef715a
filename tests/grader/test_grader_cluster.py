"""grader/cluster.py: a class graded by real schedulers and workers, which are killed on the way."""

import collections
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tiled_matmul import ROOT
from tiled_matmul.__main__ import main
from tiled_matmul.grader import pool, starters, teacher
from tiled_matmul.grader.journal import Journal

pytest.importorskip("distributed", reason="Dask is not installed: make test-cluster")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not pool.sandbox_works(), reason="bubblewrap makes no sandbox here"),
]

(SOLVED,) = [path for path in starters.solutions() if path.name.startswith("01")]
BLANK = ROOT / "exercises" / SOLVED.name
SLOW = "def loops(a, b, c):\n    while True:\n        pass\n"
MANY = 8
SOON_S = 60
DASK = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2",
    "DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON__OMP_NUM_THREADS": "1",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with submissions in `in`, right, blank and unreadable ones, and `out`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    for number in range(MANY):
        shutil.copy((SOLVED, BLANK)[number % 2], tmp_path / f"in/{number}.ipynb")
    (tmp_path / "in/a.txt").write_text("not a notebook")
    return tmp_path


@contextlib.contextmanager
def process(*command, **environment):
    """A process of a group of its own, all of which ends with this."""
    log = open(os.environ.get("TILED_MATMUL_CLUSTER_LOG", os.devnull), "a")  # noqa: SIM115
    started = subprocess.Popen(
        [sys.executable, "-P", *map(str, command)],
        env=os.environ | DASK | environment,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        end(started)
        log.close()


def end(started):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def scheduler(port, *options, **environment):
    options = (
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--dashboard-address",
        "127.0.0.1:0",
        *options,
    )
    return process("-m", "distributed.cli.dask_scheduler", *options, **environment)


def worker(address, place, *options, preload=None, **environment):
    """A worker with a nanny, which starts it anew; `preload` is code that it runs first."""
    options = [*options, "--nthreads", 1, "--no-dashboard", "--local-directory", place / "dask"]
    if preload is not None:
        file = place / f"preload_{abs(hash(preload))}.py"
        file.write_text(preload)
        options += ["--preload", file]
    return process("-m", "distributed.cli.dask_worker", address, *options, **environment)


@pytest.fixture
def address():
    """The address of a scheduler."""
    port = free_port()
    with scheduler(port):
        yield f"tcp://127.0.0.1:{port}"


def cluster(address, **options):
    from tiled_matmul.grader.cluster import Cluster

    options = {"seed": 3, "say": lambda line: None} | options
    return Cluster(address, None, **options)


def waited(condition, seconds=SOON_S):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def there(address, count):
    """Wait until a scheduler has so many workers."""
    from distributed import Client

    deadline = time.monotonic() + SOON_S
    while True:
        with contextlib.suppress(OSError), Client(address, timeout=5, set_as_default=False) as one:
            one.wait_for_workers(count, timeout=SOON_S)
            return
        assert time.monotonic() < deadline


def once(place, reports):
    """Return the reports, after a look that each submission has one."""
    names = [report["path"] for report in reports]
    assert names == sorted(path.name for path in (place / "in").iterdir())
    return list(reports)


@pytest.fixture
def here(place):
    """The reports that one machine makes."""
    return list(teacher.grade(place / "in", jobs=2, seed=3))


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.long)])
def test_marks_are_those_of_one_machine(workers, place, here, capsys):
    files = {name: place / f"out/{name}" for name in ("json", "csv", "junit", "html")}
    options = [text for name, path in files.items() for text in (f"--{name}", str(path))]
    far = ["--cluster", str(workers), "--seed", "3"]
    assert main(["grade", "--teacher", str(place / "in"), *far, *options]) == 0
    assert json.loads(files["json"].read_text())["submissions"] == here
    assert all(path.stat().st_size for path in files.values())
    said = capsys.readouterr().err
    assert "Dask's dashboard is http://127.0.0.1:" in said
    assert f"graded on {platform.node()}: {MANY}" in said
    assert sorted(path.name for path in (place / "out").iterdir()) == sorted(files)


def grading(place, *options):
    """The command in a process of its own."""
    marks = place / "out/marks.json"
    command = ["-m", "tiled_matmul", "grade", "--teacher", place / "in", "--json", marks]
    return process(*command, "--seed", "3", *options)


def kept(place):
    part = place / "out/marks.json.part"
    lines = part.read_bytes().split(b"\n") if part.exists() else []
    return collections.Counter(json.loads(line[65:])["report"]["path"] for line in lines if line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_client_is_followed_by_one_that_goes_on(number, place, here, address):
    slow = json.loads(SOLVED.read_text())
    slow["cells"] = [cell for cell in slow["cells"] if cell["id"] == "exercise-01-1"]
    slow["cells"][0]["source"] = f"# exercise 01.1\n{SLOW}"
    (place / "in/z.ipynb").write_text(json.dumps(slow))
    with worker(address, place):
        there(address, 1)
        with grading(place, "--scheduler", address) as client:
            waited(lambda: len(kept(place)) >= 3)
            client.send_signal(number)
            assert client.wait(SOON_S) == (130 if number == signal.SIGINT else -number)
        before = kept(place)
        (place / "in/z.ipynb").unlink()
        marks = place / "out/marks.json"
        with grading(place, "--scheduler", address) as client:
            assert client.wait(SOON_S) == 0
    assert set(before.values()) == {1}
    assert once(place, json.loads(marks.read_text())["submissions"]) == here
    assert not marks.with_name("marks.json.part").exists()


DYING = """
import os
from pathlib import Path

from tiled_matmul.grader import submission

graded = vars(submission).setdefault("whole", submission.graded)  # a preload runs more than once


def dying(data, name, *arguments, **options):
    count = Path({mark!r})
    if name == {name!r} and len(count.read_text()) < {times}:
        with count.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), 9)
    return graded(data, name, *arguments, **options)


submission.graded = dying
"""


@pytest.mark.parametrize(
    ("times", "deaths"), [pytest.param(1, 1, marks=pytest.mark.long), (1000, 6)]
)
def test_workers_that_die_with_a_submission(times, deaths, place, here, address):
    mark = place / "deaths"
    mark.touch()
    preload = DYING.format(mark=str(mark), name="4.ipynb", times=times)
    with worker(address, place, preload=preload), cluster(address) as by:
        there(address, 1)
        found = once(place, teacher.grade(place / "in", jobs=1, seed=3, by=by))
    assert len(mark.read_text()) == deaths
    if times > deaths:
        (crash,) = [report for report in found if report["path"] == "4.ipynb"]
        assert crash["status"] == "CRASH" and "ended each of 3 times" in crash["error"]
        found[found.index(crash)] = here[found.index(crash)]
    assert found == here


def test_a_lost_node_and_a_scheduler_that_starts_anew_lose_nothing(place, here):
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    journal = Journal(place / "out/marks.part", place / "in")
    finished, ends = [], contextlib.ExitStack()

    def on_progress(done, total, name):
        finished.append(name)
        if done == 3:  # with its node: no worker is left
            end(nodes[0])
            nodes.append(ends.enter_context(worker(address, place)))
        if done == 5:
            end(nodes[1])
            end(schedulers[0])
            schedulers.append(ends.enter_context(scheduler(port)))
            nodes.append(ends.enter_context(worker(address, place)))

    with ends, journal:
        schedulers = [ends.enter_context(scheduler(port))]
        nodes = [ends.enter_context(worker(address, place))]
        there(address, 1)
        by = ends.enter_context(cluster(address))
        options = {"jobs": 1, "seed": 3, "journal": journal, "by": by}
        found = once(place, teacher.grade(place / "in", **options, on_progress=on_progress))
        assert found == here
        assert len(schedulers) == 2 and len(nodes) == 3
    assert sorted(finished) == [report["path"] for report in here]


def test_tls_without_certificates_is_refused_in_words(place, capsys):
    status = main(["grade", "--teacher", str(place / "in"), "--scheduler", "tls://127.0.0.1:9"])
    said = capsys.readouterr().err
    assert status == 2 and "tls://127.0.0.1:9 needs certificates" in said


def test_without_a_scheduler_or_worker_it_ends_with_words(place, address, capsys):
    status = main(["grade", "--teacher", str(place / "in"), "--scheduler", "tcp://127.0.0.1:9"])
    said = capsys.readouterr().err
    assert status == 2 and "127.0.0.1:9" in said and "nothing is kept" in said
    with (
        cluster(address, patience_s=1) as by,
        pytest.raises(OSError, match=f"no scheduler at {address}, or no worker there, for 1 s"),
    ):
        teacher.grade(place / "in", jobs=1, by=by)


OTHER = """
from tiled_matmul.grader import node

mine = node.identity()
node.identity = lambda: mine | {"Python": "3.9.1", "code and exercises": "of another day"}
"""
BARE = "from tiled_matmul.grader import pool\npool.sandbox_works = lambda: False\n"


@pytest.mark.parametrize(
    ("preload", "words"),
    [
        (OTHER, ("Python 3.9.1, not ", "code and exercises of another day, not ")),
        (BARE, ("no sandbox can be made",)),
    ],
)
def test_a_node_that_differs_is_refused(preload, words, place, address):
    with worker(address, place, preload=preload):
        there(address, 1)
        with (
            pytest.raises(ValueError, match="1 of 1 workers may not grade") as refused,
            cluster(address),
        ):
            pass
    assert all(word in str(refused.value) for word in words)


def test_another_grading_on_the_same_workers_draws_and_judges_anew(place, address):
    def seeds(**options):
        with cluster(address, **options) as by:
            found = teacher.grade(place / "in", jobs=1, seed=options["seed"], by=by)
            return {
                one["evidence"]["seed"]
                for report in found
                for one in report["exercises"]
                if "seed" in one["evidence"]
            }

    with worker(address, place):
        there(address, 1)
        first, again, other = (seeds(seed=seed) for seed in (3, 3, 4))
    assert first and first == again and not first & other


def test_a_scheduler_that_starts_anew_takes_no_node_that_differs(place):
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    ends = contextlib.ExitStack()

    def on_progress(done, total, name):
        if done == 3:
            for each in running:
                end(each)
            ends.enter_context(scheduler(port))
            ends.enter_context(worker(address, place, preload=OTHER))

    with ends:
        running = [ends.enter_context(scheduler(port)), ends.enter_context(worker(address, place))]
        there(address, 1)
        by = ends.enter_context(cluster(address, patience_s=20))
        with pytest.raises((ValueError, OSError), match="may not grade|no worker there"):
            teacher.grade(place / "in", jobs=1, seed=3, by=by, on_progress=on_progress)


def test_a_node_that_joins_later_and_differs_does_not_start(place, here, address):
    with worker(address, place), cluster(address) as by:
        there(address, 1)
        with worker(address, place, preload=OTHER):
            found = once(place, teacher.grade(place / "in", jobs=1, seed=3, by=by))
            time.sleep(3)
            assert len(by.client.scheduler_info(n_workers=-1)["workers"]) == 1
    assert found == here


EVIL = """
from pathlib import Path

from tiled_matmul.grader import node


class Evil:
    def __reduce__(self):
        return Path.touch, (Path({mark!r}),)


node.graded = lambda *arguments: Evil()
"""


def test_nothing_that_a_worker_sends_is_unpickled(place, address):
    mark = place / "unpickled"
    for name in list((place / "in").iterdir())[1:]:
        name.unlink()
    # Pickled, `graded` is its name: the worker's own is called.
    preload = EVIL.format(mark=str(mark))
    with worker(address, place, preload=preload), cluster(address) as by:
        there(address, 1)
        (report,) = teacher.grade(place / "in", jobs=1, by=by)
    assert not mark.exists()
    assert report["infra"] and "lost on its way 10 times" in report["error"]


def certificates(place):
    """Write an authority's certificate, and one with its key that it has signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def made(name, key, signer, by, is_authority):
        start = datetime.now(UTC) - timedelta(hours=1)
        names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, n)]) for n in (name, by)]
        build = x509.CertificateBuilder(*names[::-1], key.public_key())
        build = build.serial_number(x509.random_serial_number())
        build = build.not_valid_before(start).not_valid_after(start + timedelta(days=2))
        basic = x509.BasicConstraints(ca=is_authority, path_length=None)
        return build.add_extension(basic, True).sign(signer, hashes.SHA256())

    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    pem = serialization.Encoding.PEM
    authority = made("class", keys[0], keys[0], "class", True)
    mine = made("node", keys[1], keys[0], "class", False)
    plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    texts = {
        "ca.pem": authority.public_bytes(pem),
        "cert.pem": mine.public_bytes(pem),
        "key.pem": keys[1].private_bytes(pem, *plain),
    }
    for name, text in texts.items():
        (place / name).write_bytes(text)
    prefix = "DASK_DISTRIBUTED__COMM__"
    files = {f"{prefix}TLS__CA_FILE": str(place / "ca.pem"), f"{prefix}REQUIRE_ENCRYPTION": "True"}
    for part in ("SCHEDULER", "WORKER", "CLIENT"):
        files[f"{prefix}TLS__{part}__CERT"] = str(place / "cert.pem")
        files[f"{prefix}TLS__{part}__KEY"] = str(place / "key.pem")
    return files


def test_tls_is_what_dask_s_settings_say(place, here):
    """As the teacher's page has it: the same variables everywhere, and addresses with tls."""
    from distributed import Client

    port, files = free_port(), certificates(place)
    address = f"tls://127.0.0.1:{port}"
    run = partial(subprocess.run, capture_output=True, text=True)
    with (
        scheduler(port, "--protocol", "tls", **files),
        worker(address, place, "--protocol", "tls", **files),
    ):
        command = [sys.executable, "-P", "-m", "tiled_matmul", "grade", "--seed", "3"]
        command += ["--teacher", str(place / "in"), "--scheduler", address]
        done = run([*command, "--json", str(place / "out/m.json")], env=os.environ | files)
        assert done.returncode == 0, done.stderr
        for stranger in (address, address.replace("tls", "tcp")):
            # Which of these Dask raises depends on where the connection breaks.
            with pytest.raises((OSError, TypeError, RuntimeError, AssertionError)):
                Client(stranger, timeout=2, set_as_default=False)
    assert json.loads((place / "out/m.json").read_text())["submissions"] == here


def test_only_workers_with_a_gpu_grade_on_gpus(place, address):
    with worker(address, place), cluster(address, gpu=True, patience_s=1) as by:
        there(address, 1)
        with pytest.raises(OSError, match="no worker there"):
            teacher.grade(place / "in", jobs=1, by=by)
        with worker(address, place, "--resources", "GPU=1"):
            there(address, 2)
            by.looked = -1e9
            assert by._room() == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cluster", "0"], "--cluster must be 1 or more, got 0"),
        (["--cluster", "2", "--scheduler", "tcp://x:1"], "take one of them"),
        (["--cluster", "2", "--jobs", "2"], "--jobs is for this machine"),
        (["--cluster", "2", "--gpu"], "GPU"),
    ],
)
def test_options_that_do_not_go_together(options, words, place, capsys):
    assert main(["grade", "--teacher", str(place / "in"), *options]) == 2
    assert words in capsys.readouterr().err
    assert main(["grade", str(SOLVED), "--cluster", "2"]) == 2
    assert "--cluster goes with --teacher DIR" in capsys.readouterr().err
