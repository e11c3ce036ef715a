"""The rung that fits the shape: a written rule picks one of the kernels below, and its tiles.

`pick` looks at how many tiles a C has, for the multiprocessors that there are, and how long K is:
few and long is cut along K, few and short gets small tiles, in between gets tiles of two widths
where those fill the GPU once, and all else goes to persistent programs. A C of few columns is made
as its transpose, of few rows. The numbers are those of a search on one H200. On GPUs without
hardware that copies tiles, smaller tiles go by pointers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module

from tiled_matmul.backend import select
from tiled_matmul.ladder.arguments import tensor_operands
from tiled_matmul.ladder.launch import multiprocessors
from tiled_matmul.ladder.programs import SMALL

DTYPES = ("float16", "bfloat16", "float32")
LONG_K = 8192
SHORT = 32  # rows, or columns


@dataclass(frozen=True)
class Choice:
    """A rung's module in `ladder/`, and the options for its `matmul`.

    `turned`: it makes C's transpose, of B's and A's.
    """

    module: str
    options: dict = field(default_factory=dict)
    turned: bool = False

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.module}({told})" + " of the transposes" * self.turned


def pick(m: int, n: int, k: int, multiprocessors: int, capability=(9, 0), bytes_each=2) -> Choice:
    """Return the Choice for C (M, N) with K products each, on a GPU of that kind.

    `bytes_each` are those of an element of A and B.
    """

    def tiles(rows: int, columns: int) -> int:
        return -(-m // rows) * -(-n // columns)

    if n <= SHORT < m:
        return replace(pick(n, m, k, multiprocessors, capability, bytes_each), turned=True)
    if capability < (8, 0) or bytes_each == 4:  # threads multiply
        return Choice("triton_swizzled", _options(*SMALL, 3))
    if not (9, 0) <= capability < (12, 0):
        return Choice("triton_swizzled", _options((128, 128, 64), 8, 3))
    if m <= SHORT:
        splits = max(1, multiprocessors // tiles(16, 128))
        return _split_k((16, 128, 128), min(splits, 8))
    if tiles(64, 64) <= multiprocessors:
        if k >= LONG_K:
            splits = max(1, multiprocessors // tiles(64, 128))
            return _split_k((64, 128, 128), min(splits, 16))
        stages = 3 if k < 1024 else 6
        return Choice("triton_descriptors", _options((64, 64, 128), 4, stages))
    if tiles(64, 128) <= multiprocessors:
        return Choice("triton_descriptors", _options((64, 128, 128), 4, 4, 4))
    if tiles(128, 256) < 0.6 * multiprocessors:
        if tiles(288, 64) <= multiprocessors:
            options = _options((64, (256, 32), 64), 4, 4, 16)
            return Choice("triton_two_widths", options | {"down": True})
        if tiles(128, 160) <= multiprocessors:
            options = _options((128, (128, 32), 64), 4, 5)
            return Choice("triton_two_widths", options | {"down": False})
    stages, group_m = (4, 12) if tiles(128, 256) > 3 * multiprocessors else (3, 4)
    return Choice("triton_persistent", _options((128, 256, 64), 8, stages, group_m))


def _options(block: tuple, num_warps: int, num_stages: int, group_m: int = 8) -> dict:
    numbers = {"num_warps": num_warps, "num_stages": num_stages, "group_m": group_m}
    return {"block": block} | numbers


def _split_k(block: tuple, splits: int) -> Choice:
    return Choice("triton_split_k", _options(block, 4, 4, 4) | {"splits": splits})


def choice_for(a, b, out=None) -> Choice:
    """Return what `matmul` takes for these operands. Raises as `tensor_operands` does."""
    m, n, k, _ = tensor_operands(a, b, out, DTYPES, strided=True)
    gpu = select().gpu
    capability = (9, 0) if gpu is None else gpu.capability
    return pick(m, n, k, multiprocessors(), capability, a.element_size())


def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. Raises TypeError or ValueError as `tensor_operands` and the
    launcher that is picked do.
    """
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    choice = choice_for(a, b, out)
    launcher = import_module(f"{__package__}.{choice.module}").matmul
    c = out
    if choice.turned:
        a, b, c = b.T, a.T, out.T
    launcher(a, b, out=c, **choice.options)
    return out
