"""What an exercise is, as data: its cell, what its answer may use, its cases, and how it is judged.

`judge.py` in the folder of an exercise makes one; `folders.py` reads it. Nothing here runs a
learner's code, and the process that does never reads a judge: it is sent what it needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tiled_matmul.problem import Problem

KINDS = ("cuda", "triton", "loops", "values")
NAME = re.compile(r"\d\d\.\d{1,2}")
WHOLE = {"wide": 32, "bytes": 127, "thousands": 8_000, "wrapping": 100_000, "full": 2**31 - 1}
"""The largest of the whole numbers of a draw, with either sign. Sums of six products are beyond
2**24 for "thousands", beyond 2**31 for "wrapping", and beyond 2**53 for "full"."""


@dataclass(frozen=True)
class Case:
    """One product to be computed: C (m, n) = A (m, k) · B (k, n).

    `draw` says what A and B hold: "integers" and "normal" as in `Problem.inputs`, from a seed that
    is new for each grading, "positive": the latter without their signs, "wide": whole numbers from
    -32 to 32, or "puzzle": 0, 1, 2, … and twice that. What the learner cannot see beforehand is
    `hidden`. `given` replaces values of the exercise's own. `order` is the one in which the
    interpreter runs the threads.

    For programs of Triton: the matrices that `by_columns` names ("a", "bc") are stored by columns,
    and a vector there is a column of a matrix; in a `corner`, A and B are corners of larger
    matrices that hold zeros; `apart`, other numbers lie between the elements of each array; where
    there are `parts`, the kernel stores so many matrices of C's size, whose sum is C.
    """

    m: int
    n: int
    k: int
    dtype: str = "float32"
    draw: str = "integers"
    hidden: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)
    order: str = "forward"
    by_columns: str = ""
    corner: bool = False
    apart: bool = False
    parts: int = 0

    def drawn(self, seed: int, shapes: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
        """Return an array of each shape, filled as `draw` says; the same for the same seed."""
        random = np.random.default_rng(seed)
        if self.draw == "integers":
            arrays = (random.integers(-4, 5, shape) for shape in shapes)
        elif self.draw in WHOLE:
            most = WHOLE[self.draw]
            arrays = (random.integers(-most, most + 1, shape) for shape in shapes)
        elif self.draw in ("normal", "positive"):
            normal = (random.standard_normal(shape) for shape in shapes)
            arrays = (abs(x) if self.draw == "positive" else x for x in normal)
        else:
            raise ValueError(f"{self.draw!r} says nothing about arrays of any shape")
        return tuple(x.astype(self.dtype) for x in arrays)

    def inputs(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (a, b), the same for the same seed."""
        if self.k == 0:
            return tuple(np.zeros(shape, self.dtype) for shape in self.shapes[:2])
        if self.draw == "puzzle":
            a, b = (np.arange(r * c).reshape(r, c) for r, c in self.shapes[:2])
            return a.astype(self.dtype), (2 * b).astype(self.dtype)
        if self.draw == "positive":
            a, b = Problem(self.m, self.n, self.k, self.dtype).inputs(seed, "normal")
            return abs(a), abs(b)
        if self.draw in WHOLE:
            random, most = np.random.default_rng(seed), WHOLE[self.draw]
            a, b = (random.integers(-most, most + 1, shape) for shape in self.shapes[:2])
            return a.astype(self.dtype), b.astype(self.dtype)
        return Problem(self.m, self.n, self.k, self.dtype).inputs(seed, self.draw)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """The shapes of A, B and C, or of A, B and the parts of C."""
        parts = (self.parts,) if self.parts else ()
        return (self.m, self.k), (self.k, self.n), (*parts, self.m, self.n)

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self.given.items())
        sizes = f"A {self.m}×{self.k} times B {self.k}×{self.n}"
        return f"{sizes} with {given}" if given else sizes


