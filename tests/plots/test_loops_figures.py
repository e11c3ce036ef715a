"""plots/loops.py and plots/rates.py: what the figures say is what the data say."""

import html
import re
from dataclasses import replace

import pytest

from tiled_matmul.measure import results
from tiled_matmul.plots import loops, rates
from tiled_matmul.problem import Problem


def record(rung="njit_ijk", n=64, time_ms=10.0, baseline_ms=1.0):
    rate = {"time_ms": time_ms, "tflops": 2 * n**3 / time_ms / 1e9, "ratio": baseline_ms / time_ms}
    what = {"rung": rung, "dtype": "float32", "baseline": "numpy"}
    return replace(results.reference()[0], **dict.fromkeys("mnk", n), **rate, **what)


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [(0.5, "200% of numpy"), (20.0, "5.0% of numpy"), (12_345.0, "1/12,000 of numpy")],
)
def test_a_share_is_of_the_baselines_rate(time_ms, text):
    assert rates.share_text(record(time_ms=time_ms)) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(4.93e6, "4.93 MFLOP/s"), (999.6e6, "1 GFLOP/s"), (12, "12 FLOP/s")],
)
def test_a_rate_has_the_prefix_that_fits(rate, text):
    assert rates.rate_text(rate) == text


def test_the_ladder_names_every_rung_with_rate_and_share():
    library = record("numpy", time_ms=1.0)
    alt = rates.ladder_figure([record("loops_python", time_ms=12_345), library]).alt
    assert "Loops 1 in Python 42.5 kFLOP/s, 1/12,000 of numpy" in alt
    assert "NumPy's BLAS 524 MFLOP/s" in alt and "NumPy's BLAS 524 MFLOP/s," not in alt


def test_the_ladders_own_title_is_its_best_rung_and_a_finding_replaces_it():
    timed = {"numpy": 1.0, "njit_ijk": 50, "njit_ikj": 4}
    records = [record(rung, time_ms=time_ms) for rung, time_ms in timed.items()]
    assert rates.ladder_figure(records).alt.startswith("The best rung runs at 25% of numpy: ")
    assert rates.ladder_figure(records, "Far apart").alt.startswith("Far apart. ")
    assert "no rung was measured" in rates.ladder_figure(records[:1]).alt


def test_the_ladder_says_the_size_of_each_record_where_sizes_differ():
    alt = rates.ladder_figure([record("numpy", 64, 1.0), record("numpy", 512, 1.0)]).alt
    assert "64³" in alt and "512³" in alt
    assert "64³" not in rates.ladder_figure([record("numpy", 64, 1.0)]).alt


def test_the_ladder_says_the_dtype_of_each_record_where_dtypes_differ():
    half = replace(record("triton_swizzled", time_ms=2.0), dtype="float16")
    text = str(rates.ladder_figure([record(), half])._repr_html_())
    assert "64³ float32" in text and "64³ float16" in text
    assert "64³ float32" not in str(rates.ladder_figure([record()])._repr_html_())
    with pytest.raises(ValueError, match="rates by size are of one dtype, got float32, float16"):
        rates.rates_by_size([record(), half], "x")


def test_rates_by_size_keep_each_rungs_first_and_last_size():
    records = [record(n=n, time_ms=n / 32) for n in (128, 32, 64)]
    alt = rates.rates_by_size(records, "Rates rise").alt
    assert "from 65.5 MFLOP/s at 32 to 1.05 GFLOP/s at 128" in alt


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="no record"):
        rates.ladder_figure([])
    with pytest.raises(ValueError, match="no record"):
        rates.rates_by_size([], "Nothing")


def test_rates_by_size_refuse_what_would_be_two_points_in_one_place():
    with pytest.raises(ValueError, match="twice at 64x64x64"):
        rates.rates_by_size([record(), record(time_ms=9.0)], "Twice")
    oblong = replace(record(), m=32, tflops=record().tflops / 2)
    with pytest.raises(ValueError, match="square problems, got 32x64x64"):
        rates.rates_by_size([oblong], "Not square")


def test_the_picture_of_one_element_refuses_an_element_that_c_does_not_have():
    with pytest.raises(ValueError, match=r"4×6 and has no element \[4, 0\]"):
        loops.row_times_column(4, 6, 5, 4, 0)
    assert "B is 5 elements that lie 6 apart" in loops.row_times_column(4, 6, 5, 1, 3).alt


def test_work_and_data_tell_the_problems_own_numbers():
    alt = loops.work_and_data([Problem.square(n) for n in (12, 120, 1200)]).alt
    assert "from 2 to 200" in alt


def test_rounding_errors_refuse_a_series_of_another_length():
    with pytest.raises(ValueError, match="'pairwise' has 1 values for 2 lengths"):
        loops.rounding_errors([4, 16], {"pairwise": [1.0]}, [4.0, 16.0])


def test_the_roofs_of_a_core_are_named_with_each_program():
    points = {"sum": (1 / 12, 2.5), "BLAS": (85.0, 100.0)}
    alt = loops.cpu_roofs(160, 30, 1.5, points, "BLAS is near the peak").alt
    assert alt.startswith("BLAS is near the peak.") and "sum: 2.5 GFLOP/s; BLAS: 100" in alt


def pairs(**shares):
    """Return records of rungs of 10 ms and of their twins, at these shares of the twin's speed."""
    library = replace(record("cublas", time_ms=1.0), baseline="cublas")
    rungs = [replace(record(rung), baseline="cublas") for rung in shares]
    twins = [
        replace(record(f"{rung} in CUDA C++", time_ms=10 * share), baseline="cublas")
        for rung, share in shares.items()
    ]
    return [library, *rungs, *twins]


def test_rungs_are_drawn_against_their_twins():
    records = pairs(cuda_naive=1.0, cuda_coalesced=0.8, cuda_best=1.05)
    figure = rates.against_twins([*records, replace(record("triton_best"), baseline="cublas")])
    assert figure.alt.startswith(
        "In Numba, kernels reach 80% to 105% of their speed in CUDA C++, half of them 100% or more."
    )
    assert "one thread per element, x is the column 80%; the best found 105%." in figure.alt
    bar = r'<path d="M (\S+) \S+ L (\S+) [^"]*"[^>]* style="fill: #\w+; opacity: 0.45'
    widths = [float(right) - float(left) for left, right in re.findall(bar, figure.svg)]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 0.8, 1.05], rel=1e-4)
    assert rates.against_twins(records, "Level").alt.startswith("Level. ")
    assert "share of the twin's speed, 64³, float32" in html.unescape(figure.svg)


def test_twins_are_compared_in_one_run_only():
    records = pairs(cuda_naive=1.0)
    for other in ({"date": "2026-01-01T00:00:00+00:00"}, {"dtype": "float64"}, {"gpu": "another"}):
        with pytest.raises(ValueError, match="in one run of one problem"):
            rates.against_twins([*records[:-1], replace(records[-1], **other)])
    with pytest.raises(ValueError, match="no rung is there with its twin"):
        rates.against_twins(records[:-1])
