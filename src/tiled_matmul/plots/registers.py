"""Figures of chapter 7: a thread's loads for one k, and the elements of C that it owns."""

from __future__ import annotations

from tiled_matmul.plots import style

FOUR = 4


@style.styled
def outer_products(shapes: tuple[tuple[int, int], ...] = ((1, 1), (8, 1), (8, 8))) -> style.Figure:
    """Draw one step of k for threads with tiles of C of these (rows, columns), side by side.

    The loaded elements of A lie left of each tile, those of B above it.
    """
    fig, ax = style.draw(2.7)
    gap, between, x = 0.6, 2.6, 0.0
    tallest = max(rows for rows, _ in shapes)
    ratios = []
    for rows, columns in shapes:
        tile_x, top = x + 1 + gap, 1 + gap
        column, row = {(i, 0): 0.75 for i in range(rows)}, {(0, j): 0.75 for j in range(columns)}
        every = {(i, j): 0.75 for i in range(rows) for j in range(columns)}
        style.matrix(ax, rows, 1, style.A, x=x, y=top, shade=column)
        style.matrix(ax, 1, columns, style.B, x=tile_x, shade=row)
        style.matrix(ax, rows, columns, style.C, x=tile_x, y=top, shade=every)
        loads, products = rows + columns, rows * columns
        ratios.append((rows, columns, loads, products))
        middle = (x + tile_x + columns) / 2
        text = f"{rows}×{columns}\n{loads} loads\n{products} products"
        place = {"ha": "center", "va": "top"}
        ax.text(middle, tallest + top + 0.5, text, **place)
        x = tile_x + columns + between
    style.bare(ax, x - between, tallest + 1 + gap + 4.4)
    rows, columns, loads, products = max(ratios, key=lambda ratio: ratio[3] / ratio[2])
    finding = f"{loads} loads feed {products} multiplications in a tile of {rows}×{columns}"
    words = "; ".join(
        f"{rows} by {columns}: {loads} loads, {products} products"
        for rows, columns, loads, products in ratios
    )
    return style.conclude(
        fig,
        finding,
        f"One step of k for threads with tiles of C of different sizes, the column of A "
        f"left of the tile, the row of B above it. {words}.",
    )


@style.styled
def quads(rows: int = 8, columns: int = 8, thread: int = 35) -> style.Figure:
    """Draw the elements of a block's tile that one thread of 16 × 16 owns, and those of its warp.

    A thread owns `rows` × `columns` elements, in quads of 4×4 that lie 64 apart. Raises ValueError
    unless both are multiples of 4 and `thread` is below 256.
    """
    if rows % FOUR or columns % FOUR or not 0 <= thread < 256:
        raise ValueError(
            f"wanted multiples of 4 and a thread below 256: {rows}, {columns}, {thread}"
        )
    height, width = 16 * rows, 16 * columns
    fig, ax = style.draw(4.3)
    strip, gap = 5, 3
    left = top = strip + gap
    style.bare(ax, left + width, top + height)
    lanes = range(thread // 32 * 32, thread // 32 * 32 + 32)
    style.frame(ax, 0, top, strip, height, style.A)
    style.frame(ax, left, 0, width, strip, style.B)
    style.frame(ax, left, top, width, height, style.C)
    across = [FOUR * (lane % 16) for lane in lanes]
    down = sorted({FOUR * (lane // 16) for lane in lanes})
    for y in range(0, height, 64):
        for x in range(0, width, 64):
            size = (max(across) + FOUR - min(across), down[-1] + FOUR - down[0])
            style.fill(ax, left + x + min(across), top + y + down[0], *size, style.C, 0.25)
            quad = (left + x + FOUR * (thread % 16), top + y + FOUR * (thread // 16))
            style.fill(ax, *quad, FOUR, FOUR, style.INK, 1)
    for y in range(0, height, 64):
        style.fill(ax, 0, top + y + FOUR * (thread // 16), strip, FOUR, style.A, 1)
    for x in range(0, width, 64):
        style.fill(ax, left + x + FOUR * (thread % 16), 0, FOUR, strip, style.B, 1)
    ax.text(left + width / 2, top + height / 2, "C's tile", ha="center", va="center")
    ax.text(left + width, -1.5, "B's tile: one row of it", ha="right", va="bottom", fontsize=8)
    ax.text(0, top + height + 2, "A's: one column", ha="left", va="top", fontsize=8)
    count = (rows // FOUR) * (columns // FOUR)
    finding = f"Thread {thread} owns {count} quads of 4×4, and loads {rows} + {columns} elements"
    return style.conclude(
        fig,
        finding,
        f"A block's tile of C, {height} by {width}: black are the thread's quads, pale "
        "the elements of its warp. Left of it a column of A's tile, above it a row of B's, with "
        "what the thread loads from them for one k.",
    )
