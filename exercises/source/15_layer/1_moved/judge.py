"""15.1, the bytes of an epilogue: what is asked for, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip

ACTIVATIONS = ("gelu", "relu", "silu")
STEPS = ("bias", "scale", "residual", *ACTIVATIONS)


def _operands(m: int, n: int, steps: tuple) -> int:
    return sum({"bias": n, "scale": m, "residual": m * n}.get(step, 0) for step in steps)


def moved(m: int, n: int, k: int, steps: tuple, each: int) -> tuple[int, int]:
    """Return the bytes that separate kernels move, and those of a fused one."""
    fused = m * k + k * n + m * n + _operands(m, n, steps)
    return (fused + 2 * m * n * len(steps)) * each, fused * each


def _off(elements: Callable) -> tuple[Callable, Callable]:
    """Return the first and the second value, if elements(m, n, k, steps) are missing there."""

    def value(place: int) -> Callable:
        def answer(m: int, n: int, k: int, steps: tuple, each: int) -> int:
            return moved(m, n, k, steps, each)[place] - elements(m, n, k, steps) * each

        return answer

    return value(0), value(1)


def _both(elements: Callable) -> Callable:
    first, second = _off(elements)
    return lambda *call: (first(*call), second(*call))


def _any(random: np.random.Generator) -> tuple:
    """Return sizes of which no two are equal, and one to five steps, "gelu" among them or not."""
    m, n, k = (int(x) for x in random.choice(np.arange(2, 3000), 3, replace=False))
    steps = tuple(random.choice(STEPS, int(random.integers(1, 6))).tolist())
    return m, n, k, steps, int(random.choice((1, 2, 4, 8)))


def _products(m: int, n: int, k: int, steps: tuple) -> int:
    return m * k + k * n + m * n


def _names(steps: tuple) -> tuple:
    return tuple(step for step in STEPS if step in steps)


EXERCISE = Exercise(
    name="15.1",
    title="the bytes of an epilogue",
    points=3,
    entry="moved",
    parameters=("m", "n", "k", "steps", "each"),
    kind="values",
    rules=VALUES,
    answer=moved,
    cases=(
        Call((8192, 4096, 2048, ("bias", "gelu", "residual"), 2)),
        Call((96, 40, 72, (), 4)),  # the product alone
        Call((300, 200, 64, ("gelu",), 2)),
        Call((300, 200, 64, ("bias",), 2)),
        Call((300, 200, 64, ("scale", "bias", "silu"), 4)),
        Call((300, 200, 64, ("residual", "relu", "residual"), 2)),
        *(Call(draw=_any) for _ in range(8)),
    ),
    slips=(
        Slip(
            lambda *call: moved(*call)[::-1],
            "order",
            "The two are the wrong way round: first the separate kernels, then the fused one.",
        ),
        Slip(
            lambda m, n, k, steps, each: moved(m, n, k, steps, 1),
            "bytes",
            "These are elements: each takes `each` bytes.",
        ),
        Slip(
            _both(_products),
            "product",
            "The product is missing from both: its kernel loads A and B and stores C.",
        ),
        Slip(
            lambda m, n, k, steps, each: moved(m, n, k, _names(steps), each),
            "twice",
            "A step that is named twice was counted once. The second one is another step, with an "
            "operand of its own.",
        ),
        Slip(
            _both(lambda m, n, k, steps: _operands(m, n, steps) - _operands(n, m, steps)),
            "axes",
            'The operands of "bias" and "scale" are the wrong way round: a bias has an element '
            "for each column of C, n in all, and a scale one for each row, m in all.",
        ),
        Slip(
            _both(lambda m, n, k, steps: (n - m * n) * steps.count("bias")),
            "vectors",
            "A bias is a vector of n elements, and is loaded as such: no kernel needs a matrix of "
            "biases in memory.",
        ),
        Slip(
            _both(
                lambda m, n, k, steps: (
                    (n - m * n) * steps.count("bias") + (m - m * n) * steps.count("scale")
                )
            ),
            "vectors",
            "Biases and scales are vectors, and are loaded as such: no kernel needs a matrix of "
            "them in memory.",
        ),
        Slip(
            _both(lambda m, n, k, steps: -m * n * sum(step in ACTIVATIONS for step in steps)),
            "operands",
            "An activation is taken to load a matrix besides C. It needs C alone.",
        ),
        Slip(
            _off(_products)[0],
            "product",
            "The first value leaves out the product, whose kernel loads A and B and stores C.",
            part=0,
        ),
        Slip(
            _off(lambda m, n, k, steps: m * n * len(steps))[0],
            "both ways",
            "In the first value, C moves once for each step. The kernel of a step loads C, and "
            "stores it as well.",
            part=0,
        ),
        Slip(
            _off(lambda m, n, k, steps: m * n)[0],
            "both ways",
            "The first value has one C too few. The product stores C, and then each step loads and "
            "stores it.",
            part=0,
        ),
        Slip(
            _off(lambda m, n, k, steps: _operands(m, n, steps))[0],
            "operands",
            "The first value leaves out the operands of the steps: a bias, a scale or a residual "
            "is loaded too.",
            part=0,
        ),
        Slip(
            _off(lambda m, n, k, steps: _operands(m, n, steps) + m * n * len(steps))[0],
            "operands",
            "In the first value, each step moves one C. Its kernel loads C and its operand, and "
            "stores C.",
            part=0,
        ),
        Slip(
            _off(lambda m, n, k, steps: _operands(m, n, steps))[1],
            "operands",
            "The second value leaves out the operands of the steps. Fused or not, a bias, a scale "
            "or a residual comes from memory.",
            part=1,
        ),
        Slip(
            _off(lambda m, n, k, steps: -m * n * len(steps))[1],
            "registers",
            "The second value moves C for each step. In a fused kernel C stays in registers "
            "between the steps, and is stored once.",
            part=1,
        ),
        Slip(
            _off(lambda m, n, k, steps: -2 * m * n * len(steps))[1],
            "registers",
            "The second value is that of separate kernels. In a fused kernel C stays in registers "
            "between the steps, and is stored once.",
            part=1,
        ),
        Slip(
            _off(lambda m, n, k, steps: -m * n)[1],
            "registers",
            "The second value has one C too many: a fused kernel stores C and never loads it.",
            part=1,
        ),
        Slip(
            _off(lambda m, n, k, steps: m * n)[1],
            "store",
            "The second value has one C too few: the fused kernel stores its result.",
            part=1,
        ),
    ),
    hints={
        **{"order": 1, "bytes": 3, "product": 2, "twice": 3, "axes": 3, "vectors": 3},
        **{"both ways": 2, "operands": 2, "registers": 1, "store": 1, "nothing": 1, "value": 1},
        **{"forbidden": 1, "error": 3, "other": 1},
    },
)
