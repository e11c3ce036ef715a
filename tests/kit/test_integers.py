"""kit/integers.py: unsigned kernels have loops that count and C's integers, and mean the same."""

import ast
import inspect

import numpy as np
import pytest
import torch
from numba import cuda, types

from tiled_matmul.check import run_checked
from tiled_matmul.kit import integers
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import launch
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.kit.variants import edited
from tiled_matmul.ladder import cuda_coalesced, cuda_naive, cuda_shared_tiles
from tiled_matmul.microscope.compiled.cuda import NoCompiler, compiled_all
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.kernel import jit
from tiled_matmul.microscope.cuda.source import read
from tiled_matmul.microscope.cuda.unsigned import MARK
from tiled_matmul.microscope.written import function_of

STEP = 3

# --- the tree -------------------------------------------------------------------------------------


def jumps(n, out):
    """A docstring stays the first statement."""
    for k in range(n):
        if k == 2:
            continue
        if k == 7:
            break
        n = 100  # the end was taken once
        out.append(k)
    out.append(k)


def nested(n, out):
    for i in range(1, n):
        for j in range(i, n, STEP):
            out.append((i, j))
            j = 50
        out.append(j)
    out.append((i, n))


def kept(n, out):
    for k in range(n):
        out.append(k)
    else:
        out.append("all")
    for i, k in enumerate(list(out)):
        out.append((i, k))


def sums(n, out):
    total = 1
    total += n * 3 - n // 2 + n % 5
    total -= 2
    out.append(total)
    out.append(2.5 * n)


PYTHON = {
    "_argument": lambda x: x,
    "_whole": int,
    "_uint32": int,
    "_add": lambda x, y: x + y,
    "_sub": lambda x, y: x - y,
    "_mul": lambda x, y: x * y,
    "_div": lambda x, y: x // y,
    "_mod": lambda x, y: x % y,
}


def for_numba(function):
    """Return the function as Numba gets it, with names that Python can run, and its tree."""
    tree = integers.as_in_c(function, ast.parse(inspect.getsource(function)).body[0])
    names = {**function.__globals__, **PYTHON}
    exec(compile(ast.Module([tree], []), "counting", "exec"), names)
    return names[function.__name__], tree


@pytest.mark.parametrize("n", [2, 3, 8, 12])
@pytest.mark.parametrize("function", [jumps, nested, kept, sums])
def test_the_function_means_what_it_meant(function, n):
    made, tree = for_numba(function)
    plain, counts = [], []
    function(n, plain)
    made(n, counts)
    assert counts == plain
    loops = {jumps: (0, 1), nested: (0, 2), kept: (2, 0), sums: (0, 0)}[function]
    kinds = [type(node) for node in ast.walk(tree)]
    assert (kinds.count(ast.For), kinds.count(ast.While)) == loops
    assert made.__doc__ == function.__doc__


# --- the interpreter ------------------------------------------------------------------------------


@jit
@unsigned
def last_of_each(x, out):
    i = cuda.threadIdx.x
    for k in range(i, x.shape[1], STEP):
        if x[i, k] < 0:
            continue
        out[i] = k


def test_the_interpreter_runs_it_as_written():
    x, out = np.ones((4, 11)), np.zeros(4, np.int64)
    x[2, 8] = -1
    t = trace(last_of_each, 1, 4, x, out)
    assert out.tolist() == [9, 10, 5, 9] and not t.findings
    assert "x[i, k]" in {site.text for site in t.sites}
    assert "_argument" in last_of_each.py_func.__code__.co_freevars
    written = function_of(last_of_each)
    assert hasattr(written, MARK)
    assert any(isinstance(node, ast.For) for node in ast.walk(read(written).tree))


# --- the machine code -----------------------------------------------------------------------------


def found(jobs):
    try:
        return compiled_all(jobs)
    except NoCompiler as reason:
        pytest.skip(str(reason))


