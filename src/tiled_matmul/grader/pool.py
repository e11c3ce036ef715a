"""Start worker processes, send them requests with a time limit, and notice when they end."""

from __future__ import annotations

import atexit
import compileall
import contextlib
import fcntl
import importlib.util
import math
import os
import secrets
import selectors
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tiled_matmul.grader import forks, wire
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.spec import SLACK, Limits
from tiled_matmul.machine import sandbox

WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": "", "TILED_MATMUL_BACKEND": "compiler"}
USERS = range(1 << 30, 1 << 31)  # a user drawn for each sandbox: one's processes count together
POLL_S = 0.25
GRACE_S = 1.0
STARVED = 4.0  # times as long again may a worker take while it waits for a processor
LAST_WAIT_S = 60.0
# Turns of a loop, and about the seconds that they took where the limits were chosen.
LOOP, LOOP_S = 100_000, 0.003
SCRATCH = "tiled-matmul-worker-"  # not -grade-: older versions hold no lock on theirs
LIBRARIES = ("numpy", "numba", "torch", "triton")
PACKAGE = Path(__file__).resolve().parents[1]


class Died(Exception):
    """The worker ended or closed its pipe. `output` is the last of what it printed."""

    def __init__(self, how: str, output: str = "") -> None:
        super().__init__(how)
        self.output = output


class TooSlow(Exception):
    """No reply within `seconds`: to this request, or `in_all` to those of an answer together."""

    def __init__(self, seconds: float, in_all: bool) -> None:
        self.seconds, self.in_all = float(f"{seconds:.2g}"), in_all
        super().__init__(f"no reply within {self.seconds:g} s")


class NoWorker(Exception):
    """No worker could be started. This is a fault of the machine, not of an answer."""


@cache
def slowness() -> float:
    """Return how many times as long as where the limits were chosen Python takes here, 1 to 8.

    Every limit of a worker is as many times longer, so that marks do not depend on the machine.
    """

    def taken() -> float:
        began = time.thread_time()
        sum(i * i for i in range(LOOP))
        return time.thread_time() - began

    return min(max(statistics.median(taken() for _ in range(5)) / LOOP_S, 1.0), 8.0)


def sandbox_works() -> bool:
    """Can bubblewrap make a sandbox here?"""
    path = sandbox.find_bwrap()
    if path is None:
        return False
    try:
        command = [path, *_confined(), "true"]
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _confined() -> list[str]:
    """Return bubblewrap's arguments: what of this machine a worker sees, and all of it read-only.

    The exercises' folders, the solutions and the tests are not among it.
    """
    if os.geteuid() == 0:
        # Only a process of root's may switch to another user.
        rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        rights += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        rights += ["--unshare-cgroup-try"]
    else:
        rights = ["--unshare-all", "--cap-drop", "ALL"]
    # First, as the course itself may lie there.
    seen = ["--perms", "1777", "--size", str(64 << 20), "--tmpfs", "/tmp"]
    prefixes = {Path(p).resolve() for p in (sys.prefix, sys.base_prefix)}
    # A virtual environment may be a link, and is asked for by either name.
    prefixes |= {Path(sys.prefix), Path(sys.base_prefix)}
    folders = [Path("/usr"), *sorted(prefixes), *_library_folders(), *_toolkit(), PACKAGE]
    parents = {parent for folder in folders for parent in folder.parents}
    for parent in sorted(parents - {Path("/")}):
        seen += ["--perms", "0755", "--dir", str(parent)]
    for folder in folders:
        seen += ["--ro-bind", str(folder), str(folder)]
    for link in _links_to_python():
        if not any(link.is_relative_to(folder) for folder in folders):
            seen += ["--symlink", os.readlink(link), str(link)]
    for name in ("lib", "lib64", "lib32", "bin", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            seen += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            seen += ["--ro-bind", str(path), str(path)]
    for name in ("/etc/ld.so.cache", "/etc/alternatives"):
        seen += ["--ro-bind-try", name, name]
    # Else a user who owns them could fill the memory behind / and /dev.
    seen += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*rights, "--die-with-parent", "--new-session", *seen, "--chdir", "/tmp"]


def _links_to_python() -> list[Path]:
    """Return the links on the way from this environment's `python` to the program itself.

    One may lie anywhere, such as ~/.local/bin/python3.
    """
    links = []
    path = Path(sys.executable)
    while path.is_symlink() and path not in links:
        links.append(path)
        path = Path(os.path.normpath(path.parent / os.readlink(path)))
    return links


