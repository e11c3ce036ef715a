"""The interpreter: what cannot run is refused with the reason, and harms no later launch."""

import functools
import linecache
import subprocess
import sys

import numpy as np
import pytest
import torch
from numba import cuda, float32

from tiled_matmul.microscope.cuda import (
    DivergentBarrier,
    KernelError,
    OutOfBounds,
    StepLimit,
    TypingError,
    Unsupported,
    trace,
)
from tiled_matmul.microscope.cuda.kernel import jit, run
from tiled_matmul.microscope.cuda.prepare import MAX_STEPS


def fine(out):
    tile = cuda.shared.array(4, float32)
    i = cuda.threadIdx.x
    tile[i] = i
    cuda.syncthreads()
    out[i] = tile[3 - i]


@pytest.fixture(autouse=True)
def the_next_launch_works():
    yield
    for way in (run, trace):
        out = np.zeros(4, "float32")
        way(fine, 1, 4, out)
        assert out.tolist() == [3, 2, 1, 0]


def refused(kernel, error, match, *args, grid=1, block=1, **options):
    """Check that a launch and a trace of a kernel raise the same, and return the message."""
    messages = set()
    for way in (run, trace):
        with pytest.raises(error, match=match) as caught:
            way(kernel, grid, block, *args, **options)
        messages.add(str(caught.value))
    assert len(messages) == 1
    return messages.pop()


def written(body, name="kernel", **names):
    """Return `def kernel(out): …` with this body, and the lines of it."""
    lines = body if isinstance(body, list) else [body]
    source = "".join(f"{line}\n" for line in [f"def {name}(out):", *(f"    {x}" for x in lines)])
    file = f"<written {abs(hash(source))}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"cuda": cuda, "np": np, "float32": float32, **names}
    exec(compile(source, file, "exec"), space)
    return space[name]


def out():
    return np.zeros(8, "float32")


# --- what is no kernel ----------------------------------------------------------------------------


def test_a_kernel_needs_its_source():
    space = {}
    exec("def lost(out):\n    out[0] = 1\n", space)
    refused(space["lost"], KernelError, "lost has no Python source", out())


class Callable:
    def __call__(self, out):
        out[0] = 1


@pytest.mark.parametrize(
    "kernel", [len, functools.partial(fine, 1), Callable, Callable(), None, "fine", 3]
)
def test_what_is_no_function(kernel):
    message = refused(kernel, KernelError, "a kernel is a Python function or @cuda.jit", out())
    assert repr(kernel) in message


def test_a_lambda():
    refused(lambda out: None, KernelError, "must be written with def", out())
    wrapped = [lambda out: out.fill(1)]
    refused(wrapped[0], KernelError, "def|cannot be read", out())


async def coroutine(out):
    out[0] = 1


def generator(out):
    yield out[0]


def test_coroutines_and_generators():
    refused(coroutine, KernelError, "must be written with def, not as a lambda or a coro", out())
    refused(generator, Unsupported, "Yield.*line .* of generator: yield out", out())


@pytest.mark.parametrize("count", [0, 2, 5])
def test_a_wrong_number_of_arguments(count):
    refused(fine, TypeError, rf"fine takes 1 arguments \(out\), got {count}", *[out()] * count)


def test_parameters_that_kernels_do_not_have():
    def starred(*out):
        out[0] = 1

    def keyword(out, *, n):
        out[0] = n

    refused(starred, KernelError, r"\*", out())
    refused(keyword, KernelError, r"\*", out())


def test_a_default_is_no_argument():
    def kernel(out, n=3):
        out[0] = n

    refused(kernel, TypeError, r"kernel takes 2 arguments \(out, n\), got 1", out())


# --- grids and blocks -----------------------------------------------------------------------------

NOT_INTS = [1.0, True, "2", None, (1, 2.0), (1, False), (), (1, 1, 1, 1), [1, "2"], {1}]


@pytest.mark.parametrize("sizes", NOT_INTS)
def test_sizes_that_are_no_ints(sizes):
    for where in ("grid", "block"):
        message = refused(
            fine, TypeError, f"{where} must be one to three ints", out(), **{where: sizes}
        )
        assert repr(sizes) in message
    with pytest.raises(TypeError, match="grid must be"):
        jit(fine)[sizes, 1](out())


