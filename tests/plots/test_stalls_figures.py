"""The bars of what warps wait for."""

import pytest

from tiled_matmul.measure import counters
from tiled_matmul.plots import stalls


def test_the_bars_hold_every_reason_that_is_counted():
    counted = counters.reference()["cuda_shared_32"].values
    whole = sum(value for name, value in counted.items() if name.startswith("stall_"))
    assert sum(stalls.cycles(counted).values()) == pytest.approx(whole)


def test_a_bar_says_its_sum_and_what_it_consists_of():
    names = [name for names in stalls.REASONS.values() for name in names]
    counted = dict.fromkeys((f"stall_{name}" for name in names), 0.0)
    counted |= {"stall_selected": 1.0, "stall_short_scoreboard": 2.0, "stall_mio_throttle": 3.0}
    figure = stalls.stalls({"tiles": counted}, "They wait for the banks")
    assert figure.alt == (
        "They wait for the banks. Cycles by reason. "
        "tiles: issuing an instruction 1.0, shared memory 5.0."
    )
    assert "tiles: 6.0" in figure.svg
    with pytest.raises(ValueError, match="no launch"):
        stalls.stalls({}, "nothing")
