"""kit/counted.py: loops of unsigned kernels count as in C, and mean what they meant."""

import ast
import inspect

import numpy as np
import pytest
import torch
from numba import cuda

from tiled_matmul.kit import counted
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.launch import launch
from tiled_matmul.kit.unsigned import unsigned
from tiled_matmul.ladder import cuda_coalesced, cuda_naive, cuda_shared_tiles
from tiled_matmul.microscope.compiled.cuda import NoCompiler, compiled_all
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.microscope.cuda.kernel import jit
from tiled_matmul.microscope.cuda.source import read
from tiled_matmul.microscope.cuda.unsigned import CAST, MARK
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
    for k in range(0, n, n):  # a step that is not known
        out.append(k)
    for k in range(n):
        out.append(k)
    else:
        out.append("all")
    for i, k in enumerate(list(out)):
        out.append((i, k))


def counting(function):
    """Return the function with loops that count, in Python."""
    tree = counted.counted(function, ast.parse(inspect.getsource(function)).body[0])
    names = {**function.__globals__, "_narrowed": lambda x: x, CAST: int}
    exec(compile(ast.Module([tree], []), "counting", "exec"), names)
    return names[function.__name__], tree


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12])
@pytest.mark.parametrize("function", [jumps, nested, kept])
def test_the_loop_means_what_it_meant(function, n):
    if function is nested and n == 1:
        pytest.skip("its i would have no value")
    made, tree = counting(function)
    plain, counts = [], []
    function(n, plain)
    made(n, counts)
    assert counts == plain
    loops = {jumps: (0, 1), nested: (0, 2), kept: (3, 0)}[function]
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
    assert "_narrowed" in last_of_each.py_func.__code__.co_freevars
    written = function_of(last_of_each)
    assert hasattr(written, MARK)
    assert any(isinstance(node, ast.For) for node in ast.walk(read(written).tree))


# --- the machine code -----------------------------------------------------------------------------


@pytest.mark.long
def test_a_multiply_add_of_the_simple_kernels_takes_few_instructions():
    made = (torch.zeros(64, 64),) * 3
    kernels = {
        "naive": cuda_naive.cuda_naive_kernel,
        "coalesced": cuda_coalesced.cuda_coalesced_kernel,
        "shared 16": with_constants(cuda_shared_tiles.cuda_shared_tiles_kernel, TILE=16),
        "shared 32": with_constants(cuda_shared_tiles.cuda_shared_tiles_kernel, TILE=32),
    }
    signed = cuda.jit(_signed(cuda_coalesced.cuda_coalesced_kernel))
    try:
        found = compiled_all(
            {n: (k, *made) for n, k in kernels.items()} | {"signed": (signed, *made)}
        )
    except NoCompiler as reason:
        pytest.skip(str(reason))
    each = {name: one.inner.total() / one.count("multiply-adds") for name, one in found.items()}
    assert each["naive"] < 4.7 and each["coalesced"] < 4.7  # 2 loads, 1 IMAD.WIDE, 1 FFMA, the loop
    assert each["shared 16"] < 4.7 and each["shared 32"] < 3.5
    assert each["signed"] > 20
    one = found["coalesced"]
    assert one.count("multiply-adds") == 16 and one.inner["IMAD.WIDE"] == 16
    assert one.count("global loads") == 32 and one.spilled_bytes == 0


def _signed(kernel):
    """Return a kernel's function without its mark."""
    function = function_of(kernel)
    return type(function)(function.__code__, function.__globals__, function.__name__)


def test_a_size_beyond_32_bits_is_refused():
    huge = torch.empty(2**31, 2, device="meta")
    with pytest.raises(ValueError, match="2147483647 elements along an axis"):
        launch(cuda_coalesced.cuda_coalesced_kernel, (1, 1), (1, 1), huge, huge, huge)