@pytest.mark.parametrize("sizes", [0, -1, (1, 0), (4, 4, -4), (0, 1, 1)])
def test_sizes_below_one(sizes):
    for where in ("grid", "block"):
        message = refused(
            fine, ValueError, f"{where} . must be at least 1", out(), **{where: sizes}
        )
        assert repr(sizes) in message


@pytest.mark.parametrize(
    ("where", "sizes", "match"),
    [
        ("block", 1025, "block x .* at most 1024, got 1025"),
        ("block", (1, 1, 65), r"block z .* at most 64, got \(1, 1, 65\)"),
        ("block", (33, 32), r"\(33, 32, 1\) has 1056 threads; a GPU allows 1024"),
        ("grid", (1, 65536), r"grid y .* at most 65535, got \(1, 65536\)"),
        ("grid", 2**31, "grid x .* at most 2147483647"),
    ],
)
def test_sizes_above_what_a_gpu_has(where, sizes, match):
    refused(fine, ValueError, match, out(), **{where: sizes})


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ([(2, 0)], ValueError),
        ([(-1, 0)], ValueError),
        ([(0, 0, 1)], ValueError),
        ([(0, 0, 0, 0)], ValueError),
        ([()], ValueError),
        ([0.5], ValueError),
        (["0"], ValueError),
        ([], ValueError),
        (3, TypeError),
    ],
)
def test_blocks_that_are_not_there(blocks, error):
    with pytest.raises(error, match="block"):
        trace(fine, 2, 4, out(), blocks=blocks)


@pytest.mark.parametrize("order", ["random", None, 0, ("forward",)])
def test_an_order_that_is_none(order):
    with pytest.raises(ValueError, match="order must be one of forward, reverse, shuffle, got"):
        trace(fine, 1, 4, out(), order=order)


@pytest.mark.parametrize("steps", [0, -5, 1.5, None, "9", True])
def test_step_limits_that_are_none(steps):
    with pytest.raises(ValueError, match="max_steps must be a positive int, got"):
        trace(fine, 1, 4, out(), max_steps=steps)


@pytest.mark.parametrize("bytes_", [-1, 1.0, "16", None, True, 227 * 1024 + 1])
def test_dynamic_shared_memory_that_is_none(bytes_):
    match = "dynamic shared memory must be 0 to 232448 bytes, got"
    refused(fine, ValueError, match, out(), block=4, sharedmem=bytes_)
    with pytest.raises(ValueError, match=match):
        jit(fine)[1, 4, 0, bytes_](out())


def test_launches_without_a_block():
    with pytest.raises(ValueError, match=r"kernel\[grid, block\].*got kernel\[4\]"):
        jit(fine)[4](out())
    with pytest.raises(ValueError, match="got kernel"):
        jit(fine)[1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match=r"fine is a kernel: launch it as fine\[grid, block\]"):
        jit(fine)(out())
    with pytest.raises(TypeError, match="fine is a device function: kernels call it"):
        jit(device=True)(fine)(out())
    with pytest.raises(ValueError, match="fine is a device function: kernels call it"):
        jit(device=True)(fine)[1, 1]
    with pytest.raises(TypeError, match="cuda.jit has no option fastest"):
        jit(fastest=True)


@pytest.mark.parametrize("count", [-3, 1.5, "7", None, True])
def test_forall_over_no_number(count):
    with pytest.raises(ValueError, match=f"forall takes a number of elements, got {count!r}"):
        jit(fine).forall(count)(out())


def test_forall_over_no_elements():
    result = out()
    jit(fine).forall(0)(result)
    assert not result.any()


# --- arguments ------------------------------------------------------------------------------------

STRUCTURED = np.zeros(4, [("x", "f4"), ("y", "i4")])