@dataclass(frozen=True)
class Operation:
    """What a kernel or loops compute, if that is not C = A·B for two matrices.

    `arrays` names the kernel's arrays in their order; the last one, c, is its output. `shapes`
    returns their shapes for a case; arrays of loops have two axes. `product` returns, from a case
    and the inputs, the matrices (X, Y) whose product the output is, stacks of matrices for a batch,
    or a matrix and a vector: then the error bound and the messages are those of a product.
    Otherwise `result` returns, from a case and the inputs in float64, the right output and the size
    that rounding errors are relative to (for a sum, the sum of the sizes of its terms), and `terms`
    returns how many roundings there are one after another.

    A kernel of Triton gets `sizes` of the case ("mnk"), then the strides of all arrays. Findings of
    these kinds are `ignored`, such as "not stored" where part of C is not asked for. `describe`
    returns what a case is called in messages.
    """

    arrays: tuple[str, ...]
    shapes: Callable[[Case], tuple[tuple[int, ...], ...]]
    product: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None
    result: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None
    terms: Callable[[Case], int] = lambda case: case.k
    sizes: str = "mnk"
    ignored: tuple[str, ...] = ()
    describe: Callable[[Case], str] | None = None

    def __post_init__(self) -> None:
        if self.arrays[-1:] != ("c",) or len(self.arrays) < 2:
            raise ValueError(f"the last of the arrays is the output c, got {self.arrays}")
        if (self.product is None) == (self.result is None):
            raise ValueError("an operation has either a `product` or a `result`")


@dataclass(frozen=True)
class Call:
    """One call of a function whose arguments and result are numbers, strings, lists or dicts.

    `draw` makes the arguments from a random generator, anew for each grading.
    """

    arguments: tuple = ()
    hidden: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[[np.random.Generator], tuple] | None = None

    def drawn(self, seed: int) -> Call:
        """Return the call with its arguments drawn, the same for the same seed."""
        if self.draw is None:
            return self
        return replace(self, arguments=self.draw(np.random.default_rng(seed)), draw=None)

    def __str__(self) -> str:
        return f"({', '.join(map(repr, self.arguments))})"


@dataclass(frozen=True)
class Slip:
    """A usual mistake of an exercise: whose result it has, made it.

    `answer` computes what comes of the mistake, `message` says in sentences which one it is. For
    the kind "values" `answer` is called with the call's arguments; where C is the result, with
    (case, a, b) or the case and an operation's inputs, and it returns the C that comes of it. None
    is where the mistake does not show; an element that is NaN there may be anything.
    Where a result is a list, `part` may be the place of the one value that is to be compared.
    """

    answer: Callable[..., Any]
    diagnosis: str
    message: str
    part: int | None = None


@dataclass(frozen=True)
class Count:
    """A limit on what the microscope counted: `what` is one of the worker's counts.

    For "cuda" these are "global loads" and "stores" (elements), "global stores of a thread", "loads
    of a thread" and "shuffles of a thread" (at most), "global load sectors" and "store sectors",
    "shared loads", those "of a thread" and "of a warp" (at most), "shared words" (those that differ
    in a load of a warp), "bank conflicts", "shared bytes", "barriers" (of all blocks), "needless
    barriers of a block", "plain global loads", "copies", "bare copies" and "phases in flight"; for
    "triton" "elements loaded", "elements stored", those "by a program" (at most), "products" (of
    `tl.dot`, if the result comes from them) and "products of a program"; for "loops" "reads of A",
    "of B", "of C", "writes of C", "whole rows", "products" (of floats; with a cache, those of C =
    A·B), the most "reads without a product" in a row and, with a cache, "words fetched", "lines
    fetched" or "tiles fetched"; those of a second cache are called "words fetched by cache 2".
    `most` is the largest number allowed in a case, `least` the smallest; `message` says in a
    sentence what another number means. `share` of the points is for a right C all the same: 0 where
    the starter's is right already. `best` is the count of the best answer known; a learner who
    passes sees it beside the own one.
    """

    what: str
    most: Callable[[Case], int] | None
    message: str
    diagnosis: str = "counts"
    share: float = 0.5
    least: Callable[[Case], int] | None = None
    best: Callable[[Case], int] | None = None


