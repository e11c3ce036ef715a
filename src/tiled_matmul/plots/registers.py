"""Figures of a thread's registers: its tile of C, its loads for one k, and the register banks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        style.matrix(ax, rows, 1, style.A, x=x, y=top, shade=0.75)
        style.matrix(ax, 1, columns, style.B, x=tile_x, shade=0.75)
        style.matrix(ax, rows, columns, style.C, x=tile_x, y=top, shade=0.75)
        loads, products = rows + columns, rows * columns
        ratios.append((rows, columns, loads, products))
        middle = (x + tile_x + columns) / 2
        text = f"{rows}×{columns}\n{loads} loads\n{products} products"
        ax.text(middle, tallest + top + 0.5, text, ha="center", va="top")
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
def quads() -> style.Figure:
    """Draw the elements of a block's tile that thread 35 of 16 × 16 owns, and those of its warp.

    A thread owns 8 × 8 elements, in quads of 4×4 that lie 64 apart.
    """
    edge, thread = 128, 35
    fig, ax = style.draw(4.3)
    strip, corner = 5, 8
    style.bare(ax, corner + edge, corner + edge)
    style.product_frames(ax, corner, strip, edge, edge)
    row, column = (corner + FOUR * place for place in divmod(thread, 16))
    first_row = corner + FOUR * (thread // 32 * 2)  # a warp has two rows of 16 threads
    for y in (0, 64):
        for x in (0, 64):
            style.fill(ax, corner + x, first_row + y, 64, 2 * FOUR, style.C, 0.25)
            style.fill(ax, column + x, row + y, FOUR, FOUR, style.INK, 1)
    for shift in (0, 64):
        style.fill(ax, 0, row + shift, strip, FOUR, style.A, 1)
    for shift in (0, 64):
        style.fill(ax, column + shift, 0, FOUR, strip, style.B, 1)
    ax.text(corner + edge / 2, corner + edge / 2, "C's tile", ha="center", va="center")
    ax.text(corner + edge, -1.5, "B's tile: one row of it", ha="right", va="bottom", fontsize=8)
    ax.text(0, corner + edge + 2, "A's: one column", ha="left", va="top", fontsize=8)
    finding = f"Thread {thread} owns 4 quads of 4×4, and loads 8 + 8 elements"
    return style.conclude(
        fig,
        finding,
        f"A block's tile of C, {edge} by {edge}: black are the thread's quads, pale "
        "the elements of its warp. Left of it a column of A's tile, above it a row of B's, with "
        "what the thread loads from them for one k.",
    )


BANKS = ("even", "odd")


@style.styled
def register_banks(found: Sequence[Any]) -> style.Figure:
    """Draw the operands of consecutive multiply-adds by register bank.

    `found` are `Operands` of the compiler's listing. An operand that is kept from the previous
    instruction is drawn as a frame. Raises ValueError without any.
    """
    if not found:
        raise ValueError("there is no multiply-add to draw")
    colors = style.OTHERS[:2]
    fig, ax = style.draw(0.7 + 0.3 * len(found))
    width, left = 1.2, 6.4
    style.bare(ax, left + 3 * width + 3.2, len(found))
    ax.set_aspect("auto")
    spoken = []
    for line, each in enumerate(found):
        ax.text(0, line + 0.5, each.text, va="center", family="monospace", fontsize=7)
        for place, register in enumerate(each.registers):
            x = left + place * width
            box, color = (x + 0.08, line + 0.12, width - 0.16, 0.76), colors[register % 2]
            if register in each.kept:
                style.frame(ax, *box, color)
            else:
                style.fill(ax, *box, color, 0.8)
            ax.text(x + width / 2, line + 0.5, f"R{register}", ha="center", va="center", fontsize=8)
        read = [register for register in each.registers if register not in each.kept]
        words = ", ".join(
            f"{count} {bank}"
            for number, bank in enumerate(BANKS)
            if (count := sum(register % 2 == number for register in read))
        )
        words += ": waits" if each.waits else ""
        look = {"color": style.FAULT} if each.waits else {}
        ax.text(left + 3 * width + 0.3, line + 0.5, words, va="center", fontsize=8, **look)
        spoken.append(f"{each.text}: reads {words}")
    waiting = sum(each.waits for each in found)
    finding = f"{waiting} of {len(found)} multiply-adds read three registers from one bank"
    return style.conclude(
        fig,
        finding,
        f"Operands by bank, even or odd; framed ones are kept from the line before. "
        f"{'; '.join(spoken)}.",
    )
