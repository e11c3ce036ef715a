"""16.2, the work of a training step: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


def _summed(products: Callable) -> Callable:
    """Return the sum over the layers, of which one has products(trained, an earlier one is)."""

    def answer(rows: int, widths: list, frozen: list) -> int:
        total, before = 0, False
        for k, n, fixed in zip(widths, widths[1:], frozen, strict=False):
            total += products(not fixed, before) * 2 * rows * k * n
            before = before or not fixed
        return total

    return answer


step_flops = _summed(lambda trained, before: 1 + trained + before)


def _previous_only(rows: int, widths: list, frozen: list) -> int:
    total, before = 0, False
    for k, n, fixed in zip(widths, widths[1:], frozen, strict=False):
        total += (1 + (not fixed) + before) * 2 * rows * k * n
        before = not fixed
    return total


def _any(random: np.random.Generator) -> tuple:
    layers = int(random.integers(2, 7))
    widths = random.integers(1, 300, layers + 1).tolist()
    return int(random.integers(1, 100)), widths, (random.random(layers) < 0.5).tolist()


EXERCISE = Exercise(
    name="16.2",
    title="the work of a training step",
    points=3,
    entry="step_flops",
    parameters=("rows", "widths", "frozen"),
    kind="values",
    rules=VALUES,
    answer=step_flops,
    cases=(
        Call((32, [64, 256, 128, 32, 10], [True, False, True, False])),
        Call((32, [64, 256, 256, 10], [False, False, False])),
        Call((32, [64, 256, 256, 10], [True, True, False])),
        Call((32, [64, 256, 256, 10], [False, True, True])),
        *(Call(draw=_any) for _ in range(8)),
    ),
    slips=(
        Slip(
            _summed(lambda trained, before: 3),
            "three times",
            "That is three products for each layer, whether or not its gradients are needed.",
        ),
        Slip(
            _summed(lambda trained, before: 1),
            "forward",
            "That is the forward pass alone. What does the backward pass multiply?",
        ),
        Slip(
            _summed(lambda trained, before: trained + before),
            "backward",
            "That is the backward pass alone. Frozen layers are computed forward, too.",
        ),
        Slip(
            _summed(lambda trained, before: 2 + trained),
            "first input",
            "The gradient of a layer's input is counted even where no layer before it is trained.",
        ),
        Slip(
            _summed(lambda trained, before: 1 + 2 * trained),
            "own weight",
            "That is three products for a trained layer and one for a frozen one. But a gradient "
            "has to pass through a frozen layer if one before it is trained, and the first trained "
            "layer passes none on.",
        ),
        Slip(
            _summed(lambda trained, before: 1 + (1 + before) * trained),
            "blocked",
            "A frozen layer computes no gradient of its weight, but it passes that of its input "
            "on, if a layer before it is trained.",
        ),
        Slip(
            _previous_only,
            "previous only",
            "The gradient of an input is needed if *any* earlier layer is trained, rather than "
            "the one directly before it.",
        ),
        Slip(
            lambda rows, widths, frozen: step_flops(rows, widths, frozen) // 2,
            "half",
            "That is half of it: each multiplication goes with an addition.",
        ),
    ),
    hints={
        **{"three times": 2, "forward": 1, "backward": 1, "first input": 2, "own weight": 2},
        **{"blocked": 2, "previous only": 3, "half": 1, "nothing": 1, "value": 3},
        **{"forbidden": 3, "error": 3, "other": 3},
    },
)
