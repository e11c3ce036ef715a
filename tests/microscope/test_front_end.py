"""What Triton's interpreter accepts and its compiler refuses is refused with the kernel's line."""

from __future__ import annotations

import inspect

import pytest
import torch
import triton
import triton.language as tl

from tiled_matmul.microscope.cuda.errors import KernelError
from tiled_matmul.microscope.triton import trace_tiles

PLAIN = 3
CONSTANT = tl.constexpr(3)


@triton.jit
def times_plain(x):
    return x * PLAIN  # refused


@triton.jit
def times_constant(x):
    return x * CONSTANT


@triton.jit
def plain_global(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(c + i, tl.load(a + i) * PLAIN)  # refused


@triton.jit
def plain_global_of_a_helper(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(c + i, times_plain(tl.load(a + i)))


@triton.jit
def tried(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    try:  # refused
        tl.store(c + i, tl.load(a + i))
    except ValueError:
        pass


@triton.jit
def odd_size(a, c, n, B: tl.constexpr):
    i = tl.arange(0, 24)  # refused
    tl.store(c + i, tl.load(a + i))


@triton.jit
def size_from_an_argument(a, c, n, B: tl.constexpr):
    i = tl.arange(0, n)  # refused
    tl.store(c + i, tl.load(a + i))


@triton.jit
def changed_type(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = 0
    for _ in range(n):  # refused
        total += tl.load(a + i)
    tl.store(c + i, total)


@triton.jit
def defined_in_a_branch(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    if n > 2:
        x = tl.load(a + i)
    tl.store(c + i, x)  # refused


@triton.jit
def called_python(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    numbers = [k + 1 for k in range(n)]  # refused
    tl.store(c + i, tl.load(a + i) + numbers[1])


@triton.jit
def left_a_loop(a, c, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        if k > 2:
            break  # refused
        tl.store(c + i, tl.load(a + i))


@triton.jit
def accepted(a, c, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = times_constant(tl.load(a + i, mask=i < n, other=0.0))
    total = tl.zeros((B,), tl.float32)
    for _ in range(n):
        total += x - x.sum() + tl.maximum(x, tl.max(x, axis=0))
    tl.store(c + i, total, mask=i < n)


REFUSED = [
    *(plain_global, plain_global_of_a_helper, tried, odd_size, size_from_an_argument),
    *(changed_type, defined_in_a_branch, called_python, left_a_loop),
]


def vectors():
    return torch.ones(32), torch.zeros(32)


@pytest.mark.parametrize("kernel", REFUSED, ids=lambda kernel: kernel.__name__)
def test_what_the_compiler_refuses_is_refused_with_its_line(kernel):
    function = times_plain if kernel is plain_global_of_a_helper else kernel
    lines, first = inspect.getsourcelines(function.fn)
    line = first + next(k for k, text in enumerate(lines) if "# refused" in text)
    with pytest.raises(KernelError, match=f"at line {line} of {function.fn.__name__}"):
        trace_tiles(kernel, (1,), *vectors(), 32, B=32)


def test_a_kernel_that_compiles_is_traced_after_plain_launches_too():
    a, c = vectors()
    accepted[(1,)](a, c, 32, B=32)  # Triton leaves parts of its language patched
    for argument in (a, a.half()):
        assert not trace_tiles(accepted, (1,), argument, c, 32, B=32).findings


def test_a_global_that_is_made_a_constant_is_seen(monkeypatch):
    with pytest.raises(KernelError, match="PLAIN"):
        trace_tiles(plain_global, (1,), *vectors(), 32, B=32)
    monkeypatch.setitem(globals(), "PLAIN", tl.constexpr(3))
    trace_tiles(plain_global, (1,), *vectors(), 32, B=32)
    monkeypatch.undo()
    with pytest.raises(KernelError, match="PLAIN"):
        trace_tiles(plain_global, (1,), *vectors(), 32, B=32)


def test_an_argument_that_is_not_specialised_may_change_in_a_loop():
    def doubled(a, c, n, B: tl.constexpr):
        i = tl.arange(0, B)
        for _ in range(3):
            n = n * 2
        tl.store(c + i, tl.load(a + i) * n)

    kernel = triton.jit(doubled, do_not_specialize=["n"])
    trace_tiles(kernel, (1,), *vectors(), 1, B=32)
