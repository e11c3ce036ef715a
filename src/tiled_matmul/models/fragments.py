"""The fragment layouts of `mma.sync.m16n8k16` and `wgmma.m64nNk16`: who holds which elements.

One `mma.sync` multiplies 16×16 elements of A by 16×8 of B and adds the product to 16×8 sums.
Each of the warp's 32 lanes holds 8 elements of A, 4 of B and 4 sums in its registers.
The sums of a `wgmma` are rows of such fragments: each of its four warps holds 16 of 64 rows.
`swizzled` is the layout of the tiles in shared memory that `wgmma` reads.
Source: NVIDIA, PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "Register
Fragments for wgmma.mma_async.m64nNk16", "Swizzling Modes".
"""

from __future__ import annotations

LANES = 32
SHAPES = {"A": (16, 16), "B": (16, 8), "C": (16, 8)}  # rows and columns


def held(operand: str, lane: int) -> list[tuple[int, int]]:
    """Return the (row, column) pairs of an operand that a lane holds, in register order.

    `operand` is "A", "B" or "C", `lane` is 0 to 31. Raises ValueError for others.
    """
    if operand not in SHAPES or not 0 <= lane < LANES:
        raise ValueError(f"an operand is A, B or C and a lane 0 to 31, got {operand!r}, {lane!r}")
    group, place = divmod(lane, 4)
    if operand == "B":
        return [(2 * place + i % 2 + i // 2 * 8, group) for i in range(4)]
    below = [(group + i // 2 % 2 * 8, 2 * place + i % 2 + i // 4 * 8) for i in range(8)]
    return below if operand == "A" else below[:4]


def sums_of(thread: int, columns: int = 64) -> list[tuple[int, int]]:
    """Return the (row, column) pairs of a 64 × `columns` `wgmma` result that a thread holds.

    `thread` is 0 to 127, `columns` a positive multiple of 8. Raises ValueError for others.
    """
    if not 0 <= thread < 4 * LANES or columns < 1 or columns % 8:
        raise ValueError(
            f"a thread is 0 to 127 and columns a multiple of 8, got {thread!r}, {columns!r}"
        )
    warp, lane = divmod(thread, LANES)
    return [
        (16 * warp + row, left + column)
        for left in range(0, columns, 8)
        for row, column in held("C", lane)
    ]


def swizzle(address: int, bits: int, base: int, shift: int) -> int:
    """Return the byte of shared memory at which a swizzle puts the byte `address`.

    The `bits` bits that lie `shift` above bit `base` are XORed into the bits from `base` on, as in
    CUTLASS's `Swizzle<bits, base, shift>`; with bytes for addresses, the 128-byte swizzle has 3, 4
    and 3. Raises ValueError unless 0 ≤ bits ≤ shift: otherwise two bytes could share a place.
    """
    if not 0 <= bits <= shift:
        raise ValueError(f"a swizzle of {bits} bits needs a shift of as many, got {shift}")
    return address ^ (address >> base + shift & (1 << bits) - 1) << base


def swizzled(row: int, chunk: int) -> int:
    """Return the place of a 16-byte chunk within its row of 128 bytes, in the 128-byte swizzle."""
    return swizzle(128 * row + 16 * chunk, 3, 4, 3) // 16 % 8
