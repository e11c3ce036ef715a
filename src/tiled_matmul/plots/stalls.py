"""Why the warps of each rung wait, from the profiler's counters."""

from __future__ import annotations

from collections.abc import Mapping

from tiled_matmul.plots import style

# Nsight Compute's reasons, in the words of the course.
REASONS = {
    "issuing an instruction": ("selected",),
    "ready, another warp is issued": ("not_selected",),
    "global memory": ("long_scoreboard", "lg_throttle"),
    "shared memory": ("short_scoreboard", "mio_throttle"),
    "a barrier": ("barrier",),
    "arithmetic pipes": ("math_pipe_throttle",),
    "other": ("wait", "dispatch_stall", "no_instruction"),
}
COLORS = (style.C, "#9BD3BF", style.A, style.B, style.FAULT, style.OTHERS[1], style.MUTED)


def cycles(counted: Mapping[str, float]) -> dict[str, float]:
    """Return {reason: cycles per issued instruction of a warp} of one launch.

    `counted` maps "stall_…" to Nsight Compute's warp cycles per issued instruction. Their sum is
    the mean number of cycles between two instructions of one warp.
    """
    return {
        reason: sum(counted[f"stall_{name}"] for name in names) for reason, names in REASONS.items()
    }


@style.styled
def stalls(launches: Mapping[str, Mapping[str, float]], finding: str) -> style.Figure:
    """Draw a bar for each launch: what a warp does between two of its instructions.

    `launches` maps a title to the counters of a launch, as `cycles` takes them. `finding` is the
    title. Raises ValueError without a launch.
    """
    if not launches:
        raise ValueError("there is no launch to draw")
    bars = {name: cycles(counted) for name, counted in launches.items()}
    longest = max(sum(bar.values()) for bar in bars.values())
    fig, ax = style.draw(1.6 + 0.5 * len(bars))
    for line, (name, bar) in enumerate(bars.items()):
        left = 0.0
        for (reason, length), color in zip(bar.items(), COLORS, strict=True):
            label = None if line else reason
            ax.barh(line, length, left=left, height=0.42, color=color, label=label)
            left += length
        style.note(ax, f"{name}: {left:.1f}", (0, line), (0, 9), va="bottom")
    style.line_axis(ax, len(bars) - 0.6, -0.8, "cycles", xlim=(0, longest * 1.02))
    fig.legend(loc="outside lower center", ncols=2, fontsize=8)
    words = "; ".join(
        f"{name}: " + ", ".join(f"{reason} {n:.1f}" for reason, n in bar.items() if n >= 0.05)
        for name, bar in bars.items()
    )
    return style.conclude(fig, finding, f"Cycles by reason. {words}.")
