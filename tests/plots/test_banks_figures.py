"""plots/banks.py: what is drawn is what was counted."""

from types import SimpleNamespace

import pytest
from traced_example import filled

from tiled_matmul.ladder import cuda_padded
from tiled_matmul.microscope.cuda import watch
from tiled_matmul.plots import banks, style
from tiled_matmul.problem import Problem

NAMES = ("nothing", "loading", "banks", "both")
GLOBAL = dict(zip(NAMES, (4, 0.5, 4, 0.5), strict=True))
SHARED = dict(zip(NAMES, (6, 5, 2, 2), strict=True))


def column(pad, dtype="float32", tile=32, array="a_tile"):
    with watch(blocks=[(0, 0)]) as traces:
        a, b = Problem(tile, tile, tile, dtype).inputs(kind="integers", device="cpu")
        cuda_padded.matmul(a, b, tile=tile, pad=pad)
    requests = traces[0].requests()
    return next(r for r in requests if r.array.name == array and r.site.op == "load")


@pytest.fixture(scope="module")
def columns():
    return [column(0), column(1)]


def test_a_column_in_one_bank_is_red_and_a_diagonal_is_not(columns):
    figure = banks.bank_maps(columns, ["bare", "padded"], 32)
    assert "bare: the 32 elements that the warp wants lie in 1 bank, 32 wavefronts" in figure.alt
    assert "padded: the 32 elements that the warp wants lie in 32 banks, 1 wavefront" in figure.alt
    assert "32 wavefronts or 1 wavefront" in figure.alt
    assert filled(figure, style.FAULT) == 32 and filled(figure, style.A) == 32
    assert filled(figure, style.MUTED) == 32  # one for each padded row


def test_wide_elements_fill_two_banks():
    figure = banks.bank_maps([column(1, "float64", 16)], ["doubles"], 16)
    assert "the 16 elements that the warp wants lie in 32 banks, 2 wavefronts" in figure.alt
    assert filled(figure, style.FAULT) == 0 and filled(figure, style.A) == 16
    assert filled(figure, style.MUTED) == 16


def test_what_is_no_shared_request_is_refused(columns):
    with pytest.raises(ValueError, match="2 requests and 1 names"):
        banks.bank_maps(columns, ["one"], 32)
    with pytest.raises(ValueError, match="0 requests"):
        banks.bank_maps([], [], 32)
    other = SimpleNamespace(array=SimpleNamespace(name="a", space="global"))
    with pytest.raises(ValueError, match="a lies in global memory"):
        banks.bank_maps([other], ["one"], 32)


def test_without_a_clock_the_predictions_stand_alone():
    figure = banks.pipe_bars(GLOBAL, SHARED, None)
    assert figure.alt.startswith("Two faults, one pipe.")
    assert "nothing: global 4 ms, shared 6 ms;" in figure.alt and "measured" not in figure.alt
    assert ">10</text>" in figure.svg


def test_the_title_says_how_much_of_the_time_the_pipe_explains():
    times = dict(zip(NAMES, (12.5, 6.5, 6.25, 3), strict=True))
    figure = banks.pipe_bars(GLOBAL, SHARED, times)
    assert figure.alt.startswith("The pipe is busy for 80% to 96% of the time.")
    assert "banks: global 4 ms, shared 2 ms, measured 6.25 ms;" in figure.alt
    assert ">6.25</text>" in figure.svg


def test_variants_that_differ_are_refused():
    with pytest.raises(ValueError, match="the variants differ: .*'nothing'.*'both'"):
        banks.pipe_bars(GLOBAL, SHARED, {"both": 1.0})
