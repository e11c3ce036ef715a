"""The figures of chapter 15 show the bytes, tiles and errors that they were given."""

import pytest

from tiled_matmul.models.epilogue import Layer
from tiled_matmul.plots import layer


def test_bars_are_the_bytes_of_the_model():
    one = Layer(1000, 1000, 1000, activation=True, residual=True)
    assert layer.moved(one, "So").alt == (
        "So. one per step: 6 MB for the product and 10 MB for later steps; two kernels: 6 MB for "
        "the product and 6 MB for later steps; one kernel: 6 MB for the product and 2 MB for later "
        "steps."
    )


def test_each_group_is_covered_by_tiles_of_its_own():
    figure = layer.groups([3, 20, 20, 37], 16, "So")
    assert "group 1 has rows 3 to 19" in figure.alt
    assert "group 2 has no rows" in figure.alt
    assert "5 tiles of 16 rows" in figure.alt  # 1, 2, 0 and 2


def test_errors_of_sums_are_spoken():
    figure = layer.missing({"long": {1024: (0.01, 0.02), 4096: (0.07, 0.08)}}, "So")
    assert figure.alt == "So. Measured: long: 0.01 at 1024, 0.07 at 4096."


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: layer.groups([3, 2], 16, "So"), r"must not fall, got \[3, 2\] with tiles of 16"),
        (lambda: layer.groups([3, 4], 0, "So"), "tiles of 0"),
        (lambda: layer.missing({}, "So"), "no line"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
