"""kit/unroll.py: loops are marked, the compiler unrolls them, and what cannot be is refused."""

import dis
import inspect
import linecache
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda

from tiled_matmul import ROOT
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.unroll import MARKS, unroll, unrolled
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.kernel import jit

STEPS = 3


def written(out):
    for k in unroll(STEPS):
        for i in unroll(1, 8, 2):
            if i > k:
                out[i] = k
        for m in range(9):
            if m == 1:
                break


def test_loops_over_unroll_are_marked_and_others_are_not():
    marked = unrolled(written)
    steps = [f"{step.opname} {step.argval}" for step in dis.get_instructions(marked)]
    for name in MARKS:
        assert steps.count(f"LOAD_DEREF {name}") == 2
    assert "LOAD_GLOBAL range" in steps and "unroll" not in marked.__code__.co_names


def test_it_is_the_same_function_to_whoever_asks():
    marked = unrolled(written)
    assert marked.as_written is written
    assert inspect.getsource(marked) == inspect.getsource(written)
    assert inspect.signature(marked) == inspect.signature(written)
    assert (marked.__module__, marked.__qualname__) == (__name__, "written")


def test_names_of_an_enclosing_function_are_known_and_kept():
    turns, scale = 2, 10

    def inner(out):
        for k in unroll(turns):
            out.append(k * scale)

    kept = dict(zip(inner.__code__.co_freevars, inner.__closure__, strict=True))
    marked = unrolled(inner)
    cells = dict(zip(marked.__code__.co_freevars, marked.__closure__, strict=True))
    assert all(cells[name] is kept[name] for name in ("turns", "scale"))


def test_lines_are_those_that_were_written():
    lines = {line for *_, line in unrolled(written).__code__.co_lines() if line}
    assert lines == {line for *_, line in written.__code__.co_lines() if line}


def leaves(out):
    for _ in unroll(2):
        if out:
            break


def goes_on(out):
    for _ in unroll(2):
        with out:
            continue


def otherwise(out):
    for _ in unroll(2):
        pass
    else:
        out.append(1)


def two_names(out):
    for _, _j in unroll(2):
        pass


def not_constant(out):
    for _ in unroll(len(out)):
        pass


def of_an_index(out):
    for k in unroll(2):
        for _ in unroll(k):
            pass


def not_whole(out):
    for _ in unroll(2.0):
        pass


def no_end(out):
    for _ in unroll():
        pass


def too_many(out):
    for _ in unroll(5000):
        pass


def elsewhere(out):
    turns = unroll(3)
    for _ in turns:
        pass


def nothing(out):
    for _ in range(3):
        pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (leaves, r"can have no break, line \d+ of leaves: break"),
        (goes_on, r"can have no continue, line \d+ of goes_on: continue"),
        (otherwise, r"without else, line \d+ of otherwise: for _ in unroll"),
        (two_names, "over one name.* for _, _j in"),
        (not_constant, r"constants \(name 'out' is not defined\), line .* unroll\(len\(out\)\)"),
        (of_an_index, r"constants \(name 'k' is not defined\), line"),
        (not_whole, "are ints, got 2.0, line"),
        (no_end, "one to three numbers, line"),
        (too_many, "5000 copies are more than 1024, line"),
        (elsewhere, r"only, line \d+ of elsewhere: turns = unroll\(3\)"),
        (nothing, "nothing has no loop over unroll"),
    ],
)
def test_what_cannot_be_unrolled_is_refused_with_its_line(function, message):
    with pytest.raises(ValueError, match=message):
        unrolled(function)


# --- kernels --------------------------------------------------------------------------------------


@jit
@unrolled
def sums(x, out):
    i = cuda.grid(1)
    total = 0
    for k in unroll(STEPS):
        total += x[i, k]
    out[i] = total