@dataclass(frozen=True)
class Walk:
    """Which tile of C each program of a grid with one axis has to store.

    `tile` returns (row, column) of a program's tile, counted in tiles, from a case and the
    program's number; `block` returns a tile's (rows, columns) of elements in a case. `others` are
    the orders of common mistakes: each is (tile, diagnosis, message), and its tile may lie outside
    C. A right C in another order earns `share` of the points, with `message` and `diagnosis`.
    """

    tile: Callable[[Case, int], tuple[int, int]]
    block: Callable[[Case], tuple[int, int]]
    message: str
    diagnosis: str = "order"
    others: tuple[tuple[Callable[[Case, int], tuple[int, int]], str, str], ...] = ()
    share: float = 0.5


@dataclass(frozen=True)
class Speed:
    """How fast an answer is to be on a GPU: `case` is timed against a rung, in the same run.

    `against` is a rung of the ladder or "cublas", `least` its time over the answer's that earns
    `points`, on top of the exercise's own; `message` says in a sentence what slower means.
    An answer that is no kernel returns, for the case's m and n, a list of settings of the rung
    `of`: `settings` says which keyword of its launcher is which of them, a place or (first, stop).
    It is asked for on GPUs whose compute capability begins with one of `majors`: those on which
    `least` has been measured.
    """

    case: Case
    against: str
    least: float
    points: int
    message: str
    of: str | None = None
    settings: Mapping[str, int | tuple[int, int]] | None = None
    majors: tuple[int, ...] = (9,)

    def keywords(self, result: Sequence[Any]) -> dict[str, Any]:
        """Return the keywords of the launcher that a list of settings means."""
        places = (self.settings or {}).items()
        return {
            name: result[slice(*place)] if isinstance(place, tuple) else result[place]
            for name, place in places
        }


@dataclass(frozen=True)
class Rules:
    """What an answer may use, on top of its own names and the arguments of its functions.

    `names` may be read and called, `modules` are there under these names, `attributes` are written
    out with their root ("cuda.grid", or "math.*" for all of a module), and `members` may be asked
    of anything ("shape"). `withheld` holds pairs of a name that an exercise does without, and what
    is asked for instead.
    """

    names: frozenset[str]
    attributes: frozenset[str]
    members: frozenset[str]
    decorators: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    withheld: tuple[tuple[str, str], ...] = ()


SLACK = 3.0
COST = {"values": 0.1, "loops": 0.2, "cuda": 1.0, "triton": 2.0}
"""Seconds of a processor that the course's own answer takes for all cases, where its limits name no
`cost`."""


@dataclass(frozen=True)
class Limits:
    """What one answer may take: seconds for each case and in all, bytes of memory and of output.

    A case's seconds are its process's own, of a processor; on a clock it may take SLACK times as
    long, and longer while other processes keep it waiting, so that a busy machine is nobody's
    fault; on a slow machine all of it is as many times longer (`pool.slowness`). The same holds for
    all cases together: they may take ten times the `cost` of the course's own answer, and five
    seconds more.
    On a GPU `build_seconds` are for compiling it, `gpu_seconds` for a launch and for a timing.
    """

    seconds: float = 8.0
    cost: float | None = None
    in_all: float | None = None
    memory: int = 4 << 30
    output: int = 64 << 10
    processes: int = 16
    start_seconds: float = 60.0
    build_seconds: float = 60.0
    gpu_seconds: float = 30.0


