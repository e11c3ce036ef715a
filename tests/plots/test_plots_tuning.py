"""plots/tuning.py: budgets, pipelines, models and loads are drawn and said in words."""

import pytest

from tiled_matmul.measure.under_load import Load, Sample
from tiled_matmul.plots import tuning as figures
from tiled_matmul.plots.tuning import Turn, pipeline


def test_a_budget_is_made_of_tiles_and_marks_what_does_not_fit():
    shown = figures.budget({"small": (16, 32, 3), "large": (32, 64, 3)}, 227, "One is too large")
    assert "small: 3 times 16 and 32 KiB, 144 in all; large: 3 times 32 and 64 KiB" in shown.alt
    assert "A block may have 227 KiB." in shown.alt
    fits = figures.budget({"small": (16, 32, 3)}, 227, "It fits")
    assert figures.style.FAULT.lower() in shown.svg.lower()
    assert figures.style.FAULT.lower() not in fits.svg.lower()
    with pytest.raises(ValueError, match="no settings"):
        figures.budget({}, 227, "Nothing")


def test_one_stage_copies_and_multiplies_in_turn():
    first, second = pipeline(1, 1.5, 2)
    assert first == Turn((0, 1.5), (1.5, 2.5)) and second == Turn((2.5, 4.0), (4.0, 5.0))


@pytest.mark.parametrize(
    ("copy", "steps"),
    [(1.5, {1: 2.5, 2: 1.5, 3: 1, 4: 1}), (0.5, {1: 1.5, 2: 1, 3: 1}), (2.5, {3: 1.25, 4: 1})],
)
def test_a_step_takes_its_product_or_a_copy_over_the_stages_but_one(copy, steps):
    for stages, expected in steps.items():
        turns, ahead = pipeline(stages, copy, 4 * stages + 1), max(1, stages - 1)
        whole = turns[-1].multiplied[1] - turns[-1 - ahead].multiplied[1]
        assert whole / ahead == pytest.approx(expected)


def test_a_buffer_is_filled_only_when_its_product_is_done():
    for stages in (2, 3, 4):
        turns = pipeline(stages, 2.5, 12)
        for k, turn in enumerate(turns):
            assert turn.multiplied[0] >= turn.copied[1]
            assert k < stages or turn.copied[0] >= turns[k - stages].multiplied[1]
            assert not k or turn.multiplied[0] >= turns[k - 1].multiplied[1]


@pytest.mark.parametrize("wrong", [(0, 1.0, 3), (1, 0, 3), (1, 1.0, 0)])
def test_pipelines_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="no pipeline of"):
        pipeline(*wrong)


def test_pipelines_say_what_a_step_takes():
    shown = figures.pipelines((1, 3), 1.5, 9, "Three stages hide it")
    assert "A copy takes 1.5 products. 1 stage: a step takes 2.5; 3 stages: a step takes 1." in (
        shown.alt
    )


def test_a_model_stands_against_the_clock_over_the_least_of_each():
    shapes = {"large": {"wide": (1024, 2.0), "tall": (2048, 5.0)}}
    shapes["small"] = {"wide": (300, 3.0), "tall": (100, 2.0)}
    shown = figures.against(shapes, "The model tells the order")
    assert "large: wide, model 1.00, clock 1.00; tall, model 2.00, clock 2.50. " in shown.alt
    assert "small: wide, model 3.00, clock 1.50; tall, model 1.00, clock 1.00." in shown.alt
    for wrong in ({}, {"large": {}}, {"large": shapes["large"], "small": {"wide": (1, 1)}}):
        with pytest.raises(ValueError, match="the same settings"):
            figures.against(wrong, "Nothing")


def test_loads_are_told_from_their_first_to_their_last_sample():
    def run(clocks, watts):
        told = zip(clocks, watts, strict=True)
        samples = [Sample(i / 2, 1.0, clock, w, 700) for i, (clock, w) in enumerate(told)]
        return Load(1.0, limit_watts=700, samples=tuple(samples))

    runs = {"zeros": run((1980, 1700), (300, 400)), "random": run((1980, 1410), (300, 690))}
    shown = figures.loads(runs, "Random numbers cost clocks")
    assert "zeros: from 1980 MHz and 300 W to 1700 MHz and 400 W; random: from" in shown.alt
    assert "Over 0.5 seconds." in shown.alt and "The limit is 700 W." in shown.alt
    with pytest.raises(ValueError, match="reported no clock"):
        figures.loads({"zeros": Load(1.0, samples=(Sample(0, 1.0),))}, "Nothing")