@cache
def _library_folders() -> tuple[Path, ...]:
    """Return where the libraries lie that answers are run with, if that is not Python's own place.

    `make test-gpu` on a machine without a network puts some into a folder of their own.
    """
    specs = [importlib.util.find_spec(name) for name in LIBRARIES]
    places = {Path(one.origin).parents[1] for one in specs if one is not None and one.origin}
    own = [Path(p).resolve() for p in (sys.prefix, sys.base_prefix, "/usr")]
    inside = [p for p in places if any(p.resolve().is_relative_to(folder) for folder in own)]
    return tuple(sorted(places - set(inside)))


def _toolkit() -> list[Path]:
    """Return where the CUDA toolkit lies, if there is one: kernels are compiled with it."""
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [Path(name) for name in (*named, "/usr/local/cuda") if name]
    return [place.resolve() for place in places if place.is_dir()][:1]


def _environment(kind: str) -> dict[str, str]:
    """Return a worker's environment variables: none of the user's own.

    Triton kernels are run in the course's interpreter and compiled as well, without a GPU.
    """
    paths = [PACKAGE.parent, *_library_folders()]
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        **({} if kind == "gpu" else WITHOUT_GPU),  # the kind of the launcher
        "NUMBA_CACHE_DIR": "/tmp",
        **({"CUDA_HOME": str(_toolkit()[0])} if _toolkit() else {}),
        **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")},
    }


def own_environment() -> dict[str, str]:
    """Return the environment of a process of the course's own: that of this process."""
    own = {"PYTHONPATH": os.pathsep.join(p for p in (str(PACKAGE.parent), *sys.path) if p)}
    return {**os.environ, **own, "TILED_MATMUL_BACKEND": "gpu"}


