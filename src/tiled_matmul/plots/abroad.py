"""Figures of chapter 18: what the same tile reaches in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import Rectangle

from tiled_matmul.plots import style


@style.styled
def rates(
    found: Mapping[str, Sequence[tuple[str, float]]], baseline: str, finding: str
) -> style.Figure:
    """Draw groups of bars: {group: [(name, TFLOP/s)]}, the fastest of each group on top.

    `baseline` names the bar that the others are compared with, and `finding` is the title. Raises
    ValueError without bars, or without the baseline in a group.
    """
    if not found or not all(found.values()):
        raise ValueError(f"there is nothing to draw in {list(found)}")
    lines = sum(len(each) + 1 for each in found.values())
    fig, ax = style.draw(0.7 + 0.27 * lines)
    highest = max(rate for each in found.values() for _, rate in each)
    line, spoken = 0, []
    for group, bars in found.items():
        known = dict(bars)
        if baseline not in known:
            raise ValueError(f"{group} has no bar of {baseline!r}, only {', '.join(known)}")
        style.note(ax, group, (0, line), (2, 0), xycoords=("axes fraction", "data"), weight="bold")
        spoken.append(group)
        for name, rate in sorted(bars, key=lambda bar: -bar[1]):
            line += 1
            color = style.C if name == baseline else style.A
            ax.barh(line, rate, color=color, height=0.72, alpha=0.35)
            share = "" if name == baseline else f", {rate / known[baseline]:.2f}"
            style.note(ax, f"{name}: {rate:.3g}{share}", (0, line), (4, 0), va="center")
            spoken.append(f"{name} {rate:.3g} TFLOP/s{share}")
        line += 1
    words = f"TFLOP/s; after the comma, of {baseline}"
    style.line_axis(ax, line - 0.4, -0.6, words, xlim=(0, 1.04 * highest))
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")


WHO = ("you", "setting", "compiler")


@style.styled
def decisions(rows: Mapping[str, Mapping[str, str]], finding: str) -> style.Figure:
    """Draw a table of who decides: {language: {question: one of WHO}}, each answer in a colour.

    All languages have the same questions; `finding` is the title. Raises ValueError for no
    language, other questions, or another answer.
    """
    if not rows:
        raise ValueError("there is no language to draw")
    questions = list(next(iter(rows.values())))
    colors = dict(zip(WHO, (style.B, style.A, style.C), strict=True))
    fig, ax = style.draw(0.9 + 0.3 * len(rows))
    spoken = []
    for line, (language, answers) in enumerate(rows.items()):
        if list(answers) != questions or not set(answers.values()) <= set(WHO):
            raise ValueError(f"{language} answers {dict(answers)}, not {questions} by one of {WHO}")
        style.note(ax, language, (-0.1, line), (0, 0), ha="right", va="center")
        for column, who in enumerate(answers.values()):
            box = Rectangle((column + 0.03, line - 0.42), 0.94, 0.84)
            box.set(facecolor=colors[who], alpha=0.35)
            ax.add_patch(box)
            style.note(ax, who, (column + 0.5, line), (0, 0), ha="center", va="center", fontsize=7)
        spoken.append(f"{language}: " + ", ".join(f"{q} {who}" for q, who in answers.items()))
    for column, question in enumerate(questions):
        words = question.replace(" ", "\n", 1)
        style.note(ax, words, (column + 0.5, -0.6), (0, 0), ha="center", va="bottom", fontsize=8)
    ax.set(xlim=(-1.6, len(questions)), ylim=(len(rows) - 0.4, -1.6))
    ax.axis("off")
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")
