"""The rule of `triton_fused`: the tiling that does what `triton_best` would choose."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from tiled_matmul.dispatch import rule
from tiled_matmul.dispatch.candidates import candidates
from tiled_matmul.dispatch.choice import Choice
from tiled_matmul.dispatch.costs import Product, clocks
from tiled_matmul.kit.fused import Tiling
from tiled_matmul.kit.layouts import GRAIN

GROUP_M = 16
SHORT = Tiling((64, 256, 64), 4, 2, GROUP_M, resident=2, flatten=True, pieces=2, described=True)
ELSEWHERE = ("triton_two_widths",)  # rungs whose tiles are cut otherwise


def tiling_for(a: Any, b: Any, out: Any, residual: Any = None) -> Tiling:
    """Return the Tiling for these operands, which were checked."""
    product, capability, bytes_each = rule.kind_of(a, b, out)
    product = replace(product, grains=(*product.grains[:2], GRAIN))  # C needs no descriptor
    beside = out.element_size() + (0 if residual is None else residual.element_size())
    return tiling(product, capability, bytes_each).fitting(a.element_size(), beside)


@cache
def tiling(product: Product, capability: tuple[int, int], bytes_each: int) -> Tiling:
    """Return the Tiling of what the rule takes without rings, or else of the best of this kernel.

    A large C with one block of K is bound by its stores: two small programs take turns at them.
    """
    m, n, k, many = product.m, product.n, product.k, product.multiprocessors
    choice = rule.plain(product, capability, bytes_each)
    if choice.module in ELSEWHERE:
        own = [each for each in candidates(m, n, k, many) if each.module not in ELSEWHERE]
        choice = min(own, key=lambda each: clocks(each, m, n, k, many))
    if choice.module == "triton_persistent":
        return SHORT if k <= SHORT.block[2] else replace(tiling_of(choice), group_m=GROUP_M)
    return tiling_of(choice)


def tiling_of(choice: Choice) -> Tiling:
    """Return how the fused kernel does what one of the other rungs does.

    Raises ValueError for a rung that cuts C otherwise.
    """
    given = {"turned": choice.turned} | choice.options
    if choice.module == "triton_persistent":
        return Tiling(**given, resident=1, flatten=True, pieces=2, described=True)
    if choice.module in ("triton_swizzled", "triton_uneven"):
        return Tiling(**given, pointers=True)
    if choice.module in ("triton_descriptors", "triton_split_k"):
        return Tiling(**given)
    raise ValueError(f"the fused kernel has no tiles like those of {choice}")
