"""The rung for 8-bit floats: right for every pairing, scale, size and layout, in the interpreter.

Products are compared with those in float64 of what the 8-bit numbers and their scales mean.
"""

import math

import pytest
import torch

from tiled_matmul.kit.backend import select
from tiled_matmul.kit.float8 import KINDS, SHARED, dequantised, quantised
from tiled_matmul.ladder import rung

ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
SMALL = {} if ON_GPU else {"block": (32, 32, 64)}
matmul = rung("triton_fp8").matmul
PAIRS = [("tensor", "tensor"), ("row", "row"), ("1x128", "128x128"), ("1x128", "1x128")]
PAIRS += [("128x128", "1x128"), ("row", "tensor"), ("row", "128x128")]
every_pair = pytest.mark.parametrize("kinds", PAIRS, ids="·".join)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(PLACE)


def operands(m, n, k, kinds=("tensor", "tensor"), dtypes=(E4M3, E4M3), seed=0):
    """Return (a, b, {"scale_a": …, "scale_b": …}); b lies by columns."""
    a, scale_a = quantised(normal(m, k, seed=seed), kinds[0], dtypes[0])
    b, scale_b = quantised(normal(n, k, seed=seed + 1), kinds[1], dtypes[1])
    return a, b.T, {"scale_a": scale_a, "scale_b": scale_b.T}


def assert_right(c, a, b, scales):
    """Raise AssertionError unless c is the product, within the rounding of c and of its sums."""
    x, y = dequantised(a, scales["scale_a"]), dequantised(b, scales["scale_b"])
    wanted, sizes = x @ y, x.abs() @ y.abs()
    # A promoted sum of 128 products has lost less than 2⁻¹³ of its largest one for each of them;
    # in the interpreter nothing but float32's rounding.
    lost = 2.0**-13 if ON_GPU else (a.shape[1] + 4) * 2.0**-24
    unit = torch.finfo(c.dtype).eps / 2
    allowed = lost * sizes + unit * (wanted.abs() + lost * sizes)
    wrong = ~((c.double() - wanted).abs() <= allowed)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.numel()} are wrong, first at " + str(
        wrong.nonzero()[0].tolist()
    )


@every_pair
def test_scales_of_every_kind_at_ragged_sizes(kinds):
    for shape in ((37, 150, 300), (140, 33, 128), (1, 1, 1), (150, 1, 257)):
        a, b, scales = operands(*shape, kinds)
        assert_right(matmul(a, b, **scales, **SMALL), a, b, scales)
