"""Figures of chapter 17: who holds which part, how long cuts take, and many GPUs as a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from tiled_matmul.models.distributed import grid_of
from tiled_matmul.plots import style

RANKS = (*style.OTHERS[:2], style.B, style.C)  # colours of four ranks
MIDDLE = {"ha": "center", "va": "center"}
SIDE, GAP = 4.0, 0.7  # of a matrix


@style.styled
def parts(cuts: Mapping[str, tuple], ranks: int, finding: str) -> style.Figure:
    """Draw which rank holds which part of A, B and C.

    `cuts` has for each name the axes that are cut, of A, B and C: 0, 1, None for all of it on each
    rank, or "grid". `finding` is the title. Raises ValueError for other than 2 to 4 ranks.
    """
    if not 2 <= ranks <= len(RANKS):
        raise ValueError(f"there are colours for 2 to {len(RANKS)} ranks, got {ranks}")
    columns = min(2, len(cuts))
    rows = -(-len(cuts) // columns)
    fig, axes = style.draw(1.75 * rows, rows, columns, squeeze=False)
    for ax in axes.flat[len(cuts) :]:
        ax.axis("off")
    for ax, (name, (a, b, c)) in zip(axes.flat, cuts.items(), strict=False):
        style.panel_title(ax, name)
        far = SIDE + GAP
        for label, axis, x, y in (("A", a, 0, far), ("B", b, far, 0), ("C", c, far, far)):
            _held(ax, label, axis, x, y, ranks)
        style.bare(ax, far + SIDE, far + SIDE)
    told = "; ".join(
        f"{name}: {_words('A', a)}, {_words('B', b)}, {_words('C', c)}"
        for name, (a, b, c) in cuts.items()
    )
    return style.conclude(fig, finding, f"Parts of {ranks} ranks, each with a colour. {told}.")


def _words(label: str, axis: int | str | None) -> str:
    kinds = {0: "cut into rows", 1: "cut into columns", None: "whole on each rank"}
    return f"{label} {kinds.get(axis, 'cut into tiles')}"


def _held(ax: Axes, label: str, axis: int | str | None, x: float, y: float, ranks: int) -> None:
    """Draw a matrix with its parts in the ranks' colours, each with the rank's number."""
    if axis is None:
        style.fill(ax, x, y, SIDE, SIDE, style.MUTED, 0.2)
        ax.text(x + SIDE / 2, y + SIDE / 2, f"{label}\nall", fontsize=8, **MIDDLE)
    else:
        high, wide = {0: (ranks, 1), 1: (1, ranks)}.get(axis) or grid_of(ranks)
        for rank in range(ranks):
            row, column = divmod(rank, wide)
            deep, broad = SIDE / high, SIDE / wide
            left, top = x + column * broad, y + row * deep
            style.fill(ax, left, top, broad, deep, RANKS[rank], 0.55)
            style.frame(ax, left, top, broad, deep, style.INK)
            name = f"{label}{rank}"
            ax.text(left + broad / 2, top + deep / 2, name, fontsize=8, **MIDDLE)
    style.frame(ax, x, y, SIDE, SIDE, style.INK)


@style.styled
def lanes(ways: Mapping[str, Sequence[tuple[str, float, float]]], finding: str) -> style.Figure:
    """Draw when a rank transfers and when it multiplies.

    `ways` has for each name pieces ("transfer" or "product", begin, end) in microseconds. `finding`
    is the title. Raises ValueError if there is no way.
    """
    if not ways:
        raise ValueError("there is nothing to draw")
    fig, axes = style.draw(0.35 + 0.85 * len(ways), len(ways), 1, sharex=True, squeeze=False)
    looks = {"transfer": (0, style.FAULT), "product": (1, style.C)}
    for ax, (name, pieces) in zip(axes.flat, ways.items(), strict=True):
        style.panel_title(ax, name)
        for what, begin, end in pieces:
            place, color = looks[what]
            ax.barh(place, end - begin, left=begin, height=0.75, color=color, alpha=0.75)
        ax.set_yticks([0, 1], ["transfer", "product"])
        ax.set_ylim(1.6, -0.6)
    axes[-1, 0].set_xlabel("time (µs)")
    told = "; ".join(
        f"{name}: " + ", ".join(f"{what} {begin:,.0f} to {end:,.0f}" for what, begin, end in pieces)
        for name, pieces in ways.items()
    )
    return style.conclude(fig, finding, f"In microseconds: {told}.")


@style.styled
def beside(us: Mapping[str, float], product: float, transfer: float, finding: str) -> style.Figure:
    """Draw times of ways as bars, with the product's and the transfer's own time as lines.

    All in microseconds. `finding` is the title. Raises ValueError if there is no way.
    """
    if not us:
        raise ValueError("there is no time to draw")
    fig, ax = style.draw(0.55 + 0.32 * len(us))
    names = list(us)
    longest = max(us.values())
    for place, name in enumerate(names):
        ax.barh(place, us[name], height=0.62, color=style.A, alpha=0.8)
        text = f"{us[name]:,.0f} µs"
        ax.text(us[name] + 0.01 * longest, place, text, fontsize=8, va="center")
    for value, label, color in (
        (product, "product alone", style.C),
        (transfer, "transfer alone", style.FAULT),
    ):
        ax.plot([value, value], [-0.5, len(us) - 0.5], color=color, lw=1.4, ls="--")
        ax.text(value, -0.75, label, fontsize=8, color=color, ha="center")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.95)
    ax.set_xlim(0, 1.2 * longest)
    ax.set_xlabel("time (µs)")
    told = ", ".join(f"{name} {took:,.0f}" for name, took in us.items())
    words = (
        f"Microseconds: {told}. The product alone takes {product:,.0f}, the transfer alone "
        f"{transfer:,.0f}."
    )
    return style.conclude(fig, finding, words)


@style.styled
def efficiency(
    lines: Mapping[str, Mapping[int, float]],
    seen: Mapping[str, Sequence[tuple[int, float]]],
    finding: str,
) -> style.Figure:
    """Draw the share of p times one GPU's rate against p: lines predicted, markers measured.

    `lines` has {p: share} for each name, `seen` pairs (p, share); what has no line gets stars.
    `finding` is the title. Raises ValueError if there is no line.
    """
    if not lines:
        raise ValueError("there is no line to draw")
    fig, ax = style.draw(3.0)
    for (name, line), (color, marker) in zip(lines.items(), style.SERIES, strict=False):
        ax.plot(list(line), list(line.values()), color=color, lw=1.5, label=f"{name}, predicted")
        if name in seen:
            at = zip(*seen[name], strict=True)
            ax.plot(*at, marker, color=color, ms=6, label=f"{name}, measured")
    for name in seen.keys() - lines.keys():
        look = {"color": style.MUTED, "ms": 10, "mfc": "none", "label": name}
        ax.plot(*zip(*seen[name], strict=True), "*", **look)
    ax.set_xscale("log", base=2)
    ticks = sorted({p for line in (*lines.values(), *map(dict, seen.values())) for p in line})
    ticks = ticks[:: 2 if len(ticks) > 8 else 1]
    ax.set_xticks(ticks, [f"{p:,}" for p in ticks])
    ax.minorticks_off()
    lowest = min(share for line in lines.values() for share in line.values())
    ax.set_ylim(0.5 if lowest > 0.6 else 0, 1.1)
    ax.set_xlabel("GPUs")
    ax.set_ylabel("share of the ideal rate")
    ax.legend(fontsize=8)
    style.grid_lines(ax)
    return style.conclude(fig, finding, style.in_words(lines, ".2f"))
