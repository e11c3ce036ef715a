"""What is chosen: a rung, and the options for its launcher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The rungs that `triton_best` chooses from.
RUNGS = (
    *("triton_swizzled", "triton_descriptors", "triton_persistent", "triton_split_k"),
    *("triton_two_widths", "gluon_shapes", "triton_uneven"),
)


@dataclass(frozen=True)
class Choice:
    """A rung's name, which is its module's, and the options for its `matmul`.

    With `turned`, the rung computes the transpose of C from the transposes of B and A.
    """

    module: str
    options: dict = field(default_factory=dict)
    turned: bool = False

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.module}({arguments})" + " of the transposes" * self.turned

    @classmethod
    def parse(cls, stored: dict) -> Choice:
        """Return the Choice of a JSON object of its fields. Raises ValueError, which quotes it."""
        options = {name: _tuples(value) for name, value in stored["options"].items()}
        if stored["module"] not in RUNGS or not isinstance(stored["turned"], bool):
            raise ValueError(f"{stored} is no rung of {', '.join(RUNGS)} with options")
        return cls(stored["module"], options, stored["turned"])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
