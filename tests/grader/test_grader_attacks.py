"""Tries to get past the list of what an answer may say, to slow the grader, and to mislead it.

Almost each one worked once. What runs no process is here; attacks on processes are in
test_grader_hostile.py.
"""

import ast
import builtins
import contextlib
import fractions
import functools
import itertools
import math
import operator
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from concurrent.futures import ThreadPoolExecutor
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType

import numpy as np
import pytest

from tiled_matmul import ROOT
from tiled_matmul.grader import (
    allowed,
    cells,
    compare,
    gate,
    kinds,
    pool,
    practice,
    spec,
    starters,
    teacher,
)
from tiled_matmul.grader.folders import exercise
from tiled_matmul.grader.journal import Journal
from tiled_matmul.grader.judge import judge, verdict
from tiled_matmul.grader.reports import as_csv
from tiled_matmul.grader.spec import Call, Case, Exercise, Limits
from tiled_matmul.grader.watched import Float, Record

KERNEL = Exercise(
    *("99.1", "kernel", 1, "kernel", ("a", "b"), "cuda", spec.CUDA, (Case(4, 4, 4),)),
    hints={"other": 1},
    launch=lambda case: ((1, 1), (8, 8)),
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
HEADS = {
    "cuda": "@cuda.jit\ndef kernel(a, b):\n    ",
    "loops": "def product(a, b):\n    ",
    "values": "def value(n):\n    ",
    "triton": "@triton.jit\ndef program(a, K):\n    ",
}


def answer(one, line, above=""):
    return f"{above}\n{HEADS[one.kind]}{line}\n"


GETS = "class P:\n    def __setattr__(self, name, value):\n        print(value)"
SETS = "class P:\n    def set(self, v):\n        self.shape = v"

# Attributes by their names, which the list does not see.
BY_NAME = (
    (LOOPS, "functools.update_wrapper(print, a, ('_array',), ())", ""),
    (VALUE, "functools.update_wrapper(P(), n, ('_array',), ())", GETS),
    (VALUE, "functools.wraps(n, assigned=('_array',), updated=())(n)", ""),
    (VALUE, "functools.singledispatch(n)", ""),
    (VALUE, "functools.GenericAlias(n, n)", ""),
    (LOOPS, "return f('{0._array}', a)", "f = str.format"),
    (LOOPS, "return f(a)", "f = '{0._array}'.format"),
    (LOOPS, "return f(dict(x=a))", "f = '{x._array}'.format_map"),
    (LOOPS, "return list(map(str.format, ['{0._array}'], [a]))", ""),
    (LOOPS, "return '{:{0._array}}'.format(a)", ""),
    (VALUE, "match n:\n        case P(x): return x", "class P:\n    __match_args__ = ('_array',)"),
    (PROGRAM, "tl.math.wraps(a, ('handle',), ())(K)", ""),
    (PROGRAM, "tl.store(a, X)", "X = tl.math.core"),
    (PROGRAM, "tl.store(a, X)", "X = tl.math.List"),
)
# Classes: what they set of objects that are not their own, and what asks for an index twice.
CLASSES = (
    (VALUE, "return P", "class P:\n    def __getattr__(self, name): return 3"),
    (VALUE, "return P", "class P:\n    def __index__(self): return 3"),
    (VALUE, "return P", "class P:\n    def __array_interface__(self): return 3"),
    (VALUE, "return P", "class P:\n    def __class_getitem__(self, k): return k"),
    (VALUE, "return P", "class P:\n    def __del__(self): print(1)"),
    (LOOPS, "P.set(a, 3)", SETS),
    (LOOPS, "return P", f"{SETS}\n    set(math, 3)"),
    (KERNEL, "a[0] = R", f"{SETS}\nR = P.set(np, 3)"),
    (PROGRAM, "tl.store(a, R)", f"{SETS}\nR = P.set(tl, 3)"),
)
# A name of the answer's own opens no attribute of other objects.
FRAME = "(P, e := (x for x in (1,)).gi_frame.f_builtins)\n    return e['exec']('1')"
OWN_NAMES = (
    (
        VALUE,
        FRAME,
        "class P:\n    def __init__(self):\n        self.gi_frame = self.f_builtins = 0",
    ),
    (VALUE, FRAME, "class P:\n    gi_frame: int = 0\n    f_builtins: int = 0"),
    (
        VALUE,
        FRAME,
        "def n2(*x):\n    return None\nnamedtuple = n2\nP = namedtuple('gi_frame f_builtins')",
    ),
    (
        VALUE,
        FRAME,
        "from collections import namedtuple\nP = namedtuple('P', 'gi_frame f_builtins')",
    ),
    (LOOPS, FRAME, "def namedtuple(*x): return None\nP = namedtuple('gi_frame f_builtins')"),
    (
        LOOPS,
        "return P, a[0, 0].record",
        "def namedtuple(*x): return None\nP = namedtuple('record')",
    ),
    (
        PROGRAM,
        "tl.store(a, G)",
        "L = lambda namedtuple: namedtuple('get_capture_scope')\nG = tl.sum.get_capture_scope()",
    ),
)
OPEN = "class P:\n    def f(self): self.builtins = self.exec = self.load = self.sys = 0"
MODULES = (
    (VALUE, "P; d = dataclasses\n    d.builtins.exec('1')", OPEN),
    (VALUE, "P; (math, np)[1].load('x')", OPEN),
    (VALUE, "P; (d := np).load('x')", OPEN),
    (VALUE, "P; f = lambda m=np: m.load('x')\n    f()", OPEN),
    (VALUE, "P; f(np)", f"{OPEN}\ndef f(m): return m.load('x')"),
    (VALUE, "P; d, e = fractions, 1\n    d.sys", OPEN),
    (LOOPS, "f = math", ""),
    (KERNEL, "a[0] = f.pi", "f = math"),
    (PROGRAM, "tl.store(a, f.core)", "f = tl"),
    (VALUE, "match '{0._array}':\n        case str(format=f): return f(n)", ""),
    (LOOPS, "match '{0._array}':\n        case [str(format_map=f)]: return f(a)", ""),
    (VALUE, "np.ndarray((1,), 'O', b'12345678')[0]", ""),
    (VALUE, "P; n.ctypes", "class P:\n    ctypes: int = 0"),
)
# Neither does it open those that lead from NumPy's objects to memory or files, and no class is
# made of what is no class of the answer's.
VIEW = "class P:\n    def view(self): pass\n    def tofile(self): pass"
ND = "np.ndarray((1,), 'O', b'12345678')"
OF_ARRAYS = (
    (VALUE, "P; np.array([1]).view('O')", VIEW),
    (VALUE, "P; array([1]).view('O')", f"from numpy import array\n{VIEW}"),
    (VALUE, "P; m.array([1]).tofile('x')", f"import numpy as m\n{VIEW}"),
    (VALUE, "P; x = np.ones(3)\n    x.strides = (800,)", "class P:\n    strides: int = 0"),
    (VALUE, "P; np.random.default_rng.func_globals", "class P:\n    func_globals: int = 0"),
    (
        VALUE,
        "P; f = np.random.default_rng\n    f.func_globals",
        "class P:\n    func_globals: int = 0",
    ),
    (VALUE, "P; np.random.default_rng(1)._bit_generator", "class P:\n    _bit_generator: int = 0"),
    (VALUE, "f = np.ndarray\n    f((1,), 'O', b'12345678')", ""),
    (VALUE, "[f((1,), 'O', b'12345678') for f in (np.ndarray,)]", ""),
    (VALUE, "functools.partial(np.ndarray, (1,), 'O')(b'12345678')", ""),
    (VALUE, "isinstance(1, (f := np.ndarray))\n    f((1,), 'O', b'12345678')", ""),
    (VALUE, f"isinstance(1, {ND})", ""),
    (VALUE, "isinstance(1, np.ndarray)", "def isinstance(a, b): return b"),
    (VALUE, "isinstance(1, np.ndarray)", "from itertools import chain as isinstance"),
    (VALUE, "class D(np.ndarray): pass", ""),
    (VALUE, "class D(P): pass", "class P: pass\nP = np.matrix"),
    (VALUE, "f(np.integer)", "class P: pass\ndef f(P):\n    class D(P): pass\n    return D"),
    (VALUE, "class D(P): pass", "from typing import List as P"),
    (VALUE, "class D(metaclass=P): pass", "class P: pass"),
    (VALUE, "P('A', [('__array_interface__', 1)])", "from enum import Enum as P"),
    (VALUE, "enum.Enum('A', [('__array_interface__', 1)])", "import enum"),
    (VALUE, "type('A', (), {})", ""),
    (VALUE, "type(n)", ""),
    (VALUE, "type(*(n,)).__name__", ""),
    (VALUE, "type('A', (), {}).__name__", ""),
    (VALUE, "t = type(type(n)) is int or type", ""),
    (VALUE, "type(type(n)) == n", ""),
    (VALUE, "P().f()", "class P:\n    def f(self): return super().__class__"),
    (VALUE, "P().f()", "class P:\n    def f(self): return super().__reduce_ex__(2)"),
    (VALUE, "P().f()", "class P:\n    def f(self):\n        s = super()\n        return s"),
    (VALUE, "super(P, n).__init__()", "class P: pass"),
    (VALUE, "P; value.__globals__", "class P:\n    def __init__(self): self.__globals__ = 0"),
    (VALUE, "P; n", "class P:\n    @n.setter\n    def f(self): pass"),
    (VALUE, "get_type_hints(n)", "from typing import get_type_hints"),
    (VALUE, "typing.sys.modules", "import typing"),
    (VALUE, "statistics.sys", "import statistics"),
    (VALUE, "std_typing.sys", ""),
    (VALUE, "operator.attrgetter('x')(n)", "import operator"),
    (VALUE, "operator.matmul(n, n)", "import operator"),
    (LOOPS, "operator.methodcaller('x')(a)", "import operator"),
    (LOOPS, "type(a).__name__", ""),
)
# A comprehension, an inner function or an annotation binds a name for itself alone: elsewhere it is
# one of Python's, or of those that Triton's interpreter gave to a kernel.
SCOPES = (
    (PROGRAM, "w = [0 for np in (1,)]\n    np.load('x')", ""),
    (PROGRAM, "w = [0 for _interpreter in (1,)]\n    tl.store(a, _interpreter.load(a))", ""),
    (PROGRAM, "w = [0 for id in (1,)]\n    tl.store(a, id(K))", ""),
    (PROGRAM, "interpreter_semantic = 3", ""),
    (PROGRAM, "tl.store(a, interpreter_semantic.load(a))", ""),
    (PROGRAM, "tl.store(a, f())", "def f() -> [0 for np in (1,)]:\n    return np.load('x')"),
    (PROGRAM, "def f(np): return 3\n    tl.store(a, np.load('x'))", ""),
    (PROGRAM, "tl.store(a, f(1))", "def f(x, g=3) -> [0 for inspect in (1,)]:\n    return inspect"),
    (KERNEL, "w = [0 for id in (1,)]\n    a[0] = id(a)", ""),
    (KERNEL, "a[0] = f()", "def f() -> [0 for copy_async in (1,)]:\n    return copy_async"),
    (KERNEL, "def f(id): return 3\n    a[0] = id(a)", ""),
    (LOOPS, "w = [0 for id in (1,)]\n    a[0, 0] = id(a)", ""),
    (VALUE, "w = [0 for id in (1,)]\n    return id(n)", ""),
    (VALUE, "def f(id): return id\n    return id(n)", ""),
    (VALUE, "return (lambda id: id)(id(n))", ""),
    (VALUE, "return P.x", "class P:\n    x = id\n    id = 3"),
    (VALUE, "return {id for id in ()} or id(n)", ""),
)
ENUM = "from enum import Enum, IntEnum\nclass E(Enum): pass\nclass F(IntEnum):\n    A = 1\n"
SUNDER = f"{ENUM}class P:\n    def __init__(self): self._create_ = self._convert_ = 0"
ENUMS = (
    (VALUE, "return P, E._create_('A', [('__array_interface__', 1)])", SUNDER),
    (VALUE, "return P, F._convert_('A', 'B', n)", SUNDER),
)
# An imported name that means something else elsewhere.
IMPORTS = (
    (LOOPS, "return __builtins__", "from math import pi as __builtins__"),
    (LOOPS, "return f", "def f():\n    from math import pi as open\n    return open"),
    (LOOPS, "return open or X", "X = open\nfrom math import pi as open"),
    (LOOPS, "return functools.pi", "X = functools.reduce\nimport math as functools"),
    (LOOPS, "return f(a) or math.pi", "import math\ndef f(math):\n    return math.gi_frame"),
    (VALUE, "return f(n) or m.pi", "import math as m\ndef f(m):\n    return m.gi_frame"),
    (VALUE, "for m in [n]: return m.f_back", "import math as m"),
    (VALUE, "return [m.f_back for m in [n]]", "import math as m"),
    (VALUE, "return x.load", "import math as x\nimport numpy as x"),
    (KERNEL, "a[0] = np.pi + N", "N = np.load\nimport math as np"),
    (KERNEL, "a[0] = N", "import math\nmath = np\nN = math.load"),
    (KERNEL, "a[0] = N", "import math as m\nm = np\nN = m.load"),
    (KERNEL, "a[0] = math.pi + N", "import math\nN = (lambda math: math.gi_frame)(3)"),
)
# Numba evaluates a signature's text as Python.
F = "def f(x):\n    return x\n"
OPTIONS = (
    (KERNEL, "a[0] = g(1)", F + "g = cuda.jit(link='/tmp/x.ptx')(f)"),
    (KERNEL, "a[0] = g(1)", F + "g = cuda.jit('__import__(\"os\")')(f)"),
    (KERNEL, "a[0] = g(1)", F + "j = cuda.jit\ng = j('__import__(\"os\")')(f)"),
    (KERNEL, "a[0] = g(1)", F + "j = (cuda.jit,)\ng = j[0]('__import__(\"os\")')(f)"),
    (KERNEL, "a[0] = f(1)", "@cuda.jit('void.__class__')\n" + F),
    (KERNEL, "a[0] = f(1)", "@cuda.jit('print(1)')\n" + F),
    (KERNEL, "a[0] = f(1)", "@cuda.jit(('void(int32)', '[x for x in ()]'))\n" + F),
    (KERNEL, "a[0] = f(1)", "from numba.cuda import jit\n@jit('exec(\"1\")')\n" + F),
    (PROGRAM, "tl.store(a, g(1))", F + "g = triton.jit(f, repr=print, launch_metadata=print)"),
    (PROGRAM, "tl.load(a, _semantic=K)", ""),
    (PROGRAM, "tl.tensor(a, K)", ""),
)
# The interpreter runs a kernel's cell, and the compiler runs it again: it must be the same.
TWO_RUNS = (
    (KERNEL, "a[0] = R", F + "try:\n    f[1]\n    R = 1\nexcept Exception:\n    R = 0"),
    (KERNEL, "a[0] = R", "if True:\n    R = 1"),
    (KERNEL, "a[0] = R", "for R in (1, 2):\n    pass"),
    (KERNEL, "R[0] = a[0]", "R = [0] * 100"),
    (KERNEL, "R[0] = a[0]", "R = {}"),
    (KERNEL, "R[0] = a[0]", "R = (3,)\nR[0] = 3"),
    (KERNEL, "a[0] = R", "R = (i for i in (1, 2))"),
    (KERNEL, "a[0] = R", "R = (lambda x: x)(3)"),
    (KERNEL, "a[0] = R", "R = (S := 3) + 1"),
    (KERNEL, "a[0] = R", "R = zip((1, 2), (3, 4))"),
    (KERNEL, "a[0] = R", F + "R = len('%r' % f)"),
    (KERNEL, "a[0] = R", F + "g = f\nR = len(f'{g}')"),
    (KERNEL, "a[0] = R", F + "R = 1 if f == 3 else 2"),
    (KERNEL, "a[0] = R", F + "h = (f,)\nR = h[0][1, 1]"),
    (KERNEL, "a[0] = f(1)", "def f(x, seen=[0] * 100):\n    return x"),
    (KERNEL, "a[0] = f(1)", "def f(x, *, seen={}):\n    return x"),
    (PROGRAM, "R[0] = tl.load(a)", "R = [0]"),
    (PROGRAM, "tl.store(a, isinstance(K, int))", ""),
)


@pytest.mark.parametrize(
    "line", ["E('A', [('__array_interface__', 1)])", "F('A', 'X')", "E('A', names='X')"]
)
def test_no_enumeration_makes_a_class(line):
    space = kinds.prepare("values")
    exec(gate.admit(VALUE, answer(VALUE, f"return {line}", ENUM)), space)
    with pytest.raises(TypeError):
        space["value"](4)


@pytest.mark.parametrize(
    ("one", "line", "above"),
    [
        *BY_NAME,
        *CLASSES,
        *OWN_NAMES,
        *MODULES,
        *OF_ARRAYS,
        *SCOPES,
        *ENUMS,
        *IMPORTS,
        *OPTIONS,
        *TWO_RUNS,
    ],
)
def test_what_got_past_the_list_does_not(one, line, above):
    with pytest.raises(gate.Refused):
        gate.admit(one, answer(one, line, above))


def held():
    """Return what an answer of the kind "values" can hold: what it names, and what that makes."""

    def generator():
        yield 1

    space, things = kinds.prepare("values"), {}
    for name in spec.VALUES.attributes:
        root, *rest = name.split(".")
        module, rest = (space[root], rest) if root in space else (builtins, rest)
        names = [n for n in dir(module) if n[0] != "_"] if rest == ["*"] else [".".join(rest)]
        things |= {f"{root}.{one}": operator.attrgetter(one)(module) for one in names}
    things |= {name: getattr(builtins, name) for name in spec.VALUES.names if name in dir(builtins)}
    namespace = {}
    exec(CLASSES_OF_ALL_KINDS, space, namespace)
    for number, source in enumerate(("1 / 0", "[][1]", "{}[1]", "x_y_z", "(1).a", "''.encode(1)")):
        try:
            eval(source)
        except Exception as error:
            things[f"error {number}"] = error
    numbers = np.ones((2, 2))
    some = (generator(), generator, numbers, numbers.dtype, numbers[0, 0], numbers.flat, np.add)
    some += (np.random.default_rng(0), functools.partial(max), functools.lru_cache(generator))
    some += (fractions.Fraction(1, 2), Counter(), defaultdict(int), deque(), iter([]), zip(), map)
    some += (range(3), slice(3), "a", b"a", 1, 1.5, 1j, None, ..., (), [], {}, {1}, {}.values())
    some += (
        NotImplemented,
        [].append,
        len,
        itertools.chain(),
        itertools.tee([])[0],
        space["np"].pi,
    )
    return {**things, **namespace, **{repr(one): one for one in some}}


CLASSES_OF_ALL_KINDS = """
class Plain:
    def method(self): pass
    @property
    def p(self): pass
    @staticmethod
    def s(): pass
    @classmethod
    def c(cls): pass
Named = collections.namedtuple("Named", "x y")
Typed = std_typing.NamedTuple("Typed", [("x", int)])
class Side(std_enum.Enum):
    LEFT = 1
Data = dataclasses.make_dataclass("Data", ["x"])
a, b, c, d, e = Plain(), Named(1, 2), Typed(1), Side.LEFT, Data(1)
g, h, i = Plain().method, Plain.p, dataclasses.field(default=1)
"""


def leads_out(thing):
    """Does it run any code, or is it a module, its names, a frame or memory?"""
    if isinstance(thing, dict):
        return "__builtins__" in thing or "__loader__" in thing
    out = (eval, exec, compile, open, getattr, setattr, __import__, globals, vars)
    return (
        isinstance(thing, ModuleType | FrameType | CodeType | TracebackType)
        or any(thing is one for one in out)
        or type(thing).__module__.partition(".")[0] in ("ctypes", "_ctypes", "cffi")
    )


def test_no_attribute_leads_out_of_what_an_answer_can_hold():
    """Whatever names the classes of an answer open: those of other objects, too."""
    refused = allowed.INNARDS | allowed._of_arrays() - spec.VALUES.members
    seen, todo = set(), [(name, thing, 0) for name, thing in held().items()]
    while todo:
        path, thing, depth = todo.pop()
        assert not leads_out(thing), path
        key = thing if isinstance(thing, type | FunctionType) else (type(thing), path[-20:])
        if depth == 4 or key in seen:
            continue
        seen.add(key)
        for name in dir(thing):
            if not (name.startswith("__") or name in refused):
                with contextlib.suppress(Exception):
                    todo.append((f"{path}.{name}", getattr(thing, name), depth + 1))
    assert len(seen) > 1_000


@pytest.mark.parametrize(
    ("one", "line", "above"),
    [
        (VALUE, "return '{:.3f} {0} {{}} {:>{w}}'.format(n, n, w=3)", ""),
        (VALUE, "return functools.reduce(f, [n]) + functools.lru_cache(None)(f)(n)", F),
        (VALUE, "return P(n) + 1", "class P:\n    def __add__(self, x):\n        return x"),
        (VALUE, "return P(n, 1).size", "class P:\n    def __init__(self, n, k): self.size = n"),
        (
            VALUE,
            "return P(n, 1).inner",
            "import collections as c\nP = c.namedtuple('P', 'inner k')",
        ),
        (LOOPS, "b.fill(0)\n    return float.is_integer(float(a[0, 0]))", ""),
        (VALUE, "return P(n, 1).mine", "import collections as c\nP = c.namedtuple('P', 'mine k')"),
        (VALUE, "return floor(m.pi)", "import math as m\nfrom math import floor, pow"),
        (KERNEL, "a[0] = g(1)", F + "g = cuda.jit(device=True)(f)"),
        (KERNEL, "a[0] = g(1)", "g = cuda.jit(lambda x, y=2: x + y, device=True)\nh = g"),
        (KERNEL, "a[0] = g(1)", F + "import numba as nb\ng = cuda.jit(f)\nG = (f, g)"),
        (KERNEL, "a[0] = f(1)", "from numba.cuda import jit\n@jit(device=True)\n" + F),
        (KERNEL, "a[0] = f(1)", "@cuda.jit('void(float32[:, ::1], f8[:], i4)')\n" + F),
        (KERNEL, "a[0] = f(1)", "@cuda.jit('int32(int32)', device=True, inline='always')\n" + F),
        (KERNEL, "a[0] = N + M", "N: int = min(3, 4) * 2 if 3 < 4 else -1\nM, L = (1, 2)\n''"),
        (PROGRAM, "tl.store(a, tl.math.exp(B))", "B = tl.constexpr(16)\nC = tl.cdiv(3, 2)"),
    ],
)
def test_what_is_right_is_still_run(one, line, above):
    gate.admit(one, answer(one, line, above))


# Time: the grader itself reads an answer's source, so no answer may make that slow.

NAMES = [f"{x}{y}" for x in "ABCDEFGHIJKLMNOPQRSTUVWXYZabc" for y in "BCDEFGHIJKLMNOPQRSTU"]
SLOW = {
    "attributes": "def value(n):\n" + " n.x=1\n" * 2800,
    "attributes of self": "class P:\n def f(s):\n" + "  s.x=1\n" * 2300 + "def value(n):\n P",
    "methods": "class P:\n" + " def __eq__(s):0\n" * 1000 + "def value(n):\n P",
    "needs": "".join(f"{y}={x}\n" for x, y in zip(NAMES, NAMES[1:], strict=False))
    + f"def value(n):\n return {NAMES[-1]}",
}


@pytest.mark.parametrize("source", SLOW.values(), ids=SLOW)
def test_no_answer_makes_the_gate_slow(source):
    began = time.process_time()
    try:
        gate.admit(VALUE, source)
    except gate.Refused:
        pass
    assert time.process_time() - began < 2  # it is some tenths; once it was up to 50 seconds


def test_a_doubt_is_told_once_whatever_there_is_of_it():
    source = f"def value(n):\n return (1{'<1&1' * 4800}<1)"
    began = time.process_time()
    assert len(list(itertools.islice(allowed.doubts(source), 1))) == 1
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "source",
    [
        "@(\nmin\n)\ndef unused(): pass\ndef value(n):\n    return n\n",
        "def value(n):\n    return n\nzz = 1; \\\nyy = 2\n",
        "yy = 2 \\\n; zz = 3\ndef value(n):\n    return n\n",
    ],
)
def test_an_answer_that_cannot_be_cut_is_no_fault_of_the_grader(source):
    compile(source, "", "exec")
    try:
        ast.parse(gate.admit(VALUE, source))
    except gate.NotYet as error:
        assert "on a line of its own" in str(error)


