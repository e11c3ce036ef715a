"""The whole climb in one figure: each rung's share of cuBLAS, and the counter that explains it.

Rates are the bench's records; the counters come from runs under a profiler, at a size of their own,
which the figure names. Nothing is drawn that is in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tiled_matmul.measure.counters import LadderCounters
from tiled_matmul.measure.results import Record
from tiled_matmul.plots import style
from tiled_matmul.plots.rates import PREFIXES, title_of


def _count(value: float) -> str:
    factor, prefix = next((pair for pair in PREFIXES if value >= pair[0]), PREFIXES[-1])
    return f"{value / factor:.3g}{' ' * bool(prefix)}{prefix}"


def _plain(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.0f}%"


# A counter in words, and how its number is written.
WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "sectors_per_load": ("sectors for each load", _plain),
    "load_sectors": ("sectors loaded", _count),
    "dram_bytes": ("bytes from and to memory", _count),
    "conflicts": ("bank conflicts", _count),
    "wavefronts_per_fma": ("shared wavefronts a multiply-add", _plain),
    "shared_wavefronts": ("shared wavefronts", _count),
    "instructions": ("instructions", _count),
    "instructions_per_fma": ("instructions a multiply-add", _plain),
    "stall_long_scoreboard": ("warps that wait for memory", _plain),
    "stall_short_scoreboard": ("warps that wait for shared memory", _plain),
    "stall_barrier": ("warps that wait at barriers", _plain),
    "stall_mio_throttle": ("warps that queue for shared memory", _plain),
    "registers": ("registers a thread", _plain),
    "shared_bytes": ("bytes of shared memory a block", _count),
    "occupancy_pct": ("of the warps that fit", _percent),
    "issue_pct": ("of cycles issue an instruction", _percent),
    "fma_pipe_pct": ("of multiply-add rate used", _percent),
}
# The counter that a step was made for; any other step shows how busy the arithmetic is.
EXPLAINED_BY = {
    "cuda_naive": "sectors_per_load",
    "cuda_coalesced": "sectors_per_load",
    "cuda_puzzle": "load_sectors",
    "cuda_article": "conflicts",
    "cuda_supersteps": "stall_barrier",
    "cuda_shared_16": "load_sectors",
    "cuda_shared_32": "load_sectors",
    "cuda_padded": "conflicts",
    "cuda_transposed_tn": "sectors_per_load",
    "cuda_transposed_nt": "sectors_per_load",
    "cuda_transposed_tt": "sectors_per_load",
    "cuda_thread_tile_1d": "wavefronts_per_fma",
    "cuda_thread_tile_2d": "wavefronts_per_fma",
    "cuda_vectorised": "instructions_per_fma",
    "cuda_double_buffer": "stall_long_scoreboard",
    "cuda_unrolled": "instructions_per_fma",
    "cuda_warp_tiles": "wavefronts_per_fma",
    "cuda_async": "stall_long_scoreboard",
}
OTHERWISE = ("fma_pipe_pct", "instructions_per_fma")
ROW, HEAD = 0.44, 0.75  # inches
BAR = 0.42  # of a row


@style.styled
def climb(
    records: Sequence[Record],
    counters: LadderCounters,
    finding: str | None = None,
    explained_by: Mapping[str, str] | None = None,
) -> style.Figure:
    """Draw each record as a bar, its length the share of cuBLAS, a counter written on it.

    `records` are of one problem, in the order of the climb; the baseline may be among them, and
    ticks mark its rate. A step shows its counter before (of the record above) and after.
    `explained_by` names another counter for a rung than EXPLAINED_BY does. Raises ValueError for no
    rung, records of several problems or of other machines than the counters, or a counter that
    WORDS or the file does not have.
    """
    climbed = [record for record in records if record.rung != record.baseline]
    if not climbed:
        raise ValueError("there is no rung to draw")
    if len({(r.m, r.n, r.k, r.dtype, r.gpu) for r in records}) > 1:
        raise ValueError("a climb is of one problem on one machine, got records of several")
    if counters.gpu != records[0].gpu:
        raise ValueError(f"records of {records[0].gpu}, but counters of {counters.gpu}")
    chosen = EXPLAINED_BY | dict(explained_by or {})
    shares = [record.ratio for record in records]
    reach = max(1.0, *shares) * 1.01
    fig, ax = style.draw(HEAD + ROW * len(records))
    spoken = []
    above: str | None = None
    for line, record in enumerate(records):
        baseline = record.rung == record.baseline
        color = style.C if baseline else style.A
        ax.barh(line + 0.2, record.ratio, BAR, color=color, alpha=0.45)
        # Beside the bars only, so that no text is crossed out.
        ax.vlines(1, line + 0.2 - BAR / 2, line + 0.2 + BAR / 2, color=style.C, lw=2)
        name = title_of(record.rung)
        share = f"{100 * record.ratio:.3g}%"
        ax.text(0, line - 0.05, name, va="bottom", fontweight="bold", color=style.INK)
        ax.text(reach, line - 0.05, share, va="bottom", ha="right", color=style.INK)
        why = explanation(counters, record.rung, None if baseline else above, chosen)
        ax.text(
            0.01 * reach,
            line + 0.2,
            why,
            va="center",
            color=style.INK,
            fontsize=style.FONT_SIZE - 0.5,
        )
        spoken.append(f"{name} {share} ({why})")
        above = record.rung
    ax.set(xlim=(0, reach), ylim=(len(records) - 0.4, -0.5), yticks=[])
    ticks = [tick / 4 for tick in range(int(reach * 4) + 1)]
    ax.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    ax.spines["left"].set_visible(False)
    size = _size(records[0].m, records[0].n, records[0].k)
    counted = _size(counters.m, counters.n, counters.k)
    there = "" if counted == size else f"; counters at {counted}"
    ax.set_xlabel(f"share of cuBLAS's rate, {size}, {records[0].dtype}{there}")
    low, high = min(r.ratio for r in climbed), max(r.ratio for r in climbed)
    title = finding or f"From {100 * low:.2g}% of cuBLAS to {100 * high:.3g}%, and what changed"
    style.title(fig, title)
    return style.finish(fig, f"{title}. {'; '.join(spoken)}.")


def explanation(
    counters: LadderCounters,
    rung: str,
    above: str | None = None,
    explained_by: Mapping[str, str] = EXPLAINED_BY,
) -> str:
    """Return a rung's counter in words, "sectors loaded 34 G → 2.1 G" with that of `above` first.

    A rung without counters gets "". Raises ValueError for a counter that is not known, or that was
    not counted of a rung.
    """
    if rung not in counters:
        return ""
    there = next((name for name in OTHERWISE if name in counters[rung]), OTHERWISE[-1])
    name = explained_by.get(rung, there)
    if name not in WORDS:
        raise ValueError(f"no words for the counter {name!r}; there are {', '.join(WORDS)}")
    words, text = WORDS[name]
    value = text(counters[rung][name])
    before = ""
    if above is not None and above in counters and name in counters[above]:
        before = f"{text(counters[above][name])} → "
    if text is _percent:
        return f"{before}{value} {words}"
    return f"{words}: {before}{value}"


def _size(m: int, n: int, k: int) -> str:
    return f"{m}³" if m == n == k else f"{m}×{n}×{k}"