@pytest.mark.parametrize(
    ("argument", "match"),
    [
        (np.zeros(4, "complex64"), "complex64"),
        (STRUCTURED, "'x'"),
        (np.array([None, 1]), "object"),
        (np.array(["a", "bc"]), "<U2"),
        (np.zeros(4, "datetime64[s]"), "datetime64"),
        (np.zeros(4, ">f4"), ">f4"),
        (torch.zeros(4, dtype=torch.bfloat16), "torch.bfloat16"),
        (torch.zeros(4, dtype=torch.complex64), "torch.complex64"),
        (torch.zeros(4, requires_grad=True), "requires grad"),
        (torch.zeros(4).to_sparse(), "sparse"),
        (None, "NoneType"),
        ([1.0, 2.0], "list: '\\[1.0, 2.0\\]'"),
        ({"a": 1}, "dict"),
        ("text", "str: 'text'"),
        (1 + 2j, "complex"),
        (print, "builtin"),
        ((1, "b"), "tuple"),
        (2**63, "9223372036854775808 does not fit"),
        (-(2**70), "does not fit"),
        (np.complex64(1), "complex64"),
    ],
)
def test_arguments_that_kernels_do_not_take(argument, match):
    message = refused(fine, TypeError, match, argument, block=4)
    assert "out" in message


def test_read_only_arrays_can_be_read_and_not_written():
    def copy(out, a):
        out[0] = a[0] + 1

    a = np.ones(4, "float32")
    a.setflags(write=False)
    result = out()
    run(copy, 1, 1, result, a)
    assert result[0] == 2
    refused(copy, ValueError, "read-only", a, result)


def test_arrays_that_cut_their_elements():
    raw = np.zeros(64, "uint8")
    shifted = raw[1:17].view("float32")
    refused(fine, TypeError, "out begins at an address that no float32 may have", shifted, block=4)
    cut = np.lib.stride_tricks.as_strided(raw.view("float32"), (4,), (6,))
    refused(fine, TypeError, r"out has strides \(6,\) that cut its elements", cut, block=4)


# --- shared memory --------------------------------------------------------------------------------


def test_too_much_static_shared_memory():
    def kernel(out):
        a = cuda.shared.array((64, 128), float32)
        b = cuda.shared.array((64, 64), float32)
        c = cuda.shared.array(1, np.int8)
        a[0, 0] = b[0, 0] = c[0] = 0

    refused(kernel, KernelError, r"c\[1\] of int8 .* to 49153 bytes; a GPU allows 49152", out())


@pytest.mark.parametrize(
    "shape", ["out.shape[0]", "n", "n + 1", "(4, n)", "2 * 4 + n", "cuda.blockDim.x", "len(out)"]
)
@pytest.mark.parametrize("space", ["shared", "local"])
def test_the_shape_of_an_array_is_a_constant(space, shape):
    body = ["n = out.shape[0]", f"tile = cuda.{space}.array({shape}, float32)"]
    message = refused(written(body), TypingError, f"the shape of cuda.{space}.array", out())
    assert "must be a constant" in message and f"line 3 of kernel: {body[1]}" in message


@pytest.mark.parametrize("shape", ["-1", "(4, -4)", "2.0", "'4'", "()", "(0, 4)"])
def test_shapes_of_shared_arrays_that_are_none(shape):
    kernel = written([f"tile = cuda.shared.array({shape}, float32)", "out[0] = 1"])
    refused(kernel, KernelError, "shape of", out())


@pytest.mark.parametrize("dtype", ["'text'", "np.complex64", "7", "None", "np.object_"])
def test_types_of_shared_arrays_that_are_none(dtype):
    kernel = written([f"tile = cuda.shared.array(4, {dtype})", "out[0] = 1"])
    refused(kernel, KernelError, "tile|dtype|type", out())


def test_arguments_of_shared_arrays():
    for call in ("array(4)", "array()", "array(4, float32, 16, 2)", "array(4, float32, order=1)"):
        refused(written(f"tile = cuda.shared.{call}"), TypingError, "takes shape, dtype", out())
    kernel = written("tile = cuda.shared.array(4, float32, alignment=3)")
    refused(kernel, TypingError, "alignment of tile must be a power of 2, got", out())


# --- what never ends ------------------------------------------------------------------------------


def test_a_while_loop_without_an_end():
    kernel = written(["i = 0", "while i < 10:", "    out[0] = i", "    i += 0"])
    match = "the loop in line 3 of kernel ran more than 1,000 iterations in one block"
    with pytest.raises(StepLimit, match=match):
        trace(kernel, 1, 1, out(), max_steps=1000)