@pytest.mark.parametrize(
    "line",
    [
        "def f(x, x): return x",
        "x = 1; global x",
        "nonlocal x",
        "[x := 1 for x in range(3)]",
        "[i for i in (j := range(3))]",
        "return [(yield x) for x in range(3)]",
        "global x; x: int = 3",
        "f = lambda x, x: x",
    ],
)
@pytest.mark.parametrize("name", ["01.1", "01.2", "05.1", "10.1"])
def test_a_fault_of_names_is_the_answers_and_not_the_graders(name, line):
    one = exercise(name)
    source = f"{one.marker}\ndef {one.entry}(a, b, c):\n    {line}\n    return 1\n"
    with pytest.raises(SyntaxError):
        compile(source, "", "exec")
    verdict = judge(one, source, confined=False)
    assert verdict.status == "WRONG" and "ine 3 " in verdict.message, verdict


def test_a_copy_takes_no_memo_of_the_answers_own():
    space = kinds.prepare("values")
    assert space["std_copy"].deepcopy([[1], {2: [3]}]) == [[1], {2: [3]}]
    with pytest.raises(TypeError):
        space["std_copy"].deepcopy([], {})


@pytest.mark.parametrize(
    "line",
    [
        "x.name = 1",
        "x.real += 1",
        "del x.name",
        "for x.name in (1, 2): pass",
        "(x.name, y) = (1, 2)",
        "x.name: int = 2",
    ],
)
@pytest.mark.parametrize("thing", ["dataclasses.field()", "fractions.Fraction", "Mapping", "f"])
def test_what_is_not_the_answers_own_gets_no_attributes(thing, line):
    above = (
        "import dataclasses, fractions, functools\nfrom collections.abc import Mapping\n"
        "class Own:\n    def __init__(self):\n        self.name = self.real = 0\n"
        "@functools.cache\ndef f(n):\n    return n\n"
    )
    source = f"{above}def value(n):\n    Own()\n    x = {thing}\n    {line}\n    return n\n"
    verdict = judge(VALUE, source, confined=False)
    assert verdict.status in ("WRONG", "NOT_YET", "FORBIDDEN"), verdict
    mine = source.replace(f"x = {thing}", "x = Own()")
    assert "not known here" not in judge(VALUE, mine, confined=False).message


