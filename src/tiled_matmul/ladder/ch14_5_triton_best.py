"""The rung that fits the shape: a model picks one of the kernels below, and its tiles.

`pick` asks chapter 12's model of a step, and how many waves a C makes of each candidate's tiles,
for the clocks of the busiest multiprocessor, and takes the candidate with the fewest. So a C of few
tiles with a long K is cut along K, one that just misses a wave gets tiles of two widths, and all
large ones go to persistent programs. What a model cannot know, stages and groups, was found by a
search on one H200. A C of few columns is made as its transpose, of few rows. Then `chosen` looks
whether a small tile is faster, or one whose rows are read by pointers where no descriptor fits
them: their costs were measured. Inside `tuning`, a clock decides between the best of them. On GPUs
without hardware that copies tiles, smaller tiles go by pointers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from triton import cdiv

from tiled_matmul.kit import tuned
from tiled_matmul.kit.arguments import tensor_operands
from tiled_matmul.kit.candidates import Choice, candidates, options, split_k
from tiled_matmul.kit.measured import SHORT, THIN, Product, faster, kind_of, modelled, promising
from tiled_matmul.kit.plans import remembered
from tiled_matmul.kit.programs import SMALL
from tiled_matmul.models.roofline import step_clocks

DTYPES = ("float16", "bfloat16", "float32")
STAY = ("triton_persistent", "triton_gluon")  # rungs whose programs take tile after tile
# Clocks of an H200: of a program's start and end, of the seam between two tiles of one that stays,
# of a second kernel; and bytes of split-K's parts that the L2 takes or gives in a clock.
START, SEAM, SECOND, PARTS_A_CLOCK = 3500, 500, 3500, 1700


@cache
def pick(m: int, n: int, k: int, multiprocessors: int, capability=(9, 0), bytes_each=2) -> Choice:
    """Return the Choice for C (M, N) with K products each, on a GPU of that kind.

    `bytes_each` are those of an element of A and B.
    """
    if n <= SHORT < m:
        return replace(pick(n, m, k, multiprocessors, capability, bytes_each), turned=True)
    if capability < (8, 0) or bytes_each == 4:  # threads multiply
        return Choice("triton_swizzled", options(*SMALL, 3))
    if not (9, 0) <= capability < (12, 0):
        return Choice("triton_swizzled", options((128, 128, 64), 8, 3))
    if m <= SHORT:
        splits = max(1, multiprocessors // cdiv(n, 128))
        return split_k((16, 128, 128), min(splits, 8, cdiv(k, 128)))
    choices = candidates(m, n, k, multiprocessors)
    return min(choices, key=lambda choice: clocks(choice, m, n, k, multiprocessors))


def clocks(choice: Choice, m: int, n: int, k: int, multiprocessors: int) -> float:
    """Return about how many clocks the busiest multiprocessor takes for C (M, N)."""
    rows, columns, depth = choice.options["block"]
    widths = columns if isinstance(columns, tuple) else (columns,)
    if choice.options.get("down"):
        m, n = n, m
    splits = choice.options.get("splits", 1)
    waves = cdiv(cdiv(m, rows) * cdiv(n, sum(widths)) * splits, multiprocessors)
    loop = cdiv(cdiv(k, depth), splits) * step_clocks(rows, widths, depth).longer
    if choice.module in STAY:
        return START + waves * (loop + SEAM)
    parts = 2 * 4 * splits * m * n / PARTS_A_CLOCK + SECOND if splits > 1 else 0
    return waves * (START + loop) + parts


@cache
def chosen(product: Product, capability=(9, 0), bytes_each=2) -> Choice:
    """Return what `pick` says, or a tile of `kit.measured` where that takes less time."""
    m, n, k = product.m, product.n, product.k
    choice = pick(m, n, k, product.multiprocessors, capability, bytes_each)
    if bytes_each == 4 or not (9, 0) <= capability < (12, 0):
        return choice
    if min(m, n) <= SHORT:
        made = product.turned() if choice.turned else product
        return faster(choice, THIN.microseconds(made, choice.options["splits"]), product)
    took = clocks(choice, m, n, k, product.multiprocessors)
    return faster(choice, modelled(choice, took, product), product)


def contenders(product: Product, capability=(9, 0), bytes_each=2) -> list[Choice]:
    """Return what could be the fastest: what is `chosen`, then what else promises most."""
    first = chosen(product, capability, bytes_each)
    if bytes_each == 4 or not (9, 0) <= capability < (12, 0):
        return [first]
    return promising(product, first, clocks)


def choice_for(a, b, out=None) -> Choice:
    """Return what was timed for these operands, or else what is `chosen`.

    Raises as `tensor_operands` and `tuned.choice` do.
    """
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    kind = kind_of(a, b, out)
    return tuned.choice(a, b, out, lambda: contenders(*kind)) or chosen(*kind)


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. Raises TypeError or ValueError as `tensor_operands` and the
    launcher that is picked do.
    """
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    choice_for(a, b, out).run(a, b, out)
    return out
