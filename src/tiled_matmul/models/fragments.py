"""The fragment layout of `mma.sync.aligned.m16n8k16`: which lane of a warp holds which elements.

One such instruction multiplies 16×16 elements of A by 16×8 of B and adds the product to 16×8 sums.
Each of the warp's 32 lanes holds 8 elements of A, 4 of B and 4 sums in its registers.
Source: NVIDIA, PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
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
