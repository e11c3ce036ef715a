"""Peak rates of the GPU in this machine: looked up, or measured if the GPU is not known."""

from __future__ import annotations

import functools
from typing import Any

from tiled_matmul.kit import backend
from tiled_matmul.machine.device import Peak, lookup
from tiled_matmul.measure.clock import time_interleaved


def measured() -> Peak:
    """Measure this GPU's rates: a copy within its memory, torch's float32 and float16 matmul.

    These are achieved rates, not hardware limits; `source` states this. Takes some seconds and at
    most an eighth of the free memory. Raises ValueError without a GPU.
    """
    import torch

    properties = properties_of_gpu()
    nbytes = min(2**30, torch.cuda.mem_get_info()[0] // 16) // 4096 * 4096
    source = torch.empty(nbytes, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    n = 4096
    single = torch.randn(n, n, device="cuda")
    half = single.half()
    timings = time_interleaved(
        {
            "copy": lambda: target.copy_(source),
            "fp32": lambda: single @ single,
            "fp16": lambda: half @ half,
        },
        device="gpu",
    )
    gflop = 2 * n**3 / 1e9
    return Peak(
        name=properties.name,
        fp32_tflops=gflop / timings["fp32"].median_ms,
        fp16_tensor_tflops=gflop / timings["fp16"].median_ms,
        bandwidth_gbps=2 * nbytes / 1e6 / timings["copy"].median_ms,
        l2_mb=properties.L2_cache_size / 2**20,
        sms=properties.multi_processor_count,
        source=f"measured on this machine: a copy of {nbytes / 1e6:.0f} MB, torch.matmul at {n}³",
    )


@functools.cache
def current() -> Peak:
    """Return the peak rates of this machine's GPU: from the table, or measured if unknown.

    Raises ValueError if the course runs in the simulators.
    """
    return lookup(properties_of_gpu().name) or measured()


def properties_of_gpu() -> Any:
    """Return torch's properties of the current GPU. Raises ValueError in the simulators."""
    if not backend.select().on_gpu:
        raise ValueError(f"there is no GPU to ask for its rates: {backend.select().reason}")
    import torch

    return torch.cuda.get_device_properties(torch.cuda.current_device())
