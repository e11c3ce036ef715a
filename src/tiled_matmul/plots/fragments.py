"""Figures of the first Triton chapter: owners, pointers, fragments, swizzle, blocks, rounding."""

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
def pointer_tile(
    shape: tuple[int, int], corner: tuple[int, int], block: tuple[int, int]
) -> style.Figure:
    """Draw a tile of offsets as a column plus a row, and where the addresses lie in the matrix.

    The matrix is `shape`, stored row by row, the tile is `block` and begins at `corner`. Elements
    beyond the matrix are in the colour of a fault, and so are the places where their addresses lie.
    """
    (rows, cols), (top, left), (height, width) = shape, corner, block
    fig, (tile, whole) = style.draw(2.4, 1, 2, width_ratios=(width + 2.4, cols))
    deep = max(rows, height) + 1.5
    style.bare(tile, width + 2.4, deep)
    style.panel_title(tile, "the tile of offsets")
    look = {"ha": "center", "va": "center_baseline", "fontsize": 9}
    shades: dict[bool, dict] = {True: {}, False: {}}
    places: dict[bool, dict] = {True: {}, False: {}}
    for i in range(height):
        tile.text(1.2, 2 + i, str((top + i) * cols), **look)
        for j in range(width):
            offset = (top + i) * cols + left + j
            inside = top + i < rows and left + j < cols
            shades[inside][i, j] = 0.35
            if offset < rows * cols:
                places[inside][divmod(offset, cols)] = 0.5
            tile.text(2.9 + j, 2 + i, str(offset), **look)
    for j in range(width):
        tile.text(2.9 + j, 0.8, str(left + j), **look)
    style.bare(whole, cols, deep)
    style.panel_title(whole, f"where they lie in C, {rows} × {cols}")
    for inside, color in ((True, style.C), (False, style.FAULT)):
        style.matrix(tile, height, width, color, x=2.4, y=1.5, shade=shades[inside])
        style.matrix(whole, rows, cols, color, y=1.5, shade=places[inside])
    style.matrix(tile, height, width, style.C, x=2.4, y=1.5)
    style.matrix(whole, rows, cols, style.C, y=1.5)
    strays = sorted(places[False])
    return style.conclude(
        fig,
        "A column plus a row is a tile of addresses, and some are not its own",
        f"A tile of {height} × {width} at row {top}, column {left}. Without a mask it also "
        "accesses "
        + (", ".join(map(str, strays)) or "nothing else")
        + " (row, column), which belong to other programs.",
    )


@style.styled
def warp_group_sums(thread: int = 41) -> style.Figure:
    """Draw the 64 × 64 sums of a `wgmma`: the rows of its four warps, one thread's sums in black.

    Raises ValueError as `fragments.sums_of`.
    """
    dark = fragments.sums_of(thread)
    fig, ax = style.draw(4.4)
    for warp in range(4):
        shade = 0.42 if warp % 2 else 0.18
        style.fill(ax, 0, 16 * warp, 64, 16, style.C, shade)
        ax.text(65.5, 16 * warp + 8, f"warp {warp},\n16 rows", va="center", fontsize=8)
    squares = [(column + 0.06, row + 0.06, 0.88, 0.88) for row, column in dark]
    style.boxes(ax, squares, facecolor=style.INK, lw=0)
    style.frame(ax, 0, 0, 64, 64, style.C)
    style.bare(ax, 79, 64)
    rows, columns = (sorted(set(axis)) for axis in zip(*dark, strict=True))
    return style.conclude(
        fig,
        f"4 warps × 16 rows; thread {thread} holds {len(dark)} of 4,096 sums",
        f"A tile of 64 by 64 sums in four bands of 16 rows, one for each warp. Thread {thread} "
        f"holds {len(dark)} of them, in rows {' and '.join(map(str, rows))}, columns "
        f"{', '.join(map(str, columns))}.",
    )


@style.styled
def swizzle(chunk: int = 2) -> style.Figure:
    """Draw eight rows of eight 16-byte chunks, row by row and swizzled; one chunk marked.

    A column of the picture is a group of four banks. `chunk` is the column of the tile that is
    marked, 0 to 7; in red where all eight are in the same banks.
    """
    fig, axes = style.draw(2.9, 1, 2)
    ways = {"row by row": lambda row, c: c, "swizzled": fragments.swizzled}
    used = {}
    for ax, (name, place) in zip(axes, ways.items(), strict=True):
        style.bare(ax, 8, 9.6)
        style.panel_title(ax, name)
        marked = [(row, place(row, chunk)) for row in range(8)]
        used[name] = {column for _, column in marked}
        style.matrix(ax, 8, 8, style.A, y=1, shade=0.15)
        color = style.FAULT if len(used[name]) == 1 else style.C
        squares = [(column + 0.05, 1.05 + row, 0.9, 0.9) for row, column in marked]
        style.boxes(ax, squares, facecolor=color, lw=0)
        for row in range(8):
            for c in range(8):
                look = {"color": "white", "fontweight": "bold"} if c == chunk else {}
                where = (place(row, c) + 0.5, row + 1.5)
                ax.text(*where, str(c), ha="center", va="center_baseline", fontsize=8, **look)
        for column in range(8):
            banks = f"{4 * column}–"
            ax.text(column + 0.5, 0.55, banks, ha="center", va="center_baseline", fontsize=7)
    fig.supxlabel("a row: 128 bytes; a column: four banks, from the number above", fontsize=8)
    groups = " and ".join(f"{len(used[name])} ({name})" for name in ways)
    return style.conclude(
        fig,
        f"Chunk {chunk} of eight rows: all in four banks, or spread over all 32",
        f"Eight rows of eight chunks of 16 bytes. Chunk {chunk} of all rows lies in this many "
        f"groups of four banks: {groups}.",
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
            clear = 1.01 if 0.9 < share < 1.01 else share + 0.01  # of cuBLAS's mark
            ax.text(clear, line + 0.17, f"{share:.2f}", va="center", fontsize=8)
            ax.vlines(1, line + 0.02, line + 0.32, color=style.C, lw=2)
    reach = max([1.0, *shares]) * 1.1
    style.line_axis(ax, len(tried) - 0.4, -0.6, "share of cuBLAS's rate", xlim=(0, reach))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    spoken = "; ".join(
        f"{name}: {note}" + ("" if share is None else f", {share:.2f} of cuBLAS")
        for name, share, note in tried
    )
    return style.conclude(fig, finding, f"{spoken}.")
