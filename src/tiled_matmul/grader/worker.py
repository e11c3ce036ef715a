"""The process that runs a learner's code: `python -m tiled_matmul.grader.worker FD`.

Requests come on standard input, replies go to the file descriptor FD, as `wire` says. The first
request holds the limits and the answer; each one after it is a case. What the learner's code
prints goes to standard output, and is the grader's to keep or to drop. Nobody believes a worker:
what it sends is judged by a process that never runs a learner's code.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import math
import os
import re
import resource
import sys
import traceback
from typing import Any

from tiled_matmul.grader import kinds, wire

ANSWER = "<answer>"
MOST_TEXT = 2000
MOST_BYTES = 256 << 20


def main() -> None:
    """Serve requests until there are none."""
    out = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
    requests = sys.stdin.buffer
    got = wire.read_from(requests.read, MOST_BYTES)
    if got is None:
        return
    request, _ = got
    _give_up_rights(request)
    given = kinds.prepare(request["kind"])
    space = dict(given)
    _limit(request)
    wire.send(out, {"ready": True})
    while (got := wire.read_from(requests.read, MOST_BYTES)) is not None:
        header, blobs = got
        _allow(header["seconds"])
        try:
            if "source" in header:
                space = _defined(given, header)
                reply: Any = {"defined": True}, []
            else:
                space.update(kinds.given(header))
                reply = kinds.run(header["kind"], space, header, blobs)
        except BaseException as error:  # SystemExit too
            reply = {"error": _described(error)}, []
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        wire.send(out, *reply)


def _defined(space: dict[str, Any], header: dict) -> dict[str, Any]:
    """Return a namespace in which the answer has been defined."""
    source = header["source"]
    lines = re.split(r"(?<=\n)", source)  # as Python does: no other character ends a line
    # The interpreter of kernels reads their source, as inspect finds it.
    linecache.cache[ANSWER] = (len(source), None, lines, ANSWER)
    made = {**space, **kinds.given(header), "__name__": "answer"}
    exec(compile(source, ANSWER, "exec"), made)
    if not callable(getattr(made.get(header["entry"]), "__getitem__", made.get(header["entry"]))):
        raise NameError(f"the cell defines no {header['entry']}")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and not _reads_as(made.get(node.name), node):
            raise SyntaxError(f"{node.name} can be read as another function than the one that runs")
    return made


def _reads_as(made: Any, node: ast.FunctionDef) -> bool:
    """Do the interpreters, which look for a function's source, find what Python has compiled?

    Triton's takes the last line that begins with "def ", wherever it stands.
    """
    function = getattr(made, "py_func", getattr(made, "fn", made))
    try:
        lines, _ = inspect.getsourcelines(function)
        (read,) = ast.parse("".join(lines)).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    heads = sum(line.strip().startswith("def ") for line in lines)
    return heads <= 1 and ast.dump(read) == ast.dump(node)


def _described(error: BaseException) -> dict:
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


def _give_up_rights(request: dict) -> None:
    """Become a user of no rights, where this is root's process in a sandbox."""
    user = request.get("user")
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def _allow(seconds: float) -> None:
    """Let this process end after so many seconds more, of a processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))


def _limit(request: dict) -> None:
    """Limit memory, processes, files and what is left behind by a crash."""
    for what, most in (
        (resource.RLIMIT_AS, request["memory"]),
        (resource.RLIMIT_NPROC, request["processes"]),
        (resource.RLIMIT_FSIZE, 16 << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        if most is None:
            continue
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
