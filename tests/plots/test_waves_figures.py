"""The figures of waves and of the whole way show the numbers that they were given."""

from dataclasses import replace

import pytest

from tiled_matmul.measure import results
from tiled_matmul.plots import waves


@pytest.mark.parametrize(
    ("tiles", "count", "last", "fill"),
    [(72, 1, 72, 72 / 132), (132, 1, 132, 1), (133, 2, 1, 133 / 264), (512, 4, 116, 512 / 528)],
)
def test_waves_are_counted(tiles, count, last, fill):
    found = waves.Waves(tiles, 132)
    assert (found.count, found.last, found.fill) == (count, last, pytest.approx(fill))


@pytest.mark.parametrize(
    ("given", "error"),
    [((0, 132), ValueError), ((5, 0), ValueError), ((5, -1), ValueError), ((1.5, 132), TypeError)],
)
def test_waves_of_nothing_are_refused(given, error):
    with pytest.raises(error, match="must be"):
        waves.Waves(*given)


@pytest.mark.parametrize(
    ("draw", "missing"),
    [
        (lambda: waves.tails({}, "So"), "no launch"),
        (lambda: waves.from_loops([], "So"), "no record"),
        (lambda: waves.account({}, "So"), "no product"),
        (lambda: waves.groups({}, 128, "So"), "no moment"),
    ],
)
def test_nothing_to_draw_is_refused(draw, missing):
    with pytest.raises(ValueError, match=missing):
        draw()


def test_idle_multiprocessors_are_told():
    alt = waves.tails({"wide": waves.Waves(72, 132), "even": waves.Waves(264, 132)}, "So").alt
    assert "wide: 72 tiles on 132 multiprocessors, 1 wave, 60 idle in the last one, 55%" in alt
    assert "even: 264 tiles on 132 multiprocessors, 2 waves, 0 idle in the last one, 100%" in alt


def test_only_what_is_idle_is_hatched():
    full = waves.tails({"even": waves.Waves(264, 132)}, "So").svg
    ragged = waves.tails({"ragged": waves.Waves(265, 132)}, "So").svg
    assert "<pattern" not in full
    assert "<pattern" in ragged


def test_the_way_names_each_rung_with_size_and_dtype():
    stored = results.reference()
    slow = results.find(stored, "loops_python", 128, 128, 128)
    fast = next(r for r in stored if r.rung == "triton_best" and r.dtype == "float16")
    sizes = {"m": 8192, "n": 8192, "k": 8192}
    fast = replace(fast, **sizes, tflops=700.0, time_ms=2 * 8192**3 / 700e9)
    figure = waves.from_loops([slow, fast], "So")
    assert figure.alt.startswith("So. Sizes and element types differ. 1. Loops 1 in Python: ")
    assert "14. the rung that fits the shape: 700 TFLOP/s in float16 at 8192³." in figure.alt
    assert "in float32 at 128³" in figure.alt
    assert "float16" in figure.svg and "float32" in figure.svg


def records(*entries):
    """Return records of (rung, edge, TFLOP/s, dtype)."""
    one, found = results.reference()[0], []
    for rung, edge, tflops, dtype in entries:
        library = "numpy" if rung == "numpy" or not rung.startswith(("cu", "tri")) else "cublas"
        known = {"rung": rung, "dtype": dtype, "baseline": library, "gpu": library, "ratio": 1.0}
        sizes = dict.fromkeys("mnk", edge) | {"time_ms": 2 * edge**3 / tflops / 1e9}
        found.append(replace(one, **known, **sizes, tflops=tflops))
    return found


