"""The interpreter: random kernels, against a plain interpreter that compares all pairs of accesses.

A program is a tree of loads, stores, barriers, branches and loops. It is written out as Python and
traced, and it is run here: all threads step by step from one barrier to the next, each access noted
with the barriers that lie before it. No barrier stands where threads part ways, and no index
depends on a value, so that what is touched does not depend on the order of the threads.
"""

import importlib.util
import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from tiled_matmul.microscope.cuda import trace

WARP = 32
SECTOR_BYTES = 32
GLOBAL, SHARED = ("x", "y", "out"), ("s", "r")
DTYPES = ("int32", "float32", "int64", "float64")
ORDERS = [("forward", 0), ("reverse", 0), ("shuffle", 7)]

# The same examples on every machine: a failing check must not come and go.
few = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# --- programs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Index:
    """The thread's own element, or (thread·tx + block·bx + step·loop variable + offset) % size."""

    own: bool = True
    thread: int = 0
    block: int = 0
    step: int = 0
    offset: int = 0
    variable: str = ""


@dataclass(frozen=True)
class Access:
    """`op` is load, pair (of loads), fetch (a load in a device function), store, add or atomic."""

    op: str
    operands: tuple[tuple[str, Index], ...]
    amount: int = 0
    line: int = 0


@dataclass(frozen=True)
class Sync:
    name: str


@dataclass(frozen=True)
class Branch:
    """`variable` is tx or a loop's; the branch is taken if it is at least `low` and below `high`,
    and `odd` if only odd ones take it."""

    variable: str
    low: int
    high: int
    odd: bool
    body: tuple


@dataclass(frozen=True)
class Loop:
    """`trips` times; if `each`, (tx % trips) times."""

    variable: str
    trips: int
    each: bool
    body: tuple


@dataclass(frozen=True)
class Program:
    grid: int
    block: int
    dtypes: dict[str, str]
    body: tuple

    def size(self, array: str) -> int:
        return self.block if array in SHARED else self.block * self.grid


OWN = Index()
MODES = ("own", "read", "atomic")
# What a phase does with an array after a phase that did the other: mostly something that needs
# the barrier between them.
NEXT = {None: MODES, "own": ("read", "read", "atomic"), "read": MODES, "atomic": MODES}


@st.composite
def indices(draw, variables: tuple[str, ...]) -> Index:
    if draw(st.integers(0, 3)) == 0:
        return OWN
    variable = draw(st.sampled_from(variables)) if variables else ""
    numbers = [draw(st.integers(-2, 2)) for _ in range(4)]
    return Index(False, *numbers, variable)


@st.composite
def accesses(draw, modes: dict[str, str], variables: tuple[str, ...]) -> Access:
    """An access that its array's mode allows: any, read (anywhere), own (element), atomic."""
    array = draw(st.sampled_from(sorted(modes)))
    amount = draw(st.integers(1, 3))
    mode = modes[array]
    if mode == "atomic":
        return Access("atomic", ((array, draw(indices(variables))),), amount)
    ops = ["load", "fetch", "pair"] if mode == "read" else ["store", "store", "add", "load"]
    op = draw(st.sampled_from([*ops, "atomic"] if mode == "any" else ops))
    names = [array]
    if op == "pair":
        names.append(draw(st.sampled_from([n for n in modes if modes[n] == mode])))
    return Access(
        op,
        tuple((n, OWN if mode == "own" else draw(indices(variables))) for n in names),
        amount,
    )


@st.composite
def statements(draw, modes, variables: tuple[str, ...], depth: int) -> object:
    """An access, alone or in branches and loops that threads leave at different times."""
    kind = draw(st.sampled_from(["access"] * 4 + ["branch", "loop"] * (depth < 2)))
    if kind == "access":
        return draw(accesses(modes, variables))
    if kind == "branch":
        variable = draw(st.sampled_from(["tx", "tx", *variables]))
        low = draw(st.integers(0, 3))
        high = low + draw(st.sampled_from([1, 3, 40]))
        body = draw(st.lists(statements(modes, variables, depth + 1), min_size=1, max_size=2))
        return Branch(variable, low, high, draw(st.booleans()), tuple(body))
    variable = f"k{len(variables)}"
    body = draw(
        st.lists(statements(modes, (*variables, variable), depth + 1), min_size=1, max_size=2)
    )
    return Loop(variable, draw(st.integers(2, 3)), draw(st.booleans()), tuple(body))


