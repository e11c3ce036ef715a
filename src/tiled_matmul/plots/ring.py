"""The figure of chapter 13: a ring of buffers over time, with its full and empty barriers."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from tiled_matmul.microscope.table import plural
from tiled_matmul.models.ring import Copy, Ring
from tiled_matmul.plots import style

LOOKS = {  # of what happens, as it is named in the legend
    "copy under way": {"facecolor": style.OTHERS[0], "lw": 0},
    "full": {"facecolor": style.C, "alpha": 0.2, "lw": 0},
    "product": {"facecolor": style.C, "alpha": 0.75, "lw": 0},
    "store of C": {"facecolor": style.B, "alpha": 0.75, "lw": 0},
}


@style.styled
def ring(runs: Mapping[str, Ring], finding: str, barriers: bool = True) -> style.Figure:
    """Draw what each buffer and the tensor cores do over time, one panel for each run.

    Boxes bear the number of a tile along K. With `barriers`, "→" stands before the new phase of the
    full barrier, an arrow down is its flip, and one up is that of an empty barrier. `finding` is
    the title. Raises ValueError without runs.
    """
    if not runs:
        raise ValueError("there is no run to draw")
    lanes = [each.stages + 1 for each in runs.values()]
    panels = {"squeeze": False, "sharex": True, "height_ratios": lanes}
    fig, axes = style.draw(1.1 + sum(0.35 + 0.29 * n for n in lanes), len(runs), **panels)
    last = max(each.work[-1].end for each in runs.values())
    spoken = []
    for ax, (name, each) in zip(axes[:, 0], runs.items(), strict=True):
        spoken.append(f"{name}: {_panel(ax, each, barriers)}")
        ax.set(xlim=(-0.3, last + 0.3))
        style.panel_title(ax, name)
    axes[-1, 0].set_xlabel("time, in units")
    stores = any(work.buffer is None for each in runs.values() for work in each.work)
    handles = [
        Patch(**look, label=label) for label, look in LOOKS.items() if stores or "C" not in label
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


def _panel(ax: Axes, each: Ring, barriers: bool) -> str:
    """Draw one run, and return it in words."""
    bottom = each.stages
    for copy in each.copies:
        _box(ax, copy.begin, copy.end, copy.buffer, "copy under way", copy.tile)
    for work in each.work:
        if work.buffer is None:
            _box(ax, work.begin, work.end, bottom, "store of C")
            continue
        _box(ax, work.begin, work.end, bottom, "product", work.tile)
        copies = [c for c in each.copies if c.buffer == work.buffer]
        came = max((c for c in copies if c.end <= work.begin), key=lambda c: c.end, default=None)
        if came:
            phase = f"→{(came.tile // bottom + 1) % 2}" if barriers else None
            _box(ax, came.end, work.end, work.buffer, "full", phase)
        if came and barriers:
            _arrow(ax, (came.end, work.buffer + 0.36), (work.begin + 0.25, bottom - 0.36), style.C)
            _freed(ax, copies, work.end, work.buffer, bottom)
    ticks = [*(f"buffer {buffer}" for buffer in range(bottom)), "tensor cores"]
    ax.set_yticks(range(bottom + 1), ticks)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(bottom + 0.6, -0.6)
    ax.spines["left"].set_visible(False)
    products = [work for work in each.work if work.buffer is not None]
    busy = sum(work.end - work.begin for work in products)
    return (
        f"{plural(each.stages, 'buffer')}, {plural(len(products), 'product')} take "
        f"{each.work[-1].end} units of time, tensor cores are busy for {busy}"
    )


def _freed(ax: Axes, copies: list[Copy], end: int, buffer: int, bottom: int) -> None:
    """Draw the arrow from the end of a product to the next copy into its buffer."""
    later = [copy for copy in copies if copy.begin >= end]
    if later:
        begin = min(copy.begin for copy in later)
        _arrow(ax, (end, bottom - 0.36), (begin + 0.2, buffer + 0.36), style.FAULT)


def _box(ax: Axes, begin: float, end: float, lane: int, look: str, text: object = None) -> None:
    ax.add_patch(Rectangle((begin + 0.06, lane - 0.34), end - begin - 0.12, 0.68, **LOOKS[look]))
    if text is not None:
        # A box that is opaque is pale on a dark page too.
        color = style.INK if "alpha" in LOOKS[look] else "#111111"
        place = {"ha": "center", "va": "center", "fontsize": 8.5, "zorder": 4, "color": color}
        ax.text((begin + end) / 2, lane, text, **place)


def _arrow(ax: Axes, start: tuple, to: tuple, color: str) -> None:
    look = {"arrowstyle": "->", "color": color, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", to, start, arrowprops=look)


@style.styled
def shares(blocks: int, block: tuple[int, int, int], groups: int, finding: str) -> style.Figure:
    """Draw the tiles of one step along K: what each block and each group of warps has.

    `block` is (BLOCK_M, BLOCK_N, BLOCK_K) of one block. Of a cluster, `blocks` share B's tile, and
    their rows for each group lie below each other. `finding` is the title. Raises ValueError for
    less than one block or group.
    """
    if min(blocks, groups, *block) < 1:
        raise ValueError(f"got {blocks} blocks of {block} with {groups} groups of warps")
    high, wide, deep = block
    gap, rows = 20, high // groups
    fig, ax = style.draw(0.5 + style.WIDTH * 0.85 * (blocks * high + deep + gap) / (wide + deep))
    for group in range(groups):
        for number in range(blocks):
            top = (group * blocks + number) * rows
            for left, across, color in ((0, deep, style.A), (deep + gap, wide, style.C)):
                look = {"facecolor": color, "alpha": 0.3 + 0.25 * (group % 2), "lw": 0}
                ax.add_patch(Rectangle((left, top), across, rows, **look))
            here = f"group {group}" + (f" of block {number}" if blocks > 1 else "")
            middle = top + rows / 2
            ax.text(deep + gap + wide / 2, middle, f"C: sums of {here}", ha="center", va="center")
            ax.text(deep / 2, middle, f"A\n{rows}×{deep}", ha="center", va="center", fontsize=8)
            if number:
                ax.axhline(top, color=style.INK, lw=0.8, ls=":")
    ax.add_patch(Rectangle((deep + gap, -gap - deep), wide, deep, facecolor=style.B, alpha=0.4))
    whose = f"B {deep}×{wide}" + (f": one copy, for all {blocks} blocks" if blocks > 1 else "")
    ax.text(deep + gap + wide / 2, -gap - deep / 2, whose, ha="center", va="center")
    ax.set(xlim=(-2, deep + gap + wide + 2), ylim=(blocks * high + 2, -gap - deep - 2))
    ax.set_aspect("equal")
    ax.axis("off")
    each = f"{plural(groups, 'group')} of warps, each with {rows} rows of A and of C"
    return style.conclude(
        fig, finding, f"{plural(blocks, 'block')} of {high}×{wide}: {each}; {whose}."
    )