def test_the_way_up_leaves_out_what_was_not_faster():
    single, half = "float32", "float16"
    given = records(
        ("njit_jik", 512, 0.001, single),
        ("njit_ijk", 512, 0.002, single),
        ("njit_ikj", 512, 0.03, single),
        ("njit_ikj", 2048, 0.02, single),
        ("numpy", 512, 1.0, single),
        ("numpy", 2048, 1.5, single),
        ("cuda_padded", 8192, 6.0, single),
        ("cuda_naive", 8192, 1.0, single),
        ("cuda_shared_16", 8192, 7.0, single),
        ("cuda_shared_16", 16384, 6.5, single),
        ("cublas", 8192, 50.0, single),
        ("triton_persistent", 8192, 780.0, half),
        ("triton_swizzled", 8192, 770.0, half),
        ("cublas", 8192, 777.0, half),
        ("cublas", 4096, 785.0, half),
    )
    way = [(r.rung, r.n, r.dtype) for r in waves.ascent(given)]
    assert way == [
        ("njit_ijk", 512, single),
        ("njit_ikj", 2048, single),
        ("numpy", 2048, single),
        ("cuda_naive", 8192, single),
        ("cuda_shared_16", 8192, single),
        ("cublas", 8192, single),
        ("triton_swizzled", 8192, half),
        ("triton_persistent", 8192, half),
        ("cublas", 8192, half),
    ]
    assert waves.climb_title(waves.ascent(given)).endswith(": 390,000 times the rate")
    assert waves.ascent([]) == []


def test_the_way_of_the_book_goes_from_python_to_tensor_cores():
    way = waves.ascent(results.reference())
    assert way[0].rung == "loops_python" and way[-1].rung == "cublas"
    assert [r.dtype for r in way if r.rung == "cublas"] == ["float32", "float16"]
    assert any(r.rung.startswith("cuda_") for r in way)
    assert sum(r.rung.startswith("triton_") for r in way) >= 3


SHARES = {"arithmetic": 0.6, "lower clock": 0.1, "edges": 0.0, "idle": 0.05, "the rest": 0.25}


def test_an_account_tells_each_part():
    figure = waves.account({"512³": SHARES}, "So")
    assert "512³: arithmetic 60%, lower clock 10%, edges 0%, idle 5%, the rest 25%" in figure.alt
    assert "<pattern" in figure.svg  # the rest is hatched


def test_a_model_that_takes_longer_than_the_clock_is_marked():
    over = SHARES | {"arithmetic": 1.0, "the rest": -0.15}
    assert "the rest -15%" in waves.account({"512³": over}, "So").alt


def test_other_parts_are_no_account():
    with pytest.raises(ValueError, match="must have the parts arithmetic, lower clock"):
        waves.account({"512³": {"arithmetic": 1.0}}, "So")


def test_registers_that_change_hands_are_told():
    start = {"copy tiles": 168, "multiply rows 0–63": 168, "multiply rows 64–127": 168}
    then = start | {"copy tiles": 40, "multiply rows 0–63": 232, "multiply rows 64–127": 232}
    figure = waves.groups({"at the start": start, "then": then}, 128, "So")
    assert figure.alt.startswith("So. at the start: copy tiles 168, multiply rows 0–63 168, ")
    assert "then: copy tiles 40, multiply rows 0–63 232, " in figure.alt
    assert "multiply rows 64–127 232, 64,512 in all" in figure.alt
    assert "65,536" in figure.svg and figure.svg.count(">232<") == 2


def test_groups_that_come_or_go_are_refused():
    with pytest.raises(ValueError, match=r"same groups, got \[\['copy'\], \['multiply'\]\]"):
        waves.groups({"first": {"copy": 1}, "then": {"multiply": 1}}, 128, "So")
    for registers in ({}, {"copy": -168}, {"copy": 400, "multiply": 400}):
        with pytest.raises(ValueError, match="now: 128 threads each cannot hold {"):
            waves.groups({"now": registers}, 128, "So")


def test_cuts_name_the_tiles_that_fill_a_wave():
    tiles = {"128 × 128": (128, 128), "256 × 128": (256, 128)}
    figure = waves.cuts(512, 256, tiles, programs=6)
    assert figure.alt.startswith("256 × 128 make 4 tiles")
    assert "128 × 128: 8 tiles, 6 of 6 busy, 2 too many; 256 × 128: 4 tiles, 4 of 6" in figure.alt
    assert waves.cuts(512, 256, {"64": (64, 64)}, 6).alt.startswith("No tiles fit into one wave")
