"""Tuning: what settings take of a budget, and which of a tile's two clocks is the longer."""

from __future__ import annotations

from collections.abc import Mapping

from tiled_matmul.plots import style


@style.styled
def budget(needs: Mapping[str, float], limits: Mapping[str, float], finding: str) -> style.Figure:
    """Draw what each setting takes of shared memory, in KiB, and what each GPU has, as lines.

    Raises ValueError without settings or limits.
    """
    if not needs or not limits:
        raise ValueError("there are no settings, or no limits")
    fig, ax = style.draw(1.1 + 0.36 * len(needs))
    for line, (name, kib) in enumerate(needs.items()):
        fits = kib <= max(limits.values())
        ax.text(0, line - 0.05, name, va="bottom", fontsize=8)
        ax.barh(line + 0.16, kib, height=0.28, color=style.A if fits else style.FAULT)
        ax.text(kib + 3, line + 0.16, f"{kib:.0f}", va="center", fontsize=8)
    for name, kib in limits.items():
        ax.axvline(kib, color=style.MUTED, ls="--", lw=1)
        ax.text(kib + 3, -0.75, name, va="bottom", fontsize=8)
    most = max([*needs.values(), *limits.values()])
    ax.set(xlim=(0, most * 1.12), ylim=(len(needs) - 0.4, -1.3), yticks=[])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("KiB of shared memory")
    style.title(fig, finding)
    spoken = "; ".join(f"{name}: {kib:.0f} KiB" for name, kib in needs.items())
    there = ", ".join(f"{name} has {kib:.0f}" for name, kib in limits.items())
    return style.finish(fig, f"{finding}. {spoken}. {there}.")


@style.styled
def clocks(tiles: Mapping[str, tuple[float, float]], finding: str) -> style.Figure:
    """Draw for each tile the clocks of shared memory over those of the arithmetic, in one step.

    `tiles` holds (arithmetic, shared memory). Raises ValueError without tiles.
    """
    if not tiles:
        raise ValueError("there is no tile")
    fig, ax = style.draw(1.0 + 0.4 * len(tiles))
    times = {name: shared / arithmetic for name, (arithmetic, shared) in tiles.items()}
    for line, (name, ratio) in enumerate(times.items()):
        ax.text(0, line - 0.05, name, va="bottom", fontsize=8)
        ax.barh(line + 0.17, ratio, height=0.3, color=style.A if ratio <= 1 else style.FAULT)
        ax.text(ratio + 0.02, line + 0.17, f"{ratio:.2f}", va="center", fontsize=8)
    ax.axvline(1, color=style.MUTED, ls="--", lw=1)
    ax.set(xlim=(0, max(1.0, *times.values()) * 1.15), ylim=(len(tiles) - 0.4, -0.6), yticks=[])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("clocks of shared memory for a clock of arithmetic")
    style.title(fig, finding)
    spoken = "; ".join(f"{name}: {ratio:.2f}" for name, ratio in times.items())
    return style.finish(fig, f"{finding}. {spoken}.")
