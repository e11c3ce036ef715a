import pytest

from tiled_matmul.machine.device import Peak
from tiled_matmul.models.roofline import (
    attainable_tflops,
    floors_ms,
    issue_attainable_tflops,
    lines_attainable_tflops,
    ridge,
    shared_attainable_tflops,
    shared_bandwidth_gbps,
    shared_ridge,
    step_clocks,
)
from tiled_matmul.problem import Problem

# 10 TFLOP/s, 100 TFLOP/s on tensor cores, 1000 GB/s: round numbers to reckon with by hand.
PEAK = Peak("example", 10, 100, 1000, 40, 100, "made up")


def test_floors_of_a_square():
    # 2·1000³ FLOPs at 10¹³ a second, 3·1000²·4 bytes at 10¹² a second.
    assert floors_ms(Problem.square(1000), PEAK) == pytest.approx((0.2, 0.012))


def test_half_precision_runs_on_tensor_cores_and_moves_half_the_bytes():
    assert floors_ms(Problem.square(1000, "float16"), PEAK) == pytest.approx((0.02, 0.006))


def test_more_bytes_take_longer_and_leave_the_arithmetic():
    assert floors_ms(Problem.square(1000), PEAK, 1e9) == pytest.approx((0.2, 1.0))


def test_the_roof_has_a_slope_and_a_flat():
    assert ridge(PEAK) == pytest.approx(10)
    assert attainable_tflops(5, PEAK) == pytest.approx(5)
    assert attainable_tflops(10, PEAK) == pytest.approx(10)
    assert attainable_tflops(1e6, PEAK) == 10
    assert attainable_tflops(1e6, PEAK, "float16") == 100


def test_the_roof_and_the_floors_are_one_model():
    problem = Problem(64, 8192, 96)
    compute_ms, memory_ms = floors_ms(problem, PEAK)
    roof = attainable_tflops(problem.intensity, PEAK)
    assert problem.flops / max(compute_ms, memory_ms) / 1e9 == pytest.approx(roof)


@pytest.mark.parametrize("intensity", [0, -1, float("nan")])
def test_no_intensity_is_an_error(intensity):
    with pytest.raises(ValueError, match="must be positive"):
        attainable_tflops(intensity, PEAK)


@pytest.mark.parametrize("moved", [0, -1, 11_999_999, float("nan")])
def test_fewer_than_the_compulsory_bytes_are_an_error(moved):
    with pytest.raises(ValueError, match="has to move 12000000 bytes at least"):
        floors_ms(Problem.square(1000), PEAK, moved)


def test_a_dtype_without_a_rate_is_an_error():
    with pytest.raises(ValueError, match="no peak rate is known for 'float64'"):
        floors_ms(Problem.square(8, "float64"), PEAK)


def test_the_ridge_of_shared_memory_is_two_flops_a_byte_where_lanes_are_128():
    assert shared_ridge((9, 0)) == 2 and shared_ridge((8, 0)) == 1
    # 132 multiprocessors at 1.98 GHz: 128 bytes a clock each, 128 multiply-adds.
    peak = Peak("made up", 132 * 128 * 2 * 1.98e-3, 1, 1, 1, 132, "nowhere")
    assert shared_bandwidth_gbps(peak, (9, 0)) == pytest.approx(132 * 128 * 1.98)
    eighth = shared_attainable_tflops(0.25, peak, (9, 0))
    assert eighth == pytest.approx(peak.fp32_tflops / 8)
    assert shared_attainable_tflops(5, peak, (9, 0)) == peak.fp32_tflops


def test_two_instructions_a_multiply_add_halve_the_roof_where_each_has_a_lane():
    peak = Peak("made up", 60, 1, 1, 1, 100, "nowhere")
    assert issue_attainable_tflops(2, peak, (9, 0)) == 30
    assert issue_attainable_tflops(2, peak, (8, 0)) == 60  # half the lanes: every other is free
    assert issue_attainable_tflops(4, peak, (8, 0)) == 30


def test_a_line_a_cycle_feeds_one_multiply_add_of_a_warp():
    # At 128 lanes, a multiprocessor could do four of them in that cycle.
    peak = Peak("made up", 60, 1, 1, 1, 100, "nowhere")
    assert lines_attainable_tflops(3, peak, (9, 0)) == pytest.approx(5)
    assert lines_attainable_tflops(3, peak, (8, 0)) == pytest.approx(10)
    assert lines_attainable_tflops(0.1, peak, (9, 0)) == 60


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (lines_attainable_tflops, (0, None, (9, 0)), "must be positive, got 0"),
        (shared_attainable_tflops, (0, None, (9, 0)), "must be positive, got 0"),
        (shared_ridge, ((6, 0),), r"how many lanes \(6, 0\) has"),
        (issue_attainable_tflops, (0.5, None, (9, 0)), "one instruction at least, got 0.5"),
    ],
)
def test_impossible_intensities_and_unknown_gpus_are_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_a_step_is_counted_by_hand():
    # 128×256×64: 48 KiB written, 16 + 2 · 32 read, at 128 bytes a clock.
    assert step_clocks(128, 256, 64) == (1024, (48 + 16 + 64) * 1024 / 128)
    assert step_clocks(256, 128, 64) == (1024, (48 + 32 + 4 * 16) * 1024 / 128)
    assert step_clocks(64, 64, 128) == (256, 512) and step_clocks(64, 64, 128).longer == 512


def test_a_second_product_reads_a_again():
    one, two = step_clocks(128, 160, 64), step_clocks(128, (128, 32), 64)
    assert two.tensor == one.tensor == 640
    assert two.shared - one.shared == 128 * 64 * 2 / 128
    assert two == (640, 864) and step_clocks(64, (256, 32), 64) == (576, 768)


@pytest.mark.parametrize("sizes", [(0, 128, 64), (64, 0, 64), (64, (), 64), (64, (64, -1), 64)])
def test_a_step_without_a_size_is_refused(sizes):
    with pytest.raises(ValueError, match="sizes must be positive"):
        step_clocks(*sizes)


@pytest.mark.parametrize("tile", [(16, 128), (96, 128), (64, (64, 264))])
def test_a_step_that_is_no_wgmma_is_refused(tile):
    with pytest.raises(ValueError, match="64 rows and up to 256 columns"):
        step_clocks(*tile, 64)