@dataclass(frozen=True)
class Exercise:
    """One exercise. `name` is "05.1", `entry` the function that it asks for and its `parameters`.

    `cases` are Calls for the kind "values", Cases for the others. `launch` gives grid and block of
    a case for "cuda", grid and constants for "triton", for "loops" the caches that are watched: the
    words of each, or (room, rows, columns) if it holds `room` lines or tiles of that shape. `tile`
    is the edge of the tiles that a message names. `given` are the constants that the notebook
    defines for the answer. `answer` is the judge's own result for the kind "values"; where others
    are right as well, `accepts` returns "" for such a result, else in a sentence what it is, and
    `choices` names the given constant that lists all possible results. In a learner's copy digests
    of the results are `sealed` in place of `answer`, `accepts` and `slips`. `slips` are usual
    mistakes. `hints` maps a diagnosis to the number of the hint that it calls for, "other" to that
    for all the rest, `remedies` a kind of finding to what the microscope's own advice is replaced
    by. `walk` says which program of a Triton kernel stores which tile, if that is asked for.

    On a GPU whose compute capability is `since` or later the first case is run, those that are
    `large` too, and `speed` is timed. A kernel whose `operation` is none computes C = A·B.
    """

    name: str
    title: str
    points: int
    entry: str
    parameters: tuple[str, ...]
    kind: str
    rules: Rules
    cases: tuple[Any, ...]
    hints: Mapping[str, int]
    launch: Callable[[Any], tuple] | None = None
    tile: int | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    answer: Callable[..., Any] | None = None
    accepts: Callable[[tuple, Any], str] | None = None
    choices: str = ""
    sealed: Any = None
    counts: tuple[Count, ...] = ()
    slips: tuple[Slip, ...] = ()
    remedies: Mapping[str, str] = field(default_factory=dict)
    version: int = 1
    limits: Limits = Limits()
    large: tuple[Case, ...] = ()
    speed: Speed | None = None
    since: tuple[int, int] = (7, 0)
    operation: Operation | None = None
    walk: Walk | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"an exercise is called NN.N, got {self.name!r}")
        if self.kind not in KINDS:
            raise ValueError(f"{self.name}: kind must be one of {', '.join(KINDS)}, {self.kind!r}")
        if type(self.points) is not int or self.points < 1:
            raise ValueError(f"{self.name}: points must be 1 or more, whole, got {self.points!r}")
        if "other" not in self.hints or not set(self.hints.values()) <= {1, 2, 3}:
            raise ValueError(f"{self.name}: hints must be 1, 2 or 3, also of 'other': {self.hints}")
        wanted = Call if self.kind == "values" else Case
        if not self.cases or any(type(case) is not wanted for case in self.cases):
            raise ValueError(f"{self.name}: cases must be {wanted.__name__}s, got {self.cases!r}")
        needed = {"values": "answer", "cuda": "launch", "triton": "launch"}.get(self.kind)
        if needed and getattr(self, needed) is None and self.sealed is None:
            raise ValueError(f"{self.name}: the kind {self.kind!r} needs `{needed}`")
        if self.operation is not None and (self.kind == "values" or self.speed):
            raise ValueError(f"{self.name}: neither values nor a timed kernel have an `operation`")
        if self.walk is not None and self.kind != "triton":
            raise ValueError(f"{self.name}: only programs of Triton have a `walk`")

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of a kernel's arrays, the output last."""
        return self.operation.arrays if self.operation else ("a", "b", "c")

    def shapes(self, case: Case) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of a case's arrays, the output last."""
        return self.operation.shapes(case) if self.operation else case.shapes

    def inputs(self, case: Case, seed: int) -> tuple[np.ndarray, ...]:
        """Return a case's inputs, the same for the same seed."""
        return case.drawn(seed, self.shapes(case)[:-1]) if self.operation else case.inputs(seed)

    def sizes(self, case: Case) -> tuple[int, ...]:
        """Return the sizes that a kernel of Triton gets behind its arrays."""
        names = self.operation.sizes if self.operation else "mnk"
        return tuple(getattr(case, name) for name in names)

    def described(self, case: Any) -> str:
        """Return what a case is called in messages."""
        if self.operation is None or not isinstance(case, Case):
            return str(case)
        if self.operation.describe is not None:
            return self.operation.describe(case)
        named = zip(self.arrays, self.shapes(case), strict=True)
        given = [f"{name} = {value}" for name, value in case.given.items()]
        return ", ".join([*(f"{name} {'×'.join(map(str, s))}" for name, s in named), *given])

    def speed_on(self, cc: tuple[int, int] | None) -> Speed | None:
        """Return what is timed on a GPU of this compute capability; None is no GPU."""
        asked = self.speed is not None and cc is not None and cc[0] in self.speed.majors
        return self.speed if asked else None

    def points_on(self, cc: tuple[int, int] | None) -> int:
        """Return how many points there are, with those for speed where it is timed."""
        speed = self.speed_on(cc)
        return self.points + (speed.points if speed is not None else 0)

    @property
    def in_all(self) -> float:
        """The seconds of a processor that all cases together may take."""
        if self.limits.in_all is not None:
            return self.limits.in_all
        return 5 + 10 * (self.limits.cost or COST[self.kind])

    @property
    def chapter(self) -> str:
        """The chapter that it belongs to, "05"."""
        return self.name.partition(".")[0]

    @property
    def cell(self) -> str:
        """The id of the cell that the learner writes."""
        return f"exercise-{self.name.replace('.', '-')}"

    @property
    def marker(self) -> str:
        """The first line of that cell."""
        return f"# exercise {self.name}: {self.title}"

    def hint(self, diagnosis: str) -> int:
        """Return which hint a diagnosis calls for, 1 to 3."""
        return self.hints.get(diagnosis, self.hints["other"])


