"""The kernel of the rung below, with the tiles, warps and stages that were the fastest when timed.

Nothing of a program changed. What changed: who chooses its constants. SPACE states what is tried;
`triton.autotune` times each setting on the operands of the first call and the winner is pinned for
that shape, these strides and this dtype. Autotune leaves out in silence what does not fit; here it
is kept with its reason. `choice_for` tells the winner and all that was tried. Where there is no
clock, in Triton's interpreter, the first setting of the space is taken.
Source: Triton's tutorial 03, which tunes the kernel of chapter 10.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import triton

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.programs import (
    check_blocks,
    check_group,
    check_steps,
    cover,
    launch,
    precision,
    usual,
    withholding,
)
from tiled_matmul.ladder import triton_swizzled
from tiled_matmul.ladder.triton_swizzled import triton_swizzled_kernel

DTYPES = triton_swizzled.DTYPES
KEY = ["M", "N", "K"]  # autotune adds the dtypes; `tune` the strides
WARM_UP_MS, MEASURE_MS = 10, 50  # for each setting


@dataclass(frozen=True)
class Setting:
    """What is left open: the tile (BLOCK_M, BLOCK_N, BLOCK_K), and the compiler's two numbers."""

    block: tuple[int, int, int]
    num_warps: int
    num_stages: int

    def __str__(self) -> str:
        stages = f"{self.num_stages} stage{'s' * (self.num_stages > 1)}"
        return f"{'×'.join(map(str, self.block))}, {self.num_warps} warps, {stages}"

    @property
    def options(self) -> dict[str, Any]:
        """What `triton_swizzled.matmul` takes."""
        return {
            "block": self.block,
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
        }


# What is tried where tensor cores multiply. The first is what the rung below takes by itself.
SPACE = (
    Setting(triton_swizzled.BLOCK, triton_swizzled.WARPS, 3),
    Setting((128, 256, 64), 8, 4),
    Setting((256, 128, 64), 8, 3),
    Setting((128, 128, 64), 8, 4),
    Setting((128, 128, 64), 4, 4),
    Setting((64, 256, 64), 4, 4),
    Setting((64, 128, 64), 4, 4),
    Setting((64, 64, 128), 4, 4),
    Setting((128, 256, 128), 8, 3),  # on an H200 it does not fit
)
# And where threads do.
SMALL_SPACE = (
    Setting((64, 64, 16), 8, 3),
    Setting((64, 64, 32), 8, 2),
    Setting((32, 64, 32), 4, 2),
)


@dataclass(frozen=True)
class Tuned:
    """The winner for one kind of call, and how it came to win.

    `times_ms` holds the settings that ran, `refused` why others did not, `seconds` what the tuning
    took, with what had still to be compiled. Where all three are empty nothing was timed, and
    `setting` is the first.
    """

    setting: Setting
    times_ms: dict[Setting, float] = field(default_factory=dict)
    refused: dict[Setting, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        how = f"the fastest of {len(self.times_ms)}" if self.times_ms else "the first, not timed"
        left_out = f"; {len(self.refused)} did not fit" if self.refused else ""
        return f"{self.setting}: {how}{left_out}"


_pinned: dict[tuple, Tuned] = {}


def space_for(a) -> tuple[Setting, ...]:
    """Return what is tried for operands of a's dtype on this GPU, or on an H200 without one."""
    block, _ = usual(None, None, a, (SPACE[0].block, SPACE[0].num_warps))
    return SPACE if block == SPACE[0].block else SMALL_SPACE


def choice_for(
    a, b, out=None, *, group_m=triton_swizzled.GROUP_M, space: Sequence[Setting] | None = None
) -> Tuned:
    """Return what is pinned for these operands; the first time, on a GPU, it is tuned now.

    Tuning overwrites `out`, with the product. Raises as `matmul` does.
    """
    m, n, k, out = tensor_operands(a, b, out, DTYPES, strided=True)
    positive("group_m", group_m)
    space = _checked(space_for(a) if space is None else space)
    if withholding() or not select().on_gpu:
        return Tuned(space[0])
    strides = (*a.stride(), *b.stride(), *out.stride())
    key = (m, n, k, *strides, a.dtype, out.dtype, a.device, group_m, space)
    if key not in _pinned:
        _pinned[key] = tune(a, b, out, group_m, space)
    return _pinned[key]


def forget() -> None:
    """Tune anew from now on."""
    _pinned.clear()


def tune(a, b, out, group_m: int, space: Sequence[Setting]) -> Tuned:
    """Time each setting on these operands, by `triton.autotune`, and return the outcome.

    Raises ValueError, naming them all, if no setting fits.
    """
    from triton.testing import do_bench

    m, k = a.shape
    n = b.shape[1]
    reasons = []

    def listening(call: Any, quantiles: Any) -> Any:
        try:
            return do_bench(call, warmup=WARM_UP_MS, rep=MEASURE_MS, quantiles=quantiles)
        except Exception as error:  # autotune swallows some, after this
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
    tuner = triton.autotune(list(configs), key=KEY, do_bench=listening)
    kernel = tuner(triton_swizzled_kernel)
    kernel.__name__ = "triton_tuned_kernel"  # for a refusal's message
    constants = {"PRECISION": precision(a), "GROUP_M": group_m, "HINTS": True}

    def grid(meta: dict) -> tuple[int]:
        return (cover(m, meta["BLOCK_M"]) * cover(n, meta["BLOCK_N"]),)

    start = time.perf_counter()
    strides = (*a.stride(), *b.stride(), *out.stride())
    try:
        launch(kernel, grid, a, b, out, m, n, k, *strides, **constants)
    except ValueError as error:  # the last resort did not fit either
        names = "; ".join(map(str, space))
        raise ValueError(f"no setting of the space fits ({names}): {error}") from error
    seconds = time.perf_counter() - start
    if len(space) == 1:  # which autotune does not time
        return Tuned(space[0], seconds=seconds)
    times = {configs[config]: took[0] for config, took in kernel.configs_timings.items()}
    failed = [setting for setting, took in times.items() if math.isinf(took)]
    return Tuned(
        configs[kernel.best_config],
        {setting: took for setting, took in times.items() if setting not in failed},
        dict(zip(failed, reasons, strict=True)),
        seconds,
    )


def matmul(a, b, out=None, *, group_m=triton_swizzled.GROUP_M, space=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `space` is the Settings to choose from, None takes `space_for`.
    The first call of a kind compiles and times them all. Raises TypeError or ValueError as
    `triton_swizzled.matmul` does, for a space without settings, and if none fits.
    """
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    chosen = choice_for(a, b, out, group_m=group_m, space=space)
    return triton_swizzled.matmul(a, b, out=out, group_m=group_m, **chosen.setting.options)


def _checked(space: Sequence[Setting]) -> tuple[Setting, ...]:
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
