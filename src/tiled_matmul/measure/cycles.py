"""A GPU's own count of its clock cycles, read by a kernel between two others.

Each multiprocessor counts its cycles, and PTX names the counter `%clock64`. One warp on each writes
it down before and after a load; what lies between are the cycles that really went by.
"""

from __future__ import annotations

from typing import Any

from tiled_matmul.kit.backend import select

select()  # Triton reads its interpreter's switch when it is imported

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

PLACES = 1024  # a multiprocessor's number may be above their count


@triton.jit
def cycles_kernel(out_ptr, PLACES: tl.constexpr):  # noqa: N803
    """Write this multiprocessor's counter to its own place in `out_ptr`, of 64-bit integers."""
    sm = tl.inline_asm_elementwise(
        "mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
    count = tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )
    tl.store(out_ptr + sm, count, mask=sm < PLACES)


def count_cycles() -> Any:
    """Enqueue a reading on torch's current GPU; return a tensor, 0 where none was taken."""
    import torch

    sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    counts = torch.zeros(PLACES, dtype=torch.int64, device="cuda")
    cycles_kernel[(sms,)](counts, PLACES=PLACES, num_warps=1)
    return counts


def cycles_between(before: Any, after: Any) -> float | None:
    """Return the median over multiprocessors that have both readings, or None if there is none."""
    both = (before > 0) & (after > before)
    return float((after - before)[both].double().median()) if both.any() else None