# What the answers of several chapters may use.

PYTHON_KINDS = ("loops", "values")
COURSE = ("copy_async", "commit_copies", "wait_copies", "tile", "copy_tile_async")
MODULES = {  # what can be imported, and the name under which an answer has it
    "math": "math",
    "numpy": "np",
    "numpy.typing": "std_nptyping",
    "numba": "numba",
    "numba.cuda": "cuda",
    "triton": "triton",
    "triton.language": "tl",
    "itertools": "itertools",
    "functools": "functools",
    "collections": "collections",
    "collections.abc": "collections.abc",
    "dataclasses": "dataclasses",
    "fractions": "fractions",
    # These are there under names that no answer has, as `copy` may be a variable.
    "typing": "std_typing",
    "operator": "std_operator",
    "heapq": "std_heapq",
    "bisect": "std_bisect",
    "enum": "std_enum",
    "copy": "std_copy",
    "statistics": "std_statistics",
}
NUMBERS = frozenset(
    ("range", "min", "max", "abs", "len", "int", "float", "bool", "round", "print", "pow")
    + ("divmod", "enumerate", "zip", "tuple", "isinstance", "slice")
)
ERRORS = frozenset(
    ("Exception", "ValueError", "TypeError", "IndexError", "KeyError", "AssertionError")
    + ("ZeroDivisionError", "ArithmeticError", "RuntimeError", "StopIteration")
    + ("NotImplementedError", "OverflowError")
)
# A kernel that asks for types could differ where it is compiled from where it is run.
KERNEL_NAMES = (NUMBERS | ERRORS) - {"isinstance"}
PLACES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
AXES = frozenset(f"cuda.{place}.{axis}" for place in PLACES for axis in "xyz")
TYPES = frozenset(
    ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16")
    + ("uint32", "uint64", "bool_", "intp")
)
CUDA = Rules(
    names=KERNEL_NAMES,
    modules=frozenset({"cuda", "math", "np", "numba"}),
    attributes=AXES
    | {
        f"cuda.{name}"
        for name in (
            *("grid", "gridsize", "syncthreads", "syncwarp", "laneid", "warpsize", "fma", "selp"),
            *("popc", "clz", "ffs", "brev", "syncthreads_count", "syncthreads_and"),
            *("syncthreads_or", "activemask", "lanemask_lt", "shfl_sync", "shfl_up_sync"),
            *("shfl_down_sync", "shfl_xor_sync", "all_sync", "any_sync", "ballot_sync"),
            *("shared.array", "local.array"),
        )
    }
    | {f"{module}.{name}" for module in ("np", "numba") for name in TYPES}
    | {f"np.{name}" for name in ("log", "log2", "pi")}
    | {"numba.boolean", "numba.void", "math.*"},
    members=frozenset({"shape", "dtype", "type", "size", "ndim", "T", "strides", "itemsize"})
    | {"x", "y", "z"},
    decorators=frozenset({"cuda.jit"}),
)
TRITON = Rules(
    names=KERNEL_NAMES,
    modules=frozenset({"triton", "tl"}),
    attributes=frozenset(
        f"tl.{name}"
        for name in (
            *("constexpr", "program_id", "num_programs", "arange", "load", "store", "zeros", "dot"),
            *("cdiv", "minimum", "maximum", "where", "range", "static_range", "multiple_of"),
            *("make_block_ptr", "advance", "make_tensor_descriptor", "max_contiguous", "trans"),
            *("float16", "float32", "float64", "bfloat16", "int1", "int8", "int16", "int32"),
            *("int64", "uint8", "uint16", "uint32", "uint64", "full", "swizzle2d", "sum", "max"),
            *("min", "abs", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "floor", "ceil", "fma"),
            *("sigmoid", "softmax", "broadcast_to", "broadcast", "expand_dims", "reshape", "view"),
            *("permute", "ravel", "join", "split", "interleave", "cat", "flip", "zeros_like"),
            *("max_constancy", "assume", "debug_barrier", "device_print", "device_assert"),
            *("static_print", "static_assert", "cast", "clamp", "umulhi", "cumsum", "argmax"),
            *("argmin", "load_tensor_descriptor", "store_tensor_descriptor", "tensor", "dtype"),
            *("const", "pointer_type", "atomic_add", "reduce", "associative_scan"),
            # Not all of tl.math: it has other modules, and Python's functools.wraps.
            *(f"math.{name}" for name in "abs ceil cos div_rn erf exp exp2 fdiv floor fma".split()),
            *(f"math.{name}" for name in "log log2 rsqrt sin sqrt sqrt_rn umulhi".split()),
        )
    )
    | {"triton.cdiv", "triton.next_power_of_2", "triton.jit"},
    members=frozenset({"shape", "dtype", "to", "T", "element_ty", "load", "store", "trans", "cast"})
    | {"advance"}
    | {"value", "type", "permute", "reshape", "view", "sum", "max", "broadcast_to", "is_floating"},
    decorators=frozenset({"triton.jit"}),
)
FUNCTOOLS = frozenset(  # what reads or sets attributes by their names is not among them
    f"functools.{name}" for name in ("reduce", "partial", "cache", "lru_cache", "cmp_to_key")
)
METHODS = frozenset(
    name
    for kind in (str, list, dict, set, frozenset, tuple, int, float)
    for name in dir(kind)
    if not name.startswith("_")
)
PURE = (  # of NumPy: functions of numbers and small arrays
    *("ceil", "floor", "trunc", "rint", "round", "sqrt", "cbrt", "square", "exp", "log", "log2"),
    *("log10", "abs", "absolute", "fabs", "minimum", "maximum", "min", "max", "sum", "prod"),
    *("cumsum", "arange", "array", "asarray", "zeros", "ones", "full", "gcd", "lcm"),
    *("mod", "remainder", "divide", "floor_divide", "power", "sign", "clip", "where", "argmax"),
    *("argmin", "sort", "argsort", "unique", "any", "all", "isclose", "allclose", "inf", "nan"),
    *("pi", "ndindex", "count_nonzero", "bincount", "repeat", "concatenate", "ravel", "divmod"),
    *("mean", "diff", "add", "subtract", "multiply", "negative", "equal", "logical_and"),
    *("logical_or", "outer", "zeros_like", "ones_like", "copy", "linspace", "meshgrid", "isnan"),
    *("isfinite", "array_equal", "integer", "floating", "number"),
)
ABSTRACT = "Sequence Iterable Iterator Mapping Generator Callable Hashable Sized".split()
TYPING = frozenset(
    [f"{module}.{name}" for module in ("std_typing", "collections.abc") for name in ABSTRACT]
    + [f"std_typing.{name}" for name in "List Dict Set FrozenSet Tuple Optional Union".split()]
    + ["std_nptyping.NDArray", "std_nptyping.ArrayLike"]
    + [f"std_typing.{name}" for name in "Any Literal Final ClassVar Self Type".split()]
)
OPERATOR = frozenset(
    f"std_operator.{name}"
    for name in "add sub mul truediv floordiv mod neg abs pow lt le gt ge eq ne itemgetter".split()
)
VALUES = Rules(
    names=NUMBERS
    | ERRORS
    | {"sum", "sorted", "list", "any", "all", "dict", "set", "frozenset", "map", "filter"}
    | {"reversed", "str", "repr", "iter", "next", "bin", "hex", "ord", "chr", "callable"}
    | {"issubclass", "complex", "bytes"},
    modules=frozenset(
        ("math", "np", "itertools", "functools", "collections", "dataclasses", "fractions")
        + ("std_typing", "std_operator", "std_heapq", "std_bisect", "std_enum", "std_copy")
        + ("std_statistics", "std_nptyping", "triton")
    ),
    attributes=frozenset({"math.*", "itertools.*", "std_heapq.*", "std_bisect.*"})
    | FUNCTOOLS
    | TYPING
    | OPERATOR
    | {
        "triton.cdiv",
        "triton.next_power_of_2",
        "std_enum.auto",
        "std_copy.copy",
        "std_copy.deepcopy",
    }
    | {f"std_statistics.{name}" for name in ("mean", "fmean", "median", "mode", "pstdev")}
    | {f"dataclasses.{name}" for name in ("replace", "astuple", "asdict")}
    | {f"collections.{name}" for name in ("Counter", "defaultdict", "deque", "namedtuple")}
    | {"collections.OrderedDict", "fractions.Fraction", "dataclasses.field"}
    | {f"np.{name}" for name in (*PURE, *TYPES)},
    members=METHODS
    | {"shape", "dtype", "size", "ndim", "T", "sum", "tolist", "item", "astype", "min", "max"}
    | {"all", "any", "mean", "prod", "most_common", "popleft", "appendleft", "type", "reshape"}
    | {"fill"}
    | {"numerator", "denominator", "limit_denominator"}
    | {"flatten", "ravel", "cache_clear", "from_iterable", "value", "name", "args"},
    decorators=frozenset({"functools.lru_cache", "functools.cache", "staticmethod", "property"})
    | {"dataclasses.dataclass", "classmethod", "functools.total_ordering"},
)
LOOPS = Rules(
    names=VALUES.names,
    modules=frozenset({"math", "np", "itertools", "functools", "collections"})
    | {"std_typing", "std_nptyping", "std_operator"},
    attributes=frozenset({"itertools.*", "np.ndindex"})
    # Not all of math: others hide where a number comes from, or add up products.
    | {
        f"math.{name}"
        for name in "ceil floor trunc isqrt gcd lcm prod log2 sqrt inf nan pi".split()
    }
    | FUNCTOOLS
    | TYPING
    | OPERATOR
    | {f"collections.{name}" for name in ("Counter", "defaultdict", "deque")}
    | {f"np.{name}" for name in TYPES},
    members=METHODS
    | {"shape", "dtype", "type", "size", "ndim", "T", "item", "sum", "fill", "from_iterable"},
)


