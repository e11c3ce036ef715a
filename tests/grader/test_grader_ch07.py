"""Exercises of chapter 7: the judge's own predictions agree with the microscope."""

import numpy as np
import pytest

from tiled_matmul.grader import starters
from tiled_matmul.grader.folders import exercise, folder
from tiled_matmul.ladder import cuda_shared_tiles, cuda_thread_tile_1d, cuda_thread_tile_2d
from tiled_matmul.microscope.cuda import trace, watch
from tiled_matmul.problem import Problem

REGISTERS, PREDICTED = (folder(name).module("judge") for name in ("07.1", "07.2"))
(PATH,) = (path for path in starters.solutions() if path.name.startswith("07"))


@pytest.mark.parametrize(("m", "n", "k"), [(20, 35, 9), (70, 20, 9), (65, 64, 3), (1, 1, 1)])
@pytest.mark.sample(4)
def test_global_loads_are_what_the_microscope_counts(m, n, k):
    kernels = [(module, {}) for module in (cuda_thread_tile_1d, cuda_thread_tile_2d)]
    for module, options in [*kernels, (cuda_shared_tiles, {"tile": 8})]:
        with watch() as traces:
            module.matmul(*Problem(m, n, k).inputs(device="cpu"), **options)
        rows, columns = (8, 8) if options else (module.TILE_M, module.TILE_N)
        assert PREDICTED.global_loads(m, n, k, rows, columns) == traces[0].global_loads.lanes


@pytest.mark.parametrize("case", exercise("07.1").cases, ids=str)
def test_the_limits_of_07_1_are_what_its_solution_takes(case, tmp_path):
    import linecache

    from tiled_matmul.grader import kinds

    source = starters.answers(PATH)["07.1"][1]
    file = "<solution 07.1>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space = kinds.prepare("cuda") | dict(exercise("07.1").given) | dict(case.given)
    exec(compile(source, file, "exec"), space)
    a, b = case.inputs(0)
    c = np.zeros((case.m, case.n), np.float32)
    t = trace(space["register_tile"], *exercise("07.1").launch(case), a, b, c)
    shared, loads = exercise("07.1").counts[1], exercise("07.1").counts[0]
    assert (shared.what, loads.what) == ("shared loads", "global loads")
    assert t.shared_loads.lanes == shared.most(case)
    assert t.global_loads.lanes <= loads.most(case)  # which has room for clamped loads


def test_a_slip_exchanges_what_it_says():
    case = exercise("07.1").cases[0]
    c = np.arange(64.0).reshape(8, 8)
    assert REGISTERS._exchanged(case, np.eye(8), c)[:2, :4].tolist() == [
        [0, 8, 2, 10],
        [1, 9, 3, 11],
    ]
    assert REGISTERS._exchanged(exercise("07.1").cases[2], c, c) is None
