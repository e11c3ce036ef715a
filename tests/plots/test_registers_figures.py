"""Tiles in registers: what their figures conclude by themselves."""

import pytest

from tiled_matmul.microscope.compiled.cuda import register_operands
from tiled_matmul.plots import registers


def test_outer_products_names_the_best_ratio():
    alt = registers.outer_products(((8, 8), (8, 1), (16, 1))).alt
    assert alt.startswith("16 loads feed 64 multiplications in a tile of 8×8")
    assert "16 by 1: 17 loads, 16 products" in alt


def test_quads_counts_what_a_thread_owns():
    assert "Thread 35 owns 4 quads of 4×4, and loads 8 + 8" in registers.quads().alt


def test_three_registers_of_one_bank_wait_unless_one_is_kept():
    loop = ["FFMA R1, R2.reuse, R4, R6", "LDS R9, [R8]", "FFMA R1, R2.reuse, R4, R6"]
    alt = registers.register_banks(register_operands([*loop, "FFMA R3, R2, R4, R6"])).alt
    assert alt.startswith("2 of 3 multiply-adds read three registers from one bank")
    assert alt.endswith("FFMA R3, R2, R4, R6: reads 2 even.")
    with pytest.raises(ValueError, match="no multiply-add"):
        registers.register_banks(register_operands(["LDS R9, [R8]"]))
