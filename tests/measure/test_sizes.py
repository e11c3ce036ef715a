"""What a page measures on a slow GPU: sizes shrink, slow rungs become rows, nothing raises."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tiled_matmul.kit import backend
from tiled_matmul.ladder import LADDER
from tiled_matmul.measure import bench, clock, provenance, results, sizes
from tiled_matmul.measure.clock import Timing
from tiled_matmul.measure.sizes import Compared, compare, measure
from tiled_matmul.problem import Problem

FLOPS_A_S = 1e9  # of a rung with cost 1 on the made-up GPU that is not slow
FLOOR = 16


@dataclass
class FakeRung:
    """A rung that takes `cost` times as long as a usual one, by the made-up clock."""

    name: str
    matmul: Any
    device: str = "gpu"
    layout: str = "nn"
    dtype: str = "float32"


class MadeUpGpu:
    """A GPU on which time passes as the sizes of products say, `slower` times as fast."""

    def __init__(self) -> None:
        self.now_s, self.slower, self.products = 0.0, 1.0, []

    def product(self, cost):
        def matmul(a, b, out=None):
            self.now_s += self.slower * cost * 2 * a.shape[0] * a.shape[1] * b.shape[1] / FLOPS_A_S
            self.products.append((cost, (a.shape[0], b.shape[1], a.shape[1])))
            return torch.matmul(a, b, out=out)

        return matmul

    def rung(self, name, cost):
        return FakeRung(name, self.product(cost))

    def at(self, cost):
        """Return the largest product that was made at this cost."""
        return max(shape for each, shape in self.products if each == cost)


@pytest.fixture
def gpu(monkeypatch):
    """A made-up GPU, whose products a CPU makes and whose clock knows what each costs."""
    made_up = MadeUpGpu()

    class Clock:
        def __init__(self, launches=1, graphs=False):
            pass

        def sample(self, name, call):
            before = made_up.now_s
            call()
            return 1e3 * (made_up.now_s - before)

    def cpu_inputs(self, shapes, seed, kind):
        return tuple(torch.randn(shape, generator=torch.manual_seed(seed)) for shape in shapes)

    for module in (bench, clock):
        monkeypatch.setattr(module, "need_gpu", lambda: None)
        monkeypatch.setattr(module, "finish", lambda: None)
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: made_up.now_s))
    monkeypatch.setattr(clock, "_GpuClock", Clock)
    monkeypatch.setattr(clock, "MAX_ROUNDS", 10)
    monkeypatch.setattr(bench, "GPU_PROBE_EDGE", 64)
    monkeypatch.setattr(bench, "_torch_matmul", made_up.product(0.1))
    monkeypatch.setattr(sizes, "FLOOR", FLOOR)
    monkeypatch.setattr(sizes.backend, "select", lambda: SimpleNamespace(on_gpu=True))
    monkeypatch.setattr(Problem, "_cuda_inputs", cpu_inputs)
    monkeypatch.setattr(provenance, "machine", lambda where, threads: ("NVIDIA X", "580"))
    monkeypatch.setattr(provenance, "versions", lambda where: {"python": "3"})
    return made_up


def names(measured):
    return [record.rung for record in measured]


# A product of 128³ costs 4.2 ms at cost 1, so a round of costs 1 and 2 takes 12.6 ms; 20 times
# slower 252 ms, and at 64³ 31 ms.
@pytest.mark.parametrize(("slower", "n"), [(1, 128), (7, 128), (20, 64), (160, 32), (1300, 16)])
def test_on_a_slower_gpu_all_rungs_are_measured_at_one_smaller_size(gpu, slower, n):
    gpu.slower = slower
    measured = measure(gpu.rung("one", 1), gpu.rung("two", 2), n=128, round_s=0.1)
    assert names(measured) == ["cublas", "one", "two"]
    assert {(r.m, r.n, r.k) for r in measured} == {(n, n, n)}
    assert measured.problem == Problem.square(n) and measured.asked == Problem.square(128)
    assert not measured.left_out and measured.live
    assert measured["two"].ratio == pytest.approx(0.05)
    assert ("128x128x128" in measured.note) == (n != 128)


def test_no_product_is_made_that_would_take_too_long(gpu):
    gpu.slower = 20
    measure(gpu.rung("one", 1), gpu.rung("two", 2), n=128, round_s=0.1)
    assert gpu.at(1) == gpu.at(2) == (64, 64, 64)


def test_what_is_too_slow_at_the_smallest_size_is_a_row_and_does_not_shrink_the_others(gpu):
    crawl = gpu.rung("crawl", 1e5)  # 0.8 s at 16³
    measured = measure(gpu.rung("one", 1), crawl, gpu.rung("two", 2), n=128, round_s=0.1)
    assert names(measured) == ["cublas", "one", "two"]
    assert measured.problem == Problem.square(128)
    assert measured.left_out == {"crawl": "too slow here: about 0.819 s a run"}
    assert "crawl" in repr(measured) and "too slow here: about 0.819 s a run" in repr(measured)
    assert "crawl" in measured._repr_html_()
    assert measured.get("crawl") is None and "crawl" not in measured
    with pytest.raises(KeyError, match="no record of crawl: too slow here"):
        measured["crawl"]


def test_if_everything_is_too_slow_there_are_rows_and_no_record(gpu):
    gpu.slower = 1e6
    measured = measure(gpu.rung("one", 1), gpu.rung("two", 2), n=128, round_s=0.1)
    assert list(measured) == [] and set(measured.left_out) == {"one", "two"}
    assert "one" in repr(measured)


def test_a_rung_that_refuses_is_a_row(gpu):
    def refuses(a, b, out=None):
        raise ValueError("needs compute capability 8.0,\n this GPU has 7.5")

    measured = measure(gpu.rung("one", 1), FakeRung("async", refuses), n=64)
    assert names(measured) == ["cublas", "one"]
    reason = "it refuses: needs compute capability 8.0, this GPU has 7.5"
    assert measured.left_out == {"async": reason}
    alone = measure(FakeRung("async", refuses), n=64)
    assert list(alone) == [] and alone.left_out == {"async": reason}


class OutOfMemoryError(RuntimeError):
    """Named as torch's."""


