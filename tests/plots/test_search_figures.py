"""The figure of a search: every setting is in it, also the one that failed."""

import pytest
from search_example import file, trial

from tiled_matmul.measure import search
from tiled_matmul.plots import search as plots


def test_each_setting_is_drawn():
    large, small = search.SETTINGS[0], search.SETTINGS[9]
    found = search.parse(
        file(trial(large, 1.01, 0.3), trial(small), trial(small, 0.9, 1, registers=168))
    )
    alt = plots.trials(found, search.EDGES, "So").alt
    assert alt.startswith("So. 128×256×8, 32×128, 8×16: 248 registers, 1 block: 1.01 at 4096, 0.30")
    assert "8×8: too many threads;" in alt
    assert "168 registers, 3 blocks: 0.90 at 4096, 1.00 at 1024" in alt


def test_spills_are_told():
    found = search.parse(file(trial(search.SETTINGS[0], 1, 1, spilled_bytes=40)))
    assert "1 block, 40 bytes of local memory" in plots.trials(found, search.EDGES, "So").alt


def test_nothing_measured_is_nothing_to_draw():
    with pytest.raises(ValueError, match="no setting was measured"):
        plots.trials([], search.EDGES, "So")