def test_the_interpreter_runs_what_was_written():
    x, out = np.arange(20).reshape(4, 5), np.zeros(4, np.int64)
    t = trace(sums, 1, 4, x, out)
    assert out.tolist() == [3, 18, 33, 48] and not t.findings
    assert t.global_loads.requests == STEPS
    assert {s.source for s in t.sites} == {"total += x[i, k]", "out[i] = total"}


def test_other_constants_give_other_copies():
    x, out = np.arange(20).reshape(4, 5), np.zeros(4, np.int64)
    other = with_constants(sums, STEPS=5)
    assert trace(other, 1, 4, x, out).global_loads.requests == 5
    assert out.tolist() == [10, 35, 60, 85]


def test_a_notebook_cell_is_found():
    text = (
        "from numba import cuda\n"
        "from tiled_matmul.kit.unroll import unroll, unrolled\n"
        "@cuda.jit\n"
        "@unrolled\n"
        "def cell(out):\n"
        "    for k in unroll(4):\n"
        "        out[k] = k\n"
    )
    name = "<a notebook's cell>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space = {}
    exec(compile(text, name, "exec"), space)
    out = np.zeros(4, np.int64)
    assert not trace(space["cell"], 1, 1, out).findings and out.tolist() == [0, 1, 2, 3]


COMPILE = """
from tiled_matmul.kit import backend
backend.select()
from numba import cuda, float32, types, uint64
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.unroll import unroll, unrolled

STEPS = 8

def kernel(x, y, out):
    i = uint64(cuda.threadIdx.x)
    total = cuda.local.array((8, 8), float32)
    for m in range(8):
        for n in range(8):
            total[m, n] = 0
    for tile in range(len(x)):
        for k in unroll(uint64(STEPS)):
            for m in range(uint64(8)):
                for n in range(uint64(8)):
                    total[m, n] += x[tile, k, m] * y[tile, k, n]
    for m in range(8):
        for n in range(8):
            out[i, m, n] = total[m, n]

def ptx(kernel):
    three = types.Array(types.float32, 3, "C")
    return cuda.compile_ptx(kernel.py_func, (three,) * 3, cc=(9, 0))[0]

def multiplications(kernel):
    return ptx(kernel).count("fma.rn.f32")

copies = cuda.jit(max_registers=128)(unrolled(kernel))
other = with_constants(copies, STEPS=4)
print(multiplications(copies), multiplications(other), other.targetoptions["max_registers"])

def nested(x, y, out):
    total = cuda.local.array((8, 16), float32)
    for i in unroll(8):
        for j in unroll(16):
            total[i, j] = 0
    for tile in range(len(x)):
        for i in unroll(8):
            for j in unroll(16):
                if i != j:
                    total[i, j] += x[tile, 0, i] * y[tile, 0, j]
        for j in unroll(16):
            total[0, j] += x[tile, 1, j] * y[tile, 1, j]
    for i in unroll(8):
        for j in unroll(16):
            out[0, i, j] = total[i, j]
in_memory = "local_depot" in ptx(cuda.jit(max_registers=128)(unrolled(nested)))
print("local memory" if in_memory else "registers")

@cuda.jit
@unrolled
def wrong(x, y, out):
    for k in unroll(2):
        out[0] = missing
try:
    multiplications(wrong)
except Exception as error:
    print(error)
"""


@pytest.mark.long
def test_the_compiler_gets_straight_code(tmp_path):
    pytest.importorskip("cuda.bindings", reason="no compiler for CUDA without numba-cuda[cu13]")
    file = tmp_path / "kernels.py"
    file.write_text(COMPILE)
    environment = {**os.environ, "TILED_MATMUL_BACKEND": "compiler"}
    for name in ("NUMBA_ENABLE_CUDASIM", "TRITON_INTERPRET"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    counts, nested, *message = done.stdout.splitlines()
    assert counts.split() == [str(8 * 64), str(4 * 64), "128"]
    assert nested == "registers"
    assert "'missing' is not defined" in " ".join(message)