@pytest.mark.long
def test_who_names_no_limit_has_one():
    kernel = written(["i = 0", "while i < 10:", "    out[0] = i", "    i += 0"])
    with pytest.raises(StepLimit, match=f"line 3 of kernel ran more than {MAX_STEPS:,} iterations"):
        run(kernel, 1, 1, out())


def test_a_for_loop_over_a_million_millions():
    for end in ("10**12", "out.size * 10**12", "LARGE"):
        kernel = written([f"for i in range({end}):", "    pass"], LARGE=10**12)
        with pytest.raises(StepLimit, match="line 2 of kernel"):
            trace(kernel, 1, 1, out(), max_steps=100_000)


def test_many_threads_share_one_limit():
    kernel = written(["i = 0", "while i < 100:", "    i += 1"])
    trace(kernel, 4, 9, out(), max_steps=1000)
    with pytest.raises(StepLimit):
        trace(kernel, 1, 11, out(), max_steps=1000)


@cuda.jit(device=True)
def endless(n):
    return endless(n - 1) + 1


@cuda.jit(device=True)
def ping(n):
    return pong(n)


@cuda.jit(device=True)
def pong(n):
    return ping(n)


def test_recursion():
    refused(
        written("out[0] = endless(3)", endless=endless), Unsupported, "endless calls its", out()
    )
    refused(written("out[0] = ping(3)", ping=ping), Unsupported, "ping calls itself", out())


# --- what kernels have no way to say --------------------------------------------------------------


def plain(x):
    return x


class TooFar(Exception):
    """An error of the kernel's own file."""


