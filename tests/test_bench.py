import gc
import math
import threading
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tiled_matmul import backend, bench, device
from tiled_matmul.bench import Timing, equal_threads, exact_sums, time_interleaved
from tiled_matmul.check import MatmulError
from tiled_matmul.problem import Problem

SMALL = Problem(24, 20, 28)


@dataclass
class FakeRung:
    """A rung that the ladder does not have."""

    name: str
    matmul: Any
    device: str = "cpu"
    layout: str = "nn"


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


def test_median_and_spread():
    timing = Timing((1.0, 2.0, 3.0, 4.0, 100.0))
    assert timing.median_ms == 3.0
    assert timing.spread == pytest.approx((4 - 2) / 3)


def test_a_median_of_zero_has_no_finite_spread():
    assert Timing((0.0, 0.0, 1.0)).spread == float("inf")


@pytest.mark.parametrize("samples", [(), (float("nan"),), (-1.0,), (1.0, float("inf"))])
def test_a_timing_of_nothing_is_refused(samples):
    with pytest.raises(ValueError, match="finite samples"):
        Timing(samples)


def test_functions_run_in_turn_and_each_round_starts_with_another(monkeypatch):
    monkeypatch.setattr(bench, "LEAD_S", 0.0)
    calls = []
    functions = {name: lambda i, name=name: calls.append((name, i)) for name in "abc"}
    timings = time_interleaved(functions, device="cpu", inputs=[(0,), (1,)], rounds=4, threads=1)
    # Two warm-up calls each; then a lead and the sample itself, on the same inputs.
    timed = calls[6:]
    assert timed[::2] == timed[1::2]
    assert "".join(name for name, _ in timed[::2]) == "abcbcacababc"
    assert [i for _, i in timed[::2]] == [0] * 3 + [1] * 3 + [0] * 3 + [1] * 3
    assert all(len(timing.samples_ms) == 4 for timing in timings.values())
    assert list(timings) == ["a", "b", "c"]


def test_the_clock_tells_time():
    timings = time_interleaved(
        {"short": lambda: time.sleep(0.002), "long": lambda: time.sleep(0.008)},
        device="cpu",
        rounds=5,
    )
    assert 2 <= timings["short"].median_ms < timings["long"].median_ms
    assert timings["long"].median_ms >= 8


@pytest.mark.parametrize(
    ("call_s", "first", "second"), [(0.01, 4, 4), (0.2, 2, 2), (2.0, 2, 1)], ids=str
)
def test_a_sample_on_a_cpu_is_one_call_after_a_lead(monkeypatch, call_s, first, second):
    """On a clock that only the calls move on: a lead of 30 ms, and none after a long call."""
    done = []

    def call():
        clock.now += call_s
        done.append("call")

    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(bench, "time", clock)
    monkeypatch.setattr(bench, "_wait_until_idle", lambda: done.append("idle"))
    sampler = bench._CpuClock()
    for calls in (first, second):
        done.clear()
        assert sampler.sample("f", call) == pytest.approx(call_s * 1e3)
        assert done == ["idle"] + ["call"] * calls


def test_no_garbage_is_collected_while_functions_are_timed():
    enabled = []
    time_interleaved({"f": lambda: enabled.append(gc.isenabled())}, device="cpu", rounds=1)
    assert set(enabled) == {False} and gc.isenabled()


def test_the_budget_decides_how_many_rounds(monkeypatch):
    monkeypatch.setattr(bench, "LEAD_S", 0.0)

    def rounds(budget_s, seconds):
        shares = []
        timings = time_interleaved(
            {"f": lambda: time.sleep(seconds)},
            device="cpu",
            budget_s=budget_s,
            on_round=shares.append,
        )
        assert shares == sorted(shares) and shares[-1] == 1
        return len(timings["f"].samples_ms)

    assert rounds(0.05, 0.006) == bench.MIN_ROUNDS
    assert rounds(0.02, 0.06) == bench.FEWEST_ROUNDS
    assert rounds(60.0, 0.0) == bench.MAX_ROUNDS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"functions": {}}, "no function"),
        ({"device": "tpu"}, "device must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"rounds": 2.5}, "rounds must be"),
        ({"budget_s": 0}, "budget_s must be"),
        ({"budget_s": float("nan")}, "budget_s must be"),
        ({"inputs": []}, "inputs must hold"),
        ({"threads": 0}, "threads must be from 1 to"),
        ({"threads": 10**6}, "threads must be from 1 to"),
        ({"threads": True}, "threads must be from 1 to"),
        ({"launches": 0}, "launches must be a positive integer, got 0"),
        ({"launches": 1.0}, "launches must be a positive integer, got 1.0"),
        ({"launches": 2}, "on a CPU a sample is one call; launches=2"),
        ({"graphs": True}, "on a CPU leave graphs=False"),
    ],
)
def test_bad_requests_are_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        time_interleaved(**{"functions": {"f": lambda: None}, "device": "cpu"} | arguments)


