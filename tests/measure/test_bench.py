import math
import re
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from stand_in_gpu import StandInClock, stand_in_gpu

from tiled_matmul.check import MatmulError
from tiled_matmul.kit import backend
from tiled_matmul.languages import GLUON, NUMBA_CUDA, TRITON
from tiled_matmul.measure import bench, clock
from tiled_matmul.measure.clock import time_interleaved
from tiled_matmul.problem import Problem

__all__ = ["stand_in_gpu"]  # a fixture
SMALL = Problem(24, 20, 28)


@dataclass
class FakeRung:
    """A rung that the ladder does not have."""

    name: str
    matmul: Any
    device: str = "cpu"
    layout: str = "nn"
    fingerprint: str = "0123"
    language: Any = None


def right(a, b, out=None):
    return np.matmul(a, b, out=out)


def skips_the_last_tile(a, b, out=None):
    whole = a.shape[1] - a.shape[1] % 16
    return np.matmul(a[:, :whole], b[:whole], out=out)


class RightAtFirst:
    """Right for some calls that give it `out`, and then does what `later` does."""

    def __init__(self, calls, later):
        self.left, self.later = calls, later

    def __call__(self, a, b, out=None):
        if out is None:
            return right(a, b)
        self.left -= 1
        return (right if self.left >= 0 else self.later)(a, b, out=out)


def does_nothing(a, b, out):
    return out


def spoils_the_last_element(a, b, out):
    right(a, b, out)
    out[-1, -1] += 1
    return out


def test_records_of_a_run():
    records = bench.bench([FakeRung("same", right)], SMALL, budget_s=0.1, threads=1)
    assert [record.rung for record in records] == ["numpy", "same"]
    baseline, same = records
    assert baseline.ratio == 1 and baseline.baseline == same.baseline == "numpy"
    assert (same.m, same.n, same.k, same.dtype) == (24, 20, 28, "float32")
    assert same.ratio == baseline.time_ms / same.time_ms
    assert same.gpu.startswith("CPU: ") and same.gpu.endswith(", 1 thread")
    assert same.driver == ""
    assert same.tflops == pytest.approx(2 * 24 * 20 * 28 / same.time_ms / 1e9)
    assert {"python", "numpy", "numba"} <= set(same.versions)


def test_half_as_fast_is_a_ratio_of_one_half(monkeypatch):
    # Both wait, so that the ratio does not hang on how busy this machine is.
    def waits(seconds):
        def matmul(a, b, out=None):
            time.sleep(seconds)
            return right(a, b, out)

        return matmul

    monkeypatch.setattr(bench, "_numpy_matmul", waits(0.05))
    records = bench.bench([FakeRung("slow", waits(0.1))], SMALL, budget_s=0.1, threads=1)
    assert 0.4 < records[1].ratio < 0.65


def test_a_rung_that_skips_the_last_tile_is_not_timed(monkeypatch):
    def no_clock(*arguments, **options):
        raise AssertionError("a wrong rung was timed")

    monkeypatch.setattr(bench, "time_interleaved", no_clock)
    rungs = [FakeRung("fine", right), FakeRung("short", skips_the_last_tile)]
    with pytest.raises(MatmulError, match=r"short is not timed(.|\n)*at 16 of 28"):
        bench.bench(rungs, SMALL)


@pytest.mark.sample(3)
@pytest.mark.parametrize("later", [does_nothing, spoils_the_last_element])
@pytest.mark.parametrize("timed_right", [0, 1, 2, 3, 4])
def test_a_rung_that_goes_wrong_while_timed_is_noticed(later, timed_right, monkeypatch):
    # With ten rounds, the last one has the inputs of the first and the fourth.
    monkeypatch.setattr(clock, "MAX_ROUNDS", 10)
    checked_and_warmed_up = 3
    rung = FakeRung("lazy", RightAtFirst(checked_and_warmed_up + timed_right, later))
    with pytest.raises(MatmulError, match="lazy was right before it was timed and wrong after"):
        bench.bench([rung], Problem(500, 20, 28), budget_s=60.0, threads=1)


def test_what_takes_too_long_is_refused_with_an_estimate():
    def crawls(a, b, out=None):
        time.sleep(a.shape[0] * b.shape[1] * a.shape[1] * 1e-7)
        return right(a, b, out)

    rung = FakeRung("crawls", crawls)
    message = r"crawls would take about (\d+) s .* the limit is 60 s"
    with pytest.raises(ValueError, match=message) as refused:
        bench.bench([rung], Problem.square(1024), max_run_s=60)
    assert 80 < float(re.search(message, str(refused.value))[1]) < 200


