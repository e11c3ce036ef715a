"""A product over p ranks: what each receives and holds, and how long it takes.

Times come from three measured lines, each a fixed part and a rate: one GPU's products, and for each
way of transfer what a rank receives. Where a cut overlaps, the longer of a step's two parts counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import lcm

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
    if cut == "layered":
        return min(in_layers(layers, m, n, k, ranks, bytes_each) for layers in divisors(ranks))
    raise ValueError(f"there is no cut {cut!r}")


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, the smallest first."""
    return [x for x in range(1, number + 1) if number % x == 0]


def in_layers(layers: int, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
    """Return the bytes that each rank receives where each layer of ranks has a part of K.

    A layer is a grid as in SUMMA. Its partial sums of C are added to those of the other layers.
    This is the 2.5-D algorithm of Solomonik and Demmel, whose A and B begin where they are needed.
    """
    high, wide = grid_of(ranks // layers)
    sums = (layers - 1) / layers * m * n / (high * wide) * bytes_each
    return received("summa", m, n, k / layers, ranks // layers, bytes_each) + sums


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

    NCCL's transfers run on multiprocessors, and a product has them all: one waits for the other.
    Only what copy engines pull overlaps.
    """

    product: Line
    transfers: Mapping[str, Line]
    memory: float

    def us(self, cut: str, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
        """Return the microseconds of a cut. Raises ValueError for an unknown one."""
        moved = received(cut, m, n, k, ranks, bytes_each)
        flops = 2 * m * n * k / ranks
        if ranks == 1 or cut in STILL:
            return self.product.us(flops)
        if cut == "pulled":
            return self._pulled(flops / ranks, moved / (ranks - 1), ranks)
        if cut == "summa":
            return self._summa(m, n, k, ranks, bytes_each)
        if cut == "layered":
            return min(self._layered(x, m, n, k, ranks, bytes_each) for x in divisors(ranks))
        steps = ranks if cut in ("ring", "ring_of_sums") else 1
        took = steps * self.product.us(flops / steps)
        if cut == "inner":
            return took + self.transfers["reduced"].us(moved)
        if cut == "ring":
            return took + (ranks - 1) * self.transfers["passed on"].us(moved / (ranks - 1))
        if cut == "ring_of_sums":  # and what came is added: two reads and a write
            added = 3 * bytes_each * m * n / ranks / self.memory
            step = self.transfers["passed on"].us(moved / (ranks - 1)) + added
            return took + (ranks - 1) * step
        return took + self.transfers["gathered"].us(moved)

    def _summa(self, m: int, n: int, k: int, ranks: int, bytes_each: int) -> float:
        """Return the microseconds of SUMMA: panels are sent one after the other, then multiplied.

        A broadcast uses a link in one direction only. C is kept in float32: set to zero, read and
        written for each panel, rounded at the end.
        """
        high, wide = grid_of(ranks)
        panels = lcm(high, wide)
        a_panel, b_panel = (x * k / panels * bytes_each for x in (m / high, n / wide))
        step = (
            self.product.us(2 * m * n * k / ranks / panels) + 2 * (a_panel + b_panel) / self.memory
        )
        for panel, group in ((a_panel, wide), (b_panel, high)):
            step += self.transfers["passed on"].us(panel) if group > 1 else 0
        of_c = m * n / ranks
        step += (2 * 4 + bytes_each) * of_c / self.memory
        return panels * step + (2 * 4 + bytes_each) * of_c / self.memory

    def _layered(self, layers: int, m: int, n: int, k: int, ranks: int, bytes_each: int) -> float:
        """Return the microseconds of SUMMA in each of so many layers, and of adding their sums."""
        part = k / layers
        if ranks == layers:
            took = self.product.us(2 * m * n * part)
        else:
            took = self._summa(m, n, part, ranks // layers, bytes_each)
        if layers == 1:
            return took
        sums = in_layers(layers, m, n, k, ranks, bytes_each)
        sums -= received("summa", m, n, part, ranks // layers, bytes_each)
        return took + self.transfers["gathered"].us(sums)

    def _pulled(self, flops: float, part: float, ranks: int) -> float:
        """Return the microseconds where each part is multiplied as soon as it is there."""
        took = self.product.us(flops)
        for step in range(1, ranks):
            arrived = self.transfers["pulled"].us(step * part)
            took = max(took, arrived) + self.product.us(flops)
        return took

    def bound(self, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
        """Return the longer of the product and of the transfer that `pulled` overlaps."""
        moved = received("pulled", m, n, k, ranks, bytes_each)
        return max(self.product.us(2 * m * n * k / ranks), self.transfers["pulled"].us(moved))