def test_too_little_memory_shrinks_the_problem(gpu):
    def full(limit):
        product = gpu.product(1)

        def matmul(a, b, out=None):
            if a.shape[0] > limit:
                raise OutOfMemoryError("CUDA out of memory")
            return product(a, b, out=out)

        return FakeRung("greedy", matmul)

    assert measure(full(40), gpu.rung("one", 1), n=128).problem == Problem.square(32)
    measured = measure(full(4), gpu.rung("one", 1), n=128)
    assert names(measured) == ["cublas", "one"]
    assert measured.left_out == {"greedy": "too little memory here"}


def test_a_wrong_rung_still_raises(gpu):
    def wrong(a, b, out=None):
        return torch.matmul(a, 2 * b, out=out)

    with pytest.raises(Exception, match="wrong is not timed"):
        measure(FakeRung("wrong", wrong), n=64)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((4096, 4096, 4096), [(2048, 2048, 2048), (1024, 1024, 1024), (512, 512, 512)]),
        ((4000, 4000, 4000), [(2000, 2000, 2000), (1000, 1000, 1000)]),
        ((16, 2048, 1024), [(16, 1024, 512), (16, 512, 512)]),
        ((256, 256, 256), []),
    ],
)
def test_sizes_are_halved_down_to_the_floor(asked, expected):
    tried = [(p.m, p.n, p.k) for p in sizes.sizes(Problem(*asked, "float16"))]
    assert tried == [asked, *expected]


def test_variants_are_compared_at_one_smaller_size(gpu):
    gpu.slower = 20
    functions = {("tile", 1): gpu.product(1), "two": gpu.product(2), "crawl": gpu.product(1e5)}
    compared = compare(functions, n=128, round_s=0.1, budget_s=0.1)
    assert list(compared) == [("tile", 1), "two"] and compared.problem == Problem.square(64)
    assert compared.ms["two"] == pytest.approx(2 * compared.ms["tile", 1])
    assert compared.tflops["two"] == pytest.approx(FLOPS_A_S / 40 / 1e12)
    assert set(compared.left_out) == {"crawl"}
    assert "too slow here" in repr(compared) and "64x64x64" in compared.note


def test_nothing_to_compare_is_no_error(gpu):
    gpu.slower = 1e9
    assert dict(compare({"one": gpu.product(1)}, n=64, round_s=0.1)) == {}


@pytest.mark.parametrize("size", [{}, {"n": 64, "shape": (64, 64, 64)}])
def test_one_size_is_wanted(gpu, size):
    with pytest.raises(ValueError, match="give n or shape"):
        measure(gpu.rung("one", 1), **size)
    with pytest.raises(ValueError, match="give n or shape"):
        compare({"one": gpu.product(1)}, **size)


def test_nothing_to_measure_is_an_error():
    with pytest.raises(ValueError, match="no rung to measure"):
        measure(n=64)