@st.composite
def careful_bodies(draw, grid: int, block: int, variables: tuple[str, ...], fixed) -> list:
    """Phases without races, each closed by a barrier."""
    body, modes = [], {}
    for _ in range(draw(st.integers(2, 3))):
        if not variables and draw(st.integers(0, 3)) == 0:
            inner = draw(careful_bodies(grid, block, ("k0",), fixed))
            body.append(Loop("k0", draw(st.integers(1, 3)), False, tuple(inner)))
            continue
        # No barrier orders the blocks of a grid, so there a global array keeps its mode.
        free = ("s", "r", "x", "y") if grid == 1 else ("s", "r")
        modes = fixed | {name: draw(st.sampled_from(NEXT[modes.get(name)])) for name in free}
        body += draw(st.lists(statements(modes, variables, 1), min_size=2, max_size=3))
        names = ["syncthreads", "syncwarp"] if block <= WARP else ["syncthreads"]
        body.append(Sync(draw(st.sampled_from(names))))
    return body


@st.composite
def careless_bodies(draw, variables: tuple[str, ...]) -> list:
    """Anything, barriers where they happen to fall."""
    modes = {name: draw(st.sampled_from(["any", "any", "read"])) for name in (*SHARED, "x", "y")}
    body = []
    for _ in range(draw(st.integers(2, 5))):
        kind = draw(st.sampled_from(["statement", "statement", "sync", "loop", "branch"]))
        if kind == "sync":
            body.append(Sync(draw(st.sampled_from(["syncthreads", "syncthreads", "syncwarp"]))))
        elif kind == "loop" and not variables:
            inner = draw(careless_bodies(("k0",)))
            body.append(Loop("k0", draw(st.integers(1, 3)), False, tuple(inner)))
        elif kind == "branch" and variables:
            low = draw(st.integers(0, 2))
            body.append(Branch("k0", low, low + 1, False, (Sync("syncthreads"),)))
        else:
            body.append(draw(statements(modes, variables, 1)))
    return body


def without_one_sync(body: tuple, which: int) -> tuple[tuple, int]:
    """Return the body less its barrier number `which`, and how many barriers it had."""
    kept, seen = [], 0
    for statement in body:
        if isinstance(statement, Sync):
            seen += 1
            if seen - 1 == which:
                continue
        elif isinstance(statement, Loop):
            inner, inside = without_one_sync(statement.body, which - seen)
            seen += inside
            statement = replace(statement, body=inner or (Access("load", (("x", OWN),)),))
        kept.append(statement)
    return tuple(kept), seen


@st.composite
def programs(draw) -> Program:
    grid = draw(st.sampled_from([1, 1, 2, 3]))
    block = draw(st.sampled_from([2, 3, 5, 8, 8, 33, 40]))
    kind = draw(st.sampled_from(["careful", "one barrier dropped", "careless", "careless"]))
    if kind == "careless":
        body = tuple(draw(careless_bodies(())))
    else:
        fixed = {name: draw(st.sampled_from(MODES)) for name in ("x", "y")}
        body = tuple(draw(careful_bodies(grid, block, (), fixed)))
    if kind == "one barrier dropped":
        _, barriers = without_one_sync(body, -1)
        body, _ = without_one_sync(body, draw(st.integers(0, barriers - 1)))
    prologue = []
    if draw(st.integers(0, 3)):
        prologue = [Access("store", ((name, OWN),)) for name in SHARED] + [Sync("syncthreads")]
    dtypes = {name: draw(st.sampled_from(DTYPES)) for name in (*GLOBAL, *SHARED)}
    return Program(grid, block, dtypes, (*prologue, *body, Access("store", (("out", OWN),))))


# --- written out as Python ------------------------------------------------------------------------

HEAD = """\
from numba import cuda, float32, float64, int32, int64


@cuda.jit(device=True)
def fetch(array, index):
    return array[index]


@cuda.jit
def kernel(x, y, out):
    s = cuda.shared.array({block}, {s})
    r = cuda.shared.array({block}, {r})
    tx = cuda.threadIdx.x
    bx = cuda.blockIdx.x
    i = cuda.grid(1)
    v = tx
"""
FETCH_LINE = 1 + HEAD.split("\n").index("    return array[index]")


def index_text(program: Program, array: str, index: Index) -> str:
    if index.own:
        return "tx" if array in SHARED else "i"
    step = f" + {index.step} * {index.variable}" if index.variable else ""
    return (
        f"({index.thread} * tx + {index.block} * bx{step} + {index.offset}) % {program.size(array)}"
    )


