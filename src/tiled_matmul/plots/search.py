"""The figure of a search: the rate of each setting at some sizes, and the resources it needs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from tiled_matmul.plots import style

MOST_CHARACTERS = 64  # per line


@style.styled
def trials(found: Sequence[Any], edges: Sequence[int], finding: str) -> style.Figure:
    """Draw the share of cuBLAS that each setting reached at square problems of these edges.

    `found` are trials of `tiled_matmul.measure.search`, in the order in which they are drawn; one
    that was not measured shows the reason. `finding` is the title. Raises ValueError if no trial
    was measured.
    """
    measured = [trial for trial in found if trial.records]
    if not measured:
        raise ValueError("no setting was measured")
    fig, ax = style.draw(1.2 + 0.47 * len(found))
    reach = max(1.0, *(trial.record(edge).ratio for trial in measured for edge in edges))
    spoken = []
    for line, trial in enumerate(found):
        tiles = trial.setting
        name = f"{tiles.tile_m}×{tiles.tile_n}×{tiles.tile_k}, {tiles.warp_m}×{tiles.warp_n}, "
        name += f"{tiles.rows}×{tiles.columns}: "
        if not trial.records:
            name += trial.failure
            shown = textwrap.shorten(name, MOST_CHARACTERS, placeholder=" …")
            look = {"va": "bottom", "fontsize": 8, "in_layout": False}
            ax.text(0, line - 0.08, shown, color=style.FAULT, **look)
            spoken.append(name)
            continue
        blocks = trial.occupancy.blocks
        name += f"{trial.registers} registers, {blocks} block{'s' * (blocks != 1)}"
        if trial.spilled_bytes:
            name += f", {trial.spilled_bytes} bytes of local memory"
        ax.text(0, line - 0.08, name, va="bottom", fontsize=8)
        shares = [trial.record(edge).ratio for edge in edges]
        ax.hlines(line + 0.17, 0, max(shares), color=style.MUTED, lw=0.8, alpha=0.6)
        # Beside the marks only, so that no text is crossed out.
        ax.vlines(1, line + 0.02, line + 0.32, color=style.C, lw=2)
        for (color, marker), share in zip(style.SERIES, shares, strict=False):
            ax.plot(share, line + 0.17, marker, color=color, ms=6)
        reached = ", ".join(f"{s:.2f} at {e}" for e, s in zip(edges, shares, strict=True))
        spoken.append(f"{name}: {reached}")
    ax.set(xlim=(0, reach * 1.03), ylim=(len(found) - 0.4, -0.6), yticks=[])
    style.share_axis(ax, reach, "share of cuBLAS's rate")
    for (color, marker), edge in zip(style.SERIES, edges, strict=False):
        ax.plot([], [], marker, color=color, ls="none", label=f"{edge}³")
    fig.legend(loc="outside lower center", ncols=len(edges), handletextpad=0.2)
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")
