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


def test_a_tile_of_pointers_shows_where_strays_lie():
    shown = figures.pointer_tile((5, 11), (0, 8), (4, 4))
    assert "accesses (1, 0), (2, 0), (3, 0), (4, 0) (row" in shown.alt
    assert ">44<" in shown.svg.replace(" ", "") or "44" in shown.svg
    assert "accesses nothing else" in figures.pointer_tile((4, 8), (0, 4), (4, 4)).alt


def test_a_warp_group_holds_its_sums_in_bands():
    shown = figures.warp_group_sums(thread=41)
    assert "thread 41 holds 32 of 4,096 sums" in shown.alt
    assert "rows 18 and 26, columns 2, 3, 10, 11" in shown.alt
    with pytest.raises(ValueError, match="0 to 127"):
        figures.warp_group_sums(thread=128)


def test_a_swizzle_spreads_a_column_over_the_banks():
    assert "four banks: 1 (row by row) and 8 (swizzled)" in figures.swizzle(chunk=2).alt
