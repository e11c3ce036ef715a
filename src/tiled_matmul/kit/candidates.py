"""The candidates of `triton_best`: rungs with tiles, stages and groups for a shape.

Stages and groups, which no model predicts, come from a search on one H200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from triton import cdiv

MOST_SPLITS = 16
SPLIT = ((64, 64, 128), (64, 128, 128))  # tiles that go with parts of K
# (rows, widths, stages) for `triton_two_widths`
TWO_WIDTHS = (
    (64, (256, 32), 4),
    (64, (256, 64), 4),
    (64, (128, 64), 6),
    (64, (128, 32), 6),
    (128, (128, 32), 5),
)
# (rows, widths, stages) for `triton_gluon`
GLUON = ((192, (128, 64), 4), (256, (128, 64), 3))
RUNGS = (
    *("triton_swizzled", "triton_descriptors", "triton_persistent", "triton_split_k"),
    *("triton_two_widths", "triton_gluon", "triton_uneven"),
)


@dataclass(frozen=True)
class Choice:
    """A rung's module in `ladder/`, and the options for its `matmul`.

    With `turned`, the rung computes the transpose of C from the transposes of B and A.
    """

    module: str
    options: dict = field(default_factory=dict)
    turned: bool = False

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.module}({arguments})" + " of the transposes" * self.turned

    def run(self, a: Any, b: Any, out: Any) -> None:
        """Multiply a (M, K) · b (K, N) into out (M, N). Raises as the rung's launcher does."""
        launcher = import_module(f"tiled_matmul.ladder.{self.module}").matmul
        if self.turned:
            a, b, out = b.T, a.T, out.T
        launcher(a, b, out=out, **self.options)

    @classmethod
    def parse(cls, stored: dict) -> Choice:
        """Return the Choice of a JSON object of its fields. Raises ValueError, which quotes it."""
        options = {name: _tuples(value) for name, value in stored["options"].items()}
        if stored["module"] not in RUNGS or not isinstance(stored["turned"], bool):
            raise ValueError(f"{stored} is no rung of {', '.join(RUNGS)} with options")
        return cls(stored["module"], options, stored["turned"])


def candidates(m: int, n: int, k: int, multiprocessors: int) -> Iterator[Choice]:
    """Yield the candidates for this product, each with the stages and groups that suit it."""
    large = cdiv(m, 128) * cdiv(n, 256) > 3 * multiprocessors
    stages, group_m = (4, 12) if large else (3, 4)
    yield Choice("triton_persistent", options((128, 256, 64), 8, stages, group_m))
    yield Choice("triton_descriptors", options((64, 64, 128), 4, 3 if k < 1024 else 6))
    yield Choice("triton_descriptors", options((64, 128, 128), 4, 4, 4))
    yield Choice("triton_descriptors", options((128, 128, 64), 8, 4))
    for rows, widths, stages in TWO_WIDTHS:
        chosen = options((rows, widths, 64), 4, stages, 16)
        yield from (Choice("triton_two_widths", chosen | {"down": d}) for d in (False, True))
    for rows, widths, stages in GLUON:
        chosen = {"block": (rows, widths, 64), "num_stages": stages, "group_m": 8}
        yield Choice("triton_gluon", chosen)
        if rows != sum(widths):
            yield Choice("triton_gluon", chosen | {"down": True})
    for block in SPLIT:
        tiles = cdiv(m, block[0]) * cdiv(n, block[1])
        for splits in range(2, min(MOST_SPLITS, multiprocessors // tiles) + 1):
            yield split_k(block, splits)


def options(block: tuple, num_warps: int, num_stages: int, group_m: int = 8) -> dict:
    """Return the options of a Triton launcher."""
    numbers = {"num_warps": num_warps, "num_stages": num_stages, "group_m": group_m}
    return {"block": block} | numbers


def split_k(block: tuple, splits: int) -> Choice:
    """Return the `triton_split_k` rung with K cut into `splits` parts."""
    return Choice("triton_split_k", options(block, 4, 4, 4) | {"splits": splits})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
