"""Two floors under every matmul's time: its arithmetic, and the bytes that it moves.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from tiled_matmul.device import Peak
from tiled_matmul.problem import Problem


def peak_tflops(peak: Peak, dtype: str = "float32") -> float:
    """Return the arithmetic roof for `dtype`, in 10¹² FLOP/s.

    float32 runs on CUDA cores, float16 and bfloat16 on tensor cores with a float32 sum. Raises
    ValueError for a dtype whose rate `Peak` does not hold.
    """
    if dtype == "float32":
        return peak.fp32_tflops
    if dtype in ("float16", "bfloat16"):
        return peak.fp16_tensor_tflops
    raise ValueError(f"no peak rate is known for {dtype!r}; known: float32, float16, bfloat16")


def floors_ms(
    problem: Problem, peak: Peak, bytes_moved: float | None = None
) -> tuple[float, float]:
    """Return (compute_ms, memory_ms): the least time for the FLOPs, and for the bytes.

    `bytes_moved` is what goes between the GPU and its memory; None takes the compulsory bytes (A
    and B read once, C written once). Raises ValueError for fewer bytes than those, or for a dtype
    without a peak rate.
    """
    least = problem.compulsory_bytes
    moved = least if bytes_moved is None else bytes_moved
    if not moved >= least:
        raise ValueError(f"{problem.shape_text} has to move {least} bytes at least, got {moved!r}")
    compute_ms = problem.flops / (peak_tflops(peak, problem.dtype) * 1e9)
    memory_ms = moved / (peak.bandwidth_gbps * 1e6)
    return compute_ms, memory_ms


def ridge(peak: Peak, dtype: str = "float32") -> float:
    """Return the intensity (FLOPs a byte) above which arithmetic is the tighter floor."""
    return peak_tflops(peak, dtype) * 1e3 / peak.bandwidth_gbps


def attainable_tflops(intensity: float, peak: Peak, dtype: str = "float32") -> float:
    """Return the roof over a kernel that does `intensity` FLOPs for each byte it moves.

    The smaller of the arithmetic peak and intensity × bandwidth, in 10¹² FLOP/s. Raises ValueError
    unless `intensity` is positive.
    """
    if not intensity > 0:
        raise ValueError(f"intensity is FLOPs a byte and must be positive, got {intensity!r}")
    return min(peak_tflops(peak, dtype), intensity * peak.bandwidth_gbps / 1e3)