@pytest.mark.long
def test_a_multiply_add_of_the_simple_kernels_takes_few_instructions():
    made = (torch.zeros(64, 64),) * 3
    coalesced = cuda_coalesced.cuda_coalesced_kernel
    kernels = {
        "naive": cuda_naive.cuda_naive_kernel,
        "coalesced": coalesced,
        "edited": edited(coalesced, "row < c", "row + 1 < c"),
        "signed": cuda.jit(_signed(coalesced)),
        "shared 16": with_constants(cuda_shared_tiles.cuda_shared_tiles_kernel, TILE=16),
        "shared 32": with_constants(cuda_shared_tiles.cuda_shared_tiles_kernel, TILE=32),
    }
    of = found({name: (kernel, *made) for name, kernel in kernels.items()})
    each = {name: one.inner.total() / one.count("multiply-adds") for name, one in of.items()}
    # 2 loads, an IMAD.WIDE, an FFMA, and the loop: CUDA C has 4.38, 3.75 and 2.94.
    assert each["naive"] < 4.5 and each["coalesced"] < 4.5 and each["edited"] < 4.5
    assert each["shared 16"] < 4.2 and each["shared 32"] < 3.3
    assert each["signed"] > 20
    one = of["coalesced"]
    assert one.count("multiply-adds") == 16 and one.inner["IMAD.WIDE"] == 16
    assert one.count("global loads") == 32 and one.spilled_bytes == 0


def _signed(kernel):
    """Return a kernel's function without its mark."""
    function = function_of(kernel)
    return type(function)(function.__code__, function.__globals__, function.__name__)


# --- what 32 bits hold ----------------------------------------------------------------------------


def test_a_size_beyond_32_bits_is_refused():
    huge = torch.empty(2**31, 2, device="meta")
    with pytest.raises(ValueError, match="2147418112 elements along an axis"):
        launch(cuda_coalesced.cuda_coalesced_kernel, (1, 1), (1, 1), huge, huge, huge)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize("matmul", [cuda_naive.matmul, cuda_shared_tiles.matmul])
def test_more_elements_than_32_bits_count(matmul):
    # 65,537 rows of 65,537: the last row of C begins behind 2³² elements. 17 GB.
    a = torch.zeros(65537, 3, device="cuda")
    b = torch.zeros(3, 65537, device="cuda")
    a[-1], b[:, -1] = 2, 5
    out = matmul(a, b)
    assert out[-1, -1].item() == 30 and out[:-1].count_nonzero().item() == 0
    assert out[-1, :-1].count_nonzero().item() == 0


@jit
@unsigned
def flat(x, out, width):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = i // width
    if i < x.size:
        out[i] = x[row * width + i % width] + row


def test_numbers_among_the_arguments_have_no_sign():
    a = torch.arange(12, dtype=torch.int64)
    out = torch.zeros_like(a)
    trace(flat, 2, 8, a.numpy(), out.numpy(), 5)
    assert out.tolist() == [x + x // 5 for x in range(12)]


@pytest.mark.gpu
def test_numbers_among_the_arguments_have_no_sign_on_a_gpu():
    a = torch.arange(12, device="cuda")
    out = torch.zeros_like(a)
    launch(cuda.jit(flat.py_func), (2, 1), (8, 1), a, out, 5)
    assert out.tolist() == [x + x // 5 for x in range(12)]


@pytest.mark.parametrize("shape", [(1, 1), (5, 3)])
def test_products_are_right(shape):
    from tiled_matmul.kit.backend import select

    place = "cuda" if select().on_gpu else "cpu"
    m, n = shape
    a, b = torch.rand(m, 7, device=place), torch.rand(7, n, device=place)
    run_checked(cuda_coalesced.matmul, a, b)


@unsigned
def half_a_range(out, x):
    for k in range(x):
        out[k] = 1


def test_a_float_is_no_end_of_a_range():
    pytest.importorskip("cuda.bindings", reason="no compiler for CUDA without numba-cuda[cu13]")
    job = cuda.jit(half_a_range), types.Array(types.float32, 1, "C"), types.float32
    with pytest.raises(RuntimeError, match="the ends of a range are integers, got float32"):
        compiled_all({"kernel": job}, (9, 0))
