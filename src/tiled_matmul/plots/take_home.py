"""Figures of chapter 16: where gradients flow, the three products of a layer, a block's work."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from tiled_matmul.plots import style

MIDDLE = {"ha": "center", "va": "center"}


@style.styled
def gradient_flow(finding: str) -> style.Figure:
    """Draw a product inside a model twice: as a kernel alone, and as an operator.

    Above, the gradient of the loss ends at the product; below, it reaches x and w. `finding` is the
    title.
    """
    fig, axes = style.draw(3.3, 2, 1)
    names = ("a launcher alone", "an operator")
    for ax, name, flows in zip(axes, names, (False, True), strict=True):
        style.panel_title(ax, name)
        _flow(ax, flows)
    return style.conclude(
        fig,
        finding,
        "Twice, x and w go into a product, and its result into a loss. Under a launcher alone, the "
        "gradient goes back from the loss to the product and ends there. Under an operator, it "
        "goes on to x and to w.",
    )


def _flow(ax: Axes, flows: bool) -> None:
    boxes = {
        "x": (0, 0, style.A),
        "w": (0, 2.2, style.B),
        "product": (4.4, 1.1, style.C),
        "loss": (9.2, 1.1, style.MUTED),
    }
    wide, high = 2.4, 1.2
    for name, (x, y, color) in boxes.items():
        style.fill(ax, x, y, wide, high, color, 0.25)
        style.frame(ax, x, y, wide, high, color)
        ax.text(x + wide / 2, y + high / 2, name, fontsize=9, **MIDDLE)
    for start, end in (("x", "product"), ("w", "product"), ("product", "loss")):
        (x0, y0, _), (x1, y1, _) = boxes[start], boxes[end]
        there, here = (0.75, 0.3) if start == "w" else (0.3, 0.75)  # parts of a box's height
        arrive, leave = {"x": (0.2, 0.42), "w": (0.8, 0.58)}.get(start, (there, here))
        _arrow(ax, (x0 + wide, y0 + there * high), (x1, y1 + arrive * high), style.INK)
        if flows or end == "loss":
            _arrow(ax, (x1, y1 + leave * high), (x0 + wide, y0 + here * high), style.FAULT)
    if not flows:
        ax.text(3.4, 1.7, "✗", fontsize=12, color=style.FAULT, **MIDDLE)
    ax.text(8.0, 0.75, "numbers", fontsize=7.5, **MIDDLE)
    ax.text(8.0, 2.75, "gradient", fontsize=7.5, color=style.FAULT, **MIDDLE)
    style.bare(ax, 11.8, 3.5)


def _arrow(ax: Axes, start: tuple, end: tuple, color: str) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 1, "shrinkB": 1, "lw": 1.1}
    ax.add_patch(FancyArrowPatch(start, end, color=color, **look))


@style.styled
def three_products(m: int, n: int, k: int, finding: str) -> style.Figure:
    """Draw c = a·b and both products of its gradient, each factor beside or above its result.

    a is m × k, b is k × n. `finding` is the title. Raises ValueError unless all are positive.
    """
    if min(m, n, k) < 1:
        raise ValueError(f"sizes must be positive, got {m}, {n} and {k}")
    a, b, g = ("a", style.A, m, k), ("b", style.B, k, n), ("g", style.C, m, n)
    turned_a, turned_b = ("aᵀ", style.A, k, m), ("bᵀ", style.B, n, k)
    shown = (
        ("c = a · b", a, b, ("c", style.C, m, n)),
        ("grad a = g · bᵀ", g, turned_b, ("grad a", style.A, m, k)),
        ("grad b = aᵀ · g", turned_a, g, ("grad b", style.B, k, n)),
    )
    fig, axes = style.draw(2.5, 1, 3)
    span = max(m + k, n + k, m + n) + 1
    for ax, (name, left, top, result) in zip(axes, shown, strict=True):
        style.panel_title(ax, name)
        wide, high = left[3], top[2]
        places = ((left, 0, high + 1), (top, wide + 1, 0), (result, wide + 1, high + 1))
        for (label, color, rows, columns), x, y in places:
            hatched = label.endswith("ᵀ")
            style.fill(ax, x, y, columns, rows, color, 0.55 if label == result[0] else 0.25)
            if hatched:
                look = {"fill": False, "edgecolor": color, "lw": 0, "hatch": "///"}
                ax.add_patch(Rectangle((x, y), columns, rows, **look))
            style.frame(ax, x, y, columns, rows, color)
            box = {"facecolor": "none", "edgecolor": "none", "pad": 0.5}
            label = f"{label}\n{rows}×{columns}"
            ax.text(x + columns / 2, y + rows / 2, label, fontsize=7.5, bbox=box, **MIDDLE)
        style.bare(ax, span, span)
    return style.conclude(
        fig,
        finding,
        f"Forward: c ({m} × {n}) is a ({m} × {k}) times b ({k} × {n}). Backward: with g, the "
        f"gradient of c ({m} × {n}), grad a is g times b transposed ({n} × {k}), and grad b is a "
        f"transposed ({k} × {m}) times g.",
    )


@style.styled
def work(products: Mapping[str, tuple[float, bool]], finding: str) -> style.Figure:
    """Draw the work of each product of a model as a bar.

    `products` maps names to (FLOPs, whether the product runs on the course's kernels). `finding`
    is the title. Raises ValueError without products.
    """
    if not products:
        raise ValueError("there is no product to draw")
    total = sum(flops for flops, _ in products.values())
    fig, ax = style.draw(0.9 + 0.32 * len(products))
    spoken = []
    for row, (name, (flops, ours)) in enumerate(products.items()):
        share = flops / total
        color, where = (style.C, "these kernels") if ours else (style.MUTED, "torch")
        ax.barh(row, 100 * share, 0.7, color=color, alpha=0.75)
        ax.text(100 * share + 0.7, row, f"{share:.0%}, {where}", fontsize=8, va="center")
        spoken.append(f"{name}: {share:.0%}, by {where}")
    ax.set_yticks(range(len(products)), list(products))
    ax.set(ylim=(len(products) - 0.5, -0.5), xlabel="share of the multiplications (%)")
    ax.set_xlim(0, 135 * max(flops for flops, _ in products.values()) / total)
    return style.conclude(fig, finding, f"{'; '.join(spoken)}.")
