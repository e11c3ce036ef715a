"""Figures of shapes: the last wave, K in parts, groups of warps, where time goes, and the climb.

Waves are drawn from the numbers of tiles and multiprocessors, as if all tiles took the same time.
The climb is drawn from records of `bench`, on the book's front page, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator, PercentFormatter

from tiled_matmul.ladder import LADDER
from tiled_matmul.measure.results import Record
from tiled_matmul.microscope.table import plural
from tiled_matmul.models.occupancy import REGISTERS
from tiled_matmul.models.waves import Waves
from tiled_matmul.plots import style
from tiled_matmul.plots.rates import rate_text, size_text, title_of

ROW = 0.37  # inches, of a bar and its name
BAR = 0.34  # of a row
LARGEST = 8192  # the largest edge at which the climb shows a rung
PARTS = {  # of a product's time
    "arithmetic": {"facecolor": style.C, "alpha": 0.6},
    "lower clock": {"facecolor": style.A, "alpha": 0.6},
    "edges": {"facecolor": style.B, "alpha": 0.75},
    "idle": {"facecolor": style.FAULT, "alpha": 0.8},
    "the rest": {"facecolor": "none", "edgecolor": style.MUTED, "hatch": "////"},
}


@style.styled
def tails(launches: Mapping[str, Waves], finding: str) -> style.Figure:
    """Draw each launch's tiles on the multiprocessors over time, one launch below the other.

    A tile is a bar, orange in a tail; the idle multiprocessors of the last wave are hatched.
    `finding` is the title. Raises ValueError without launches.
    """
    if not launches:
        raise ValueError("there is no launch to draw")
    fig, axes = style.draw(0.6 + 2 * len(launches), len(launches), sharex=True, squeeze=False)
    longest = max(waves.count for waves in launches.values())
    spoken = []
    for ax, (name, waves) in zip(axes[:, 0], launches.items(), strict=True):
        high = waves.multiprocessors
        for wave in range(waves.count):
            busy = waves.last if wave == waves.count - 1 else high
            look = {"facecolor": style.C if busy == high else style.B, "alpha": 0.55, "lw": 0}
            ax.add_patch(Rectangle((wave + 0.02, 0), 0.96, busy, **look))
            gaps = [y for line in range(1, busy) for y in (line, line, float("nan"))]
            ends = [wave + 0.02, wave + 0.98, wave + 0.98] * (busy - 1)
            ax.plot(ends, gaps, color=style.INK, lw=0.25, alpha=0.6)
        idle = high - waves.last
        if idle:
            look = {"fill": False, "edgecolor": style.FAULT, "lw": 1.2, "hatch": "///"}
            ax.add_patch(Rectangle((waves.count - 0.98, waves.last), 0.96, idle, **look))
        ax.set(xlim=(0, longest), ylim=(high, 0), yticks=(0, high), ylabel="multiprocessor")
        style.panel_title(ax, f"{name}: {waves.tiles} tiles, {waves.fill:.0%} busy")
        spoken.append(
            f"{name}: {waves.tiles} tiles on {high} multiprocessors, {plural(waves.count, 'wave')}"
            f", {idle} idle in the last one, {waves.fill:.0%} of the time used"
        )
    axes[-1, 0].set_xticks(range(longest + 1))
    axes[-1, 0].set_xlabel("time, in tiles")
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


@style.styled
def groups(held: Mapping[str, Mapping[str, int]], threads: int, finding: str) -> style.Figure:
    """Draw the registers of a program's groups of warps, one bar for each moment.

    `held` maps a moment to {task of a group: registers of each of its `threads`}. A task that
    begins with "copy" has the colour of copies, others that of products. `finding` is the title.
    Raises ValueError without moments, for moments with different groups, and for a number of
    registers that is 0 or more than a multiprocessor has.
    """
    if not held:
        raise ValueError("there is no moment to draw")
    names = [list(each) for each in held.values()]
    if any(each != names[0] for each in names):
        raise ValueError(f"the moments need the same groups, got {names}")
    for moment, registers in held.items():
        if min(registers.values(), default=0) < 1 or threads * sum(registers.values()) > REGISTERS:
            raise ValueError(f"{moment}: {threads} threads each cannot hold {registers}")
    fig, ax = style.draw(0.9 + 0.75 * len(held))
    spoken = []
    for line, (moment, registers) in enumerate(held.items()):
        left = 0
        for name, each in registers.items():
            look = {"color": style.B if name.startswith("copy") else style.C, "alpha": 0.6}
            wide = each * threads
            ax.barh(line + 0.15, wide - 300, 0.42, left=left + 150, **look)
            ax.text(left + wide / 2, line + 0.15, each, ha="center", va="center", fontsize=8.5)
            left += wide
        ax.text(0, line - 0.12, moment, va="bottom", fontsize=8.5)
        parts = ", ".join(f"{name} {each}" for name, each in registers.items())
        spoken.append(f"{moment}: {parts}, {left:,} in all")
    ax.axvline(REGISTERS, color=style.INK, ls="--", lw=0.8)
    label = "registers of a multiprocessor; in a bar: of each thread"
    style.line_axis(ax, len(held) - 0.5, -0.55, label, xlim=(0, REGISTERS * 1.03))
    ax.set_xticks([0, REGISTERS // 2, REGISTERS], ["0", f"{REGISTERS // 2:,}", f"{REGISTERS:,}"])
    for label, color in (("copy", style.B), ("multiply", style.C)):
        ax.bar(0, 0, color=color, alpha=0.6, label=label)
    fig.legend(loc="outside lower center", ncols=2, fontsize=8)
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


def ascent(records: Sequence[Record]) -> list[Record]:
    """Return the records of the climb: rungs that are faster than all before them, in order.

    Each device and dtype is a separate climb, which ends on the record of its library. A rung is
    shown at its largest square up to LARGEST; one without a record is left out.
    """
    way: list[Record] = []
    for device, dtype in dict.fromkeys((rung.device, rung.dtype) for rung in LADDER):
        squares = [r for r in records if r.dtype == dtype and r.m == r.n == r.k <= LARGEST]
        climbed: list[Record] = []
        for rung in LADDER:
            own = [r for r in squares if r.rung == rung.name]
            if (rung.device, rung.dtype) != (device, dtype) or not own:
                continue
            record = max(own, key=lambda r: r.n)
            if not climbed or record.tflops > climbed[-1].tflops:
                climbed.append(record)
        if climbed:
            last = climbed[-1]
            same = (last.baseline, last.n, last.gpu)
            climbed += [r for r in squares if (r.rung, r.n, r.gpu) == same]
        way += climbed
    return way


def climb_title(records: Sequence[Record]) -> str:
    """Return the title of `from_loops`: how many times faster the fastest rung is."""
    rates = [record.tflops for record in records if record.rung != record.baseline]
    times = float(f"{max(rates) / min(rates):.2g}")
    return f"From loops to tensor cores: {times:,.0f} times the rate"


@style.styled
def from_loops(records: Sequence[Record], finding: str) -> style.Figure:
    """Draw rates from the first loops to tensor cores as bars, on a logarithmic axis.

    The records may be of several sizes, dtypes and machines; a bar's colour stands for its dtype,
    and its size is written on it. `finding` is the title. Raises ValueError without records.
    """
    if not records:
        raise ValueError("there is no record to draw")
    rates = [record.tflops * 1e12 for record in records]
    dtypes = dict.fromkeys(record.dtype for record in records)
    colors = dict(zip(dtypes, (style.A, style.B, style.OTHERS[1], style.OTHERS[0]), strict=False))
    chapters = {rung.name: rung.chapter for rung in LADDER}
    fig, ax = style.draw(1.1 + ROW * len(records))
    low, high = 10 ** (len(f"{min(rates):.0f}") - 2), 4 * max(rates)
    spoken = []
    for line, (record, rate) in enumerate(zip(records, rates, strict=True)):
        library = record.rung == record.baseline
        color = style.C if library else colors[record.dtype]
        ax.barh(line + 0.2, rate - low, BAR, left=low, color=color, alpha=0.6)
        size = size_text(record)
        name = title_of(record.rung)
        if record.rung in chapters:
            name = f"{chapters[record.rung]}. {name}"
        elif library:
            name = f"{name}, {record.dtype}"
        ax.text(low, line, f" {name}", va="bottom", fontsize=8.5)
        ax.text(high, line, f"{rate_text(rate)}, {size}", va="bottom", ha="right", fontsize=8.5)
        spoken.append(f"{name}: {rate_text(rate)} in {record.dtype} at {size}")
    label = "rate, logarithmic; sizes and element types differ"
    style.line_axis(ax, len(records) - 0.4, -0.6, label, xscale="log", xlim=(low, high))
    ticks = {1e6: "1 MFLOP/s", 1e9: "1 GFLOP/s", 1e12: "1 TFLOP/s", 1e15: "1 PFLOP/s"}
    shown = [tick for tick in ticks if low <= tick <= high]
    ax.set_xticks(shown, [ticks[tick] for tick in shown])
    ax.xaxis.set_minor_locator(NullLocator())
    for label, color in (colors | {"a library": style.C}).items():
        ax.bar(0, 0, color=color, alpha=0.6, label=label)
    fig.legend(loc="outside lower center", ncols=len(dtypes) + 1, fontsize=8)
    return style.conclude(fig, finding, f"Sizes and element types differ. {'; '.join(spoken)}.")


@style.styled
def cuts(m: int, n: int, tiles: Mapping[str, tuple[int, int]], programs: int) -> style.Figure:
    """Draw an m × n matrix cut into tiles of (rows, columns), once for each of `tiles`.

    `programs` is how many run at a time: those of the first wave are coloured, later ones hatched.
    The matrix is drawn lying on its side if it is taller than wide.
    """
    turned = m > n
    fig, axes = style.draw(0.5 + 1.5 * len(tiles), len(tiles), squeeze=False)
    spoken = []
    for ax, (name, (rows, columns)) in zip(axes[:, 0], tiles.items(), strict=True):
        high, wide = (n, m) if turned else (m, n)
        step_y, step_x = (columns, rows) if turned else (rows, columns)
        corners = [(x, y) for x in range(0, wide, step_x) for y in range(0, high, step_y)]
        for number, (x, y) in enumerate(corners):
            size = min(step_x, wide - x), min(step_y, high - y)
            late = number >= programs
            look = {"facecolor": "none" if late else style.C, "alpha": 0.5, "lw": 0}
            ax.add_patch(Rectangle((x, y), *size, **look))
            edge = {"fill": False, "edgecolor": style.FAULT if late else style.INK, "lw": 0.6}
            ax.add_patch(Rectangle((x, y), *size, **edge, hatch="////" if late else None))
        style.bare(ax, wide, high)
        count = len(corners)
        text = f"{name}: {count} tiles, {min(count, programs)} of {programs} busy"
        text += f", {count - programs} too many" if count > programs else ""
        style.panel_title(ax, text)
        spoken.append(text)
    found = {len(range(0, m, r)) * len(range(0, n, c)): name for name, (r, c) in tiles.items()}
    best = max((count for count in found if count <= programs), default=None)
    title = f"{found[best]} make {best} tiles" if best else "No tiles fit into one wave"
    return style.conclude(fig, title, f"C of {m} by {n}, cut into tiles. {'; '.join(spoken)}.")


@style.styled
def account(shares: Mapping[str, Mapping[str, float]], finding: str) -> style.Figure:
    """Draw the parts of each product's time, with one bar for each product.

    `shares` maps a product's name to the shares of PARTS, which add up to 1. If the computed parts
    exceed the measured time, "the rest" is negative, and a mark is drawn at 1. `finding` is the
    title. Raises ValueError without products, or for other parts.
    """
    if not shares:
        raise ValueError("there is no product to draw")
    fig, ax = style.draw(1.15 + ROW * len(shares))
    spoken = []
    for line, (name, parts) in enumerate(shares.items()):
        if list(parts) != list(PARTS):
            raise ValueError(f"{name} must have the parts {', '.join(PARTS)}, got {list(parts)}")
        left = 0.0
        for part, share in parts.items():
            if share > 0:
                ax.barh(line + 0.2, share, BAR, left=left, **PARTS[part] | {"lw": 0})
                left += share
        if parts["the rest"] < 0:
            ax.vlines(1, line + 0.2 - BAR / 2, line + 0.2 + BAR / 2, color=style.INK, lw=1.5)
        ax.text(0, line, name, va="bottom", fontsize=8.5)
        spoken.append(f"{name}: " + ", ".join(f"{p} {s:.0%}" for p, s in parts.items()))
    style.line_axis(ax, len(shares) - 0.4, -0.6, "share of the profiled time", xlim=(0, None))
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    for part, look in PARTS.items():
        ax.bar(0, 0, label=part, **look | {"lw": 0})
    fig.legend(loc="outside lower center", ncols=3, fontsize=8)
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")
