"""What a launcher with an epilogue needs besides the others': its tiling, and ways to a matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tiled_matmul.kit.arguments import positive
from tiled_matmul.kit.programs import check_blocks, check_group, cover, describe
from tiled_matmul.machine.device import shared_limit

HOPPER = (9, 0)
BARRIERS = 1024  # bytes of shared memory for more than tiles
ACTIVATIONS = ("gelu", "gelu_erf", "gelu_tanh", "relu", "silu")
PIECES = (1, 2, 4)
FEWEST_COLUMNS = 16  # of a piece


@dataclass(frozen=True)
class Tiling:
    """How C is cut into tiles, and who makes them.

    `block`, `num_warps`, `num_stages` and `group_m` are those of the other rungs. K is cut into
    `splits` parts. `resident` programs stay on each multiprocessor and take tile after tile, in
    one loop of tiles and steps if `flatten`; with 0 each tile has a program of its own. A tile is
    finished in `pieces` of its columns. Rows of a and b are read by descriptors, or with `pointers`
    by pointers; those of C and the residual by descriptors if `described` and one fits. With
    `turned`, the transpose of C is made from those of b and a.
    """

    block: tuple[int, int, int]
    num_warps: int = 4
    num_stages: int = 3
    group_m: int = 8
    splits: int = 1
    resident: int = 0
    flatten: bool = False
    pieces: int = 1
    pointers: bool = False
    described: bool = False
    turned: bool = False

    def fitting(self, bytes_each: int, beside: int) -> Tiling:
        """Return this tiling with as many stages as fit into shared memory, if it is `described`.

        A stage holds a tile of a and b, of `bytes_each` an element. Beside the stages there is room
        for a piece of C and of the residual, of `beside` bytes an element of both together.
        """
        rows, columns, depth = self.block
        stage = bytes_each * (rows + columns) * depth
        room = shared_limit(HOPPER) - BARRIERS - beside * rows * columns // self.pieces
        if not self.described or self.num_stages * stage <= room:
            return self
        return replace(self, num_stages=max(1, room // stage))

    def check(self, m: int, n: int) -> None:
        """Raise TypeError or ValueError unless C (M, N) can be cut so."""
        check_blocks(self.block, self.num_warps, self.num_stages)
        check_group(self.group_m, cover(m if self.turned else n, self.block[1]))
        positive("splits", self.splits)
        if self.resident != 0 or type(self.resident) is not int:
            positive("resident", self.resident)
        if self.pieces not in PIECES or self.block[1] // self.pieces < FEWEST_COLUMNS:
            known = ", ".join(map(str, PIECES))
            raise ValueError(
                f"pieces must be one of {known}, each of {FEWEST_COLUMNS} columns or more; "
                f"got {self.pieces!r} of {self.block[1]} columns"
            )


def activation_of(name: Any) -> str | None:
    """Return the name if it is one of ACTIVATIONS, or None; otherwise raise ValueError."""
    if name is not None and name not in ACTIVATIONS:
        raise ValueError(
            f"activation must be None or one of {', '.join(ACTIVATIONS)}; got {name!r}"
        )
    return name


def number(name: str, value: Any) -> float:
    """Return a number as a float. Raises TypeError for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def operand(x: Any, rows: int, columns: int, pointers: bool) -> tuple[Any, str]:
    """Return (descriptor or matrix, how its tiles are read: "rows", "columns" or "pointers")."""
    if pointers:
        return x, "pointers"
    tiles, transposed = describe(x, rows, columns)
    return tiles, "columns" if transposed else "rows"


def beside_tile(x: Any, rows: int, columns: int, fits: bool) -> tuple[Any, str]:
    """Return the same for a matrix of C's shape, or for None: a descriptor if one `fits`."""
    if x is None or not fits:
        return x, "pointers"
    return describe(x, rows, columns)[0], "rows"
