"""grader/gate: what an answer may not say, each refused by itself, and what it may."""

import pytest

from tiled_matmul.grader import gate, spec
from tiled_matmul.grader.spec import Case, Exercise

KERNEL = Exercise(
    *("99.1", "kernel", 1, "kernel", ("a", "b"), "cuda", spec.CUDA, (Case(4, 4, 4),)),
    hints={"other": 1},
    launch=lambda case: ((1, 1), (8, 8)),
    given={"TILE": 16},
)
LOOPS = Exercise(
    *("99.2", "loops", 1, "product", ("a", "b"), "loops", spec.CUDA, (Case(4, 4, 4),)),
    hints={"other": 1},
)
HEAD = "@cuda.jit\ndef kernel(a, b):\n"


def kernel(line, above=""):
    return f"{above}\n{HEAD}    x = cuda.threadIdx.x\n    {line}\n"


@pytest.mark.parametrize(
    "line",
    [
        "a[x] = TILE",
        "t = cuda.shared.array((TILE, 8), a.dtype)",
        "if 0 <= x < a.shape[0] and x & 1:\n        a[x] = b[x] if x else -1",
        "for _ in range(2**31):\n        a[x] += 1",
        "pass",
    ],
)
def test_what_is_admitted(line):
    gate.admit(KERNEL, kernel(line, "N = -3\n\n@cuda.jit(device=True)\ndef f(y):\n    return y\n"))


@pytest.mark.parametrize(
    "line",
    [
        "def inner(y):\n        return y",
        "global y",
        "import math",
        "y = f'{x}'",
        "y = (z := 3)",
        "y = max(*a.shape)",
        "a @= b",
        "_y = 3",
        "range = 3",
        "kernel = 3",
        "y = 'text'",
        "y = 0x1ffffffffffffffff",
        "y = x < a.shape",
        "y = 0 < x & x < 3",
        "y = 0 < x | x < 3",
        "y = eval",
        "a.shape = 3",
        "y = cuda.libdevice",
        "y = a.T",
        "y = (a @ b).shape",
        "y = open(3).shape",
        "y = max(1, 2)(3)",
        "y = max(**a)",
        "y = x(3)",
        "y = " + "-" * 200 + "x",
        "y = cuda.shared.array(8, 8, a.dtype)",
    ],
)
def test_a_line_that_is_refused(line):
    with pytest.raises(gate.Refused):
        gate.admit(KERNEL, kernel(line))


@pytest.mark.parametrize(
    "above",
    [
        "TILE = 8",
        "cuda = 8",
        "_N = 8",
        "N = 8\nN = 9",
        "N = 'text'",
        "N = M = 8",
        "print(3)",
        "import os",
        "def f(y=3):\n    return y",
        "def f(*y):\n    return 3",
        "def f(**y):\n    return 3",
        "def f(y) -> 3:\n    return y",
        "def f(y: open):\n    return y",
        "def f(range):\n    return range",
        "def f(kernel):\n    return kernel",
        "def f(_y):\n    return 3",
        "@cuda.jit(16)\ndef f(y):\n    return y",
        "@cuda.jit(debug=True)\ndef f(y):\n    return y",
        "@cuda.jit(device=3)\ndef f(y):\n    return y",
        "@range\ndef f(y):\n    return y",
        "#" * 20_001,
        "#\x0b",
        "#\u2028",
        '"""\n  def f(y):\n"""',
    ],
)
def test_a_cell_that_is_refused(above):
    with pytest.raises(gate.Refused):
        gate.admit(KERNEL, kernel("pass", above))


@pytest.mark.parametrize("head", ["def kernel(a, b):", "@cuda.jit\ndef kernel(a):", "N = 3"])
def test_the_entry_is_a_kernel_with_its_parameters(head):
    with pytest.raises(gate.Refused):
        gate.admit(KERNEL, head + ("\n    pass" if "def" in head else ""))


@pytest.mark.parametrize("line", ["a[0] = sum(b)", "a[0] = np.dot(a, b)", "a[0] = a @ b"])
def test_a_product_of_the_library_is_named_so(line):
    with pytest.raises(gate.Product):
        gate.admit(KERNEL, kernel(line))


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("x, y = a[0, 1], 2", False),
        ("x = a, b", True),
        ("x = y = (a, b)", True),
        ("a[1, 2] = 3", False),
    ],
)
def test_loops_keep_no_rows(line, kept):
    source = f"def product(a, b):\n    {line}\n"
    if kept:
        with pytest.raises(gate.Refused):
            gate.admit(LOOPS, source)
    else:
        gate.admit(LOOPS, source)
