"""Figures of chapter 12: shared memory of settings, pipelines, models, and a GPU under load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, MultipleLocator

from tiled_matmul.measure.under_load import Load
from tiled_matmul.microscope.table import plural
from tiled_matmul.plots import style

LOOKS = ((style.A, "-"), (style.OTHERS[1], (0, (4, 2))), (style.FAULT, "-"), (style.C, "-"))


@style.styled
def budget(
    settings: Mapping[str, tuple[float, float, int]], limit: float, finding: str
) -> style.Figure:
    """Draw the shared memory of each setting, tile by tile, and the limit of a block.

    `settings` maps a name to (KiB of a tile of A, KiB of a tile of B, number of each); `limit` is
    in KiB. `finding` is the title. Raises ValueError without settings.
    """
    if not settings:
        raise ValueError("there are no settings")
    fig, ax = style.draw(1.2 + 0.36 * len(settings))
    totals = {name: (a + b) * count for name, (a, b, count) in settings.items()}
    for line, (name, (a, b, count)) in enumerate(settings.items()):
        total = totals[name]
        edge = {"edgecolor": "none"} if total <= limit else {"edgecolor": style.FAULT, "lw": 1.2}
        ax.text(0, line - 0.05, name, va="bottom", fontsize=8)
        for stage in range(count):
            for left, size, color in ((0, a, style.A), (a, b, style.B)):
                box = ((a + b) * stage + left + 0.6, line + 0.02), size - 1.2, 0.28
                ax.add_patch(Rectangle(*box, facecolor=color, alpha=0.75, **edge))
        ax.text(total + 3, line + 0.16, f"{total:.0f}", va="center", fontsize=8)
    ax.axvline(limit, color=style.MUTED, ls="--", lw=1)
    ax.text(limit + 3, -0.75, f"{limit:.0f}", va="bottom", fontsize=8)
    most = max(limit, *totals.values())
    label = "KiB of shared memory; blue: tiles of A, orange: of B"
    style.line_axis(ax, len(settings) - 0.4, -1.3, label, xlim=(0, most * 1.12))
    spoken = "; ".join(
        f"{name}: {count} times {a:.0f} and {b:.0f} KiB, {totals[name]:.0f} in all"
        for name, (a, b, count) in settings.items()
    )
    return style.conclude(fig, finding, f"{spoken}. A block may have {limit:.0f} KiB.")


class Turn(NamedTuple):
    """The (begin, end) of one step's copy and product, in units of a product's time."""

    copied: tuple[float, float]
    multiplied: tuple[float, float]


def pipeline(stages: int, copy: float, steps: int) -> list[Turn]:
    """Return the steps of a loop whose copies take `copy` times as long as a product.

    The order is Triton's. With one stage, each step is copied and then multiplied. With more, a
    product begins after its copy and the previous product; then that product's buffer is free, and
    the copy for the step stages - 1 later begins. Copies do not slow each other down. Raises
    ValueError for fewer than one stage or step, or a copy that takes no time.
    """
    if stages < 1 or steps < 1 or not copy > 0:
        raise ValueError(f"no pipeline of {stages} stages, {steps} steps, copies of {copy}")
    turns: list[Turn] = []
    for k in range(steps):
        ahead = max(1, stages - 1)
        begun = turns[k - ahead].multiplied[stages == 1] if k >= ahead else 0.0
        copied = begun + copy
        start = max(copied, turns[k - 1].multiplied[1] if k else 0.0)
        turns.append(Turn((begun, copied), (start, start + 1.0)))
    return turns


@style.styled
def pipelines(stages: Sequence[int], copy: float, steps: int, finding: str) -> style.Figure:
    """Draw the first steps of loops with these numbers of stages, up to the time 8.

    The unit is a product's time; a copy takes `copy` units. Raises ValueError as `pipeline`.
    """
    until = 8.0
    fig, axes = style.draw(0.8 + 1.1 * len(stages), len(stages), sharex=True, squeeze=False)
    spoken = []
    for ax, count in zip(axes[:, 0], stages, strict=True):
        turns = pipeline(count, copy, steps)
        for k, turn in enumerate(turns):
            line = k % count
            for (start, end), y, high, color in (
                (turn.copied, line / count, 1 / count, style.B),
                (turn.multiplied, 1.15, 0.85, style.C),
            ):
                box = (start + 0.03, y + 0.04), end - start - 0.06, high - 0.08
                ax.add_patch(Rectangle(*box, facecolor=color, alpha=0.7, lw=0))
                if start < until - 0.4:
                    middle = (start + min(end, until)) / 2
                    words = {"ha": "center", "va": "center", "fontsize": 7}
                    ax.text(middle, y + high / 2, f"{k + 1}", **words)
        style.line_axis(ax, 2.1, -0.1, "", xlim=(0, until))
        name = plural(count, "stage")
        style.panel_title(ax, name)
        each = turns[-1].multiplied[1] - turns[-2].multiplied[1] if steps > 1 else 1 + copy
        spoken.append(f"{name}: a step takes {each:.3g}")
    axes[-1, 0].set_xlabel("time, in products; orange: copies, green: products")
    return style.conclude(fig, finding, f"A copy takes {copy:g} products. {'; '.join(spoken)}.")


@style.styled
def against(shapes: Mapping[str, Mapping[str, tuple[float, float]]], finding: str) -> style.Figure:
    """Draw for each shape the predicted and the measured time of each setting.

    `shapes` maps a shape to {setting: (model, clock)}, with the same settings for all; both are
    drawn as multiples of the least of their shape. `finding` is the title. Raises ValueError
    without shapes or for different settings.
    """
    names = [list(times) for times in shapes.values()]
    if not names or not names[0] or any(each != names[0] for each in names):
        raise ValueError(f"shapes need the same settings, got {names}")
    fig, axes = style.draw(1.5 + 0.4 * len(names[0]), 1, len(shapes), sharey=True, squeeze=False)
    ratios = {}
    for shape, times in shapes.items():
        least = [min(pair[i] for pair in times.values()) for i in (0, 1)]
        ratios[shape] = {name: (x / least[0], y / least[1]) for name, (x, y) in times.items()}
    most = max(value for pairs in ratios.values() for pair in pairs.values() for value in pair)
    for number, (ax, (shape, pairs)) in enumerate(zip(axes[0], ratios.items(), strict=True)):
        for line, (name, (model, clock)) in enumerate(pairs.items()):
            if not number:
                ax.text(1, line - 0.1, name, va="bottom", fontsize=8)
            ax.plot([model, clock], [line + 0.15] * 2, color=style.MUTED, lw=1)
            ax.plot(model, line + 0.15, "o", color=style.INK, mfc="none", ms=6)
            ax.plot(clock, line + 0.15, "o", color=style.A, ms=4.5)
        ax.axvline(1, color=style.MUTED, ls="--", lw=0.8)
        style.line_axis(ax, len(pairs) - 0.5, -0.8, "times the least", xlim=(0.9, most * 1.06))
        ax.xaxis.set_major_locator(MultipleLocator(1 if most > 2.6 else 0.5))
        style.panel_title(ax, shape)
    axes[0, 0].plot([], [], "o", color=style.INK, mfc="none", ms=6, label="model")
    axes[0, 0].plot([], [], "o", color=style.A, ms=4.5, label="clock")
    fig.legend(loc="outside lower center", ncols=2, fontsize=8)
    spoken = ". ".join(
        f"{shape}: "
        + "; ".join(f"{n}, model {x:.2f}, clock {y:.2f}" for n, (x, y) in pairs.items())
        for shape, pairs in ratios.items()
    )
    return style.conclude(fig, finding, f"Times the least of each shape. {spoken}.")


@style.styled
def loads(runs: Mapping[str, Load], finding: str) -> style.Figure:
    """Draw a GPU's clock and power over the time of each run, as the driver reported them.

    At most len(LOOKS) runs are drawn. `finding` is the title. Raises ValueError if the driver did
    not report both for any run.
    """
    reported = {
        name: [s for s in run.samples if s.clock_mhz is not None and s.watts is not None]
        for name, run in runs.items()
    }
    reported = {name: samples for name, samples in reported.items() if samples}
    if not reported:
        raise ValueError("the driver reported no clock and no power")
    fig, (above, below) = style.draw(4.2, 2, sharex=True)
    for (name, samples), (color, dashes) in zip(reported.items(), LOOKS, strict=False):
        at = [sample.at_s for sample in samples]
        look = {"color": color, "ls": dashes, "lw": 1.5}
        above.plot(at, [sample.clock_mhz for sample in samples], label=name, **look)
        below.plot(at, [sample.watts for sample in samples], **look)
    limits = {run.limit_watts for run in runs.values()} - {None}
    for watts in limits:
        below.axhline(watts, color=style.MUTED, ls="--", lw=1)
    end = max(sample.at_s for samples in reported.values() for sample in samples)
    above.set(xlim=(0, end), ylabel="clock (MHz)")
    above.yaxis.set_major_locator(MaxNLocator(5))
    top = max([*limits, *(sample.watts for each in reported.values() for sample in each)])
    below.set(ylim=(0, top * 1.08), ylabel="power (W)", xlabel="seconds")
    fig.legend(loc="outside lower center", ncols=len(reported), fontsize=8)
    spoken = "; ".join(
        f"{name}: from {samples[0].clock_mhz:.0f} MHz and {samples[0].watts:.0f} W to "
        f"{samples[-1].clock_mhz:.0f} MHz and {samples[-1].watts:.0f} W"
        for name, samples in reported.items()
    )
    limit = f" The limit is {max(limits):.0f} W." if limits else ""
    return style.conclude(fig, finding, f"Over {end:.1f} seconds. {spoken}.{limit}")