def written(program: Program) -> tuple[str, tuple]:
    """Return (source text, the program's body with the line of each access filled in)."""
    lines = HEAD.format(block=program.block, **program.dtypes).splitlines()

    def write(body: tuple, indent: str) -> tuple:
        numbered = []
        for statement in body:
            if isinstance(statement, Access):
                lines.append(indent + access_text(program, statement))
                line = FETCH_LINE if statement.op == "fetch" else len(lines)
                numbered.append(replace(statement, line=line))
            elif isinstance(statement, Sync):
                lines.append(f"{indent}cuda.{statement.name}()")
                numbered.append(statement)
            else:
                lines.append(indent + head_text(statement))
                numbered.append(replace(statement, body=write(statement.body, indent + "    ")))
        return tuple(numbered)

    body = write(program.body, "    ")
    return "\n".join(lines) + "\n", body


def access_text(program: Program, access: Access) -> str:
    texts = [f"{name}[{index_text(program, name, index)}]" for name, index in access.operands]
    array, index = access.operands[0]
    if access.op in ("load", "pair"):
        return f"v = (v + {' * '.join(texts)}) % 1009"
    if access.op == "fetch":
        return f"v = (v + fetch({array}, {index_text(program, array, index)})) % 1009"
    if access.op == "store":
        return f"{texts[0]} = v"
    if access.op == "add":
        return f"{texts[0]} += {access.amount}"
    return f"cuda.atomic.add({array}, {index_text(program, array, index)}, {access.amount})"


def head_text(statement: Branch | Loop) -> str:
    if isinstance(statement, Loop):
        trips = f"tx % {statement.trips}" if statement.each else statement.trips
        return f"for {statement.variable} in range({trips}):"
    odd = f" and {statement.variable} % 2 == 1" if statement.odd else ""
    return f"if {statement.low} <= {statement.variable} < {statement.high}{odd}:"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return what turns a program into (kernel, numbered body), by way of a file."""
    folder = tmp_path_factory.mktemp("kernels")
    numbers = itertools.count()

    def build(program: Program):
        name = f"random_kernel_{next(numbers)}"
        text, body = written(program)
        path = folder / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel, body

    return build


def arguments(program: Program) -> tuple[np.ndarray, ...]:
    size = program.block * program.grid
    return tuple(
        (np.arange(size) * 3 % 17 + number).astype(program.dtypes[name])
        for number, name in enumerate(GLOBAL)
    )


# --- run here -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Touch:
    """One thread's access. `place` is the same for the threads that run an instruction together."""

    block: int
    thread: int
    syncs: tuple[int, int]  # block barriers passed, and syncwarps since the last one
    op: str
    array: str
    element: int
    line: int
    place: tuple

    @property
    def warp(self) -> int:
        return self.thread // WARP


@dataclass
class Run:
    touches: list[Touch]
    memory: dict[str, np.ndarray]


class Thread:
    """A thread of the program: a generator that stops at every barrier of either kind."""

    def __init__(self, program: Program, run: Run, shared: dict, block: int, thread: int) -> None:
        self.program, self.run, self.memory = program, run, run.memory | shared
        self.block, self.thread = block, thread
        self.names = {"tx": thread}
        self.syncs = (0, 0)
        self.v = thread

    def steps(self, body: tuple, place: tuple = ()) -> Iterator[None]:
        for number, statement in enumerate(body):
            here = (*place, number)
            if isinstance(statement, Access):
                self.access(statement, here)
            elif isinstance(statement, Sync):
                yield
                barriers, warps = self.syncs
                block_wide = statement.name == "syncthreads"
                self.syncs = (barriers + 1, 0) if block_wide else (barriers, warps + 1)
            elif isinstance(statement, Branch):
                value = self.names[statement.variable]
                if statement.low <= value < statement.high and (value % 2 or not statement.odd):
                    yield from self.steps(statement.body, here)
            else:
                trips = self.thread % statement.trips if statement.each else statement.trips
                for k in range(trips):
                    self.names[statement.variable] = k
                    yield from self.steps(statement.body, (*here, k))

    def access(self, access: Access, place: tuple) -> None:
        ops = {"fetch": ("load",), "pair": ("load",), "add": ("load", "store")}
        values = []
        for number, (array, index) in enumerate(access.operands):
            element = self.element(array, index)
            for op in ops.get(access.op, (access.op,)):
                self.run.touches.append(
                    Touch(
                        self.block,
                        self.thread,
                        self.syncs,
                        op,
                        array,
                        element,
                        access.line,
                        (*place, number),
                    )
                )
            values.append(self.memory[array][element].item())
        if access.op in ("load", "fetch"):
            self.v = (self.v + values[0]) % 1009
        elif access.op == "pair":
            self.v = (self.v + values[0] * values[1]) % 1009
        else:
            new = self.v if access.op == "store" else values[0] + access.amount
            self.memory[array][element] = new

    def element(self, array: str, index: Index) -> int:
        if index.own:
            return self.thread + (0 if array in SHARED else self.block * self.program.block)
        step = index.step * self.names[index.variable] if index.variable else 0
        flat = index.thread * self.thread + index.block * self.block + step + index.offset
        return flat % self.program.size(array)