def test_blas_and_numba_get_the_same_threads_and_theirs_back():
    import numba

    before = numba.get_num_threads(), bench._blas_threads()
    with equal_threads(1) as count:
        assert (count, numba.get_num_threads()) == (1, 1)
        assert set(bench._blas_threads()) == {1}
    assert (numba.get_num_threads(), bench._blas_threads()) == before


def test_blas_that_does_not_follow_is_noticed(monkeypatch):
    monkeypatch.setattr(bench, "_blas_threads", lambda: [7])
    with pytest.raises(ValueError, match="BLAS does not run on 1 threads"), equal_threads(1):
        pass


def test_tf32_is_off_within_and_restored_after():
    import torch

    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = True
    try:
        with pytest.raises(KeyError), exact_sums():
            assert settings.allow_tf32 is False
            assert settings.allow_fp16_reduced_precision_reduction is False
            raise KeyError
        assert settings.allow_tf32 is True
    finally:
        settings.allow_tf32 = before


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


def test_half_as_fast_is_a_ratio_of_one_half(monkeypatch):
    # Both wait, so that the ratio does not hang on how busy this machine is.
    def waits(seconds):
        def matmul(a, b, out=None):
            time.sleep(seconds)
            return right(a, b, out)

        return matmul

    monkeypatch.setattr(bench, "_numpy_matmul", waits(0.02))
    records = bench.bench([FakeRung("slow", waits(0.04))], SMALL, budget_s=0.1, threads=1)
    assert 0.4 < records[1].ratio < 0.6


def test_a_rung_that_skips_the_last_tile_is_not_timed(monkeypatch):
    def no_clock(*arguments, **options):
        raise AssertionError("a wrong rung was timed")

    monkeypatch.setattr(bench, "time_interleaved", no_clock)
    rungs = [FakeRung("fine", right), FakeRung("short", skips_the_last_tile)]
    with pytest.raises(MatmulError, match=r"short is not timed(.|\n)*at 16 of 28"):
        bench.bench(rungs, SMALL)


@pytest.mark.parametrize("later", [does_nothing, spoils_the_last_element])
@pytest.mark.parametrize("timed_right", [0, 1, 2, 3, 4])
def test_a_rung_that_goes_wrong_while_timed_is_noticed(later, timed_right):
    checked_and_warmed_up = 3
    rung = FakeRung("lazy", RightAtFirst(checked_and_warmed_up + timed_right, later))
    with pytest.raises(MatmulError, match="lazy was right before it was timed and wrong after"):
        bench.bench([rung], Problem(500, 20, 28), budget_s=0.02, threads=1)


def test_what_takes_too_long_is_refused_with_an_estimate():
    def crawls(a, b, out=None):
        time.sleep(a.shape[0] * b.shape[1] * a.shape[1] * 1e-7)
        return right(a, b, out)

    rung = FakeRung("crawls", crawls)
    problem = Problem.square(1024)
    assert 80 < bench.estimate_s(rung, problem) < 200
    with pytest.raises(ValueError, match=r"crawls would take about \d+ s .* the limit is 2 s"):
        bench.bench([rung], problem)


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


def test_the_commit_can_be_given(monkeypatch):
    monkeypatch.setenv("TILED_MATMUL_COMMIT", "fedcba9")
    bench.commit.cache_clear()
    assert bench.commit() == "fedcba9"
    bench.commit.cache_clear()


def test_without_git_the_commit_is_unknown(monkeypatch, tmp_path):
    monkeypatch.delenv("TILED_MATMUL_COMMIT", raising=False)
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    bench.commit.cache_clear()
    assert bench.commit() == "unknown"
    bench.commit.cache_clear()


def test_a_changed_source_is_a_dirty_commit(monkeypatch, tmp_path):
    import subprocess

    def git(*arguments):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    monkeypatch.delenv("TILED_MATMUL_COMMIT", raising=False)
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    (tmp_path / "results.json").write_text("[]")
    bench.commit.cache_clear()
    assert not bench.commit().endswith("-dirty")
    (tmp_path / "src" / "a.py").write_text("2")
    bench.commit.cache_clear()
    assert bench.commit().endswith("-dirty")
    bench.commit.cache_clear()


class StandInClock:
    """Makes the calls that a GPU's clock would time; a call takes `once_ms`, whatever is called."""

    once_ms = 0.05

    def __init__(self, launches=1, graphs=False):
        self.calls = 1 if graphs else launches

    def sample(self, name, call):
        for _ in range(self.calls):
            call()
        return self.once_ms