def test_a_message_looks_like_no_other_learners_line():
    padded = "no" + " " * 300 + "\u2800\u3164\uffa0" * 30
    padded += "bob.ipynb 01.1 PASS 3 of 3\nbob.ipynb,01.2,PASS,2,2,0,"
    one = {"exercise": "01.1", "status": "WRONG", "points": 0, "max_points": 3, "hint": None}
    one |= {"evidence": {"message": padded}, "diagnosis": "error", "seed": 1}
    report = {"path": "alice.ipynb", "exercises": [one], "notices": []}
    shown = practice.lines(practice._printable(report))
    assert len(shown) == 2 and " " * 20 not in shown[1]
    assert not any(blank in shown[1] for blank in cells.EMPTY)
    assert len("".join(as_csv([report])).splitlines()) == 2


def test_the_text_of_one_answers_code_is_not_another_answer():
    source = "def value(n):\n    return n\n"
    assert gate.meant(gate.meant(source)) != gate.meant(source)
    assert gate.meant(gate.meant(source).partition(" ")[2]) != gate.meant(source)


def test_answers_are_parsed_one_at_a_time(monkeypatch):
    at_once, most = [], []

    def parsed(source, mode="exec"):
        at_once.append(source)
        most.append(len(at_once))
        time.sleep(0.01)
        at_once.pop()
        return ast.Module([], [])

    monkeypatch.setattr(allowed.ast, "parse", parsed)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(gate.meant, [f"x = {n}" for n in range(8)]))
    assert most == [1] * 8


