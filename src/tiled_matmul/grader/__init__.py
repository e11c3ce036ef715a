"""Practise: grades exercise notebooks, in seconds for a learner, in a sandbox for a teacher.

May import: the book and what lies below it. Front doors: `check`, `cli.add_parsers`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the worker imports this package too, and needs little of it.
    if name in ("check", "NotYet"):
        from tiled_matmul.grader import practice

        return getattr(practice, name)
    raise AttributeError(f"module 'tiled_matmul.grader' has no attribute {name!r}")