@pytest.fixture
def stand_in_gpu(monkeypatch):
    """Let bench go a GPU's way on CPU tensors."""
    import torch

    def cpu_inputs(self, shapes, seed, kind):
        return tuple(torch.randn(shape, generator=torch.manual_seed(seed)) for shape in shapes)

    monkeypatch.setattr(Problem, "_cuda_inputs", cpu_inputs)
    monkeypatch.setattr(bench, "need_gpu", lambda: None)
    monkeypatch.setattr(bench, "_finish", lambda: None)
    monkeypatch.setattr(bench, "_GpuClock", StandInClock)
    monkeypatch.setattr(bench, "machine", lambda where, threads: ("NVIDIA X", "580"))
    monkeypatch.setattr(bench, "versions", lambda where: {"python": "3"})
    return monkeypatch


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
    ("in_triton", "asked", "graph"),
    [
        ((True, True), None, True),
        ((True, False), None, False),
        ((True, True), False, False),
        ((False, False), True, True),
    ],
)
def test_where_all_rungs_are_tritons_graphs_are_replayed(stand_in_gpu, in_triton, asked, graph):
    captured = []

    def capture(name, call, launches):
        captured.append((name, launches))
        return call

    stand_in_gpu.setattr(bench, "_captured", capture)
    rungs = [FakeRung(name, torch_product, "gpu") for name in ("one", "two")]
    for rung, triton in zip(rungs, in_triton, strict=True):
        rung.in_triton = triton
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
def test_the_flush_hides_what_a_launch_costs_the_host():
    import torch
    from numba import cuda

    from tiled_matmul.ladder.launch import launch

    @cuda.jit
    def empty(x):
        pass

    x = torch.zeros(1, device="cuda")
    timings = time_interleaved(
        {"numba": lambda: launch(empty, (1,), (1,), x), "torch": lambda: x.zero_()},
        device="gpu",
        rounds=50,
    )
    assert timings["numba"].median_ms < 0.020
    assert timings["torch"].median_ms < 0.020


@pytest.mark.gpu
def test_a_function_that_waits_for_the_gpu_is_refused():
    import torch

    x = torch.zeros(1, device="cuda")
    with pytest.raises(ValueError, match="waiter waits for the GPU"):
        time_interleaved({"waiter": lambda: x.item()}, device="gpu", rounds=3)


@pytest.mark.gpu
def test_what_cannot_be_captured_is_refused():
    import torch

    x = torch.zeros(1, device="cuda")
    with pytest.raises(ValueError, match="waiter cannot be captured in a CUDA graph"):
        time_interleaved({"waiter": lambda: x.item()}, device="gpu", rounds=3, graphs=True)
    assert x.add(1).item() == 1


@pytest.mark.gpu
def test_a_replay_does_all_the_calls_and_spares_what_launches_cost():
    import torch

    x, y = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda")
    functions = {"x": lambda: x.add_(1), "y": lambda: y.add_(1)}
    once = time_interleaved(functions, device="gpu", rounds=5, launches=50)
    x.zero_()
    replayed = time_interleaved(functions, device="gpu", rounds=5, launches=50, graphs=True)
    assert x.item() == 2 + 5 * 2 * 50  # warm-up, then a replay untimed and one timed in each round
    assert all(replayed[name].median_ms < once[name].median_ms for name in functions)


@pytest.mark.gpu
def test_the_cache_is_flushed():
    # 8 MB fit into every L2; read from memory they take at least their bytes over the bandwidth.
    import torch

    x = torch.ones(2**21, device="cuda")
    peak = device.current()
    timing = time_interleaved({"sum": lambda: x.sum()}, device="gpu", rounds=50)["sum"]
    assert timing.median_ms >= x.nbytes / (peak.bandwidth_gbps * 1e6)


@pytest.mark.gpu
def test_calls_in_a_row_leave_out_the_flush_and_the_price_of_a_launch():
    import torch
    from numba import cuda

    from tiled_matmul.ladder.launch import launch

    @cuda.jit
    def empty(x):
        pass

    x = torch.ones(2**21, device="cuda")
    functions = {"numba": lambda: launch(empty, (1,), (1,), x), "sum": lambda: x.sum()}
    once, many = (
        time_interleaved(functions, device="gpu", rounds=20, launches=launches)
        for launches in (1, 20)
    )
    for name in functions:
        assert many[name].median_ms < once[name].median_ms


@pytest.mark.gpu
def test_a_run_is_estimated_on_the_gpu():
    from tiled_matmul.ladder import rung

    naive = rung("cuda_naive")
    problem = Problem.square(4096)
    _, record = bench.bench([naive], problem, budget_s=0.5)
    assert record.time_ms / 3 < bench.estimate_s(naive, problem) * 1e3 < record.time_ms * 3
    with pytest.raises(ValueError, match="cuda_naive would take about"):
        bench.bench([naive], problem, max_run_s=record.time_ms / 1e4)


@pytest.mark.gpu
def test_small_products_are_timed_as_calls_in_a_row_and_large_ones_are_not():
    import torch

    def matmul(a, b, out=None):
        return torch.matmul(a, b, out=out)

    rung = FakeRung("itself", matmul, "gpu")
    small, large = (bench.bench([rung], Problem.square(n), budget_s=0.5)[0] for n in (256, 8192))
    assert small.launches > 1 and large.launches == 1


@pytest.mark.gpu
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


def test_the_cpu_clock_waits_for_threads_that_spin():
    stop = time.perf_counter() + 0.1

    def spin():
        while time.perf_counter() < stop:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    bench._wait_until_idle()
    assert time.perf_counter() >= stop - 0.02
    thread.join()
    start = time.perf_counter()
    bench._wait_until_idle()
    assert time.perf_counter() - start < 0.1