def test_a_number_that_python_does_not_write_is_told_all_the_same():
    with pytest.raises(gate.Mistake, match="but here it is"):
        gate.admit(VALUE, f"def value(n, m, k=0x{'f' * 9000}):\n    return 1")


# Loops on watched matrices: behind the list, an object of the answer's is no index and no number.


class Liar:
    """Is another index each time, and has an array's attributes."""

    ndim = 0

    def __init__(self):
        self.asked = 0

    def __index__(self):
        self.asked += 1
        return self.asked % 2

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return 1.0

    def __radd__(self, other):
        return 0.0

    __float__ = __index__


@pytest.mark.parametrize(
    "use",
    [
        lambda a, c: a[Liar(), 0],
        lambda a, c: a[0][Liar()],
        lambda a, c: a[Liar() : 3],
        lambda a, c: a[:: Liar(), 0],
        lambda a, c: a[[Liar(), 1]],
        lambda a, c: c.__setitem__(Liar(), 0),
        lambda a, c: c.__setitem__((0, 0), Liar()),
        lambda a, c: c.__setitem__(0, Liar()),
        lambda a, c: c.__setitem__(0, [Liar()] * 5),
        lambda a, c: a + Liar(),
        lambda a, c: c.__setitem__((0, 0), "3"),
    ],
)
def test_an_object_is_no_index_and_no_number(use):
    record = Record()
    a, _, c = record.watch(A=np.ones((3, 4)), B=np.ones((4, 5)), C=np.zeros((3, 5)))
    with pytest.raises((TypeError, IndexError)):
        use(a, c)
    assert sum(record.reads.values()) in (0, 12) and record.writes == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda x, y: x.real * y.real,
        lambda x, y: Float(x) * Float(y),
        lambda x, y: +x * +y,
        lambda x, y: (x + 0.0) * (1.0 * y),
        lambda x, y: (x / 1.0) * abs(-y),
        lambda x, y: math.prod([+x, y]),
        lambda x, y: round(x, 9) * x.conjugate(),
        lambda x, y: sum([x]) * (0.0 + y),
        lambda x, y: (x - 0.0) * -(0.0 - y),
        lambda x, y: x**2,
    ],
)
def test_an_element_stays_one_that_is_counted(use):
    record = Record()
    a, b, _ = record.watch(A=np.ones((3, 4)), B=np.ones((4, 5)), C=np.zeros((3, 5)))
    assert use(a[0, 0], b[0, 0]) == 1
    assert (record.products, record.longest) == (1, 2)
    a[0, 1] * 1.0, 2.0 * a[0, 2], a[0, 3] + 1.0
    assert (record.products, record.longest) == (1, 3)
    assert isinstance(1.0, Float) and not isinstance(1, Float) and type(Float("2.5")) is float