def run_here(program: Program, body: tuple) -> Run:
    run = Run([], dict(zip(GLOBAL, arguments(program), strict=True)))
    for block in range(program.grid):
        shared = {name: np.zeros(program.block, program.dtypes[name]) for name in SHARED}
        threads = [Thread(program, run, shared, block, t) for t in range(program.block)]
        waiting = [thread.steps(body) for thread in threads]
        while waiting:
            waiting = [steps for steps in waiting if next(steps, "ended") is None]
    return run


def unordered(p: Touch, q: Touch) -> bool:
    """Return whether nothing says which of two accesses comes first."""
    if p.block != q.block:
        return True
    if p.thread == q.thread or p.syncs[0] != q.syncs[0]:
        return False
    return p.warp != q.warp or p.syncs[1] == q.syncs[1]


def collide(p: Touch, q: Touch) -> bool:
    return (p.op, q.op) not in (("load", "load"), ("atomic", "atomic")) and unordered(p, q)


def by_element(touches: list[Touch]) -> dict[tuple, list[Touch]]:
    groups = defaultdict(list)
    for touch in touches:
        instance = touch.block if touch.array in SHARED else 0
        groups[touch.array, instance, touch.element].append(touch)
    return groups


def races_here(touches: list[Touch]) -> tuple[set[tuple], set[tuple]]:
    """Return the races by all pairs, as {(array, lines)} and as {(array, element)}."""
    lines, elements = set(), set()
    for (array, _, element), group in by_element(touches).items():
        distinct = {replace(touch, place=()) for touch in group}
        for p, q in itertools.combinations(distinct, 2):
            if collide(p, q):
                lines.add((array, tuple(sorted({p.line, q.line}))))
                elements.add((array, element))
    return lines, elements


def unwritten_here(touches: list[Touch]) -> set[tuple]:
    """Return {(array, line)} of the reads of shared memory that no write precedes or races with.

    What an atomic makes of memory that nobody has written a later atomic has not been given either,
    so that for an atomic only stores count.
    """
    found = set()
    for (array, *_), group in by_element(touches).items():
        if array not in SHARED:
            continue
        # A thread's own touches stand in the order in which it made them.
        for number, read in enumerate(group):
            if read.op == "store":
                continue
            written = any(
                (write.op == "store" or (write.op, read.op) == ("atomic", "load"))
                and (
                    collide(read, write)
                    or (write.thread == read.thread and position < number)
                    or (not unordered(read, write) and write.syncs < read.syncs)
                )
                for position, write in enumerate(group)
            )
            if not written:
                found.add((array, read.line))
    return found


