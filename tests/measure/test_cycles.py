"""cycles.py: a multiprocessor's own counter, before and after."""

import pytest
import torch

from tiled_matmul.kit import backend
from tiled_matmul.measure.cycles import PLACES, count_cycles, cycles_between, cycles_kernel
from tiled_matmul.microscope.compiled.triton import tile_code


def test_cycles_are_the_median_of_multiprocessors_that_were_read_twice():
    before = torch.tensor([100, 0, 300, 400, 900])
    after = torch.tensor([150, 70, 370, 490, 0])  # the second and the last were read once
    assert cycles_between(before, after) == 70
    assert cycles_between(before[1:2], after[1:2]) is None
    assert cycles_between(after, after) is None


@pytest.mark.long
def test_the_kernel_reads_the_counter_of_its_own_multiprocessor():
    counts = torch.zeros(PLACES, dtype=torch.int64)
    ptx = tile_code(cycles_kernel, counts, PLACES, num_warps=1).ptx
    assert "%clock64;" in ptx and "%smid;" in ptx and "st.global.b64" in ptx


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.skipif(not backend.select().on_gpu, reason="there is no GPU")
def test_a_gpu_counts_on_between_two_kernels():
    count_cycles()
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before = count_cycles()
    begin.record()
    for _ in range(200):
        a @ a
    end.record()
    after = count_cycles()
    torch.cuda.synchronize()
    mhz = cycles_between(before, after) / begin.elapsed_time(end) / 1e3
    assert 300 < mhz < 4000
