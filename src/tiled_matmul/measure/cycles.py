"""The GPU's own count of clock cycles, read by a kernel.

Each multiprocessor counts its cycles in the PTX register `%clock64`. One warp on each stores it
before and after the measured calls; the difference is the number of cycles that elapsed.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

PLACES = 1024  # a multiprocessor's number may exceed their count


@triton.jit
def cycles_kernel(out_ptr, PLACES: tl.constexpr):  # noqa: N803
    """Store this multiprocessor's counter in its own element of `out_ptr` (64-bit integers)."""
    sm = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    count = tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )
    tl.store(out_ptr + sm, count, mask=sm < PLACES)


def count_cycles() -> Any:
    """Enqueue a reading on torch's current GPU; return a tensor with 0 for missing readings."""
    import torch

    sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    counts = torch.zeros(PLACES, dtype=torch.int64, device="cuda")
    cycles_kernel[(sms,)](counts, PLACES=PLACES, num_warps=1)
    return counts


def cycles_between(before: Any, after: Any) -> float | None:
    """Return the median over the multiprocessors with both readings, or None without any."""
    both = (before > 0) & (after > before)
    return float((after - before)[both].double().median()) if both.any() else None