def test_cpu_rungs_go_the_same_way(monkeypatch):
    def crawls(a, b, out=None):
        time.sleep(a.shape[0] * a.shape[1] * b.shape[1] * 1e-7)
        return np.matmul(a, b, out=out)

    monkeypatch.setattr(bench, "PROBE_EDGE", 64)
    monkeypatch.setattr(sizes, "FLOOR", 64)
    rungs = ["njit_ikj", FakeRung("crawls", crawls, "cpu")]
    options = {"round_s": 0.1, "threads": 1, "budget_s": 0.05}
    both = measure(*rungs, n=128, **options)
    assert names(both) == ["numpy", "njit_ikj", "crawls"] and both.live
    assert both.problem == Problem.square(64)
    monkeypatch.setattr(sizes, "FLOOR", 128)
    one = measure(*rungs, n=128, **options)
    assert names(one) == ["numpy", "njit_ikj"] and "too slow here" in one.left_out["crawls"]


def test_without_a_gpu_the_books_records_are_shown():
    if backend.select().on_gpu:
        pytest.skip("a GPU is here")
    measured = measure("cuda_naive", "cuda_coalesced", n=4096)
    stored = results.reference()
    assert not measured.live and measured.problem == measured.asked
    assert [*measured] == [
        results.find(stored, rung, 4096, 4096, 4096)
        for rung in ("cublas", "cuda_naive", "cuda_coalesced")
    ]
    absent = measure("cuda_naive", n=77)
    assert list(absent) == [] and absent.left_out == {"cuda_naive": "the book has no record"}
    halves = measure("triton_swizzled", n=8192)
    assert halves["triton_swizzled"].dtype == "float16"
    compared = compare({"one": torch.matmul}, n=64)
    assert compared.left_out == {"one": sizes.NO_CLOCK} and not compared


def test_on_the_books_gpu_and_on_one_20_times_slower_every_rung_is_measured(monkeypatch):
    # By the book's own records: which size would a page get for each rung?
    monkeypatch.setattr(sizes.backend, "select", lambda: SimpleNamespace(on_gpu=True))
    stored = {r.rung: r for r in results.reference() if (r.m, r.n, r.k) == (4096, 4096, 4096)}
    for slower, expected in ((1, {4096}), (20, {4096, 2048})):

        def estimate(rung, problem, slower=slower):
            return slower * problem.flops / stored[rung.name].tflops / 1e12

        monkeypatch.setattr(sizes, "estimate_s", estimate)
        rungs = [rung for rung in LADDER if rung.name in stored and rung.device == "gpu"]
        assert len(rungs) > 20
        chosen = {sizes.fitting([rung], Problem.square(4096))[0].n for rung in rungs}
        assert chosen <= expected
        every, kept, left_out = sizes.fitting(rungs, Problem.square(4096))
        assert (every.n, len(kept), left_out) == ({1: 4096, 20: 2048}[slower], len(rungs), {})


def test_a_comparison_is_a_mapping():
    timing = Timing((1.0, 2.0, 3.0))
    compared = Compared(Problem.square(100), Problem.square(100), {"a": timing})
    assert compared["a"] is timing and compared.ms == {"a": 2.0} and compared.note == ""
    assert compared.tflops == {"a": pytest.approx(1e-3)}


NEIGHBOUR = """
import torch
x = torch.randn(8192, 8192, device="cuda")
torch.cuda.synchronize()
print("busy", flush=True)
while True:
    for _ in range(8):
        x @ x
    torch.cuda.synchronize()
"""


@pytest.mark.gpu
@pytest.mark.alone
def test_beside_neighbours_that_keep_the_gpu_busy_a_page_gets_a_smaller_size():
    pair = ("cuda_naive", "cuda_coalesced")
    alone = measure(*pair, n=4096, budget_s=0.2, round_s=60)
    assert alone.problem.n == 4096
    round_s = 1.6 * sum(record.time_ms for record in alone[1:]) / 1e3
    assert measure(*pair, n=4096, budget_s=0.2, round_s=round_s).problem.n == 4096
    command = [sys.executable, "-c", NEIGHBOUR]
    neighbours = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(4)
    ]
    try:
        assert [each.stdout.readline() for each in neighbours] == ["busy\n"] * 4
        beside = measure(*pair, n=4096, budget_s=0.2, round_s=round_s)
        assert [record.rung for record in beside] == ["cublas", *pair] and not beside.left_out
        assert beside.problem.n < 4096 and "4096x4096x4096" in beside.note
        slow = measure("cuda_naive", "cuda_best", n=4096, budget_s=0.2, round_s=1e-4)
        assert "too slow here" in slow.left_out["cuda_naive"]
    finally:
        for each in neighbours:
            each.kill()
            each.wait()