def counts_here(program: Program, touches: list[Touch]) -> dict[str, dict[str, int]]:
    """Return requests, lanes, asked bytes and sectors (shared: wavefronts) by space and op."""
    requests = defaultdict(list)
    for touch in touches:
        requests[touch.block, touch.warp, touch.place, touch.op].append(touch)
    counts = {
        f"{space}_{op}s": dict.fromkeys(("requests", "lanes", "asked_bytes", "moved"), 0)
        for space in ("global", "shared")
        for op in ("load", "store", "atomic")
    }
    for (*_, op), lanes in requests.items():
        array = lanes[0].array
        itemsize = np.dtype(program.dtypes[array]).itemsize
        if array in SHARED:
            banks = defaultdict(set)
            for touch in lanes:
                banks[touch.element % 32].add(touch.element)
            moved = max(len(words) for words in banks.values())
        else:
            moved = len({touch.element * itemsize // SECTOR_BYTES for touch in lanes})
        count = counts[f"{'shared' if array in SHARED else 'global'}_{op}s"]
        count["requests"] += 1
        count["lanes"] += len(lanes)
        count["asked_bytes"] += len(lanes) * itemsize
        count["moved"] += moved
    return counts


# --- the properties -------------------------------------------------------------------------------


@settings(few, max_examples=60)
@given(program=programs())
def test_races_and_results_agree_with_all_pairs(build, program):
    kernel, body = build(program)
    run = run_here(program, body)
    races, racing = races_here(run.touches)
    unwritten = unwritten_here(run.touches)
    source = written(program)[0].splitlines()
    event(f"race: {bool(races)}, uninitialised: {bool(unwritten)}")
    for order, seed in ORDERS:
        args = arguments(program)
        t = trace(kernel, program.grid, program.block, *args, order=order, seed=seed)
        assert {(f.array, tuple(f.lines)) for f in t.races} == races
        assert {(f.array, *f.index) for f in t.races} <= racing
        assert {(f.array, *f.lines) for f in t.uninitialised_reads} == unwritten
        assert not t.out_of_bounds and not t.divergent_barriers
        for f in t.findings:
            assert f.texts == tuple(source[line - 1].strip() for line in f.lines)
        if not races and not unwritten:
            for name, result in zip(GLOBAL, args, strict=True):
                np.testing.assert_array_equal(result, run.memory[name], err_msg=name)


@settings(few, max_examples=40)
@given(program=programs())
def test_accesses_and_counts_agree_with_counting(build, program):
    program = replace(program, dtypes=program.dtypes | {"s": "int32", "r": "float32"})
    kernel, body = build(program)
    touches = run_here(program, body).touches
    t = trace(kernel, program.grid, program.block, *arguments(program), order="shuffle", seed=3)
    counts = {}
    for name in counts_here(program, touches):
        c = getattr(t, name)
        moved = c.sectors if name.startswith("global") else c.wavefronts
        counts[name] = {
            "requests": c.requests,
            "lanes": c.lanes,
            "asked_bytes": c.asked_bytes,
            "moved": moved,
        }
        if name.startswith("global"):
            assert c.bytes == SECTOR_BYTES * c.sectors
    assert counts == counts_here(program, touches)
    names = {array.id: array.name for array in t.arrays}
    assert sorted(
        (
            int(row["block"]),
            int(row["thread"]),
            int(row["phase"]),
            t.sites[row["site"]].op,
            names[row["array"]],
            int(row["element"]),
            t.sites[row["site"]].line,
        )
        for row in t.accesses()
    ) == sorted((p.block, p.thread, p.syncs[0], p.op, p.array, p.element, p.line) for p in touches)


@settings(few, max_examples=15)
@given(program=programs(), seed=st.integers(0, 5))
def test_a_trace_can_be_made_twice(build, program, seed):
    kernel, _ = build(program)
    first, second = (
        trace(kernel, program.grid, program.block, *arguments(program), order="shuffle", seed=seed)
        for _ in range(2)
    )
    assert first.accesses().tobytes() == second.accesses().tobytes()
    assert [str(f) for f in first.findings] == [str(f) for f in second.findings]


# --- the reference itself -------------------------------------------------------------------------


@settings(few, max_examples=100)
@given(program=programs())
def test_the_reference_gives_one_result_where_it_sees_no_race(program):
    """Here threads run in order from barrier to barrier; backwards has to give the same."""
    _, body = written(program)
    forward = run_here(program, body)
    races, _ = races_here(forward.touches)
    backward = Run([], dict(zip(GLOBAL, arguments(program), strict=True)))
    for block in reversed(range(program.grid)):
        shared = {name: np.zeros(program.block, program.dtypes[name]) for name in SHARED}
        waiting = [
            Thread(program, backward, shared, block, thread).steps(body)
            for thread in reversed(range(program.block))
        ]
        while waiting:
            waiting = [steps for steps in waiting if next(steps, "ended") is None]
    assert races_here(backward.touches)[0] == races
    if not races:
        for name in GLOBAL:
            np.testing.assert_array_equal(forward.memory[name], backward.memory[name])


def test_programs_with_and_without_races_are_drawn():
    seen = {True: 0, False: 0}

    @settings(few, max_examples=60)
    @given(program=programs())
    def draw(program):
        _, body = written(program)
        seen[bool(races_here(run_here(program, body).touches)[0])] += 1

    draw()
    assert min(seen.values()) >= 12, seen
