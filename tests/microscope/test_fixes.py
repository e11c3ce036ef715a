"""fixes.py: bfloat16 in Triton's interpreter is what it is on a GPU."""

import numpy as np
import pytest
import torch

from tiled_matmul.kit.backend import select
from tiled_matmul.microscope.triton import fixes

pytestmark = pytest.mark.skipif(select().on_gpu, reason="the interpreter is switched off")


def test_every_bfloat16_is_widened_as_torch_does_it():
    bits = np.arange(2**16, dtype=np.uint16)
    theirs = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(fixes.widened(bits), theirs)


def test_every_float32_is_rounded_as_torch_does_it():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    between = np.arange(2**16, dtype=np.uint32) << 16 | 0x8000  # ties, each of them
    bits = np.concatenate([bits, between, between + 1, between - 1])
    values = bits.view(np.float32)
    theirs = torch.from_numpy(values.copy()).bfloat16().float().numpy()
    np.testing.assert_array_equal(fixes.widened(fixes.narrowed(values)), theirs)


def test_kernels_multiply_and_round_bfloat16():
    import triton
    import triton.language as tl

    fixes.apply_fixes()
    fixes.apply_fixes()  # once more changes nothing

    @triton.jit
    def kernel(a, b, c, d):
        i = tl.arange(0, 16)
        at = i[:, None] * 16 + i[None, :]
        product = tl.dot(tl.load(a + at), tl.load(b + at))
        tl.store(c + at, product.to(tl.bfloat16))
        tl.store(d + at, tl.load(a + at).to(tl.float16))

    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(16, 16, generator=generator).bfloat16() for _ in range(2))
    c, d = torch.empty_like(a), torch.empty(16, 16, dtype=torch.float16)
    kernel[(1,)](a, b, c, d)
    exact = a.double() @ b.double()
    assert torch.equal(c, exact.bfloat16())
    assert torch.equal(d, a.half())