# What the cases of several chapters ask for.

ONCE = Count(
    "global stores",
    lambda case: case.m * case.n,
    "C is right, but it is written again and again: the sum is ready behind the loop over tiles, "
    "and is stored there, once.",
    "once",
)


SEEN_PRODUCTS = Count(
    "products",
    None,
    "C is right, and the cache cannot tell which elements are used. Multiply each element of A by "
    "one of B as they were read; sums of elements, or numbers that went through a text or another "
    "function before, show no longer where they come from.",
    "unseen",
    share=0,
    least=lambda case: case.m * case.n * case.k,
)


SHUFFLED = (
    "C is right, but lanes hand each other elements by shuffles or votes. Here each thread reads "
    "what it needs from memory."
)


def each_its_own(
    own: Callable[[Case], int] = lambda case: 1,
    diagnosis: str = "counts",
    loads: Callable[[Case], int] | None = None,
    shuffles: int = 0,
) -> tuple[Count, ...]:
    """Return the counts that a kernel exceeds in which few threads do what the block should share.

    A thread has its `own` number of elements of C in a case, at most. One that loads twice as much
    as they need has its reasons: `loads`, or two factors for each product along K and its part of
    the tiles. It receives at most so many values by `shuffles`.
    """
    message = (
        "C is right, but a few threads compute what the whole block should share: let each thread "
        "compute and store what it owns."
    )
    needed = loads or (lambda case: own(case) * 2 * (case.k + PADDED))
    return (
        Count("global stores of a thread", own, message, diagnosis, share=0),
        Count("loads of a thread", lambda c: 2 * needed(c), message, diagnosis, share=0),
        Count("shuffles of a thread", lambda c: shuffles, SHUFFLED, diagnosis, share=0),
    )


