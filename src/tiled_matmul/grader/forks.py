"""Ask a `nursery` for workers, each in a sandbox of its own."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

START_S = 120.0  # Triton and torch may come from a slow disk
LAST_WAIT_S = 5.0
NS_GET_USERNS = 0xB701  # of ioctl: the user namespace whose root may enter this one
SPACES = ("mnt", "pid", "ipc", "net", "uts", "cgroup", "user")  # in this order they are entered
HOLDER = ["sh", "-c", "echo; exec cat"]  # stays in a sandbox until its input ends


class NotForked(Exception):
    """No worker could be forked here; one that is started by itself may run."""


@contextlib.contextmanager
def out_of_reach() -> Iterator[None]:
    """Block SIGINT in this thread and what it starts: Ctrl-C is the grader's alone.

    It would reach a child in the moment before that has a session of its own.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Nursery:
    """The process that forks workers of one kind. `environment` is theirs."""

    def __init__(self, kind: str, environment: Mapping[str, str]) -> None:
        self.lock = threading.Lock()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, out_of_reach():
            program = [sys.executable, "-m", "tiled_matmul.grader.nursery"]
            self.process = subprocess.Popen(
                [*program, str(theirs.fileno()), kind],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env=dict(environment),
                umask=0o022,
            )
        self.control.settimeout(START_S)
        try:
            ready = self.control.recv(16)
        except OSError as error:
            self.close()
            raise NotForked(f"the nursery did not start: {error}") from None
        if ready != b"ready":
            self.close()
            raise NotForked("the nursery did not start")

    def fork(self, request: dict, fds: Sequence[int]) -> int:
        """Return the number of a new process."""
        with self.lock:
            try:
                socket.send_fds(self.control, [json.dumps(request).encode()], fds)
                pid = self.control.recv(16)
            except OSError as error:
                raise NotForked(f"the nursery does not answer: {error}") from None
        if not pid:
            raise NotForked("the nursery has ended")
        return int(pid)

    def close(self) -> None:
        """End the nursery; its workers go on."""
        self.control.close()
        try:
            self.process.wait(LAST_WAIT_S)  # it ends itself, and removes its folder
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Space:
    """An empty sandbox, made by `command`, bubblewrap with its arguments. Leaving it ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        told, tell = os.pipe()
        try:
            with out_of_reach():
                self.process = subprocess.Popen(
                    [*command, "--info-fd", str(tell), *HOLDER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[tell],
                    start_new_session=True,
                    env={"PATH": "/usr/bin:/bin"},
                    bufsize=0,
                )
        except OSError as error:
            os.close(told)
            raise NotForked(f"no sandbox: {error}") from None
        finally:
            os.close(tell)
        self.fds: list[int] = []
        try:
            with open(told, "rb") as file:
                # The line comes when everything is in its place.
                if self.process.stdout.read(1) != b"\n":
                    raise NotForked("no sandbox")
                first = json.loads(os.read(file.fileno(), 4096))["child-pid"]
            for name in SPACES:
                with contextlib.suppress(FileNotFoundError):  # a Linux without this kind
                    fd = os.open(f"/proc/{first}/ns/{name}", os.O_RDONLY)
                    if name == "mnt":
                        # Who may enter: bubblewrap made it before the last user namespace.
                        self._keep(fcntl.ioctl(fd, NS_GET_USERNS), "user")
                    self._keep(fd, name)
        except (OSError, ValueError, KeyError, NotForked) as error:
            self.close()
            raise NotForked(f"no sandbox to enter: {error}") from None

    def _keep(self, fd: int, name: str) -> None:
        """Keep a namespace of the kind `name`, if it is not this process's own or kept already."""
        known = [os.stat(f"/proc/self/ns/{name}"), *map(os.fstat, self.fds)]
        if any(os.path.samestat(os.fstat(fd), one) for one in known):
            os.close(fd)
        else:
            self.fds.append(fd)

    def opened(self) -> None:
        """Forget the way into the sandbox: the one who was to enter is inside."""
        while self.fds:
            os.close(self.fds.pop())

    def close(self) -> None:
        """End all processes in the sandbox."""
        self.opened()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


class Forked:
    """A worker that a nursery has forked, with the attributes of subprocess.Popen.

    `pid` is the number of a process that stays until this is closed: the worker's parent.
    """

    def __init__(
        self, nursery: Nursery, space: Space | None, reply: int, folder: str, environment: Mapping
    ) -> None:
        (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
        (self._status, status), (lifeline, self._lifeline) = os.pipe(), os.pipe()
        self.stdin: Any = open(to_stdin, "wb", buffering=0)
        self.stdout: Any = open(from_stdout, "rb", buffering=0)
        self.space, self.returncode = space, None
        theirs = [stdin, stdout, reply, status, lifeline]
        request = {"folder": folder, "environment": dict(environment), "spaces": space is not None}
        self.pid = 0
        try:
            self.pid = nursery.fork(request, [*theirs, *(space.fds if space else ())])
        except NotForked:
            self.close()
            raise
        finally:
            for fd in (stdin, stdout, status, lifeline):
                os.close(fd)
        if space is not None:
            space.opened()

    def poll(self) -> int | None:
        """Return how the worker ended, as Popen does, or None."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, seconds: float = 0) -> int:
        """Return how the worker ended. Raises subprocess.TimeoutExpired if it has not in time."""
        if self.returncode is None and self._status < 0:
            self.returncode = -signal.SIGKILL  # it was closed, and nobody looked before
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(seconds):
                    raise subprocess.TimeoutExpired("a worker", seconds)
            # Nothing comes from a parent that was killed as well.
            self.returncode = int(os.read(self._status, 16) or -signal.SIGKILL)
        return self.returncode

    def kill(self) -> None:
        """End the worker and all that it began."""
        if self.space is not None:
            self.space.close()
        if self.pid > 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End everything, and close all pipes."""
        self.kill()
        if self.pid > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.wait(LAST_WAIT_S)
        self.pid = 0  # when the pipes are closed, the number may be another process's
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        for fd in (self._status, self._lifeline):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._status = self._lifeline = -1
