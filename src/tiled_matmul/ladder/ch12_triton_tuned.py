"""The kernel of the rung below, with the tiles, warps and stages that were the fastest when timed.

Nothing of a program changed. What changed: who chooses its constants. SPACE states what is tried;
`triton.autotune` times each setting on the operands of the first call and the winner is pinned for
that shape, these strides and this dtype. Autotune leaves out in silence what does not fit; here it
is kept with its reason. `choice_for` tells the winner and all that was tried. Where there is no
clock, in Triton's interpreter, the first setting of the space is taken.
Source: Triton's tutorial 03, which tunes the kernel of chapter 11.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiled_matmul.kit.arguments import positive, tensor_operands
from tiled_matmul.kit.autotune import Setting, Tuned, checked, tune
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.programs import usual
from tiled_matmul.kit.withheld import withholding
from tiled_matmul.ladder import triton_swizzled

DTYPES = triton_swizzled.DTYPES


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
    space = checked(space_for(a) if space is None else space)
    if withholding() or not select().on_gpu:
        return Tuned(space[0])
    strides = (*a.stride(), *b.stride(), *out.stride())
    key = (m, n, k, *strides, a.dtype, out.dtype, a.device, group_m, space)
    if key not in _pinned:
        kernel = triton_swizzled.triton_swizzled_kernel
        _pinned[key] = tune(kernel, a, b, out, group_m, space)
    return _pinned[key]


def forget() -> None:
    """Tune anew from now on."""
    _pinned.clear()


def matmul(a, b, out=None, *, group_m=triton_swizzled.GROUP_M, space=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. `space` is the Settings to choose from, None takes `space_for`.
    The first call of a kind compiles and times them all. Raises TypeError or ValueError as
    `triton_swizzled.matmul` does, for a space without settings, and if none fits.
    """
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    chosen = choice_for(a, b, out, group_m=group_m, space=space)
    return triton_swizzled.matmul(a, b, out=out, group_m=group_m, **chosen.setting.options)