@cache
def compiled() -> None:
    """Compile the course's own modules to bytecode, which a worker may not write.

    Else each worker would compile them anew, for half a second.
    """
    with contextlib.suppress(OSError):
        compileall.compile_dir(PACKAGE, quiet=2)


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """Give a temporary folder that vanishes at the end; of a process that is killed, at the next.

    A process holds a lock on its folder. The lock ends with the process, however that ends.
    """
    _remove_left_folders()
    while True:
        folder = tempfile.mkdtemp(prefix=SCRATCH)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(folder):  # nobody took it for one that was left
            break
        os.close(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@cache
def _remove_left_folders() -> None:
    """Remove this user's temporary folders whose process has been killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError):  # it is another user's, or locked
            if folder.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


STOP = threading.Event()
"""Set to end all workers of this process at once: Ctrl-C reaches the main thread only."""


def _go_on() -> None:
    """Raise KeyboardInterrupt if all is to end."""
    if STOP.is_set():
        raise KeyboardInterrupt


_NURSERIES: dict[str, forks.Nursery | forks.NotForked] = {}
_NURSERIES_LOCK = threading.Lock()
_AT_END = contextlib.ExitStack()
atexit.register(_AT_END.close)
_AT_END.callback(_remove_left_folders.__wrapped__)  # the last: of a nursery that was killed


def _nursery(kind: str) -> forks.Nursery:
    """Return this process's nursery for a kind. Raises NotForked, always if it has once."""
    with _NURSERIES_LOCK:
        if kind not in _NURSERIES:
            try:
                _NURSERIES[kind] = one = forks.Nursery(kind, _environment(kind))
                _AT_END.callback(one.close)
            except forks.NotForked as why:
                _NURSERIES[kind] = why
        found = _NURSERIES[kind]
    if isinstance(found, forks.NotForked):
        raise found
    return found


def _forked(
    kind: str, before: list[str], reply: int, folder: str, environment: dict[str, str]
) -> forks.Forked:
    """Return a forked worker, in a sandbox if there is a command `before` it."""
    nursery = _nursery(kind)
    space = forks.Space(before) if before else None
    try:
        return forks.Forked(nursery, space, reply, folder, environment)
    except forks.NotForked as why:
        if space is not None:
            space.close()
        _refuse(kind, why)
        raise


def _refuse(kind: str, why: forks.NotForked) -> None:
    """Fork no more workers of a kind."""
    with _NURSERIES_LOCK:
        _NURSERIES[kind] = why


class Worker:
    """One process that runs one answer. A context; leaving it ends the process and its children.

    `confined` runs it in bubblewrap. `command` replaces the program; `environment` replaces some of
    its environment variables.
    """

    def __init__(
        self,
        kind: str,
        limits: Limits,
        confined: bool,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self.limits, self.confined = kind, limits, confined
        self.command, self.environment = command, environment or {}
        self.output = bytearray()
        self.dropped = 0
        self.in_all = self.until = self.latest = math.inf
        self.closed = True

    def __enter__(self) -> Worker:
        bwrap = sandbox.find_bwrap() if self.confined else None
        if self.confined and bwrap is None:
            raise NoWorker(sandbox.MISSING)
        before = [bwrap, *_confined()] if self.confined else []
        compiled()
        reply_read, reply_write = os.pipe()
        self.scratch = contextlib.ExitStack()
        # A sandbox has a /tmp of its own, in memory.
        folder = "/tmp" if self.confined else self.scratch.enter_context(scratch())
        environment = {"TRITON_CACHE_DIR": f"{folder}/triton"} | dict(self.environment)
        try:
            self.process = self._process(before, reply_write, folder, environment)
        except OSError as error:
            os.close(reply_read)
            self.scratch.close()
            raise NoWorker(f"no worker could be started: {error}") from None
        finally:
            os.close(reply_write)
        self.reply, self.closed = reply_read, False
        for fd in (self.reply, self.process.stdin.fileno(), self.process.stdout.fileno()):
            os.set_blocking(fd, False)
        user = secrets.choice(USERS) if self.confined and os.geteuid() == 0 else None
        limits = {"memory": self.limits.memory, "user": user, "kind": self.kind}
        # Elsewhere the user's own processes would count.
        limits["processes"] = self.limits.processes if user is not None else None
        try:
            header, _ = self.ask(limits, [], self.limits.start_seconds, 0)
        except (Died, TooSlow, wire.BadMessage) as error:
            printed = self.output.decode(errors="replace")[-600:]
            self.close()
            if isinstance(self.process, forks.Forked):
                # Not every Linux lets a process enter a sandbox that stands.
                _refuse(self.kind, forks.NotForked(f"{error}: {printed}"))
                self.output.clear()
                return self.__enter__()
            raise NoWorker(f"the worker did not start: {error}: {printed}") from None
        except BaseException:
            self.close()
            raise
        if header != {"ready": True}:
            self.close()
            raise NoWorker(f"the worker did not start: {header}")
        return self

    def _process(
        self, before: list[str], reply: int, folder: str, environment: dict[str, str]
    ) -> subprocess.Popen | forks.Forked:
        """Return a process that begins to serve: forked if it is a worker and that can be done."""
        if self.command is None and sys.platform == "linux":
            try:
                return _forked(self.kind, before, reply, folder, environment)
            except forks.NotForked as why:
                warnings.warn(sentence("pool: not forked", reason=why), stacklevel=2)
        program = self.command or [sys.executable, "-m", "tiled_matmul.grader.worker"]
        with forks.out_of_reach():
            return subprocess.Popen(
                [*before, *program, str(reply)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[reply],
                start_new_session=True,
                cwd=folder,
                env=_environment(self.kind) | environment,
                umask=0o022,
                bufsize=0,
            )

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and what it began, once: then its number may be another one's."""
        if self.closed:
            return
        self.closed = True
        if isinstance(self.process, forks.Forked):
            self.process.close()
        else:
            # In bubblewrap the end of its first process ends all of them.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a GPU that hangs can hold it
                self.process.wait(LAST_WAIT_S)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        with contextlib.suppress(OSError):
            os.close(self.reply)
        self.scratch.close()

    def finish(self, seconds: float) -> None:
        """Close the request pipe, and read the process's output until it ends."""
        self.process.stdin.close()
        deadline = time.monotonic() + seconds
        stdout = self.process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                _go_on()
                if selector.select(POLL_S) and self._drain(stdout) == b"":
                    break
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0, deadline - time.monotonic()))

    def ask(
        self, header: dict, blobs: Sequence[bytes], seconds: float, max_bytes: int
    ) -> tuple[dict, list[bytes]]:
        """Send a request, return its reply. Raises Died, TooSlow or wire.BadMessage.

        A worker ends itself after `seconds` of a processor, on a slow machine so many times more.
        On the clock it has SLACK times as long, and up to STARVED times that while other processes
        keep it waiting. Another program has `seconds`. With "in_all" in the header, this request
        and those that follow have so many seconds together.
        """
        own = self.command is None
        if own:
            seconds *= slowness()
            header = header | {"seconds": seconds}
            if "in_all" in header:
                self.in_all = header["in_all"] = header["in_all"] * slowness()
        request = memoryview(wire.encode(header, blobs))
        reader = wire.Reader(max_bytes)
        began = time.monotonic()
        if "in_all" in header:
            self.until = began + SLACK * header["in_all"]
            self.latest = began + STARVED * SLACK * header["in_all"]
        deadline = min(began + seconds * (SLACK if own else 1), self.until)
        stdin, stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        ended = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(self.reply, selectors.EVENT_READ)
            with contextlib.suppress(ValueError, KeyError):
                selector.register(stdout, selectors.EVENT_READ)
            selector.register(stdin, selectors.EVENT_WRITE)
            while True:
                _go_on()
                left = deadline - time.monotonic()
                ready = [key for key, _ in selector.select(max(0, min(left, POLL_S)))]
                come = any(key.fd == self.reply for key in ready)
                if left <= 0 and not (come and left > -GRACE_S):
                    longest = min(began + STARVED * seconds * SLACK, self.latest)
                    if not own or time.monotonic() > longest or not self._is_starved():
                        raise self._too_slow(seconds, in_all=deadline == self.until)
                    # Other processes have had its time, and its processor's seconds are limited.
                    if deadline == self.until:
                        self.until = min(self.until + GRACE_S, self.latest)
                    deadline += GRACE_S
                for key in ready:
                    if key.fd == stdin:
                        try:
                            request = request[os.write(stdin, request[:65536]) :]
                        except BlockingIOError:
                            continue
                        except (BrokenPipeError, OSError):
                            request = request[:0]
                        if not request:
                            selector.unregister(stdin)
                    elif key.fd == stdout:
                        if self._drain(stdout) == b"":
                            selector.unregister(stdout)
                    else:
                        data = self._read(self.reply)
                        if data == b"":
                            raise self._end(seconds, began)
                        if data and (message := reader.feed(data)) is not None:
                            return message
                # A process that keeps the pipe open after the worker has ended may not answer.
                if self.process.poll() is not None:
                    ended = ended or time.monotonic()
                    if time.monotonic() - ended > GRACE_S:
                        raise self._end(seconds, began)

    def _is_starved(self) -> bool:
        """Does a process of this worker's have work to do, and wait for a processor or a disk?"""
        parents: dict[int, int] = {}
        running = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, parent = path.read_text().rpartition(") ")[2].split()[:2]
                pid = int(path.parent.name)
                parents[pid] = int(parent)
                running += [pid] if state in "RD" else []
        for pid in running:
            while pid in parents and pid != self.process.pid:
                pid = parents[pid]
            if pid == self.process.pid:
                return True
        return False

    @property
    def printed(self) -> str:
        """The last of what the answer printed."""
        return self.output.decode(errors="replace")[-2000:]

    def _read(self, fd: int) -> bytes | None:
        try:
            return os.read(fd, 65536)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _drain(self, fd: int) -> bytes | None:
        """Read what was printed, keep the first of it; return b"" at its end, None if none came."""
        data = self._read(fd)
        if data:
            room = self.limits.output - len(self.output)
            self.output += data[:room]
            self.dropped += len(data) - len(data[:room])
        return data

    def _end(self, seconds: float, began: float) -> Died | TooSlow:
        took = time.monotonic() - began
        # The pipe for replies may be seen to end before the last of the output is read.
        while len(self.output) < self.limits.output and self._drain(self.process.stdout.fileno()):
            pass
        how = self._how()
        if how.endswith(signal.SIGXCPU.name):
            return self._too_slow(seconds, in_all=took < seconds)
        return Died(how, self.printed)

    def _too_slow(self, seconds: float, in_all: bool) -> TooSlow:
        return TooSlow(self.in_all if in_all else seconds, in_all)

    def _how(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(GRACE_S)
            if status < 0:
                return sentence("crash: signal", signal=_signal(-status))
            if self.confined and status > 128:
                return sentence("crash: signal", signal=_signal(status - 128))
            return sentence("crash: status", status=status)
        return sentence("crash: closed")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
