"""models/waves.py: programs that share a multiprocessor."""

from tiled_matmul.models.waves import side_by_side


def test_programs_side_by_side():
    """Up to `resident` share a multiprocessor; a lap that is not full may take its latency."""
    one = {"resident": 3, "start": 2.0, "latency": 1.0, "share": 0.5}
    times = [side_by_side(programs, **one, steps=10) for programs in range(1, 8)]
    assert times == [12, 12, 17, 29, 29, 34, 46]
    assert side_by_side(1, **one, steps=0) == 2
