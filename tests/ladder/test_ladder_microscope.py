"""ladder/ under the microscope: nothing is wrong with any rung, whatever order its threads run in,
and without one of its barriers or waits something is."""

import inspect
import linecache
from importlib import import_module

import pytest

from tiled_matmul.kit.constants import compiled_as
from tiled_matmul.kit.unroll import unroll
from tiled_matmul.ladder import LADDER
from tiled_matmul.languages import NUMBA_CUDA
from tiled_matmul.microscope.cuda import watch
from tiled_matmul.problem import Problem, as_layout

GPU = [r for r in LADDER if r.language is NUMBA_CUDA]
SHAPE = "37x21x20"  # ragged for every tile
STEPS = "21x19x37"  # more than one step along K, for every tile
SPARE = ("cuda_supersteps", 0)  # the one barrier of its three that it could do without
SMALL = (
    *("cuda_puzzle", "cuda_article", "cuda_supersteps", "cuda_shared_tiles"),
    *("cuda_tile_hand", "cuda_tile_view"),
)
WAITS = ("cuda.syncthreads()", "wait_copies(", "commit_copies(")


def watched(rung, shape=SHAPE, dtype="float32", **options):
    """Return (the traces of a rung's launches, whether the product was right)."""
    a, b = Problem.parse(shape, dtype).inputs(3, "integers", "cpu")
    with watch(**options) as traces:
        c = rung.matmul(*as_layout(a, b, rung.layout))
    return traces, bool((c == a @ b).all())


@pytest.mark.sample(3)
@pytest.mark.parametrize("rung", GPU, ids=lambda rung: rung.name)
def test_nothing_is_found_in_any_rung(rung):
    """Findings come from all pairs of accesses; the order only decides which value is stored."""
    traces, right = watched(rung, order="shuffle", seed=4)
    assert right and traces
    assert [str(found) for t in traces for found in t.findings] == []


def kernels(rung):
    """Return {name: kernel} of a rung's module."""
    module = import_module(f"tiled_matmul.ladder.{rung.module}")
    own = {name: value for name, value in vars(module).items() if name.endswith("_kernel")}
    return module, {n: k for n, k in own.items() if k.py_func.__module__ == module.__name__}


def without(kernel, number):
    """Return a kernel whose `number`-th line of WAITS does nothing, or None if it has fewer."""
    written = getattr(kernel.py_func, "as_written", kernel.py_func)
    lines = inspect.getsource(written).splitlines(True)
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("def ")) :]
    places = [i for i, line in enumerate(lines) if line.strip().startswith(WAITS)]
    if number >= len(places):
        return None
    line = lines[places[number]]
    lines[places[number]] = line[: len(line) - len(line.lstrip())] + "pass\n"
    file = f"<{written.__name__} without wait {number}>"
    linecache.cache[file] = len(lines), None, lines, file
    space = {**written.__globals__, "unroll": unroll}
    exec(compile("".join(lines), file, "exec"), space)
    made = space[written.__name__]
    return compiled_as(kernel, made)


def planted():
    """Return a rung of each module with small blocks, its kernel, and the wait to leave out."""
    found = []
    for rung in {r.module: r for r in GPU if r.module in SMALL}.values():
        for name, kernel in kernels(rung)[1].items():
            numbers = range(len(WAITS) * 2)
            found += [(rung, name, n) for n in numbers if without(kernel, n) is not None]
    assert {rung.module for rung, _, _ in found} == set(SMALL)
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize(("rung", "name", "number"), planted(), ids=lambda v: getattr(v, "name", v))
def test_without_a_barrier_or_a_wait_something_is_found(rung, name, number, monkeypatch):
    module, own = kernels(rung)
    monkeypatch.setattr(module, name, without(own[name], number))
    traces, _ = watched(rung, STEPS)
    found = [found.kind for t in traces for found in t.findings]
    assert bool(found) != ((rung.name, number) == SPARE)
