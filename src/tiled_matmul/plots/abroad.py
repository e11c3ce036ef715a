"""Figures of chapter 18: what the same tile reaches in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiled_matmul.plots import style


@style.styled
def rates(
    found: Mapping[str, Sequence[tuple[str, float]]], baseline: str, finding: str
) -> style.Figure:
    """Draw groups of bars: {group: [(name, TFLOP/s)]}, the fastest of each group on top.

    `baseline` names the bar that the others are compared with, and `finding` is the title. Raises
    ValueError without bars, or without the baseline in a group.
    """
    if not found or not all(found.values()):
        raise ValueError(f"there is nothing to draw in {list(found)}")
    lines = sum(len(each) + 1 for each in found.values())
    fig, ax = style.draw(0.7 + 0.27 * lines)
    highest = max(rate for each in found.values() for _, rate in each)
    line, spoken = 0, []
    for group, bars in found.items():
        known = dict(bars)
        if baseline not in known:
            raise ValueError(f"{group} has no bar of {baseline!r}, only {', '.join(known)}")
        style.note(ax, group, (0, line), (2, 0), xycoords=("axes fraction", "data"), weight="bold")
        spoken.append(group)
        for name, rate in sorted(bars, key=lambda bar: -bar[1]):
            line += 1
            color = style.C if name == baseline else style.A
            ax.barh(line, rate, color=color, height=0.72, alpha=0.35)
            share = "" if name == baseline else f", {rate / known[baseline]:.2f}"
            style.note(ax, f"{name}: {rate:.3g}{share}", (0, line), (4, 0))
            spoken.append(f"{name} {rate:.3g} TFLOP/s{share}")
        line += 1
    words = f"TFLOP/s; behind the comma, of {baseline}"
    style.line_axis(ax, line - 0.4, -0.6, words, xlim=(0, 1.04 * highest))
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")
