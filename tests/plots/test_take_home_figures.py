"""The figures of chapter 16 show the sizes and shares that they were given."""

import pytest

from tiled_matmul.plots import take_home


def test_a_gradient_reaches_the_inputs_of_an_operator_only():
    figure = take_home.gradient_flow("So")
    assert figure.alt.startswith("So. Twice, x and w go into a product")
    assert figure.svg.count("✗") == 1


def test_the_three_products_have_the_sizes_of_their_factors():
    figure = take_home.three_products(4, 3, 5, "So")
    assert "c (4 × 3) is a (4 × 5) times b (5 × 3)" in figure.alt
    assert "b transposed (3 × 5)" in figure.alt and "transposed (5 × 4) times g" in figure.alt
    for size in ("4×5", "5×3", "3×5", "5×4"):
        assert size in figure.svg


def test_bars_of_work_add_up_to_all_of_it():
    figure = take_home.work({"up": (30.0, True), "attention": (10.0, False)}, "So")
    assert figure.alt == "So. up: 75%, by these kernels; attention: 25%, by torch."


@pytest.mark.parametrize(
    ("draw", "missing"),
    [
        (lambda: take_home.work({}, "So"), "no product"),
        (lambda: take_home.three_products(4, 0, 5, "So"), "must be positive, got 4, 0 and 5"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, missing):
    with pytest.raises(ValueError, match=missing):
        draw()