ALONE = """@cuda.jit
def two_buffers(a, b, c):
    if cuda.threadIdx.x or cuda.threadIdx.y:
        return
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    rows, columns = min(TILE, c.shape[0] - top), min(TILE, c.shape[1] - left)
    sums, row = cuda.local.array((TILE, TILE), np.float32), cuda.local.array(TILE, np.float32)
    for i in range(rows):
        for j in range(columns):
            sums[i, j] = 0
    for k in range(a.shape[1]):
        for j in range(columns):
            row[j] = b[k, left + j]
        for i in range(rows):
            x = a[top + i, k]
            for j in range(columns):
                sums[i, j] += x * row[j]
    for i in range(rows):
        for j in range(columns):
            c[top + i, left + j] = sums[i, j]
"""


@pytest.mark.parametrize("name", ["05.2", "05.3", "05.4", "07.1", "08.1"])
def test_one_thread_does_not_pass_with_what_its_block_should_share(name):
    one = exercise(name)
    source = ALONE.replace("two_buffers", one.entry)
    verdict = judge(one, source.replace("np.float32", "np.int32") if name == "05.4" else source)
    assert verdict.status == "WRONG" and "a few threads compute" in verdict.message, verdict
    assert verdict.points == 0


TWICE = """def half(a, c):
    M, K = a.shape
    for i in range(M):
        for j in range(M):
            total = 0.0
            for k in range(K):
                total += {0} * {1}
            c[i, j] = total
"""


