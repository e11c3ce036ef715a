"""The fair clock: rounds, samples, launches, threads."""

import gc
import threading
import time
from types import SimpleNamespace

import pytest

from tiled_matmul.measure import clock, peaks
from tiled_matmul.measure.clock import Timing, equal_threads, time_interleaved


def test_median_and_spread():
    timing = Timing((1.0, 2.0, 3.0, 4.0, 100.0))
    assert timing.median_ms == 3.0
    assert timing.spread == pytest.approx((4 - 2) / 3)


@pytest.mark.parametrize("samples", [(), (float("nan"),), (-1.0,), (1.0, float("inf"))])
def test_a_timing_of_nothing_is_refused(samples):
    with pytest.raises(ValueError, match="finite samples"):
        Timing(samples)


def test_functions_run_in_turn_and_each_round_starts_with_another(monkeypatch):
    monkeypatch.setattr(clock, "LEAD_S", 0.0)
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


def test_the_budget_decides_how_many_rounds(monkeypatch):
    monkeypatch.setattr(clock, "LEAD_S", 0.0)

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

    assert rounds(0.05, 0.006) == clock.MIN_ROUNDS
    assert rounds(0.02, 0.06) == clock.FEWEST_ROUNDS
    assert rounds(60.0, 0.0) == clock.MAX_ROUNDS
    monkeypatch.setenv(clock.MOST_S, "0.02")
    assert rounds(60.0, 0.2) == 1
    quick = clock.time_interleaved({"f": lambda: None}, device="cpu", rounds=7)
    assert len(quick["f"].samples_ms) == 1
    for wrong in ("0", "-1", "nan", "some"):
        monkeypatch.setenv(clock.MOST_S, wrong)
        with pytest.raises(ValueError, match=f"BUDGET_S must be a positive .* got '{wrong}'"):
            rounds(60.0, 0.0)


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

    before = numba.get_num_threads(), clock._blas_threads()
    with equal_threads(1) as count:
        assert (count, numba.get_num_threads()) == (1, 1)
        assert set(clock._blas_threads()) == {1}
    assert (numba.get_num_threads(), clock._blas_threads()) == before


def test_blas_that_does_not_follow_is_noticed(monkeypatch):
    monkeypatch.setattr(clock, "_blas_threads", lambda: [7])
    with pytest.raises(ValueError, match="BLAS does not run on 1 threads"), equal_threads(1):
        pass


@pytest.mark.gpu
@pytest.mark.alone
def test_the_flush_hides_what_a_launch_costs_the_host():
    import torch
    from numba import cuda

    from tiled_matmul.kit.launch import launch

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
    assert torch.randn(3, device="cuda").isfinite().all()
    with torch.random.fork_rng([0]):
        torch.manual_seed(1)
        assert torch.rand(1, device="cuda").item() < 1


@pytest.mark.gpu
@pytest.mark.alone
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
@pytest.mark.alone
def test_the_cache_is_flushed():
    # 8 MB fit into every L2; read from memory they take at least their bytes over the bandwidth.
    import torch

    x = torch.ones(2**21, device="cuda")
    peak = peaks.current()
    timing = time_interleaved({"sum": lambda: x.sum()}, device="gpu", rounds=50)["sum"]
    assert timing.median_ms >= x.nbytes / (peak.bandwidth_gbps * 1e6)


@pytest.mark.gpu
@pytest.mark.alone
def test_calls_in_a_row_leave_out_the_flush_and_the_price_of_a_launch():
    import torch
    from numba import cuda

    from tiled_matmul.kit.launch import launch

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


def test_the_cpu_clock_waits_for_threads_that_spin():
    """Once in some tries: a machine with more to do may stop the thread, which then is idle."""

    def waited():
        stop = time.perf_counter() + 0.1

        def spin():
            while time.perf_counter() < stop:
                pass

        thread = threading.Thread(target=spin)
        thread.start()
        clock._wait_until_idle()
        there = time.perf_counter() >= stop - 0.02
        thread.join()
        return there

    assert any(waited() for _ in range(10))
    start = time.perf_counter()
    clock._wait_until_idle()
    assert time.perf_counter() - start < 0.1


def test_a_median_of_zero_has_no_finite_spread():
    assert Timing((0.0, 0.0, 1.0)).spread == float("inf")


@pytest.mark.parametrize(
    ("call_s", "first", "second"), [(0.01, 4, 4), (0.2, 2, 2), (2.0, 2, 1)], ids=str
)
def test_a_sample_on_a_cpu_is_one_call_after_a_lead(monkeypatch, call_s, first, second):
    """On a clock that only the calls move on: a lead of 30 ms, and none after a long call."""
    done = []

    def call():
        stand_in.now += call_s
        done.append("call")

    stand_in = SimpleNamespace(now=0.0, perf_counter=lambda: stand_in.now)
    monkeypatch.setattr(clock, "time", stand_in)
    monkeypatch.setattr(clock, "_wait_until_idle", lambda: done.append("idle"))
    sampler = clock._CpuClock()
    for calls in (first, second):
        done.clear()
        assert sampler.sample("f", call) == pytest.approx(call_s * 1e3)
        assert done == ["idle"] + ["call"] * calls


def test_no_garbage_is_collected_while_functions_are_timed():
    enabled = []
    time_interleaved({"f": lambda: enabled.append(gc.isenabled())}, device="cpu", rounds=1)
    assert set(enabled) == {False} and gc.isenabled()


@pytest.mark.parametrize(("ms", "launches"), [(0.1, 3), (0.07, 5), (0.001, 50), (7.0, 1)])
def test_a_graph_has_so_many_launches_that_a_sample_is_not_short(monkeypatch, ms, launches):
    asked = []

    def timed(functions, **options):
        asked.append((sorted(functions), options))
        return {name: clock.Timing((ms,)) for name in functions}

    monkeypatch.setattr(clock, "time_interleaved", timed)
    clock.time_replays({"torch": print, "ours": print}, "torch", rounds=11)
    (first, _), (names, options) = asked
    assert first == ["torch"] and names == ["ours", "torch"]
    assert options == {"device": "gpu", "graphs": True, "rounds": 11, "launches": launches}


@pytest.fixture
def instant(monkeypatch):
    """Each call takes as many milliseconds as it says, in every round, and is noted."""
    called = []

    def times(functions, *, rounds, launches, **options):
        found = {}
        for name, function in functions.items():
            before = len(called)
            function()
            took = sum(called[before:])
            found[name] = Timing(tuple(took + 0.01 * x for x in range(rounds)))
        return found

    monkeypatch.setattr(clock, "time_interleaved", times)
    return lambda ms: lambda: called.append(ms)


def test_the_time_of_the_kernel_before_is_taken_off(instant):
    functions = {"library": instant(5.0), "ours": instant(4.0)}
    alone = clock.time_replays(functions, "library", rounds=3)
    after = clock.time_replays(functions, "library", rounds=3, after=instant(2.0))
    assert {name: each.samples_ms[0] for name, each in alone.items()} == {"library": 5, "ours": 4}
    assert list(after) == ["library", "ours"]
    for name, each in after.items():  # less the median of the kernel before, 2.01
        assert each.samples_ms == pytest.approx([x - 0.01 for x in alone[name].samples_ms])


def test_a_call_that_a_kernel_before_hides_takes_no_less_than_nothing(instant):
    after = clock.time_replays({"library": instant(0.0)}, "library", rounds=2, after=instant(1.0))
    assert min(after["library"].samples_ms) == 0.0
