"""kit/unsigned.py: `@unsigned` means casts by hand, to the compiler and to the interpreter."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import cuda

from tiled_matmul import ROOT
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.kit.variants import edited
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.kernel import jit
from tiled_matmul.microscope.written import function_of

ROWS, TILE = 8, 64

# The same kernel in both ways, by hand with loops as `kit.counted` makes them. Shapes of arrays and
# an index that is a constant have no casts.
KERNELS = """
from tiled_matmul.kit import backend
backend.select()
from numba import cuda, types, uint64
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.counted import narrowed
from tiled_matmul.kit.intrinsics import load4, store4
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.kit.variants import edited

ROWS, TILE = 8, 64

@cuda.jit(device=True)
@unsigned
def place(row, i):
    return row + i % 4 + i // 4 * (TILE // 2)

@cuda.jit(device=True)
def place_by_hand(row, i):
    return row + i % uint64(4) + i // uint64(4) * uint64(TILE // 2)

@unsigned
def quiet(a, c):
    tile = cuda.shared.array((ROWS, TILE), a.dtype, alignment=16)
    part = cuda.local.array((2, ROWS), a.dtype)
    M, N = c.shape
    K = a.size // M
    t = cuda.threadIdx.x
    top = cuda.blockIdx.y * TILE
    row = t // 16 * 4
    tile[t % ROWS, t // ROWS] = a[top + t // ROWS, min(K - 1, t % ROWS)] if t < 512 else 0
    cuda.syncthreads()
    for start in range(0, K, ROWS):
        for k in unroll(ROWS):
            for h in range(2):
                store4(part, (0, h * 4), load4(tile, (k, row + h * 32)))
            for i in range(ROWS):
                part[1, i] += part[0, i] * tile[k, start + (7 - i if k % 2 else i)]
    for i in range(ROWS):
        if place(row, i) < M and t < N:
            c[place(row, i), t] = part[1, i]

SIGNED

def by_hand(a, c):
    a = narrowed(a)
    c = narrowed(c)
    tile = cuda.shared.array((ROWS, TILE), a.dtype, alignment=16)
    part = cuda.local.array((2, ROWS), a.dtype)
    M, N = uint64(c.shape[0]), uint64(c.shape[1])
    K = uint64(a.size) // M
    t = uint64(cuda.threadIdx.x)
    top = uint64(cuda.blockIdx.y) * uint64(TILE)
    row = t // uint64(16) * uint64(4)
    tile[t % uint64(ROWS), t // uint64(ROWS)] = (
        a[top + t // uint64(ROWS), min(K - uint64(1), t % uint64(ROWS))] if t < uint64(512) else 0
    )
    cuda.syncthreads()
    at, end = uint64(0), K
    while at < end:
        start = at
        at += uint64(ROWS)
        for k in unroll(uint64(ROWS)):
            h_at, h_end = uint64(0), uint64(2)
            while h_at < h_end:
                h = h_at
                h_at += uint64(1)
                store4(part, (0, h * uint64(4)), load4(tile, (k, row + h * uint64(32))))
            i_at, i_end = uint64(0), uint64(ROWS)
            while i_at < i_end:
                i = i_at
                i_at += uint64(1)
                j = uint64(7) - i if k % uint64(2) else i
                part[1, i] += part[0, i] * tile[k, start + j]
    last_at, last_end = uint64(0), uint64(ROWS)
    while last_at < last_end:
        i = last_at
        last_at += uint64(1)
        if place_by_hand(row, i) < M and t < N:
            c[place_by_hand(row, i), t] = part[1, i]
"""

COMPILE = r"""
import json, re

def ptx(kernel):
    kind = types.Array(types.float32, 2, "C")
    text = cuda.compile_ptx(kernel.py_func, (kind, kind), cc=(9, 0))[0]
    names = {}
    name = lambda match: names.setdefault(match[0], f"name{len(names)}")
    return re.sub(r"\b_(ZN|cudapy)\w+", name, re.sub(r"//.*", "", text))

quiet_kernel = cuda.jit(max_registers=128)(unrolled(quiet))
hand_kernel = cuda.jit(max_registers=128)(unrolled(by_hand))
signed_kernel = cuda.jit(max_registers=128)(unrolled(signed))
pairs = {
    "as it is": (quiet_kernel, hand_kernel),
    "other constants": [with_constants(each, TILE=128) for each in (quiet_kernel, hand_kernel)],
    "edited": (edited(quiet_kernel, "t < N", "t > N"), edited(hand_kernel, "t < N", "t > N")),
    "signed": (signed_kernel, hand_kernel),
}
print(json.dumps({name: ptx(x) == ptx(y) for name, (x, y) in pairs.items()}))
"""


@pytest.mark.long
def test_the_compiler_makes_the_same_of_it_as_of_casts_by_hand(tmp_path):
    pytest.importorskip("cuda.bindings", reason="no compiler for CUDA without numba-cuda[cu13]")
    start, end = KERNELS.index("@unsigned\ndef quiet"), KERNELS.index("SIGNED")
    signed = KERNELS[start:end].replace("@unsigned\ndef quiet", "def signed")
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS.replace("SIGNED", signed) + COMPILE)
    environment = {**os.environ, "TILED_MATMUL_BACKEND": "compiler"}
    for name in ("NUMBA_ENABLE_CUDASIM", "TRITON_INTERPRET"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "as it is": True,
        "other constants": True,
        "edited": True,
        "signed": False,
    }


# --- the interpreter ------------------------------------------------------------------------------


@jit
@unsigned
def difference(x, out):
    i = cuda.threadIdx.x
    out[i] = 1 if i - TILE > x.size else 0


@jit
def signed_difference(x, out):
    i = cuda.threadIdx.x
    out[i] = 1 if i - TILE > x.size else 0


def test_a_difference_below_zero_wraps_around_in_the_interpreter_too():
    x, out = np.zeros(4), np.zeros(4, np.int32)
    trace(difference, 1, 4, x, out)
    assert out.tolist() == [1] * 4
    trace(with_constants(difference, TILE=2), 1, 4, x, out)
    assert out.tolist() == [1, 1, 0, 0]
    trace(signed_difference, 1, 4, x, out)
    assert out.tolist() == [0] * 4


@jit
@unrolled
@unsigned
def sums(x, out):
    rows, columns = x.shape
    i = cuda.threadIdx.x
    total = 0
    for k in unroll(3):
        total += x[i, columns - 1 - k]
    if i < rows:
        out[i] = total


def test_findings_and_sites_quote_what_was_written():
    x, out = np.arange(20).reshape(4, 5), np.zeros(4, np.int64)
    t = trace(sums, 1, 4, x, out)
    assert out.tolist() == [9, 24, 39, 54] and not t.findings
    assert "x[i, columns - 1 - k]" in {site.text for site in t.sites}
    wrong = edited(sums, "columns - 1 - k", "columns - 6 + k")
    (finding,) = trace(wrong, 1, 1, x, out).findings
    assert finding.texts == ("total += x[i, columns - 6 + k]",)
    assert finding.index == (0, 2**64 - 1)


def test_variants_and_copies_with_other_constants_stay_unsigned_and_unrolled():
    for kernel in (edited(sums, "total = 0", "total = 1"), with_constants(difference, TILE=2)):
        assert "_uint64" in kernel.py_func.__code__.co_freevars
    assert hasattr(edited(sums, "total = 0", "total = 1").py_func, "is_unrolled")
    assert not hasattr(with_constants(difference, TILE=2).py_func, "is_unrolled")
    assert function_of(sums).__code__.co_firstlineno == sums.py_func.__code__.co_firstlineno


# --- what it refuses ------------------------------------------------------------------------------


def negative(out):
    out[0] = len(out) * -1


def by_grid(out):
    out[cuda.grid(1)] = 0


def too_early(out):
    out[0] = out[0] + NOT_YET  # noqa: F821


@unrolled
def copies(out):
    for k in unroll(2):
        out[k] = k


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (negative, r"never negative, line \d+ of negative: out\[0\] = len\(out\) \* -1"),
        (by_grid, r"cuda.grid has a sign.*, line \d+ of by_grid"),
        (too_early, r"NOT_YET is not defined yet, line \d+ of too_early"),
        (copies, "copies: @unsigned stands right above the kernel"),
    ],
)
def test_what_has_a_sign_is_refused_with_its_line(function, message):
    with pytest.raises(ValueError, match=message):
        unsigned(function)