@pytest.mark.parametrize(
    ("rungs", "message"),
    [
        ([], "no rung to bench"),
        (["nope"], "unknown rung 'nope'"),
        ([FakeRung("a", right), FakeRung("a", right)], "named twice: a"),
        ([FakeRung("a", right), FakeRung("b", right, "gpu")], "no common baseline"),
    ],
)
def test_bad_lists_of_rungs_are_errors(rungs, message):
    with pytest.raises(ValueError, match=message):
        bench.bench(rungs, SMALL)


def test_inputs_that_a_rung_does_not_take_pass_its_own_error_on():
    with pytest.raises(TypeError, match="int32"):
        bench.bench(["njit_ikj"], Problem(8, 8, 8, "int32"), threads=1)


def test_a_rung_that_refuses_passes_its_error_on_or_is_left_out():
    def refuses(a, b, out=None):
        raise ValueError("N must be a multiple of 4, got 20")

    rungs = [FakeRung("fussy", refuses), FakeRung("fine", right)]
    with pytest.raises(ValueError, match="multiple of 4"):
        bench.bench(rungs, SMALL, budget_s=0.05, threads=1)
    told = []

    def tell(name, error):
        told.append((name, str(error)))

    records = bench.bench(rungs, SMALL, budget_s=0.05, threads=1, on_refusal=tell)
    assert [record.rung for record in records] == ["numpy", "fine"]
    assert told == [("fussy", "N must be a multiple of 4, got 20")]
    assert bench.bench(rungs[:1], SMALL, threads=1, on_refusal=tell) == []


def test_a_wrong_rung_is_not_taken_for_one_that_refuses():
    rungs = [FakeRung("short", skips_the_last_tile), FakeRung("fine", right)]
    with pytest.raises(MatmulError, match="short is not timed"):
        bench.bench(rungs, SMALL, threads=1, on_refusal=lambda name, error: None)


@pytest.mark.parametrize("layout", ["nn", "tn", "nt", "tt"])
def test_a_rung_gets_its_operands_in_its_layout(layout):
    seen = set()

    def remembers(a, b, out=None):
        seen.add((a.flags.c_contiguous, b.flags.c_contiguous))
        return right(a, b, out)

    def row_major(a, b, out=None):
        assert a.flags.c_contiguous and b.flags.c_contiguous
        return right(a, b, out)

    rungs = [FakeRung("wants", remembers, layout=layout), FakeRung("rows", row_major)]
    assert bench.estimate_s(rungs[0], SMALL) > 0
    records = bench.bench(rungs, SMALL, budget_s=0.05, threads=1)
    assert seen == {tuple(letter == "n" for letter in layout)}
    assert [record.launches for record in records] == [1, 1, 1]


def test_the_simulators_have_no_clock():
    if backend.select().on_gpu:
        bench.need_gpu()
        return
    with pytest.raises(ValueError, match="the simulators have no clock"):
        bench.bench(["cuda_naive"], SMALL)
    with pytest.raises(ValueError, match="the simulators have no clock"):
        time_interleaved({"f": lambda: None}, device="gpu")
    with pytest.raises(ValueError, match="the simulators have no clock"):
        bench.estimate_s(FakeRung("f", right, "gpu"), SMALL)


@pytest.mark.parametrize(
    ("once_ms", "asked", "launches"),
    [(0.05, None, 4), (0.19, None, 2), (0.2, None, 1), (5.0, None, 1), (1e-6, None, 64)]
    + [(0.05, 1, 1), (5.0, 3, 3)],
)
def test_a_sample_on_a_gpu_holds_as_many_calls_as_fill_it(stand_in_gpu, once_ms, asked, launches):
    stand_in_gpu.setattr(StandInClock, "once_ms", once_ms)
    calls = []

    def matmul(a, b, out=None):
        calls.append((a.is_contiguous(), b.is_contiguous()))
        return bench._torch_matmul(a, b, out)

    def refuses(a, b, out=None):
        raise ValueError("compute capability 8.0")

    rungs = [FakeRung("t", matmul, "gpu", "tn"), FakeRung("no", refuses, "gpu")]
    told = []
    records = bench.bench(
        rungs,
        SMALL,
        budget_s=1e-9,
        launches=asked,
        on_refusal=lambda name, error: told.append(name),
    )
    assert [record.rung for record in records] == ["cublas", "t"] and told == ["no"]
    assert [record.launches for record in records] == [launches] * 2
    assert [record.time_ms for record in records] == [once_ms] * 2
    assert set(calls) == {(False, True)}


