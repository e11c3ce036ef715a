"""Short kernels as text: make functions of them, and ask Numba's compiler which it takes."""

import linecache
import math
import pickle
import sys

import numpy as np

HEAD = "def kernel(out, a, b, n):\n"


def forms(text):
    """Return {name: body} of a text in which each form begins with the line `# name`."""
    parts = text.strip().removeprefix("# ").split("\n# ")
    return {name: body for name, _, body in (part.partition("\n") for part in parts)}


def function(body, above, cuda, **names):
    """Return `kernel(out, a, b, n)` with this body; `above` stands above it in its file."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"{above}\n{HEAD}{lines}"
    file = f"<form {abs(hash(source))} {id(cuda)}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    types = {name: getattr(np, name) for name in ("float32", "float64", "int32", "int64")}
    space = {"cuda": cuda, "np": np, "math": math, **types, **names}
    exec(compile(source, file, "exec"), space)
    return space["kernel"]


def refusals(bodies, above):
    """Return {body: the compiler's error, or None}; it needs a process whose Numba compiles."""
    from numba import cuda, types

    from tiled_matmul.microscope.compiled.cuda import NoCompiler, cubin

    signature = (types.float64[:, ::1], *(types.float32[:, ::1],) * 2, types.int64)
    found = {}
    for body in bodies:
        try:
            cubin(cuda.jit(function(body, above, cuda)), signature, (9, 0))
            found[body] = None
        except NoCompiler:
            raise
        except Exception as error:  # Numba raises many types, AssertionError and KeyError too
            found[body] = f"{type(error).__name__}: {error}"
    return found


def main():
    """Answer a question on the standard input, as `compiled.cuda.elsewhere` asks it."""
    from tiled_matmul.machine import backend

    backend.select()
    from tiled_matmul.microscope.compiled.cuda import NoCompiler

    ask, bodies, above = pickle.load(sys.stdin.buffer)
    try:
        answer = ask(bodies, above)
    except NoCompiler as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
