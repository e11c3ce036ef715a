"""The process that runs a learner's code: `python -m tiled_matmul.grader.worker FD`.

Requests come on standard input and replies go to the file descriptor FD, in the format of `wire`.
The first request holds the limits, the next one the answer, and each one after that a case. The
learner's code prints to standard output, which the grader keeps or drops. A worker's replies are
not trusted: a process that never runs a learner's code judges them.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import inspect
import linecache
import math
import os
import re
import resource
import sys
import traceback
import types
from collections.abc import Callable
from functools import cache
from typing import Any

from tiled_matmul.grader import kinds, wire
from tiled_matmul.grader.messages import sentence
from tiled_matmul.grader.own import CHECK, checked, guard

ANSWER = "<answer>"
KERNELS = ("cuda", "triton")  # the kinds whose interpreters read the source again
MOST_TEXT = 2000
MOST_BYTES = 256 << 20


def main() -> None:
    """Serve requests until there are none."""
    serve(int(sys.argv[1]))


def serve(
    reply: int,
    given: dict[str, Any] | None = None,
    give_up_rights: Callable[[], None] | None = None,
) -> None:
    """Serve requests, and send the replies to the file descriptor `reply`.

    `given` is the namespace of the kind's answers, if it has been prepared; `give_up_rights` gives
    up the rights of one who sets up a sandbox.
    """
    out = os.fdopen(reply, "wb", buffering=0)
    requests = sys.stdin.buffer
    received = wire.read_from(requests.read, MOST_BYTES)
    if received is None:
        return
    request, _ = received
    _switch_user(request)
    if give_up_rights is not None:
        give_up_rights()
    given = kinds.prepare(request["kind"]) if given is None else given
    space, answer, constants = dict(given), {}, {}
    _limit(request)
    wire.send(out, {"ready": True})
    end = math.inf
    while (received := wire.read_from(requests.read, MOST_BYTES)) is not None:
        header, blobs = received
        if "in_all" in header:
            end = _used() + header["in_all"]
        _allow_until(min(_used() + header["seconds"], end))
        try:
            if "source" in header:
                answer, constants = header, header["given"]
                space = _defined(given, answer, request["kind"])
                reply: Any = {"defined": True}, []
            else:
                if answer and header.get("given", constants) != constants:
                    # The answer may compute constants of its own from those of the case.
                    constants = header["given"]
                    answer = answer | {"given": constants}
                    space = _defined(given, answer, request["kind"])
                reply = kinds.run(header["kind"], space, header, blobs)
        except BaseException as error:  # SystemExit too
            reply = {"error": _described(error)}, []
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        wire.send(out, *reply)


def _defined(space: dict[str, Any], header: dict, kind: str) -> dict[str, Any]:
    """Return a namespace in which the answer has been defined."""
    source = header["source"]
    lines = re.split(r"(?<=\n)", source)  # Python ends a line at no other character
    # The kernel interpreters read the source through inspect, which looks here.
    linecache.cache[ANSWER] = (len(source), None, lines, ANSWER)
    made = {**space, **kinds.given(header), "__name__": "answer"}
    sys.modules.setdefault("answer", types.ModuleType("answer"))  # for dataclasses
    code: Any = source
    if header.get("guarded"):
        code, made[CHECK] = checked(source), guard(space)
    exec(compile(code, ANSWER, "exec"), made)
    if not callable(getattr(made.get(header["entry"]), "__getitem__", made.get(header["entry"]))):
        raise NameError(sentence("error: no entry", entry=header["entry"]))
    for name, tree in _functions(source) if kind in KERNELS else ():
        if not _reads_as(made.get(name), tree):
            raise SyntaxError(sentence("error: second reading", name=name))
    return made


@cache
def _functions(source: str) -> list[tuple[str, str]]:
    """Return the name and the syntax tree, as text, of each function that a source defines.

    An answer is defined again for each new constant, and its trees stay the same.
    """
    body = ast.parse(source).body
    return [(node.name, ast.dump(node)) for node in body if isinstance(node, ast.FunctionDef)]


def _reads_as(made: Any, tree: str) -> bool:
    """Does a function's source, as the interpreters find it, match the code that Python compiled?

    Triton's interpreter takes the last line that begins with "def ", wherever it stands.
    """
    function = getattr(made, "py_func", getattr(made, "fn", made))
    try:
        lines, _ = inspect.getsourcelines(function)
        ((_, read),) = _functions("".join(lines))
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    heads = sum(line.strip().startswith("def ") for line in lines)
    return heads <= 1 and read == tree


def _described(error: BaseException) -> dict:
    """Return an exception's type, message and line as a reply reports them."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == ANSWER]
    try:
        message = str(error)
    except Exception:
        message = ""
    return {
        "type": type(error).__name__[:80],
        "message": message[:MOST_TEXT],
        "line": lines[-1] if lines else 0,
    }


def _switch_user(request: dict) -> None:
    """Switch to the user without rights that the request names; only root's sandbox names one."""
    user = request.get("user")
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


KEYRINGS = {"x86_64": 250, "aarch64": 219}  # the number of keyctl
KEYCTL_JOIN_SESSION_KEYRING = 1


def _used() -> float:
    """Return the seconds of a processor that this process has taken."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _allow_until(seconds: float) -> None:
    """Limit this process to so many seconds of a processor since its start."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = math.ceil(seconds)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _limit(request: dict) -> None:
    """Limit memory, processes and files, forbid core dumps, and leave the user's keyring."""
    join = KEYRINGS.get(os.uname().machine)
    if join is not None:
        ctypes.CDLL(None).syscall(join, KEYCTL_JOIN_SESSION_KEYRING, None)
    for limit, most in (
        # On macOS all libraries of the system are in the address space: any limit is too small.
        (resource.RLIMIT_AS, request["memory"] if sys.platform == "linux" else None),
        (resource.RLIMIT_NPROC, request["processes"]),
        (resource.RLIMIT_FSIZE, 16 << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        if most is None:
            continue
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    main()