@pytest.mark.parametrize("way", ["{}.real", "float({})", "+{}", "({} + 0.0)", "(1.0 * {})"])
def test_products_are_counted_whatever_is_done_to_the_elements_before(way):
    source = TWICE.format(way.format("a[i, k]"), way.format("a[j, k]"))
    verdict = judge(exercise("01.3"), source)
    assert (verdict.status, verdict.diagnosis) == ("WRONG", "counts"), verdict


STREAMED = """def streamed(a, b, c):
    K, M = a.shape
    N = b.shape[1]
    A = [[a[k, i] * 1.0 for i in range(M)] for k in range(K)]
    B = [[b[k, j] * 1.0 for j in range(N)] for k in range(K)]
    for i in range(M):
        for j in range(N):
            total = 0.0
            for k in range(K):
                total += A[k][i] * B[k][j]
            c[i, j] = total
"""


def test_a_copy_is_one_whatever_it_is_multiplied_by():
    verdict = judge(exercise("02.3"), STREAMED)
    assert (verdict.status, verdict.diagnosis) == ("WRONG", "copied"), verdict


COPIED = """def loops_4(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    B = [[b[k, j] for j in range(N)] for k in range(K)]
    for i in range(M):
        row = [0.0] * N
        for k in range(K):
            for j in range(N):
                row[j] += a[i, k] * B[k][j]
        for j in range(N):
            c[i, j] = row[j]
"""


