"""A product over p ranks: what each receives and holds, and how long it takes.

Times come from three measured lines, each a fixed part and a rate: one GPU's products, and for each
way of transfer what a rank receives. Where a cut overlaps, the longer of a step's two parts counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Cuts, as `many.cuts` names them, by what travels.
STILL, SUMMED, SCATTERED, GATHERED = (
    ("rows", "columns"), ("inner",), ("scattered", "ring_of_sums"), ("gathered", "ring", "pulled"),
)  # fmt: skip


def grid_of(ranks: int) -> tuple[int, int]:
    """Return the (rows, columns) of the squarest grid of so many ranks, not higher than wide."""
    high = max(h for h in range(1, ranks + 1) if ranks % h == 0 and h * h <= ranks)
    return high, ranks // high


def received(cut: str, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
    """Return the bytes that each rank receives for C (M, N) with K products each.

    A collective counts as its ring algorithm. Raises ValueError for an unknown cut.
    """
    others = (ranks - 1) / ranks
    if cut in STILL:
        return 0
    if cut in SUMMED:
        return 2 * others * m * n * bytes_each
    if cut in SCATTERED:
        return others * m * n * bytes_each
    if cut in GATHERED:
        return others * m * k * bytes_each
    if cut == "summa":
        high, wide = grid_of(ranks)
        of_a, of_b = (wide - 1) / wide * m / high * k, (high - 1) / high * k * n / wide
        return (of_a + of_b) * bytes_each
    raise ValueError(f"there is no cut {cut!r}")


def held(cut: str, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
    """Return the bytes of A and B that each rank holds before anything travels."""
    a, b = m * k, k * n
    if cut == "rows":
        a /= ranks
    elif cut == "columns":
        b /= ranks
    else:
        a, b = a / ranks, b / ranks
    return (a + b) * bytes_each


@dataclass(frozen=True)
class Line:
    """A time in microseconds: `fixed`, and an amount over `rate` amounts a microsecond."""

    fixed: float
    rate: float

    def us(self, amount: float) -> float:
        """Return the microseconds of an amount."""
        return self.fixed + amount / self.rate

    @classmethod
    def fitted(cls, points: Iterable[tuple[float, float]]) -> Line:
        """Return the line through (amount, microseconds) whose relative errors are the least.

        Raises ValueError for fewer than two amounts.
        """
        points = list(points)
        if len({amount for amount, _ in points}) < 2:
            raise ValueError(f"a line needs two amounts, got {points}")
        # Least squares of (fixed + slope · amount) / us - 1.
        ones = [(1 / us, amount / us) for amount, us in points]
        aa, ab, bb = (sum(x[i] * x[j] for x in ones) for i, j in ((0, 0), (0, 1), (1, 1)))
        ya, yb = sum(x[0] for x in ones), sum(x[1] for x in ones)
        det = aa * bb - ab * ab
        fixed, slope = (ya * bb - yb * ab) / det, (aa * yb - ab * ya) / det
        if fixed < 0:  # through the origin
            fixed, slope = 0.0, yb / bb
        return cls(fixed, 1 / slope)


@dataclass(frozen=True)
class Machine:
    """GPUs of one host: lines of `product` (operations) and of transfers (bytes received).

    `transfers` has "gathered" and "reduced" of NCCL, "passed on" from rank to rank, and "pulled"
    by copy engines. `memory` is a GPU's memory in bytes a microsecond.
    """

    product: Line
    transfers: Mapping[str, Line]
    memory: float

    def us(self, cut: str, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
        """Return the microseconds of a cut. Raises ValueError for an unknown one."""
        flops = 2 * m * n * k / ranks
        whole, piece = self.product.us(flops), self.product.us(flops / ranks)
        moved = received(cut, m, n, k, ranks, bytes_each)
        if ranks == 1 or cut in STILL:
            return whole
        each = moved / (ranks - 1)
        if cut == "inner":
            return whole + self.transfers["reduced"].us(moved)
        if cut == "scattered":
            return whole + self.transfers["gathered"].us(moved)
        if cut == "gathered":
            return self.transfers["gathered"].us(moved) + whole
        if cut == "ring":
            return (ranks - 1) * max(piece, self.transfers["passed on"].us(each)) + piece
        if cut == "ring_of_sums":
            # A step's transfer runs beside the next step's product, and then it is added.
            added = 3 * each / self.memory
            step = max(piece, self.transfers["passed on"].us(each)) + added
            return piece + (ranks - 1) * step
        if cut == "pulled":
            took = piece
            for step in range(1, ranks):
                arrived = self.transfers["pulled"].us(step * each)
                took = max(took, arrived) + piece
            return took
        high, wide = grid_of(ranks)
        panels = high * wide
        c = 4 * m * n / ranks
        step = self.product.us(flops / panels) + (2.5 * c) / self.memory
        return panels * (step + self.transfers["gathered"].us(moved / panels))

    def bound(self, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
        """Return the longer of the product and of the transfer that `pulled` overlaps."""
        moved = received("pulled", m, n, k, ranks, bytes_each)
        return max(self.product.us(2 * m * n * k / ranks), self.transfers["pulled"].us(moved))
