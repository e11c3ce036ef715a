"""Drawn shapes: the same for everyone, stored with their times, summarised."""

from dataclasses import replace

import pytest
from records_example import entry

from tiled_matmul.measure import drawn
from tiled_matmul.measure import records as store
from tiled_matmul.measure.drawn import BASELINE, Drawn, Taken


def taken(count=6, **changes):
    """Return the first products of seed 1, the rung `r` once to `count` times as slow as torch."""
    return [
        Taken(each, {BASELINE: 1.0, "r": 1.0 + each.index} | changes, {BASELINE: 0.01, "r": 0.02})
        for each in drawn.drawn(1, count)
    ]


def test_a_seed_draws_the_same_shapes_everywhere():
    assert drawn.drawn(1, 2) == [
        Drawn(0, 40, 5688, 3184, "bfloat16", "nn"),
        Drawn(1, 496, 361, 1464, "float16", "nn"),
    ]
    assert drawn.drawn(1, 50)[:20] == drawn.drawn(1, 20) != drawn.drawn(2, 20)
    assert str(drawn.drawn(1, 1)[0]) == "40×5688×3184 nn bfloat16"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shapes_are_within_their_bounds_and_of_all_kinds(seed):
    found = drawn.drawn(seed, 400)
    sizes = [size for each in found for size in (each.m, each.n, each.k)]
    assert drawn.SMALLEST <= min(sizes) < 20 and 12000 < max(sizes) <= drawn.LARGEST
    assert max(each.flops for each in found) <= drawn.MOST_FLOPS
    assert all(each.even for each in found[::2]) and sum(each.even for each in found) < 215
    assert {(each.dtype, each.layout) for each in found} == {
        (dtype, layout) for dtype in drawn.DTYPES for layout in ("nn", "tn", "nt", "tt")
    }
    below = sum(size < 512 for size in sizes) / len(sizes)  # half of the factors of two
    assert 0.45 < below < 0.58


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_products_of_float32_are_row_major_and_not_too_small(seed):
    found = drawn.drawn(seed, 200, float32=True)
    assert {(each.dtype, each.layout) for each in found} == {(drawn.FLOAT32, "nn")}
    assert drawn.LEAST_FLOPS <= min(each.flops for each in found) < 2 * drawn.LEAST_FLOPS
    assert max(each.flops for each in found) <= drawn.MOST_FLOPS
    assert all(each.even for each in found[::2]) and sum(each.even for each in found) < 115


def test_a_summary_has_the_mean_what_95_percent_reach_and_the_lowest():
    found = drawn.summary([0.5, 2.0])
    assert found == {"mean": pytest.approx(1.0), "p5": 0.5, "lowest": 0.5, "count": 2}
    hundred = drawn.summary(range(1, 101))
    assert (hundred["p5"], hundred["lowest"], hundred["count"]) == (6, 1, 100)
    with pytest.raises(ValueError, match="no ratio"):
        drawn.summary([])


def test_the_table_has_a_row_for_each_rung_and_kind_of_sizes():
    rows = drawn.table(taken())
    assert [(row["rung"], row["sizes"], row["count"]) for row in rows] == [
        ("r", "multiples of 8", 3),
        ("r", "any", 3),
    ]
    assert rows[0]["lowest"] == pytest.approx(1 / 5) and rows[1]["lowest"] == pytest.approx(1 / 6)


def test_a_ratio_after_another_kernel_is_of_those_times():
    each = replace(taken(1)[0], after_ms={BASELINE: 1.0, "r": 4.0})
    assert (each.ratio("r"), each.ratio("r", after=True)) == (1.0, 0.25)
    assert [row["mean"] for row in drawn.table([each], after=True)] == [0.25]
    with pytest.raises(ValueError, match="40×5688×3184 nn bfloat16 has no time of r in {}"):
        drawn.table(taken(1), after=True)
    (read,) = drawn.parse(entries(1, [each], after_ms=each.after_ms))[2]
    assert read == each


def test_the_books_products_were_timed_both_ways():
    _, _, found = drawn.load(drawn.SHAPES / "h200.json")
    assert all(set(each.after_ms) == set(each.ms) for each in found)
    # The library starts no kernel early, so another one before it changes little.
    changes = sorted(each.after_ms[BASELINE] / each.ms[BASELINE] for each in found)
    assert 0.97 < changes[len(changes) // 2] < 1.03


def entries(seed, found, after_ms=None, **run):
    """Return what is stored of products."""
    more = {"after_ms": after_ms} if after_ms else {}
    return [
        entry(drawn.case_of(seed, t.product), {"ms": t.ms, "spreads": t.spreads} | more, **run)
        for t in found
    ]


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "a.json"
    store.save(path, drawn.SUITE, entries(1, reversed(taken()), gpu="a GPU"))
    seed, provenance, found = drawn.load(path)
    assert (seed, provenance["gpu"], found) == (1, "a GPU", taken())
    both = {BASELINE: 1.0, "r": 2.0}
    float32 = [Taken(each, both, both) for each in drawn.drawn(4, 3, float32=True)]
    assert drawn.parse(entries(4, float32))[::2] == (4, float32)


def changed(number, case=(), ms=None):
    """Return the entries of six products, one of them changed."""
    stored = entries(1, taken())
    each = stored[number]
    values = each.values if ms is None else {"ms": ms, "spreads": {}}
    stored[number] = replace(each, case=each.case | dict(case), values=values)
    return stored


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (entries(2, taken()), "number 0 of seed 2 is "),
        (changed(3, {"m": 7}), "number 3 of seed 1 is "),
        (changed(3, {"seed": 2}), r"products of several seeds: \[1, 2\]"),
        (changed(3, ms={"r": 4.0}), "has no times: {'r': 4.0}"),
        (changed(3, ms={BASELINE: 1.0, "r": 0}), "has no times"),
        ([], "there is no product"),
        ([entry({}, {})], r"h200\.json is not a file of the suite 'drawn'"),
    ],
)
def test_another_file_is_refused(tmp_path, stored, message):
    path = tmp_path / "h200.json"
    store.save(path, drawn.SUITE, stored)
    with pytest.raises(ValueError, match=message):
        drawn.load(path)


def test_the_books_shapes_are_two_hundred_on_one_gpu():
    seed, provenance, found = drawn.load(drawn.SHAPES / "h200.json")
    assert (seed, len(found), provenance["gpu"]) == (drawn.SEED, 200, "NVIDIA H200")
    assert all("triton_best" in each.ms for each in found)