def test_loops_without_tiles_do_not_pass_with_a_copy_of_b():
    verdict = judge(exercise("03.1"), COPIED)
    assert (verdict.points, verdict.diagnosis) == (0, "copied"), verdict


# Folders, names and files.


def test_a_folder_that_may_not_be_searched_stops_no_one_elses_marks(tmp_path, monkeypatch):
    for name in ("alice", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "05.ipynb").write_text("{}")
    own = os.lstat

    def lstat(path, *args, **named):
        if "bob/" in os.fspath(path):
            raise PermissionError(13, "Permission denied", path)
        return own(path, *args, **named)

    monkeypatch.setattr(os, "lstat", lstat)
    there = dict(teacher.submissions(tmp_path))
    assert there == {tmp_path / name / "05.ipynb": None for name in ("alice", "bob")}


ODD = "\u2215 \u2044 \uff0f \u3164 \xa0 \u2003 \u3000 \t \n \u200b".split(" ")
ODD += "\u27cb \u3033 \u2cc6 \u1735 \\ \u0338 \uff89 \u30ce \u4e3f \u20e5 \u20eb \u20dd".split(" ")
ODD += "\u034f \ufe0f \u17b4 \u180b \U000e0100 \uffa0".split(" ")


@pytest.mark.parametrize("odd", [*ODD, ""])
def test_a_name_does_not_look_like_another_learners_folder(odd, tmp_path):
    name = f"alice{odd or ' '}05.ipynb"
    shown = teacher.shown(tmp_path / name, tmp_path)
    assert re.fullmatch(r"alice\?05\.ipynb \[[0-9a-f]{8}\]" if odd else re.escape(name), shown)
    for name in ("Übung (1) – Kopie.ipynb", "李/05.ipynb", "e\u0301tude.ipynb", "हिन्दी.ipynb"):
        assert teacher.shown(tmp_path / name, tmp_path) == name


def test_no_two_names_look_the_same_and_none_fills_a_line(tmp_path):
    names = [
        "ana\u2800bel",
        "ana\u2066bel",
        "ana\u3164bel",
        "ana?bel",
        "ana bel",
        "ana  bel",
        " ana",
    ]
    shown = [teacher.shown(tmp_path / f"{name}.ipynb", tmp_path) for name in names]
    assert len(set(shown)) == len(names) and not any("  " in one for one in shown)
    blanks = " " * 77
    assert blanks[:3] not in teacher.shown(tmp_path / f"zed{blanks}bob.ipynb", tmp_path)


