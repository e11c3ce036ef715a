"""Rooflines of global memory and of shared memory, and occupancy against the rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiled_matmul.models import roofline as model
from tiled_matmul.plots import style

LEVELS = ("global memory", "shared memory")


@style.styled
def two_roofs(
    peak: Any,
    cc: tuple[int, int],
    points: Mapping[str, tuple[float, float, float]],
    library: float,
    finding: str,
) -> style.Figure:
    """Draw kernels under the roof of global memory, and under that of shared memory.

    `peak` is a device.Peak and `cc` its compute capability. `points` maps a kernel to (FLOPs per
    byte of its global requests, FLOPs per byte that its threads load from shared memory, TFLOP/s).
    `library` is the rate of cuBLAS in TFLOP/s, drawn as a line. `finding` is the title.
    """
    fig, axes = style.draw(5.6, 2)
    flat = model.peak_tflops(peak)
    bottom = min(rate for *_, rate in points.values()) / 3
    for level, (ax, name) in enumerate(zip(axes, LEVELS, strict=True)):
        ridge = model.shared_ridge(cc) if level else model.ridge(peak)
        values = [ridge, *(point[level] for point in points.values())]
        left, right = min(values) / 2.5, max(values) * 4
        x = np.geomspace(left, right, 300)
        ax.loglog(x, [min(flat, flat * at / ridge) for at in x], color=style.INK, lw=1.8)
        ax.axhline(library, color=style.C, lw=1.2, ls=(0, (4, 3)))
        for (kernel, point), (color, marker) in zip(points.items(), style.SERIES, strict=False):
            look = {"color": color, "ls": "none", "label": None if level else kernel}
            # Hollow, since two kernels may lie on each other.
            ax.plot(point[level], point[2], marker, ms=7, mfc="none", mew=1.8, **look)
        bandwidth = model.shared_bandwidth_gbps(peak, cc) if level else peak.bandwidth_gbps
        text = f"{bandwidth / 1000:.3g} TB/s of {name}"
        ax.text(0.02, 0.96, text, transform=ax.transAxes, ha="left", va="top")
        ax.text(right, library * 0.9, "cuBLAS", ha="right", va="top")
        ax.text(right, flat * 1.08, f"{flat:.3g} TFLOP/s", ha="right", va="bottom")
        ax.set(xlim=(left, right), ylim=(bottom, flat * 2.6))
        style.plain_numbers(ax.xaxis, ax.yaxis)
        ax.set(xlabel=f"FLOPs for each byte asked of {name}", ylabel="TFLOP/s")
    fig.legend(loc="outside lower center", ncols=2, fontsize=8)
    described = "; ".join(
        f"{kernel}: {rate:.3g} TFLOP/s, {one:.3g} FLOPs for each byte of global memory and "
        f"{two:.3g} for each of shared memory"
        for kernel, (one, two, rate) in points.items()
    )
    return style.conclude(
        fig,
        finding,
        f"Two rooflines of {peak.name}, logarithmic axes. {described}; "
        f"cuBLAS {library:.3g} TFLOP/s.",
    )


@style.styled
def occupancy_against_rate(
    tiles: Sequence[tuple[str, float, float | None]], finding: str
) -> style.Figure:
    """Draw the occupancy and the rate of a kernel, for several thread tiles.

    A tile is (name, occupancy from 0 to 1, share of cuBLAS); the share is None without a clock.
    """
    fig, ax = style.draw(0.9 + 0.42 * len(tiles))
    for line, (_, full, share) in enumerate(tiles):
        ax.barh(line - 0.17, full, height=0.3, color=style.MUTED, alpha=0.7)
        ax.text(full + 0.015, line - 0.17, f"{full:.0%}", va="center", fontsize=8)
        if share is not None:
            ax.barh(line + 0.17, share, height=0.3, color=style.A)
            ax.text(share + 0.015, line + 0.17, f"{share:.0%}", va="center", fontsize=8)
    ax.set_yticks(range(len(tiles)), [name for name, *_ in tiles])
    ax.set(xlim=(0, 1.12), ylim=(len(tiles) - 0.5, -0.5))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    ax.set_xlabel("grey: occupancy; blue: rate, of cuBLAS's")
    words = "; ".join(
        f"{name}: {full:.0%} occupied" + ("" if share is None else f", {share:.0%} of cuBLAS")
        for name, full, share in tiles
    )
    return style.conclude(fig, finding, f"{words}.")
