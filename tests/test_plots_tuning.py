"""plots/tuning.py: budgets and clocks are drawn and said in words."""

import pytest

from tiled_matmul.plots import tuning as figures


def test_a_budget_names_settings_and_limits_and_marks_what_fits_nowhere():
    shown = figures.budget({"small": 48, "large": 288}, {"H200": 227, "L4": 99}, "One is too large")
    assert "small: 48 KiB; large: 288 KiB. H200 has 227, L4 has 99." in shown.alt
    fits = figures.budget({"small": 48, "large": 48}, {"H200": 227, "L4": 99}, "Both fit")
    assert figures.style.FAULT.lower() in shown.svg.lower()
    assert figures.style.FAULT.lower() not in fits.svg.lower()
    with pytest.raises(ValueError, match="no settings, or no limits"):
        figures.budget({}, {"H200": 227}, "Nothing")
    with pytest.raises(ValueError, match="no settings, or no limits"):
        figures.budget({"small": 48}, {}, "Nothing")


def test_clocks_are_a_ratio():
    shown = figures.clocks({"wide": (1024, 1024), "tall": (256, 512)}, "Tall tiles wait")
    assert "wide: 1.00; tall: 2.00." in shown.alt and "2.00" in shown.svg
    with pytest.raises(ValueError, match="no tile"):
        figures.clocks({}, "Nothing")
