"""grader/gate and grader/allowed: what of a cell is run, and what an answer may not say."""

import ast

import pytest

from tiled_matmul.grader import allowed, gate, kinds, own, spec
from tiled_matmul.grader.spec import Call, Case, Exercise

KERNEL = Exercise(
    *("99.1", "kernel", 1, "kernel", ("a", "b"), "cuda", spec.CUDA, (Case(4, 4, 4),)),
    hints={"other": 1},
    launch=lambda case: ((1, 1), (8, 8)),
    given={"TILE": 16},
)
LOOPS = Exercise(
    *("99.2", "loops", 1, "product", ("a", "b"), "loops", spec.LOOPS, (Case(4, 4, 4),)),
    hints={"other": 1},
)
VALUE = Exercise(
    *("99.3", "value", 1, "value", ("n",), "values", spec.VALUES, (Call((4,)),)),
    hints={"other": 1},
    answer=lambda n: n,
)
PROGRAM = Exercise(
    *("99.4", "program", 1, "program", ("a", "K"), "triton", spec.TRITON, (Case(4, 4, 4),)),
    hints={"other": 1},
    launch=lambda case: ((1, 1), {}),
)
HEAD = "@cuda.jit\ndef kernel(a, b):\n"
RIGHT = f"{HEAD}    a[0] = b[0]\n"


def kernel(line, above=""):
    return f"{above}\n{HEAD}    x = cuda.threadIdx.x\n    {line}\n"


def value(line, above=""):
    return f"{above}\ndef value(n):\n    {line}\n"


@pytest.mark.parametrize(
    "line",
    [
        "a[x] = TILE",
        "t = cuda.shared.array((TILE, 8), a.dtype)",
        "t = cuda.shared.array(shape=(TILE, TILE + 2), dtype=np.float32)",
        "if 0 <= x < a.shape[0] and x & 1:\n        a[x] = b[x] if x else -1",
        "for _ in range(2**31):\n        a[x] += 1",
        "for i, j in ((0, 1), (1, 0)):\n        a[i] = b[j]",
        "pass",
        "sum = 0.0\n    max = sum + 1",
        "y = (z := 3)",
        "assert x < 3, f'{x}'",
        "if x < 0:\n        raise ValueError('x')",
        "'a text as a comment'",
        "_y = 3",
        "y = 0 < x & x < 3",
        "y = numba.float32(0) + math.sqrt(4.0) + np.int32(3)",
        "y: int = 3",
        "if a.shape == b.shape:\n        pass",
        "for y in (1, 2):\n        a[y] = 1\n    else:\n        a[0] = 2",
        "cuda.syncwarp()",
    ],
)
def test_a_line_that_is_run(line):
    above = "N = -3\n\n@cuda.jit(device=True)\ndef f(y):\n    return y\n"
    assert line.partition("\n")[0][:3] in gate.admit(KERNEL, kernel(line, above)) or "'" in line


@pytest.mark.parametrize(
    "line",
    [
        "return f'{n:.3}' and {1, 2} and {3: n}[3] and [x for x in range(n)]",
        "return sorted({1, 2}, key=lambda x: -x)[0] or max(*[n, 1]) or dict(n=n)['n']",
        "match n:\n        case 1 | 2:\n            return n\n        case [x, *y]: pass",
        "try:\n        return 1 / n\n    except ZeroDivisionError as error:\n        print(error)",
        "def inner(y=3, *rest, **more):\n        nonlocal n\n        return y\n    return inner()",
        "import math\n    return math.ceil(n / 2)",
        "return int(np.ceil(n / 2)) + '{:d}'.format(n).find('3')",
        "while n:\n        n -= 1\n    else:\n        return n",
        "yield n",
        "del n\n    global G\n    G = 1",
        "return 0x1ffffffffffffffff",
        "class P:\n        def __init__(self, x):\n            self.x = x\n    return P(n).x",
        "return itertools.chain.from_iterable([[n]])",
    ],
)
def test_a_line_of_python_that_is_run(line):
    gate.admit(VALUE, value(line))


CLASSES = """
from dataclasses import astuple, dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, Optional


class Side(Enum):
    LEFT = 1
    RIGHT = auto()


class Pair(NamedTuple):
    a: int
    b: int = 2


class Base:
    LIMIT = 3

    def __init__(self, x: Optional[int]):
        self._x, self.__y = x, 1

    @classmethod
    def of(cls, x):
        return cls(x + cls.LIMIT)

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self._x = value

    def _both(self):
        return self._x + self.__y


class Deep(Base):
    def __init__(self, x):
        super().__init__(x)
        self.view = []

    def area(self):
        return super()._both()


class TooSmall(ValueError):
    pass


@dataclass(kw_only=True, repr=False)
class Block:
    turns: int = 0
    all: list = field(default_factory=list)
"""
STANDARD = """
import bisect, heapq, statistics
import operator as op
from collections.abc import Sequence
from copy import deepcopy
from functools import reduce
from typing import List, Tuple

Pair = Tuple[int, int]
copy = [3, 1, 2]
copy.append(0)
"""