@pytest.mark.parametrize(
    ("languages", "asked", "graph"),
    [
        ((TRITON, TRITON), None, True),
        ((TRITON, GLUON), None, True),
        ((TRITON, NUMBA_CUDA), None, False),
        ((TRITON, None), None, False),
        ((TRITON, TRITON), False, False),
        ((NUMBA_CUDA, NUMBA_CUDA), True, True),
    ],
)
def test_where_a_graph_captures_all_rungs_graphs_are_replayed(
    stand_in_gpu, languages, asked, graph
):
    captured = []

    def capture(name, call, launches):
        captured.append((name, launches))
        return call

    stand_in_gpu.setattr(clock, "_captured", capture)
    rungs = [
        FakeRung(name, torch_product, "gpu", language=language)
        for name, language in zip(("one", "two"), languages, strict=True)
    ]
    records = bench.bench(rungs, SMALL, budget_s=1e-9, graphs=asked)
    assert [record.graph for record in records] == [graph] * 3
    each = [(name, 4) for name in ("cublas", "one", "two") for _ in range(bench.INPUT_SETS)]
    assert captured == (each if graph else [])


def torch_product(a, b, out=None):
    return bench._torch_matmul(a, b, out)


def test_a_smaller_problem_that_is_refused_is_left_out_of_the_estimate(stand_in_gpu):
    seen = []

    def matmul(a, b, out=None):
        seen.append(a.shape[0])
        if a.shape[0] < 100:
            raise ValueError("too small")
        return a @ b

    rung = FakeRung("large", matmul, "gpu")
    assert bench.estimate_s(rung, Problem(200, 16, 16)) > 0
    assert seen == [64, 128, 128, 200, 200]
    with pytest.raises(ValueError, match="too small"):
        bench.estimate_s(rung, Problem(70, 16, 16))


@pytest.mark.gpu
@pytest.mark.alone
def test_a_run_is_estimated_on_the_gpu():
    from tiled_matmul.ladder import rung

    naive = rung("cuda_naive")
    problem = Problem.square(4096)
    _, record = bench.bench([naive], problem, budget_s=0.5)
    assert record.time_ms / 3 < bench.estimate_s(naive, problem) * 1e3 < record.time_ms * 3
    with pytest.raises(ValueError, match="cuda_naive would take about"):
        bench.bench([naive], problem, max_run_s=record.time_ms / 1e4)


@pytest.mark.gpu
@pytest.mark.alone
def test_small_products_are_timed_as_calls_in_a_row_and_large_ones_are_not():
    import torch

    def matmul(a, b, out=None):
        return torch.matmul(a, b, out=out)

    rung = FakeRung("itself", matmul, "gpu")
    small, large = (bench.bench([rung], Problem.square(n), budget_s=0.5)[0] for n in (256, 8192))
    assert small.launches > 1 and large.launches == 1


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.parametrize("size", [512, 2048])
def test_cublas_against_itself_is_even(size):
    import torch

    def matmul(a, b, out=None):
        return torch.matmul(a, b, out=out)

    rung = FakeRung("itself", matmul, "gpu")
    baseline, itself = bench.bench([rung], Problem.square(size), budget_s=1.0)
    assert 0.9 < itself.ratio < 1.1
    assert itself.gpu == backend.select().gpu.name
    assert itself.driver and "cuda" in itself.versions


@pytest.mark.gpu
def test_a_wrong_kernel_is_refused_on_the_gpu():
    import torch

    def short(a, b, out=None):
        return torch.matmul(a[:, :-1], b[:-1], out=out)

    with pytest.raises(MatmulError, match="short is not timed"):
        bench.bench([FakeRung("short", short, "gpu")], Problem.square(128))


@pytest.mark.gpu
def test_integers_have_no_cublas():
    from tiled_matmul.ladder import rung

    with pytest.raises(ValueError, match="cuBLAS multiplies floats"):
        bench.bench([rung("cuda_shared_16")], Problem.square(64, "int32"))


def test_inputs_change_from_round_to_round():
    sums = set()

    def remembers(a, b, out=None):
        sums.add((float(a.sum()), float(b.sum())))
        return right(a, b, out)

    bench.bench([FakeRung("f", remembers)], SMALL, budget_s=0.01, threads=1, max_run_s=math.inf)
    assert len(sums) == bench.INPUT_SETS


def test_what_the_first_run_takes_is_not_what_a_rung_takes():
    calls = []

    def compiles(a, b, out=None):
        calls.append(time.sleep(0 if calls else 1))
        return right(a, b, out)

    assert bench.estimate_s(FakeRung("f", compiles), SMALL) < 1


def test_a_baseline_that_refuses_is_an_error(monkeypatch):
    def refuses(a, b, out):
        raise ValueError("there is no baseline")

    monkeypatch.setattr(bench, "_numpy_matmul", refuses)
    with pytest.raises(ValueError, match="there is no baseline"):
        bench.bench([FakeRung("f", right)], SMALL, on_refusal=lambda name, error: None)
