"""measure/many.py: the records of two and four GPUs, and the model that was fitted to two."""

from __future__ import annotations

import json

import pytest

from tiled_matmul.measure import many
from tiled_matmul.models.many import received

PAIR, FOUR = (many.MANY / f"h200-x{count}.json" for count in (2, 4))


@pytest.mark.parametrize("path", (PAIR, FOUR), ids=lambda path: path.stem)
def test_the_links_counted_what_the_formula_gives(path):
    taken = many.load(path)
    sizes = [taken.moved_at] * 3
    for name, counted in taken.moved.items():
        predicted = received(name, *sizes, taken.ranks)
        assert counted == pytest.approx(predicted, rel=0.02, abs=100), name


def test_what_two_predicted_was_measured_on_four():
    """From 8192 on, but for NCCL's rings; four GPUs are at least 3.4 times as fast as one."""
    model, four = many.load(PAIR).machine(), many.load(FOUR)
    assert four.ranks == 4
    for size in (8192, 16384):
        for dtype in ("float16", "bfloat16"):
            us = four.find(size, size, size, dtype).us
            for name in ("rows", "columns", "inner", "scattered", "gathered", "pulled", "summa"):
                assert model.us(name, size, size, size, 4) == pytest.approx(us[name], rel=0.13)
            assert us["one GPU"] > 3.4 * us["pulled, from shared"]


def test_the_model_is_within_a_fifth_of_every_cut_from_4096_on():
    pair = many.load(PAIR)
    model = pair.machine()
    for timed in pair.times:
        for name in pair.moved:
            if name in timed.us and timed.m >= 4096:
                guess = model.us(name, timed.m, timed.n, timed.k, pair.ranks)
                assert guess == pytest.approx(timed.us[name], rel=0.2), (timed, name)


def test_a_product_that_was_not_measured_and_a_wrong_file(tmp_path):
    pair = many.load(PAIR)
    assert pair.find(4096, 4096, 4096).dtype == "float16"
    with pytest.raises(ValueError, match="7×7×7 float16 was not measured"):
        pair.find(7, 7, 7)
    stored = json.loads(PAIR.read_text())
    stored["times"][0]["times"]["product"]["ms"] = 0
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match="wrong.json.*has a time that is none"):
        many.load(wrong)
    wrong.write_text("{}")
    with pytest.raises(ValueError, match="is not a file of products over several GPUs"):
        many.load(wrong)
