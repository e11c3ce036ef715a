"""dispatch/splits.py: the costs that its rule decides by are those that the survey's times give."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from tiled_matmul import ROOT  # noqa: E402
from tiled_matmul.dispatch import splits  # noqa: E402

SURVEY = ROOT / "results" / "survey" / "h200-float32.json"


def test_the_survey_gives_the_paces_that_are_kept(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import survey_float32

    monkeypatch.setattr(splits, "COSTS", splits.COSTS[-1:])
    survey_float32.fit(SURVEY)
    found = [
        tuple(map(float, numbers.split(",")))
        for numbers in re.findall(r"Pace\((.*?)\)", capsys.readouterr().out)
    ]
    [costs] = splits.COSTS
    for pace, wanted in zip(found, (costs.fours, costs.singles), strict=True):
        assert pace == pytest.approx(tuple(vars(wanted).values()), rel=0.01)