class Thing:
    value = 1


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (["try:", "    out[0] = 1", "except ValueError:", "    pass"], "Try"),
        (["with out:", "    pass"], "With"),
        (["class A:", "    pass"], "Class"),
        (["def inner(*x):", "    pass"], "a function in a kernel with"),
        ("a = (lambda x: x)(1)", "Lambda"),
        ("print(1, end='')", "a keyword in a call of print"),
        ("a = max(1, 2, key=3)", "a keyword in a call of max"),
        ("a = [i for i in range(3)]", "ListComp"),
        ("a = sum(i for i in range(3))", "GeneratorExp"),
        ("a = {i: i for i in range(3)}", "DictComp"),
        ("a = {1: 2}", "Dict"),
        ("a = {1, 2}", "Set"),
        ("a = [1, 2]", "List"),
        ("print(f'{out[0]}')", "JoinedStr"),
        ("global G", "Global"),
        ("del out", "Delete"),
        ("import math", "Import"),
        ("from math import sqrt", "ImportFrom"),
        ("yield 1", "Yield"),
        ("a, *b = 1, 2, 3", "Starred"),
        ("a = (*out, 1)", "Starred"),
        ("if (n := 3) > 2: out[0] = n", "NamedExpr"),
        (["match out[0]:", "    case 1:", "        pass"], "Match"),
        ("a = out @ out", "@"),
        ("out.flags = 1", "assignment to"),
        ("a = out.mean()", r"method .mean\(\)"),
        ("a = out.flags", "attribute .flags"),
        ("a = out is out", "a comparison by is"),
        ("a = 3 in out", "`in` with anything but a tuple"),
        ("a = plain(3)", r"plain\(\), a plain function, .*decorate it"),
        ("a = Thing()", "Thing"),
        ("a = Thing", "Thing"),
        ("a = open('x')", r"open\(\)"),
        ("a = np.zeros(3)", r"np.zeros\(\)"),
        ("a = np.random.rand()", "np.random.rand"),
        ("a = TABLE[0]", "array from outside"),
        ("a = LIST[0]", "a list"),
        ("a = cuda.const.array_like(TABLE)", "cuda.const.array_like"),
        ("g = cuda.cg.this_grid()", "cuda.cg.this_grid"),
        ("a = cuda.random.xoroshiro128p_uniform_float32(out, 0)", "cuda.random"),
        ("a = cuda.to_device(out)", "cuda.to_device"),
        ("a = cuda.shared.matrix(3)", "cuda.shared.matrix"),
        ("cuda.atomic.multiply(out, 0, 1)", "cuda.atomic.multiply"),
        ("cuda.no_such_thing()", "cuda.no_such_thing"),
        ("a = 1j", "complex"),
    ],
)
def test_what_is_not_supported_is_named_with_its_line(body, what):
    names = {"TABLE": np.arange(3.0), "LIST": [1, 2], "plain": plain, "Thing": Thing}
    kernel = written(["out[1] = 0", *(body if isinstance(body, list) else [body])], **names)
    message = refused(kernel, Unsupported, what, out())
    assert "line 3 of kernel" in message and "is not supported in a kernel" in message
    assert " (instead: " in message and message.endswith(")")


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("out[0] = nothing", "nothing is not defined"),
        ("out[0] = nothing(3)", "nothing is not defined"),
        ("out[0] = np.nothing", "np.nothing is not defined"),
        ("x, y = 1, 2, 3", "3 values for 2 names"),
        ("out[0] = add(1)", r"add takes \(x, y\), got add\(1\)"),
        ("out[0] = add(1, z=2)", r"add takes \(x, y\), got add\(1, z=2\)"),
        ("out[0] = add(1, 2, 3)", r"add takes \(x, y\)"),
        ("i = cuda.grid(4)", "cuda.grid takes 1, 2 or 3"),
        ("i = cuda.grid()", "cuda.grid takes 1, 2 or 3"),
        ("i = cuda.grid(x)", "cuda.grid takes 1, 2 or 3"),
        ("cuda.syncthreads(1)", "cuda.syncthreads takes"),
        ("a = cuda.syncthreads_count()", "cuda.syncthreads_count takes"),
        ("a = cuda.shfl_sync(1)", "cuda.shfl_sync takes a mask and its operands"),
        ("cuda.atomic.add(out, 0)", "cuda.atomic.add takes an array, an index and a value"),
        ("a = cuda.popc()", "cuda.popc takes"),
        ("a = float32()", "float32 takes one value"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(statement, what):
    @cuda.jit(device=True)
    def add(x, y):
        return x + y

    kernel = written(["x = 0", statement], add=add)
    message = refused(kernel, TypingError, what, out())
    assert "line 3 of kernel" in message


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("out[0.5] = 1", "an index must be an integer, and this is float64"),
        ("out[out[0]] = 1", "an index must be an integer, and this is float32"),
        ("out[4 / 2] = 1", "an index must be an integer, and this is float64"),
        ("out[0, 0] = 1", "2 indices for an array with 1 axes"),
        ("out[0][1] = 1", "is no array"),
        ("out[0] = out", r"not a number: an array of shape \[8\] of float32"),
        ("x = out + 1", r"not a number: an array of shape \[8\] of float32; arithmetic"),
        ("x = out[0] & 3", "needs integers, got float32"),
        ("x = 1 << 2.0", "needs integers"),
        ("if out: x = 1", "neither true nor false"),
        ("out[0] = 'text'", "number"),
        ("out[0] = None", "number"),
    ],
)
def test_values_of_the_wrong_kind(statement, match):
    refused(written(["x = 0", statement]), TypeError, match, out())


def test_a_store_to_a_slice():
    refused(written("out[1:3] = out[3:5]"), Unsupported, "storing an array to a slice", out())
    refused(written("out[1:3] = 1, 2, 3"), TypingError, "a slice of shape .2. takes", out())


def test_a_kernel_that_returns_a_value():
    refused(written("return out[0]"), TypingError, "kernel returns a value", out())
    refused(written(["if out[0] > 0:", "    return 1"]), TypingError, "returns a value", out())


def test_a_name_that_was_never_given_a_value():
    kernel = written(["if out[0] > 5:", "    x = 1", "out[0] = x"])
    refused(kernel, NameError, "'x'", out())


# --- what a kernel raises -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "error", "match"),
    [
        ("assert i < 2, 'too far'", AssertionError, "too far"),
        ("if i == 2: raise ValueError('not two')", ValueError, "not two"),
        ("if i == 2: raise TooFar(i, LIMIT)", TooFar, r"\(2, 7\)"),
        ("assert i < 2, LIMIT", AssertionError, "7"),
        ("out[0] = 1 // (i - 2)", ZeroDivisionError, "by zero"),
    ],
)
def test_errors_of_the_kernels_own_say_which_thread(statement, error, match):
    kernel = written(["i = cuda.threadIdx.x", statement], TooFar=TooFar, LIMIT=7)
    for way in (run, trace):
        with pytest.raises(error, match=match) as caught:
            way(kernel, (2, 3), 4, out())
        assert caught.value.__notes__ == ["in thread (2, 0, 0) of block (0, 0, 0)"]


