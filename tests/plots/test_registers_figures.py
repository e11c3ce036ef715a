"""Tiles in registers: what their figures conclude by themselves."""

from tiled_matmul.plots import registers


def test_outer_products_names_the_best_ratio():
    alt = registers.outer_products(((8, 8), (8, 1), (16, 1))).alt
    assert alt.startswith("16 loads feed 64 multiplications in a tile of 8×8")
    assert "16 by 1: 17 loads, 16 products" in alt


def test_quads_counts_what_a_thread_owns():
    assert "Thread 35 owns 4 quads of 4×4, and loads 8 + 8" in registers.quads().alt