@pytest.mark.parametrize(
    ("line", "above", "result"),
    [
        ("d = Deep.of(2); d.x += 1\n    return d.area(), d._x, d.view", CLASSES, (7, 6, [])),
        ("return Side.RIGHT.value, Side.LEFT.name", CLASSES, (2, "LEFT")),
        ("return Pair._make([1, 3]).b, Pair(1)._replace(a=4)", CLASSES, (3, (4, 2))),
        ("b = Block(); b.turns += 1\n    return astuple(replace(b, all=[2]))", CLASSES, (1, [2])),
        ("try:\n        raise TooSmall(3)\n    except TooSmall as e:\n        return e.args",)
        + (CLASSES, (3,)),
        ("return type(n).__name__, type(n) is int", "", ("int", True)),
        ("return isinstance(n, np.ndarray), isinstance(n, (int, np.ndarray))", "", (False, True)),
        ("return reduce(op.mul, copy[:3]), op.itemgetter(1)(copy)", STANDARD, (6, 1)),
        ("x: List[int] = sorted(copy)\n    return bisect.bisect(x, 1)", STANDARD, 2),
        ("h = deepcopy(copy); heapq.heapify(h)\n    return heapq.heappop(h), copy[0]",)
        + (STANDARD, (0, 3)),
        ("return statistics.median(copy), isinstance(copy, Sequence)", STANDARD, (1.5, True)),
        ("copy = operator = enum = n\n    return copy", "", 4),
    ],
)
def test_what_students_know_of_python_runs(line, above, result):
    space = kinds.prepare("values") | {"__name__": own.MODULE}
    space[own.CHECK] = own.guard(space)
    exec(compile(own.checked(gate.admit(VALUE, value(line, above))), "answer", "exec"), space)
    assert space["value"](4) == result


@pytest.mark.parametrize(
    "line", ["np.ones(2).view", "iter([]).view", "P.mro()", "max.view", "P().q.view"]
)
def test_names_of_an_answers_classes_open_its_own_objects_alone(line):
    """Without the list of `allowed`, which sees most of these before they run."""
    space = kinds.prepare("values") | {"__name__": own.MODULE}
    space[own.CHECK] = own.guard(space)
    classes = "class P:\n    q = [1]\n    def __init__(self): self.view = 3\n"
    exec(compile(own.checked(f"{classes}x = P().view, P.q"), "answer", "exec"), space)
    with pytest.raises(AttributeError, match="is not known here"):
        exec(compile(own.checked(line), "answer", "exec"), space)


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        ("HALF = TILE // 2", "HALF = TILE // 2"),
        ("from math import ceil, sqrt as root", "ceil = math.ceil; root = math.sqrt"),
        ("import numpy as xp", "xp = np"),
        ("from numba import float32", "float32 = numba.float32"),
        ("SIZES = {2: 3}\nSIZES[4] = 5", "SIZES[4] = 5"),
        (
            "def helper(a: list[int], b=3) -> 'text':\n    return a",
            "def helper(a: None, b=3) -> None:",
        ),
    ],
)
def test_what_the_function_needs_is_run(above, wanted):
    names = "HALF ceil root xp.pi float32 SIZES helper".split()
    one = VALUE if "SIZES" in above or "helper" in above else KERNEL
    used = " or ".join(name for name in names if name.partition(".")[0] in above)
    source = value(f"return {used}", above) if one is VALUE else kernel(f"y = {used}", above)
    assert wanted in gate.admit(one, source)


@pytest.mark.parametrize(
    "text",
    [
        "x = np.ones((2, 2))\nkernel[1, 1](x, x)\nprint(x)",
        "import os\nos.remove('x')",
        "if __name__ == '__main__':\n    print('defined')",
        "TILE = 8",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        '"""\n@cuda.jit\ndef kernel(a, b):\n    an old attempt\n"""',
        "%%time",
        "def old(a):\n    return a @ a",
        "open('x', 'w').write('y')",
        "from __future__ import annotations",
    ],
)
def test_what_the_function_does_not_need_is_not_run(text):
    for source in (f"{text}\n{RIGHT}", f"{RIGHT}\n{text}\n"):
        if text == "%%time" or text.startswith("from __future__"):
            source = f"{text}\n{RIGHT}"
        out = gate.admit(KERNEL, source)
        assert out.strip() == RIGHT.strip()
        assert out.count("\n") == source.count("\n")  # messages name lines