PADDED = 32  # steps of K: what the last tiles may be too deep, and a thread's part of staging
NO_NEEDLESS_BARRIERS = Count(
    "needless barriers of a block",
    lambda case: 4,  # around the loop, and in a last step that is cut; more stand in the loop
    "C is right, and at some barriers the block waits for nothing: without them, no thread would "
    "access what another one writes. One barrier belongs behind the stores to the tiles, and one "
    "behind their use.",
    "needless",
)


FAR = 256  # beyond what a byte holds
ORDERS = ("forward", "reverse", "shuffle")
DEEP_AT = 5  # every so many remainders lie behind many tiles


def tiled_cases(
    edge: int,
    numbers: int = 0,
    deep: int = 5,
    far_k: int = 1_024,
    far: Sequence[Mapping[str, Any]] = ({}, {}, {}),
    **how: Any,
) -> tuple[Case, ...]:
    """Return the cases that every kernel with tiles of this edge has to pass.

    K has each remainder, a few of them behind `deep` tiles or more and the others behind one or
    two; it is smaller than a tile, and 1; all three are a few tiles long; M, N and K (beyond
    `far_k`) in turn are far larger than the other two. `numbers` changes all sizes, for hidden
    cases of the same kind, which are fewer: every sixth remainder, and one large K. `how` holds the
    fields of each case, and `far` those of the cases with a large M, N and K, where other constants
    may save time.
    """
    random = np.random.default_rng(numbers)
    sizes: list[tuple[int, int, int]] = []
    for k in depths(edge, deep)[numbers % 3 :: 6 if numbers else 1]:
        k += edge * int(random.integers(0, 2))
        sizes.append((*random.integers(1, min(edge, 8) + 3, 2).tolist(), k))
    sizes += [(edge + 1, 2, 1), (2, edge + 1, max(1, edge - 1))]
    large = [int(size) for size in FAR + random.integers(1, 2 * edge, 3)]
    beyond = max(2 * edge, 17) + random.integers(1, 8, 3)
    if numbers:
        ends, far = [(1, 2, large[2])], far[2:]
    else:
        ends = [(large[0], 2, 3), (2, large[1], min(edge, 4)), (1, 3, far_k - FAR + large[2])]
    sizes.append(tuple(beyond.tolist()))
    fields: list[Mapping[str, Any]] = [{}] * len(sizes) + list(far)
    return tuple(
        Case(*size, **({"order": ORDERS[i % 3], "draw": ("integers", "normal")[i % 2]} | how | own))
        for i, (size, own) in enumerate(zip(sizes + ends, fields, strict=True))
    )


