"""Drawn shapes: the same for everyone, stored with their times, summarised."""

import json

import pytest

from tiled_matmul.measure import drawn
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


def test_what_is_written_is_read_again():
    text = drawn.as_text(1, {"gpu": "a GPU"}, list(reversed(taken())))
    assert drawn.parse(json.loads(text)) == (1, {"gpu": "a GPU"}, taken())
    both = {BASELINE: 1.0, "r": 2.0}
    float32 = [Taken(each, both, both) for each in drawn.drawn(4, 3, float32=True)]
    assert drawn.parse(json.loads(drawn.as_text(4, {}, float32))) == (4, {}, float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda stored: stored.update(seed=2), "number 0 of seed 2 is "),
        (lambda stored: stored["products"][3].update(m=7), "number 3 of seed 1 is "),
        (lambda stored: stored["products"][3]["ms"].pop(BASELINE), "has no times: {'r': 4.0}"),
        (lambda stored: stored["products"][3]["ms"].update(r=0), "has no times"),
    ],
)
def test_another_file_is_refused(change, message):
    stored = json.loads(drawn.as_text(1, {}, taken()))
    change(stored)
    with pytest.raises(ValueError, match=message):
        drawn.parse(stored)


def test_a_file_that_is_none_is_named(tmp_path):
    path = tmp_path / "h200.json"
    path.write_text('{"products": [{}]}')
    with pytest.raises(ValueError, match=r"h200\.json is not a file of drawn shapes"):
        drawn.load(path)


def test_the_books_shapes_are_two_hundred_on_one_gpu():
    seed, provenance, found = drawn.load(drawn.SHAPES / "h200.json")
    assert (seed, len(found), provenance["gpu"]) == (1, 200, "NVIDIA H200")
    assert all({"triton_best", "triton_gluon"} <= set(each.ms) for each in found)
