"""`python -m tiled_matmul trace`: rungs and files under the microscope, mistakes in one line."""

import re
import textwrap

import pytest

from tiled_matmul.__main__ import main

KERNELS = """
from numba import cuda, float32

@cuda.jit
def double(x, y, factor):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * factor

@cuda.jit
def unguarded(x):
    x[cuda.grid(1)] = 1

@cuda.jit
def reversed_in_tiles(x, y):
    s = cuda.shared.array(0, float32)
    i = cuda.threadIdx.x
    s[i] = x[i]
    y[i] = s[31 - i]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(textwrap.dedent(KERNELS))
    return str(path)


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    status = main(["trace", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_rung(capsys):
    status, out, _ = run(capsys, "cuda_coalesced", "--shape", "20x35x9", "--by", "line")
    assert status == 0
    assert "cuda_coalesced_kernel, grid (3, 2, 1), block (16, 16, 1): 0 findings" in out
    assert "a[row, k]" in out and "wavefronts" not in out


def test_a_rung_in_triton_has_another_tracer(capsys):
    status, out, err = run(capsys, "triton_swizzled")
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert "has tiles and no threads; tiled_matmul.trace_tiles traces it" in err


def test_a_rung_in_gluon(capsys):
    given = "gluon_persistent", "--shape", "200x100x130", "--dtype", "float16"
    status, out, _ = run(capsys, *given, "--by", "line")
    assert status == 0 and out.startswith(
        "gluon_persistent_kernel: 2 programs\nEvery access is ordered"
    )
    assert "product" in out and "a_tiles" in out
    assert run(capsys, *given, "--order", "shuffle", "--seed", "3")[0] == 0
    cluster = "gluon_cluster", "--shape", "264x264x520", "--dtype", "float16"
    assert run(capsys, *cluster)[1].startswith("gluon_cluster_kernel: 4 programs of 2 blocks")
    status, out, err = run(capsys, *given, "--order", "reverse")
    assert (status, out) == (2, "") and "forward or shuffle, got 'reverse'" in err
    status, out, err = run(capsys, *given, "--by", "warp")
    assert status == 2 and "views by line and by array" in err
    status, out, err = run(capsys, "gluon_persistent", "--dtype", "float32")
    assert (status, out) == (2, "") and "launches no kernel in Gluon" in err


def test_a_kernel_of_a_file(capsys, file):
    arguments = ("--grid", "2", "--block", "32", "--args", "float32[40]", "float32[40]=0", "2")
    status, out, _ = run(capsys, f"{file}:double", *arguments, "--by", "warp")
    assert status == 0 and "double, grid (2, 1, 1)" in out
    assert out.count("\n   1 ") == 0 and out.rstrip().splitlines()[-1].split()[:3] == [
        "0",
        "4",
        "80",
    ]


def test_what_is_wrong_is_the_exit_status(capsys, file):
    status, out, _ = run(capsys, f"{file}:unguarded", "--grid=2", "--block=8", "--args", "int32[9]")
    line = 1 + textwrap.dedent(KERNELS).splitlines().index("    x[cuda.grid(1)] = 1")
    assert status == 1 and f"writes x[9] in line {line}, and the shape of x is [9]" in out


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle"])
def test_orders_and_dynamic_shared_memory(capsys, file, order):
    arguments = ("--grid=1", "--block=32", "--sharedmem=128", f"--order={order}", "--args")
    arrays = ("float32[32]", "float32[32]=0")
    status, out, _ = run(capsys, f"{file}:reversed_in_tiles", *arguments, *arrays)
    assert status == 1 and "with no barrier between them" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.py:kernel"], "there is no file 'nothing.py'"),
        (["njit_ikj"], "njit_ikj runs on the CPU"),
        (["fast"], "unknown rung 'fast'"),
        (["cuda_naive", "--grid=2"], "cuda_naive is a rung and launches itself"),
        (["cuda_naive", "--shape=4x4"], "4x4"),
        (["{file}:triple"], "has no 'triple'; its kernels: double, unguarded, reversed_in_tiles"),
        (["{file}:double"], "needs --grid and --block"),
        (["{file}:double", "--grid=2,a", "--block=1"], "--grid must be numbers with commas"),
        (["{file}:double", "--grid=0", "--block=1"], "double takes 3 arguments|grid x must be"),
        (["{file}:unguarded", "--grid=1", "--block=1", "--args", "int[x"], "'int[x' is neither"),
        (["{file}:unguarded", "--grid=1", "--block=1", "--args", "real[4]"], "has no dtype"),
        (["{file}:unguarded", "--grid=1", "--block=1", "--args", "complex64[4]"], "complex64"),
        (["cuda_naive", "--order=up"], "got 'up'"),
    ],
)
def test_mistakes_are_one_line(capsys, file, arguments, message):

    status, out, err = run(capsys, *(text.replace("{file}", file) for text in arguments))
    assert status == 2 and out == ""
    assert err.count("\n") == 1 and re.search(message.replace("[", r"\["), err), err
