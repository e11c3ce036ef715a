"""A product over p ranks: what each receives and holds, and how long it takes.

Times come from measured lines, each a fixed part and a rate: one GPU's products, what it copies and
adds in its own memory, and for each way of transfer what a rank receives. Where a cut overlaps, the
longer of a step's two parts counts.
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


# NCCL's channels for sends and receives where GPUs meet in an NVSwitch, and the most bytes that one
# of them sends as long as there are others.
CHANNELS, MOST_SENT = 32, 2**24


def channels(sent: float, ranks: int) -> int:
    """Return through how many channels one of so many ranks sends bytes to another, 1 MB or more.

    Each is a thread block on a multiprocessor. Ranks share them; for many bytes NCCL takes more.
    Source: NCCL's `scheduleP2pTasksToPlan` and `addP2pToPlan`.
    """
    count = CHANNELS
    while count * ranks > CHANNELS and count > 1:
        count //= 2
    while sent / count > MOST_SENT and count < CHANNELS:
        count *= 2
    return count


# The axis along which a rank has a part of A, of B and of C, in `many.cuts` too; None is all of it.
AXES: dict[str, tuple[int | str | None, ...]] = {
    "rows": (0, None, 0), "columns": (None, 1, 1),
    "inner": (1, 0, None), "scattered": (1, 0, 0),
    "gathered": (0, 1, 1), "ring": (0, 1, 1), "pulled": (0, 1, 1),
    "summa": ("grid", "grid", "grid"),
}  # fmt: skip
Span = tuple[int, int]  # of indices: the first, and the one after the last


@dataclass(frozen=True)
class Part:
    """Rows and columns of `matrix`, which is "A", "B" or "C"."""

    matrix: str
    rows: Span
    columns: Span


@dataclass(frozen=True)
class Arrival:
    """A part that a rank receives from `source`. Of C it has the sums of so many ranks added up."""

    part: Part
    source: int
    sums: int = 0


@dataclass(frozen=True)
class Product:
    """A product of A (rows, inner) and B (inner, columns), added to these rows and columns of C."""

    rows: Span
    columns: Span
    inner: Span


@dataclass(frozen=True)
class Step:
    """What one rank does at the same time: parts arrive, and a product is computed.

    The product uses what the rank had before this step. Sums are added to its own as they arrive.
    """

    arrives: tuple[Arrival, ...] = ()
    product: Product | None = None


def span(size: int, index: int, count: int) -> Span:
    """Return the indices of part `index` of `count` equal parts."""
    return size // count * index, size // count * (index + 1)


def parts(cut: str, m: int, n: int, k: int, ranks: int, rank: int) -> tuple[Part, Part, Part]:
    """Return a rank's parts of A and B at first, and its part of C at the end.

    Raises ValueError for an unknown cut or rank, and for sizes that the ranks do not divide evenly.
    """
    if cut not in AXES:
        raise ValueError(f"there is no cut {cut!r}; there are {', '.join(AXES)}")
    if not 0 <= rank < ranks:
        raise ValueError(f"there is no rank {rank}: the ranks are 0 to {ranks - 1}")
    for name, size, count in zip("MNK", (m, n, k), _counts(cut, ranks), strict=True):
        if size % count:
            raise ValueError(f"{name} = {size} does not divide into {count} equal parts")
    high, wide = grid_of(ranks)
    row, column = divmod(rank, wide)
    found = []
    for name, axis, height, width in zip("ABC", AXES[cut], (m, k, m), (k, n, n), strict=True):
        rows, columns = (0, height), (0, width)
        if axis == "grid":
            rows, columns = span(height, row, high), span(width, column, wide)
        elif axis == 0:
            rows = span(height, rank, ranks)
        elif axis == 1:
            columns = span(width, rank, ranks)
        found.append(Part(name, rows, columns))
    return found[0], found[1], found[2]


def _counts(cut: str, ranks: int) -> tuple[int, int, int]:
    """Return into how many equal parts a cut divides M, N and K."""
    if cut == "summa":
        high, wide = grid_of(ranks)
        return high, wide, lcm(high, wide)
    if cut in STILL:
        return (ranks, 1, 1) if cut == "rows" else (1, ranks, 1)
    return (ranks, ranks, 1) if cut in GATHERED else (ranks, 1, ranks)


def steps(cut: str, m: int, n: int, k: int, ranks: int, rank: int) -> list[Step]:
    """Return what arrives at a rank and what it computes, step by step, as `many.cuts` does it.

    A collective counts as its ring algorithm, as in `received`, with rows of C as the parts of an
    all-reduce. The copies of `pulled` may be ahead of its products; here each is as late as it may
    be. Raises ValueError as `parts` does.
    """
    a, b, c = parts(cut, m, n, k, ranks, rank)
    if cut in STILL:
        return [Step(product=Product(c.rows, c.columns, (0, k)))]
    if cut == "summa":
        return _panels(a, b, c, k, ranks, rank)
    before, others = (rank - 1) % ranks, range(1, ranks)

    def of_a(owner: int, source: int) -> Arrival:
        return Arrival(Part("A", span(m, owner % ranks, ranks), (0, k)), source)

    def of_c(owner: int, sums: int) -> Step:
        rows = Part("C", span(m, owner % ranks, ranks), (0, n))
        return Step((Arrival(rows, before, sums),))

    if cut in ("inner", "scattered"):
        found = [Step(product=Product((0, m), (0, n), a.columns))]
        found += [of_c(rank - step - 1, step) for step in others]
        return found + [of_c(rank - step, ranks) for step in others if cut == "inner"]
    if cut == "gathered":
        found = [Step((of_a(rank - step, before),)) for step in others]
        return [*found, Step(product=Product((0, m), c.columns, (0, k)))]
    found, by = [], -1 if cut == "ring" else 1
    for step in range(ranks):
        owner, after = rank + by * step, rank + by * (step + 1)
        source = before if cut == "ring" else after % ranks
        arrives = (of_a(after, source),) if step < ranks - 1 else ()
        found.append(Step(arrives, Product(span(m, owner % ranks, ranks), c.columns, (0, k))))
    return found


def _panels(a: Part, b: Part, c: Part, k: int, ranks: int, rank: int) -> list[Step]:
    """Return SUMMA's steps: for each panel its broadcasts, then its product."""
    high, wide = grid_of(ranks)
    row, column = divmod(rank, wide)
    panels, found = lcm(high, wide), []
    for panel in range(panels):
        inner = span(k, panel, panels)
        a_from, b_from = panel * wide // panels, panel * high // panels
        arrives = []
        if column != a_from:
            arrives.append(Arrival(Part("A", a.rows, inner), row * wide + a_from))
        if row != b_from:
            arrives.append(Arrival(Part("B", inner, b.columns), b_from * wide + column))
        found += [Step(tuple(arrives)), Step(product=Product(c.rows, c.columns, inner))]
    return found


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

    `transfers` has "gathered", "reduced" and "broadcast" of NCCL, and "pulled" by copy engines.
    `sends` from one rank to the next have a line for each number of channels. In a GPU's own memory
    something is "copied", or "added" to sums in float32: bytes read and written.

    NCCL's transfers run on multiprocessors, and a product has them all: one waits for the other.
    Only what copy engines pull overlaps.
    """

    product: Line
    transfers: Mapping[str, Line]
    sends: Mapping[int, Line]

    def us(self, cut: str, m: int, n: int, k: int, ranks: int, bytes_each: int = 2) -> float:
        """Return the microseconds of a cut. Raises ValueError for an unknown one."""
        moved = received(cut, m, n, k, ranks, bytes_each)
        flops = 2 * m * n * k / ranks
        if ranks == 1 or cut in STILL:
            return self.product.us(flops)
        if cut == "pulled":  # and a copy of the rank's own rows, for the others
            copied = self.transfers["copied"].us(2 * moved / (ranks - 1))
            return copied + self._pulled(flops / ranks, moved / (ranks - 1), ranks)
        if cut == "summa":
            return self._summa(m, n, k, ranks, bytes_each)
        if cut == "layered":
            return min(self._layered(x, m, n, k, ranks, bytes_each) for x in divisors(ranks))
        steps = ranks if cut in ("ring", "ring_of_sums") else 1
        took = steps * self.product.us(flops / steps)
        if cut == "inner":
            return took + self.transfers["reduced"].us(moved)
        if cut == "ring":
            return took + (ranks - 1) * self.passed_on(moved / (ranks - 1), ranks)
        if cut == "ring_of_sums":  # and what came is added: two reads and a write
            added = self.transfers["copied"].us(3 * bytes_each * m * n / ranks)
            step = self.passed_on(moved / (ranks - 1), ranks) + added
            return took + (ranks - 1) * step
        return took + self.transfers["gathered"].us(moved)

    def passed_on(self, sent: float, ranks: int) -> float:
        """Return the microseconds in which each rank sends bytes to the next.

        Fewer channels than were measured share the rate of the fewest that were.
        """
        count, fewest = channels(sent, ranks), min(self.sends)
        line = self.sends[max(count, fewest)]
        return line.us(sent * max(1, fewest / count))

    def _summa(self, m: int, n: int, k: int, ranks: int, bytes_each: int) -> float:
        """Return the microseconds of SUMMA: panels are sent one after the other, then multiplied.

        A broadcast uses a link in one direction only. C is kept in float32: set to zero, read and
        written for each panel, rounded at the end.
        """
        high, wide = grid_of(ranks)
        panels = lcm(high, wide)
        a_panel, b_panel = (x * k / panels * bytes_each for x in (m / high, n / wide))
        of_c, copied = m * n / ranks, self.transfers["copied"]
        step = self.product.us(2 * m * n * k / ranks / panels)
        for panel, group in ((a_panel, wide), (b_panel, high)):
            step += copied.us(2 * panel)
            step += self.transfers["broadcast"].us(panel) if group > 1 else 0
        step += self.transfers["added"].us((2 * 4 + bytes_each) * of_c)
        ends = copied.us(4 * of_c) + copied.us((4 + bytes_each) * of_c)
        return panels * step + ends

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