def test_two_gradings_do_not_write_one_journal(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "in").mkdir()
    with Journal(tmp_path / "marks.part", tmp_path / "in"):
        with pytest.raises(ValueError, match="another grading"):
            Journal(tmp_path / "marks.part", tmp_path / "in")
    with Journal(tmp_path / "marks.part", tmp_path / "in") as kept:
        assert not kept.kept


def test_one_answer_that_the_grader_fails_on_leaves_the_others_their_marks(monkeypatch):
    (path,) = [path for path in starters.solutions() if path.name.startswith("01")]

    def judged(one, source, **options):
        return 1 / 0 if one.name == "01.1" else verdict(one, "WRONG", "no")

    monkeypatch.setattr(practice, "judge", judged)
    statuses = [one["status"] for one in practice.grade(path, False)["exercises"]]
    assert statuses[0] == "INFRA" and set(statuses[1:]) == {"WRONG"}


def test_nothing_but_tmp_can_be_written_in_a_sandbox_whoever_owns_it():
    if not pool.sandbox_works():
        pytest.skip("bubblewrap makes no sandbox here")
    tries = "for d in / /dev /dev/shm /etc /tmp; do echo x > $d/x && echo $d; done; true"
    command = [pool.sandbox.find_bwrap(), *pool._confined(), "sh", "-c", tries]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["/tmp"], done


def test_a_worker_that_only_waits_for_a_processor_is_not_too_slow(monkeypatch):
    """As with more jobs than processors, or beside an answer that keeps them all busy."""
    busy = {"source": "for i in range(4 * 10**6): pass\n\ndef f(): pass", "given": {}, "entry": "f"}
    for again in (True, True, False):  # for a moment it may sleep, until it gets a page of memory
        with pool.Worker("values", Limits(), False) as worker, monkeypatch.context() as patched:
            # A process that has only begun may wait for its files, and be taken for one asleep.
            assert worker.ask(busy | {"source": "def f(): pass"}, [], 9, 0)[0] == {"defined": True}
            patched.setattr(pool, "SLACK", 0.03)
            patched.setattr(pool, "STARVED", 1e3)
            try:
                assert worker.ask(busy, [], 3, 0)[0] == {"defined": True}
            except pool.TooSlow:
                assert again, "three times it was taken for one that sleeps"
                continue
            asleep = busy | {"source": "import time\ntime.sleep(9)"}
            with pytest.raises(pool.TooSlow):
                worker.ask(asleep, [], 3, 0)
            return


def test_workers_find_the_course_compiled(tmp_path, monkeypatch):
    (tmp_path / "module.py").write_text("x = 3\n")
    monkeypatch.setattr(pool, "PACKAGE", tmp_path)
    pool.compiled.__wrapped__()
    assert list(tmp_path.glob("__pycache__/module.*.pyc"))
    monkeypatch.setattr(pool, "PACKAGE", tmp_path / "nowhere")
    pool.compiled.__wrapped__()


def test_an_exception_of_the_answers_own_is_no_fault_of_the_interpreter():
    error = {"type": "Unsupported", "message": "not my fault", "line": 3}
    assert compare.failed(error, "cuda").status == "NOT_YET"
    assert (
        compare.failed(error, "values").status == compare.failed(error, "loops").status == "WRONG"
    )


@pytest.mark.parametrize(
    ("result", "wanted", "same"),
    [
        (2e12 * (1 + 5e-10), 2 * 10**12, False),
        (2e12 * (1 + 2**-50), 2 * 10**12, True),
        (7.0000000005, 7, True),
        (2e12 * (1 + 5e-10), 2e12, True),
        (3.0, 3, True),
        (3, 3.0, True),
        (True, 1, False),
    ],
)
def test_a_whole_number_may_be_off_by_its_last_digits_alone(result, wanted, same):
    assert compare._alike(result, wanted) is same


@pytest.mark.parametrize("safe", [["-P"], []])
def test_a_module_among_the_submissions_is_not_imported(safe, tmp_path):
    """The teacher stands in the folder of submissions, with a module of a learner's in it."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    names = ("csv", "argparse", "numpy", "tiled_matmul") if safe else ("csv", "argparse", "numpy")
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'w')\n")
    command = [sys.executable, *safe, "-m", "tiled_matmul", "grade", "--teacher", "."]
    kept = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
    assert done.returncode == 0 and "csv.py" in done.stdout, done
    assert not (tmp_path / "taken").exists()


def test_a_worker_has_a_session_keyring_of_its_own():
    """Else it could read the keys of whoever grades, add some and clear them."""
    worker_limits = "from tiled_matmul.grader import worker; import ctypes\n"
    session = "print(ctypes.CDLL(None).syscall(worker.KEYRINGS[__import__('os').uname().machine]"
    session += ", 0, -3, 1))\n"  # KEYCTL_GET_KEYRING_ID of the session, made if there is none
    limit = "worker._limit({'memory': None, 'processes': None})\n"
    code = worker_limits + session + limit + session
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    old, new = map(int, done.stdout.split())
    if old == -1:
        pytest.skip("this kernel has no keyrings, or forbids them")
    assert new > 0 and old != new, done