def test_an_error_names_the_block_in_which_it_was():
    kernel = written("assert cuda.blockIdx.y < 1 or cuda.threadIdx.y < 1")
    with pytest.raises(AssertionError) as caught:
        run(kernel, (2, 3), (2, 2), out())
    assert caught.value.__notes__ == ["in thread (0, 1, 0) of block (0, 1, 0)"]


def test_a_launch_can_be_interrupted():
    def stop():
        raise KeyboardInterrupt

    kernel = jit(fine)
    interrupted = written(["cuda.syncthreads()", "breakpoint()"])
    before, sys.breakpointhook = sys.breakpointhook, stop
    try:
        for way in (run, trace):
            with pytest.raises(KeyboardInterrupt):
                way(interrupted, 1, 4, out())
    finally:
        sys.breakpointhook = before
    result = out()
    kernel[1, 4](result)
    assert result[:4].tolist() == [3, 2, 1, 0]


def test_out_of_bounds_says_who_where_and_what():
    kernel = written(
        ["x, y = cuda.grid(2)", "a = cuda.shared.array((2, 3), float32)", "a[y, x] = 1"]
    )
    with pytest.raises(OutOfBounds) as caught:
        run(kernel, 2, (2, 4), out())
    assert str(caught.value) == (
        "thread (0, 2, 0) of block (0, 0, 0), line 4 of kernel: a[y, x] = 1: "
        "index [2, 0] is outside of shape [2, 3] on axis 0"
    )
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("index", ["8", "-9", "2**62", "-(2**62)", "i + 8"])
@pytest.mark.parametrize("access", ["out[{}] = 1", "i = out[{}]", "cuda.atomic.add(out, {}, 1)"])
def test_out_of_bounds_in_each_way(access, index):
    kernel = written(["i = cuda.threadIdx.x", access.format(index)])
    with pytest.raises(OutOfBounds, match="line 3 of kernel: .* is outside of shape"):
        run(kernel, 1, 1, out())
    t = trace(kernel, 1, 1, out())
    assert [f.kind for f in t.out_of_bounds] == ["out of bounds"]


def test_rows_out_of_bounds():
    def kernel(out):
        row = out[cuda.threadIdx.x]
        row[0] = 1

    with pytest.raises(OutOfBounds):
        run(kernel, 1, 4, np.zeros((3, 2)))


def test_a_barrier_that_not_all_reach():
    kernel = written(["if cuda.threadIdx.x < 2:", "    cuda.syncthreads()"])
    with pytest.raises(DivergentBarrier, match="line 3|cuda.syncthreads"):
        run(kernel, 1, 4, out())
    assert len(trace(kernel, 1, 4, out()).divergent_barriers) == 1


# --- memory ---------------------------------------------------------------------------------------

LONG = """
import re
from pathlib import Path
from numba import cuda
import numpy as np
from tiled_matmul.microscope.cuda import trace

def kernel(out, n):
    i = cuda.grid(1)
    for k in range(n):
        out[(i + k) % out.size] = k

def peak_kb():
    # getrusage would tell the peak of the process that started this one, if that was higher.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

peaks = []
for n in (100, 200):
    t = trace(kernel, 100, 100, np.zeros(4096, "float32"), n)
    assert t.global_stores.lanes == n * 10_000
    peaks.append(peak_kb() / 1024)
print(*peaks)
"""


@pytest.mark.long
def test_ten_million_accesses_would_stay_under_a_gigabyte(tmp_path):
    """As the memory for one million and for two says: it grows by so much for each further one."""
    file = tmp_path / "long.py"
    file.write_text(LONG)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    one_mb, two_mb = map(float, done.stdout.split())
    assert 0 < two_mb - one_mb and one_mb + 9 * (two_mb - one_mb) < 1024, (one_mb, two_mb)
