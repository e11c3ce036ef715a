"""The whole climb in one figure: each rung's share of cuBLAS, and the counter that explains it.

Rates come from the records of `bench`; the counters come from runs under a profiler, at another
size, which the figure names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tiled_matmul.measure.counters import LadderCounters
from tiled_matmul.measure.results import Record
from tiled_matmul.plots import style
from tiled_matmul.plots.rates import PREFIXES, size_text, title_of


def _count(value: float) -> str:
    factor, prefix = next((pair for pair in PREFIXES if value >= pair[0]), PREFIXES[-1])
    return f"{value / factor:.3g} {prefix}".strip()


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
    "wavefronts_per_fma": ("shared wavefronts per multiply-add", _plain),
    "shared_wavefronts": ("shared wavefronts", _count),
    "instructions": ("instructions", _count),
    "instructions_per_fma": ("instructions per multiply-add", _plain),
    "stall_long_scoreboard": ("warps that wait for memory", _plain),
    "stall_short_scoreboard": ("warps that wait for shared memory", _plain),
    "stall_barrier": ("warps that wait at barriers", _plain),
    "stall_mio_throttle": ("warps that queue for shared memory", _plain),
    "registers": ("registers per thread", _plain),
    "shared_bytes": ("bytes of shared memory per block", _count),
    "occupancy_pct": ("of the warps that fit", _percent),
    "issue_pct": ("of cycles issue an instruction", _percent),
    "fma_pipe_pct": ("of multiply-add rate used", _percent),
}
# The counter that a rung improves; other rungs show how busy the arithmetic units are.
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
    explained_by: Mapping[str, str] = MappingProxyType({}),
    titles: Mapping[str, str] = MappingProxyType({}),
    notes: Mapping[str, str] = MappingProxyType({}),
) -> style.Figure:
    """Draw each record as a bar, its length the share of cuBLAS, a counter written on it.

    `records` are of one problem, in the order of the climb; the baseline may be among them, and
    ticks mark its rate. A rung shows its counter before (in the record above) and after.
    `explained_by` overrides EXPLAINED_BY for some rungs, `titles` what a rung is called, and
    `notes` are texts in place of counters. Raises ValueError without a rung, for records of several
    problems or of another machine than the counters, and for a counter that is not in WORDS or was
    not counted.
    """
    climbed = [record for record in records if record.rung != record.baseline]
    if not climbed:
        raise ValueError("there is no rung to draw")
    if len({(r.m, r.n, r.k, r.dtype, r.gpu) for r in records}) > 1:
        raise ValueError("a climb is of one problem on one machine, got records of several")
    if counters.gpu != records[0].gpu:
        raise ValueError(f"records of {records[0].gpu}, but counters of {counters.gpu}")
    chosen = EXPLAINED_BY | dict(explained_by)
    shares = [record.ratio for record in records]
    reach = max(1.0, *shares) * 1.01
    fig, ax = style.draw(HEAD + ROW * len(records))
    spoken = []
    above = None
    for line, record in enumerate(records):
        baseline = record.rung == record.baseline
        color = style.C if baseline else style.A
        ax.barh(line + 0.2, record.ratio, BAR, color=color, alpha=0.45)
        # Beside the bars only, so that no text is crossed out.
        ax.vlines(1, line + 0.2 - BAR / 2, line + 0.2 + BAR / 2, color=style.C, lw=2)
        name = titles.get(record.rung, title_of(record.rung))
        share = f"{100 * record.ratio:.3g}%"
        ax.text(0, line - 0.05, name, va="bottom", fontweight="bold")
        ax.text(reach, line - 0.05, share, va="bottom", ha="right")
        why = notes.get(record.rung) or explanation(
            counters, record.rung, None if baseline else above, chosen
        )
        ax.text(0.01 * reach, line + 0.2, why, va="center", fontsize=style.FONT_SIZE - 0.5)
        spoken.append(f"{name} {share} ({why})")
        above = record.rung
    ax.set(xlim=(0, reach), ylim=(len(records) - 0.4, -0.5), yticks=[])
    size, counted = size_text(records[0]), size_text(counters)
    other = "" if counted == size else f"; counters at {counted}"
    style.share_axis(ax, reach, f"share of cuBLAS's rate, {size}, {records[0].dtype}{other}")
    low, high = min(r.ratio for r in climbed), max(r.ratio for r in climbed)
    title = f"From {100 * low:.2g}% of cuBLAS to {100 * high:.3g}%, and what changed"
    return style.conclude(fig, title, f"{'; '.join(spoken)}.")


def explanation(
    counters: LadderCounters,
    rung: str,
    above: str | None = None,
    explained_by: Mapping[str, str] = EXPLAINED_BY,
) -> str:
    """Return a rung's counter in words, such as "sectors loaded: 34 G → 2.1 G".

    The first number is that of the rung `above`, if it has the counter. The text is "" for a rung
    without counters. Raises ValueError for a counter that is unknown or was not counted.
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
