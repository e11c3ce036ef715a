"""The roofline: two lower bounds on a matmul's time, from its arithmetic and from its bytes.

The same model holds one level further in, for bytes that come from shared memory.

Source: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tiled_matmul.machine.device import Peak
from tiled_matmul.problem import Problem

SHARED_BYTES_A_CLOCK = 128  # 32 banks of 4 bytes, on each multiprocessor
# float32 lanes of a multiprocessor by compute capability: multiply-adds per clock.
LANES = {
    **dict.fromkeys(((7, 0), (7, 5), (8, 0)), 64),
    **dict.fromkeys(((8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)), 128),
}
WARP = 32  # lanes
ISSUED_A_CLOCK = 4 * 32  # thread instructions: four schedulers issue one warp instruction each
# FLOPs of a multiprocessor's tensor cores in a clock, dense, 16-bit floats, by compute capability:
# R. Crovella's account in "How to calculate the Tensor Core FP16 performance of H100?", NVIDIA
# Developer Forums, 2023.
TENSOR_FLOPS_A_CLOCK = {(8, 0): 2048, (9, 0): 4096}
WGMMA_ROWS = 64  # rows of A that one `wgmma` multiplies


def peak_tflops(peak: Peak, dtype: str = "float32") -> float:
    """Return the arithmetic roof for `dtype`, in 10¹² FLOP/s.

    float32 runs on CUDA cores, float16 and bfloat16 on tensor cores with a float32 accumulator.
    Raises ValueError for any other dtype.
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

    `bytes_moved` counts the bytes between the GPU and its memory; None stands for the compulsory
    bytes (A and B read once, C written once). Raises ValueError for fewer bytes than those, and for
    a dtype without a peak rate.
    """
    least = problem.compulsory_bytes
    moved = least if bytes_moved is None else bytes_moved
    if not moved >= least:
        raise ValueError(f"{problem.shape_text} has to move {least} bytes at least, got {moved!r}")
    compute_ms = problem.flops / (peak_tflops(peak, problem.dtype) * 1e9)
    memory_ms = moved / (peak.bandwidth_gbps * 1e6)
    return compute_ms, memory_ms


def ridge(peak: Peak, dtype: str = "float32") -> float:
    """Return the intensity (FLOPs per byte) above which arithmetic is the tighter bound."""
    return peak_tflops(peak, dtype) * 1e3 / peak.bandwidth_gbps


def attainable_tflops(intensity: float, peak: Peak, dtype: str = "float32") -> float:
    """Return the roof, in 10¹² FLOP/s, of a kernel with `intensity` FLOPs per byte moved.

    It is the smaller of the arithmetic peak and intensity × bandwidth. Raises ValueError unless
    `intensity` is positive.
    """
    if not intensity > 0:
        raise ValueError(f"intensity is FLOPs a byte and must be positive, got {intensity!r}")
    return min(peak_tflops(peak, dtype), intensity * peak.bandwidth_gbps / 1e3)


def shared_ridge(cc: tuple[int, int]) -> float:
    """Return the FLOPs per byte from shared memory above which arithmetic is the limit.

    `cc` is the compute capability; the clock cancels out. Raises ValueError if it is not in LANES.
    """
    if cc not in LANES:
        known = ", ".join(f"{major}.{minor}" for major, minor in LANES)
        raise ValueError(f"how many lanes {cc} has is not known; known: {known}")
    return 2 * LANES[cc] / SHARED_BYTES_A_CLOCK


def shared_bandwidth_gbps(peak: Peak, cc: tuple[int, int]) -> float:
    """Return the rate at which all multiprocessors can read shared memory, in 10⁹ bytes/s.

    The clock is the one at which `peak` reaches its float32 rate. Raises ValueError as
    `shared_ridge`.
    """
    return peak.fp32_tflops * 1e3 / shared_ridge(cc)


def shared_attainable_tflops(intensity: float, peak: Peak, cc: tuple[int, int]) -> float:
    """Return the roof, in 10¹² FLOP/s, of a float32 kernel, set by its loads from shared memory.

    `intensity` is FLOPs per byte that its threads load. Raises ValueError as `shared_ridge`, and
    unless `intensity` is positive.
    """
    if not intensity > 0:
        raise ValueError(f"intensity is FLOPs a byte and must be positive, got {intensity!r}")
    return min(peak.fp32_tflops, intensity * shared_bandwidth_gbps(peak, cc) / 1e3)


def issue_attainable_tflops(slots: float, peak: Peak, cc: tuple[int, int]) -> float:
    """Return the roof, in 10¹² FLOP/s, of a float32 kernel, set by the instructions that it issues.

    `slots` is instructions per multiply-add. Raises ValueError as `shared_ridge`, and for less than
    one instruction.
    """
    if not slots >= 1:
        raise ValueError(f"a multiply-add is one instruction at least, got {slots!r}")
    shared_ridge(cc)
    return peak.fp32_tflops * min(1.0, ISSUED_A_CLOCK / LANES[cc] / slots)


def lines_attainable_tflops(lines: float, peak: Peak, cc: tuple[int, int]) -> float:
    """Return the roof, in 10¹² FLOP/s, of a float32 kernel, set by the lines that its loads use.

    For each multiply-add of its lanes, a warp loads from `lines` lines of the level-1 cache, which
    serves one of them in a cycle: so it is if the lanes' elements lie at the same place in their
    lines, or all in one line. Source: NVIDIA, Nsight Compute, on wavefronts of L1TEX; the counters
    of `cuda_naive`. Raises ValueError as `shared_ridge`, and unless `lines` is positive.
    """
    if not lines > 0:
        raise ValueError(f"the lines of a step must be positive, got {lines!r}")
    shared_ridge(cc)
    return peak.fp32_tflops * min(1.0, WARP / LANES[cc] / lines)


class StepClocks(NamedTuple):
    """Clocks that one step along K takes on a multiprocessor's tensor cores and shared memory."""

    tensor: float
    shared: float

    @property
    def longer(self) -> float:
        """A lower bound on the clocks of the step."""
        return max(self)


def step_clocks(rows: int, columns: int | Sequence[int], k: int) -> StepClocks:
    """Return the clocks of one step of K = `k`, for 16-bit floats, on compute capability 9.0.

    A tile of A has `rows` rows, a tile of B `columns` columns; a list of columns means several
    products with one tile of A. The copies write each tile into shared memory once. Then each
    `wgmma` reads its 64 rows of A and all columns of its tile of B, so that A is read once per
    product and B once per 64 rows. This is a model for warps that share no rows; no document
    confirms it. Raises ValueError unless all sizes are positive, `rows` is a multiple of 64, and a
    product has at most 256 columns.
    """
    widths = [columns] if isinstance(columns, int) else list(columns)
    if not widths or min(rows, k, *widths) < 1:
        raise ValueError(f"sizes must be positive, got {rows} rows, {columns} columns, K = {k}")
    if rows % WGMMA_ROWS or max(widths) > 256:
        raise ValueError(f"a wgmma takes 64 rows and up to 256 columns, got {rows} and {columns}")
    width = sum(widths)
    written = (rows + width) * k
    read = len(widths) * rows * k + rows // WGMMA_ROWS * width * k
    tensor = 2 * rows * width * k / TENSOR_FLOPS_A_CLOCK[9, 0]
    return StepClocks(tensor, 2 * (written + read) / SHARED_BYTES_A_CLOCK)
