"""plots/fragments.py: figures say what they show, and refuse what cannot be drawn."""

import pytest

from tiled_matmul.models import fragments
from tiled_matmul.plots import fragments as figures


def test_owners_shows_one_product_one_thread_one_program():
    shown = figures.owners()
    for words in ("one product", "one thread", "one program", "Loops 4", "CUDA", "Triton"):
        assert words in shown.svg
    assert "a single product" in shown.alt


def test_a_fragment_names_the_elements_of_its_lane():
    shown = figures.fragment_product(lane=9)
    for operand in fragments.SHAPES:
        first = fragments.held(operand, 9)[0]
        assert f"{operand} at {first}" in shown.alt
    assert figures.fragment_product(lane=10).svg != shown.svg
    with pytest.raises(ValueError, match="lane"):
        figures.fragment_product(lane=32)


def test_errors_are_drawn_with_what_is_allowed():
    bound = {64: 5e-4, 1024: 6e-4}
    errors = {"float16 sums": {64: 4e-4, 1024: 2e-3}}
    shown = figures.errors_by_k(bound, errors, "They leave it")
    assert "float16 sums: 0.0004 at 64, 0.002 at 1024" in shown.alt
    assert "allowed: 0.0005 at 64" in shown.alt
    for wrong in ({}, {"float16 sums": {64: 0.0}}, {"float16 sums": {64: float("nan")}}):
        with pytest.raises(ValueError, match="have to be positive"):
            figures.errors_by_k(bound, wrong, "No")


def test_blocks_show_shares_where_there_is_a_clock():
    shown = figures.blocks([("64³", 0.4, "72 registers"), ("32³", None, "42 registers")], "Larger")
    assert "64³: 72 registers, 0.40 of cuBLAS; 32³: 42 registers." in shown.alt
    assert "0.40" in shown.svg
    with pytest.raises(ValueError, match="no block size"):
        figures.blocks([], "Nothing")