def test_the_last_of_two_functions_counts():
    out = gate.admit(KERNEL, f"{HEAD}    a[0] = eval\n\n{RIGHT}")
    assert "eval" not in out and out.strip() == RIGHT.strip()


def test_texts_go_and_bytes_are_counted_right():
    out = gate.admit(
        PROGRAM, '@triton.jit\ndef program(a, K):\n    """é\n    def program(x)\n"""\n'
    )
    assert out == "@triton.jit\ndef program(a, K):\n    pass\n\n\n"
    assert gate.admit(VALUE, "'é'; N = 'é'; print(N)\ndef value(n): 'é'; return N\n") == (
        "pass; N = 'é'; \ndef value(n): pass; return N\n"
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("y = eval", "FORBIDDEN"),
        ("y = open(3).shape", "FORBIDDEN"),
        ("y = x.__class__", "FORBIDDEN"),
        ("__y = 3", "FORBIDDEN"),
        ("_simt_y = 3", "FORBIDDEN"),
        ("cuda = 3", "FORBIDDEN"),
        ("y = (a @ b).shape", "FORBIDDEN"),
        ("a @= b", "FORBIDDEN"),
        ("cuda.atomic.add(a, 0, 1)", "FORBIDDEN"),
        ("y = copy_async", "FORBIDDEN"),
        ("y = x < a.shape", "WRONG"),
        ("y = x(3)", "FORBIDDEN"),
        ("y = a(3)", "WRONG"),
        ("y = cuda.threadIdx", "WRONG"),
        ("cuda.syncthreads", "WRONG"),
        ("cuda.syncthread()", "WRONG"),
        ("y = blockIdx.x", "WRONG"),
        ("y = unheard_of", "WRONG"),
        ("y = 0x1ffffffffffffffff", "WRONG"),
        ("y = cuda.shared.array(8, 8, a.dtype)", "WRONG"),
        ("t = cuda.shared.array((2, 3), float)", "WRONG"),
        ("y = {1: x}", "NOT_YET"),
        ("y = cuda.libdevice.sin(1.0)", "NOT_YET"),
        ("y = a.flat", "NOT_YET"),
        ("with x:\n        pass", "NOT_YET"),
        ("a.shape = 3", "NOT_YET"),
    ],
)
def test_a_line_that_is_not_run(line, kind):
    if line == "y = x(3)":  # a number is called, which only shows when it runs
        gate.admit(KERNEL, kernel(line))
        return
    with pytest.raises(gate.Refused) as refused:
        gate.admit(KERNEL, kernel(line))
    assert refused.value.status == kind, refused.value


@pytest.mark.parametrize(
    "above",
    [
        "@cuda.jit(debug=open)\ndef f(y):\n    return y",
        "@cuda.jit(link='x')\ndef f(y):\n    return y",
        "@cuda.jit(**{})\ndef f(y):\n    return y",
        "@range\ndef f(y):\n    return y",
        "def f(y=open):\n    return y",
        "from os import path as f",
        "from tiled_matmul.grader import judge as f",
        "def f(_simt_lane):\n    return 3",
        "f = np.dot",
        "f = cuda.libdevice",
        "#" * 20_001,
        "#\x0b",
        "#\u2028",
    ],
)
def test_what_is_needed_and_refused(above):
    with pytest.raises(gate.Refused):
        gate.admit(KERNEL, kernel("a[0] = f(x)", above))


@pytest.mark.parametrize("head", ["def kernel(a, b):", "@cuda.jit\ndef kernel(a):", "N = 3"])
def test_the_entry_is_a_kernel_with_its_parameters(head):
    with pytest.raises(gate.Mistake):
        gate.admit(KERNEL, head + ("\n    pass" if "def" in head else ""))


@pytest.mark.parametrize("parameters", ["n", "n, m=3", "*n", "n, /", "n, *, m=2", "n=1"])
def test_parameters_that_fit_the_call(parameters):
    gate.admit(VALUE, f"def value({parameters}):\n    return 3")


@pytest.mark.parametrize("line", ["a[0] = sum(b)", "a[0] = np.dot(a, b)", "a[0] = a @ b"])
def test_a_product_of_the_library_is_named_so(line):
    with pytest.raises(gate.Product):
        gate.admit(KERNEL, kernel(line))


def test_what_may_be_a_mistake_is_said_later():
    (doubt,) = allowed.doubts(kernel("y = 0 < x & x < 3"))
    assert "come before < and >" in doubt and ast.parse(kernel("y = 0 < x & x < 3"))