def depths(edge: int, deep: int = 5) -> list[int]:
    """Return a K with each remainder over `edge`, a few of them behind `deep` tiles."""
    return [(deep if rest % DEEP_AT == 0 else 1) * edge + rest for rest in range(edge)]


def square_blocks(name: str, usual: int) -> Callable[[Case], tuple]:
    """Return a launch: a block for each square tile of C, whose edge a case may give by `name`."""

    def launch(case: Case) -> tuple:
        edge = case.given.get(name, usual)
        return (cover(case.n, edge), cover(case.m, edge)), (edge, edge)

    return launch


def loads_of_tiles(m: int, n: int, k: int, rows: int, columns: int) -> int:
    """Elements that tiles of rows × columns of C load: A once a tile column, B once a tile row."""
    return k * (m * cover(n, columns) + n * cover(m, rows))


def loads_of_whole_tiles(case: Case, rows: int, columns: int, depth: int) -> int:
    """Return how many elements tiles load that are never cut, A's and B's `depth` along K.

    Beyond an edge a thread may load some element that is there, and then not use it.
    """
    m, n, k = (cover(s, t) * t for s, t in ((case.m, rows), (case.n, columns), (case.k, depth)))
    return loads_of_tiles(m, n, k, rows, columns)


def cover(size: int, tile: int) -> int:
    """Return how many tiles cover a size."""
    return -(-size // tile)
