"""Choose the fastest of several settings with `triton.autotune`, and report those that failed.

Autotune silently skips settings that do not fit the GPU. `tune` returns them with their errors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import triton

from tiled_matmul.kit.programs import (
    check_blocks,
    check_group,
    check_steps,
    cover,
    launch,
    precision,
    wraps_evenly,
)

KEY = ["M", "N", "K"]  # autotune adds the dtypes; the caller handles strides
WARM_UP_MS, MEASURE_MS = 10, 50  # for each setting


@dataclass(frozen=True)
class Setting:
    """The parameters to tune: `block` is the tile (BLOCK_M, BLOCK_N, BLOCK_K)."""

    block: tuple[int, int, int]
    num_warps: int
    num_stages: int

    def __str__(self) -> str:
        stages = f"{self.num_stages} stage{'s' * (self.num_stages > 1)}"
        return f"{'×'.join(map(str, self.block))}, {self.num_warps} warps, {stages}"

    @property
    def options(self) -> dict[str, Any]:
        """The setting as keyword arguments of `triton_swizzled.matmul`."""
        return {
            "block": self.block,
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
        }


@dataclass(frozen=True)
class Tuned:
    """The fastest setting for one kind of call, and the measurements behind it.

    `times_ms` holds the times of the settings that ran, `refused` the errors of the others, and
    `seconds` the duration of the tuning, including compilation. If `times_ms` is empty, nothing was
    timed and `setting` is the first.
    """

    setting: Setting
    times_ms: dict[Setting, float] = field(default_factory=dict)
    refused: dict[Setting, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        how = f"the fastest of {len(self.times_ms)}" if self.times_ms else "the first, not timed"
        left_out = f"; {len(self.refused)} did not fit" if self.refused else ""
        return f"{self.setting}: {how}{left_out}"


def tune(kernel: Any, a, b, out, group_m: int, space: Sequence[Setting]) -> Tuned:
    """Time each setting on these operands with `triton.autotune` and return the result.

    `kernel` takes the arguments and constants of `triton_swizzled_kernel`. If no setting fits,
    raises a ValueError that lists them all.
    """
    from triton.testing import do_bench

    m, k = a.shape
    n = b.shape[1]
    reasons = []

    def bench_and_record(call: Any, quantiles: Any) -> Any:
        try:
            return do_bench(call, warmup=WARM_UP_MS, rep=MEASURE_MS, quantiles=quantiles)
        except Exception as error:  # autotune suppresses some of these
            reasons.append(f"{error}")
            raise

    configs = {}
    for setting in space:
        check_steps(setting.block, a, b)
        check_group(group_m, cover(n, setting.block[1]))
        sizes = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), setting.block, strict=True))
        sizes["MASK_K"] = k % setting.block[2] != 0
        warps, stages = setting.num_warps, setting.num_stages
        configs[triton.Config(sizes, num_warps=warps, num_stages=stages)] = setting
    tuner = triton.autotune(list(configs), key=KEY, do_bench=bench_and_record)
    kernel = tuner(kernel)
    kernel.__name__ = "triton_tuned_kernel"  # for error messages
    constants = {"PRECISION": precision(a), "GROUP_M": group_m, "HINTS": wraps_evenly(m, n, a)}

    def grid(meta: dict) -> tuple[int]:
        return (cover(m, meta["BLOCK_M"]) * cover(n, meta["BLOCK_N"]),)

    start = time.perf_counter()
    strides = (*a.stride(), *b.stride(), *out.stride())
    try:
        launch(kernel, grid, a, b, out, m, n, k, *strides, **constants)
    except ValueError as error:  # autotune's fallback did not fit either
        names = "; ".join(map(str, space))
        raise ValueError(f"no setting of the space fits ({names}): {error}") from error
    seconds = time.perf_counter() - start
    if len(space) == 1:  # autotune does not time a single setting
        return Tuned(space[0], seconds=seconds)
    times = {configs[config]: took[0] for config, took in kernel.configs_timings.items()}
    failed = [setting for setting, took in times.items() if math.isinf(took)]
    return Tuned(
        configs[kernel.best_config],
        {setting: took for setting, took in times.items() if setting not in failed},
        dict(zip(failed, reasons, strict=True)),
        seconds,
    )


def checked(space: Sequence[Setting]) -> tuple[Setting, ...]:
    """Return the space as a tuple.

    Raises ValueError for an empty space or a repeated setting, and TypeError or ValueError as
    `check_blocks` does.
    """
    space = tuple(space)
    if not space:
        raise ValueError("there is no setting to choose from")
    for setting in space:
        if not isinstance(setting, Setting):
            raise TypeError(f"a space holds Settings, got {setting!r}")
        check_blocks(setting.block, setting.num_warps, setting.num_stages)
    if len(set(space)) < len(space):
        raise ValueError("a setting stands twice in the space")
    return space
