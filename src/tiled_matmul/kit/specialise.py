"""Conditions under which Triton's warp specialisation takes effect and is correct."""

from __future__ import annotations

from typing import Any

from tiled_matmul.kit.backend import select

LEAST_ROWS = 128  # 64 per group: with 64 in all, both groups compute the same rows
LEAST_STAGES, MOST_STAGES = 2, 4


def specialises(block: tuple, num_warps: int, num_stages: int, a: Any) -> bool:
    """Return whether Triton can specialise warps for a product with a (M, K), correctly.

    It can for 16-bit `wgmma`, 4 warps and a loop along K; in other cases on 9.0 it ignores the
    option or fails. With more than MOST_STAGES the product was wrong on an H200. Correctness was
    tested there with Triton 3.6; 3.7 and 3.8 were only tested to compile. Other GPUs are excluded.
    """
    gpu = select().gpu
    hopper = gpu is None or gpu.capability == (9, 0)
    halves = hopper and block[0] >= LEAST_ROWS and a.element_size() == 2
    stages = LEAST_STAGES <= num_stages <= MOST_STAGES
    return halves and num_warps == 4 and stages and a.shape[1] > 1


def refused(block: tuple, num_warps: int, num_stages: int, a: Any) -> ValueError:
    """Return the error for `specialise=True` where `specialises` returns False."""
    gpu = select().gpu
    return ValueError(
        f"specialise=True needs 16-bit floats, tiles of {LEAST_ROWS} rows or more, 4 warps, "
        f"{LEAST_STAGES} to {MOST_STAGES} stages, K above 1 and a GPU of compute capability 9.0; "
        f"got {a.dtype}, {block[0]} rows, {num_warps} warps, {num_stages} stages, K={a.shape[1]}"
        + (f" and {gpu.name}, {'.'.join(map(str, gpu.capability))}" if gpu else "")
    )
