"""The rule of `triton_best`: the candidate that promises to take the least time.

On a Hopper GPU `chosen` compares the rings of `gluon_shapes`, alone, in clusters, and with K in
parts, with small tiles, and with tiles for rows that no descriptor fits. Their costs were measured.
Elsewhere, and for layers, `plain` compares such tiles with what `pick` says. `pick` asks chapter
12's model of a step, and how many waves a C makes of each candidate's tiles, for the clocks of the
busiest multiprocessor, and takes the candidate with the fewest. So a C of few tiles with a long K
is cut along K, one that just misses a wave gets tiles of two widths, and all large ones go to
persistent programs. What a model cannot know, stages and groups, was found by a search on one H200.
A C of few columns is made as its transpose, of few rows. On GPUs without hardware that copies
tiles, smaller tiles go by pointers. What a clock found, `decide` prefers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from triton import cdiv

from tiled_matmul.dispatch import tuned
from tiled_matmul.dispatch.candidates import candidates, options, split_k
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.dispatch.costs import (
    THIN,
    TILES,
    Product,
    clocks,
    modelled,
)
from tiled_matmul.dispatch.rings import rings
from tiled_matmul.dispatch.small import small
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import multiprocessors
from tiled_matmul.kit.layouts import across, begins, grains
from tiled_matmul.kit.programs import SMALL

SHORT = 32  # rows, or columns, that no `wgmma` is needed for
RINGED = (9, 0)  # the compute capability that `gluon_shapes` is for
# Where rows are even a tile must promise so much of the model's time, as neither is exact.
SURE = 0.96
# How many of each kind are tried at a product by a clock: rings, small tiles, others.
RINGS_TRIED, SMALL_TRIED, MODELLED = 10, 8, 2


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


@cache
def chosen(product: Product, capability=(9, 0), bytes_each=2) -> Choice:
    """Return what promises to take the least time; on other GPUs, what is `plain`."""
    if capability != RINGED or bytes_each != 2:
        return plain(product, capability, bytes_each)
    best = rings(product)[0], small(product)[0]
    return min(best, key=lambda pair: pair[1])[0]


@cache
def plain(product: Product, capability=(9, 0), bytes_each=2) -> Choice:
    """Return what `pick` says, or one of `costs.TILES` where that takes less time, but no ring."""
    m, n, k = product.m, product.n, product.k
    choice = pick(m, n, k, product.multiprocessors, capability, bytes_each)
    if bytes_each == 4 or not (9, 0) <= capability < (12, 0):
        return choice
    if min(m, n) <= SHORT:
        made = product.turned() if choice.turned else product
        return faster(choice, THIN.microseconds(made, choice.options["splits"]), product)
    took = modelled(choice, clocks(choice, m, n, k, product.multiprocessors), product)
    return faster(choice, took, product)


def faster(choice: Choice, took: float, product: Product) -> Choice:
    """Return a choice that takes `took` microseconds, or one of TILES if that is surely faster."""
    least, best = took * (SURE if product.even else 1), choice
    for tile in TILES:
        for other, microseconds in tile.choices(product):
            if microseconds < least:
                least, best = microseconds, other
    return best


def contenders(product: Product, capability=(9, 0), bytes_each=2) -> list[Choice]:
    """Return what could be the fastest: what is `chosen`, then what else promises most."""
    first = chosen(product, capability, bytes_each)
    if bytes_each == 4 or not (9, 0) <= capability < (12, 0):
        return [first]
    tried = distinct(small(product))[:SMALL_TRIED]
    if capability == RINGED:
        tried += rings(product)[:RINGS_TRIED]
    choices = [first, *(choice for choice, _ in tried), *best_modelled(product)]
    return [each for i, each in enumerate(choices) if each not in choices[:i]]


def distinct(found: list[tuple[Choice, float]]) -> list[tuple[Choice, float]]:
    """Return of each tile, as it lies or turned, the best two numbers of parts."""
    kept, seen = [], []
    for choice, took in found:
        tile = choice.module, choice.options["block"], choice.turned
        if seen.count(tile) < 2:
            kept.append((choice, took))
        seen.append(tile)
    return kept


def best_modelled(product: Product) -> list[Choice]:
    """Return the candidates of which the model of clocks promises most."""
    sizes = product.m, product.n, product.k, product.multiprocessors
    if min(sizes[:2]) <= SHORT:
        return []
    return sorted(candidates(*sizes), key=lambda each: clocks(each, *sizes))[:MODELLED]


def kind_of(a: Any, b: Any, out: Any) -> tuple[Product, tuple[int, int], int]:
    """Return what the rule looks at: the product, the GPU's capability, an element's bytes."""
    gpu = select().gpu
    sizes = a.shape[0], b.shape[1], a.shape[1]
    lie = grains(a, b, out), across(a, b), (begins(a), begins(b))
    product = Product(*sizes, multiprocessors(), *lie)
    return product, (9, 0) if gpu is None else gpu.capability, a.element_size()


def decide(a: Any, b: Any, out: Any, run: Callable) -> Choice:
    """Return what was timed for these operands, which were checked, or else what is `chosen`.

    `run(choice, a, b, out)` multiplies; only the clock of `tuning` calls it. Raises as
    `tuned.choice` does.
    """
    kind = kind_of(a, b, out)
    return tuned.choice(a, b, out, lambda: contenders(*kind), run) or chosen(*kind)
