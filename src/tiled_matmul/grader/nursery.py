"""The process that forks workers: `python -m tiled_matmul.grader.nursery FD KIND`.

It has imported what answers of its kind need, so that a worker begins in milliseconds and not in
seconds. It never runs a learner's code: each worker is a copy of it, which first enters the sandbox
that the request brings. Requests come on the socket FD; `forks` sends them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Iterator
from typing import Any, NoReturn

from tiled_matmul.grader import builds, kinds, worker

MOST_BYTES = 1 << 16
PIPES = ("stdin", "stdout", "reply", "status", "lifeline")  # a request's descriptors; then spaces
MOST_SPACES = 8
CLOSED = 4096  # beyond every descriptor of a nursery's
NO_NEW_PRIVS, READ_BOUNDS, DROP_FROM_BOUNDS = 38, 23, 24  # of prctl
RIGHTS_VERSION = 0x20080522


def main() -> None:
    """Serve requests until the socket is closed."""
    control, kind = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    control.set_inheritable(False)
    given = kinds.prepare(kind)
    control.send(b"ready")
    warm = False
    while True:
        request, fds, _, _ = socket.recv_fds(control, MOST_BYTES, len(PIPES) + MOST_SPACES)
        _reap()
        if not request:
            return
        pid = os.fork()
        if not pid:
            _become_a_worker(json.loads(request), fds, given)
        for fd in fds:
            os.close(fd)
        control.send(str(pid).encode())
        if not warm and kind in worker.KERNELS:
            # The first worker runs meanwhile; the next ones find a compiler that is ready.
            _compile_once(kind)
            warm = True


def _compile_once(kind: str) -> None:
    from tiled_matmul.grader import pool

    with contextlib.suppress(Exception), pool.scratch() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        builds.warm_up(kind)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _become_a_worker(request: dict, fds: list[int], given: dict[str, Any]) -> NoReturn:
    """Enter the sandbox, and run a worker in a process of its own, which alone is inside of it."""
    try:
        pipes = dict(zip(PIPES, fds, strict=False))
        os.setsid()
        os.dup2(pipes["stdin"], 0)
        os.dup2(pipes["stdout"], 1)
        os.dup2(pipes["stdout"], 2)
        for space in fds[len(PIPES) :]:
            _checked("setns", space, 0)
        inner = os.fork()  # only a child is among the sandbox's processes
        if inner:
            _wait_for(inner, pipes["status"], pipes["lifeline"])
        _keep_only(0, 1, 2, pipes["reply"])
        os.chdir(request["folder"])
        os.environ.update(request["environment"])
        if request["spaces"]:
            _checked("prctl", NO_NEW_PRIVS, 1, 0, 0, 0)
            for right in _known_rights():
                _checked("prctl", DROP_FROM_BOUNDS, right, 0, 0, 0)
        worker.serve(pipes["reply"], given, _without_rights if request["spaces"] else None)
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _wait_for(inner: int, status: int, lifeline: int) -> NoReturn:
    """Report how the worker ended, then stay until the grader has read it.

    As long as this process is there, no other one gets its number, by which the grader kills it.
    """
    _keep_only(status, lifeline)
    _, how = os.waitpid(inner, 0)
    os.write(status, str(os.waitstatus_to_exitcode(how)).encode())
    os.close(status)
    os.read(lifeline, 1)
    os._exit(0)


def _keep_only(*fds: int) -> None:
    begin = 0
    for fd in (*sorted(fds), CLOSED):
        if begin < fd:  # closerange(0, 0) closes everything
            os.closerange(begin, fd)
        begin = fd + 1


def _known_rights() -> Iterator[int]:
    """Yield the number of each capability that this Linux has."""
    libc = ctypes.CDLL(None)
    right = 0
    while libc.prctl(READ_BOUNDS, right, 0, 0, 0) >= 0:
        yield right
        right += 1


def _without_rights() -> None:
    """Give up every capability."""
    _checked("capset", struct.pack("Ii", RIGHTS_VERSION, 0), bytes(24))


def _checked(function: str, *arguments: Any) -> None:
    """Call a function of the C library. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{function}: {os.strerror(error)}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's: it ends this process
    main()
    os._exit(0)  # at once: there is nothing to write, and Python would first take all apart
