"""Figures of chapter 10: owners in three kernels, a fragment product, block sizes, rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator

from tiled_matmul.models import fragments
from tiled_matmul.plots import style

OWNERS = ("Loops 4", "CUDA", "Triton")
UNITS = ("one product", "one thread", "one program")
COLORS = {"A": style.A, "B": style.B, "C": style.C}
LOOKS = ((style.A, "o", "-"), (style.FAULT, "s", "-"), (style.OTHERS[1], "^", "-"))


@style.styled
def owners() -> style.Figure:
    """Draw one step along K for tiles of 4×4 in Loops 4, in CUDA and in Triton.

    Black elements belong to one unit of the source: a product, a thread, a program.
    """
    edge, row, col = 4, 1, 2
    fig, ax = style.draw(2.6)
    every = [(i, j) for i in range(edge) for j in range(edge)]
    focus = (
        ([(row, col)], [(col, col)], [(row, col)]),
        ([(row, k) for k in range(edge)], [(k, col) for k in range(edge)], [(row, col)]),
        (every, every, every),
    )
    gap, between, x = 0.8, 2.4, 0.0
    for name, unit, parts in zip(OWNERS, UNITS, focus, strict=True):
        places = ((x, edge + gap), (x + edge + gap, 0), (x + edge + gap, edge + gap))
        for (left, top), letter, dark in zip(places, "ABC", parts, strict=True):
            _fragment(ax, letter, edge, edge, left, top, dark, 0.08)
            if letter != "C":
                ax.text(left + 0.1, top - 0.2, letter, va="bottom", ha="left")
        middle = x + edge + gap / 2
        ax.text(middle, 2 * edge + gap + 0.7, f"{name}:\n{unit}", ha="center", va="top")
        x += 2 * edge + gap + between
    style.bare(ax, x - between, 2 * edge + gap + 3.4)
    finding = "From one product at a time to a whole tile at a time"
    words = (
        f"Three times the tiles of A, B and C of one step along K, {edge} by {edge} elements each. "
        "In Loops 4 one element of each is black: a single product. In CUDA a row of A, a column "
        "of B and one element of C: what one thread has to do with. In Triton all three tiles are "
        "black."
    )
    return style.conclude(fig, finding, words)


def _fragment(ax, letter, rows, columns, x, y, dark, margin) -> None:
    """Draw a pale matrix with the colour of its letter, and some of its elements in black."""
    style.matrix(ax, rows, columns, COLORS[letter], x=x, y=y, shade=0.3)
    edge = 1 - 2 * margin
    for i, j in dark:
        corner = (x + j + margin, y + i + margin)
        ax.add_patch(Rectangle(corner, edge, edge, facecolor=style.INK, lw=0))


@style.styled
def fragment_product(lane: int = 9) -> style.Figure:
    """Draw the 16×8×16 product of one `mma.sync`, and the elements that one of 32 lanes holds.

    Raises ValueError as `fragments.held`.
    """
    dark = {operand: fragments.held(operand, lane) for operand in fragments.SHAPES}
    fig, ax = style.draw(3.9)
    gap = 1.6
    places = {"A": (0, 16 + gap), "B": (16 + gap, 0), "C": (16 + gap, 16 + gap)}
    for operand, (rows, columns) in fragments.SHAPES.items():
        _fragment(ax, operand, rows, columns, *places[operand], dark[operand], 0.06)
    ax.text(8, 16 + gap - 0.4, "A: 16×16, eight a lane", ha="center", va="bottom")
    ax.text(24 + gap + 0.6, 8, "B: 16×8,\nfour a lane", va="center")
    ax.text(24 + gap + 0.6, 24 + gap, "C: 16×8 sums,\nfour a lane", va="center")
    style.bare(ax, 24 + gap + 11, 32 + gap)
    finding = f"One instruction of a warp, {16 * 8 * 16:,} products"
    words = "; ".join(
        f"{operand} at " + ", ".join(f"({i}, {j})" for i, j in cells)
        for operand, cells in dark.items()
    )
    return style.conclude(
        fig,
        finding,
        f"Fragments of A, 16 by 16 elements, of B, 16 by 8, and of C, 16 by 8. Black is "
        f"what lane {lane} of 32 holds, as (row, column): {words}.",
    )


@style.styled
def errors_by_k(
    bound: Mapping[int, float], errors: Mapping[str, Mapping[int, float]], finding: str
) -> style.Figure:
    """Draw errors against K on logarithmic axes, under the bound that the check allows.

    `bound` maps K to the allowed error, `errors` maps a kernel's name to {K: its largest error};
    all are relative to |A|·|B|. Raises ValueError without kernels, or for an error of 0 or less.
    """
    if not errors or any(not value > 0 for line in errors.values() for value in line.values()):
        raise ValueError(f"errors against K have to be positive, got {errors!r}")
    fig, ax = style.draw(3.4)
    ks = sorted(bound)
    ax.plot(ks, [bound[k] for k in ks], color=style.INK, lw=1.2, ls=(0, (4, 3)), label="allowed")
    for (name, line), (color, marker, dashes) in zip(errors.items(), LOOKS, strict=False):
        points = sorted(line.items())
        ax.plot(*zip(*points, strict=True), color=color, marker=marker, ls=dashes, ms=5, label=name)
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(ks, [f"{k:,}" for k in ks])
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
    ax.set(xlabel="K, products in a sum", ylabel="largest error, relative to |A|·|B|")
    style.grid_lines(ax)
    ax.margins(y=0.15)
    fig.legend(loc="outside lower center", ncols=1 + len(errors))
    spoken = style.in_words({"allowed": bound, **errors}, ".2g")
    return style.conclude(fig, finding, f"Errors against K, logarithmic axes. {spoken}.")


@style.styled
def blocks(tried: Sequence[tuple[str, float | None, str]], finding: str) -> style.Figure:
    """Draw the share of cuBLAS's rate that each block size reaches.

    `tried` holds (name, share, note): the share is None without a clock, the note follows the name.
    Raises ValueError if it is empty.
    """
    if not tried:
        raise ValueError("no block size was tried")
    fig, ax = style.draw(0.9 + 0.47 * len(tried))
    shares = [share for _, share, _ in tried if share is not None]
    for line, (name, share, note) in enumerate(tried):
        ax.text(0, line - 0.08, f"{name}: {note}", va="bottom", fontsize=8)
        if share is not None:
            ax.barh(line + 0.17, share, height=0.3, color=style.A)
            ax.text(share + 0.01, line + 0.17, f"{share:.2f}", va="center", fontsize=8)
            ax.vlines(1, line + 0.02, line + 0.32, color=style.C, lw=2)
    reach = max([1.0, *shares]) * 1.1
    style.line_axis(ax, len(tried) - 0.4, -0.6, "share of cuBLAS's rate", xlim=(0, reach))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    spoken = "; ".join(
        f"{name}: {note}" + ("" if share is None else f", {share:.2f} of cuBLAS")
        for name, share, note in tried
    )
    return style.conclude(fig, finding, f"{spoken}.")
